"""Verifiers of one draft or of a batch of drafts, each called with the arguments that it needs."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any, Optional, cast

import torch

from test_support.shipped.sources import functions_of, module_of, path_of, replaced_each, stub


def transformers_sampling(*mended: tuple[str, str]) -> Any:
    """Return ``_speculative_sampling`` of transformers as installed, or mended; it is not called without a draft."""
    from transformers.generation import utils

    own = dict(vars(utils))
    if mended:
        text = inspect.getsource(utils._speculative_sampling)
        exec(replaced_each(*mended)(text), own)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        if len(draft_tokens) == 0:
            return torch.multinomial(p[-1], 1)
        drafts = draft_tokens[None], q.log()[None], len(draft_tokens), p.log()[None]
        return own["_speculative_sampling"](*drafts)[0][0]

    return verify


def deepspec() -> Any:
    """``verify_draft_tokens`` of DeepSpec's evaluator, with its own sampling functions; it computes in float32."""
    own = module_of("DeepSpec", "deepspec/utils/sampling.py")
    names = ("DraftProposal", "VerificationResult", "verify_draft_tokens")
    given = {name: getattr(own, name) for name in own.__all__}
    taken = functions_of(
        "DeepSpec", "deepspec/eval/base_evaluator.py", *names, torch=torch, dataclass=dataclass, **given
    )

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        gamma = len(draft_tokens)
        proposal = SimpleNamespace(
            draft_token_count=gamma,
            verify_input_ids=torch.cat([torch.zeros(1, dtype=torch.long), draft_tokens])[None],
            draft_probs=q[None],
        )
        return taken.verify_draft_tokens(
            target_model=lambda **_: SimpleNamespace(logits=p.log()[None]),
            proposal=proposal,
            position_ids=torch.arange(gamma + 1)[None],
            start=0,
            past_key_values_target=None,
            temperature=1.0,
            max_proposal_tokens=gamma,
        ).committed_tokens[0]

    return verify


def tensorrt() -> Any:
    """Return the functions of TensorRT-LLM's sampler in torch: the first rejection, and the draw that follows it."""
    taken = functions_of(
        "TensorRT-LLM",
        "tensorrt_llm/_torch/pyexecutor/sampling_utils.py",
        "get_rejected_indices",
        "sample_rejected",
        torch=torch_of_a_host(),
        cast=cast,
    )

    generator = torch.Generator()

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        drafts = draft_tokens.tolist()
        rejected = taken.get_rejected_indices(q, p[None], generator, drafts) if drafts else torch.empty(0)
        if rejected.numel() == 0:
            return [*drafts, int(torch.multinomial(p[-1], 1, generator=generator))]
        accepted = int(rejected[0])
        return [*drafts[:accepted], taken.sample_rejected(q, p, generator, accepted)]

    return verify


def vllm_v0(version: str) -> Any:
    """``RejectionSampler`` of vLLM's first engine, whole batches, its bonus token drawn from the last row of p."""
    with _vllm(version):
        from vllm.model_executor.layers.rejection_sampler import RejectionSampler

        sampler = RejectionSampler()
        (getattr(sampler, "init_gpu_tensors", None) or sampler.init_tensors)("cpu")

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        return sampler(p, torch.multinomial(p[:, -1], 1), q, draft_tokens)

    return verify


def cactus(delta: float) -> Any:
    """``CactusRejectionSampler`` in torch, over vLLM 0.8.0's sampler of its first engine, as ``vllm_v0``."""
    with _vllm("vllm-0.8.0"):
        from vllm.model_executor.layers.rejection_sampler import RejectionSampler, _multinomial

        quiet = SimpleNamespace(update=lambda _: None)
        given = dict(torch=torch, Dict=dict, Optional=Optional, Tuple=tuple, tracker=quiet, triton_fc=None)
        wrapped = functions_of(
            "Cactus",
            "cactus/rs.py",
            "WrappedRejectionSampler",
            OriginalRejectionSampler=RejectionSampler,
            _multinomial=_multinomial,
            **given,
        ).WrappedRejectionSampler
        names = ("solve_constraint", "CactusRejectionSampler")
        taken = functions_of("Cactus", "cactus/cactus.py", *names, WrappedRejectionSampler=wrapped, **given)
        sampler = taken.CactusRejectionSampler()
        sampler.init_tensors("cpu")
        sampler.delta = delta

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        return sampler(p, torch.multinomial(p[:, -1], 1), q, draft_tokens)

    return verify


def vllm_v1_native() -> Any:
    """``forward_native`` of vLLM 0.8.0's second engine, in torch: rows of p lie flat, drafts are lists."""
    with _vllm("vllm-0.8.0"):
        from vllm.v1.sample.rejection_sampler import RejectionSampler

        sampler = RejectionSampler()
    settings = SimpleNamespace(all_greedy=False, all_random=True, temperature=torch.ones(1), generators={})

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        bonus = torch.multinomial(p[:, -1], 1)
        return sampler(draft_tokens.tolist(), q, bonus, p.flatten(0, 1), settings)

    return verify


def ascend(*, block: bool, entropy: bool = False) -> Any:
    """``rejection_sample`` of vllm-ascend without its kernels; uniforms are made as vLLM makes them.

    With ``entropy`` the bar is lowered by that of the target, whose rows are handed over as the unprocessed ones too.
    """
    quiet = torch_of_a_host()
    uniforms = functions_of(
        "vllm-0.33.0", "vllm/v1/sample/rejection_sampler.py", "generate_uniform_probs", torch=torch
    ).generate_uniform_probs
    config = SimpleNamespace(
        enable_reduce_sample=False,
        rejection_sampler_config=SimpleNamespace(
            enable_block_verify=block, enable_entropy_verify=entropy, posterior_threshold=0.95, posterior_alpha=0.4
        ),
    )
    path = "vllm_ascend/sample/rejection_sampler.py"
    wanted = (
        "rejection_sample",
        "sample_recovered_tokens",
        "sample_recovered_tokens_pytorch",
        "sample_recovered_tokens_blockwise_pytorch",
        "rejection_random_sample_pytorch",
        "rejection_random_sample_block_verify_pytorch",
        "expand_pytorch",
        "expand_batch_to_tokens",
    )
    taken = functions_of(
        "vllm-ascend",
        path,
        *wanted,
        torch=quiet,
        HAS_TRITON=False,
        PLACEHOLDER_TOKEN_ID=-1,
        GREEDY_TEMPERATURE=0,
        MAX_SPEC_LEN=128,
        get_ascend_config=lambda: config,
        generate_uniform_probs=uniforms,
        logger=SimpleNamespace(**dict.fromkeys(("debug_once", "info_once", "warning_once"), lambda *_: None)),
    )
    settings = SimpleNamespace(all_greedy=False, all_random=True, temperature=torch.ones(1), generators={})

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        rows, gamma = draft_tokens.shape
        bonus = torch.multinomial(p[:, -1], 1)
        if gamma == 0:
            return bonus
        settings.temperature = torch.ones(rows)
        logits = p[:, :-1].flatten(0, 1).log().contiguous()
        ends = torch.arange(1, rows + 1) * gamma
        flat = draft_tokens.flatten().contiguous()
        return taken.rejection_sample(
            flat,
            [gamma] * rows,
            gamma,
            ends,
            q.flatten(0, 1).contiguous(),
            logits,
            bonus,
            settings,
            **({"ori_target_logits": logits} if entropy else {}),
        )

    return verify


def torch_of_a_host() -> Any:
    """Return a torch module that ignores requests for pinned memory, which a machine without a device does not have."""

    def unpinned(make: Any) -> Any:
        @wraps(make)
        def made(*values: Any, pin_memory: bool = False, **options: Any) -> Any:
            return make(*values, **options)

        return made

    host = ModuleType("torch")
    host.__getattr__ = lambda name: getattr(torch, name)  # type: ignore[method-assign]
    for name in ("tensor", "arange", "ones", "full"):
        setattr(host, name, unpinned(getattr(torch, name)))
    return host


@contextmanager
def _vllm(source: str) -> Iterator[None]:
    """Make ``vllm`` the folder of a source, and replace the other modules that its samplers import."""
    root = path_of(source, "vllm")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "vllm"}
    within = ("", "model_executor", "model_executor.layers", "v1", "v1.sample", "v1.sample.ops", "v1.spec_decode")
    for name in within:
        package = stub(__path__=[str(root.joinpath(*name.split(".")))])
        sys.modules[f"vllm.{name}".rstrip(".")] = package
    sys.modules["vllm.logger"] = stub(init_logger=logging.getLogger)
    sys.modules["vllm.envs"] = sys.modules["vllm"].envs = stub(VLLM_USE_FLASHINFER_SAMPLER=False)
    platform = SimpleNamespace(is_cuda_alike=lambda: False, is_cuda=lambda: False, simple_compile_backend="eager")
    sys.modules["vllm.platforms"] = stub(current_platform=platform)
    sys.modules["vllm.v1.worker.gpu_input_batch"] = stub(InputBatch=object)
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
            del sys.modules[name]
        sys.modules.update(before)


def row(verify: Any) -> Any:
    """Return the verifier of one row, made from a verifier of batches."""

    def one(p: Any, q: Any, draft_tokens: Any) -> Any:
        return verify(p[None], q[None], draft_tokens[None])[0]

    return one
