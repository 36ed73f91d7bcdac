"""Engines with faults that other causes could explain too: the message names the one that the draws show."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from property_tests.checks.explaining.test_round_faults import choose
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.reference import accept_probability, flip, residual
from specverify.report.prose import failure
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import decode_subject
from specverify.testing import SpeculationRefuted, check_engine
from test_support.subjects.engine_laws import probe_verdict

LENGTH = 3
TARGET = ((0.2, 0.5, 0.3), (0.3, 0.3, 0.4), (0.6, 0.3, 0.1))
DRAFT = ((0.5, 0.4, 0.1), (0.5, 0.2, 0.3), (0.2, 0.4, 0.4))


def plain(last=0, length=LENGTH):
    new = [last]
    for _ in range(length):
        new.append(choose(TARGET[new[-1]]))
    return new[1:]


def message(fast, slow=plain):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(fast, lambda: slow(length=LENGTH), checks=["law_is_target"])
    return str(raised.value)


def positive(p, q):
    return [max(a - b, 0) for a, b in zip(p, q, strict=True)]


def speculative(draw=choose, replace=lambda p, q, drawn: choose(positive(p, q)), q_of=lambda rows, i: rows[i]):
    """Return new tokens of an engine with two drafts a round, which ``draw`` draws.

    ``replace(p, q, i)`` returns the token in place of draft ``i``, and ``q_of(rows, i)`` the row of q in its test.
    """
    new = [0]
    while len(new) <= LENGTH:
        text = list(new)
        for _ in range(min(2, LENGTH - len(new))):
            text.append(draw(DRAFT[text[-1]]))
        drafts, rows = text[len(new) :], [DRAFT[last] for last in text[len(new) - 1 : -1]]
        for i, x in enumerate(drafts):
            p, q = TARGET[new[-1]], q_of(rows, i)
            if random.random() >= p[x] / q[x]:
                new.append(replace(p, q, i))
                break
            new.append(x)
        else:
            new.append(choose(TARGET[new[-1]]))
    return new[1:]


def by_sums(row):
    """Return the first token whose cumulative sum exceeds a uniform, the last one if none does."""
    uniform, total = random.random(), 0.0
    for token, mass in enumerate(row):
        total += mass
        if uniform < total:
            return token
    return max(token for token, mass in enumerate(row) if mass > 0)


def test_a_residual_that_is_looked_up_undivided_is_no_wrong_row_of_p():
    """Its sums give as many intervals as there are tokens, but two of them belong to one token."""
    said = message(lambda: speculative(replace=lambda p, q, i: by_sums(positive(p, q))))
    first = said.splitlines()[0]
    assert "max(p - q, 0) without its division by the sum: what is missing to 1 goes to the last token" in first
    assert "p or q is wrong" not in said


def gumbel(size):
    return np.random.gumbel(size=size)  # noqa: NPY002 - as it is written by many


def argmax_of(row, noise):
    return int(np.argmax(np.log(row) + noise))


def with_noise(again, scenario):
    """Return the call of an engine that draws drafts by Gumbel noise, and with ``again`` replacements by the same."""

    def call(prompt):
        text = list(prompt)
        while len(text) < len(prompt) + scenario.horizon:
            p, q, noise = scenario.target(tuple(text)), scenario.draft(tuple(text)), gumbel(len(scenario.target((0,))))
            with np.errstate(divide="ignore"):
                token = argmax_of(q, noise)
                if np.random.random() >= p[token] / q[token]:  # noqa: NPY002 - as above
                    token = argmax_of(np.array(positive(p, q)) if again else p, noise if again else gumbel(len(p)))
            text.append(token)
        return text[len(prompt) :]

    return call


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("again", [True, False], ids=["the same noise", "p by fresh noise"])
def test_a_replacement_by_the_noise_of_the_draft_is_told_by_its_line(again):
    verdict = probe_verdict(lambda scenario: with_noise(again, scenario))
    assert verdict.status is Status.REFUTED
    assert ("which drew the draft too" in verdict.counterexample.fault) == again
    assert "p is not the target's row" not in failure(verdict)


def test_a_draft_that_is_tested_with_q_of_the_last_draft_is_named():
    first = message(lambda: speculative(q_of=lambda rows, i: rows[-1])).splitlines()[0]
    assert "drafts are accepted by the row of q of the last draft, expected min(1, p/q): draft 1, token" in first


def row_of(held):
    """Return p after all tokens ``held``, of which the last ones count most."""
    one = 1 / (1 + np.exp(-0.1 - 1.5 * sum((2 * token - 1) * 0.6**i for i, token in enumerate(reversed(held)))))
    return 1 - one, one


def in_turns(new, turns, number, *, keeps):
    """Decode ``number`` tokens in each of two turns; ``new(text, cache)`` returns the tokens of a round.

    ``cache`` has the tokens that the target has read. At the end of a turn it keeps tokens that are cut off if
    ``keeps``.
    """
    text, cache, said = [1], [], []
    for _ in range(turns):
        end = len(text) + number
        while len(text) < end:
            cache += text[len(cache) :]
            kept = new(text, cache)
            cache += kept[:-1]
            text = (text + kept)[:end]
            cache = cache if keeps else cache[: len(text) - 1]
        said += text[-number:]
        text = [*text, 0, 0]
    return said


def pick(row):
    return random.choices(range(2), row)[0]


def of_round(text, cache):
    """Return the tokens of a round with two drafts, with the target's rows after ``cache``."""
    held = list(cache)
    drafts = [text[-1]]
    for _ in range(2):
        drafts.append(pick(SMALL[drafts[-1]]))
    for i, x in enumerate(drafts[1:]):
        p, q = row_of(held), SMALL[drafts[i]]
        if random.random() >= p[x] / q[x]:
            return [*drafts[1 : i + 1], pick([mass / sum(positive(p, q)) for mass in positive(p, q)])]
        held.append(x)
    return [*drafts[1:], pick(row_of(held))]


SMALL = ((0.7, 0.3), (0.25, 0.75))


@pytest.mark.thorough
def test_a_token_that_is_cut_off_at_the_end_of_a_turn_is_no_draft():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(
            lambda: in_turns(of_round, 2, 2, keeps=True),
            lambda: in_turns(lambda text, cache: [pick(row_of(cache))], 2, 2, keeps=False),
            checks=["law_is_target"],
        )
    assert "left out" not in str(raised.value)


def best_first(by_length):
    """Return new tokens of an engine without drafts that computes the next row ahead, for the most probable token.

    With ``by_length``, the row is used for every text of the same length.
    """
    new, ahead = [0], {}
    while len(new) <= LENGTH:
        row = ahead.get(len(new) if by_length else tuple(new), PAIRS[tuple(new[-2:])])
        best = [*new, max(range(3), key=row.__getitem__)]
        ahead[len(best) if by_length else tuple(best)] = PAIRS[tuple(best[-2:])]
        new.append(choose(row))
    return new[1:]


PAIRS = {(0,): (0.5, 0.3, 0.2)} | {
    (one, other): tuple(mass / 37 for mass in (7 + 3 * one + other, 20 - 2 * one - 3 * other, 10 - one + 2 * other))
    for one in range(3)
    for other in range(3)
}


def by_pairs(length):
    new = [0]
    for _ in range(length):
        new.append(choose(PAIRS[tuple(new[-2:])]))
    return new[1:]


def test_the_text_whose_row_is_used_is_named():
    first = message(lambda: best_first(by_length=True), by_pairs).splitlines()[0]
    assert "new token 2 is drawn from (" in first
    assert ") = p after new token 0 at test_round_faults.py:" in first


def overwritten():
    """Return new tokens of an engine that subtracts q from its kept row of p when it rejects a draft."""
    rows, new = {0: [0.45, 0.55], 1: [0.65, 0.35]}, [0]
    while len(new) <= 4:
        drafts = [new[-1]]
        for _ in range(min(2, 4 - len(new))):
            drafts.append(by_sums(FEW[drafts[-1]]))
        for x in drafts[1:]:
            p, q = rows[new[-1]], FEW[new[-1]]
            if random.random() * q[x] >= p[x]:
                for token in range(2):
                    p[token] = max(p[token] - q[token], 0)
                new.append(by_sums([mass / sum(p) for mass in p]) if any(p) else 1)
                break
            new.append(x)
        else:
            p = rows[new[-1]]
            new.append(by_sums([mass / sum(p) for mass in p]) if any(p) else 1)
    return new[1:5]


FEW = ((0.75, 0.25), (0.3, 0.7))


def of_two():
    new = [0]
    for _ in range(4):
        new.append(by_sums(((0.45, 0.55), (0.65, 0.35))[new[-1]]))
    return new[1:]


def test_the_end_of_an_earlier_test_is_named_that_explains_the_most_texts():
    """What follows a rejection also follows the outcome of a draw by which a rejected draft was drawn."""
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(overwritten, of_two, checks=["law_is_target"])
    test = line_of(overwritten, "random.random")
    said = f"; wrong only after a failed test (u >= its bound, {test})"
    assert str(raised.value).splitlines()[0].endswith(said)


def line_of(function, part):
    lines = Path(function.__code__.co_filename).read_text().splitlines()
    number = next(n for n in range(function.__code__.co_firstlineno, len(lines)) if part in lines[n])
    return f"test_causes_of_engines.py:{number + 1}"


def two_candidates(draws, target, draft, tokens, again):
    """Test two drafts of one position; with ``again``, the second residual is that of p once more."""
    q = draft(tokens)
    candidates = [draws.categorical(q, ("draft", k)) for k in range(2)]
    left = target(tokens)
    for k, token in enumerate(candidates):
        if flip(draws, accept_probability(left, q, token), ("accept", k)):
            return token, draws.categorical(target((*tokens, token)), ("bonus",))
        left = residual(target(tokens) if again else left, q)
    return (draws.categorical(left, ("residual",)),)


def test_a_second_candidate_is_no_draft_that_is_left_out():
    wrong, right = (
        decode_subject(lambda *given, again=again: two_candidates(*given, again=again), "two candidates")
        for again in (True, False)
    )
    [few] = [scenario for scenario in wrong.scenarios if scenario.name == "generic-v4-p0310-h4-s3"]
    wrong, right = (
        run_check(subject._replace(scenarios=(few,), deep=tuple), check_named("law_is_target"), Checklist(()))
        for subject in (wrong, right)
    )
    assert "the residual after a second rejected candidate is max(p - q, 0) again" in wrong.counterexample.fault
    assert "left out" not in failure(wrong)
    assert right.status is Status.HOLDS
