"""Planted bugs, class P: the ranks (processes) of an engine disagree.

Some are mutants of the serving engine. The others are faults of ``ranked(fault, scenario)``: a small engine on one of
the ranks of ``scenario.group``. With the fault "", rank 0 verifies each round and the ranks agree. ``RANKS`` maps each
of these faults to a citation of a real defect of this kind, or to "plausible".

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from specverify.mutants.numpy_verifiers import decided, drawn, planted_verifier
from specverify.mutants.serving.planted import engine_part
from specverify.reference import Draws, Tokens
from specverify.subjects.engine_making import EngineScenario


def after_first_occurrence(corpus: Tokens, tokens: Tokens, count: int) -> Tokens:
    """Return at most ``count`` tokens of ``corpus`` after the first occurrence of the last token of ``tokens``."""
    result = corpus.index(tokens[-1]) + 1
    return corpus[result : result + count] if result < len(corpus) else ()


@engine_part(
    "rank_lookup",
    "two ranks with lookup",
    "ranks-draft-alone",
    "each rank makes its own drafts",
    category="P",
    citation="vLLM issue #31154, PRs #31288, #31307",
)
def ranks_draft_alone(rank: int) -> Callable[[Tokens, Tokens, int], Tokens] | None:
    """Return the function by which rank ``rank`` (a process of a parallel engine) looks up drafts in the text.

    Rank 0 keeps the right lookup (None): the tokens after the last occurrence of the last token. Every other rank takes
    the first occurrence. The ranks therefore find different drafts: the bug.
    """
    return after_first_occurrence if rank else None


@engine_part(
    "rank_draws",
    "two ranks",
    "ranks-draw-alone",
    "each rank draws its own random numbers",
    category="P",
    citation="vLLM issue #17498, PR #17509",
)
def ranks_draw_alone(draws: Draws, drawn: dict[Any, int], rank: int) -> Draws:
    """Return ``draws``, the random draws of rank ``rank``, unchanged. These draws differ from rank to rank: the bug.

    In the right engine all ranks use the outcomes that the first rank stored in ``drawn``.
    """
    return draws


@engine_part(
    "schedule",
    "one request",
    "scheduled-while-in-flight",
    "schedules a request twice in one step",
    category="P",
    citation="vLLM issue #52071",
)
def scheduled_while_in_flight(ready: Sequence[int], step: int, rotates: bool) -> tuple[int, ...]:
    """Return the requests of one step's batch: every one of the ``ready`` requests twice, which is the bug.

    ``step`` and ``rotates`` are not used.
    """
    return (*ready, *ready)


SHARDS = 2


def sharded(weights: Any) -> float:
    """Return a token id drawn by ``weights``, computed as the start of a vocabulary shard plus the offset in the shard.

    The start is not rounded to an integer.
    """
    token, size = drawn(np.random.default_rng(), weights), len(weights)
    begins = [-(-rank * size // SHARDS) for rank in range(SHARDS)]
    rank = max(rank for rank in range(SHARDS) if begins[rank] <= token)
    return token - begins[rank] + rank * size / SHARDS


@planted_verifier(
    "shards-begin-at-fractions",
    "computes a token id by true division, such as 1.5",
    category="P",
    citation="plausible",
    killed_by="tokens_are_supported",
)
def shards_begin_at_fractions(p: Any, q: Any, draft_tokens: Any) -> list[float]:
    """Speculative sampling that computes the start of a vocabulary shard by a true division, ``rank * V / ranks``.

    If V is not divisible by the number of ranks, a bonus token may be no integer.
    """
    result = decided(np.random.default_rng(), p, q, draft_tokens.tolist())
    kept = result[:-1]
    bonus = len(kept) == len(draft_tokens)
    return [*kept, sharded(p[-1])] if bonus else [*kept, float(result[-1])]


RANKS: Final[Mapping[str, tuple[str, str]]] = {
    "a generator on each rank": ("ranks", "vLLM issue #17498, PR #17509"),
    "one seed, and rows of each rank": ("ranks", "plausible"),
    "bonus drawn on each rank": ("ranks", "plausible"),
    "drafts of each rank": ("ranks", "vLLM issue #31154, PRs #31288, #31307"),
    "a collective call for each token of a rank": ("ranks", "plausible"),
}
"""Fault -> (the promise that it breaks, its record)."""
Draw = Callable[[], float]
RNG: Any = np.random
"""The library's global generator, whose state differs between ranks."""


def inverse(pmf: Any, uniform: float) -> int:
    """Return the token that ``uniform`` selects from ``pmf`` by inverse CDF."""
    return min(int(np.searchsorted(np.cumsum(pmf), uniform, side="right")), len(pmf) - 1)


def one_round(models: EngineScenario, text: Tokens, draw: Draw) -> Tokens:
    """Return the new tokens after ``text`` of one round on one rank, with uniforms from ``draw()``.

    The round has one draft and its verification. ``models`` has the target and the draft model.
    """
    q, p = models.draft(text), models.target(text)
    draft = inverse(q, draw())
    if draw() < p[draft] / q[draft]:
        return draft, inverse(models.target((*text, draft)), draw())
    return (inverse(_owed(p, q), draw()),)


def decoded(models: EngineScenario, new_of: Callable[[Tokens], Tokens]) -> Tokens:
    """Return the new tokens of a decode; ``new_of(text)`` returns those of the round after ``text``.

    ``models`` is the scenario, which has the prompt and the largest number of new tokens.
    """
    new: Tokens = ()
    while len(new) < models.horizon:
        new += tuple(new_of(models.prompt + new))
    return new[: models.horizon]


def ranked(fault: str, models: EngineScenario) -> Callable[..., Tokens]:
    """Return the engine of one rank for the scenario ``models``, with the fault named ``fault`` ("": none).

    The engine returns the new tokens. It takes no argument, or a seed with the fault "one seed, and rows of each rank".
    """
    group: Any = models.group

    def of_one_seed(seed: int) -> Tokens:
        draw = np.random.default_rng(seed).random
        return decoded(models, lambda text: one_round(models, text, draw))

    if fault == "one seed, and rows of each rank":
        return of_one_seed

    def new_of(text: Tokens) -> Tokens:
        if fault == "drafts of each rank":
            return _of_own_draft(models, text)
        new = one_round(models, text, RNG.random)
        if fault == "a generator on each rank":
            return new
        if fault == "bonus drawn on each rank":
            kept = tuple(group.broadcast(new[:1]))
            return (*kept, inverse(models.target(text + kept), RNG.random()))
        if fault == "a collective call for each token of a rank":
            return tuple(group.broadcast(token) for token in new)
        return tuple(group.broadcast(new))

    return lambda: decoded(models, new_of)


def _of_own_draft(models: EngineScenario, text: Tokens) -> Tokens:
    """Return the new tokens of a round after ``text`` in which each rank drafts by itself.

    Rank 0 tests its own draft. If it accepts, every rank returns its own draft, so the ranks differ. If it rejects, all
    return the replacement that rank 0 draws.
    """
    group: Any = models.group
    q, p = models.draft(text), models.target(text)
    draft = inverse(q, RNG.random())
    if group.broadcast(bool(RNG.random() < p[draft] / q[draft])):
        return (draft,)
    return (int(group.broadcast(inverse(_owed(p, q), RNG.random()))),)


def _owed(p: Any, q: Any) -> Any:
    left = np.maximum(p - q, 0)
    return left / left.sum() if left.sum() > 0 else p
