"""The law of a few lines whose random calls are answered."""

from __future__ import annotations

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law


def law_of(program):
    """Return what ``program()`` may return -> its probability."""

    def answered(draws):
        with answered_everywhere(draws):
            return program()

    return dict(program_law(answered).probabilities)
