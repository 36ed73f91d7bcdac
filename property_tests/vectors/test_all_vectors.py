"""All vectors fit their schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from specverify.vectors.all_vectors import KINDS

pytestmark = pytest.mark.xdist_group("vectors")

COMMITTED = Path(__file__).parents[2] / "vectors"

SCHEMA = json.loads((COMMITTED / "schema.json").read_text("utf-8"))


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
