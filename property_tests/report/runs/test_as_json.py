"""What a run said for other programs: JSON, JUnit, Markdown and SARIF, and what is no run."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from reference import Claim
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.report.prose import headline
from specverify.report.runs.as_json import run_as_json, run_schema
from specverify.report.runs.as_junit import run_as_junit
from specverify.report.runs.as_markdown import fenced, plain, run_as_markdown
from specverify.report.runs.as_sarif import run_as_sarif
from specverify.report.runs.loading import said_of
from specverify.report.runs.panels import outcomes_panel
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
def test_json_is_as_its_schema_says(kind):
    data = json.loads(run_as_json(runs.run_of(kind)))
    jsonschema.Draft202012Validator.check_schema(run_schema())
    jsonschema.validate(data, run_schema(), cls=jsonschema.Draft202012Validator)
    assert (data["format_version"], data["kind"]) == (2, kind)
    for spoilt in (data | {"format_version": 1}, data | {"more": 1}, data | {"subjects": [{"name": "a"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, run_schema(), cls=jsonschema.Draft202012Validator)


def test_junit_counts_what_does_not_hold():
    root = ET.fromstring(run_as_junit(runs.run_of("verdicts")))
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "9",
        "failures": "3",
        "errors": "1",
        "skipped": "2",
    }
    cases = {
        (case.get("classname")[:8], case.get("name")): [item.tag for item in case] for case in root.iter("testcase")
    }
    assert cases["<script>", "greedy_is_argmax"] == ["failure"]
    assert cases["<script>", "eos_is_final"] == ["error"]
    assert cases["referenc", "law_is_target"] == ["system-out"]
    assert "Again specverify replay eNabc_-" in next(root.iter("failure")).text


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


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_takes_names_for_names(kind):
    text = run_as_markdown(runs.run_of(kind))
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {5}


def test_markdown_cannot_be_left():
    assert plain("<b>\n*a* `b` |") == r"&lt;b&gt; \*a\* \`b\` \|"
    assert fenced("a\n````\nb") == "`````text\na\n````\nb\n`````"


def test_bands_hold_what_is_right_and_not_what_is_wrong():
    law, right, wrong = (0.3, 0.2, 0.5), (310, 195, 495), (400, 195, 405)
    assert not any(row.outside for row in outcomes_panel("samples_fit_law", runs.tally(right, 1000, law)).rows)
    found = outcomes_panel("samples_fit_law", runs.tally(wrong, 1000, law)).rows
    assert [row.outside for row in found] == [True, False, True]
    sampled = outcomes_panel("samples_fit_reference", runs.tally(wrong, 1000, law, sampled=True))
    assert not any(row.outside for row in sampled.rows)
    assert sampled.expected_as == "in the reference"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "is JSON that no run wrote"),
        ("{}", "is JSON that no run wrote"),
        ('{"verdicts": [], "rows": []}', "is JSON that no run wrote"),
        ('{"verdicts": [{}], "alarm": 1, "seed": 0}', "has verdicts that no run wrote"),
        ('{"rows": 3}', "has rows that no run wrote"),
        ('{"mutants": [{"name": "a"}]}', "has mutants that no run wrote"),
    ],
)
def test_what_is_no_run_is_refused_in_one_sentence(text, said):
    with pytest.raises(ValueError, match=f"^it {said}.*expected what verify"):
        said_of(text, "it")


def test_a_headline_says_nothing_of_claims_that_other_checks_examined():
    refuted = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "no", Claim.SUPPORTED, Evidence.EXACT)
    assert headline(refuted) == "support at boundary draws - refuted: SUPPORTED    exact, no"
