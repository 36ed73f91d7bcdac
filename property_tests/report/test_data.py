"""Verdicts as JSON fit the published schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from property_tests.cli.test_application import run
from specverify.report.data import schema

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3

CHEAP = ("--check", "eos_is_final", "--check", "horizon_is_respected", "--check", "greedy_is_argmax")


@pytest.mark.parametrize(
    ("subject", "code"),
    [("reference:autoregressive", HOLDS), ("mutant:eos-ignored-in-block", REFUTED), ("decoders:raises", UNUSABLE)],
)
def test_the_json_file_fits_the_published_schema_and_says_the_same(tmp_path, subject, code):
    file = tmp_path / "report.json"
    assert run("verify", subject, *CHEAP, "--json", str(file)).exit_code == code
    data = json.loads(file.read_text("utf-8"))
    jsonschema.validate(data, schema(), cls=jsonschema.Draft202012Validator)
    found = {verdict["status"] for verdict in data["verdicts"]}
    assert ("refuted" in found, "unusable" in found) == (code == REFUTED, code == UNUSABLE)
    assert all(verdict["counterexample"]["again"] for verdict in data["verdicts"] if verdict["status"] == "refuted")


def test_the_schema_is_a_schema_and_refuses_another_status():
    jsonschema.Draft202012Validator.check_schema(schema())
    report = {"specverify": "0", "alarm": 0.1, "seed": 0, "verdicts": [{"status": "fine"}]}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema())
