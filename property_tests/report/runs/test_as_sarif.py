"""A run as SARIF."""

from __future__ import annotations

import json

import jsonschema
import pytest

from specverify.report.runs.as_sarif import run_as_sarif
from test_support.report import runs

KINDS = tuple(runs.TEXTS)

STRING = {"type": "string"}

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": STRING}}

SARIF = {
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "required": ["tool", "results"],
                "properties": {
                    "tool": {"properties": {"driver": {"required": ["name", "rules"]}}, "required": ["driver"]},
                    "results": {
                        "items": {
                            "required": ["ruleId", "message", "level", "locations"],
                            "properties": {
                                "ruleId": STRING,
                                "message": MESSAGE,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "partialFingerprints": {"additionalProperties": STRING},
                            },
                        }
                    },
                    "invocations": {"items": {"required": ["executionSuccessful"]}},
                },
            },
        },
    },
}
"""What SARIF 2.1.0 asks of what is used here."""


@pytest.mark.parametrize("kind", KINDS)
def test_sarif_is_of_its_form_and_every_result_has_its_rule(kind):
    data = json.loads(run_as_sarif(runs.run_of(kind), "out/a run.json"))
    jsonschema.validate(data, SARIF)
    found = data["runs"][0]
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert found["results"]
    assert all(rules[item["ruleIndex"]] == item["ruleId"] for item in found["results"])
    prints = [item["partialFingerprints"]["subjectAndCheck/v1"] for item in found["results"]]
    same = [
        (item["ruleId"], item["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]) for item in found["results"]
    ]
    assert len(set(prints)) == len(set(same))
    assert found["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "out/a%20run.json"


def test_sarif_tells_refuted_from_unknown():
    data = json.loads(run_as_sarif(runs.run_of("verdicts"), "run.json"))
    levels = {item["ruleId"]: item["level"] for item in data["runs"][0]["results"]}
    assert levels == {
        "law_is_target": "error",
        "samples_fit_law": "error",
        "greedy_is_argmax": "warning",
        "eos_is_final": "error",
        "law_is_declared": "note",
        "stop_law": "note",
    }
