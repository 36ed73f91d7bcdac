"""Several drafts for one position, drawn one after the other, are read as siblings."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.checks.explaining import tree_rules
from specverify.checks.explaining.tree_readings import drafts_of_one_position
from specverify.laws.draws import Decision
from specverify.testing import SpeculationRefuted, check_verifier
from test_support.checks.recorded_rounds import coin, token

HALVES = (0.5, 0.5)


def decisions(*named):
    """Return labelled decisions with equal weights."""
    return [Decision((name, number), HALVES, outcome) for number, (name, outcome) in enumerate(named)]


def test_a_draft_behind_a_rejection_is_a_sibling():
    draft = drafts_of_one_position(decisions(("draft", 1), ("accept", 1), ("draft", 0), ("accept", 0)), (0,))
    assert (draft.tokens, draft.parents) == ((1, 0), (-1, -1))
    assert [pmf.tolist() for pmf in draft.pmfs] == [list(HALVES)] * 2


@pytest.mark.parametrize(
    ("named", "emitted"),
    [
        ([("draft", 1), ("draft", 0), ("accept", 0), ("accept", 1)], (1,)),
        ([("draft", 1), ("accept", 0), ("draft", 0), ("accept", 0)], (0,)),
        ([("draft", 1), ("accept", 0)], (1, 0)),
        ([("target", 1)], (1,)),
    ],
)
def test_drafts_of_several_positions_are_no_siblings(named, emitted):
    assert drafts_of_one_position(decisions(*named), emitted) is None


@pytest.mark.parametrize(("item", "drawn"), [(coin(0.5, 1.0), 2), (coin(0.4, 0.5), 1), (token(0, 0.4, 0.1, 0.5), 0)])
def test_a_lookup_in_cumulative_sums_draws_the_token_of_its_interval(item, drawn):
    assert [tree_rules.draws_from(item, (0.4, 0.1, 0.5), other) for other in range(3)] == [drawn == k for k in range(3)]
    assert not tree_rules.draws_from(item, (0.3, 0.15, 0.55), drawn)


@pytest.mark.parametrize("depth", [0, 1])
def test_one_coin_for_all_siblings_is_read_as_such(depth):
    """It is compared with sums of p. After ``depth`` accepted tokens the third sibling stays in the residual."""

    def verify(p, q, parents, tokens):
        node, emitted = -1, []
        while True:
            coin, total, row, kept = random.random(), 0.0, p[node + 1].copy(), None
            for number, child in enumerate([child for child, parent in enumerate(parents) if parent == node]):
                total += p[node + 1][tokens[child]]
                if coin < total:
                    kept = child
                    break
                if number < 2 or len(emitted) != depth:
                    row[tokens[child]] = 0
            if kept is None:
                return [*emitted, random.choices(range(len(row)), row)[0]]
            node, emitted = kept, [*emitted, tokens[kept]]

    with pytest.raises(
        SpeculationRefuted, match=r"after the rejection of the last child.* is \d with .*, expected 0 by"
    ):
        check_verifier(verify, form="tree", drafts="top_k", checks=["law_is_target"], quick=True)


def test_a_child_that_is_accepted_without_a_draw_is_named():
    """The draw from p after the child is read as the draw of the next token, not of the child."""

    def verify(p, q, parents, tokens):
        node, emitted = -1, []
        for child, (parent, drafted) in enumerate(zip(parents, tokens, strict=True)):
            if parent == node and p[node + 1][drafted] > 0.3:
                node, emitted = child, [*emitted, drafted]
        return [*emitted, random.choices(range(len(p[0])), p[node + 1])[0]]

    with pytest.raises(SpeculationRefuted, match=r"is accepted without a draw, expected with probability 0"):
        check_verifier(verify, form="tree", drafts="top_k", checks=["law_is_target"], quick=True)


def choices(row):
    return random.choices(range(len(row)), row)[0]


def choice(row):
    return int(np.random.default_rng().choice(len(row), p=row))


@pytest.mark.parametrize("draw", [choices, choice], ids=["intervals", "pmf"])
def test_a_round_that_goes_on_from_a_node_that_is_no_child_is_named(draw):
    """Nodes are found by depth and token, whatever their parent is."""

    def verify(p, q, parents, tokens):
        depths = []
        for parent in parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        places = list(zip(depths, map(int, tokens), strict=True))
        node, emitted = -1, []
        while True:
            token = draw(p[node + 1])
            emitted.append(token)
            if (len(emitted) - 1, token) not in places:
                return emitted
            node = places.index((len(emitted) - 1, token))

    with pytest.raises(
        SpeculationRefuted, match=r"after token \d, which no child of #\d has, the round goes on from #"
    ):
        check_verifier(verify, form="tree", drafts="top_k", checks=["law_is_target"], quick=True)


def undivided(p, q, parents, draft_tokens, *, tests_second_by_p=False):
    """Accept by recursive rejection with residuals that are not divided by their sum; p follows an empty one."""
    node, emitted = -1, []
    while True:
        left = whole = p[node + 1]
        for child in [i for i, parent in enumerate(parents) if parent == node]:
            x = draft_tokens[child]
            row = whole if tests_second_by_p else left
            if random.random() * q[child][x] < row[x]:
                emitted.append(x)
                node = child
                break
            left = np.maximum(left - q[child], 0)
            left = left if left.sum() > 0 else whole
        else:
            return [*emitted, random.choices(range(len(left)), left / left.sum())[0]]


def test_a_coin_that_may_test_one_of_two_equal_siblings_is_not_given_to_the_first():
    """The second of three equal drafts is rejected for certain here, and the third is tested with p again."""
    with pytest.raises(SpeculationRefuted) as raised:
        check_verifier(undivided, form="tree", drafts="with_replacement", checks=["law_is_target"], quick=True)
    said = str(raised.value)
    assert (
        ": the residual after a rejected child is not divided by its sum, and p where the next difference is 0" in said
    )
    assert "child #1 (token 2) is tested" not in said


def test_a_sibling_that_is_tested_with_p_is_still_named():
    with pytest.raises(SpeculationRefuted) as raised:
        check_verifier(
            lambda p, q, parents, draft_tokens: undivided(p, q, parents, draft_tokens, tests_second_by_p=True),
            form="tree",
            drafts="with_replacement",
            checks=["law_is_target"],
            quick=True,
        )
    assert "p is used again" in str(raised.value) or "with p" in str(raised.value)
    assert "not divided by its sum" not in str(raised.value)
