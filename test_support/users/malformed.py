"""Functions that cannot be examined, each for another reason."""

from __future__ import annotations

import numpy as np
from misbehaving import right

DECODER = ("draws", "target", "draft", "tokens")


class Holder:
    """A class with a correct round as a method."""

    @staticmethod
    def one_round(draws, target, draft, tokens):
        """One draft, one verification."""
        return right(draws, target, draft, tokens)


class Kept:
    """A class that stores its constructor's argument."""

    def __init__(self, strict=True):  # noqa: D107
        self.strict = strict

    def verify(self, p, q, draft_tokens):  # noqa: D102
        return always(self.strict)(p, q, draft_tokens)


one_round = Holder.one_round


def always(answer):
    """Return a verifier that returns the same value in every call."""

    def verify(p, q, draft_tokens):
        return answer

    return verify


def round_of(answer):
    """Return a round that always commits the same tokens."""

    def decode(draws, target, draft, tokens):
        return answer

    return decode


async def awaited(*given):
    """Return at some later time."""
    return [0]


class Awaited:
    """A callable that returns a coroutine."""

    async def __call__(self, *given):  # noqa: ARG002 - whatever it is asked
        """Return at some later time."""
        return [0]


def batches(p, q, draft_tokens):
    """Accept no draft, for a batch."""
    rows, _, _ = q.shape
    answer = np.full((rows, p.shape[1]), -1)
    answer[:, 0] = p[:, 0].argmax(-1)
    return answer


def two(p, q):
    """Has too few parameters."""
    return [0]


def four(p, q, draft_tokens, more):
    """Has too many parameters."""
    return [0]


def sample(seed, n):
    """Return n sequences."""
    return [[0]] * n
