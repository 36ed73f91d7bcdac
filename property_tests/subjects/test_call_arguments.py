"""Calls of engines that require the number of new tokens: they get the horizon of the scenario."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.subjects.call_arguments import takes_prompt, with_length, with_seeds
from specverify.subjects.request_lists import AT_ONCE
from specverify.testing import Made, UnusableSubject, check_engine
from test_support.subjects.engine_laws import law_verdict

pytestmark = pytest.mark.usefixtures("named_checks_alone")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda prompt, max_new_tokens: (prompt, max_new_tokens), ("text", 7)),
        (lambda horizon, prompt: (prompt, horizon), ("text", 7)),
        (lambda prompt, *, num_new_tokens: (prompt, num_new_tokens), ("text", 7)),
        (lambda prompt, max_new_tokens, seed: (prompt, max_new_tokens, seed), ("text", 7, 1)),
        (lambda seed, max_new, prompt, /: (prompt, max_new, seed), ("text", 7, 1)),
        (lambda prompt, max_new_tokens=3: (prompt, max_new_tokens), ("text", 3)),
    ],
)
def test_the_number_of_new_tokens_is_passed_wherever_the_argument_stands(call, expected):
    assert with_seeds(with_length(call, 7))("text") == expected


def test_other_arguments_keep_their_names_and_a_call_without_a_length_is_returned_itself():
    assert str(inspect.signature(with_length(lambda prompt, max_new_tokens, top_k=2: None, 7))) == "(prompt, top_k=2)"
    alone = len
    assert with_length(alone, 7) is alone
    assert takes_prompt(with_length(lambda prompt, max_new_tokens: None, 7))


class Engine:
    """Speculative sampling with one draft a round; decodes ``max_new_tokens`` - ``short`` tokens."""

    def __init__(self, scenario, short):
        """Take the models of a scenario."""
        self.models, self.short, self.rng = scenario, short, np.random.default_rng()

    def drawn(self, weights):
        """Return a token drawn in proportion to ``weights``."""
        return int(self.rng.choice(len(weights), p=weights / weights.sum()))

    def generate(self, prompt, max_new_tokens):
        """Return the new tokens after ``prompt``."""
        text, end = tuple(prompt), len(prompt) + max_new_tokens - self.short
        while len(text) < end:
            p, q = self.models.target(text), self.models.draft(text)
            draft = self.drawn(q)
            if self.rng.random() * q[draft] < p[draft]:
                text = (*text, draft, self.drawn(self.models.target((*text, draft))))
            else:
                text = (*text, self.drawn(np.maximum(p - q, 0)))
        return text[len(prompt) : end]

    def batch(self, prompts, max_new_tokens):
        """Return the new tokens of each prompt."""
        return [self.generate(prompt, max_new_tokens) for prompt in prompts]


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("short", "status"), [(0, Status.HOLDS), (1, Status.REFUTED)])
def test_an_engine_decodes_as_many_tokens_as_the_scenario_asks_for(short, status):
    for make, examined in (
        (lambda scenario: Engine(scenario, short).generate, SCENARIOS[:9]),
        (lambda scenario: Made(Engine(scenario, short).batch, batched=True), AT_ONCE),
    ):
        assert law_verdict(make, examined).status is status


def test_a_number_that_may_include_the_prompt_is_not_guessed():
    with pytest.raises(UnusableSubject, match="nothing to 'max_length': give it a default, or bind it"):
        check_engine(lambda scenario: lambda prompt, max_length: (0,) * max_length, quick=True)
