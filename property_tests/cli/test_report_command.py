"""``specverify report`` on what the commands themselves write, and on a campaign."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import jsonschema
import programs
import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.report.runs.as_json import run_schema
from test_support.report.page_elements import Page, text_of

SAMPLERS = Path(programs.__file__).parent
FORMATS = {"--output": "html", "--junit": "xml", "--json": "run.json", "--markdown": "md", "--sarif": "sarif"}


def invoke(*arguments):
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def reported(run, folder):
    """Write every format of a run; return its page and its JSON, which is as the schema says."""
    options = [part for name, ending in FORMATS.items() for part in (name, folder / f"it.{ending}")]
    assert invoke("report", run, *options) == (0, "")
    data = json.loads((folder / "it.run.json").read_text("utf-8"))
    jsonschema.validate(data, run_schema(), cls=jsonschema.Draft202012Validator)
    return Page((folder / "it.html").read_text("utf-8")), data


def headings(page):
    return [text_of(item) for item in page.all("h4")]


def test_of_verify(tmp_path):
    run = tmp_path / "run.json"
    names = "reference:speculative-sampling", "mutant:inverted-ratio"
    assert invoke("verify", *names, "--check", "acceptance_is_optimal", "--json", run)[0] == 1
    page, data = reported(run, tmp_path)
    assert headings(page) == 2 * ["Acceptance by position", "Law of the accepted length"]
    for subject, right in zip(data["subjects"], (True, False), strict=True):
        lengths = subject["panels"][1]["rows"]
        assert sum(row["seen"] for row in lengths) == pytest.approx(1)
        assert sum(row["expected"] for row in lengths) == pytest.approx(1)
        assert all(row["seen"] == row["expected"] for row in lengths) == right
    assert "specverify replay" in (tmp_path / "it.md").read_text("utf-8")


def test_of_stats(tmp_path):
    run = tmp_path / "run.json"
    assert invoke("stats", "--quick", "--subject", "reference:nasd", "--jobs", 1, "--json", run)[0] == 0
    page, data = reported(run, tmp_path)
    assert headings(page) == ["Total variation of planned samples"]
    assert data["facts"]["planned tests that share it"] == "2"


def test_of_sample(tmp_path, monkeypatch):
    monkeypatch.chdir(SAMPLERS)
    (tmp_path / "law.json").write_text(json.dumps(programs.law()), "utf-8")
    run = tmp_path / "run.json"
    assert invoke("sample", "python:programs:biased", "--law", tmp_path / "law.json", "--json", run)[0] == 1
    page, data = reported(run, tmp_path)
    assert headings(page) == ["Outcomes: samples fit law", "Evidence over time: samples fit law"]
    points = data["subjects"][0]["panels"][1]["points"]
    assert [samples for samples, _ in points] == sorted({samples for samples, _ in points})
    assert points[-1][1] > data["subjects"][0]["panels"][1]["refuted_at"]


def campaign_in(folder, blocks, tv=0.05):
    (folder / "law.json").write_text(json.dumps(programs.law()), "utf-8")
    subjects = "".join(
        f"[[subject]]\nname = 'python:programs:{name}'\nlaw = 'law.json'\n" for name in ("right", "biased")
    )
    head = f"results = 'it.sqlite'\ntv = {tv}\nblock = 640\nblocks = {blocks}\n"
    (folder / "plan.toml").write_text(head + subjects, "utf-8")
    return folder / "plan.toml"


@pytest.mark.thorough
def test_of_a_campaign_says_what_the_campaign_said(tmp_path, monkeypatch):
    monkeypatch.chdir(SAMPLERS)
    run = tmp_path / "run.json"
    assert invoke("campaign", campaign_in(tmp_path, 12, tv=0.2), "--json", run)[0] == 1
    page, data = reported(tmp_path / "it.sqlite", tmp_path)
    told = json.loads(run.read_text("utf-8"))["verdicts"]
    assert [item for subject in data["subjects"] for item in subject["verdicts"]] == told
    assert data["kind"] == "campaign"
    assert data["unfinished"] == []  # what is decided early is done
    assert headings(page) == 2 * ["Outcomes: samples fit law", "Evidence over time: samples fit law"]


def test_of_a_campaign_that_was_ended_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(SAMPLERS)
    invoke("campaign", campaign_in(tmp_path, 1))
    with sqlite3.connect(tmp_path / "it.sqlite") as file:
        file.execute("UPDATE asked SET asked = json_set(asked, '$.blocks', 9)")
        file.execute("DELETE FROM blocks WHERE subject = 'python:programs:biased'")
    file.close()
    page, data = reported(tmp_path / "it.sqlite", tmp_path)
    assert data["unfinished"] == [
        "python:programs:right: 1 of 9 blocks are stored, and they do not decide everything",
        "python:programs:biased: 0 of 9 blocks are stored, and they do not decide everything",
    ]
    assert "no block is stored, so nothing is known" in "".join(page.texts)


def test_what_cannot_be_done_is_said_in_one_sentence(tmp_path):
    run = tmp_path / "run.json"
    assert "nothing is to be written, expected at least one of --output" in invoke("report", run)[1]
    assert "cannot be read" in invoke("report", run, "-o", tmp_path / "a.html")[1]
    run.write_bytes(b"\xff\xfe\x00")
    assert "cannot be read" in invoke("report", run, "-o", tmp_path / "a.html")[1]
    assert "two of the files are the same" in invoke("report", run, "-o", run)[1]
    run.write_bytes(b"SQLite format 3\x00 and no more")
    assert "cannot be used" in invoke("report", run, "-o", tmp_path / "a.html")[1]
    assert not (tmp_path / "a.html").exists()
