"""The law of a token drawn from a large vocabulary, as a vector."""

from __future__ import annotations

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.symbolic.large import at_large
from specverify.laws.law_of_call import call_law
from specverify.subjects.open_rows import ending_of


def kept_open(draw, size):
    """Return the law of the token that ``draw`` draws, ``[size]``, and the number of runs that it took."""

    def program(draws):
        with at_large(), answered_everywhere(draws):
            return ending_of([draw()], drafts=0)

    law = call_law(program, size)
    found = law.behind[()]
    assert not found.unread
    assert not found.outside
    assert not law.faults
    return found.masses, law.runs
