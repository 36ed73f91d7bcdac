"""``list`` and ``explain``, and a report on standard output."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reference import ALGORITHMS
from specverify.checks import CHECKS
from specverify.cli import app
from specverify.intercept.refusals import REASONS
from specverify.mutants import CATEGORIES
from specverify.promises import PROMISED
from specverify.run import verify
from specverify.run.explain import explained, glossary
from specverify.run.verify import verify_subject
from specverify.testing.samplers import OF_A_LAW, OF_A_REFERENCE

DOCS = Path(__file__).parents[2] / "docs"


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_word_finds_what_has_it():
    assert run("list", "checks", "argmax").output.startswith("greedy_is_argmax ")
    assert len(run("list", "algorithms", "egag").output.splitlines()) < 10
    assert "list mutants names" in run("list").output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("list", "chekcs"),
            "the kind is 'chekcs', expected one of 'algorithms', 'subjects', 'checks', 'mutants', did",
        ),
        (("list", "checks", "egagg"), "nothing that is listed has 'egagg' in it"),
        (("list", "algorithms", "egagg"), "nothing that is listed has 'egagg' in it, did you mean egag?"),
        (("explain", "resdual"), "there is nothing to say of 'resdual', did you mean residual?"),
        (("explain", "egagg"), "there is nothing to say of 'egagg', did you mean egag?"),
        (("explain", "law_is_taget"), "did you mean law_is_target?"),
    ],
)
def test_a_word_that_is_none_leads_to_the_nearest(arguments, sentence):
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())


def test_every_check_class_algorithm_and_word_is_explained():
    for check in CHECKS:
        assert explained(check.name).startswith(f"{check.name}: a check (")
    for letter, what in CATEGORIES.items():
        assert f"class {letter} of planted bugs: {what}" in explained(letter)
    for row in ALGORITHMS:
        assert row.summary in explained(row.name)
    for word, text in glossary().items():
        assert explained(word).startswith(f"{word}: {text}")


def test_every_check_of_the_tables_and_every_code_of_refusals_is_explained():
    pages = [(DOCS / f"{page}.md").read_text("utf-8") for page in ("checks", "kernels", "black-boxes")]
    tables = [table for page in pages for table in re.findall(r"^\| check.*\n(?:\|.*\n)+", page, re.MULTILINE)]
    first = " ".join(row.split("|")[1] for table in tables for row in table.splitlines())
    named = set(re.findall(r"`(\w+)`", first))
    assert {"support_at_rounded_rows", "samples_fit_reference", "values_match"} <= named
    for name in {*named, *PROMISED, *OF_A_LAW, *OF_A_REFERENCE, "acceptance_fits_law"}:
        assert explained(name).startswith(f"{name}: a check "), name
    for code, reason in REASONS.items():
        assert explained(code) == f"{code}: why a program is refused: {reason.meaning}\nWay out: {reason.way_out}."


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("Residual", "max(p - q, 0), normalised"),
        ("uniforms", "A random number in [0, 1)"),
        ("reference:egag", "reference:egag: "),
        ("mutant:residual-from-target", "killed by law_is_target"),
        ("law is target", "kills "),
        ("drafts_follow_q", "a check of drafters: each draft is drawn from the q"),
        ("crops_keep_the_first", "a check of caches: "),
        ("hf:assisted", "hf:assisted: "),
    ],
)
def test_what_is_said_of_a_word(word, said):
    assert said in explained(word)


def test_a_report_on_standard_output_is_json_alone():
    result = run("verify", "reference:egag", "--check", "greedy_is_argmax", "--json", "-")
    assert json.loads(result.stdout)["verdicts"]
    assert "1 holds" in result.stderr
    assert "1 holds" in run("verify", "reference:egag", "--check", "greedy_is_argmax").stdout


@pytest.mark.thorough
def test_an_interrupt_leaves_what_is_known(monkeypatch):
    def interrupted(subject, *given):
        found = verify_subject(subject, *given)
        yield next(found)
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "verify_subject", interrupted)
    result = run("verify", "reference:egag", "--jobs", "1", "--check", "law_is_target", "--check", "greedy_is_argmax")
    assert result.exit_code == 3
    assert "holds  law_is_target" in result.stdout
    assert "specverify: interrupted, 1 of the checks have no verdict" in result.stderr
