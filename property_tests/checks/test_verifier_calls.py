"""Of many drafts in one call, enough combinations of their tokens are examined."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from specverify.checks import Conditions, check_named
from specverify.checks.verifier_calls import MOST_COMBINED, checksums
from specverify.laws.draws import Decision
from specverify.subjects.forms import Form
from specverify.subjects.tree_verifier import tree_subject


def drafted(tokens, vocabulary):
    return [Decision((f"draft {place}",), (1,) * vocabulary, token) for place, token in enumerate(tokens)]


def parts(number, vocabulary):
    """Return checksums -> the drafts of ``number`` tokens that have them."""
    result = {}
    for tokens in product(range(vocabulary), repeat=number):
        result.setdefault(checksums(drafted(tokens, vocabulary)), []).append(tokens)
    return result


@pytest.mark.parametrize(("number", "vocabulary"), [(4, 3), (4, 4), (5, 5)])
def test_any_three_drafts_have_all_combinations_in_every_part(number, vocabulary):
    for part in parts(number, vocabulary).values():
        assert len(part) == vocabulary**MOST_COMBINED
        for places in combinations(range(number), MOST_COMBINED):
            assert set(Counter(tuple(tokens[place] for place in places) for tokens in part).values()) == {1}


@pytest.mark.parametrize(("number", "vocabulary"), [(1, 3), (2, 5), (3, 4)])
def test_few_drafts_have_one_part(number, vocabulary):
    assert set(parts(number, vocabulary)) == {()}


def verifier_of_trees(raises_on):
    """Return a verifier of trees with replacement that raises if drafts and an extreme coin are ``raises_on``."""
    generator = np.random.default_rng(0)

    def verify(p, q, parents, tokens):
        new, node, row = [], -1, p[0]
        for child in range(len(tokens)):
            if parents[child] != node or (node == -1 and new):
                continue
            coin = generator.random()
            if coin == 0 and tuple(int(tokens[place]) for place in raises_on) == (2, 0, 1):
                raise ZeroDivisionError("coin of 0")
            if coin * q[node + 1][tokens[child]] < row[tokens[child]]:
                new.append(int(tokens[child]))
                node, row = child, p[child + 1]
            else:
                left = np.maximum(row - q[node + 1], 0)
                row = left / left.sum() if left.sum() > 0 else row
        return [*new, int(generator.choice(len(row), p=row))]

    return verify


def test_a_fault_of_three_drafts_is_found():
    """A coin of 0 is so rare that the fault is no refutation, but it is stated."""
    subject = tree_subject(verifier_of_trees((0, 2, 3)), "verify", Form(drafts="with_replacement"), ((-1, 0, -1, 2),))
    cases = check_named("support_at_boundary_draws").cases(subject)
    case = next(case for case in cases if case.situation.scenario.name == "generic-v3-p010-h3-s2")
    assert "ZeroDivisionError: coin of 0" in str(case.examine(Conditions(apart=3)))
