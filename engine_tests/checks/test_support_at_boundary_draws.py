"""Rejection samplers of torch and NumPy where a random number is at its end, and where p and q differ by rounding.

The samplers are written as projects write theirs (``samplers``); the right ones hold under every exact check.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.checks.verifier_calls import CalledVerifier, rounds_after
from specverify.laws.rounded_tables import ROUNDED
from specverify.laws.scenarios import ROUNDING_SCENARIOS
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains
from specverify.testing import check_verifier
from test_support.verifiers import samplers

CHECK = check_named("support_at_boundary_draws")
EVERY_EDGE = Checklist((CHECK,), Conditions(edge=0.0))
"""Planted faults are found whatever their probability."""


def verdict_of(verify, form=None, scenarios=None):
    subject = verifier_subject_of(verify, "verify", form_of_chains(form))
    return run_check(subject if scenarios is None else subject._replace(scenarios=scenarios), CHECK, EVERY_EDGE)


def float64_coins(p):
    return torch.rand((), dtype=torch.float64)


def half_coins(p):
    return torch.rand((), dtype=torch.bfloat16)


RIGHT = {
    "loop": samplers.loop(),
    "loop, coins of float64": samplers.loop(coin=float64_coins),
    "loop, coins of bfloat16": samplers.loop(coin=half_coins),
    "at once": samplers.at_once(),
    "first rejection": samplers.first_rejection(),
    "padded batch": samplers.padded_batch(),
    "random": samplers.standard_library,
    "logits": samplers.of_logits(),
    "lookup": samplers.by_lookup(samplers.lookup),
    "Gumbel noise of exponentials": samplers.by_noise(samplers.gumbel_of_exponentials),
    "NumPy": samplers.numpy_loop(),
    "NumPy, race of what is possible": samplers.numpy_loop(draw=samplers.race_of_possible),
    "NumPy, Gumbel noise": samplers.numpy_loop(draw=samplers.gumbel),
    "NumPy, legacy functions": samplers.legacy,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sampler_holds_at_every_end(name):
    verdict = verdict_of(RIGHT[name])
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["cases"] >= len(ROUNDING_SCENARIOS) + 8


@pytest.mark.thorough
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_sampler_holds_under_every_exact_check(name):
    """A coin of bfloat16 is one of 256 numbers: then the law is told to be off by what that may do."""
    verdicts = check_verifier(RIGHT[name], gammas=(2,), on_fail=None)
    coarse = {"law_is_target", "acceptance_is_optimal", "horizon_is_respected"} if "bfloat16" in name else set()
    assert {verdict.check for verdict in verdicts if verdict.status is not Status.HOLDS} <= coarse
    unknown = [verdict.statement for verdict in verdicts if verdict.status is Status.UNKNOWN]
    assert all(re.search("may be rounding|as good as one of them", statement) for statement in unknown), unknown
    assert not any(verdict.status is Status.REFUTED for verdict in verdicts)
    assert {"support_at_boundary_draws", "inputs_unchanged", "outputs_are_fresh"} <= {item.check for item in verdicts}


FORMS = {
    "loop": samplers.loop,
    "at once": samplers.at_once,
    "first rejection": samplers.first_rejection,
    "padded batch": samplers.padded_batch,
    "logits": samplers.of_logits,
}


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("form", FORMS)
def test_an_inclusive_coin_is_refuted_in_every_form_with_its_line(form):
    verdict = verdict_of(FORMS[form](keeps=samplers.not_above))
    assert verdict.status is Status.REFUTED
    assert "has target probability 0" in verdict.statement
    assert "at samplers.py:" in verdict.statement
    assert "gives 0.0: at most once in " in verdict.statement


@pytest.mark.thorough
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "residual", [samplers.divided, samplers.floored, samplers.divided_in_float32], ids=lambda f: f.__name__
)
def test_an_empty_residual_is_refuted_in_every_form(form, residual):
    """On rows that rounding alone sets apart; on all others the same sampler holds."""
    wrong = FORMS[form](residual=residual)
    verdict = verdict_of(wrong, scenarios=())
    assert verdict.status is Status.REFUTED
    assert "gives 0.99999" in verdict.statement
    let = verdict.counterexample.let
    assert any("   q = (0, " in line for line in let)
    assert any(line.startswith("drafted (") for line in let)


@pytest.mark.thorough
def test_an_empty_residual_is_an_error_or_the_forbidden_first_token():
    """``torch.multinomial`` refuses NaN; a race over NaN is won by the first, which is token 0."""
    refused = verdict_of(samplers.loop(residual=samplers.divided), scenarios=())
    assert refused.statement.startswith("it raises RuntimeError: probability tensor contains")
    won = verdict_of(samplers.first_rejection(residual=samplers.divided), scenarios=())
    assert won.statement.startswith("(0,) comes out: token 0 has target probability 0, at position 0")


WRONG = {
    "a lookup of u itself": (samplers.by_lookup(samplers.lookup_of_u), "is outside the vocabulary of 3", "0.99999"),
    "a lookup from the left": (samplers.by_lookup(samplers.lookup_from_the_left), "target probability 0", "0.0"),
    "Gumbel noise of uniforms": (samplers.by_noise(samplers.gumbel_of_uniforms), "target probability 0", "0.0"),
    "NumPy, inclusive": (samplers.numpy_loop(keeps=samplers.not_above), "target probability 0", "0.0"),
    "NumPy, divided": (samplers.numpy_loop(residual=samplers.numpy_divided), "it raises ValueError", "0.99999"),
    "NumPy, float32 inside": (
        samplers.numpy_loop(residual=samplers.numpy_divided_in_float32),
        "it raises ValueError",
        "0.99999",
    ),
    "NumPy, race of all": (samplers.numpy_loop(draw=samplers.race_of_all), "target probability 0", "0.0"),
}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", WRONG)
def test_what_fails_at_an_end_is_refuted_by_the_number_that_does_it(name):
    verify, said, value = WRONG[name]
    verdict = verdict_of(verify)
    assert verdict.status is Status.REFUTED
    assert said in verdict.statement
    assert f"gives {value}" in verdict.statement


@pytest.mark.thorough
def test_gumbel_noise_of_uniforms_fails_where_one_token_alone_is_possible():
    """Where two are, it takes two uniforms of exactly 0 to fail: that is not held against it, nor is it seen else."""
    verify = samplers.by_noise(samplers.gumbel_of_uniforms)
    assert any(line.endswith("p = (0, 0, 1)") for line in verdict_of(verify).counterexample.let)
    subject = verifier_subject_of(verify, "verify")
    two_possible = [case for case in CHECK.cases(subject) if case.situation.scenario.shape in ROUNDED]
    heres = [case.situation for case in two_possible]
    calls = [CalledVerifier(here, here.variant.intercepted) for here in heres]
    all_at_0 = [came for called in calls for came in rounds_after(called, called.situation.prompt, 0.0)]
    assert any(0 in came.new for came in all_at_0)
    assert not any(case.examine(Conditions()).failed for case in two_possible)


def index_of_the_last(u, weights):
    """Wrong: the table of tokens is asked for the place behind its end."""
    return np.arange(len(weights))[samplers.lookup_of_u(u, weights)]


def test_an_index_out_of_range_is_refuted_with_the_error_and_the_rows():
    verdict = verdict_of(samplers.by_lookup(index_of_the_last))
    assert verdict.status is Status.REFUTED
    assert "it raises IndexError: index 3 is out of bounds for axis 0 with size 3" in verdict.statement
    assert any(line.startswith("after (0, 1, 0") and "q = (" in line for line in verdict.counterexample.let)


def test_float32_rows_are_given_to_those_who_take_tensors():
    """A cumulative sum of float32 ends below the largest uniform of float32; in float64 it does not."""

    def looked_up(row):
        return int(torch.searchsorted(row.cumsum(-1), torch.rand(1).to(row.dtype), right=True))

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not torch.rand(()) < p[i, token] / q[i, token]:
                return [*draft_tokens[:i].tolist(), looked_up(samplers.owed(p[i], q[i]))]
        return [*draft_tokens.tolist(), looked_up(p[-1])]

    single = tuple(scenario for scenario in ROUNDING_SCENARIOS if scenario.float32)
    assert len(single) > 2
    verdict = verdict_of(verify)
    assert verdict.status is Status.REFUTED
    assert "gives 0.9999999403953552" in verdict.statement


def nothing_at_0(p, q, draft_tokens):
    """Wrong: where the coin is 0 it emits nothing."""
    coin = torch.rand(())
    found = RIGHT["loop"](p, q, draft_tokens)
    return found if coin > 0 else []


def test_no_token_at_an_end_is_refuted_in_a_sentence():
    verdict = verdict_of(nothing_at_0)
    assert verdict.status is Status.REFUTED
    assert verdict.statement.startswith(
        "it emitted 0 tokens, expected 1 to 3: accepted drafts and one more, when torch.rand"
    )


def always_raises(p, q, draft_tokens):
    raise ZeroDivisionError("of its own" if torch.rand(()) < 0.5 else "of its own too")


def test_an_error_at_ordinary_numbers_too_is_no_refutation():
    verdict = verdict_of(always_raises)
    assert verdict.status is Status.UNUSABLE
    assert verdict.statement.startswith("ZeroDivisionError: of its own (test_support_at_boundary_draws.py:")


def test_a_token_that_is_none_whatever_is_drawn_is_refuted_here_too():
    verdict = verdict_of(lambda p, q, draft_tokens: [len(p[0])])
    assert verdict.status is Status.REFUTED
    assert verdict.statement.endswith("when no random number is at an end of its range")


def test_a_token_that_comes_out_of_an_empty_residual_is_explained_by_it():
    """Noise divided by zeros has its argmax at token 0: no error, but a token that p excludes."""

    def drawn(weights):
        return int((weights / torch.empty_like(weights).exponential_()).argmax())

    def verify(p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if torch.rand(()) * q[place, token] >= p[place, token]:
                return [*draft_tokens[:place], drawn(torch.clamp(p[place] - q[place], min=0))]
        return [*draft_tokens, drawn(p[-1])]

    verdict = verdict_of(verify, scenarios=ROUNDING_SCENARIOS)
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.fault.startswith("the residual max(p - q, 0) sums to 0, as p - q is nowhere positive")
    assert "comes out" in verdict.counterexample.fault
