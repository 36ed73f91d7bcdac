"""What mends each cause in vLLM that all platforms share; those of the CPU build alone are in the engine's folder."""

from __future__ import annotations

from functools import wraps
from typing import Any

from mends.mending import Change, Edit, Ours


def bonus_behind_drafts(library: Any) -> Any:
    """Return processors that count the drafts before the bonus token to its text, where ends are forbidden."""
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


OF_CAUSE: dict[str, tuple[Change, ...]] = {
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
