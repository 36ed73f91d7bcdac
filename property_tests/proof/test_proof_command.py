"""Proofs about every rule at once, what stays open, proofs that are kept, and the command."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.cli import app

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify import proof
from specverify.proof import search
from specverify.proof.linear import GRID

PROVED, REFUTED, UNKNOWN = proof.ProofStatus
ROOT = Path(__file__).parents[2]


# Every rule at once


@pytest.mark.parametrize(("what", "vocabulary"), [("optimal", 2), ("optimal", 4), ("price", 3), ("scalar-q", 3)])
def test_no_rule_at_all_does_better(what, vocabulary):
    found = proof.prove(proof.COUPLING, vocabulary, 1, what)
    assert found.status is PROVED, found.statement


def test_with_two_tokens_the_scalar_is_all_of_q_and_a_rule_beats_sample_and_match():
    """The rule that was found is looked through with fractions: lossless on the grid, and better at the q named."""
    found = proof.prove(proof.COUPLING, 2, 1, "scalar-q")
    assert found.status is REFUTED
    rule = {
        tuple(map(int, name[1:].split("_"))): Fraction(value) for name, value in found.figures.items() if name[0] == "K"
    }
    p, q = found.model.target[0,], found.model.draft[0,]
    for levels in product(range(GRID + 1), repeat=2):
        if sum(levels) == GRID:
            out = [
                sum(Fraction(levels[d], GRID) * rule[d, levels[d], v] for d in range(2) if levels[d]) for v in range(2)
            ]
            assert out == list(p)
    levels = [int(mass * GRID) for mass in q]
    kept = sum(q[d] * rule[d, levels[d], d] for d in range(2) if q[d])
    assert kept > sum(mass * other for mass, other in zip(p, q, strict=True))


# What stays open


def test_without_time_nothing_is_claimed():
    found = proof.prove("speculative-sampling", 3, 2, timeout=0.05)
    assert found.status is UNKNOWN
    assert found.statement.startswith("open: ")
    assert "time limit" in found.statement
    assert proof.prove("coupling", 3, 1, "scalar-q", timeout=0).status is UNKNOWN


@pytest.mark.parametrize("name", ["edge-cloud-two-phase", "edge-cloud-scalar-q", "mutant:hidden-randomness"])
def test_what_cannot_run_on_unknown_numbers_is_open_and_says_why(name):
    found = proof.prove(name, 2, 1)
    assert found.status is UNKNOWN
    assert "cannot run on unknown probabilities" in found.statement


def test_a_length_rule_that_is_missing_at_some_options_is_not_replaced_at_those():
    assert proof.prove("jacobi", 2, 1, "stopping").status is REFUTED
    found = proof.prove("jacobi", 2, 1, "stopping", options={"rule": "fixed point"})
    assert found.status is UNKNOWN
    assert "jacobi has no length rule to replace" in found.statement


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing", 2, 1), "no algorithm 'nothing'"),
        (("nasd", 1, 1), "at least 2 tokens"),
        (("nasd", 2, -1), "gamma >= 0"),
        (("nasd", 2, 1, "truth"), "no statement 'truth'"),
        (("nasd", 2, 1, "declared"), "declares no biased law"),
        (("coupling", 2, 1), "no statement 'law', expected one of residual, optimal, price, scalar-q$"),
        (("rsd", 2, 1, "stopping"), "no length rule"),
        (("draft-and-verify", 2, 1, "stopping"), "no length rule"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        proof.prove(*arguments)


# Proofs that are kept


def test_a_cache_that_cannot_be_used_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"^the cache '.*file/folder' cannot be used: not a directory$"):
        proof.prove("coupling", 2, 1, "residual", cache=tmp_path / "file" / "folder")
    proof.prove("coupling", 2, 1, "residual", cache=tmp_path)
    (entry,) = tmp_path.glob("*.json")
    entry.write_text("{", "utf-8")
    with pytest.raises(ValueError, match=f"^the proof '.*{entry.name}' of the cache cannot be read, expected it whole"):
        proof.prove("coupling", 2, 1, "residual", cache=tmp_path)


def test_a_proof_is_kept_until_a_source_changes(tmp_path, monkeypatch):
    first = proof.prove("resample-from-target", 2, 1, cache=tmp_path)
    monkeypatch.setattr(proof, "ProofSearch", None)
    assert proof.prove("resample-from-target", 2, 1, cache=tmp_path) == first
    source = Path(search.__file__).read_bytes()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda file: source if file.name == "coupling.py" else read(file))
    with pytest.raises(TypeError):
        proof.prove("resample-from-target", 2, 1, cache=tmp_path)


# The command line


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("speculative-sampling",), 0, "proved: law of speculative-sampling, V = 2, gamma = 1"),
        (("resample-from-target",), 1, "after (0,): p = (1/2, 1/2)   q = (0, 1)"),
        (("speculative-sampling", "--what", "dropping"), 1, "drop the last of (0, 1): yes"),
        (("speculative-sampling", "--timeout", "0.001"), 3, "unknown: law"),
    ],
)
def test_the_command_prints_the_proof_and_its_exit_status_says_it(arguments, status, said):
    result = CliRunner().invoke(app, ["prove", *arguments])
    assert result.exit_code == status
    assert said in result.output


def test_the_command_refuses_in_one_sentence():
    result = CliRunner().invoke(app, ["prove", "nothing"])
    assert result.exit_code == 2
    assert result.stderr.startswith("specverify: there is no algorithm 'nothing'")


def test_without_z3_the_extra_is_named():
    program = (
        "import sys; sys.modules['z3'] = None\n"
        "try:\n    import specverify.proof\n"
        "except ImportError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == 'specverify.proof needs z3: pip install "specverify-suite[proof]"\n'
