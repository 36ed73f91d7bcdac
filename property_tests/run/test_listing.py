"""The list of subjects names all of them."""

from __future__ import annotations

from typer.testing import CliRunner

from property_tests.cli.test_application import run
from reference import ALGORITHMS
from specverify.checks import CHECKS
from specverify.cli import app
from specverify.engines import engine_subjects
from specverify.mutants import mutants
from specverify.run.listing import everything, numbers

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3


def test_the_list_names_everything():
    result = CliRunner().invoke(app, ["list"])
    assert (result.exit_code, len(result.output.splitlines())) == (HOLDS, 4)
    listed = "".join(run("list", kind).output for kind in ("algorithms", "subjects", "checks", "mutants"))
    names = [f"reference:{row.name}" for row in ALGORITHMS] + [f"mutant:{mutant.name}" for mutant in mutants()]
    for name in (*names, *engine_subjects(), *(check.name for check in CHECKS)):
        assert f"\n{name} " in f"\n{listed}"
    assert numbers() == {kind: len(rows) for kind, rows in everything().items()}
