"""The form of a function is determined by its parameters."""

from __future__ import annotations

import pytest

from property_tests.cli.test_init_command import SOURCE
from specverify.run.first_test import found_in
from specverify.run.first_test import test_text as text_of_test

FOUND = {
    "verify": "verifier",
    "rejection_sample": "verifier",
    "batched": "verifier",
    "one_round": "decoder",
    "decode": "decoder",
    "verify_tree": "tree verifier",
    "propose": "drafter",
    "speculative_generate": "engine",
}


@pytest.fixture
def project(tmp_path):
    """A project with a package in src, tests, an environment and a file that is no Python."""
    package = tmp_path / "src" / "mine"
    package.mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (package / "sampling.py").write_text(SOURCE, "utf-8")
    (package / "broken.py").write_text("def (", "utf-8")
    (tmp_path / "tests" / "test_old.py").write_text(SOURCE, "utf-8")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "other.py").write_text(SOURCE, "utf-8")
    return tmp_path


def test_functions_are_told_by_their_parameters(project):
    found = found_in(project)
    assert {item.name: item.kind for item in found} == FOUND
    assert {item.module for item in found} == {"mine.sampling"}


def test_functions_of_one_name_have_their_module_in_the_label(tmp_path):
    for module in ("one", "other"):
        (tmp_path / f"{module}.py").write_text(
            "def verify(p, q, draft_tokens): ...\ndef propose(text, k): ...\n", "utf-8"
        )
    (tmp_path / "third.py").write_text("def sample(p, q, draft_tokens): ...\n", "utf-8")
    text = text_of_test(found_in(tmp_path))
    for line in ('"one.verify": one.verify,', '"other.verify": other.verify,', '"sample": third.sample,'):
        assert line in text
    assert "# def test_one_propose():" in text
    assert "# def test_other_propose():" in text
