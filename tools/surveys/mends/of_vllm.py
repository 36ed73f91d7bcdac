"""The changes that correct each cause in vLLM.

Faults of the CPU build itself are corrected as in the rows that are not marked *as they are*.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from mends.mending import Change, Edit, Ours


def bonus_behind_drafts(library: Any) -> Any:
    """Return corrected processors for a rule that forbids end tokens in the first tokens of a text.

    They count the drafts before the bonus token as part of the text.
    """
    import torch
    from vllm.v1.sample.logits_processor.builtin import MinTokensLogitsProcessor

    @wraps(library)
    def apply(sampler, logits, sampling_metadata, predict_bonus_token):
        if not predict_bonus_token:
            return library(sampler, logits, sampling_metadata, predict_bonus_token)
        processors = sampling_metadata.logitsprocs.non_argmax_invariant
        counting = [each for each in processors if isinstance(each, MinTokensLogitsProcessor)]
        held = [(each, each.min_toks, each.logits_slice) for each in counting]
        for each in counting:
            drafts = sampling_metadata.spec_token_ids
            early = {i: row for i, row in each.min_toks.items() if len(row[1]) + len(drafts[i]) < row[0]}
            places = [(i, token) for i, row in early.items() for token in row[2]]
            each.min_toks = early
            each.logits_slice = tuple(torch.tensor([place[i] for place in places], dtype=torch.long) for i in (0, 1))
        try:
            return library(sampler, logits, sampling_metadata, predict_bonus_token)
        finally:
            for each, whole, places in held:
                each.min_toks, each.logits_slice = whole, places

    return apply


def of_the_cpu_build(where: str) -> Callable[[Any], Any]:
    """Return the function that makes the correction listed in the engine's own table under ``where``."""

    def make(library: Any) -> Any:
        from specverify.engines.vllm.mends import MENDS

        (mend,) = (each for each in MENDS if each.where == where)
        return mend.make(library)

    return make


def expanded(library: Any) -> Any:
    """Return the caller of the kernel that loses its output, rewritten without that kernel."""
    import torch

    def expand(values, ends, number, replace_from=0, replace_to=0):
        lengths = torch.diff(ends.long(), prepend=torch.zeros(1, dtype=torch.long))
        return torch.where(values == replace_from, torch.full_like(values, replace_to), values).repeat_interleave(
            lengths
        )

    return expand


TOP_K = "vllm.v1.sample.ops.topk_topp_sampler"
RUNNER = "vllm.v1.worker.gpu_model_runner"
EXPANDED = Ours("vllm.v1.sample.rejection_sampler:expand_batch_to_tokens", expanded)
OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "CPU build: temperature, top-k and top-p of drafted tokens are memory that nothing was written to": (EXPANDED,),
    "CPU build: top-k raises in a step without drafts": (
        EXPANDED,
        Ours(f"{TOP_K}:apply_top_k_only", of_the_cpu_build(f"{TOP_K}.apply_top_k_only")),
    ),
    "CPU build: a seed raises where a prompt is read in several steps": tuple(
        Ours(f"{RUNNER}:GPUModelRunner.{name}", of_the_cpu_build(f"{RUNNER}.GPUModelRunner.{name}"))
        for name in ("_sample", "_bookkeeping_sync")
    ),
    "min_tokens: the token after accepted drafts may be no end, whatever their number": (
        Ours("vllm.v1.sample.sampler:Sampler.apply_logits_processors", bonus_behind_drafts),
    ),
    "drafts that the grammar forbids are dropped where they were drawn": (
        Edit(
            "vllm.v1.core.sched.scheduler:Scheduler.update_draft_token_ids",
            "self.structured_output_manager.validate_tokens(",
            "(lambda request, drafts: drafts)(",
        ),
    ),
    "drafts are drawn without the seed of their request": (
        Edit(
            "vllm.v1.spec_decode.llm_base_proposer:compute_probs_and_sample_next_token",
            "    q.exponential_()\n",
            "    q.exponential_()\n"
            "    for i, generator in sampling_metadata.generators.items():\n"
            "        q[i].exponential_(generator=generator)\n",
        ),
    ),
}
