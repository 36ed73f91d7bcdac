"""Samples with speculation against samples without."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial

import pytest

from property_tests.laws.test_near_ties import exact_row, plain, speculative
from specverify.checks import Conditions, samples_agree
from specverify.laws.near_ties import Logits
from specverify.subjects.subject import SampledPair

VOCABULARY, WIDTH, NEW, GAMMA = 64, 128, 12, 4

STEP = 2.0**-5
"""Of the numbers that sums are kept in: one is half of it off, a row of two sums one."""

ROUNDING = math.tanh(STEP)
"""Of a probability of such a row: two of its logits are twice the step further apart at most."""

late = partial(speculative, late=1)

TIE = 23
"""A seed at which the two passes prefer different tokens."""


@pytest.mark.parametrize(("speculates", "tie"), [(speculative, True), (late, False)])
def test_samples_beside_plain_ones_are_judged_by_the_logits_too(speculates, tie):
    ours, theirs = speculates(TIE), plain(TIE)
    counts = (lambda n, _: Counter({ours: n})), (lambda n, _: Counter({theirs: n}))
    pair = SampledPair("greedy", *counts, 0.05, Logits(partial(exact_row, TIE), ROUNDING))
    found = samples_agree.examine("it", pair, Conditions())
    assert (found.unknown, found.failed) == (tie, not tie)
    assert found.figures["partings"][0]["near_tie"] == tie
