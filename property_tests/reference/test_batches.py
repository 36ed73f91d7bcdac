"""Requests that are served together: which slots are verified, and the law of their texts jointly."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Task, chain
from reference.algorithms import lockstep_batch, scheduled_by_draft, scheduled_verification
from reference.batches import best_slots, largest, of_the_draft, survivals
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, distance, law_of, pmf, project

F = Fraction


def product_law(task, prompts):
    one, other = (target_law(task, prompt) for prompt in prompts)
    return {(a, b): x * y for a, x in one.items() for b, y in other.items()}


def of_rows(tokens, *rows):
    return chain(tokens, tuple(pmf(*row) for row in rows))


def test_the_best_slots_are_beginnings_and_ties_go_to_the_earlier_request():
    one = of_rows((0, 1), ("3/4", "1/4"), ("1/2", "1/2"))
    two = of_rows((1, 1), ("1/4", "3/4"), ("1/10", "9/10"))
    assert survivals(one, largest) == [F(3, 4), F(3, 8)]
    assert survivals(two, of_the_draft) == [F(3, 4), F(27, 40)]
    counts = [best_slots(budget, largest)([one, two]) for budget in range(5)]
    assert counts == [[0, 0], [1, 0], [1, 1], [1, 2], [2, 2]]
    assert best_slots(2, of_the_draft)([of_rows((1,), ("3/4", "1/4")), two]) == [0, 2]


PAIR = Task(always(P), always(Q), horizon=2)
TABLE = Task(*table_pair("generic", 2, 0), horizon=2)


@pytest.mark.parametrize("task", [PAIR, TABLE], ids=["pair", "table"])
@pytest.mark.parametrize(("row", "options"), [(scheduled_verification, {"budget": 1}), (lockstep_batch, {})])
def test_requests_have_the_product_of_their_laws(row, options, task):
    prompts = ((0,), (0, 1))
    assert law_of(row.batch(task, prompts, gamma=1, **options)) == product_law(task, prompts)


def test_a_confidence_that_sees_its_draft_moves_both_requests_and_ties_them():
    """On the known pair the first tokens are off by 99/1000 and 51/1000 alone, and jointly by 111/1000."""
    prompts = ((0,), (0,))
    law = law_of(scheduled_by_draft.batch(PAIR, prompts, gamma=1, budget=1))
    wanted = product_law(PAIR, prompts)
    alone = [distance(project(law, lambda texts, i=i: texts[i]), target_law(PAIR, (0,))) for i in range(2)]
    assert distance(law, wanted) == F(111, 1000)
    assert alone == [F(99, 1000), F(51, 1000)]


def test_a_budget_for_every_slot_is_no_schedule():
    prompts = ((0,), (1,))
    law = law_of(scheduled_by_draft.batch(TABLE, prompts, gamma=1, budget=2))
    assert law == product_law(TABLE, prompts)
