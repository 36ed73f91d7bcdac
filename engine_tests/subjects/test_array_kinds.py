"""Which arrays a verifier is given, and whose error is shown: what its code uses and what the error says decide."""

from __future__ import annotations

import random
import subprocess
import sys
from functools import partial, wraps

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from specverify.base.verdict import Status
from specverify.mutants.numpy_verifiers import one_row
from specverify.subjects.array_kinds import MOST_EQUAL, arrays_of
from specverify.subjects.batch_call import attempt_of
from specverify.subjects.forms import ROW
from specverify.subjects.libraries import names_library
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_verifier
from test_support.verifiers import samplers, verifiers

FLOAT64 = {"p": np.full((2, 2), 0.5), "q": np.array([[0.25, 0.75]]), "draft_tokens": np.array([1])}
FLOAT32 = {name: array.astype(np.float32) if array.ndim == 2 else array for name, array in FLOAT64.items()}


def given_to(verify, given=FLOAT64):
    """Return the types of p and of the drafts."""
    p, _, drafts = arrays_of(verify, attempt_of(ROW))(given)
    return str(p.dtype), type(p).__module__, type(drafts).__module__


def local_import(p, q, draft_tokens):
    """Imports what it needs where it needs it."""
    import torch

    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) < p[i, token] / q[i, token]:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(samplers.owed(p[i], q[i]), 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def by_methods(p, q, draft_tokens):
    """Names torch nowhere: tensors have the methods it calls."""
    for i, token in enumerate(draft_tokens.tolist()):
        if not p[i].clone().uniform_()[0] < p[i, token] / q[i, token]:
            left = (p[i] - q[i]).clamp(min=0)
            return [*draft_tokens[:i].tolist(), int((left if left.any() else p[i]).multinomial(1))]
    return [*draft_tokens.tolist(), int(p[-1].multinomial(1))]


def asserting(p, q, draft_tokens):
    """Says in its own words what it takes."""
    assert isinstance(p, torch.Tensor)
    return local_import(p, q, draft_tokens)


def with_aliases(p, q, draft_tokens):
    """Knows torch by another name."""
    noise = -torch.empty_like(p[-1]).exponential_().log()
    accept = torch.rand(()) < (p[0] / q[0])[draft_tokens[0]]
    weights = p[1] if accept else samplers.owed(p[0], q[0])
    return [*draft_tokens[: int(accept)].tolist(), int((normalize(weights, p=1, dim=0).log() + noise).argmax())]


class Sampler:
    """An object that is called."""

    def __call__(self, p, q, draft_tokens):
        """Verify."""
        return local_import(p, q, draft_tokens)


@wraps(local_import)
def wrapped(*given):
    return local_import(*given)


TENSORS = {
    "local import": local_import,
    "methods": by_methods,
    "assertion": asserting,
    "aliases": with_aliases,
    "object": Sampler(),
    "partial": partial(local_import),
    "wrapped": wrapped,
    "race": verifiers.race,
}


@pytest.mark.parametrize("name", TENSORS)
def test_who_computes_with_tensors_is_given_tensors(name):
    assert given_to(TENSORS[name]) == ("torch.float64", "torch", "torch")
    assert given_to(TENSORS[name], FLOAT32) == ("torch.float32", "torch", "torch")


def numpy_with_coins_of_torch(p, q, draft_tokens):
    """Arrays of NumPy, a coin of torch."""
    if float(p[0, draft_tokens[0]] / q[0, draft_tokens[0]]) > torch.rand(()):
        return [*draft_tokens, *one_row(p[1:], q[1:], draft_tokens[1:])]
    left = np.maximum(p[0] - q[0], 0)
    return [int(np.random.default_rng().choice(len(left), p=left / left.sum() if left.any() else p[0]))]


@pytest.mark.parametrize("verify", [one_row, verifiers.in_numpy, numpy_with_coins_of_torch, samplers.standard_library])
def test_who_can_do_with_numpy_arrays_is_given_those_in_float64(verify):
    for given in (FLOAT64, FLOAT32):
        assert given_to(verify, given) == ("float64", "numpy", "numpy")


def test_float32_pmfs_are_pmfs_of_float64_for_who_cannot_take_them():
    rows = {**FLOAT32, "p": np.full((2, 3), 1 / 3, dtype=np.float32)}
    assert abs(rows["p"].astype(float).sum(-1) - 1).max() > 1e-9
    assert abs(arrays_of(one_row, attempt_of(ROW))(rows)[0].sum(-1) - 1).max() < 1e-15


def only_float32(p, q, draft_tokens):
    """Fills rows of the default dtype, which matmul does not mix with others."""
    ones = torch.ones(p.shape[1], p.shape[1])
    return local_import(p, q, draft_tokens) if (p @ ones).all() else []


def test_who_refuses_float64_is_given_float32():
    assert given_to(only_float32) == ("torch.float32", "torch", "torch")


def only_float64(p, q, draft_tokens):
    return local_import(p, q, draft_tokens) if (p @ torch.ones(p.shape[1], 1, dtype=torch.float64)).all() else []


def test_who_refuses_float32_is_given_float64_whatever_the_rows_are():
    assert given_to(only_float64, FLOAT32) == ("torch.float64", "torch", "torch")


# Whose error is shown


def numpy_error(p, q, draft_tokens):
    rng = np.random.default_rng()
    if not rng.random() * q[0, draft_tokens[0]] < p[0, draft_tokens[0]]:
        return [int(rng.choice(p.shape[1], p=p[0] - q[0]))]
    return one_row(p, q, draft_tokens)


def numpy_type_error(p, q, draft_tokens):
    rng = np.random.default_rng()
    if not rng.random() * q[0, draft_tokens[0]] < p[0, draft_tokens[0]]:
        return [np.maximum(p[0] - q[0])]
    return one_row(p, q, draft_tokens)


def numpy_index_error(p, q, draft_tokens):
    rng = np.random.default_rng()
    return one_row(p, q, draft_tokens) if rng.random() < p[0, len(p[0])] else [0]


def torch_error(p, q, draft_tokens):
    if torch.rand(()) < p[0].clone()[0]:
        raise ZeroDivisionError("of its own")
    return [int(torch.multinomial(p[0] * 0, 1))]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("verify", "said"),
    [
        (numpy_error, "ValueError: probabilities are not non-negative or contain NaN"),
        (numpy_type_error, "TypeError: maximum() takes from 2 to 3 positional arguments but 1 was given"),
        (numpy_index_error, "IndexError: index 2 is out of bounds"),
        (torch_error, "ZeroDivisionError: of its own"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_the_error_that_is_shown_is_the_verifiers_own(verify, said):
    verdict = check_verifier(verify, gammas=(1,), on_fail=None)[0]
    assert verdict.status is Status.UNUSABLE
    assert verdict.statement.startswith(said)
    assert "test_array_kinds.py:" in verdict.statement
    assert "Lazy" not in verdict.statement


def test_names_of_torch_are_found_in_the_code_and_not_in_its_module():
    assert names_library(local_import, "torch")
    assert names_library(with_aliases, "torch")
    assert names_library(Sampler.__call__, "torch") is False, "it names another function"
    assert not names_library(numpy_error, "torch"), "its module imports torch"
    assert not names_library(len, "torch")


ALONE = """
import sys
from specverify.testing import check_verifier


def verify(p, q, draft_tokens):
    import torch

    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) < p[i, token] / q[i, token]:
            left = torch.clamp(p[i] - q[i], min=0)
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left if left.any() else p[i], 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


assert "torch" not in sys.modules
print({str(verdict.status) for verdict in check_verifier(verify, gammas=(1,))})
"""


@pytest.mark.thorough
def test_a_verifier_that_imports_torch_inside_its_function_holds_where_nobody_has_imported_it():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "{'holds'}", done.stderr


def test_the_choice_is_made_once_for_a_verifier():
    convert = arrays_of(one_row, attempt_of(ROW))
    assert arrays_of(one_row, attempt_of(ROW)) is convert
    assert verifier_subject(one_row, "one_row").intercepted


def summing(p, q, draft_tokens):
    """Right for pmfs of float64, as NumPy's choice is: a list of float32 pmfs does not sum to 1 for it."""
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens.tolist()):
        if not rng.random() < float(p[i, token] / q[i, token]):
            row = samplers.owed(p[i], q[i]).tolist()
            return [*draft_tokens[:i].tolist(), int(rng.choice(len(row), p=np.array(row) / sum(row)))]
    return [*draft_tokens.tolist(), int(rng.choice(p.shape[1], p=p[-1].tolist()))]


@pytest.mark.thorough
def test_who_needs_sums_of_float64_holds():
    assert {verdict.status for verdict in check_verifier(summing, gammas=(1,))} == {Status.HOLDS}


@pytest.mark.thorough
def test_a_number_whose_bits_are_cut_out_is_named():
    def of_low_bits(p, q, draft_tokens):
        coin = (random.getrandbits(64) & (2**53 - 1)) / 2**53
        return [*draft_tokens, 0] if coin * q[0, draft_tokens[0]] < p[0, draft_tokens[0]] else [0]

    (found,) = check_verifier(of_low_bits, gammas=(1,), checks=["program_is_its_draws"], on_fail=None)
    assert found.status is Status.UNKNOWN
    assert "a number of 18446744073709551616 outcomes at test_array_kinds.py:" in found.statement
    assert "(such as its bits) is not followed: compare it or shift it" in found.statement
    assert "keeps something from call to call" not in found.statement


def coin_of_refused_draw(p, q, draft_tokens):
    """Is right, and draws its coin from a law that cannot be enumerated."""
    new = []
    for place, token in enumerate(int(token) for token in draft_tokens):
        ratio = float(p[place][token] / q[place][token])
        if ratio < 1 and torch._standard_gamma(torch.ones(())).neg().exp() >= ratio:
            left = torch.clamp(p[place] - q[place], min=0)
            return [*new, int(torch.multinomial(left if left.sum() > 0 else p[place], 1))]
        new.append(token)
    return [*new, int(torch.multinomial(p[len(draft_tokens)], 1))]


def test_a_refusal_in_every_attempt_does_not_choose_arrays_of_numpy():
    assert given_to(coin_of_refused_draw) == ("torch.float64", "torch", "torch")


def refused_and_of_numpy(p, q, draft_tokens):
    """Is refused in every attempt, and takes arrays of NumPy alone: that is seen where it is not refused."""
    if p[0][int(draft_tokens[0])] < q[0][int(draft_tokens[0])]:
        torch._standard_gamma(torch.ones(())).item()
    return [int(draft_tokens[0]), int(p[-1].astype(float).argmax())]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("verify", [coin_of_refused_draw, refused_and_of_numpy])
def test_a_refusal_wins_over_errors_about_arrays_of_a_kind_that_was_never_answered(verify):
    options = {"checks": ["law_is_target"], "gammas": (1,), "on_fail": None}
    for verdict in check_verifier(verify, **options):
        assert verdict.status is Status.UNKNOWN
        assert "_standard_gamma" in verdict.statement
        assert "test_array_kinds.py:" in verdict.statement


def test_an_error_that_is_not_about_arrays_is_its_own():
    def verify(p, q, draft_tokens):
        if p[0][int(draft_tokens[0])] < q[0][int(draft_tokens[0])]:
            torch._standard_gamma(torch.ones(())).item()
        raise IndexError("its own")

    found = check_verifier(verify, checks=["law_is_target"], gammas=(1,), on_fail=None)
    assert {verdict.status for verdict in found} == {Status.UNUSABLE}


def test_a_loop_that_ends_by_chance_is_called_with_few_equal_numbers():
    """With the same uniform every time, the loop never accepts a token of probability 0.75, 0.25 or 0."""
    drawn, rng = [], np.random.default_rng()

    def from_row(row):
        while True:
            token = int(rng.integers(len(row)))
            drawn.append(token)
            if rng.random() < row[token]:
                return token

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if rng.random() * q[i][token] >= p[i][token]:
                residual = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], from_row(residual / residual.sum())]
        return [*draft_tokens, from_row(p[-1])]

    subject = verifier_subject(verify, "a loop", (1,))
    assert len(subject.deep()) > 0
    assert len(drawn) < 3 * MOST_EQUAL
