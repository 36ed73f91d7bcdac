"""Every check function runs in a project that has a reference, laws and vectors of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHECKS = """
import numpy as np
import laws
import reference
import vectors
from specverify import reference as algorithms
from specverify.reference import accept_probability, flip, residual
from specverify.testing import (
    Made, calibrate, check_cache, check_decoder, check_drafter, check_engine, check_kernel, check_sampler,
    check_verifier,
)

RNG = np.random.default_rng()
ONE = {"checks": ["law_is_target"], "quick": True, "on_fail": None}


def decode(draws, target, draft, tokens):
    p, q = target(tokens), draft(tokens)
    token = draws.categorical(q, ("draft",))
    if flip(draws, accept_probability(p, q, token), ("accept",)):
        return (token,)
    return (draws.categorical(residual(p, q), ("residual",)),)


def verify(p, q, draft_tokens):
    token = int(draft_tokens[0])
    if RNG.random() < p[0][token] / q[0][token]:
        return [token]
    left = np.maximum(p[0] - q[0], 0)
    return [int(RNG.choice(len(left), p=left / left.sum()))]


def kernel(p, q, draft_tokens, accept_uniforms, final_uniform):
    out = np.full((len(p), draft_tokens.shape[1] + 1), -1)
    for row in range(len(p)):
        weights = p[row, 0].astype(np.float64)
        sums = weights.cumsum()
        last = int(np.searchsorted(sums, final_uniform[row] * sums[-1], side="right"))
        out[row, 0] = min(last, int(np.flatnonzero(weights)[-1]))
    return out


def propose(tokens, gamma):
    q = np.full((gamma, 2), 0.5)
    return [int(RNG.choice(2, p=row)) for row in q], q


class Cache(list):
    def append(self, tokens):
        self.extend(tokens)

    def crop(self, length):
        del self[length:]


def test_all():
    assert (reference.MINE, laws.MINE, vectors.MINE) == (1, 2, 3)
    assert algorithms.Claim.LOSSLESS
    verdicts = [
        *check_verifier(verify, gammas=(1,), **ONE),
        *check_decoder(decode, **ONE),
        *check_engine(lambda: [0], lambda: [0], **ONE),
        *check_engine(lambda scenario: lambda prompt: [0] * scenario.horizon, **ONE),
        *check_kernel(kernel, vocabularies=(5,), rows=2**11, gammas=(1,), **ONE),
        *check_drafter(propose, prompts=[(0,)], gammas=(1,), quick=True, on_fail=None),
        *check_cache(Cache, capacity=16, quick=True, on_fail=None),
        *check_sampler(lambda seed, n: [[0]] * n, law={(0,): 1.0}, most_samples=200, on_fail=None),
    ]
    assert {verdict.status for verdict in verdicts} <= {"holds", "refuted", "unknown"}, verdicts
    assert len(verdicts) >= 8
    assert calibrate(lambda sample: 0.0, [0.5, 0.5], samples=10, runs=10, runs_of_wrong=10, threshold=1).alarms == 0


if __name__ == "__main__":
    test_all()
    print("all of them")
"""


def run(folder, *command, imported=ROOT):
    """Run Python in a folder that comes first on the path."""
    path = os.pathsep.join((str(folder), str(imported)))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def project(tmp_path):
    """Return what makes a folder with a test of every check function, and modules of these names."""

    def make(*names):
        for number, name in enumerate(("reference", "laws", "vectors"), 1):
            file = tmp_path / (f"{name}.py" if name in names else f"{name}/__init__.py")
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"MINE = {number}\n", "utf-8")
        (tmp_path / "test_mine.py").write_text(CHECKS, "utf-8")
        return tmp_path

    return make


@pytest.mark.thorough
def test_a_script_beside_files_of_these_names(project):
    done = run(project("reference", "laws"), "test_mine.py")
    assert (done.returncode, done.stdout) == (0, "all of them\n"), done.stderr[-2000:]


@pytest.mark.thorough
def test_pytest_beside_packages_of_these_names(project):
    done = run(project(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("first", ["reference", "specverify.reference"])
def test_both_names_give_the_same_objects_where_nobody_else_has_the_plain_one(first, tmp_path):
    program = f"""
        import {first}
        import reference, specverify.reference as ours
        from reference.pmf import check_pmf
        import specverify.reference.pmf
        assert reference.Claim is ours.Claim and check_pmf is ours.check_pmf
        assert reference.pmf is specverify.reference.pmf
        print(reference is ours)
    """
    done = run(tmp_path, "-c", textwrap.dedent(program))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]
