"""What a run said for other programs: JSON, JUnit, Markdown and SARIF, and what is no run."""

from __future__ import annotations

import json

import jsonschema
import pytest

from specverify.report.runs.as_json import run_as_json, run_schema
from test_support.report import runs

KINDS = tuple(runs.TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_as_its_schema_says(kind):
    data = json.loads(run_as_json(runs.run_of(kind)))
    jsonschema.Draft202012Validator.check_schema(run_schema())
    jsonschema.validate(data, run_schema(), cls=jsonschema.Draft202012Validator)
    assert (data["format_version"], data["kind"]) == (2, kind)
    for spoilt in (data | {"format_version": 1}, data | {"more": 1}, data | {"subjects": [{"name": "a"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, run_schema(), cls=jsonschema.Draft202012Validator)
