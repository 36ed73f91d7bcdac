"""Vectors as they are exported: by the schema, the same every time, exact, and what makes them fair."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.export import exported
from specverify.vectors.kinds import boundary, cache_lengths, stop, tree_pass, verify_chain, warp

pytestmark = pytest.mark.xdist_group("vectors")

COMMITTED = Path(__file__).parents[2] / "vectors"


def test_what_is_committed_is_what_is_exported():
    made = exported()
    assert {file.name for file in COMMITTED.iterdir()} == set(made)
    for name, text in made.items():
        assert (COMMITTED / name).read_text("utf-8") == text, f"export again: {name} has changed"
    assert sum(map(len, made.values())) < 2_500_000


def test_the_schema_is_one():
    for name in ("schema.json", "results.schema.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads((COMMITTED / name).read_text("utf-8")))


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
