"""Engines and a verifier with faults that one scenario shows; without the fault each of them holds there."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.laws.deep_scenarios import (
    AFTER_MANY_DRAFTS,
    AFTER_MANY_REJECTIONS,
    BEHIND_A_WINDOW,
    LARGE_TOKENS,
    LATE_ROWS,
    ONE_TOKEN,
    QUICK_OF_ENGINES,
    SIX_TOKENS,
)
from specverify.laws.scenarios import CONFIDENT
from specverify.subjects.made_engine import made_subject
from specverify.subjects.request_lists import ALIKE_IN_TURN
from specverify.subjects.verifier import verifier_subject
from specverify.testing import Made, check_engine
from test_support.subjects.engine_laws import law_verdict

LAW = check_named("law_is_target")
WINDOW, LATE, PATIENCE, RING = 8, 16, 24, 5


def drawn(weights):
    return random.choices(range(len(weights)), weights)[0]


class Place(NamedTuple):
    """Where a row is used: after ``new`` new tokens, in a round that began after ``begun`` of them."""

    new: int
    begun: int
    window: Any
    """The tokens that a penalty counts."""


class Rules(NamedTuple):
    """How an engine decodes; the defaults are those of speculative sampling with two drafts."""

    processed: Callable[[Any, Place], Any] = lambda row, place: row
    """Changes a row of p."""
    window: Callable[[Any], Any] = list
    trusts_after: float = float("inf")
    """The number of rejected rounds after which drafts are not tested."""
    grows: bool = False
    """Whether a round that is accepted whole is followed by a longer one."""
    ring: int = 1000
    """The number of rows of q that are kept."""
    token: Callable[[int], int] = int
    """The token that a buffer returns for the one that was written."""
    key: Callable[[Any], Any] = tuple
    """The part of a prompt by which its text is found again."""


def engine_by(rules, scenario):
    """Return the call with speculation, by ``rules``."""
    texts = {}

    def p_after(text, place):
        return rules.processed(scenario.target(tuple(map(rules.token, text))), place)

    def decode(prompt):
        text = texts.setdefault(rules.key(prompt), tuple(prompt))
        begin, gamma, rejected, window = len(text), 2, 0, rules.window(text)
        while (new := len(text) - begin) < scenario.horizon:
            drafts, rows, wanted = (), {}, []
            for place in range(min(gamma, scenario.horizon - new - 1)):
                rows[place % rules.ring] = scenario.draft(text + drafts)
                wanted.append(p_after(text + drafts, Place(new + place, new, window)))
                drafts += (drawn(rows[place % rules.ring]),)
                window.append(drafts[-1])
            wanted.append(p_after(text + drafts, Place(new + len(drafts), new, window)))
            q = [rows[place % rules.ring] for place in range(len(drafts))]
            kept = 0
            while kept < len(drafts) and (
                rejected >= rules.trusts_after or random.random() * q[kept][drafts[kept]] < wanted[kept][drafts[kept]]
            ):
                kept += 1
            for _ in drafts[kept:]:
                window.pop()
            left = np.maximum(wanted[kept] - q[kept], 0) if kept < len(drafts) else wanted[kept]
            text += (*drafts[:kept], drawn(left if left.any() else wanted[kept]))
            window.append(text[-1])
            rejected += kept < len(drafts)
            gamma += rules.grows and kept == len(drafts)
        return text[begin:]

    return decode


def plain_by(rules, scenario):
    """Return the call without speculation: each token is a round of its own, after the whole text."""

    def decode(prompt):
        text = tuple(prompt)
        for new in range(scenario.horizon):
            text += (drawn(rules.processed(scenario.target(text), Place(new, new, text))),)
        return text[len(prompt) :]

    return decode


def penalised(row, place):
    """Halve the probability of a token for each time that it occurs among the last ones."""
    row = row * 0.5 ** np.bincount(list(place.window)[-WINDOW:], minlength=len(row))
    return row / row.sum()


def cooled(row, new):
    return row**2 / (row**2).sum() if new > LATE else row


TWINS = {
    "a window does not get its old tokens back": (
        Rules(penalised), Rules(penalised, lambda text: deque(text, maxlen=WINDOW)), BEHIND_A_WINDOW.name,
    ),
    "all tokens of a round have the temperature of its first": (
        Rules(lambda row, place: cooled(row, place.new)), Rules(lambda row, place: cooled(row, place.begun)),
        LATE_ROWS.name,
    ),
    "drafts are trusted after many rejections": (Rules(), Rules(trusts_after=PATIENCE), AFTER_MANY_REJECTIONS.name),
    "rows of q are kept in a ring": (Rules(grows=True), Rules(grows=True, ring=RING), AFTER_MANY_DRAFTS[0].name),
    "tokens are kept in bytes": (Rules(), Rules(token=lambda token: token % 256), LARGE_TOKENS.name),
    "a prompt is found by its ends": (
        Rules(), Rules(key=lambda prompt: (len(prompt), prompt[0], prompt[-1])), ALIKE_IN_TURN[0].name,
    ),
    "a prompt is found by its tokens without their order": (
        Rules(), Rules(key=lambda prompt: tuple(sorted(prompt))), ALIKE_IN_TURN[1].name,
    ),
}  # fmt: skip
"""Fault -> (right rules, wrong rules, the scenario or requests in which the wrong ones are refuted)."""


def law_of(rules, right, name):
    """Return the result of the check of laws in the case ``name`` for an engine by ``rules``."""

    def make(scenario):
        return Made(engine_by(rules, scenario), plain_by(right, scenario))

    (case,) = (case for case in LAW.cases(made_subject(make, "it")) if case.situation.name == name)
    return case.examine(Conditions(explained=False))


def test_a_single_new_token_from_the_draft_is_refuted():
    def make(scenario):
        first = scenario.draft if scenario.horizon == 1 else scenario.target

        def decode(prompt):
            text = (*prompt, drawn(first(tuple(prompt))))
            while len(text) < len(prompt) + scenario.horizon:
                text += (drawn(scenario.target(text)),)
            return text[len(prompt) :]

        return decode

    (refuted,) = check_engine(make, quick=True, on_fail=None, checks=["law_is_target"])
    assert refuted.status is Status.REFUTED
    assert ONE_TOKEN.name in str(refuted.counterexample)


def guided_engine(tokens_of_bonus):
    """Return the factory of an engine with classifier-free guidance: p is made of two rows of the target.

    The second row has only the last token of the prompt as its context. After two accepted drafts, for the bonus, it
    reads ``tokens_of_bonus(new)`` in place of the new tokens ``new``.
    """

    def make(scenario):
        def guided(prompt, new, read):
            with_prompt, without = (
                np.array(scenario.target(text), float) for text in (prompt + new, prompt[-1:] + read)
            )
            weights = np.where(with_prompt > 0, with_prompt**1.5 / np.maximum(without, 1e-30) ** 0.5, 0.0)
            return weights / weights.sum()

        def plain(prompt):
            new = ()
            while len(new) < scenario.horizon:
                new += (drawn(guided(prompt, new, new)),)
            return new

        def decode(prompt):
            new = ()
            while len(new) < scenario.horizon:
                for accepted in range(min(3, scenario.horizon - len(new))):
                    p, q = (
                        guided(prompt, new, tokens_of_bonus(new) if accepted == 2 else new),
                        scenario.draft(prompt + new),
                    )
                    draft = drawn(q)
                    if accepted == 2 or len(new) == scenario.horizon - 1:
                        new += (drawn(p),)
                    elif random.random() * q[draft] < p[draft]:
                        new += (draft,)
                        continue
                    else:
                        new += (drawn(np.maximum(p - q, 0)),)
                    break
            return new

        return Made(decode, plain)

    return make


@pytest.mark.parametrize(("tokens_of_bonus", "is_right"), [(lambda new: new, True), (lambda new: new[:2], False)])
def test_guidance_that_has_lost_the_last_rounds_is_refuted(tokens_of_bonus, is_right):
    verdict = law_verdict(guided_engine(tokens_of_bonus), [SIX_TOKENS])
    assert verdict.status is (Status.HOLDS if is_right else Status.REFUTED)
    assert SIX_TOKENS in QUICK_OF_ENGINES


@pytest.mark.parametrize("fault", TWINS)
def test_a_wrong_engine_is_refuted_and_its_right_twin_holds(fault):
    right, wrong, name = TWINS[fault]
    assert law_of(wrong, right, name).failed
    held = law_of(right, right, name)
    assert not held.failed
    assert not held.unknown


def verifier_sure_above(bound):
    """Return a verifier that accepts drafts with q > ``bound`` without a test."""

    def verify(p, q, draft_tokens):
        for place, token in enumerate(draft_tokens):
            if bound < q[place, token] < 1 or random.random() * q[place, token] < p[place, token]:
                continue
            return [*draft_tokens[:place], drawn(np.maximum(p[place] - q[place], 0))]
        return [*draft_tokens, drawn(p[-1])]

    return verify


@pytest.mark.parametrize(("bound", "is_wrong"), [(0.9, True), (0.97, True), (1, False)])
def test_a_verifier_that_trusts_a_confident_draft_is_refuted(bound, is_wrong):
    cases = LAW.cases(verifier_subject(verifier_sure_above(bound), "verify", (2,)))
    (case,) = (case for case in cases if case.situation.scenario == CONFIDENT)
    assert case.examine(Conditions(explained=False)).failed is is_wrong
