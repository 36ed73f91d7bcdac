"""``check_kernel`` on kernels of torch: tensors in and out, samples drawn and counted there, a hundred million rows."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.laws.grid import chain_grid_law, grid_tables
from specverify.subjects.kernel import kernel_of
from specverify.subjects.kernel_designs import design_of, drafts_of, sampled_situation
from specverify.subjects.kernel_samples import Calls, counted
from specverify.testing import KernelConvention, check_kernel
from test_support.kernels import kernels_of_torch as kernels

COARSE = dict(tv=2e-2, vocabularies=(129,), largest_call=2**15)
SEED = KernelConvention(uniforms="seed", library="torch")
PLANTED = {
    "shared_stream": "rows_are_independent",
    "reseeded": "calls_are_independent",
    "coin_again": "coins_and_last_draw_are_independent",
    "one_coin": "positions_are_independent",
}


def source(name):
    return KernelConvention(uniforms="own" if name in {"its_own", "reseeded"} else "seed")


@pytest.mark.thorough
def test_a_right_kernel_of_explicit_uniforms_holds():
    verdicts = check_kernel(kernels.given, vocabularies=(129, 1025), rows=2**14)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_pmfs_may_be_of_another_type(dtype):
    """Of sixteen bits, they are quarters and eighths, which it holds; the uniforms are float32 then."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        assert p.dtype == q.dtype == getattr(torch, dtype)
        assert accept_uniforms.dtype == (torch.float64 if dtype == "float64" else torch.float32)
        return kernels.decide(p.double(), q.double(), drafts, accept_uniforms, final_uniforms)

    verdicts = check_kernel(kernel, KernelConvention(dtype=dtype), vocabularies=(129,), rows=2**14)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


def test_grid_laws_take_tensors():
    """What a kernel answers on its device is brought to NumPy."""

    def kernel(p, q, draft, uniforms):
        rows, gamma = len(uniforms), len(draft)
        tensors = (torch.tensor(p).expand(rows, -1, -1), torch.tensor(q).expand(rows, -1, -1))
        drafts, u = torch.tensor(draft).expand(rows, gamma), torch.tensor(uniforms)
        return kernels.decide(*tensors, drafts, u[:, :gamma], u[:, gamma])

    law = chain_grid_law(kernel, grid_tables(3, 4, 1), (0,), 2)
    assert law.missing == 0
    assert sum(law.probabilities.values()) == 1


@pytest.mark.parametrize("name", ["keyed", "its_own"])
def test_right_generators_hold(name):
    verdicts = check_kernel(getattr(kernels, name), source(name), **COARSE)
    assert {verdict.status for verdict in verdicts} == {Status.HOLDS}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_generators_are_refuted_by_the_check_that_names_them(name):
    verdicts = check_kernel(getattr(kernels, name), source(name), on_fail=None, **COARSE)
    assert next(verdict for verdict in verdicts if verdict.check == PLANTED[name]).status is Status.REFUTED


def of_numpy(p, q, drafts, accept_uniforms, final_uniforms):
    return np.full((len(drafts), drafts.shape[1] + 1), -1)


def of_torch(p, q, drafts, accept_uniforms, final_uniforms):
    return torch.full((len(drafts), drafts.shape[1] + 1), -1)


def of_neither(p, q, drafts, accept_uniforms, final_uniforms):
    return drafts


def by_another(p, q, drafts, accept_uniforms, final_uniforms):
    return np.asarray(of_torch(p, q, drafts, accept_uniforms, final_uniforms))


@pytest.mark.parametrize(
    ("kernel", "given"),
    [(of_numpy, np.ndarray), (of_torch, torch.Tensor), (of_neither, torch.Tensor), (by_another, torch.Tensor)],
)
def test_a_kernel_beside_both_libraries_is_given_arrays_of_its_own(kernel, given):
    seen = []

    @functools.wraps(kernel)
    def looking(*arrays):
        seen.append({type(each) for each in arrays})
        return kernel(*arrays)

    check_kernel(looking, checks=["answers_are_rounds"], gammas=(1,), vocabularies=(), on_fail=None)
    assert seen[0] == {given}


def test_counts_are_of_the_tensors_device_and_type():
    """As many rows as asked for, of every draft in its share, counted where they are."""
    kernel = kernel_of(kernels.keyed, "keyed", SEED)
    design = design_of(*drafts_of(sampled_situation(2, 0)), 3, -1)
    table = counted(kernel, design, 100_001, 0, Calls(2**12))
    assert table.sum() == 100_001
    assert np.allclose(table.sum(axis=1) / table.sum(), design.shares, atol=0.01)


@pytest.mark.thorough
def test_a_hundred_million_rows():
    """A total variation of 1/2200 is seen; a bias of one part in 64 of every coin is refuted with fewer."""

    def biased(p, q, drafts, seed, offset):
        u = kernels.numbers(drafts, seed, offset)
        return kernels.decide(p, q, drafts, u[:, :-1] * (1 + 2.0**-6), u[:, -1])

    options = dict(convention=SEED, vocabularies=(), gammas=(2,), timeout=3000)
    right = {verdict.check: verdict for verdict in check_kernel(kernels.keyed, tv=4.5e-4, **options)}
    law = right["samples_fit_law"].figures
    assert law["samples"] >= 10**8
    assert law["tv_detectable"] <= 4.5e-4
    wrong = check_kernel(biased, tv=2e-3, on_fail=None, **options)
    assert next(verdict for verdict in wrong if verdict.check == "samples_fit_law").status is Status.REFUTED
