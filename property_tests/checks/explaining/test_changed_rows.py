"""A row of p or q that is changed has a name: a temperature, a truncation, another place, a threshold, a kept share."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.checks.explaining import engine_counterexamples
from specverify.checks.explaining.changed_rows import changed_row
from specverify.checks.explaining.engine_counterexamples import program_counterexample
from specverify.checks.explaining.round_faults import fault_of_rounds
from specverify.laws.enumeration import program_law
from specverify.laws.scenarios import Scenario
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import InScenario
from specverify.subjects.verifier import verifier_subject

RNG = np.random.default_rng()
SMALL = Scenario("generic", 5, (0,), 3, seed=2)


def drawn(row):
    return int(RNG.choice(len(row), p=np.asarray(row, float) / np.sum(row)))


def norm(row):
    return row / row.sum()


def tempered(row, temperature=0.8):
    return norm(row ** (1 / temperature))


def largest(row, count=2):
    return norm(np.where(row >= np.sort(row)[-min(count, len(row))], row, 0))


def residual(p, q):
    rest = np.maximum(p - q, 0)
    return norm(rest) if rest.any() else p


def right(p, q, token):
    return min(1.0, p[token] / q[token])


def verifier(accept=right, replace=lambda p, q, token: residual(p, q)):
    def verify(p, q, draft_tokens):
        tokens = [int(token) for token in draft_tokens]
        for i, token in enumerate(tokens):
            if RNG.random() >= accept(p[i], q[i], token):
                return [*tokens[:i], drawn(replace(p[i], q[i], token))]
        return [*tokens, drawn(p[-1])]

    return verify


def sentence_of(verify, gamma=1):
    return fault_of_rounds(InScenario(verifier_subject(verify, "it", (gamma,)).variants[0], SMALL, False)).sentence


def of_mean(p, q, draft_tokens):
    mean = p.mean(axis=0)
    for i, token in enumerate(map(int, draft_tokens)):
        if RNG.random() >= right(mean, q[i], token):
            return [*map(int, draft_tokens[:i]), drawn(residual(p[i], q[i]))]
    return [*map(int, draft_tokens), drawn(p[-1])]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"accept": lambda p, q, x: right(tempered(p), q, x)},
            "with p at a further temperature of 0.8 in place of p, expected min",
        ),
        (
            {"accept": lambda p, q, x: right(p, tempered(q), x)},
            "with q at a further temperature of 0.8 in place of q, expected min",
        ),
        (
            {"accept": lambda p, q, x: right(largest(p), q, x)},
            "with p cut to its 2 largest entries (as by top-k or top-p) in place of p, expected min(1, p/q)",
        ),
        (
            {"replace": lambda p, q, x: residual(p, largest(q))},
            "norm(max(p - q, 0)) with q cut to its 2 largest entries (as by top-k or top-p) in place of q, expected",
        ),
        (
            {"replace": lambda p, q, x: np.sort(residual(p, q))[::-1]},
            "the residual sorted from the largest entry to the smallest: the index in this order is taken for the to",
        ),
        (
            {"replace": lambda p, q, x: 0.7 * residual(p, q) + 0.3 * np.eye(len(p))[x]},
            "norm(max(p - q, 0)), mixed with a share 0.3 of the rejected draft itself, expected norm(max(p - q, 0))",
        ),
        (
            {"accept": lambda p, q, x: 0.2 + 0.8 * right(p, q, x)},
            "with probability 0.2 + (1 - 0.2) min(1, p/q): a share 0.2 of the drafts is kept without a test, expected",
        ),
        ({"accept": lambda p, q, x: 0.9 * right(p, q, x)}, "with probability 0.9 min(1, p/q): also a draft that pass"),
        (
            {"accept": lambda p, q, x: 1 if p[x] >= q[x] else p[x]},
            "drafts are accepted whenever p >= q, and else with probability p, without the division by q, expected",
        ),
        ({"accept": lambda p, q, x: p[x] / q[x] >= 0.5}, "drafts are accepted without a random number, if p/q is at"),
        ({"accept": lambda p, q, x: right(p, q, x) * (p[x] >= 0.2)}, "drafts are accepted never if p is below c, with"),
    ],
)
def test_a_changed_row_is_named(wrong, said):
    assert said in sentence_of(verifier(**wrong))


def test_the_right_rule_has_no_fault():
    assert fault_of_rounds(InScenario(verifier_subject(verifier(), "it", (1,)).variants[0], SMALL, False)) is None


def test_a_mean_over_positions_is_named():
    assert "the mean of the rows of p at all positions in place of p" in sentence_of(of_mean, 2)


def of_largest(p, q, draft_tokens):
    """Cut p and q to their two largest entries before anything is tested or drawn."""
    p, q = [largest(row) for row in p], [largest(row) for row in q]
    tokens = [int(token) for token in draft_tokens]
    for i, token in enumerate(tokens):
        if RNG.random() * q[i][token] >= p[i][token]:
            return [*tokens[:i], drawn(residual(p[i], q[i]))]
    return [*tokens, drawn(p[-1])]


def test_a_change_of_all_parts_is_named_once():
    """A draft that is cut off has p = q = 0, and its test is 0 < 0."""
    sentence = sentence_of(of_largest)
    largest_of = "{} cut to its 2 largest entries (as by top-k or top-p)"
    assert sentence.startswith(
        f"the rounds use {largest_of.format('p')} and {largest_of.format('q')} in place of p and q"
    )


def test_a_row_that_no_change_or_more_than_one_gives_has_no_name():
    p = (0.5, 0.3, 0.2)
    assert changed_row(tempered(np.array(p)).tolist(), {"p": p}, 1e-9) == "p at a further temperature of 0.8"
    assert changed_row((0.4, 0.4, 0.2), {"p": p}, 1e-9) == ""
    assert changed_row((0.5, 0.3, 0.2), {"p": p, "q": p}, 1e-9) == ""
    assert changed_row((0.6, 0.4), {"p": (0.6, 0.4)}, 1e-9) == ""


def engine(scenario, accept=right, from_q=False):
    def decode(prompt):
        text = tuple(prompt)
        while len(text) < len(prompt) + scenario.horizon:
            p, q = scenario.target(text), scenario.draft(text)
            token = drawn(q)
            if RNG.random() >= accept(p, q, token):
                token = drawn(q if from_q else residual(p, q))
            text += (token,)
        return text[len(prompt) :]

    return Made(decode)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"accept": lambda p, q, x: right(tempered(p), q, x)},
            "min(1, p/q) with p at a further temperature of 0.8 in place of p",
        ),
        ({"accept": lambda p, q, x: p[x] >= q[x]}, "drafts are accepted whenever p >= q, and never else, expected"),
        ({"from_q": True}, "a rejected draft is replaced by a draw from q, expected norm(max(p - q, 0)): in place of"),
    ],
)
def test_a_setting_of_its_own_tells_the_rules_of_an_engine_apart(monkeypatch, wrong, said):
    monkeypatch.setattr(engine_counterexamples, "EVIDENCE_OF_PROBE", 12)
    program = made_subject(partial(engine, **wrong), "it").programs[0].probe()
    with program.open() as run:
        example = program_counterexample(program, run, program_law(run).probabilities, program.law())
    assert said in example.fault
    assert example.sure


def test_a_changed_p_is_the_cause_in_this_setting(monkeypatch):
    """Where p has two open entries, the largest one alone could be an argmax too."""
    monkeypatch.setattr(engine_counterexamples, "EVIDENCE_OF_PROBE", 12)

    def cut(scenario):
        return engine(scenario._replace(target=lambda text: largest(np.asarray(scenario.target(text)))))

    def make(scenario):
        return Made(cut(scenario).speculative, engine(scenario).speculative)

    program = made_subject(make, "it").programs[0].probe()
    with program.open() as run:
        example = program_counterexample(program, run, program_law(run).probabilities, program.law())
    assert example.fault.startswith("every new token has the law of p cut to its 2 largest entries (as by top-k")
    assert example.sure


def test_a_right_engine_has_the_law_of_the_target_there():
    program = made_subject(engine, "it").programs[0].probe()
    with program.open() as run:
        law = program_law(run).probabilities
    assert all(abs(law.get(text, 0) - mass) < 1e-9 for text, mass in program.law().items())


def one_token_after_the_end(scenario):
    def decode(prompt):
        text = tuple(prompt)
        while len(text) < len(prompt) + scenario.horizon and scenario.eos not in text[len(prompt) : -1]:
            text += (drawn(scenario.target(text)),)
        return text[len(prompt) :]

    return Made(decode, stops=True)


def test_a_text_that_continues_after_its_end_is_told_before_any_rule_of_rounds():
    programs = made_subject(one_token_after_the_end, "it").programs
    program = next(one for one in programs if one.name.startswith("generic-v3") and "-e" in one.name)
    with program.open() as run:
        example = program_counterexample(program, run, program_law(run).probabilities, program.law())
    assert example.fault.startswith("the text continues with token")
    assert example.sure


@pytest.mark.parametrize(
    ("gamma", "late"), [(2, ", or the row of q one position late (at the last draft its own row)"), (3, "")]
)
def test_the_row_of_the_last_draft_is_named_with_what_equals_it(gamma, late):
    def verify(p, q, draft_tokens):
        return verifier()(p, np.repeat(q[-1:], len(q), axis=0), draft_tokens)

    said = f"the rounds use the row of q at the last draft{late} in place of q"
    assert said in sentence_of(verify, gamma)
