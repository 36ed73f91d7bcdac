"""Every call of NumPy and ``random`` that draws is answered with its law, refused by line, or draws nothing."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from specverify.intercept import distributions
from specverify.intercept.refusals import NeedsValue
from specverify.statistics import FitVerdict, perturbed
from test_support.intercept.drawing_calls import (
    LINES,
    PLANNED,
    cases,
    fits,
    given_other_bytes,
    law_of,
    lines_of,
    missing,
    really,
    unanswered_law,
)
from test_support.intercept.numpy_and_random import NUMPY, RANDOM

pytestmark = pytest.mark.usefixtures("modules_searched")


def of_kinds(*kinds):
    found = [(library, line, call) for library in (NUMPY, RANDOM) for line, call in cases(library, *kinds)]
    return pytest.mark.parametrize(("library", "line", "call"), found, ids=[call for _, _, call in found])


@pytest.mark.thorough(keep=4)
@of_kinds("answered")
def test_an_answered_call_has_the_law_that_the_library_draws_from(library, line, call):
    assert really(library, line, call)[0]
    assert fits(library, line, call, law_of(library, line, call)) is FitVerdict.FITS


@of_kinds("refused")
def test_a_refused_call_is_named_by_its_line_and_draws_in_fact(library, line, call):
    with pytest.raises(NeedsValue, match=rf"at {line.place}\b"):
        unanswered_law(library, line, call)
    assert really(library, line, call)[0]


@of_kinds("harmless")
def test_no_number_comes_of_a_harmless_call(library, line, call):
    differs, moves = really(library, line, call)
    assert not (differs and moves)
    assert unanswered_law(library, line, call)[1] == 0


@of_kinds("outside")
def test_a_replay_gets_other_bytes_of_the_operating_system(library, line, call):
    assert unanswered_law(library, line, call)[1] == 0
    assert len(given_other_bytes(library, line, call)) == 2


@pytest.mark.parametrize("library", [NUMPY, RANDOM], ids=["numpy", "random"])
def test_every_call_that_draws_stands_in_the_table_and_every_line_is_of_one(library):
    assert missing(library) == []


# The tables themselves are tested: what they would not notice, they could not promise.


def the_line(library, call):
    return next((line, found) for line, found in cases(library, "answered") if found == call)


def with_a_line(library, tmp_path, text):
    table = tmp_path / library.table.name
    table.write_text(library.table.read_text("utf-8") + text + "\n", "utf-8")
    return library._replace(table=table)


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    assert sum(1 for library in (NUMPY, RANDOM) for _ in cases(library, "answered")) < LINES / 2


@pytest.mark.parametrize(
    ("library", "owner", "name"),
    [(NUMPY, np.random, "np.random.noise"), (RANDOM, random.SystemRandom, "random.SystemRandom.noise")],
)
def test_a_call_that_a_later_version_brings_is_named(library, owner, name, monkeypatch):
    monkeypatch.setattr(owner, "noise", lambda: 0.5, raising=False)
    assert missing(library) == [f"{name} draws, or might, and stands in no line of {library.table.name}"]


def test_a_line_whose_call_is_gone_is_named(tmp_path):
    found = missing(with_a_line(NUMPY, tmp_path, "harmless  np.random.Generator.flip  rng.flip()"))
    assert len(found) == 1
    assert re.fullmatch(r"calls_of_numpy\.txt:\d+ is of np\.random\.Generator\.flip, which is gone", found[0])


@pytest.mark.parametrize("text", ["answered rng.random() < 0.3", "solved  {}.random  {}.random() < 0.3"])
def test_a_line_that_cannot_be_read_is_an_error(text, tmp_path):
    with pytest.raises(ValueError, match="expected a kind, a name and an expression"):
        lines_of(with_a_line(NUMPY, tmp_path, text))


@pytest.mark.parametrize("call", ["np.random.binomial(2, 0.25)", "rng.choice(3, p=P)"])
def test_another_law_does_not_fit(call):
    line, call = the_line(NUMPY, call)
    law = law_of(NUMPY, line, call)
    assert fits(NUMPY, line, call, perturbed(law, 2 * PLANNED)) is FitVerdict.REFUTED


def test_a_wrong_answer_does_not_fit(monkeypatch):
    right = distributions.binomial_pmf
    monkeypatch.setattr(distributions, "binomial_pmf", lambda trials, chance: right(trials, chance / 2))
    line, call = the_line(NUMPY, "rng.binomial(2, 0.25)")
    assert fits(NUMPY, line, call, law_of(NUMPY, line, call)) is FitVerdict.REFUTED


def test_what_draws_is_not_harmless_and_what_does_not_is_not_refused(tmp_path):
    library = with_a_line(NUMPY, tmp_path, "harmless  np.random.Generator.normal  rng.normal()\nrefused  x  P[0]")
    drawing, still = lines_of(library)[-2:]
    assert really(library, drawing, "rng.normal()") == (True, True)
    assert really(library, still, "P[0]") == (False, False)
    with pytest.raises(AssertionError, match="asks for nothing"):
        law_of(library, still, "P[0]")
