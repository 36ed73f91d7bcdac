"""A last token that nothing reads is enumerated without a draw: coupled runs compare its law with the draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.checks.coupled_runs import coupled
from specverify.checks.fed_runs import fed
from specverify.checks.open_ends import with_open_ends
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic import deferred, numbers, rows
from specverify.intercept.torch.calls import outcome_of
from specverify.laws.enumeration import whole_run
from specverify.subjects.subject import InScenario
from specverify.subjects.verifier import verifier_subject

RUNS = 40


def in_numpy(p, q, draft_tokens):
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens.tolist()):
        if rng.random() * q[i, token] >= p[i, token]:
            rest = np.maximum(p[i] - q[i], 0)
            last = len(rest) - 1
            return [*draft_tokens[:i].tolist(), last - (last - rng.choice(len(rest), p=rest / rest.sum()))]
    return [*draft_tokens.tolist(), rng.choice(len(p[-1]), p=p[-1])]


def in_torch(p, q, draft_tokens):
    for i, token in enumerate(draft_tokens.tolist()):
        if torch.rand(()) * q[i, token] >= p[i, token]:
            left = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i], (left / torch.empty_like(left).exponential_()).argmax()]
    return [*draft_tokens, torch.multinomial(p[-1], 1)]


def decode(verify):
    """Return the program of a whole decode, and the same as its law is enumerated."""
    subject = verifier_subject(verify, "v", (2,))
    scenario = next(each for each in subject.scenarios if each.vocabulary == 4 and each.shape == "generic")
    here = InScenario(subject.variants[0], scenario, subject.rational)
    run = whole_run(here.decoder, here.prompt)
    return run, with_open_ends(run)


@pytest.fixture(autouse=True)
def _outcome_numbers(monkeypatch):
    """Give verifiers of NumPy outcome numbers, as in a process without torch."""
    monkeypatch.setattr("specverify.intercept.numpy.may_stand", lambda: True)


@pytest.mark.parametrize("verify", [in_numpy, in_torch], ids=lambda verify: verify.__name__)
def test_right_rules_end_as_the_program_does(verify):
    run, enumerated = decode(verify)
    assert coupled(run, RUNS, 0, enumerated) == (RUNS, "", (), "")
    found = fed(run, 8, 0, enumerated)
    assert (found.parted, found.unrecorded) == ("", "")
    assert found.runs


def masses_are_reversed(patch):
    real = deferred.Categorical.outcomes

    def outcomes(self):
        law = real(self)
        return [(value, mass) for (value, _), (_, mass) in zip(law, law[::-1], strict=True)]

    patch.setattr(deferred.Categorical, "outcomes", outcomes)


def an_outcome_is_left_out(patch):
    real = deferred.Categorical.outcomes
    patch.setattr(deferred.Categorical, "outcomes", lambda self: real(self)[1:])


def winners_are_alike(patch):
    patch.setattr(rows, "law_of_winner", lambda row, **_: [(place, 1 / len(row)) for place in range(len(row))])


def a_number_is_subtracted_the_other_way(patch):
    def subtracted(self, other):
        return deferred.number_in(self) - other

    patch.setattr(deferred.OutcomeNumber, "__rsub__", subtracted)


FAULTS = {
    "masses are reversed": (masses_are_reversed, in_torch),
    "an outcome is left out": (an_outcome_is_left_out, in_numpy),
    "winners are alike": (winners_are_alike, in_torch),
    "a number is subtracted the other way": (a_number_is_subtracted_the_other_way, in_numpy),
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_wrong_law_of_an_open_end_parts_the_runs(name):
    plant, verify = FAULTS[name]
    run, enumerated = decode(verify)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert coupled(run, 4 * RUNS, 0, enumerated).parted


def test_a_wrong_law_of_an_unread_outcome_of_an_engine_parts_the_runs():
    def program(draws):
        with answered_everywhere(draws):
            return outcome_of(torch.multinomial(torch.tensor([0.5, 0.2, 0.3]), 1))

    assert not coupled(program, RUNS).parted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "_outcomes", lambda element: [(value, 1 / 3) for value in range(3)])
        assert "the last token is" in coupled(program, RUNS).parted
