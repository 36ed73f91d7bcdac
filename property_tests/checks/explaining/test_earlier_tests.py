"""Messages name the end of an earlier test if a token is wrong only after it, and do not name one otherwise."""

from __future__ import annotations

import random

import pytest

from property_tests.checks.explaining.test_engine_paths import TARGET
from property_tests.checks.explaining.test_round_faults import choose
from specverify.testing import SpeculationRefuted, check_engine

LENGTH = 3


def without_repetition(last):
    """Return the target's row after ``last``, in which a mask excludes ``last``."""
    row = [0.0 if token == last else mass for token, mass in enumerate(TARGET[last])]
    return tuple(mass / sum(row) for mass in row)


def masked(forgets):
    """Return new tokens of an engine that leaves the mask out of the rows of a round if ``forgets(ends)``.

    ``ends`` tells for the earlier rounds whether the draft was accepted.
    """
    new, ends = [0], []
    while len(new) <= LENGTH:
        drafts = [(new[-1] + 1) % 3, (new[-1] + 2) % 3][: LENGTH + 1 - len(new)]
        rows = [TARGET[last] if forgets(ends) else without_repetition(last) for last in range(3)]
        for draft in drafts:
            p = rows[new[-1]]
            ends.append(random.random() < p[draft])
            new.append(draft if ends[-1] else choose([0.0 if token == draft else p[token] for token in range(3)]))
            if not ends[-1]:
                break
        else:
            new += [choose(rows[new[-1]])] if len(new) <= LENGTH else []
    return new[1:]


def plain():
    new = [0]
    for _ in range(LENGTH):
        new.append(choose(without_repetition(new[-1])))
    return new[1:]


@pytest.mark.parametrize(
    ("forgets", "said"),
    [
        (lambda ends: False in ends, "; wrong only after a failed test (u >= its bound, test_earlier_tests.py:"),
        (lambda ends: True in ends, "; wrong only after a passed test (u < its bound, test_earlier_tests.py:"),
        (lambda ends: True, ""),
    ],
    ids=["after a rejection", "after an acceptance", "always"],
)
def test_the_earlier_test_on_which_a_wrong_token_depends_is_named(forgets, said):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: masked(forgets), plain, checks=["law_is_target"])
    first = str(raised.value).splitlines()[0]
    assert "as if no mask, top-k or top-p excluded it" in first
    assert ("; wrong only after" in first) == bool(said)
    assert said in first
