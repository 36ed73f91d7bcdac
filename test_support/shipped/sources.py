"""Where the code of other projects is, and how one function is loaded without the imports of the rest of its file."""

from __future__ import annotations
import __future__

import ast
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache, partial, reduce
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

Mend = Callable[[str], str]


class Source(NamedTuple):
    """A repository of GitHub at one of its commits or tags."""

    repository: str
    commit: str
    paths: tuple[str, ...]
    """What is taken of it."""


_PYEXECUTOR = "tensorrt_llm/_torch/pyexecutor/sampling_utils"
SOURCES = {
    "BigLittleDecoder": Source(
        "kssteven418/BigLittleDecoder",
        "ad37f5641d403c955e7e7c90d946b0ebc3986eb1",
        ("src/transformers/models/t5/modeling_t5.py",),
    ),
    "Cactus": Source("MANGA-UOFA/Cactus", "3b01b816d18bf1e02ce93d0c5d43b42d8814427b", ("cactus",)),
    "DeepSpec": Source("deepseek-ai/DeepSpec", "afdfa7c9382a3341a3e6f17756dd816da79f132c", ("deepspec",)),
    "EAGLE": Source("SafeAILab/EAGLE", "cb7e0841fe0c206c6ed74a197ad5e2a1f13f5a2b", ("eagle",)),
    "FLy": Source("AMD-AGI/FLy", "6667ae8477d087732eb71d7bdaa0d1cb94462a60", ("fly/models",)),
    "Hierarchical-Speculative-Decoding": Source(
        "ZhouYuxuanYX/Hierarchical-Speculative-Decoding",
        "b8575e2ad42bcf2b32d0c6f3481eb49099453f33",
        ("transformers/generation/utils.py",),
    ),
    "Hierarchical-Speculative-Decoding-compiles": Source(
        "ZhouYuxuanYX/Hierarchical-Speculative-Decoding",
        "f3adf7f13e43011d49c29a9ce9d7ad79a1296343",
        ("transformers/generation/utils.py",),
    ),
    "Hydra": Source("zankner/Hydra", "3f39fbd2c22552e788b62dfd29a12b07ad63abfe", ("hydra/model",)),
    "Kangaroo": Source("Equationliu/Kangaroo", "4f0949d46e780af2de8cff9efa76d04e1a31d947", ("evaluation",)),
    "LANTERN": Source("jadohu/LANTERN", "3a56e451dd5ebfa1903d044f754c68c420de27a9", ("models/ea_model_anole.py",)),
    "LLMSpeculativeSampling": Source(
        "feifeibear/LLMSpeculativeSampling", "59a209d37b2e463459057a784f8bd31c1136a58b", ("sampling",)
    ),
    "Medusa": Source("FasterDecoding/Medusa", "e2a5d20c048a9b0a4092e6933c34313687422518", ("medusa/model",)),
    "OPT-Tree": Source("Jikai0Wang/OPT-Tree", "4f87f54e8543f9038d10aac32f286d7f14b7407b", ("opt_classic",)),
    "Ouroboros": Source("thunlp/Ouroboros", "7dac65b7327a9f41acc741d57d1955a774beb34d", ("ouroboros",)),
    "ParallelSpeculativeDecoding": Source(
        "smart-lty/ParallelSpeculativeDecoding", "5a6f3690118aabc101cc3e812f1d8d689c634fc3", ("src",)
    ),
    "REST": Source("FasterDecoding/REST", "50a5fc197382ed8df5b3e946dad2f8337511b541", ("rest/model",)),
    "SJD": Source(
        "tyshiwo1/Accelerating-T2I-AR-with-SJD",
        "b389cfb2b6aa228efab32190f98bc13c3fd4b8e6",
        ("scheduler/jacobi_iteration_lumina_mgpt.py",),
    ),
    "SWIFT": Source("hemingkx/SWIFT", "88caed753c601a718c8ac39bb48c52fd6ef62025", ("model/swift",)),
    "SVIP": Source("Geralt-Targaryen/SVIP", "0cd912e573551d900fcac813b5e21ec35f73bceb", ("vanilla-sd",)),
    "Sequoia": Source("Infini-AI-Lab/Sequoia", "0ff3ff71475ca148f2dfb7545e0de5caf5c67b39", ("Tree", "utils.py")),
    "SpecDec_pp": Source("Kaffaljidhmah2/SpecDec_pp", "9c52edcfe3542fde89be4623840843a8925dee06", ("specdec_pp",)),
    "SpecTr-GBV": Source("junemily/SpecTr-GBV", "e399f44631b5b46e28d3fed13840cf666efc2016", ("src",)),
    "Spec-Bench": Source("hemingkx/Spec-Bench", "fd2c1cd7d2201ef71db4c5f4e455008f017967bf", ("model",)),
    "Speculative-Decoding": Source(
        "romsto/Speculative-Decoding",
        "db7db67604359d0380c330c240c276ec1f85ba65",
        ("ngram_assisted", "utils"),
    ),
    "Speculative_decoding_OT": Source(
        "MasterGodzilla/Speculative_decoding_OT", "7d592b70e954bb1fb48516a5628f9c3439645464", ("EAGLE/eagle/model",)
    ),
    "Speculative-Sampling": Source(
        "shreyansh26/Speculative-Sampling",
        "81fb3b2720dfc0725ac688f485da9dfbc3c02e22",
        ("speculative_sampling.py", "utils.py"),
    ),
    "TensorRT-LLM": Source("NVIDIA/TensorRT-LLM", "053c42c948a14cf3c21981179ecc10a7d7ad8fb6", (f"{_PYEXECUTOR}.py",)),
    "TokenRecycling": Source("Luowaterbi/TokenRecycling", "1b4c05cc642d111f12c61d4a99950d737121d9fe", ("evaluation",)),
    "Thermo-Speculative-Decoding": Source(
        "danwib/Thermo-Speculative-Decoding", "72e55e79d756468ddb3ba4c0b26a436a3fdad97e", ("src/tsd",)
    ),
    "TriForce": Source("Infini-AI-Lab/TriForce", "164c8c0131cf49951eefdea89a3fbcccb8ca326b", ("utils",)),
    "UMbreLLa": Source("Infini-AI-Lab/UMbreLLa", "ff1ac1751cf3073fd7f3bd42927658d98de61657", ("umbrella/speculation",)),
    "adaptive-speculative-decoding": Source(
        "levvius/adaptive-speculative-decoding",
        "ddf1653018e00185b3158aae9dc9c948a43bcb78",
        ("sp_samp", "jointadaspec/core"),
    ),
    "dflash": Source("z-lab/dflash", "44947fbf71114e241c96de194f4b382b5dd330d0", ("dflash/model.py",)),
    "gpt-fast": Source("pytorch-labs/gpt-fast", "32971d3129541c5bfb4f715abc33d1c5f408d204", ("generate.py",)),
    "gpt-fast-unbatched": Source("pytorch-labs/gpt-fast", "e2cfa34145e7f14f8390c8ab727f8d7451b26fec", ("generate.py",)),
    "litgpt": Source("Lightning-AI/litgpt", "26857050fe3ff627cd714fe92f5838f51a3d5efa", ("litgpt/generate",)),
    "llama-ssp": Source("dust-tt/llama-ssp", "29bed13aeac33eb6f996e3b3ddeaf37340db0dc5", ("lssp",)),
    "self-speculative-decoding": Source(
        "dilab-zju/self-speculative-decoding", "688db8b74a782af21777b7ad5aeb399d7eb26faf", ("decoding.py",)
    ),
    "speculative-sampling": Source(
        "jaymody/speculative-sampling", "03b4759da6e894bacdc2f396dc4fd88c913bf94d", ("main.py",)
    ),
    "speculative-decoding": Source(
        "lucidrains/speculative-decoding", "72171ac91cd040ad6b67c186ac985e4f50a0c269", ("speculative_decoding",)
    ),
    "LayerSkip": Source(
        "facebookresearch/LayerSkip", "f42c66965545747d42e27d4beab86b5c17956566", ("self_speculation",)
    ),
    "LookaheadDecoding": Source("hao-ai-lab/LookaheadDecoding", "eed010da9c7b1867912675d480feec5629e0c2d0", ("lade",)),
    "MCSD": Source("NJUNLP/MCSD", "8aadd6501a9e987ba5fca6cc8f9ad5949e480ec7", ("MCSD/inference",)),
    "Speculative-Decoding-shreyansh26": Source(
        "shreyansh26/Speculative-Decoding", "76335be2f8f1a7bf25739310ae80435b83782b23", ("common",)
    ),
    "ml-recurrent-drafter": Source(
        "apple/ml-recurrent-drafter", "bd8586bb9bbfa761644c36f932a0cd1eb3f1cdf9", ("recurrent_drafting",)
    ),
    "nano-PEARL": Source("smart-lty/nano-PEARL", "cacb75d7463bd5300b01a745d7a9c3ea9ecd5851", ("nano_pearl",)),
    "sglang-jax": Source(
        "sgl-project/sglang-jax",
        "cddbf6f1cc33cbdd453bd8f36ff7051cf46ca176",
        ("python/sgl_jax/srt/kernels/speculative", "python/sgl_jax/srt/speculative"),
    ),
    "specexec": Source("yandex-research/specexec", "c7f24b32638dcbb0ef2d1176719980631730c4e8", ("specdec",)),
    "tpu-inference": Source(
        "vllm-project/tpu-inference",
        "b8692ff01fa191343836996c27a39dc95f008b88",
        ("tpu_inference/layers/jax/sample",),
    ),
    "vllm-0.6.5": Source("vllm-project/vllm", "v0.6.5", ("vllm/model_executor/layers",)),
    "vllm-0.8.0": Source("vllm-project/vllm", "v0.8.0", ("vllm/model_executor/layers", "vllm/v1")),
    "vllm-0.33.0": Source("vllm-project/vllm", "v0.33.0", ("vllm/v1/sample",)),
    "vllm-ascend": Source(
        "vllm-project/vllm-ascend",
        "182b75ea84ff13ece27b57391331ef8935410aea",
        ("vllm_ascend/sample", "vllm_ascend/spec_decode"),
    ),
    "vllm-adaptive": Source(
        "vllm-project/vllm",
        "057929c3632766486896597cf27e1425fd838e63",
        ("vllm/v1/worker/gpu/spec_decode/adaptive_verification.py",),
    ),
    "SJD-PAC": Source(
        "KangJialiang/SJD-PAC",
        "4fbc099f7f765b6b363a767da317c0fb8ad4a980",
        ("scheduler/sjd_pac_iteration_lumina_mgpt.py",),
    ),
    "TokenTiming": Source(
        "SeabirdShore/TokenTiming",
        "904b301f7a1c9cf6e675a5d32d6157c95526fa7e",
        ("transformers/generation/candidate_generator.py", "transformers/generation/utils.py"),
    ),
    "SAM-Decoding": Source("hyx1999/SAM-Decoding", "18c41f055b424fa3fa0bac41a8953d34cea1ed77", ("samd/sam",)),
    "Spec-RL": Source(
        "ShopeeLLM/Spec-RL", "97da99ed54d663b238c417c728bc824c79cfab6f", ("verl/utils/speculative_decoding.py",)
    ),
}


def path_of(name: str, within: str = ".") -> Path:
    """Return a file or folder of a source, below the folder that ``SHIPPED_SOURCES`` names.

    The test is skipped with a message if it is not there.
    """
    root = Path(os.environ.get("SHIPPED_SOURCES", "shipped_sources"))
    found = root / name / within
    if not found.exists():
        pytest.skip(f"{found} is not there: {SOURCES[name].repository} at {SOURCES[name].commit} belongs into {root}")
    return found


def functions_of(
    name: str, within: str, *wanted: str, mended: tuple[str, str] | Mend | None = None, **given: Any
) -> SimpleNamespace:
    """Return functions of a file, unchanged, in a namespace with the modules that they are ``given``.

    The rest of the file is not run, because its imports may need a GPU. Tracebacks and verdicts name the file's lines.
    ``mended`` is a pair of words, which occur once, and their replacement, or a function of the file's text: the
    control of a refuted function.
    """
    path = path_of(name, within)
    code, missing = _compiled(str(path), _mended(path, mended), wanted)
    if missing:
        raise ValueError(f"{path} defines no {', '.join(missing)}: another commit than {SOURCES[name].commit}?")
    module = ModuleType(f"shipped_{path.stem}")
    module.__file__, sys.modules[module.__name__] = str(path), module
    vars(module).update(given)
    exec(code, vars(module))
    return SimpleNamespace(**vars(module))


def _mended(path: Path, mended: tuple[str, str] | Mend | None) -> str:
    mend = partial(replaced_once, *mended) if isinstance(mended, tuple) else mended
    return _text_of(path) if mend is None else mend(_text_of(path))


@lru_cache
def _text_of(path: Path) -> str:
    return path.read_text()


@lru_cache
def _compiled(path: str, text: str, wanted: tuple[str, ...]) -> tuple[CodeType, list[str]]:
    """Return the code of the requested definitions, and the names of those that the file lacks."""
    kept = [node for node in _definitions(ast.parse(text, path).body) if node.name in wanted]
    flags = __future__.annotations.compiler_flag
    code = compile(ast.Module(kept, []), path, "exec", flags, dont_inherit=True)
    return code, sorted(set(wanted) - {node.name for node in kept})


def replaced_once(old: str, new: str, text: str) -> str:
    """Return ``text`` with ``old`` replaced by ``new``. Raises ``ValueError`` unless ``old`` occurs once."""
    if text.count(old) != 1:
        raise ValueError(f"the file holds {text.count(old)} times {old!r}, expected once")
    return text.replace(old, new)


def replaced_each(*mends: tuple[str, str]) -> Mend:
    """Return the function that makes these replacements, one after another."""
    return partial(reduce, lambda text, words: replaced_once(*words, text), mends)


def _definitions(body: Iterable[ast.stmt]) -> Iterable[Any]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node
            yield from _definitions(node.body)
        elif isinstance(node, ast.FunctionDef):
            yield node


def module_of(name: str, within: str, mended: tuple[str, str] | Mend | None = None, **stubs: ModuleType) -> ModuleType:
    """Return a whole file as a module, ``mended`` as in ``functions_of``.

    ``stubs`` replace modules that it imports; in their names ``__`` is a dot.
    """
    path = path_of(name, within)
    for stub, module in stubs.items():
        sys.modules.setdefault(stub.replace("__", "."), module)
    specification = importlib.util.spec_from_file_location(f"shipped_{name}_{path.stem}".replace("-", "_"), path)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module
    exec(compile(_mended(path, mended), path, "exec", dont_inherit=True), vars(module))
    return module


def stub(**attributes: Any) -> ModuleType:
    """Return a module with only these attributes."""
    module = ModuleType("stub")
    vars(module).update(attributes)
    return module
