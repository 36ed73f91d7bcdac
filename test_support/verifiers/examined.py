"""One check on the smaller scenarios of a subject, through the ordinary machinery."""

from __future__ import annotations

from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check


def narrowed(check, keep):
    """Return the check restricted to the situations that ``keep`` accepts."""

    def part_within(part):
        return part._replace(within=lambda subject: filter(keep, part.within(subject) if part.within else ()))

    return check._replace(examines=tuple(map(part_within, check.examines)))


def verdict_of(subject, name):
    """Return the verdict of the check called ``name`` on scenarios of one round and a little more."""

    def is_small(here):
        return here.scenario.vocabulary < 4 and here.scenario.horizon == 3 and here.scenario.seed != 1

    few = narrowed(check_named(name), is_small)
    return run_check(subject, few, Checklist((few,)))
