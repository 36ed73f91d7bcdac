"""Batches whose rows have parameters of their own: a temperature, a mask, a model."""

import numpy as np
import pytest

from specverify.testing import Made, Sizes, UnusableSubject, check_engine

HOW = {"quick": True, "on_fail": None, "checks": ["law_is_target"], "sizes": Sizes(least_vocabulary=4)}


def processed(row, parameters):
    weights = np.array(row) ** (1 / parameters["temperature"])
    if parameters.get("shift"):
        weights = np.roll(weights, 1)
    return weights / weights.sum()


PARAMETERS = ({"temperature": 1.0}, {"temperature": 0.5, "shift": True})


def engine(of_row, draft_of_row=None):
    """``of_row(rows, row)`` is the parameters that a row is verified with."""

    def make(s):
        def decode(prompts, parameters):
            return [text(prompt, of_row(parameters, row), parameters[row]) for row, prompt in enumerate(prompts)]

        def text(prompt, mine, drafted):
            new = ()
            while len(new) < s.horizon:
                q = processed(s.draft(tuple(prompt) + new), drafted)
                p = processed(s.target(tuple(prompt) + new), mine)
                token = int(np.random.choice(s.vocabulary, p=q))
                if not np.random.random() < p[token] / q[token]:
                    left = np.maximum(p - q, 0)
                    left = left if left.sum() > 0 else p
                    token = int(np.random.choice(s.vocabulary, p=left / left.sum()))
                new += (token,)
            return new

        def plain(prompts, parameters):
            return [alone(tuple(prompt), parameters[row]) for row, prompt in enumerate(prompts)]

        def alone(prompt, mine):
            new = ()
            while len(new) < s.horizon:
                new += (int(np.random.choice(s.vocabulary, p=processed(s.target(prompt + new), mine))),)
            return new

        return Made(decode, plain, batched=True, parameters=PARAMETERS)

    return make


def status(make):
    return {v.check: v.status for v in check_engine(make, **HOW)}["law_is_target"]


RIGHT = {
    "own": lambda rows, row: rows[row],
    "a copy": lambda rows, row: dict(rows[row]),
    "found in a table": lambda rows, row: dict(enumerate(rows))[row],
    "merged with defaults": lambda rows, row: {"temperature": 1.0, "shift": False, **rows[row]},
}
WRONG = {
    "the first row's": lambda rows, row: rows[0],
    "the last row's": lambda rows, row: rows[-1],
    "the row's before": lambda rows, row: rows[row - 1],
    "merged": lambda rows, row: {key: value for each in rows for key, value in each.items()},
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT)
def test_rows_with_parameters_of_their_own_hold(name):
    assert status(engine(RIGHT[name])) == "holds"


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", WRONG)
def test_rows_with_parameters_of_others_are_refuted(name):
    assert status(engine(WRONG[name])) == "refuted"


def test_parameters_need_a_plain_call():
    with pytest.raises(UnusableSubject, match="a call without speculation"):
        check_engine(lambda s: Made(lambda prompts, parameters: [], batched=True, parameters=PARAMETERS))
