"""The false-alarm probability of a whole run, divided among all tests that can refute."""

from __future__ import annotations

from typing import NamedTuple

from specverify.base.arguments import check_count, check_probability


class AlarmBudget(NamedTuple):
    """The false-alarm probability of a run and the number of tests that share it.

    A run of correct subjects refutes any of them with probability at most ``parts * each = total``. ``parts`` must be
    fixed before the first test, and count every test that could refute.
    """

    total: float
    parts: int

    @property
    def each(self) -> float:
        """Return the false-alarm probability of one test: ``total / parts``."""
        return self.total / self.parts


def divide_alarm(total: float, parts: int) -> AlarmBudget:
    """Return the budget of ``total``, a probability in (0, 1), over ``parts`` tests, at least one.

    Raises ``ValueError`` for anything else.
    """
    check_probability(total, "total")
    check_count(parts, "parts")
    return AlarmBudget(total, parts)
