"""All calls of one decode are one stream: a generator that is started over in each call is named by its line."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.mutants.numpy_verifiers import batch, decided, of_logits, one_row, owed, ragged, softmax_rows
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import verifier_subject_of
from specverify.subjects.forms import form_of_chains
from specverify.subjects.made_engine import made_subject

LAW, INDEPENDENT, ITSELF = (
    check_named(name) for name in ("law_is_target", "draws_are_independent", "program_is_its_draws")
)


def verdict_of(verify, check=INDEPENDENT, form=None):
    subject = verifier_subject_of(verify, "verify", form_of_chains(form), (2,))
    return run_check(subject, check, Checklist((check,)))


def generator_anew(p, q, draft_tokens):
    return decided(np.random.default_rng(0), p, q, draft_tokens.tolist())


def legacy_anew(p, q, draft_tokens):
    return decided(np.random.RandomState(0), p, q, draft_tokens.tolist())


def seed_again(p, q, draft_tokens):
    np.random.seed(0)
    return decided(np.random, p, q, draft_tokens.tolist())


def standard_seed_again(p, q, draft_tokens):
    random.seed(0)
    for i, token in enumerate(draft_tokens.tolist()):
        if not random.random() < p[i, token] / q[i, token]:
            return [*draft_tokens[:i], random.choices(range(p.shape[1]), owed(p[i], q[i]))[0]]
    return [*draft_tokens, random.choices(range(p.shape[1]), p[-1])[0]]


def rows_anew(p, q, draft_tokens, lengths):
    rng = np.random.default_rng(0)
    return [decided(rng, p[row], q[row], draft_tokens[row, :n].tolist()) for row, n in enumerate(lengths)]


def logits_anew(target_logits, draft_logits, draft_tokens, temperature):
    p, q = (softmax_rows(rows, temperature) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(0), p, q, draft_tokens.tolist())


WRONG = (generator_anew, legacy_anew, seed_again, standard_seed_again, rows_anew, logits_anew)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("verify", WRONG, ids=lambda verify: verify.__name__)
def test_a_stream_that_begins_again_in_each_call_is_named(verify):
    subject = verifier_subject_of(verify, "verify", None, (2,))
    certain = tuple(scenario for scenario in subject.scenarios if scenario.shape == "point_draft")  # it has few paths
    verdict = run_check(subject._replace(scenarios=certain), INDEPENDENT, Checklist((INDEPENDENT,)))
    assert verdict.status is Status.REFUTED
    assert "one state of" in verdict.statement
    assert ".py:" in verdict.statement


def test_no_law_of_rounds_that_are_put_together_shows_it():
    """Each round by itself is right, and so is what is enumerated round by round: the stream alone tells."""
    few = verifier_subject_of(generator_anew, "verify", None, (2,))
    few = few._replace(scenarios=few.scenarios[::9])
    for check in (LAW, ITSELF):
        assert run_check(few, check, Checklist((check,))).status is Status.HOLDS


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(("verify", "form"), [(one_row, None), (batch, "batched"), (ragged, None), (of_logits, None)])
def test_a_fresh_generator_in_each_call_holds(verify, form):
    subject = verifier_subject_of(verify, "verify", form_of_chains(form), (2,))
    subject = subject._replace(scenarios=tuple(item for item in subject.scenarios if item.vocabulary == 3))
    assert run_check(subject, INDEPENDENT, Checklist((INDEPENDENT,))).status is Status.HOLDS


@pytest.mark.thorough
def test_a_decode_ends_where_a_token_is_none():
    """The rows behind it belong to no text, and the tables that would make them draw."""

    def verify(p, q, draft_tokens):
        found = one_row(p, q, draft_tokens)
        return [*found[:-1], found[-1] if np.random.default_rng().random() < 0.5 else p.shape[1]]

    assert verdict_of(verify).status is Status.HOLDS
    assert verdict_of(verify, LAW).status is Status.REFUTED


RNG = np.random.default_rng()


def drawing(token):
    """Return what makes engines that decode token by token; ``noise`` is what a text has drawn."""

    def make(scenario):
        def decode():
            text, noise = list(scenario.prompt), []
            for place in range(scenario.horizon):
                text.append(token(scenario, text, place, noise))
            return text[len(scenario.prompt) :]

        return decode

    return make


def decided_again(scenario, text, place, noise):
    """As in Jacobi decoding: the noise of a place decides it behind a guess of the token before, and again."""
    noise.append(RNG.gumbel(size=scenario.vocabulary))
    with np.errstate(divide="ignore"):
        rows = [np.log(scenario.target(tuple(before))) for before in ([*text[:-1], 0], text)]
    return [int(np.argmax(row + noise[place])) for row in rows][-1]


def of_one_coin(scenario, text, place, noise):
    """Wrong: the coin of one token is looked up for the next."""
    if place % 2 == 0:
        noise.append(RNG.random())
    return int(np.searchsorted(np.cumsum(scenario.target(tuple(text))), noise[-1]))


def asked_of_engine(token):
    subject = made_subject(drawing(token), "an engine")
    return run_check(subject.with_programs(subject.programs[1:2]), INDEPENDENT, Checklist((INDEPENDENT,)))


def test_noise_of_a_place_that_decides_there_again_holds_with_a_note():
    """The engine is made for the scenario, so its right law decides."""
    verdict = asked_of_engine(decided_again)
    assert verdict.status is Status.HOLDS
    assert any("decides more than one thing" in note for note in verdict.figures["notes"])


def test_a_coin_of_two_places_is():
    assert asked_of_engine(of_one_coin).status is Status.REFUTED
