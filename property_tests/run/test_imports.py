"""What an import brings in: the reference stands on NumPy alone, the instrument leaves deep learning out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "scipy", "hypothesis", "z3", "pytest"}


def ran(program):
    """Return a fresh interpreter that ran ``program`` to its end, with what it wrote."""
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)


def loaded_by(module):
    """Return the top-level modules that a fresh interpreter holds after importing ``module``."""
    program = f"import sys, {module}; print(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    return set(ran(program).stdout.split())


@pytest.mark.parametrize(
    ("module", "forbidden"),
    [
        ("reference", HEAVY | {"specverify", "typer", "rich", "joblib"}),
        ("specverify", HEAVY),
        ("specverify.laws.enumeration", HEAVY),
        ("specverify.cli", {"torch", "transformers", "z3", "pytest", "hypothesis", "dask"}),
    ],
)
def test_an_import_leaves_heavy_libraries_out(module, forbidden):
    loaded = loaded_by(module)
    assert module.partition(".")[0] in loaded
    assert loaded & forbidden == set()


@pytest.mark.parametrize("arguments", [["--help"], ["list"]], ids=" ".join)
def test_what_only_prints_imports_nothing_that_decodes(arguments):
    """Neither NumPy nor the algorithms nor the checks: names and numbers are all that is printed."""
    program = (
        "import sys\nfrom specverify.cli import main\n"
        f"sys.argv[1:] = {arguments}\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)"
    )
    loaded = set(ran(program).stderr.split())
    assert "specverify.cli.word_commands" in loaded
    assert loaded & {"numpy", "reference", "specverify.checks", "specverify.mutants", "specverify.intercept"} == set()


@pytest.mark.parametrize("module", ["specverify.laws.model_strategies", "specverify.testing.strategies"])
def test_strategies_without_hypothesis_name_the_extra(module):
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        f"try:\n    import {module}\n"
        "except ImportError as error:\n    print(error)"
    )
    assert ran(program).stdout == 'strategies need Hypothesis: pip install "specverify-suite[strategies]"\n'
