"""Vectors as they are exported: by the schema, the same every time, exact, and what makes them fair."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest

from reference import warped
from specverify.vectors.all_vectors import KINDS, all_vectors
from specverify.vectors.conventions import FAMILIES, FLAGS, family_of
from specverify.vectors.export import exported
from specverify.vectors.given import FINEST
from specverify.vectors.json_models import row_pairs
from specverify.vectors.kinds import boundary, cache_lengths, law_of_round, stop, tree_pass, verify_chain, warp
from specverify.vectors.notes import NOTES
from specverify.vectors.vector import VectorResult

pytestmark = pytest.mark.xdist_group("vectors")

COMMITTED = Path(__file__).parents[2] / "vectors"
SCHEMA = json.loads((COMMITTED / "schema.json").read_text("utf-8"))


def numbers_in(value):
    """Yield every number that stands in a value as a string."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, str) and value[:1].isdigit():
        yield Fraction(value)


def test_what_is_committed_is_what_is_exported():
    made = exported()
    assert {file.name for file in COMMITTED.iterdir()} == set(made)
    for name, text in made.items():
        assert (COMMITTED / name).read_text("utf-8") == text, f"export again: {name} has changed"
    assert sum(map(len, made.values())) < 2_500_000


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_sample_of_every_group_is_as_the_schema_says(kind):
    data = json.loads((COMMITTED / f"{kind}.json").read_text("utf-8"))
    by_group = {(vector["result"], *vector["flags"]): vector for vector in data["vectors"]}
    schema = jsonschema.Draft202012Validator(SCHEMA)
    schema.validate(data | {"vectors": list(by_group.values())})
    for spoilt in (data | {"format_version": 2}, data | {"more": 1}, data | {"vectors": []}):
        assert not schema.is_valid(spoilt | {"vectors": spoilt["vectors"][:1]})
    first = data["vectors"][0]
    for spoilt in (first | {"result": "invalid"}, first | {"inputs": {}}, first | {"expected": {"tokens": "0"}}):
        assert not schema.is_valid(data | {"vectors": [spoilt]})


@pytest.mark.thorough
def test_every_vector_is_as_the_schema_says():
    for kind in KINDS:
        jsonschema.Draft202012Validator(SCHEMA).validate(
            json.loads((COMMITTED / f"{kind.name}.json").read_text("utf-8"))
        )


def test_the_schema_is_one():
    for name in ("schema.json", "results.schema.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads((COMMITTED / name).read_text("utf-8")))


def test_flags_and_notes_are_explained_and_used():
    vectors = all_vectors().values()
    algorithms = {vector.inputs["algorithm"] for vector in vectors if "algorithm" in vector.inputs}
    assert {vector.flags[0] for vector in vectors} == set(FLAGS) | algorithms
    taken = {branch.flag for vector in vectors for branch in vector.expected if branch.flag}
    assert taken == {flag for flags in FAMILIES.values() for flag in flags}
    assert {note for vector in vectors for note in vector.notes} == set(NOTES)


def test_the_branches_of_an_acceptable_vector_are_one_choice():
    for vector in all_vectors().values():
        if vector.result is VectorResult.ACCEPTABLE:
            assert len({family_of(branch.flag) for branch in vector.expected}) == 1
            assert len({json.dumps(branch.answer) for branch in vector.expected}) > 1


def test_uniforms_are_held_by_float32():
    for vector in all_vectors().values():
        for name in ("coins", "final", "uniforms"):
            for uniform in numbers_in(vector.inputs.get(name, [])):
                assert 0 <= uniform < 1
                assert 2**FINEST % uniform.denominator == 0


def test_every_number_of_a_boundary_is_held_by_float32():
    for vector in [vector for vector in all_vectors().values() if vector.kind == boundary.KIND]:
        if vector.id.endswith("-equal") and "largest-final" in vector.id:
            continue  # equal parts, of which the sums are rounded
        for mass in numbers_in([vector.inputs["p"], vector.inputs["q"]]):
            significand = mass.numerator
            while significand and significand % 2 == 0:
                significand //= 2
            assert significand < 2**24
            assert mass.denominator & (mass.denominator - 1) == 0


def test_answers_are_what_the_reference_says_to_the_inputs_as_they_are_written():
    conventions = {convention.flag: convention for convention in verify_chain.CONVENTIONS}
    answers = {
        "verify_chain": lambda vector, inputs: verify_chain.answer_of(conventions[vector.flags[0]], inputs),
        "boundary": lambda vector, inputs: boundary.answer_of(inputs),
        "cache_lengths": lambda vector, inputs: cache_lengths.answer_of(vector.flags[0], inputs),
        "stop": lambda vector, inputs: stop.token_by_token(inputs, kept=True),
        "warp": lambda vector, inputs: warp.answer_of(inputs),
        "tree": lambda vector, inputs: (
            tree_pass.layout_of(inputs)
            if "known" in inputs
            else tree_pass.accepted_of(inputs, tree_pass.draws_of(inputs))
        ),
    }
    for vector in list(all_vectors().values())[::3]:
        if vector.kind in answers and vector.expected:
            said = answers[vector.kind](vector, json.loads(json.dumps(dict(vector.inputs))))
            assert said in [branch.answer for branch in vector.expected], vector.id


def test_laws_sum_to_one():
    for vector in [vector for vector in all_vectors().values() if vector.kind == law_of_round.KIND][::5]:
        law = vector.expected[0].answer["law"]
        assert sum(Fraction(item["probability"]) for item in law) == 1
        assert all(len(item["tokens"]) <= vector.inputs["horizon"] for item in law)


@pytest.mark.parametrize("name", list(law_of_round.PARAMETERS))
def test_no_sampling_parameter_hits_a_threshold(name):
    """The support stays the same where a threshold moves a little, so no convention decides."""
    parameters = {
        key: Fraction(value) for key, value in law_of_round.PARAMETERS[name].items() if key in ("top_p", "min_p")
    }
    rows, _ = row_pairs("untied", 3, 3, law_of_round.KIND)
    power = float(Fraction(law_of_round.PARAMETERS[name].get("temperature", "1"))) or 1.0
    for row in rows:
        assert len(set(row.tolist())) == 3
        for key, value in parameters.items():
            kept = [
                (
                    warped(lambda _, row=row: _log(row), temperature=power, **{key: float(value) + shift})((0,)) > 0
                ).tolist()
                for shift in (-1e-3, 0, 1e-3)
            ]
            assert kept[0] == kept[1] == kept[2]


def _log(row):
    import numpy as np

    return np.log(row.astype(float))


def test_temperatures_are_those_of_the_reference():
    import numpy as np

    for vector in warp.vectors():
        if set(vector.inputs) == {"pmf", "temperature"} and vector.result is VectorResult.VALID:
            pmf = np.array([float(Fraction(mass)) for mass in vector.inputs["pmf"]])
            with np.errstate(divide="ignore"):
                found = warped(
                    lambda _, pmf=pmf: np.log(pmf), temperature=float(Fraction(vector.inputs["temperature"]))
                )((0,))
            expected = [float(Fraction(mass)) for mass in vector.expected[0].answer["pmf"]]
            assert np.abs(found - expected).max() < 1e-12, vector.id
