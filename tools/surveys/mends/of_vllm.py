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


def forced_row_by_row(library: Any) -> Any:
    """Return a function that forces the end of thinking in each row by the output and the drafts before that row.

    It counts tokens since the last start, and is for starts and ends of one token.
    """

    def spent(holder: Any, tokens: list[int], budget: int) -> bool:
        (start,), (stop,) = holder.think_start_token_ids, holder.think_end_token_ids
        marks = [place for place, token in enumerate(tokens) if token in {start, stop}]
        return bool(marks) and tokens[marks[-1]] == start and len(tokens) - 1 - marks[-1] >= budget

    @wraps(library)
    def apply(holder, logits, predict_bonus_token, spec_token_ids_for_layout):
        row, states = 0, holder._state  # noqa: SLF001 - nothing else has the requests
        for index in range(max([len(spec_token_ids_for_layout), *(index + 1 for index in states)])):
            drafts = [*spec_token_ids_for_layout[index]] if index < len(spec_token_ids_for_layout) else []
            rows = len(drafts) if holder.in_spec_mode and not predict_bonus_token else 1
            if state := states.get(index):
                text = [*(state["prompt_tok_ids"] or ()), *state["output_tok_ids"]]
                for place in range(rows):
                    before = drafts if predict_bonus_token else drafts[:place]
                    if spent(holder, text + before, state["thinking_token_budget"]):
                        logits[row + place, holder.think_end_token_ids[0]] = 1e9
            row += rows
        return logits

    return apply


TOP_K = "vllm.v1.sample.ops.topk_topp_sampler"
RUNNER = "vllm.v1.worker.gpu_model_runner"
EXPANDED = Ours("vllm.v1.sample.rejection_sampler:expand_batch_to_tokens", expanded)
OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "CPU build: temperature, top-k and top-p of drafted tokens are uninitialised memory": (EXPANDED,),
    "CPU build: top-k raises in a step without drafts": (
        EXPANDED,
        Ours(f"{TOP_K}:apply_top_k_only", of_the_cpu_build(f"{TOP_K}.apply_top_k_only")),
    ),
    "CPU build: a seed raises if a prompt is read in several steps": tuple(
        Ours(f"{RUNNER}:GPUModelRunner.{name}", of_the_cpu_build(f"{RUNNER}.GPUModelRunner.{name}"))
        for name in ("_sample", "_bookkeeping_sync")
    ),
    "min_tokens: the token after accepted drafts cannot be an end, because the drafts are not counted": (
        Ours("vllm.v1.sample.sampler:Sampler.apply_logits_processors", bonus_behind_drafts),
    ),
    "drawn drafts that the grammar forbids are dropped instead of rejected": (
        Edit(
            "vllm.v1.core.sched.scheduler:Scheduler.update_draft_token_ids",
            "self.structured_output_manager.validate_tokens(",
            "(lambda request, drafts: drafts)(",
        ),
    ),
    "a budget of thinking is not applied after a start token that is an accepted draft": (
        Ours(
            "vllm.v1.sample.thinking_budget_state:ThinkingBudgetStateHolder._apply_forcing_to_logits", forced_row_by_row
        ),
    ),
    "drafts are drawn without the seed of the request": (
        Edit(
            "vllm.v1.spec_decode.llm_base_proposer:compute_probs_and_sample_next_token",
            "    q.exponential_()\n",
            "    q.exponential_()\n"
            "    for i, generator in sampling_metadata.generators.items():\n"
            "        q[i].exponential_(generator=generator)\n",
        ),
    ),
}
