"""A subject that turns out in the middle of a check to be no function of its draws: none that is later accuses it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from reference import ALGORITHMS
from specverify.base.verdict import Status
from specverify.checks import CHECKS
from specverify.checks.check import Conditions, of_names
from specverify.checks.moved_replays import Replays, replayed
from specverify.checks.program_is_its_draws import BY_NAME, LEAST, LEAST_OF_EACH, _numbers_for
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.subject import EngineProgram
from specverify.testing import check_engine, check_verifier


def found_out(*_):
    raise NotAFunctionOfItsDraws("a draw after the 3 recorded ones, expected no more")


def test_what_comes_after_has_no_law_to_compare():
    subject = algorithm_subject(ALGORITHMS[0])
    first, second = (check for check in CHECKS if check.name in {"law_is_target", "horizon_is_respected"})
    first = first._replace(examines=(of_names({"once": found_out}),))
    verdicts = list(verify_subject(subject, Checklist((first, second), quick=True)))
    assert [verdict.status for verdict in verdicts] == [Status.UNKNOWN, Status.UNKNOWN]
    assert "expected no more" in verdicts[0].statement
    assert "it is not a function of its draws" in verdicts[1].statement


def test_an_engine_that_keeps_something_from_call_to_call_is_told_what_to_do():
    """Nothing draws unseen in it; made in the call it has a law, which is the same."""

    class Engine:
        drafts = 1

        def decode(self):
            new = [random.choices(range(3), (1, 2, 1))[0] for _ in range(self.drafts)]
            self.drafts = 1 + new[-1]
            return (*new, 0)[:2]

    kept = Engine()
    law = {(0, 0): 0.25, (1, 0): 0.5, (2, 0): 0.25}
    (found,) = check_engine(kept.decode, law, checks=["program_is_its_draws"], on_fail=None)
    assert found.status is Status.UNKNOWN
    assert "seen: nothing that draws. if it keeps something from call to call, such as numbers" in found.statement
    grounds, *others = check_engine(lambda: Engine().decode(), law)
    assert all(verdict.status is Status.HOLDS for verdict in (grounds, *others))
    assert (grounds.figures["coupled_runs"], grounds.figures["fed_runs"]) == (LEAST, 3)


def test_rows_of_a_ragged_batch_may_be_lists_of_what_was_drawn():
    """The examined row stays symbolic and is read after the last row, although its token is drawn before."""
    rng = np.random.default_rng()

    def verify(p, q, draft_tokens, lengths):
        answer = []
        for b, length in enumerate(lengths):
            row, left = [], p[b, length]
            for i, token in enumerate(draft_tokens[b, :length]):
                if rng.random() >= p[b, i, token] / q[b, i, token]:
                    left = np.maximum(p[b, i] - q[b, i], 0)
                    break
                row.append(token)
            answer.append([*row, rng.choice(len(left), p=left / left.sum())])
        return answer

    (found,) = check_verifier(verify, checks=["program_is_its_draws"], quick=True)
    assert found.status is Status.HOLDS


class Ahead:
    """Right: the coin of the next call is drawn in this one."""

    coin = 0.0

    def __call__(self, p, q, draft_tokens):
        """Decide the first draft."""
        coin, self.coin = self.coin, random.random()
        return [*draft_tokens, 0] if coin * q[0, draft_tokens[0]] < p[0, draft_tokens[0]] else [0]


def test_a_verifier_that_decides_by_a_number_of_an_earlier_call_is_told_so():
    (found,) = check_verifier(Ahead(), gammas=(1,), checks=["program_is_its_draws"], on_fail=None)
    assert found.status is Status.UNKNOWN
    assert "a random number that an earlier call drew (random.random at test_program_is_its_draws.py" in found.statement
    assert "decides in a later one" in found.statement
    assert "make the verifier in it: lambda *given: MyVerifier()(*given)" in found.statement


def coins_of_a_library(draws):
    with answered_everywhere(draws):
        return [random.random() < 0.5 for _ in range(3)].count(True)


def coins_by_name(draws):
    with answered_everywhere(draws):
        return sum(draws.categorical((0.5, 0.5), ("coin", i)) for i in range(3))


def seldom_of_a_library(draws):
    with answered_everywhere(draws):
        return draws.categorical((0.9, 0.1), ("coin",)) and random.random() < 0.5


@pytest.mark.parametrize(
    ("program", "by_name"), [(coins_of_a_library, False), (coins_by_name, True), (seldom_of_a_library, False)]
)
def test_replays_tell_whether_a_library_draws(program, by_name):
    assert replayed(program, 140).by_name is by_name


@pytest.mark.parametrize("program", [coins_of_a_library, coins_by_name])
def test_replays_estimate_the_runs_of_an_enumeration(program):
    """8 paths, each as likely as the others, and 4 replays of one path."""
    assert replayed(program, 4).runs == 4 + 1 + 8


@pytest.mark.parametrize(
    ("replays", "cases", "pairs", "paths"),
    [
        (Replays(140, runs=200), 1, LEAST, LEAST // 3),
        (Replays(140, runs=1000), 1, 50, 17),
        (Replays(140, runs=100_000), 1, 70, 24),
        (Replays(140, runs=180), 2, 12, 4),
        (Replays(140, runs=180), 6, LEAST_OF_EACH, 4),
        (Replays(140), 1, 70, 24),
        (Replays(140, runs=100_000, by_name=True), 1, *BY_NAME[:2]),
    ],
)
def test_pairs_are_a_share_of_the_other_runs(replays, cases, pairs, paths):
    program = EngineProgram("an engine", open=None, law=dict)
    assert _numbers_for(program, replays, cases, Conditions())[:2] == (pairs, paths)
