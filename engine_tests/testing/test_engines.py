"""``check_engine``: a call with speculation against the same call without, whatever library draws."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.engines.huggingface.generation import assisted_engine, quiet_and_seeded
from specverify.engines.huggingface.programs import PROGRAMS
from specverify.testing import SpeculationRefuted, check_engine

P = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.1, 0.8))
Q = ((0.6, 0.3, 0.1), (0.25, 0.5, 0.25), (0.3, 0.3, 0.4))
"""Next-token pmfs after each token: a chain model is all these need."""


def plain():
    token, new = 0, []
    for _ in range(2):
        token = random.choices(range(3), P[token])[0]
        new.append(token)
    return new


def speculative(recover=lambda p, q: np.maximum(p - q, 0)):
    """One draft a round from ``random``, the verifier's coin and recovery from NumPy."""
    token, new = 0, []
    while len(new) < 2:
        draft = random.choices(range(3), Q[token])[0]
        p, q = np.array(P[token]), np.array(Q[token])
        if np.random.random() < p[draft] / q[draft]:  # noqa: NPY002 - legacy calls are intercepted too
            token = draft
        else:
            residual = recover(p, q)
            token = int(np.random.choice(3, p=residual / residual.sum()))  # noqa: NPY002 - as above
        new.append(token)
    return new


def forbidden_at_zero():
    """Accepts a draft of probability 0 when the uniform is exactly 0."""
    draft = 1
    return [draft] if torch.rand(()) <= torch.tensor(0.0) else [0]


def by_check(verdicts):
    return {verdict.check: verdict.status for verdict in verdicts}


def test_a_correct_engine_holds_whatever_library_draws():
    found = check_engine(speculative, plain)
    assert by_check(found)["law_is_target"] is Status.HOLDS
    assert {verdict.status for verdict in found} == {Status.HOLDS}
    law = {(a, b): P[0][a] * P[a][b] for a in range(3) for b in range(3)}
    assert by_check(check_engine(speculative, law))["law_is_target"] is Status.HOLDS


def test_a_wrong_engine_is_refuted_with_the_calls_that_led_there():
    wrong = partial(speculative, recover=lambda p, q: p)
    wrong.__doc__, wrong.__module__, wrong.__qualname__ = "resamples from p", __name__, "wrong"
    said = r"replaced by a draw from p[\s\S]*test_engines.py[\s\S]*law is target - refuted"
    with pytest.raises(SpeculationRefuted, match=said):
        check_engine(wrong, plain)


@pytest.mark.thorough
def test_a_law_that_is_none_is_named():
    found = check_engine(speculative, plain, on_fail=None)
    assert found
    with pytest.raises(Exception, match=r"sums to 0.5, expected probabilities"):
        check_engine(speculative, {(0, 0): 0.5})


def test_the_boundary_draw_is_forced():
    found = by_check(check_engine(forbidden_at_zero, {(0,): 1.0}, on_fail=None))
    assert found["law_is_target"] is Status.HOLDS
    assert found["support_at_boundary_draws"] is Status.REFUTED


@pytest.mark.thorough
def test_an_engine_that_stops_late_is_refuted_by_where_it_stops():
    found = check_engine(lambda: [*plain(), 0], plain, on_fail=None)
    stop = next(verdict for verdict in found if verdict.check == "stop_law")
    assert stop.status is Status.REFUTED
    assert "continues to" in stop.statement


def test_a_model_of_no_known_engine_is_refused():
    """How it keeps its cache is not known, so that what was remembered could be another cache's."""
    with pytest.raises(ValueError, match=r"a model is Linear.*expected a model of transformers, with a forward method"):
        check_engine(lambda: [0], plain, models=(torch.nn.Linear(1, 1),))


@pytest.mark.parametrize("models", [3, "draft"])
def test_models_of_what_is_made_for_a_scenario_are_refused(models):
    with pytest.raises(ValueError, match=f"observe or models is {models!r}, expected none"):
        check_engine(lambda scenario: lambda prompt: [0], models=models)


@pytest.mark.thorough
def test_transformers_generate_in_three_lines():
    engine = assisted_engine(PROGRAMS[0])
    with quiet_and_seeded(0):
        found = check_engine(engine.new_tokens, partial(engine.new_tokens, speculative=False), models=engine.models)
    assert by_check(found)["law_is_target"] is Status.HOLDS
