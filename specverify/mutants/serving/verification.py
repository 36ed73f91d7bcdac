"""Verification: speculative sampling token by token (arXiv 2211.17192), greedy matching at temperature 0."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.serving.request import ONE, ZERO, ExactPmf, argmax, normalised
from specverify.reference import Draws, Site, Tokens

PLACEHOLDER = -1
"""Padding id that fills the rows of a batch up to the longest draft."""


def usable(drafts: Tokens) -> int:
    """Return the number of ``drafts`` before the first placeholder, a -1 that stands for no draft."""
    return drafts.index(PLACEHOLDER) if PLACEHOLDER in drafts else len(drafts)


def ratio(p: ExactPmf, q: ExactPmf, token: int) -> Fraction:
    """Return the acceptance probability min(1, p/q) of ``token``, which was drawn from q; 0 if p of it is 0."""
    if p[token] >= q[token]:
        return ONE if p[token] else ZERO
    return p[token] / q[token]


def residual(p: ExactPmf, q: ExactPmf) -> ExactPmf:
    """Return norm((p - q)+), the law of the replacement of a rejected draft; p if (p - q)+ is 0 everywhere."""
    return normalised(tuple(max(a - b, ZERO) for a, b in zip(p, q, strict=True))) or p


def greedy(row: ExactPmf, mixed: bool) -> int:
    """Return the argmax of ``row``, the token at temperature 0.

    ``mixed`` states whether other rows of the batch are sampled; it is not used here.
    """
    return argmax(row)


def choose(draws: Draws, row: ExactPmf, site: Site) -> int:
    """Draw a token from ``row``, by a draw named ``site``; if only one token is possible, return it without a draw."""
    return row.index(ONE) if ONE in row else draws.categorical(row, site)


def flip(draws: Draws, heads: Fraction, site: Site) -> bool:
    """Return True with probability ``heads``, by a draw named ``site``."""
    return choose(draws, (heads, 1 - heads), site) == 0
