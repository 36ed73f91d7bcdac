"""Coupled runs of single calls in large-vocabulary mode: right rules end as the program does, wrong ones part."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from specverify.checks import Conditions, check_named
from specverify.checks.coupled_runs import coupled
from specverify.checks.fed_runs import fed
from specverify.intercept.symbolic import large, vectors
from specverify.intercept.torch import large_tensors
from specverify.run.verify import Checklist, run_check
from specverify.subjects.given_calls import calls_subject
from specverify.subjects.subject import emitted_by
from specverify.testing import hard_calls
from test_support.verifiers.samplers import by_lookup, gumbel, legacy, lookup, numpy_loop, race_of_all, standard_library
from test_support.verifiers.verifiers_at_large import RIGHT, with_draw

SIZE, GAMMA, RUNS = 800, 4, 8


def crossing(weights):
    return (torch.rand(()) * weights.sum() < weights.cumsum(0)).int().argmax(dim=-1, keepdim=True)


def searched(weights):
    return torch.searchsorted(weights.cumsum(0), torch.rand(1) * weights.sum())


def counted(weights):
    return (weights.cumsum(0) <= torch.rand(()) * weights.sum()).sum(dim=-1, keepdim=True)


def clamped(weights):
    return torch.multinomial(weights, 1).clamp(max=SIZE // 2)


def gathered(weights):
    return torch.arange(SIZE).gather(-1, torch.multinomial(weights, 1))


def compared(weights):
    token = torch.multinomial(weights, 1)
    return torch.where(token > SIZE // 2, torch.where(token > SIZE // 4, token, token * 0), token * 0 + 1)


def cut(weights):
    return torch.multinomial(weights, 1).to(torch.int8).to(torch.int64).clamp(min=0)


def masked(weights):
    scores = weights / torch.empty_like(weights).exponential_()
    return scores.masked_fill(torch.arange(SIZE) % 2 == 0, -1.0).argmax(-1, keepdim=True)


VERIFIERS = {
    **RIGHT,
    "choice of NumPy": numpy_loop(),
    "look-up read": by_lookup(lookup),
    "gumbel": numpy_loop(draw=gumbel),
    "race of NumPy": numpy_loop(draw=race_of_all),
    "legacy": legacy,
    "random.choices": standard_library,
    "first True": with_draw(crossing),
    "look-up": with_draw(searched),
    "count": with_draw(counted),
    "clamped": with_draw(clamped),
    "gathered": with_draw(gathered),
    "compared": with_draw(compared),
    "cut to a dtype": with_draw(cut),
    "masked": with_draw(masked),
}
NOT_FED = {"gumbel", "masked", "race", "race by blocks", "race of NumPy", "race, looked at", "sum by blocks"}
"""Verifiers that draw noise vectors."""


def opened(name, shape=0, dtype="float32"):
    return calls_subject(VERIFIERS[name], "it", [hard_calls(SIZE, GAMMA, dtype)[shape]]).calls[0].open()


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", sorted(VERIFIERS))
def test_right_rules_end_as_the_program_does(name):
    assert coupled(partial(emitted_by, opened(name)), RUNS) == (RUNS, "", (), "")


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", sorted(VERIFIERS.keys() - NOT_FED))
def test_the_program_ends_as_its_path(name):
    assert fed(partial(emitted_by, opened(name)), RUNS, few=0) == (RUNS, "", False, 0, "")


def bounds_are_moved(patch):
    patch.setattr(large, "back", lambda step, bounds: vectors.back(step, bounds) * 0.9)


def the_last_is_the_first(patch):
    patch.setattr(large, "_firsts", lambda ranks, *, above: np.concatenate([[0], np.argsort(ranks, kind="stable")]))


def true_is_false(patch):
    real = large.Crossing.totals
    patch.setattr(large.Crossing, "totals", lambda self: real(self.turned()))


def another_law(law):
    def plant(patch):
        real = large.DrawAmongMany.__init__

        def begin(self, draws, site, draw, law_of, *args, **more):
            real(self, draws, site, draw, lambda: law(np.asarray(law_of())), *args, **more)

        patch.setattr(large.DrawAmongMany, "__init__", begin)

    return plant


def a_function_is_that_of_the_next(patch):
    real = large.Wide.mapped
    patch.setattr(large.Wide, "mapped", lambda self, of: real(self, lambda values: np.roll(np.asarray(of(values)), 1)))


def a_quotient_is_a_product(patch):
    patch.setattr(vectors, "reciprocal", lambda value: value)


def elements_are_in_another_order(patch):
    real = vectors.Many.taken
    patch.setattr(vectors.Many, "taken", lambda self, take: real(self, lambda array: take(np.flip(array))))


def bounds_are_one_place_off(patch):
    real = large_tensors._crossed

    def crossed(rule, value, bounds):
        return real(lambda numbers, rows, shape: rule(numbers, np.roll(rows, 1, axis=-1), shape), value, bounds)

    patch.setattr(large_tensors, "_crossed", crossed)


def a_table_is_read_beside(patch):
    real = large_tensors._looked_up
    patch.setattr(large_tensors, "_looked_up", lambda row, place: real(torch.roll(row, 1), place))


def a_question_is_turned(patch):
    real = large.Wide.holds
    patch.setattr(large.Wide, "holds", lambda self, question: not real(self, question))


def what_an_outcome_answered_is_forgotten(patch):
    real = large.DrawAmongMany.among

    def among(self, outcomes):
        left = self.masses()
        answer = real(self, outcomes)
        self._left = left
        return answer

    patch.setattr(large.DrawAmongMany, "among", among)


def an_outcome_keeps_its_dtype(patch):
    def converted(function, tensor, *_, **kwargs):
        return _mapped(torch.Tensor.clone, tensor)  # noqa: F821 - a name of the module whose code it replaces

    patch.setattr(large_tensors._outcome_converted, "__code__", converted.__code__)


def the_others_are_masked(patch):
    def filled(function, tensor, mask, value):
        return _chosen(function, ~mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)  # noqa: F821

    patch.setattr(large_tensors._filled, "__code__", filled.__code__)


REVERSED, EQUAL = another_law(lambda masses: masses[::-1]), another_law(lambda masses: masses * 0 + 1 / len(masses))
FAULTS = {
    "bounds are moved": (bounds_are_moved, "look-up"),
    "the last True is the first": (the_last_is_the_first, "first True"),
    "True is counted as False": (true_is_false, "count"),
    "masses of a look-up in another order": (REVERSED, "random.choices"),
    "equal masses of outcomes": (EQUAL, "clamped"),
    "possible winners are others": (REVERSED, "race of NumPy"),
    "a function is that of the next outcome": (a_function_is_that_of_the_next, "sorted"),
    "a quotient is a product": (a_quotient_is_a_product, "race"),
    "elements are in another order": (elements_are_in_another_order, "race"),
    "bounds are one place off": (bounds_are_one_place_off, "first True"),
    "a table is read beside": (a_table_is_read_beside, "gathered"),
    "a question is turned": (a_question_is_turned, "compared"),
    "what an outcome answered is forgotten": (what_an_outcome_answered_is_forgotten, "compared"),
    "an outcome keeps its dtype": (an_outcome_keeps_its_dtype, "cut to a dtype"),
    "the others are masked": (the_others_are_masked, "masked"),
}
FOUND_BY_FED_RUNS = ("bounds are moved", "bounds are one place off", "a table is read beside", "a question is turned",
                     "an outcome keeps its dtype", "the last True is the first")  # fmt: skip


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_wrong_rule_of_vectors_parts_the_runs(name):
    plant, verifier = FAULTS[name]
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert any(coupled(partial(emitted_by, opened(verifier, shape)), 2 * RUNS).parted for shape in (0, 3))


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", FOUND_BY_FED_RUNS)
def test_a_wrong_rule_of_vectors_leads_to_other_paths(name):
    plant, verifier = FAULTS[name]
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert any(fed(partial(emitted_by, opened(verifier, shape)), 2 * RUNS, few=0).parted for shape in (0, 3))


def test_noise_vectors_are_not_fed():
    assert fed(partial(emitted_by, opened("race")), 2).unrecorded == "noise vectors are not fed"


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("dtype", "number"), [("float32", 122), ("bfloat16", 120)])
def test_the_check_couples_calls_at_their_own_size(dtype, number):
    subject = calls_subject(VERIFIERS["race"], "it", [hard_calls(SIZE, GAMMA, dtype)[0]])
    found = run_check(subject, check_named("program_is_its_draws"), Checklist((), Conditions(), 600))
    assert found.figures["coupled_runs"] + found.figures["coupled_ties"] == number
