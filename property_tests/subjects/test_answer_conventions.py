"""Verifiers that return a tuple, in the conventions of public code: right ones hold, wrong ones are refuted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.subjects.answer_conventions import with_rows
from specverify.subjects.forms import BATCHED, LOGITS, ROW
from specverify.testing import SpeculationRefuted, SpeculationUndecided, check_verifier, hard_calls
from test_support.verifiers.in_scenarios import verdict
from test_support.verifiers.one_round import decided, drawn, residual, unchanged_p

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def tokens_and_count(replace):
    def verify(draft_tokens, draft_probs, target_probs):
        accepted, token = decided(target_probs, draft_probs, draft_tokens, replace)
        return [*accepted, token], len(accepted)

    return verify


def accepted_and_token(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return accepted, token

    return verify


def padded_and_token(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return np.array([*accepted, *[-1] * (len(draft_tokens) - len(accepted))]), np.array([token])

    return verify


def count_and_token(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return len(accepted), token, {"drafted": len(draft_tokens)}

    return verify


def token_and_mask(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return torch.tensor(token), torch.arange(len(draft_tokens)) < len(accepted)

    return verify


def batched_counts_and_tokens(replace):
    def verify(p, q, draft_tokens, lengths):
        ends = [
            decided(p[row, : count + 1], q[row, :count], draft_tokens[row, :count], replace)
            for row, count in enumerate(lengths.tolist())
        ]
        return np.array([len(accepted) for accepted, _ in ends]), np.array([token for _, token in ends])

    return verify


def buffer_and_count(replace):
    """All places behind the emitted tokens hold the last one again."""

    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return np.array([*accepted, *[token] * (len(p) - len(accepted))]), len(accepted) + 1

    return verify


def batched_buffers_and_counts(replace):
    """The places behind the emitted tokens hold the drafts of the row; the count is that of accepted drafts."""

    def verify(p, q, draft_tokens, lengths):
        buffers, counts = np.zeros(p.shape[:2], dtype=int), []
        for row, count in enumerate(lengths.tolist()):
            accepted, token = decided(p[row, : count + 1], q[row, :count], draft_tokens[row, :count], replace)
            buffers[row, :count] = draft_tokens[row, :count]
            buffers[row, len(accepted)] = token
            counts.append(len(accepted))
        return buffers, np.array(counts)

    return verify


class Round(NamedTuple):
    accepted: list[int]
    correction: int


@dataclass
class Counted:
    kept: int
    bonus_or_recovered: int


def named_tuple(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return Round(accepted, token)

    return verify


def data_class(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return Counted(kept=len(accepted), bonus_or_recovered=token)

    return verify


def dictionary(replace):
    def verify(p, q, draft_tokens):
        accepted, token = decided(p, q, draft_tokens, replace)
        return {"n_accepted": len(accepted), "next_token": token}

    return verify


CONVENTIONS = [
    tokens_and_count,
    buffer_and_count,
    accepted_and_token,
    padded_and_token,
    count_and_token,
    token_and_mask,
]
BATCHES = [batched_counts_and_tokens, batched_buffers_and_counts]

NAMED = [named_tuple, data_class, dictionary]
SCENARIOS = 4
"""About as many scenarios of a verifier are examined: each has all ends of a round of two drafts."""


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("convention", [*CONVENTIONS, *NAMED, *BATCHES], ids=lambda one: one.__name__)
def test_the_law_is_that_of_all_emitted_tokens(convention):
    assert verdict(convention(residual), "law_is_target", SCENARIOS, form=None).status is Status.HOLDS
    wrong = verdict(convention(unchanged_p), "law_is_target", SCENARIOS, form=None)
    assert wrong.status is Status.REFUTED
    assert "replaced by a draw from p" in wrong.counterexample.fault


@pytest.mark.thorough
def test_single_calls_have_the_order_and_the_convention_too():
    cases = [call for call in hard_calls(vocabulary=64, gamma=2) if call.shape in {"at edges", "peaked"}]
    check_verifier(numbered(residual), cases=cases)
    with pytest.raises(SpeculationRefuted, match="the rule gives"):
        check_verifier(numbered(unchanged_p), cases=cases)


def numbered(replace):
    def verify(draft_tokens, draft_probs, target_probs):
        accepted, token = decided(target_probs, draft_probs, draft_tokens, replace)
        return len(accepted), token

    return verify


def of_float32(replace):
    """Return a verifier of tensors that raises if p is float64, and returns (number accepted, next token)."""

    def verify(p, q, draft_tokens):
        torch.mm(p, torch.ones(p.shape[1], 1))
        for i, token in enumerate(draft_tokens.tolist()):
            if torch.rand(()) >= p[i, token] / q[i, token]:
                row = replace(p[i], q[i])
                return i, int(torch.multinomial(row if row.sum() > 0 else p[i], 1))
        return len(draft_tokens), int(torch.multinomial(p[-1], 1))

    return verify


def test_the_search_gets_arrays_of_the_kind_that_the_verifier_takes():
    check_verifier(of_float32(lambda p, q: (p - q).clamp(min=0)), checks=["law_is_target"], quick=True)
    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(of_float32(unchanged_p), checks=["law_is_target"], quick=True)


def accepts_all(p, q, draft_tokens):
    return len(draft_tokens), drawn(p[-1])


def accepts_none(p, q, draft_tokens):
    return [], drawn(p[0])


@pytest.mark.parametrize(("verify", "emitted"), [(accepts_all, [4, 5]), (accepts_none, [2])])
def test_the_convention_of_a_wrong_verifier_is_found(verify, emitted):
    def named(p, q, draft_tokens):
        return verify(p, q, draft_tokens)[0], verify(p, q, draft_tokens)[1]

    rows = np.eye(6)
    assert with_rows(named, ROW)(rows[[2, 5]], rows[[4]], np.array([4])) == emitted


def one_row(p, q, draft_tokens):
    return [drawn(p[0])]


def of_two_rows(p, q, draft_tokens):
    return [drawn(p[0])], [drawn(p[0])]


def of_numbers_alone(p, q, draft_tokens):
    return drawn(p[0]), drawn(p[0])


def raises(p, q, draft_tokens):
    if len(p):
        message = "it fails"
        raise ValueError(message)
    return [], 0


@pytest.mark.parametrize(("counts", "emitted"), [({}, [5, 4]), ({2: -1}, [5, 4, 3]), ({2: 4}, [5, 4, 3])])
def test_an_array_is_cut_at_its_count_unless_that_is_out_of_range(counts, emitted):
    def verify(p, q, draft_tokens):
        number = next((i for i, token in enumerate(draft_tokens) if p[i, token] < 1), len(draft_tokens))
        tokens = np.array([*draft_tokens[:number], p[number].argmax(), 3, 3])[: len(p)]
        return tokens, counts.get(draft_tokens[1], number + 1)

    rows = np.eye(8)[[5, 4, 6]], np.eye(8)[[5, 2]]
    assert list(with_rows(verify, ROW)(*rows, np.array([5, 2]))) == emitted


@pytest.mark.parametrize("form", [ROW, LOGITS])
@pytest.mark.parametrize("verify", [of_two_rows, of_numbers_alone])
def test_a_tuple_of_another_convention_is_unchanged(verify, form):
    rows = np.eye(6)
    answer = with_rows(verify, form)(rows[[2, 5]], rows[[4]], np.array([4]))
    assert answer == verify(rows[[2, 5]], rows[[4]], np.array([4]))


class ReturnsRow:
    """An object whose call returns one row, and another method a tuple."""

    def __call__(self, p, q, draft_tokens):
        return one_row(p, q, draft_tokens)

    def sizes(self):
        return 1, 2


@pytest.mark.parametrize("verify", [one_row, partial(one_row), ReturnsRow()])
def test_a_verifier_that_returns_no_tuple_is_unchanged(verify):
    assert with_rows(verify, BATCHED) is verify


class Module(torch.nn.Module):
    """A module that returns the accepted drafts and the next token."""

    def forward(self, p, q, draft_tokens):
        accepted, token = decided(p.numpy(), q.numpy(), draft_tokens.tolist(), residual)
        return torch.tensor(accepted), token


@pytest.mark.parametrize("verify", [Module(), partial(Module())])
def test_a_module_or_a_partial_function_may_return_a_tuple(verify):
    rows = np.eye(6)
    arguments = map(torch.tensor, (rows[[2, 5]], rows[[4]], np.array([4])))
    assert with_rows(verify, ROW)(*arguments) == [2]


def test_an_error_in_the_search_for_a_convention_is_that_of_the_verifier():
    with pytest.raises(ValueError, match="it fails"):
        with_rows(raises, ROW)(np.eye(6), np.eye(6), np.array([4]))


def draws_forever(p, q, draft_tokens):
    accepted = 0
    while p[0][accepted] < 2:
        accepted = 0
    return [], accepted


@pytest.mark.thorough
def test_an_endless_loop_is_found_in_the_search_too():
    """A subject is made without a call of the verifier, because the watch of loops begins with the checks."""
    with pytest.raises(SpeculationUndecided, match="loops without drawing"):
        check_verifier(draws_forever, checks=["law_is_target"], quick=True)
