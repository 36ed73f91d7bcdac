"""What answers are worth: right ones pass, one changed number fails, nothing is passed over in silence."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from specverify.cli import app
from specverify.vectors.all_vectors import all_vectors, kind_of
from specverify.vectors.grading import grade
from specverify.vectors.vector import Outcome, VectorResult
from test_support.vectors.answering import in_group, results, right

pytestmark = pytest.mark.xdist_group("vectors")

HOLDS, REFUTED, UNUSABLE, UNKNOWN = 0, 1, 2, 3
RESULTS = json.loads((Path(__file__).parents[2] / "vectors" / "results.schema.json").read_text("utf-8"))


@pytest.fixture
def check(tmp_path):
    """Return a function that grades a results file by the command line."""

    def graded(text, *arguments):
        file = tmp_path / "results.json"
        file.write_text(text, "utf-8")
        return CliRunner().invoke(app, ["vectors", "check", str(file), *arguments])

    return graded


def test_right_answers_to_everything_pass(check):
    text = results({vector.id: right(vector) for vector in in_group()})
    jsonschema.validate(json.loads(text), RESULTS)
    found = check(text)
    assert found.exit_code == HOLDS, found.output[-500:]
    assert f"{len(all_vectors())} passed" in found.output


def wrong_answers(answer):
    """Yield the answer with one thing changed; a refusal has none."""
    if "refused" in answer:
        return
    if "law" in answer:
        rows = answer["law"]
        yield {"law": rows[1:] or [{"tokens": [9], "probability": "1"}]}
        likely = max(rows, key=lambda row: Fraction(row["probability"]))
        others = [row for row in rows if row is not likely]
        yield {"law": [*others, likely | {"probability": float(Fraction(likely["probability"])) * 0.9}]}
        yield {"law": [*rows, rows[0]]}
        yield answer | {"expected_tokens": "0"}
        return
    for field, value in answer.items():
        if isinstance(value, bool):
            yield answer | {field: not value}
        elif isinstance(value, int):
            yield answer | {field: value + 1}
        elif isinstance(value, list):
            yield answer | {field: value[1:] if value else [0]}
            yield answer | {field: [*value, 0]}
    yield {"refused": True}


@pytest.mark.thorough
def test_every_changed_answer_fails():
    """A negative control: of each vector an answer that is wrong in one thing."""
    for vector in in_group()[::4]:
        for branch in vector.expected:
            taken = [other.answer for other in vector.expected]
            for answer in wrong_answers(branch.answer):
                if answer not in taken:
                    assert kind_of(vector).judge(vector, answer).outcome is Outcome.FAILED, (vector.id, answer)


def test_what_must_not_come_out_fails_and_a_refusal_passes():
    for vector in in_group():
        if vector.result is VectorResult.INVALID:
            for answer in vector.must_not or ({"accepted": 0, "tokens": [0]},):
                whole = {"accepted": 7, "tokens": [7]} | dict(answer)
                assert kind_of(vector).judge(vector, whole).outcome is Outcome.FAILED, vector.id
            assert kind_of(vector).judge(vector, {"refused": True}).outcome is Outcome.PASSED


def test_what_is_not_answered_is_no_pass(check):
    group = "verify_chain/inverse-cdf"
    answers = {vector.id: right(vector) for vector in in_group(group)}
    assert check(results(answers), "--only", group).exit_code == HOLDS
    assert check(results(answers)).exit_code == UNKNOWN
    missing = dict(list(answers.items())[1:])
    assert check(results(missing), "--only", group).exit_code == UNKNOWN
    assert check(results({}), "--only", group).exit_code == UNKNOWN
    first = next(iter(answers))
    empty = check(results(answers | {first: {}}), "--only", group)
    assert empty.exit_code == UNKNOWN
    assert "1 not answered" in empty.output


def test_a_failure_is_told_with_its_inputs_and_its_class_of_bugs(check):
    vector = all_vectors()["boundary/inverse-cdf/zero-coin-at0"]
    found = check(results({vector.id: {"accepted": 2, "tokens": [3, 3, 1]}}), "--only", "boundary")
    assert found.exit_code == REFUTED
    for said in ("Let   vocabulary = 4", "draft = [3, 3]", "Then  accepted is 2, expected 0", "SGLang issue #35771"):
        assert said in found.output


def test_json_says_it_too(check, tmp_path):
    file = tmp_path / "grades.json"
    vector = all_vectors()["stop/end/eos4-cut36-max9"]
    check(results({vector.id: {"tokens": [3], "finished": True}}), "--only", "stop", "--json", str(file))
    data = json.loads(file.read_text("utf-8"))
    assert data["counts"]["failed"] == 1
    assert data["groups"]["stop/end tokens"]["passed"] == 0
    assert data["not_passed"][0]["outcome"] in {"failed", "not answered"}


@pytest.mark.parametrize("flags", [("ties-kept", "argmax-shared"), ("ties-highest-id", "min-p-exclusive"), ()])
def test_one_convention_of_each_choice_passes(flags):
    vectors = in_group("warp", "stop")
    grades = grade("a program", vectors, {vector.id: right(vector, flags) for vector in vectors})
    assert not grades.mixed
    assert not grades.failures
    told = {flag for item in grades.conventions for flag in item.flags}
    assert set(flags) <= told


def test_two_conventions_are_told(check):
    vectors = in_group("warp/top-k")
    tied = [vector for vector in vectors if vector.result is VectorResult.ACCEPTABLE]
    answers = {vector.id: right(vector, ("ties-kept",)) for vector in vectors}
    answers[tied[-1].id] = right(tied[-1], ("ties-highest-id",))
    found = check(results(answers), "--only", "warp/top-k")
    assert found.exit_code == REFUTED
    assert "two conventions are mixed" in found.output
    assert f"ties-highest-id at {tied[-1].id}" in found.output
    assert "failed" not in found.output.splitlines()[-1]


ONE = "stop/end/eos4-cut36-max9"
MALFORMED = {
    "no JSON": ("{", "is no JSON"),
    "NaN": (results({ONE: {"tokens": float("nan")}}), "NaN is no number"),
    "a list": ("[]", "is no file of results"),
    "another format": (results({}, format="else"), "is no file of results"),
    "another version": (results({}, format_version=2), "has format_version 2, expected 1"),
    "version True": (results({}, format_version=True), "has format_version True"),
    "one thing more": (results({}, extra=1), "too little or too much at 'extra'"),
    "no program": (results({}, program=3), "a program that is no word"),
    "answers by id": (results({}, answers={ONE: {}}), "answers that are no list"),
    "an answer that is none": (results({}, answers=[3]), "answer 0 of"),
    "an answer that is a list": (results({}, answers=[{"id": ONE, "answer": []}]), "answer 0 of"),
    "an unknown id": (results({"stop/end/eos4-cut36-max99": {}}), "did you mean stop/end/eos4-cut36-max9"),
    "an id that is a number": (results({}, answers=[{"id": 1, "answer": {}}]), "which no vector has"),
    "one id twice": (results({}, answers=[{"id": ONE, "answer": {}}] * 2), "is the second one to"),
    "a key twice": ('{"format": "a", "format": "b"}', "'format' comes twice"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_file_of_results_gets_one_sentence(check, name):
    text, said = MALFORMED[name]
    found = check(text)
    assert found.exit_code == UNUSABLE
    assert said in found.output
    assert len(found.output.strip().splitlines()) == 1
    assert "Traceback" not in found.output


def test_an_unknown_group_and_a_missing_file_get_one_sentence(check, tmp_path):
    found = check(results({}), "--only", "verify_chains")
    assert (found.exit_code, "did you mean verify_chain" in found.output) == (UNUSABLE, True)
    gone = CliRunner().invoke(app, ["vectors", "check", str(tmp_path / "none.json")])
    assert (gone.exit_code, "cannot be read" in gone.output) == (UNUSABLE, True)
    (tmp_path / "file").write_text("", "utf-8")
    blocked = CliRunner().invoke(app, ["vectors", "export", str(tmp_path / "file")])
    assert (blocked.exit_code, "is a file" in blocked.output) == (UNUSABLE, True)
