"""The law of a few lines of code whose random calls are answered by draws."""

from __future__ import annotations

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law


def law_of(program):
    """Return the probability of each value that ``program()`` may return."""

    def answered(draws):
        with answered_everywhere(draws):
            return program()

    return dict(program_law(answered).probabilities)
