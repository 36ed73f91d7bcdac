"""Recorded draws of an engine, and the rounds derived from them, for two small tables of p and q."""

from __future__ import annotations

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.readings import Models
from specverify.checks.explaining.round_readings import reading_of

P = {(0,): (0.5, 0.5), (0, 0): (0.25, 0.75), (0, 1): (0.75, 0.25), (0, 0, 0): (0.5, 0.5), (0, 1, 0): (0.5, 0.5)}
Q = {(0,): (0.2, 0.8), (0, 0): (0.5, 0.5), (0, 1): (0.6, 0.4), (0, 0, 0): (0.4, 0.6), (0, 1, 0): (0.4, 0.6)}


def model(rows):
    """Return a model: a function from a text to its pmf in ``rows``, or to a fair coin if the text is not listed."""
    return lambda text: np.array(rows.get(text, (0.5, 0.5)))


def token(outcome, *pmf):
    """Return the record of a token drawn from ``pmf`` on line 1."""
    return PathDraw("random.choices", "e.py:1", 0.0, pmf[outcome], outcome, (), pmf)


def coin(low, high):
    """Return the record of a uniform in [low, high) drawn on line 2."""
    return PathDraw("random.random", "e.py:2", low, high, None, ())


def read(items, new, horizon=2, asked=()):
    """Return the rounds of P and Q that explain ``items``, the recorded draws of a path that emits ``new``."""
    return reading_of(items, Models(model(P), model(Q), (0,), horizon, asked), new)
