"""The parts of the engine, one function each. Planted bugs replace one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.mutants.serving import (
    cache,
    drafting,
    output,
    processors,
    request,
    scheduler,
    verification,
)
from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.processors import Matcher
from specverify.mutants.serving.request import ExactPmf, Parameters, Request
from specverify.reference import Draws, Tokens

Spread = tuple[tuple[int, ...], tuple[int, ...]]


class EngineParts(NamedTuple):
    """The replaceable functions of the serving engine; each default is correct.

    The modules that define the functions document them.
    """

    admit: Callable[[Mapping[str, Any]], Request] = request.admit

    row_prefix: Callable[[Tokens, Tokens, int], Tokens] = processors.row_prefix
    row_parameters: Callable[[Parameters, int, int], Parameters] = processors.row_parameters
    occurrences: Callable[[Tokens, int], Mapping[int, int]] = processors.occurrences
    blocked: Callable[[tuple[Tokens, ...], Tokens, Tokens, int], frozenset[int]] = processors.blocked
    new_before: Callable[[int, int, int], int] = processors.new_before
    permitted: Callable[[Parameters, int], frozenset[int]] = processors.permitted
    truncated: Callable[[ExactPmf, Parameters], ExactPmf] = processors.truncated

    rollback: Callable[[Matcher, int], Matcher] = processors.rollback
    needs_mask: Callable[[Any, Matcher], bool] = processors.needs_mask
    forked: Callable[..., Matcher] = processors.forked
    draft_matcher: Callable[[Any, Matcher, Tokens], Matcher] = processors.draft_matcher
    committed: Callable[[Any, Matcher, Tokens, bool], Matcher] = processors.committed

    slots: Callable[[tuple[int, ...], int, int, int], tuple[int, ...]] = cache.slots
    positions: Callable[..., tuple[int, ...]] = cache.positions
    trimmed: Callable[[tuple[int, ...], tuple[int, ...], int], Spread] = cache.trimmed
    fed_next: Callable[[Tokens, int], Tokens] = cache.fed_next
    written_count: Callable[[int, int], int] = cache.written_count
    kept: Callable[[int, int, int, int], int] = cache.kept
    at_end: Callable[[int, int], int] = cache.at_end
    after_drafting: Callable[..., cache.CacheMemory] = cache.after_drafting
    visible: Callable[..., Any] = cache.visible
    recorded: Callable[[tuple[Tokens, ...], int], tuple[Tokens, ...]] = cache.recorded
    checkpoint: Callable[[Tokens, tuple[Tokens, ...], int, int], Tokens] = cache.checkpoint
    state_slot: Callable[[int], int] = cache.state_slot
    reused: Callable[[int, int, bool], int] = cache.reused
    fresh_state: Callable[[Tokens, int], Tokens] = cache.fresh_state

    draft_feed: Callable[[Tokens, int, int], Tokens] = drafting.draft_feed
    draft_write: Callable[[DraftCache, Tokens], DraftCache] = drafting.draft_write
    draft_kept: Callable[[DraftCache, int, int, int], DraftCache] = drafting.draft_kept
    draft_reused: Callable[..., DraftCache] = drafting.draft_reused
    draft_prefix: Callable[[Tokens, Tokens], Tokens] = drafting.draft_prefix
    to_target: Callable[[ExactPmf, Tokens, int], ExactPmf] = drafting.to_target
    declared: Callable[[ExactPmf, ExactPmf], ExactPmf] = drafting.declared
    corpus: Callable[[Tokens, Tokens], Tokens] = drafting.corpus
    lookup: Callable[[Tokens, Tokens, int], Tokens] = drafting.lookup

    usable: Callable[[Tokens], int] = verification.usable
    greedy: Callable[[ExactPmf, bool], int] = verification.greedy

    ends_text: Callable[[int, Tokens], bool] = output.is_eos
    has_stop_string: Callable[..., bool] = output.has_stop_string
    stop_strings_of: Callable[..., tuple[str, ...]] = output.stop_strings_of
    cut: Callable[..., tuple[int, bool]] = output.cut
    draft_budget: Callable[[int, int], int] = output.draft_budget

    schedule: Callable[..., tuple[int, ...]] = scheduler.schedule
    chunk: Callable[[Tokens, int, int, Tokens], Tokens] = scheduler.chunk
    rows_begin: Callable[..., tuple[int, ...]] = scheduler.starts
    padding_slot: Callable[[int], int | None] = scheduler.padding_slot
    parameters_at: Callable[..., Parameters] = scheduler.parameters_at
    resumed: Callable[[Tokens, Tokens], Tokens] = scheduler.resumed
    resolved: Callable[[Tokens, int, Tokens, Tokens], Tokens] = scheduler.resolved
    fed_when_full: Callable[[Tokens], Tokens] = scheduler.fed_when_full
    accepted_count: Callable[[Tokens, int], int] = scheduler.accepted_count

    probability: Callable[..., Fraction] = output.probability
    most_probable: Callable[..., output.Top] = output.most_probable
    of_prompt: Callable[..., tuple[Fraction, ...]] = output.of_prompt
    listed: Callable[[tuple[Fraction, ...], bool], tuple[Fraction, ...]] = output.listed
    streamed: Callable[..., str] = output.streamed

    rank_draws: Callable[[Draws, dict[Any, int], int], Draws] = scheduler.rank_draws
    rank_lookup: Callable[[int], Callable[[Tokens, Tokens, int], Tokens] | None] = scheduler.rank_lookup


CORRECT = EngineParts()
