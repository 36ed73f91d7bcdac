"""Engines that feed their target in unlike ways: what an observer takes for drafts, and what for emitted tokens."""

from __future__ import annotations

import random

import pytest

from specverify.subjects.observer import Observer
from specverify.subjects.subject import drafts_of
from specverify.testing import check_engine

P = ((0.2, 0.8), (0.5, 0.5))
Q = ((0.6, 0.4), (0.2, 0.8))
PROMPT, LENGTH = (1, 0), 3
CHECKS = ["draft_is_honest", "acceptance_law", "cache_equals_prefill"]
LAST = len(PROMPT) + LENGTH


def pick(weights):
    return random.choices(range(2), weights)[0]


def plain():
    text = list(PROMPT)
    while len(text) < LAST:
        text.append(pick(P[text[-1]]))
    return text[len(PROMPT) :]


def whole_prompt_first(observer, text, drafts):
    held = 0 if len(text) == len(PROMPT) else len(text) - 1
    observer.forward(held, text[held:] + drafts)


def prefilled(observer, text, drafts):
    if len(text) == len(PROMPT):
        observer.forward(0, text[:-1])
    observer.forward(len(text) - 1, text[-1:] + drafts)


def without_cache(observer, text, drafts):
    observer.forward(0, text + drafts)


def two_again(observer, text, drafts):
    held = 0 if len(text) == len(PROMPT) else len(text) - 2
    observer.forward(held, text[held:] + drafts)


def all_of_the_prompt_and_its_last_token_again(observer, text, drafts):
    if len(text) == len(PROMPT):
        observer.forward(0, text)
    observer.forward(len(text) - 1, text[-1:] + drafts)


def not_reported(observer, text, drafts):
    observer.forward(len(text) - 1, text[-1:] + drafts)


FEEDS = [
    whole_prompt_first,
    prefilled,
    without_cache,
    two_again,
    all_of_the_prompt_and_its_last_token_again,
    not_reported,
]


def verdicts(feed, drafted_by=lambda text: Q[text[-1]], *, begun=0, bonus=True):
    """Return the verdicts on an engine that draws the first ``begun`` tokens without drafts, as from a prefill.

    Without ``bonus`` a round whose drafts are all accepted emits no further token, unless it has no draft.
    """
    observer = Observer(PROMPT, draft=lambda tokens: Q[tokens[-1]])

    def fast():
        text = list(PROMPT)
        for _ in range(begun):
            feed(observer, text, [])
            text.append(pick(P[text[-1]]))
        while len(text) < LAST:
            drafts = []
            for _ in range(min(2, LAST - len(text) - bonus)):
                drafts.append(pick(drafted_by(text + drafts)))
            feed(observer, text, drafts)
            for draft in drafts:
                p, q = P[text[-1]], drafted_by(text)
                if random.random() * q[draft] >= p[draft]:
                    text.append(pick([max(wanted - given, 0) for wanted, given in zip(p, q, strict=True)]))
                    break
                text.append(draft)
            else:
                text += [pick(P[text[-1]])] if bonus or not drafts else []
        return text[len(PROMPT) :]

    return {v.check: v.status for v in check_engine(fast, plain, observe=observer, checks=CHECKS, on_fail=None)}


@pytest.mark.parametrize("bonus", [True, False])
@pytest.mark.parametrize("feed", FEEDS)
def test_a_right_engine_holds_however_it_feeds_its_target(feed, bonus):
    assert verdicts(feed, bonus=bonus) == dict.fromkeys(CHECKS, "holds")


@pytest.mark.parametrize("bonus", [True, False])
@pytest.mark.parametrize("feed", FEEDS)
def test_drafts_from_the_row_of_an_earlier_token_are_refuted(feed, bonus):
    assert verdicts(feed, lambda text: Q[text[-2]], bonus=bonus)["draft_is_honest"] == "refuted"


def test_a_first_token_from_the_prefill_is_no_draft():
    assert verdicts(prefilled, begun=1) == dict.fromkeys(CHECKS, "holds")


def test_tokens_at_the_places_of_earlier_ones_are_fed_again():
    """A token that takes the place of a rejected draft is new; unseen entries of the cache equal no token."""
    observer = Observer((0,))
    for held, fed in ((3, (1, 2, 2)), (4, (0, 1)), (3, (1, 0, 1, 2))):
        observer.forward(held, fed)
    assert [one.again for one in observer.forwards] == [0, 0, 3]
    assert [drafts_of(one, (0,)) for one in observer.forwards] == [(2, 2), (1,), ()]
