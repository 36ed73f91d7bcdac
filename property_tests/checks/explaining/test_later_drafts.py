"""An acceptance test that depends on the drafts after the tested one is named, and only then."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks.explaining import round_readings
from specverify.checks.explaining.later_drafts import dependence_on_later_drafts
from specverify.checks.explaining.readings import Models, Reading, ReadRound
from specverify.testing import SpeculationRefuted, check_engine

P = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.6, 0.3))
Q = ((0.5, 0.3, 0.2), (0.2, 0.4, 0.4), (0.3, 0.4, 0.3))
FAR = ((0.7, 0.2, 0.1), (0.1, 0.2, 0.7), (0.6, 0.1, 0.3))
LEAK = np.array(((0.3, 0.1, 0.05), (0.05, 0.2, 0.15), (0.1, 0.0, 0.2)))
RNG = np.random.default_rng()


def drawn(weights):
    """Return a token drawn in proportion to ``weights``."""
    return int(RNG.choice(3, p=np.asarray(weights) / np.sum(weights)))


def fast(scale):
    """Decode two tokens with two drafts; ``scale(later)`` multiplies p of a draft, by the drafts after it."""
    drafts = [drawn(Q[0])]
    drafts.append(drawn(Q[drafts[0]]))
    last = 0
    for place, draft in enumerate(drafts):
        p = np.array(P[last])
        p[draft] *= scale(drafts[place + 1 :])
        p /= p.sum()
        if RNG.random() * Q[last][draft] >= p[draft]:
            new = [*drafts[:place], drawn(np.maximum(p - Q[last], 0))]
            return new if len(new) == 2 else [*new, drawn(P[new[-1]])]
        last = draft
    return drafts


def leaking(tokens):
    """Decode as by p, but each row of a round depends on the draft after it: no number of any row is right."""
    text = [0]
    while len(text) <= tokens:
        drafts = []
        for _ in range(min(2, tokens - len(text))):
            drafts.append(drawn(FAR[[*text, *drafts][-1]]))
        seen = [*text[-1:], *drafts]
        rows = [np.array(P[last]) + LEAK[following] for last, following in zip(seen, [*drafts, 1, 1][1:], strict=True)]
        for place, draft in enumerate(drafts):
            p, q = rows[place] / rows[place].sum(), np.array(FAR[seen[place]])
            if RNG.random() * q[draft] >= p[draft]:
                text += [*drafts[:place], drawn(np.maximum(p - q, 0))]
                break
        else:
            text += [*drafts, drawn(rows[-1])]
    return text[1:]


def sampled(tokens):
    """Decode with p alone."""
    text = [0]
    for _ in range(tokens):
        text.append(drawn(P[text[-1]]))
    return text[1:]


def plain():
    """Decode two tokens."""
    first = drawn(P[0])
    return [first, drawn(P[first])]


def test_a_test_that_depends_on_the_next_draft_is_named():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: fast(lambda later: 1 - 0.1 * later[0] if later else 1), plain, checks=["law_is_target"])
    said = str(raised.value).partition("\n")[0]
    assert "the test of draft 1 (0) depends on the draft after it: u < 0.4 if the next draft is 0, u < 0.367 if" in said
    assert "; expected u < 0.4 = min(1, p/q) (test_later_drafts.py:" in said


def test_a_test_that_is_wrong_for_every_next_draft_is_not_named_so():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: fast(lambda later: 0.9), plain, checks=["law_is_target"])
    assert "depends on the draft after it" not in str(raised.value)


def test_a_test_that_depends_on_the_next_draft_is_named_where_no_row_is_right(monkeypatch):
    """Most paths have a reading only if a reading may cost more than usual."""
    monkeypatch.setattr(round_readings, "WORST", 0.0)  # as for paths with more draws
    with pytest.raises(SpeculationRefuted, match=r"the test of draft 1 \(\d\) depends on the draft after it: u < "):
        check_engine(lambda: leaking(3), lambda: sampled(3), checks=["law_is_target"])


@pytest.mark.parametrize(("probabilities", "told"), [((0.8, 0.9), True), ((1.0, 0.9), False), ((0.0, 0.9), False)])
def test_a_draft_without_a_test_shows_no_dependence(probabilities, told):
    """The draw of a surely accepted draft may be the test of the draft after it."""
    rows = (FAR[0], FAR[1])
    models = Models(lambda text: np.array(P[text[-1]]), None, (0,), 2)
    read = [
        (Reading((), "", (), 0.0, (ReadRound((0,), (1, later), rows, (probability,)),)), models)
        for later, probability in enumerate(probabilities)
    ]
    assert ("depends on the draft after it" in dependence_on_later_drafts(read)) == told
