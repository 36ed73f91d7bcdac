"""Tables whose rows are certain but for a few: a decode of many tokens then has few paths.

What goes wrong at the fourth draft, in the sixth round or behind the sixteenth token is out of reach of rows that leave
something open everywhere: paths multiply. Here p and q are one-hot, and every row depends on the whole text, so a wrong
position, a stale entry or a row of another place gives another token for certain.
"""

from __future__ import annotations

import random
from functools import cache

from reference import LanguageModel, Pmf, Tokens
from specverify.laws.tables import rational_pmf

CERTAIN = "certain"
"""One-hot rows; in one text of four p and q want different tokens."""
OPEN = "open_after"
"""``open_after_1_5``: behind texts of 1 and of 5 tokens all is possible under both; elsewhere p = q is one-hot."""
PERIODIC = "periodic_after"
"""``periodic_after_9_10``: the same, but the certain rows count 0, 1, 2 ... and begin again, whatever was before.

So a text comes back to its period behind the open rows: what looks tokens up in the text drafts them in vain and well,
and blocks of a text are equal though what is before them is not.
"""


def is_certain(shape: str) -> bool:
    """Return whether a shape is one of these."""
    return shape == CERTAIN or shape.startswith((OPEN, PERIODIC))


def open_after(*lengths: int) -> str:
    """Return the shape that leaves something open behind texts of these lengths."""
    return "_".join([OPEN, *map(str, lengths)])


def periodic_after(*lengths: int) -> str:
    """Return the same shape with certain rows that repeat a period."""
    return "_".join([PERIODIC, *map(str, lengths)])


def certain_pair(shape: str, vocabulary: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) of such a shape, as tables of ``Fraction``."""
    lengths = frozenset(map(int, filter(str.isdecimal, shape.split("_"))))

    @cache
    def pair(tokens: Tokens) -> tuple[Pmf, Pmf]:
        rng = random.Random(f"{CERTAIN}/{vocabulary}/{seed}/{tokens}")
        if len(tokens) in lengths:
            p, q = ([rng.randint(1, 5) for _ in range(vocabulary)] for _ in range(2))
        elif shape.startswith(PERIODIC):
            p = q = _point(vocabulary, len(tokens) % vocabulary)
        else:
            wanted, other = rng.sample(range(vocabulary), 2)
            p = q = _point(vocabulary, wanted)
            if shape == CERTAIN and rng.random() < 0.25:
                q = _point(vocabulary, other)
        return rational_pmf(tuple(p)), rational_pmf(tuple(q))

    return (lambda tokens: pair(tokens)[0]), (lambda tokens: pair(tokens)[1])


def _point(vocabulary: int, token: int) -> list[int]:
    return [int(other == token) for other in range(vocabulary)]
