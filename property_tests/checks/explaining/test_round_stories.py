"""A path as text, round by round."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.checks.explaining.test_round_faults import in_scenario, verifier
from specverify.checks.check import is_law_of_one_round, law_in
from specverify.checks.explaining.decoder_counterexamples import impossible_token
from specverify.checks.explaining.round_stories import rounds_of_path
from specverify.checks.tokens_are_supported import fault
from specverify.laws.enumeration import program_law, whole_run
from specverify.laws.paths import paths
from specverify.laws.scenarios import Scenario

RNG = np.random.default_rng()

SMALL = Scenario("generic", 2, (0,), 2, seed=0)


def test_a_path_is_told_round_by_round_with_the_right_value_beside_the_wrong_step():
    here = in_scenario(verifier(replace=lambda p, q: p))
    rejected = next(path for path in paths(whole_run(here.decoder, here.prompt)) if path.choices[:2] == (1, 1))
    told = rounds_of_path(here, rejected.choices)
    assert told.startswith("round 1: drafted 1 (q = 0.667), rejected (u >= 0.643, test_round_faults.py:")
    assert "; expected " in told


def test_a_draft_that_is_not_emitted_is_told_as_rejected_though_tokens_follow_its_replacement():
    def masked(p, q, draft_tokens):
        kept = RNG.random(2) < [p[i, token] / q[i, token] for i, token in enumerate(draft_tokens)]
        last = len(draft_tokens) if kept.all() else int(np.argmin(kept))
        row = np.maximum(p[last] - q[last], 0) if last < len(q) else p[last]
        end = int(RNG.choice(len(row), p=row / row.sum()))
        return [*draft_tokens[:last], end, *(token for i, token in enumerate(draft_tokens) if i > last and kept[i])]

    here = in_scenario(masked, 2, SMALL._replace(horizon=3))
    told = {rounds_of_path(here, path.choices) for path in paths(whole_run(here.decoder, here.prompt))}
    followed = [words.partition("\n")[0] for words in told if "replaced by 0, then 0\nround 2: " in words]
    assert followed
    assert all("draft 1 (1) rejected (u >= 0.643, test_" in words for words in followed)
    assert not any("accepted" in words for words in followed)


@pytest.mark.parametrize(
    ("wrong", "shape", "said"),
    [
        ({"replace": lambda p, q: np.maximum(p - q, 0) + 0.01}, "zeros", "the residual of the rejected draft 1 gives "),
        ({"accept": lambda p, q: 0.5}, "disjoint", "draft 1, token "),
        ({"bonus": lambda p: p[-1] + 0.01}, "zeros", "the bonus token is "),
    ],
)
def test_the_step_that_emits_an_impossible_token_is_named(wrong, shape, said):
    here = in_scenario(verifier(**wrong), 1, Scenario(shape, 3, (0, 1, 0), 2, seed=0))
    impossible = [new for new in law_in(here, 20_000).probabilities if fault(here.task, here.prompt, new)]
    sentences = [impossible_token(here, new) for new in impossible]
    assert any(sentence.startswith(said) for sentence in sentences)
    assert all(", expected 0" in sentence for sentence in sentences)


def test_no_step_is_named_where_every_token_is_possible():
    here = in_scenario(verifier(replace=lambda p, q: p), 1, Scenario("zeros", 3, (0, 1, 0), 2, seed=0))
    assert {impossible_token(here, new) for new in law_in(here, 20_000).probabilities} == {""}


def test_the_step_is_named_if_the_other_tokens_of_the_output_are_the_targets():
    scenario = Scenario("zeros", 3, (0, 1, 0), 4, seed=0)
    row = in_scenario(verifier(), 2, scenario).task.target((0, 1, 0))
    forbidden = int(np.argmin(row))
    assert row[forbidden] == 0

    def always_forbidden(p, *q):
        return np.eye(3)[forbidden]

    wrong = verifier(accept=lambda p, q: 0.0, replace=always_forbidden, bonus=always_forbidden)
    here = in_scenario(wrong, 2, scenario)
    assert is_law_of_one_round(here)
    impossible = [new for new in law_in(here, 20_000).probabilities if fault(here.task, here.prompt, new)]
    whole = program_law(whole_run(here.decoder, here.prompt)).probabilities
    assert not set(impossible) <= whole.keys()
    assert all(impossible_token(here, new).startswith("the residual of the rejected draft 1") for new in impossible)
