"""Tests whose p already counts drafts that are not accepted are named, with the number that multiplies the odds."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks.explaining.counted_drafts import counted_drafts
from specverify.checks.explaining.given_drafts import GivenDrafts
from specverify.checks.explaining.round_rules import ModelRows
from specverify.testing import SpeculationRefuted, check_verifier


def penalised(row, counts, number):
    row = np.asarray(row, dtype=float) * number**counts
    return row / row.sum()


def counts_of(size, text, drafts, *, repeated):
    counts = np.bincount(drafts, minlength=size)
    return counts if repeated else np.minimum(counts, 1) * ~np.isin(np.arange(size), text)


ROWS = ((0.35, 0.15, 0.3, 0.2), (0.1, 0.4, 0.3, 0.2), (0.3, 0.15, 0.05, 0.5))
Q = ((0.4, 0.3, 0.2, 0.1), (0.2, 0.3, 0.35, 0.15))


def round_of(drafts, number, *, later, repeated):
    """Return the round of a wrong program whose p counts the tested draft, or also the ``later`` ones."""
    accept = []
    for i, token in enumerate(drafts):
        counts = counts_of(4, drafts[:i], drafts[i:] if later else drafts[i : i + 1], repeated=repeated)
        accept.append(min(1.0, penalised(ROWS[i], counts, number)[token] / Q[i][token]))
    rows = ModelRows(ROWS[: len(drafts) + 1], Q[: len(drafts)])
    return GivenDrafts((), drafts, rows, None, tuple(accept), {}, None, True, {}, 1e-12)


ROUNDS = ((0, 0), (0, 1), (0, 2), (1, 1), (2, 0), (3, 2), (1,), (0,))
EARLY = ", as a penalty does that is applied too early"
LATER = "itself and those after it"


@pytest.mark.parametrize(
    ("number", "later", "repeated", "said"),
    [
        (0.5, True, False, f"{LATER} (0.5 times the odds){EARLY}"),
        (0.5, False, True, f"itself (0.5 times the odds){EARLY}"),
        (0.7, True, True, f"{LATER} (0.7 times the odds){EARLY}"),
        (1.2, False, False, "itself (1.2 times the odds), before the draft is accepted"),
    ],
)
def test_drafts_that_p_counts_too_early_are_named(number, later, repeated, said):
    rounds = [round_of(drafts, number, later=later, repeated=repeated) for drafts in ROUNDS]
    assert counted_drafts(rounds) == f"p in the test of a draft counts the draft {said}"
    other = rounds[0]._replace(accept=(rounds[0].accept[0] * 0.99, *rounds[0].accept[1:]))
    assert counted_drafts([*rounds, other]) == ""
    for nearly_one in (1.0, 1.001):
        assert counted_drafts([round_of(each, nearly_one, later=later, repeated=repeated) for each in ROUNDS]) == ""


def test_a_verifier_with_an_early_penalty_is_told_so():
    def verify(p, q, drafts):
        rng, drafts = np.random.default_rng(), [int(token) for token in drafts]
        for i, token in enumerate(drafts):
            row = penalised(p[i], np.bincount([token], minlength=len(p[i])), 0.5)
            if rng.random() * q[i][token] >= row[token]:
                left = np.maximum(row - q[i], 0)
                return [*drafts[:i], int(rng.choice(len(left), p=left / left.sum()))]
        return [*drafts, int(rng.choice(len(p[-1]), p=p[-1]))]

    with pytest.raises(SpeculationRefuted) as refuted:
        check_verifier(verify, checks=["law_is_target"], quick=True)
    said = "p in the test of a draft counts the draft itself (0.5 times the odds)"
    assert said in str(refuted.value).splitlines()[0]
