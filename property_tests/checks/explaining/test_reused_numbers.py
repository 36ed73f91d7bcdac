"""Random numbers that a program uses twice, as the cause of a wrong law."""

from __future__ import annotations

import re

import numpy as np

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.checks.explaining.reused_numbers import number_used_twice
from specverify.intercept.everywhere import answered_everywhere
from specverify.run.verify import Checklist, run_check
from specverify.subjects.forms import BATCHED
from specverify.subjects.verifier import verifier_subject
from test_support.subjects.engine_laws import probe_verdict

RNG = np.random.default_rng(0)


def winners(weights, noise):
    """Return the winner of a race for each row of ``weights``."""
    with np.errstate(divide="ignore"):
        return (noise / weights).argmin(1)


def verify(p, q, draft_tokens, noise_of):
    """Verify a batch; ``noise_of(rows, vocabulary)`` draws the noise of the races for the last tokens."""
    rows, gamma = draft_tokens.shape
    each, out = np.arange(rows), np.full((rows, gamma + 1), -1)
    kept = np.ones(rows, dtype=bool)
    count = np.zeros(rows, dtype=int)
    for i in range(gamma):
        token = draft_tokens[:, i]
        kept = kept & (RNG.random(rows) * q[each, i, token] < p[each, i, token])
        count += kept
    left = np.maximum(p[each, count] - np.where((count < gamma)[:, None], q[each, np.minimum(count, gamma - 1)], 0), 0)
    left = np.where(left.sum(1, keepdims=True) > 0, left, p[each, count])
    last = winners(left, noise_of(rows, p.shape[2]))
    for row in range(rows):
        out[row, : count[row]] = draft_tokens[row, : count[row]]
        out[row, count[row]] = last[row]
    return out


def of_each_row(p, q, draft_tokens):
    return verify(p, q, draft_tokens, lambda rows, size: RNG.exponential(size=(rows, size)))


def of_all_rows(p, q, draft_tokens):
    return verify(p, q, draft_tokens, lambda rows, size: np.tile(RNG.exponential(size=size), (rows, 1)))


def in_one_scenario(verifier):
    """Return the verdict on the independence of the rows of a batch in the first scenario and in two calls."""
    subject = verifier_subject(verifier, "rows", form=BATCHED)
    few = subject._replace(scenarios=subject.scenarios[:1])
    return run_check(few, check_named("rows_are_independent"), Checklist((), quick=True))


def test_rows_with_noise_of_their_own_are_independent():
    assert in_one_scenario(of_each_row).status is Status.HOLDS


def test_noise_that_all_rows_share_is_named_as_the_cause():
    verdict = in_one_scenario(of_all_rows)
    first, second, third = verdict.counterexample.fault, *verdict.counterexample.rows
    assert first.startswith("the rows share random numbers: one draw (test_reused_numbers.py:")
    assert second.startswith("the uniform drawn by np.random.Generator.exponential at test_reused_numbers.py:")
    assert third.startswith("the rows are not independent: each alone is right")


def opened(program):
    def run(draws):
        with answered_everywhere(draws):
            return program()

    return run


def test_a_number_that_decides_once_is_no_cause():
    assert not number_used_twice(opened(lambda: (bool(RNG.random() < 0.5), bool(RNG.random() < 0.3))))


def test_a_refusal_does_not_lose_what_was_found_before():
    def program():
        noise = RNG.exponential(size=2)
        first = (noise / [0.5, 0.5]).argmin(), (noise / [0.2, 0.8]).argmin()
        return first, hash(RNG.random())

    assert "decides more than one thing" in number_used_twice(opened(program))


def decoding(kept):
    """Return an engine of two drafts a round; of the coins of a round, ``kept`` are used again."""

    def make(scenario):
        def decode(prompt):
            text, done = list(prompt), 0
            coins = RNG.random(3 * scenario.horizon)
            while (left := len(prompt) + scenario.horizon - len(text)) > 0:
                drafts, q = [], []
                for _ in range(min(2, left - 1)):
                    q.append(np.asarray(scenario.draft((*text, *drafts))))
                    drafts.append(int(RNG.choice(len(q[-1]), p=q[-1])))
                p = [np.asarray(scenario.target((*text, *drafts[:i]))) for i in range(len(drafts) + 1)]
                n = 0
                while n < len(drafts) and coins[done + n] * q[n][drafts[n]] < p[n][drafts[n]]:
                    n += 1
                done += max(len(drafts) - kept, 0)
                row = np.maximum(p[n] - q[n], 0) if n < len(drafts) else p[n]
                text += [*drafts[:n], int(RNG.choice(len(row), p=row / row.sum()))]
            return text[len(prompt) :]

        return decode

    return make


def test_a_coin_of_the_round_before_is_named_before_what_the_paths_show():
    wrong, right = (probe_verdict(decoding(kept)) for kept in (1, 0))
    assert right.status is Status.HOLDS
    assert re.match(
        r"random numbers are used twice: the uniform drawn by np\.random\.Generator\.random at \S+:\d+ decides",
        wrong.counterexample.fault,
    )
