"""``specverify init``: what it finds, what it writes, and that it never overwrites."""

from __future__ import annotations

import ast

import pytest
from typer.testing import CliRunner

from specverify.cli import app

SOURCE = """
def verify(p, q, draft_tokens): ...
def rejection_sample(draft_token_ids, draft_probs, target_probs): ...
def batched(target_logits, draft_logits, draft_token_ids, temperature, top_k): ...
def one_round(draws, target, draft, tokens): ...
def decode(draws, target, draft, prompt, *, horizon): ...
def verify_tree(p, q, parents, tokens): ...
def propose(tokens, gamma): ...
def speculative_generate(target_model, draft_model, input_ids, max_new_tokens): ...
def _hidden(p, q, draft_tokens): ...
def other(a, b, c): ...
def loss(p, q, labels): ...
"""


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


def test_what_is_written_is_python_and_is_said(project):
    result = CliRunner().invoke(app, ["init", str(project)])
    file = project / "tests" / "test_speculation.py"
    assert result.exit_code == 0
    assert str(file) in result.output.replace("\n", "")
    text = file.read_text("utf-8")
    ast.parse(text)
    assert '"rejection_sample": lambda p, q, draft_tokens: mine.sampling.rejection_sample(' in text
    assert '"verify": mine.sampling.verify,' in text
    assert "# def test_speculative_generate():" in text
    assert "_hidden" not in text


def test_nothing_is_overwritten(project):
    file = project / "tests" / "test_speculation.py"
    file.write_text("mine", "utf-8")
    result = CliRunner().invoke(app, ["init", str(project)])
    assert (result.exit_code, file.read_text("utf-8")) == (2, "mine")
    assert "is there already, and nothing is overwritten" in " ".join(result.output.split())


def test_where_nothing_is_found_it_is_a_template(tmp_path):
    result = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert "so it is a template" in " ".join(result.output.split())
    assert not ast.parse((tmp_path / "test_speculation.py").read_text("utf-8")).body[1:]
    assert CliRunner().invoke(app, ["init", str(tmp_path / "none")]).exit_code == 2
