"""Test vectors ``cache_lengths``: how many entries each KV cache keeps after a round, and which tokens it still lacks.

A round starts with ``known`` tokens. The target's cache lacks the last of them; the round feeds it this token and the
drafts. The drafter's cache holds ``held`` entries at the end of the round. After an ordinary round these are ``known +
gamma - 1``: the drafter was fed all tokens except its own last draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specverify.reference import keep_lengths, tokens_to_feed
from specverify.vectors.judging import judged_exactly
from specverify.vectors.vector import Answer, Kind, Vector, valid

KIND = "cache_lengths"
TARGET, DRAFT = "target", "draft"
MOST_KNOWN, MOST_GAMMA = 6, 4
NOTES = {TARGET: ("rollback", "cache-length"), DRAFT: ("draft-cache",)}


def answer_of(flag: str, inputs: Mapping[str, Any]) -> Answer:
    """Return the right answer to the inputs of a vector, computed by ``reference``.

    ``flag`` is the cache: ``target`` or ``draft``.
    """
    known, accepted = inputs["known"], inputs["accepted"]
    keep: int = getattr(keep_lengths(known, inputs["gamma"], accepted, inputs.get("held")), flag)
    return {"keep": keep, "unfed": list(tokens_to_feed(tuple(range(known + accepted + 1)), keep))}


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``cache_lengths``."""
    return tuple(vector for flag in (TARGET, DRAFT) for vector in _of_cache(flag))


def _of_cache(flag: str) -> Iterator[Vector]:
    for known in range(1, MOST_KNOWN + 1):
        for gamma in range(MOST_GAMMA + 1):
            for accepted in range(gamma + 1):
                for held in _held(flag, known, gamma):
                    inputs = {"cache": flag, "known": known, "gamma": gamma, "accepted": accepted, **held}
                    name = f"{flag}/" + "-".join(f"{word}{value}" for word, value in list(inputs.items())[1:])
                    yield valid(name, KIND, inputs, answer_of(flag, inputs), flag, notes=NOTES[flag])


def _held(flag: str, known: int, gamma: int) -> list[dict[str, int]]:
    """Return the values of the input ``held`` to test, each as {"held": number of entries}.

    ``flag`` is the cache. For the drafter's cache there are two values: the number after an ordinary round with
    ``known`` tokens and ``gamma`` drafts, and ``known - 2``. The target's cache has no such input: return [{}].
    """
    if flag == TARGET:
        return [{}]
    return [{"held": held} for held in sorted({max(known + gamma - 1, 0), max(known - 2, 0)})]


CACHE = Kind(
    KIND,
    "the number of cache entries that stay after a round, and the known tokens that have no entry",
    vectors,
    {
        "keep": "the number of entries that stay in the cache",
        "unfed": "the positions of known tokens that are not in the cache; the next pass begins with these tokens",
    },
    judged_exactly,
)
