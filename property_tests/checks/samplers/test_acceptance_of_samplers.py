"""What a sampler says it accepted, judged where the law of it is known; and laws of what follows a forced prefix."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.report.runs.panels import panels_of
from specverify.testing import UnusableSubject, check_sampler
from test_support.samplers.black_boxes import LAW, P, right

Q = P[::-1]
ACCEPTED = float(np.minimum(P, Q).sum())
ONE_TOKEN = {(token,): float(mass) for token, mass in enumerate(P)}


def speculative(seed, n, accepts=1.0):
    """One draft from Q, accepted as it should be, or so many times as often with the residual that keeps the law."""
    rng = np.random.default_rng(seed)
    drafts, coins = rng.choice(4, n, p=Q), rng.random(n)
    accepted = coins < accepts * np.minimum(P / Q, 1)[drafts]
    residual = P - accepts * np.minimum(P, Q)
    drawn = rng.choice(4, n, p=residual / residual.sum())
    return {"tokens": np.where(accepted, drafts, drawn), "accepted": accepted.astype(int)}


def rejects_more(seed, n):
    return speculative(seed, n, accepts=0.7)


def verdicts_of(sample, **options):
    found = check_sampler(sample, **{"law": ONE_TOKEN, "tv": 0.1, "on_fail": None, **options})
    return {verdict.check: verdict for verdict in found}


def test_who_accepts_as_often_as_can_be_holds():
    found = verdicts_of(speculative, returns={"accepted": [1 - ACCEPTED, ACCEPTED]})
    assert {verdict.status for verdict in found.values()} == {Status.HOLDS}
    assert min(found) == "acceptance_fits_law"


@pytest.mark.parametrize("accepts", [0.0, 0.7])
def test_who_rejects_more_has_the_law_and_is_refuted_for_that_alone(accepts):
    found = verdicts_of(lambda seed, n: speculative(seed, n, accepts), returns={"accepted": [1 - ACCEPTED, ACCEPTED]})
    refuted = [check for check, verdict in found.items() if verdict.status is Status.REFUTED]
    assert refuted == ["acceptance_fits_law"]
    assert "the number of accepted drafts: it has not the law" in found["acceptance_fits_law"].statement
    courses = [found[check].figures["course"] for check in ("samples_fit_law", "acceptance_fits_law")]
    assert courses[0] != courses[1]
    assert courses[1][-2][1] > courses[0][-2][1]


def test_more_accepted_than_drafted_is_impossible():
    def two(seed, n):
        return {"tokens": speculative(seed, n)["tokens"], "accepted": [2] * n}

    found = verdicts_of(two, returns={"accepted": [1 - ACCEPTED, ACCEPTED]})["acceptance_fits_law"]
    assert found.status is Status.REFUTED
    assert "(2,) was emitted" in found.counterexample.then


def test_without_a_law_it_is_counted_with_a_confidence_sequence():
    found = verdicts_of(rejects_more)["samples_fit_law"]
    assert found.status is Status.HOLDS
    assert "at least one in 0." in found.figures["notes"][-1]
    at_least, exactly = [panel for panel in panels_of(found) if "ccept" in panel.title]
    assert at_least.rows[0].low < 0.7 * ACCEPTED < at_least.rows[0].high < ACCEPTED
    assert sum(row.seen for row in exactly.rows) == pytest.approx(1)


def test_who_tells_nothing_cannot_be_judged_by_it():
    found = verdicts_of(right, law=LAW, returns={"accepted": [0.5, 0.5]})
    assert [verdict.status for verdict in found.values()] == [Status.UNUSABLE]
    assert "does not report the number of accepted drafts" in found["samples_fit_law"].statement


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"accepted": [1]}, "expected tokens, and accepted if it counts them"),
        ({"tokens": [1] * 32, "accepted": [1]}, r"accepted \[1\], expected 32 whole numbers"),
        ({"tokens": [1] * 32, "accepted": [0.5] * 32}, "expected 32 whole numbers"),
        ({"tokens": [1] * 32, "accepted": [10**9] * 32}, "accepted 1000000000 drafts of one sequence"),
    ],
)
def test_what_is_no_count_is_refused(answer, said):
    with pytest.raises(UnusableSubject, match=said):
        check_sampler(lambda seed, n: answer, law=ONE_TOKEN)


VOCABULARY = 400
BASE = np.arange(1, VOCABULARY + 1) ** -1.0
AFTER = {prefix: np.roll(BASE / BASE.sum(), sum(prefix)) for prefix in ((), (3,), (3, 1))}


def following(seed, n, prefix):
    return np.random.default_rng([seed, *prefix]).choice(VOCABULARY, n, p=AFTER[prefix])


def forgets_the_last(seed, n, prefix):
    return np.random.default_rng([seed, *prefix]).choice(VOCABULARY, n, p=AFTER[prefix[:1]])


def test_laws_after_a_prefix_each_have_their_verdicts():
    options = {"law": AFTER, "tv": 0.2, "on_fail": None}
    held = check_sampler(following, **options)
    assert {verdict.status for verdict in held} == {Status.HOLDS}
    assert len(held) == 4 * len(AFTER)
    found = check_sampler(forgets_the_last, **options)
    wrong = {verdict.subject for verdict in found if verdict.status is Status.REFUTED}
    assert [name.partition(" after ")[2] for name in wrong] == ["(3, 1)"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"law_after": AFTER}, "check_sampler has no option 'law_after': write law=..., which takes laws by prefix"),
        ({"law": {3: BASE}}, "law has the key 3, expected prefixes, each a tuple of token ids"),
        ({"law": AFTER, "draft": BASE}, "draft is .*, expected it to be left out where law holds laws by prefix"),
        ({"law": AFTER, "returns": ("text",)}, "returns is .*, expected it to be left out where law holds laws by"),
    ],
)
def test_laws_after_what_is_no_prefix_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        check_sampler(following, **options)


def test_a_sampler_that_takes_no_prefix_is_refused():
    with pytest.raises(ValueError, match="with 3 arguments"):
        check_sampler(right, law=AFTER)
