"""A file that is no plan of a campaign is refused."""

from __future__ import annotations

import pytest

from specverify.run.campaign_plans import campaign_of

LAW = "law.json"

SUBJECT = f'[[subject]]\nname = "python:malformed:sample"\nlaw = "{LAW}"\n'

RESULTS = 'results = "results.sqlite"\n'


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (RESULTS + SUBJECT + SUBJECT, "subject 2 is the same as subject 1, expected each once"),
        (RESULTS, "names nothing to sample, expected at least one [[subject]]"),
        (SUBJECT, "the plan has no 'results'"),
        ("result = 'a'\n" + SUBJECT, "the plan has 'result', expected one of results, "),
        (
            f'{RESULTS}{SUBJECT}model = "m"',
            "subject 1 has a model, and only requests to a server (http://...) name one",
        ),
        (RESULTS + "block = '64'\n" + SUBJECT, "block of the plan is '64', expected a whole number"),
    ],
)
def test_a_plan_that_is_none(plan, sentence, tmp_path):
    (tmp_path / LAW).write_text('[{"tokens": [0], "probability": 1.0}]', "utf-8")
    (tmp_path / "plan.toml").write_text(plan, "utf-8")
    with pytest.raises(ValueError, match=r"\A[^\n]+\Z") as caught:
        campaign_of(tmp_path / "plan.toml")
    assert sentence in str(caught.value)
