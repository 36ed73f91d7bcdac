"""Engines with every uniform at an end of its range: the message, and the number of paths that are examined."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.checks import Conditions
from specverify.checks.support_at_boundary_draws import examine_program
from specverify.subjects.engine import engine_subject
from specverify.subjects.made_engine import made_subject
from specverify.testing import check_verifier
from test_support.subjects.engine_laws import one_round

OPEN_ROWS = "point_target-v3-p010-h3-s7"


class _ClosedRange:
    """A generator whose uniforms are smaller by 1e-300, so that u <= p/q holds where p = 0 and u = 0."""

    def __init__(self, rng):
        self.rng, self.choice = rng, rng.choice

    def random(self):
        return self.rng.random() - 1e-300


def engine_of(generator):
    def make(scenario):
        def decode(prompt):
            text, rng = tuple(prompt), generator(np.random.default_rng())
            while len(text) < len(prompt) + scenario.horizon:
                most = min(2, len(prompt) + scenario.horizon - len(text) - 1)
                text += one_round(scenario, text, most, rng)
            return list(text[len(prompt) :])

        return decode

    return make


def examined(generator, **conditions):
    program = next(each for each in made_subject(engine_of(generator), "an engine").programs if each.name == OPEN_ROWS)
    return examine_program(program, Conditions(edge=0.0, **conditions))


def test_the_first_sentence_names_the_token_and_how_rarely_it_comes_out():
    result = examined(_ClosedRange)
    assert result.failed
    assert result.counterexample.fault.startswith(
        "new token 2 is 0 instead of 1 after new token 0, when every uniform is"
    )
    assert "a test u <= p/q" in result.counterexample.fault
    assert result.counterexample.fault.endswith("drafts")


@pytest.mark.parametrize(("generator", "is_wrong"), [(_ClosedRange, True), (lambda rng: rng, False)], ids=["<=", "<"])
def test_at_most_so_many_paths_are_examined_at_each_end(generator, is_wrong):
    few = examined(generator, complete_within=5)
    assert few.failed is is_wrong
    assert few.figures["runs"] <= 10


@pytest.mark.parametrize(
    ("draw", "enumerations"), [(lambda rng: rng.choice(2), 1), (lambda rng: rng.random() < 0.5, 2)]
)
def test_an_engine_without_uniforms_is_enumerated_once(draw, enumerations):
    program = engine_subject(
        lambda: [int(draw(np.random.default_rng()))], {(0,): 0.5, (1,): 0.5}, "an engine"
    ).programs[0]
    opened = []

    def open_counted(**forced):
        opened.append(forced)
        return program.open(**forced)

    assert not examine_program(program._replace(open=open_counted), Conditions()).failed
    assert len(opened) == enumerations


def test_all_paths_are_examined_without_a_limit():
    assert examined(lambda rng: rng).figures["runs"] > 10


RNG = np.random.default_rng()


def verifier(reject, more):
    """Return a verifier that rejects a draft if ``reject(u, p/q)``, and adds ``more`` to the residual of each token."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if reject(RNG.random(), p[i][token] / q[i][token]):
                left = np.maximum(p[i] - q[i], 0) + more
                left = left if left.any() else p[i]
                return [*draft_tokens[:i], RNG.choice(len(left), p=left / left.sum())]
        return [*draft_tokens, RNG.choice(len(p[-1]), p=p[-1])]

    return verify


@pytest.mark.parametrize(
    ("reject", "more", "said"),
    [
        (lambda u, ratio: u > ratio, 0.0, "with p = 0, is accepted when u = 0.0"),
        (lambda u, ratio: u >= ratio, 0.01, "has target probability 0"),
    ],
)
def test_a_replacement_by_an_impossible_draft_is_no_acceptance_at_an_end(reject, more, said):
    """Such a replacement comes at any u that rejects the draft."""
    verify = verifier(reject, more)
    (found,) = check_verifier(verify, checks=["support_at_boundary_draws"], quick=True, on_fail=None, edge=0)
    assert said in found.counterexample.fault
    assert ("is accepted" in found.counterexample.fault) == ("is accepted" in said)


def until_accepted(p, q, draft_tokens):
    """Draw the replacement from p until it is accepted with probability max(p - q, 0) / p."""
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens):
        if not rng.random() * q[i][token] < p[i][token]:
            left = np.maximum(p[i] - q[i], 0)
            while True:
                new = rng.choice(len(left), p=p[i])
                if rng.random() * p[i][new] < left[new]:
                    return [*draft_tokens[:i], new]
    return [*draft_tokens, rng.choice(len(p[-1]), p=p[-1])]


def test_a_loop_that_waits_for_another_uniform_is_examined():
    check_verifier(until_accepted, gammas=(1,), quick=True, checks=["inputs_unchanged"])
