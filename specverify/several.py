"""Several subjects at once: each is examined whole by one process, and told in the order in which they were named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from specverify.catalogue import find_subject
from specverify.checks import CHECKS
from specverify.checks.check import Conditions
from specverify.parallel import in_parallel
from specverify.verdict import Verdict
from specverify.verify import Plan, verify_subject


def verdicts_of_several(
    names: Sequence[str], plan: Plan, done: Callable[[int], None] = lambda index: None
) -> Iterator[list[Verdict]]:
    """Yield the verdicts of each named subject in their order, on ``plan.conditions.jobs`` processes.

    ``done`` is told the place of each as it is finished.
    """
    checks = tuple(check.name for check in plan.checks)
    alone = plan.conditions._replace(jobs=1)
    works = [partial(_examined, name, checks, alone, plan.seconds) for name in names]
    yield from in_parallel(works, plan.conditions.jobs, done)


def _examined(name: str, checks: tuple[str, ...], conditions: Conditions, seconds: float) -> list[Verdict]:
    chosen = tuple(check for check in CHECKS if check.name in checks)
    return list(verify_subject(find_subject(name), Plan(chosen, conditions, seconds)))
