"""A subject that turns out in the middle of a check to be no function of its draws: none that is later accuses it."""

from __future__ import annotations

import random

from reference import ALGORITHMS
from specverify.base.verdict import Status
from specverify.checks import CHECKS
from specverify.checks.check import of_names
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.algorithm import algorithm_subject
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
    assert all(verdict.status is Status.HOLDS for verdict in check_engine(lambda: Engine().decode(), law))


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
