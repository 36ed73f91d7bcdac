"""Rounds that follow the rule with another row of p than the target's."""

from __future__ import annotations

import random

import pytest

from property_tests.checks.explaining.test_engine_paths import DRAFT, TARGET
from property_tests.checks.explaining.test_round_faults import choose, plain
from specverify.checks.explaining.used_rows import _only_rejected_changes, _other_q, _replaces_by_it, _Used
from specverify.testing import SpeculationRefuted, check_engine


def same(row, *_):
    return row


def speculative(p_of=same, q_of=same, tau=1.0, length=3, gamma=2, told=lambda i, drafts: True):
    """Return new tokens of an engine that tests and replaces drafts with ``p_of(p, ...)`` and ``q_of(q, ...)``.

    The further arguments are the draft that the round before rejected, or None, and the index of the draft. An accepted
    draft has the bound p/(tau q). A rejected draft ``i`` is None too, unless ``told(i, number of drafts)``.
    """
    new, rejected = [0], None
    while len(new) <= length:
        drafts = [new[-1]]
        for _ in range(min(gamma, length + 1 - len(new))):
            drafts.append(choose(DRAFT[drafts[-1]]))
        kept, before = [], rejected
        rejected = None
        for i, x in enumerate(drafts[1:]):
            p, q = p_of(TARGET[drafts[i]], before, i), q_of(DRAFT[drafts[i]], before, i)
            if random.random() < p[x] / q[x] / tau:
                kept.append(x)
                continue
            rejected = x if told(i, len(drafts) - 1) else None
            kept.append(choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
            break
        else:
            kept.append(choose(p_of(TARGET[drafts[-1]], before, len(kept))))
        new += kept
    return new[1 : length + 1]


def mixed(row, other):
    return tuple((2 * a + b) / 3 for a, b in zip(row, other, strict=True))


def after_rejection(row, rejected, position):
    return row if rejected is None else mixed(row, TARGET[rejected][::-1])


def in_block(row, rejected, position):
    return row if position == 0 else mixed(row, (0.0, 0.0, 1.0))


def later_q(row, rejected, position):
    return row if position == 0 else mixed(row, (0.2, 0.3, 0.5))


def message(fast, length):
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(fast, lambda: plain(length=length), checks=["law_is_target"])
    return str(raised.value).splitlines()[0]


@pytest.mark.parametrize(
    ("stale", "gamma", "said"),
    [
        (after_rejection, 1, "after a rejection, p is not the target's row: draft 1 of round 2"),
        (in_block, 2, "after the first draft of a round, p is not the target's row: draft 2 of round 1"),
    ],
)
def test_the_rounds_with_a_wrong_row_of_p_are_named(stale, gamma, said):
    first = message(lambda: speculative(stale, gamma=gamma), 3)
    assert f": {said} is tested and replaced as with p = (" in first


def test_the_rounds_after_one_that_rejects_its_last_draft_are_named():
    first = message(lambda: speculative(after_rejection, length=3, told=lambda i, drafts: 0 < i == drafts - 1), 3)
    assert ": after a round that rejects its last draft, p or q is wrong: draft 1 of round 2" in first
    assert first.endswith(" (after other rounds, the rows are right)")
    assert "last draft" not in message(lambda: speculative(after_rejection), 3)


def rejected_counted(factor):
    """Return a function that multiplies p of the draft that was just rejected by ``factor``."""

    def row_of(row, rejected, position):
        if rejected is None:
            return row
        changed = [mass * (factor if token == rejected else 1) for token, mass in enumerate(row)]
        return tuple(mass / sum(changed) for mass in changed)

    return row_of


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    ("factor", "said"), [(0.4, ", as if a penalty still counted it: draft"), (1.7, ": draft")], ids=["less", "more"]
)
def test_other_odds_of_the_rejected_draft_alone_are_named(factor, said):
    first = message(lambda: speculative(rejected_counted(factor), gamma=1), 3)
    assert ": after a rejection, p has other odds of the rejected draft alone (token " in first
    assert f"){said} 1 of round 2 is tested and replaced as with p = (" in first


def test_a_row_with_other_odds_of_another_token_is_no_penalty_of_the_rejected_draft():
    used = _Used(2, 0, "replace", (1,), (0.2, 0.3, 0.5), (0.25, 0.375, 0.375), (), 2)
    assert _only_rejected_changes(used)
    assert not _only_rejected_changes(used._replace(rejected=1))
    assert not _only_rejected_changes(used._replace(rejected=None))
    assert not _only_rejected_changes(used._replace(expected=(0.3, 0.325, 0.375)))


def test_a_wrong_rule_with_the_right_row_is_no_wrong_row():
    """A bound that is too small in all rounds is that of the right rule with another row."""
    assert "p is not the target's row" not in message(lambda: speculative(tau=1.5, length=2), 2)


def test_a_wrong_row_of_q_in_the_test_is_not_taken_for_one_of_p():
    first = message(lambda: speculative(q_of=later_q), 3)
    assert (
        ": after the first draft of a round, p or q is wrong: draft 2 of round 1 after new token 0 is tested" in first
    )
    assert ", or as with q = (0.467, 0.3, 0.233) in place of q = (0.6, 0.3, 0.1) (for the first draft, the" in first


def test_only_a_replacement_from_several_tokens_shows_the_row():
    used = _Used(1, 0, "first", (), (0.3, 0.35, 0.35), (0.2, 0.3, 0.5), ())
    assert _replaces_by_it(used, (0.5, 0.25, 0.25))
    assert not _replaces_by_it(used, (0.6, 0.35, 0.05))
    assert not _replaces_by_it(used._replace(row=used.expected), (0.5, 0.25, 0.25))


def test_the_row_of_q_with_which_a_draft_is_tested_follows_from_that_of_p():
    p, q, tested = (0.2, 0.3, 0.5), (0.6, 0.3, 0.1), [0.5, 0.3, 0.2]
    accepted = [mass * min(1, a / b) for mass, a, b in zip(q, p, tested, strict=True)]
    left = [max(a - b, 0) for a, b in zip(p, tested, strict=True)]
    row = [kept + (1 - sum(accepted)) * mass / sum(left) for kept, mass in zip(accepted, left, strict=True)]
    used = _Used(1, 0, "first", (), row, p, ())
    assert _other_q(used, q) == pytest.approx(tested)
    assert _other_q(used._replace(row=(0.0, 0.5, 0.5)), q) is None
