"""A file that is no run is refused."""

from __future__ import annotations

import pytest

from specverify.report.runs.loading import said_of


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "is JSON that no run wrote"),
        ("{}", "is JSON that no run wrote"),
        ('{"verdicts": [], "rows": []}', "is JSON that no run wrote"),
        ('{"verdicts": [{}], "alarm": 1, "seed": 0}', "has verdicts that no run wrote"),
        ('{"verdicts": {}, "alarm": 1, "seed": 0}', r"has verdicts that no run wrote \(verdicts is of type dict"),
        (
            '{"verdicts": [{"counterexample": null, "subject": 3}], "alarm": 1, "seed": 0}',
            r"has .* \(subject is 3, exp",
        ),
        ('{"rows": 3}', "has rows that no run wrote"),
        ('{"mutants": [{"name": "a"}]}', "has mutants that no run wrote"),
    ],
)
def test_what_is_no_run_is_refused_in_one_sentence(text, said):
    with pytest.raises(ValueError, match=f"^it {said}.*expected what verify"):
        said_of(text, "it")
