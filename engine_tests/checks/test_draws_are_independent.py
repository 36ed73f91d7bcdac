"""Verifiers and an engine that use randomness twice are named by their lines; those that draw afresh hold."""

from __future__ import annotations

import inspect
import re
from zlib import crc32

import numpy as np
import pytest
import torch
from transformers.generation import utils

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.checks.draws_are_independent import CHECK, DecodeBlock, examine
from specverify.engines.huggingface.generation import assisted_engine
from specverify.engines.huggingface.programs import PROGRAMS, engine_program
from specverify.run.verify import Checklist, run_case, run_check
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.subject import Subject
from specverify.subjects.verifier import verifier_subject
from test_support.shares import share_of
from test_support.verifiers import verifiers


def verdict_of(verify, gamma=2):
    return run_check(verifier_subject(verify, verify.__name__, (gamma,)), CHECK, Checklist((CHECK,)))


def line_of(function, text, number=0):
    """Return where the source of a function holds a text, as the audit names it."""
    lines, start = inspect.getsourcelines(function)
    found = [start + place for place, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(function).rpartition('/')[2]}:{found[number]}"


# Verifiers that use randomness twice


@pytest.mark.thorough
def test_a_rejecting_uniform_that_is_looked_up_again_is_named_with_both_lines():
    found = verdict_of(verifiers.reused_uniform)
    drawn, coin, lookup = (
        line_of(verifiers.reused_uniform, text) for text in ("rand(1)", "if uniform", "searchsorted")
    )
    assert found.status is Status.REFUTED
    assert found.statement == f"the uniform drawn by torch.rand at {drawn} decides at {coin} and again at {lookup}"
    assert found.statement in found.counterexample.then
    assert "gamma=2" in found.counterexample.let[0]


@pytest.mark.thorough
def test_one_uniform_for_all_positions_of_a_loop_is_named():
    found = verdict_of(verifiers.one_uniform)
    assert found.status is Status.REFUTED
    assert f"decides more than one thing at {line_of(verifiers.one_uniform, 'if uniform')}" in found.statement


def test_a_generator_that_is_seeded_again_is_named():
    found = verdict_of(verifiers.reseeded, gamma=1)
    drawn = line_of(verifiers.reseeded, "torch.rand")
    assert found.status is Status.REFUTED
    replaced = (line_of(verifiers.reseeded, "torch.multinomial", number) for number in (0, 1))
    calls = f"torch.rand at {drawn}", *(f"torch.multinomial at {place}" for place in replaced)
    assert found.statement in [f"{call} draws twice from one state of its generator" for call in calls]


@pytest.mark.thorough
def test_a_generator_that_begins_again_in_every_call_is_named():
    def verify(p, q, draft_tokens):
        return with_two_generators((3, 4))(p, q, draft_tokens)

    found = verdict_of(verify)
    assert found.status is Status.REFUTED
    assert "draws twice from one state of its generator" in found.statement


def seeded_by(seed_of):
    """Return the verifier whose generator is made in each call, its seed from what the call is given."""

    def verify(p, q, draft_tokens):
        generator = np.random.default_rng(seed_of(p))
        for i, token in enumerate(draft_tokens):
            if generator.random() * q[i, token] >= p[i, token]:
                rest = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], generator.choice(len(rest), p=rest / rest.sum())]
        return [*draft_tokens, generator.choice(p.shape[1], p=p[-1])]

    return verify


RNG = np.random.default_rng(5)
SEEDS = {
    "of the rows": (lambda p: crc32(p.tobytes()), Status.REFUTED),
    "drawn and of the rows": (lambda p: [int(RNG.integers(2**40)), crc32(p.tobytes())], Status.HOLDS),
}


@pytest.mark.parametrize("name", SEEDS)
def test_a_seed_that_is_made_of_the_arguments_alone_leaves_nothing_random(name):
    seed_of, status = SEEDS[name]
    subject = verifier_subject(seeded_by(seed_of), name, (1,))
    certain = tuple(case.situation.scenario for case in CHECK.cases(subject) if "point" in str(case.situation.scenario))
    found = run_check(subject._replace(scenarios=certain), CHECK, Checklist((CHECK,)))
    assert found.status is status
    if status is Status.REFUTED:
        place = line_of(seeded_by(seed_of), "generator.random")
        assert f"random at {place} draws twice from one state" in found.statement
        assert found.statement.endswith(", in two calls that are given the same")


@pytest.mark.thorough
def test_noise_of_two_races_is_named_and_its_law_refuted():
    found = run_check(verifier_subject(verifiers.shared_clock, "shared_clock", (1,)), CHECK, Checklist((CHECK,)))
    first, second = (line_of(verifiers.shared_clock, f"p[{row}] / clock") for row in (0, 1))
    assert found.status is Status.REFUTED
    assert found.statement.endswith(f"decides at {first} and again at {second}")
    assert "the law is off by it" in found.counterexample.because[0]


def test_noise_of_three_races_is_named_where_the_law_cannot_be_computed():
    found = run_check(verifier_subject(verifiers.clock_of_three, "clock", (1,)), CHECK, Checklist((CHECK,)))
    assert found.status is Status.REFUTED
    assert "the law is off by it" not in " ".join(found.counterexample.because)


def with_two_generators(seeds):
    """Return the verifier whose coins and replacements come from two generators of these seeds, made once."""
    coins, replacements = (torch.Generator().manual_seed(seed) for seed in seeds)

    def verify(p, q, draft_tokens):
        weights, kept = p[-1], len(draft_tokens)
        for i, token in enumerate(draft_tokens.tolist()):
            if torch.rand((), generator=coins) >= p[i, token] / q[i, token]:
                weights, kept = torch.clamp(p[i] - q[i], min=0), i
                break
        cumulative = weights.cumsum(0)
        uniform = torch.rand(1, generator=replacements) * cumulative[-1]
        return [*draft_tokens[:kept].tolist(), int(torch.searchsorted(cumulative, uniform, right=True))]

    return verify


@pytest.mark.thorough
def test_two_generators_of_one_seed_are_one_generator():
    verify = with_two_generators((3, 3))
    found = verdict_of(verify)
    assert found.status is Status.REFUTED
    coin, lookup = line_of(verify, "generator=coins"), line_of(verify, "generator=replacements")
    assert found.statement == f"torch.rand at {coin} and torch.rand at {lookup} draw from one state of a generator"
    law = check_named("law_is_target")
    subject = verifier_subject(verify, "one seed", (1,))
    assert run_check(subject, law, Checklist((law,))).status is Status.REFUTED


def restoring(p, q, draft_tokens):
    """Wrong: the state of before the coins is restored for the replacement."""
    before = torch.get_rng_state()
    coins = torch.rand(len(draft_tokens), dtype=torch.float64)
    for i, token in enumerate(draft_tokens.tolist()):
        if coins[i] >= p[i, token] / q[i, token]:
            torch.set_rng_state(before)
            weights = torch.clamp(p[i] - q[i], min=0).cumsum(0)
            uniform = torch.rand(1, dtype=torch.float64) * weights[-1]
            return [*draft_tokens[:i].tolist(), int(torch.searchsorted(weights, uniform, right=True))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@pytest.mark.thorough
def test_a_restored_state_is_named():
    found = verdict_of(restoring)
    coin, lookup = line_of(restoring, "coins = torch.rand"), line_of(restoring, "uniform = torch.rand")
    assert found.status is Status.REFUTED
    assert found.statement == f"torch.rand at {coin} and torch.rand at {lookup} draw from one state of a generator"


@pytest.mark.thorough
def test_a_refutation_is_found_again_on_its_case_alone():
    subject = verifier_subject(verifiers.one_uniform, "one_uniform", (2,))
    case = next(
        case
        for case in CHECK.cases(subject)
        if run_case(case, CHECK, Checklist(()).conditions).status is Status.REFUTED
    )
    assert run_case(case, CHECK, Checklist(()).conditions).statement == verdict_of(verifiers.one_uniform).statement


# Verifiers that do not


def scan(p, q, draft_tokens):
    """Coins in one comparison, the replacement by a scan of the cumulative sum on one line."""
    drafted = torch.arange(len(draft_tokens))
    accepted = (torch.rand(len(draft_tokens)) < p[drafted, draft_tokens] / q[drafted, draft_tokens]).tolist()
    count = accepted.index(0) if 0 in accepted else len(accepted)
    weights = torch.clamp(p[count] - q[count], min=0) if count < len(draft_tokens) else p[count]
    cumulative, uniform = weights.cumsum(0) / weights.sum(), torch.rand((), dtype=torch.float64)
    last = int(torch.nonzero(weights).max())
    return [*draft_tokens[:count].tolist(), next((t for t in range(last) if uniform < cumulative[t]), last)]


def recycled(p, q, draft_tokens):
    """What is left of an accepting coin is as good as a new one: u / r given u < r."""
    uniform = torch.rand((), dtype=torch.float64)
    for i, token in enumerate(draft_tokens.tolist()):
        ratio = min(1.0, float(p[i, token] / q[i, token]))
        if not uniform < ratio:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(torch.clamp(p[i] - q[i], min=0), 1))]
        uniform = uniform / ratio
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


different_seeds = with_two_generators((3, 4))


AFRESH = {
    "race": verifiers.race,
    "inverse_cdf": verifiers.inverse_cdf,
    "log_space": verifiers.log_space,
    "in_numpy": verifiers.in_numpy,
    "different_seeds": different_seeds,
    "scan": scan,
    "recycled": recycled,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", AFRESH)
def test_a_verifier_that_draws_afresh_holds(name):
    """Each in one of the three scenarios, the next one in another; in all of them with the profile "thorough"."""
    subject = verifier_subject(AFRESH[name], name, (2,))
    scenarios = tuple(case.situation.scenario for case in CHECK.cases(subject))
    assert len(scenarios) == 3
    chosen = share_of(scenarios, list(AFRESH).index(name), 3)
    found = run_check(subject._replace(scenarios=chosen), CHECK, Checklist((CHECK,)))
    assert found.status is Status.HOLDS
    assert re.fullmatch(r"nothing is used twice in \d+ draws", found.statement)
    assert found.figures["cases"] == len(chosen)


# Whom it says nothing of, and an engine


def test_a_subject_that_asks_for_its_draws_by_name_is_not_examined():
    from reference import ALGORITHMS

    assert "no draw is intercepted" in CHECK.obstacle(algorithm_subject(ALGORITHMS[0]))
    assert CHECK.obstacle(Subject("engine", "", frozenset(), situations=(assisted(),))) is None


def assisted():
    return engine_program(PROGRAMS[0], assisted_engine)


def block_of(program):
    return DecodeBlock(program.name, program.open, program.law, whole=True)


@pytest.mark.thorough
def test_assisted_generation_uses_nothing_twice():
    found = examine(block_of(assisted()), Conditions())
    assert not found.failed
    assert found.figures["runs"] > 4**2, "all pairs of drafts"


def test_one_uniform_for_all_positions_planted_in_the_library_is_named(monkeypatch):
    right, wrong = "torch.rand_like(probability_ratio)", "torch.rand_like(probability_ratio[..., :1])"
    source = inspect.getsource(utils._speculative_sampling)
    assert right in source
    namespace = dict(vars(utils))
    exec(compile(source.replace(right, wrong), "planted_sampling.py", "exec"), namespace)
    monkeypatch.setattr(utils, "_speculative_sampling", namespace["_speculative_sampling"])
    found = examine(block_of(assisted()), Conditions())
    assert found.failed
    place = f"planted_sampling.py:{1 + source[: source.index('is_accepted = ')].count(chr(10))}"
    assert f"decides more than one thing at {place}" in found.statement
