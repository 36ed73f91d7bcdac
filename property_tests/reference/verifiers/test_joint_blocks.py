"""The joint chances of blocks, prefix by prefix: what is asked under which name, and where a chance is at its ends."""

from __future__ import annotations

import numpy as np
import pytest

from reference import Draft, Verified
from reference.verifiers.joint_blocks import Prefix, behind, joint_blocks, stays
from test_support.laws.rational import P, Q, pmf
from test_support.reference.narrated import BEHIND, coin, played

FIRST, BELOW = pmf(".1", ".5", ".4"), pmf(0, ".5", ".5")
BLOCKS = Draft((0, 1, 1, 2), (-1, 0, -1, 2), (Q, BELOW, Q, BELOW))
"""Two blocks, (0, 1) and (1, 2)."""
ROWS = {(): FIRST, **BEHIND, (1, 2): pmf(".5", ".25", ".25")}


def part(tokens):
    """Return a prefix of a block with what q and p make of it, by hand."""
    q, p = (1, 1) if not tokens else (Q[tokens[0]], FIRST[tokens[0]])
    if len(tokens) == 2:
        q, p = q * BELOW[tokens[1]], p * ROWS[tokens[:1]][tokens[1]]
    return Prefix(tokens, q, p, (Q, BELOW, None)[len(tokens)], ROWS[tokens])


def accept(number, tokens):
    return ("accept", number, len(tokens)), coin(stays(part(tokens), 2))


@pytest.mark.parametrize(
    ("outcomes", "asked", "last", "verified"),
    [
        ((0, 0, 2), [(0, (0,)), (0, (0, 1))], ("bonus", (0, 1)), Verified((0, 1, 2), 2)),
        ((1, 1, 0, 0, 2), [(0, (0,)), (0, (0, 1)), (1, (1,)), (1, (1, 2))], ("bonus", (1, 2)), Verified((1, 2, 2), 2)),
        ((0, 1, 1, 0), [(0, (0,)), (0, (0, 1)), (1, (1, 2))], ("residual", (0,)), Verified((0, 0), 1)),
        ((1, 1, 1, 1, 2), [(0, (0,)), (0, (0, 1)), (1, (1,)), (1, (1, 2))], ("residual", ()), Verified((2,), 0)),
    ],
    ids=["the first", "the second", "a part of the first", "none"],
)
def test_blocks_are_verified_decision_by_decision(monkeypatch, outcomes, asked, last, verified):
    monkeypatch.setitem(BEHIND, (1, 2), ROWS[1, 2])
    done = played(FIRST, joint_blocks, BLOCKS, outcomes)
    site, kept = last
    assert list(done.decisions) == [
        *(accept(number, tokens) for number, tokens in asked),
        ((site,), behind(part(kept), 2).tolist()),
    ]
    assert done.verified == verified


def test_what_nothing_is_owed_behind_goes_on_with_p():
    """With p = q each token may stay for certain, so nothing of p is left over."""
    assert behind(Prefix((), 1, 1, P, P), 2).tolist() == P.tolist()


def test_a_chance_is_none_above_one_in_floats():
    """B m(r) / m(S) with S = B = .2 is 1 and a spacing of the floats."""
    row = np.array([0.2, 0.8])
    assert 0.2 * (1 - (1 - 1) ** 1) / (1 - (1 - 0.2) ** 1) > 1
    assert stays(Prefix((0,), row[0], row[0], None, row), 1) == 1
