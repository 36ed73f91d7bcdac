"""Draws of an engine as a path records them, and rounds read from them, over two small tables of p and q."""

from __future__ import annotations

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_readings import Models, reading_of

P = {(0,): (0.5, 0.5), (0, 0): (0.25, 0.75), (0, 1): (0.75, 0.25), (0, 0, 0): (0.5, 0.5), (0, 1, 0): (0.5, 0.5)}
Q = {(0,): (0.2, 0.8), (0, 0): (0.5, 0.5), (0, 1): (0.6, 0.4), (0, 0, 0): (0.4, 0.6), (0, 1, 0): (0.4, 0.6)}


def model(rows):
    """Return a function of the text: its row of ``rows``, a fair coin for other texts."""
    return lambda text: np.array(rows.get(text, (0.5, 0.5)))


def token(outcome, *pmf):
    """A token drawn from ``pmf``, on line 1."""
    return PathDraw("random.choices", "e.py:1", 0.0, pmf[outcome], outcome, (), pmf)


def coin(low, high):
    """A uniform in [low, high), on line 2."""
    return PathDraw("random.random", "e.py:2", low, high, None, ())


def read(items, new, horizon=2, asked=()):
    """Return the rounds of P and Q that explain ``items``, the draws of a path that emits ``new``."""
    return reading_of(items, Models(model(P), model(Q), (0,), horizon, asked), new)
