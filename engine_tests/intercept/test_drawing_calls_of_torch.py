"""Every call of torch that draws is answered with its law, refused by line, or draws nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import distributions, nn
from torch.nn import functional

from specverify.base.verdict import Status
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.torch import calls as torch_calls
from specverify.intercept.torch import functions as torch_functions
from specverify.intercept.torch import generators
from specverify.statistics import FitVerdict
from specverify.testing import check_verifier
from test_support.intercept.drawing_calls import LINES, cases, fits, law_of, missing, really, unanswered_law
from test_support.intercept.torch_under_test import TORCH
from tools.pages.interception_page import page

pytestmark = pytest.mark.usefixtures("modules_searched")


def of_kind(kind):
    found = list(cases(TORCH, kind))
    return pytest.mark.parametrize(("line", "call"), found, ids=[call for _, call in found])


@pytest.mark.thorough(keep=9)
@of_kind("answered")
def test_an_answered_call_has_the_law_that_torch_draws_from(line, call):
    assert really(TORCH, line, call) == (True, True)
    assert fits(TORCH, line, call, law_of(TORCH, line, call)) is FitVerdict.FITS


@of_kind("many")
def test_a_call_of_many_outcomes_is_answered_one_by_one(line, call):
    assert really(TORCH, line, call)[0]
    assert sum(law_of(TORCH, line, call, runs=4).values()) < 0.1


@of_kind("refused")
def test_a_refused_call_is_named_by_its_line_and_draws_in_fact(line, call):
    with pytest.raises(NeedsValue, match=rf"{line.place}\b"):
        unanswered_law(TORCH, line, call)
    assert really(TORCH, line, call) == (True, True)


@pytest.mark.thorough(keep=3)
@of_kind("harmless")
def test_no_number_comes_of_a_harmless_call(line, call):
    assert really(TORCH, line, call) != (True, True)
    assert unanswered_law(TORCH, line, call)[1] == 0


def test_every_call_that_draws_stands_in_the_table_and_every_line_is_of_one():
    assert missing(TORCH) == []


def test_all_samples_together_keep_to_their_share_of_false_alarms():
    assert sum(1 for _ in cases(TORCH, "answered")) < LINES / 2


# The table itself is tested: what it would not notice, it could not promise.


@pytest.fixture
def new_operation():
    """An operation that draws, as a later version of torch may bring it."""
    library = torch.library.Library("aten", "FRAGMENT")
    library.define("noise(Tensor x) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))
    generators.drawing_names.cache_clear()
    yield "torch.ops.aten.noise"
    library._destroy()
    generators.drawing_names.cache_clear()


def test_an_operation_that_a_later_version_brings_is_named(new_operation):
    assert missing(TORCH) == [f"{new_operation} draws, or might, and stands in no line of calls_of_torch.txt"]


@pytest.mark.parametrize(
    ("owner", "text", "name"),
    [
        (functional, "def noisy(input): return input + torch.rand_like(input)", "torch.nn.functional.noisy"),
        (functional, "def noisy(input): return dropout1d(input)", "torch.nn.functional.noisy"),
        (functional, "def noisy(input): return [dropout(row) for row in input]", "torch.nn.functional.noisy"),
        (nn.init, "def noisy(tensor): return _no_grad_normal_(tensor, 0, 1)", "torch.nn.init.noisy"),
        (nn, "class noisy(Module):\n  def forward(self, x): return functional.dropout(x)", "torch.nn.noisy"),
        (distributions, "class noisy(Distribution): pass", "torch.distributions.noisy"),
    ],
)
def test_a_function_or_class_that_a_later_version_brings_is_named(owner, text, name, monkeypatch):
    monkeypatch.setitem(vars(owner), "noisy", None)
    exec(compile(text, owner.__file__, "exec"), vars(owner))
    assert missing(TORCH) == [f"{name} draws, or might, and stands in no line of calls_of_torch.txt"]


def test_what_is_written_in_python_and_draws_nothing_is_not_listed(monkeypatch):
    monkeypatch.setitem(vars(functional), "quiet", None)
    exec(compile("def quiet(input): return softmax(input)", functional.__file__, "exec"), vars(functional))
    assert missing(TORCH) == []


def test_a_wrong_answer_does_not_fit(monkeypatch):
    right = torch_functions.binomial_pmf
    monkeypatch.setattr(torch_functions, "binomial_pmf", lambda trials, chance: right(trials, chance / 2))
    line, call = next(case for case in cases(TORCH, "answered") if case[0].name == "torch.binomial")
    assert fits(TORCH, line, call, law_of(TORCH, line, call)) is FitVerdict.REFUTED


def test_a_draw_that_nobody_answered_would_be_noticed(monkeypatch):
    """With dropout looked after by nobody, it is the state of the generator that tells."""
    monkeypatch.setattr(torch_calls, "may_draw", lambda function: False)
    line, call = next(case for case in cases(TORCH, "refused") if case[0].name == "torch.dropout")
    with pytest.raises(NeedsValue, match="random numbers are drawn by an operation of torch that is not answered"):
        unanswered_law(TORCH, line, call)


@pytest.mark.thorough
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page is written with Python 3.11: random grows")
def test_the_page_is_what_the_tables_say():
    assert (Path(__file__).parents[2] / "docs" / "interception.md").read_text("utf-8") == page()


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("make", [torch.tensor, torch.as_tensor])
def test_a_list_of_drawn_tensors_becomes_a_tensor(make):
    def verify(p, q, draft_tokens):
        return make([torch.multinomial(torch.as_tensor(p)[0], 1)]).reshape(-1)

    (verdict,) = check_verifier(verify, checks=["law_is_target"], quick=True)
    assert verdict.status is Status.HOLDS
