"""The cause of a wrong law is named for the ids of a real tokenizer too, with numbers in place of the ids."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks.explaining import engine_counterexamples
from specverify.checks.explaining.numbered_tokens import NumberedTokens, numbered_tokens
from specverify.laws.draws import Decision
from specverify.laws.paths import Path, Undecided
from specverify.testing import SpeculationRefuted, check_engine

P, Q = ({0: (0.2, 0.5, 0.3), 1: (0.6, 0.1, 0.3), 2: (0.25, 0.25, 0.5)}, {
    0: (0.5, 0.2, 0.3), 1: (0.1, 0.6, 0.3), 2: (0.5, 0.25, 0.25)})  # fmt: skip
RNG = np.random.default_rng()


def row(model, token, ids, size):
    """The pmf after ``token``: over the three ids, or over a vocabulary of ``size`` tokens."""
    if not size:
        return np.array(model[ids.index(token)])
    result = np.zeros(size)
    result[list(ids)] = model[ids.index(token)]
    return result


def drawn(pmf, ids, size):
    index = int(RNG.choice(len(pmf), p=pmf))
    return index if size else ids[index]


def plain(ids, size):
    new = [ids[0]]
    for _ in range(2):
        new.append(drawn(row(P, new[-1], ids, size), ids, size))
    return new[1:]


def speculative(ids, size):
    """Replaces a rejected draft by a draw from p."""
    new = [ids[0]]
    while len(new) < 3:
        p, q = (row(model, new[-1], ids, size) for model in (P, Q))
        draft = drawn(q, ids, size)
        place = draft if size else ids.index(draft)
        new.append(draft if RNG.random() < p[place] / q[place] else drawn(p, ids, size))
    return new[1:]


@pytest.mark.parametrize(
    ("ids", "size"),
    [((0, 1, 2), 0), ((151_000, 151_001, 151_002), 0), ((17, 901, 29_871), 0), ((17, 90, 298), 300)],
)
def test_the_cause_is_named_whatever_the_ids_are(ids, size):
    with pytest.raises(SpeculationRefuted) as refuted:
        check_engine(lambda: speculative(ids, size), lambda: plain(ids, size), checks=["law_is_target"])
    said = str(refuted.value)
    assert "a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0))" in said
    legend = f"token 0 stands for id {ids[0]}, 1 for id {ids[1]}, 2 for id {ids[2]}"
    assert (legend in said) == (ids[-1] > 63)


def test_more_ids_than_are_numbered_are_told_by_the_first_wrong_token(monkeypatch):
    ids, read = tuple(range(151_000, 151_100)), []
    monkeypatch.setattr(engine_counterexamples, "engine_rounds", lambda *paths: read.append(paths))

    def one(first):
        pmf = np.full(100, 0.01)
        pmf[:2] = first, 0.02 - first
        return [ids[int(RNG.choice(100, p=pmf))]]

    with pytest.raises(SpeculationRefuted, match=r"new token 1 is 151000 with probability 0\.015, expected 0\.01"):
        check_engine(lambda: one(0.015), lambda: one(0.01), checks=["law_is_target"])
    assert not read


def test_draws_over_the_whole_vocabulary_are_numbered_and_others_are_left():
    wide = [0.0] * 1000
    wide[7], wide[500] = 0.25, 0.75
    decisions = (Decision(("multinomial",), tuple(wide), 7), Decision(("coin",), (0.5, 0.5), 1))
    path = Path(Undecided((((900,), 0.5), ((500,), 0.5))), 0.125, (7, 1), decisions)
    numbered = numbered_tokens([{(900,): 0.5, (500,): 0.5}], [path])
    assert numbered == NumberedTokens((7, 500, 900))
    assert numbered.path(path) == Path(
        Undecided((((2,), 0.5), ((1,), 0.5))),
        0.125,
        (0, 1),
        (Decision(("multinomial",), (0.25, 0.75, 0.0), 0), Decision(("coin",), (0.5, 0.5), 1)),
    )
    assert numbered.law({(900,): 0.5, (500,): 0.5}) == {(2,): 0.5, (1,): 0.5}


@pytest.mark.parametrize("text", [(5, 63), ("a",), ((70,), (71,)), (-100, 70)])
def test_small_ids_and_other_outcomes_have_no_numbers(text):
    assert numbered_tokens([{text: 1}], []) is None
