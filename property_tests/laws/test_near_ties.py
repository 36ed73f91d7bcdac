"""Where greedy texts part, near-ties are told from bugs: in exact laws, in samples, and on the page of the run."""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, checks_named
from specverify.laws.near_ties import NO_TOKEN, Logits, parting
from specverify.report.data import as_data
from specverify.report.page.document import page
from specverify.report.runs.of_verdicts import said_of_verdicts
from specverify.run.catalogue import find_subject
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.observer import Observer
from specverify.testing import UnusableSubject, check_engine, check_sampler

VOCABULARY, WIDTH, NEW, GAMMA = 64, 128, 12, 4
STEP = 2.0**-5
"""Of the numbers that sums are kept in: one is half of it off, a row of two sums one."""
ROUNDING = math.tanh(STEP)
"""Of a probability of such a row: two of its logits are twice the step further apart at most."""


@cache
def weights(seed):
    return np.random.default_rng(seed).standard_normal((VOCABULARY, WIDTH)) / 4


@cache
def products(seed, new):
    """Return what the logits after new tokens are the sums of, ``[vocabulary, width]``."""
    return weights(seed) * np.random.default_rng([seed, *new]).standard_normal(WIDTH)


def exact_row(seed, new):
    """Return logits ``[vocabulary]`` in float64."""
    return products(seed, new).sum(axis=1)


def row(seed, new, sums):
    """Return the same in low precision: a pass of one token has one sum, one of more rows two."""
    parts = np.array_split(products(seed, new), sums, axis=1)
    return sum(np.round(part.sum(axis=1) / STEP) * STEP for part in parts)


@cache
def plain(seed):
    new = ()
    while len(new) < NEW:
        new = (*new, int(row(seed, new, 1).argmax()))
    return new


@cache
def speculative(seed, *, late=0, missed=2, told=lambda new, drafts: None):
    """Greedy speculation, whose drafts are right but for one; ``late``: rows of a pass are read so much too late."""
    new = ()
    while len(new) < NEW:
        drafts = ()
        for place in range(GAMMA):
            likely = int(exact_row(seed, new + drafts).argmax())
            drafts = (*drafts, (likely + (place == missed)) % VOCABULARY)
        told(new, drafts)
        rows = [int(row(seed, new + drafts[:place], 2).argmax()) for place in range(GAMMA + 1)]
        for place in range(GAMMA + 1):
            new = (*new, rows[min(place + late, GAMMA)])
            if place == GAMMA or new[-1] != drafts[place]:
                break
    return new[:NEW]


late = partial(speculative, late=1)
TIE = 23
"""A seed at which the two passes prefer different tokens."""


def judged(seed, speculates):
    calls = partial(speculates, seed), partial(plain, seed)
    found = check_engine(*calls, logits=partial(exact_row, seed), rounding=ROUNDING, on_fail=None)
    return {verdict.check: verdict for verdict in found}


@pytest.mark.thorough
def test_passes_of_low_precision_part_at_a_near_tie():
    assert plain(TIE) != speculative(TIE)
    found = judged(TIE, speculative)
    assert Status.REFUTED not in {verdict.status for verdict in found.values()}
    for check in ("law_is_target", "support_at_boundary_draws"):
        assert found[check].status is Status.UNKNOWN
        assert "a near-tie" in found[check].statement
    (parted,) = found["law_is_target"].figures["partings"]
    assert parted["near_tie"]
    assert 0 < parted["gap"] <= parted["bound"] == pytest.approx(2 * STEP)


@pytest.mark.thorough
@pytest.mark.parametrize("tells", [True, False])
def test_an_engine_that_is_looked_into_is_not_refuted_for_what_it_accepts(tells):
    prompt = (VOCABULARY,)
    observer = Observer(prompt)

    def forward(new, drafts):
        observer.forward(len(new), (*(prompt + new)[-1:], *drafts))

    calls = (lambda: speculative.__wrapped__(TIE, missed=None, told=forward)), partial(plain, TIE)
    options = {"logits": partial(exact_row, TIE), "rounding": ROUNDING} if tells else {}
    found = check_engine(*calls, observe=observer, checks=["acceptance_law"], on_fail=None, **options)
    assert found[-1].status is (Status.UNKNOWN if tells else Status.REFUTED)


@pytest.mark.thorough
def test_a_row_read_too_late_is_a_bug():
    found = judged(0, late)
    assert found["law_is_target"].status is Status.REFUTED
    (parted,) = found["law_is_target"].figures["partings"]
    assert not parted["near_tie"]
    assert parted["gap"] > 10 * parted["bound"]
    assert "no tie, their logits are" in found["law_is_target"].counterexample.because[-1]


@pytest.mark.thorough
def test_without_logits_nothing_is_excused():
    found = {item.check: item for item in check_engine(partial(speculative, TIE), partial(plain, TIE), on_fail=None)}
    assert found["law_is_target"].status is Status.REFUTED
    assert "partings" not in found["law_is_target"].figures


def sampled(seed, speculates, **options):
    def sample(_, n):
        return [speculates(seed)] * n

    options |= {"logits": partial(exact_row, seed), "rounding": ROUNDING, "on_fail": None}
    return {verdict.check: verdict for verdict in check_sampler(sample, **options)}


@pytest.mark.parametrize("of", ["law", "reference"])
def test_samples_are_judged_alike(of):
    seed = TIE
    text = plain(seed)
    other = {"law": {text: 1.0} if of == "law" else lambda _, n: [text] * n}
    found = sampled(seed, speculative, **other)
    assert Status.REFUTED not in {verdict.status for verdict in found.values()}
    assert found[f"samples_fit_{of}"].figures["partings"][0]["near_tie"]
    found = sampled(seed, late, **other)
    assert found[f"samples_fit_{of}"].status is Status.REFUTED
    assert not found[f"samples_fit_{of}"].figures["partings"][0]["near_tie"]
    assert "no tie" in found[f"samples_fit_{of}"].counterexample.because[-1]


def test_who_draws_where_it_should_be_greedy_is_wrong_however_near_the_tokens_are():
    seed = TIE
    texts = [plain(seed), speculative(seed)]

    def sample(seed, n):
        return [texts[place] for place in np.random.default_rng(seed).integers(2, size=n)]

    options = {"logits": partial(exact_row, seed), "rounding": ROUNDING, "on_fail": None}
    found = check_sampler(sample, law=lambda _, n: texts[:1] * n, **options)[0]
    assert found.status is Status.REFUTED
    assert found.figures["partings"][0]["bound"] == 0


def test_an_exact_check_of_a_greedy_bug_says_where_it_parts():
    checklist = Checklist(checks_named(["greedy_is_argmax"]), Conditions())
    (found,) = verify_subject(find_subject("mutant:inverted-ratio"), checklist)
    assert found.status is Status.REFUTED
    (parted,) = found.figures["partings"]
    assert (parted["gap"], parted["near_tie"]) == (math.inf, False)
    assert parted["setting"].startswith("gamma=2, ")


@pytest.mark.thorough
def test_the_page_shows_a_tie_as_a_tie_and_a_bug_as_a_bug():
    verdicts = [*judged(TIE, speculative).values(), *judged(0, late).values()]
    text = page(said_of_verdicts(as_data(verdicts, 1e-6, 0)))
    assert text.count("Near-ties: where greedy texts part</h4>") == 2
    assert (text.count("≈ near-tie"), text.count("✘ bug")) == (1, 1)


def test_an_end_is_no_tie_unless_it_is_a_token_of_the_row():
    known = Logits(lambda new: [0.0, 1.0], 0.1)
    assert parting("", (1, 1), (1,), known).gap == math.inf
    told = Logits(lambda new: {1: 0.0, NO_TOKEN: -0.1}, 0.1)
    found = parting("", (1, 1), (1,), told)
    assert (found.position, found.speculative, found.near_tie) == (1, NO_TOKEN, True)
    assert parting("", (1,), (0,), told).gap == pytest.approx(0.1)  # no likelier than what is told last
    assert parting("", (1,), (0,), Logits(lambda new: None, 0.1)) is None


@pytest.mark.parametrize("row", [[0.0], [], [math.nan, 0.0, 0.0], [math.inf, 0.0], [[0.0, 1.0, 2.0]], {}])
def test_logits_that_are_none_are_named(row):
    with pytest.raises(ValueError, match="expected a row"):
        parting("", (1,), (2,), Logits(lambda new: row, 0.1))
    with pytest.raises(UnusableSubject, match="the logits cannot be had: ValueError"):
        check_sampler(lambda _, n: [2] * n, law={(1,): 1.0}, logits=lambda new: row)


def test_what_is_no_token_of_the_row_is_no_tie():
    known = Logits(lambda new: [0.0, 0.0], 0.1)
    assert parting("", (1,), (2,), known).gap == parting("", (1,), (-3,), known).gap == math.inf
    assert parting("", (1,), (1.5,), known) is None


def test_arguments_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="rounding is 1, expected a relative error of at least 0 and below 1"):
        check_engine(list, list, logits=exact_row, rounding=1)
    with pytest.raises(ValueError, match="logits"):
        check_engine(list, list, logits=3)
    with pytest.raises(ValueError, match="expected the call without speculation, where logits are given"):
        check_engine(lambda: [1], {(1,): 1.0}, logits=lambda new: [0.0])
