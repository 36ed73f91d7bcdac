"""Made engines whose drafts or cached blocks come from the text: wrong only where a text repeats itself."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.deep_scenarios import LONG_SCENARIOS
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.run.verify import Checklist, run_check
from specverify.subjects.made_engine import made_subject

PERIODIC = slice(len(SCENARIOS) + len(LONG_SCENARIOS) - 4, len(SCENARIOS) + len(LONG_SCENARIOS) - 2)
BLOCK = 3


def drawn(rng, weights):
    return int(rng.choice(len(weights), p=weights / weights.sum()))


def looked_up(scenario, kept=()):
    """Draft what followed the last two tokens before; ``kept``: places of drafts whose replacement may be the draft."""
    rng, text = np.random.default_rng(), scenario.prompt
    while (left := scenario.horizon + len(scenario.prompt) - len(text)) > 0:
        places = (i for i in range(len(text) - 2, 1, -1) if text[i - 2 : i] == text[-2:])
        place = next(places, None)
        drafts = () if place is None else text[place : place + min(3, left - 1)]
        for i, draft in enumerate(drafts):
            p = scenario.target(text)
            if rng.random() < p[draft]:
                text = (*text, draft)
                continue
            rest = p.copy()
            if i not in kept:
                rest[draft] = 0
            text = (*text, drawn(rng, rest))
            break
        else:
            text = (*text, drawn(rng, scenario.target(text)))
    return text[len(scenario.prompt) :]


def cached(scenario, key=lambda text, end: text[:end]):
    """Speculate; an entry of a full block knows the text up to it, and blocks of one key share their entries."""
    rng, text, blocks = np.random.default_rng(), scenario.prompt, {}

    def target(tokens):
        known = ()
        for end in range(BLOCK, len(tokens) + 1, BLOCK):
            known = blocks.setdefault(key(tokens, end), (*known, *tokens[end - BLOCK : end]))
        return scenario.target((*known, *tokens[len(known) :]))

    while (left := scenario.horizon + len(scenario.prompt) - len(text)) > 0:
        drafts, qs = (), []
        for _ in range(min(BLOCK + 1, left - 1)):
            qs.append(scenario.draft((*text, *drafts)))
            drafts = (*drafts, drawn(rng, qs[-1]))
        ps = [target((*text, *drafts[:i])) for i in range(len(drafts) + 1)]
        for p, q, draft in zip(ps, qs, drafts, strict=False):
            if rng.random() * q[draft] < p[draft]:
                text = (*text, draft)
                continue
            text = (*text, drawn(rng, np.maximum(p - q, 0)))
            break
        else:
            text = (*text, drawn(rng, ps[-1]))
    return text[len(scenario.prompt) :]


def place_and_block(text, end):
    """What was before the block is not in the key."""
    return end, text[end - BLOCK : end]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("decode", "status"),
    [
        (looked_up, Status.HOLDS),
        (partial(looked_up, kept=(2,)), Status.REFUTED),
        (cached, Status.HOLDS),
        (partial(cached, key=place_and_block), Status.REFUTED),
    ],
    ids=["looked up", "third draft may replace itself", "cached", "cached by place and block"],
)
def test_texts_that_repeat_themselves_tell_them_apart(decode, status):
    subject = made_subject(lambda scenario: partial(decode, scenario), "an engine")
    subject = subject.with_programs(subject.programs[PERIODIC])
    assert run_check(subject, check_named("law_is_target"), Checklist(())).status is status
