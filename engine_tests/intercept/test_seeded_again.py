"""``torch.multinomial`` with a generator that is seeded again: the joint law of its outcomes is that of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from specverify.base.verdict import Status
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.enumeration import program_law
from test_support.subjects.engine_laws import law_verdict

SEEDS = 4_000
ALARM = 1e-6
TWICE = (
    ((0.2, 0.3, 0.5), (0.5, 0.3, 0.2)),
    ((0.5, 0.5, 0.0), (0.0, 0.6, 0.4)),
    ((0.1, 0.0, 0.4, 0.5), (0.0, 0.9, 0.05, 0.05)),
    ((0.0, 1.0, 0.0), (0.3, 0.3, 0.4)),
    ((0.25, 0.75), (0.75, 0.25)),
)
OF_TWO_TOKENS = ((0.25, 0.75), (0.75, 0.25), (0.5, 0.5), (0.3, 0.7))


def drawn(rows, seed, dtype=torch.float64):
    """Return an outcome of each row, drawn from generators with the same seed."""
    return tuple(
        torch.multinomial(torch.tensor(row, dtype=dtype), 1, generator=torch.Generator().manual_seed(seed)).item()
        for row in rows
    )


def law_of(rows, dtype=torch.float64):
    def program(draws):
        with answered_everywhere(draws):
            return drawn(rows, 7, dtype)

    return program_law(program).probabilities


def check_fits(law, samples):
    counts = [samples.count(outcome) for outcome in law]
    assert sum(counts) == len(samples), "no outcome is drawn that the law does not have"
    if len(law) > 1:
        assert chisquare(counts, [mass * len(samples) for mass in law.values()]).pvalue > ALARM


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rows", TWICE)
def test_two_outcomes_have_the_joint_law_of_torch(rows, dtype):
    law = law_of(rows, dtype)
    check_fits(law, [drawn(rows, seed, dtype) for seed in range(SEEDS)])
    for place, row in enumerate(rows):
        alone = [sum(mass for pair, mass in law.items() if pair[place] == token) for token in range(len(row))]
        assert alone == pytest.approx(row, abs=1e-6)


def test_outcomes_of_independent_draws_are_rejected():
    law, (first, second) = law_of(TWICE[0]), TWICE[0]
    independent = {(a, b): first[a] * second[b] for a in range(3) for b in range(3)}
    samples = [drawn(TWICE[0], seed) for seed in range(SEEDS)]
    counts = [samples.count(outcome) for outcome in independent]
    assert chisquare(counts, [mass * SEEDS for mass in independent.values()]).pvalue < ALARM
    assert set(law) != set(independent), "some pairs are impossible with the same noise"


def test_any_number_of_outcomes_of_two_tokens_has_the_joint_law_of_torch():
    check_fits(law_of(OF_TWO_TOKENS), [drawn(OF_TWO_TOKENS, seed) for seed in range(SEEDS)])


def test_a_third_outcome_of_three_tokens_is_refused():
    with pytest.raises(NeedsValue, match="draws three times from one state of its generator"):
        law_of((*TWICE[0], (0.3, 0.3, 0.4)))


def test_rows_of_other_shapes_or_dtypes_are_refused():
    def program(draws):
        with answered_everywhere(draws):
            return drawn([(0.2, 0.8)], 7), drawn([(0.2, 0.8)], 7, torch.float32), drawn([(0.2, 0.3, 0.5)], 7)

    with pytest.raises(NeedsValue, match="in different ways"):
        program_law(program)


def test_a_batch_shares_its_noise_row_by_row():
    rows = torch.tensor([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], dtype=torch.float64)

    def program(draws):
        with answered_everywhere(draws):
            one, two = (
                torch.multinomial(batch, 1, generator=torch.Generator().manual_seed(7))[:, 0]
                for batch in (rows, rows.flip(0))
            )
            return int(one[0]), int(two[0])

    assert program_law(program).probabilities == pytest.approx(law_of(TWICE[0]), abs=1e-12)


def token(row, generator):
    return torch.multinomial(torch.as_tensor(row, dtype=torch.float64), 1, generator=generator).item()


def engine(seeds_each_round):
    """Return a factory of engines whose request has a seed; one draft a round."""

    def generate(scenario, prompt, seed):
        generator, text, end = torch.Generator().manual_seed(seed), tuple(prompt), len(prompt) + scenario.horizon
        while len(text) < end:
            if seeds_each_round:
                generator.manual_seed(seed)
            p, q = np.array(scenario.target(text)), np.array(scenario.draft(text))
            draft = token(q, generator)
            if torch.rand((), dtype=torch.float64, generator=generator) * q[draft] < p[draft]:
                text = (*text, draft)
                if len(text) < end:
                    text = (*text, token(scenario.target(text), generator))
            else:
                text = (*text, token(np.maximum(p - q, 0), generator))
        return text[len(prompt) :]

    return lambda scenario: lambda prompt, seed: generate(scenario, prompt, seed)


@pytest.mark.usefixtures("unexplained")
def test_an_engine_that_seeds_again_in_each_round_is_refuted():
    assert law_verdict(engine(seeds_each_round=True), SCENARIOS[:3]).status is Status.REFUTED


def test_an_engine_that_seeds_once_holds():
    assert law_verdict(engine(seeds_each_round=False), SCENARIOS[:3]).status is Status.HOLDS
