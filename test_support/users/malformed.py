"""Functions that nobody can use, each in a way of its own."""

from __future__ import annotations

import numpy as np
from misbehaving import right

DECODER = ("draws", "target", "draft", "tokens")


class Holder:
    """Holds a round that is right."""

    @staticmethod
    def one_round(draws, target, draft, tokens):
        """One draft, one verification."""
        return right(draws, target, draft, tokens)


class Kept:
    """Keeps what it is made with."""

    def __init__(self, strict=True):  # noqa: D107
        self.strict = strict

    def verify(self, p, q, draft_tokens):  # noqa: D102
        return always(self.strict)(p, q, draft_tokens)


one_round = Holder.one_round


def always(answer):
    """Return a verifier that answers this whatever it is asked."""

    def verify(p, q, draft_tokens):
        return answer

    return verify


def round_of(answer):
    """Return a round that commits this."""

    def decode(draws, target, draft, tokens):
        return answer

    return decode


async def awaited(*given):
    """Return at some later time."""
    return [0]


class Awaited:
    """Called, it returns at some later time."""

    async def __call__(self, *given):  # noqa: ARG002 - whatever it is asked
        """Return at some later time."""
        return [0]


def batches(p, q, draft_tokens):
    """Accept nothing, for a batch."""
    rows, _, _ = q.shape
    answer = np.full((rows, p.shape[1]), -1)
    answer[:, 0] = p[:, 0].argmax(-1)
    return answer


def two(p, q):
    """Take too few."""
    return [0]


def four(p, q, draft_tokens, more):
    """Take too many."""
    return [0]


def sample(seed, n):
    """Return n sequences."""
    return [[0]] * n
