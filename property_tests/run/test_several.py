"""Subjects in processes: reuse, and a process that is killed."""

from __future__ import annotations

from specverify.base.verdict import Status
from specverify.checks import CHECKS, check_named
from specverify.report.progress import Progress
from specverify.run.several import Worker, Workers
from specverify.run.verify import Checklist
from specverify.run.worker import Began, Stopped, examine


def test_a_process_that_is_killed_is_named_whatever_it_examined():
    worker = Worker()
    names = tuple(check.name for check in CHECKS)
    given = ("reference:speculative-sampling", names, Checklist(()).conditions, None)
    answers = worker.ask(examine, *given, seconds=600.0)
    assert isinstance(next(answers), Began)
    worker.kill()
    last = list(answers)[-1]
    worker.end()
    assert last == Stopped(Status.UNUSABLE, "its process was ended by SIGKILL, as the system does when memory runs out")


def test_a_process_is_used_again_for_subjects_of_ours_and_never_for_foreign_ones():
    with Workers(1, 600.0) as workers:
        checklist = Checklist((check_named("horizon_is_respected"),))
        ours = workers.listed(["reference:autoregressive", "reference:egag"])
        assert [mine[0].status for mine in workers.examined(ours, checklist, Progress("verify", None))] == [
            Status.HOLDS
        ] * 2
        (kept,) = workers._idle
        foreign = workers.listed(["misbehaving:right"])
        assert [mine[0].status for mine in workers.examined(foreign, checklist, Progress("verify", None))] == [
            Status.HOLDS
        ]
        assert workers._all == [kept]
