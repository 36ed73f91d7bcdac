"""Engines that adapt to past acceptance: after rejected rounds a rejection must still draw from the residual."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.laws.deep_scenarios import AFTER_REJECTIONS, HISTORIES, QUICK_OF_ENGINES, QUICK_SCENARIOS
from specverify.laws.engine_scenarios import CERTAIN_SCENARIOS, SCENARIOS
from test_support.subjects.engine_laws import law_verdict

RNG = np.random.default_rng()
NEVER = 99


def engine(wrong_after: int) -> Callable[[Any], Any]:
    """Return a factory of engines that draft three tokens, and one token if the last round had no accepted draft.

    If ``wrong_after`` successive rounds had none, a rejected draft is replaced by a draw from p.
    """

    def make(scenario: Any) -> Any:
        def decode(prompt: tuple[int, ...]) -> list[int]:
            new: list[int] = []
            failed = 0
            while len(new) < scenario.horizon:
                drafts, rows = [], []
                for _ in range(min(1 if failed else 3, scenario.horizon - len(new) - 1)):
                    rows.append(scenario.draft((*prompt, *new, *drafts)))
                    drafts.append(int(RNG.choice(len(rows[-1]), p=rows[-1])))
                accepted = 0
                row = scenario.target((*prompt, *new))
                while accepted < len(drafts):
                    draft, q = drafts[accepted], rows[accepted]
                    if RNG.random() * q[draft] >= row[draft]:
                        row = row if failed >= wrong_after else np.maximum(row - q, 0)
                        break
                    accepted += 1
                    row = scenario.target((*prompt, *new, *drafts[:accepted]))
                new += [*drafts[:accepted], int(RNG.choice(len(row), p=row / row.sum()))]
                failed = 0 if accepted else failed + 1
            return new

        return decode

    return make


def status_of(wrong_after: int, scenarios: Iterable[Any]) -> Status:
    """Return the verdict on the law of ``engine(wrong_after)`` in ``scenarios`` alone."""
    return law_verdict(engine(wrong_after), scenarios).status


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("wrong_after", "expected"), [(3, Status.REFUTED), (4, Status.REFUTED), (NEVER, Status.HOLDS)])
def test_a_round_after_rejected_ones_is_examined(wrong_after: int, expected: Status) -> None:
    assert status_of(wrong_after, [AFTER_REJECTIONS]) is expected
    assert AFTER_REJECTIONS in QUICK_SCENARIOS


def pausing_engine(paused_after: int) -> Callable[[Any], Any]:
    """Return a factory of engines of one draft, with a round without drafts after ``paused_after`` rejections in a row.

    The token of this round is the argmax of p.
    """

    def make(scenario: Any) -> Any:
        def decode(prompt: tuple[int, ...]) -> list[int]:
            text, failed = tuple(prompt), 0
            while (left := len(prompt) + scenario.horizon - len(text)) > 0:
                p = scenario.target(text)
                if failed == paused_after:
                    text, failed = (*text, int(np.argmax(p))), 0
                    continue
                q = scenario.draft(text)
                draft = int(RNG.choice(len(q), p=q)) if left > 1 else None
                if draft is None or RNG.random() * q[draft] >= p[draft]:
                    rest = p if draft is None else np.maximum(p - q, 0)
                    text, failed = (*text, int(RNG.choice(len(rest), p=rest / rest.sum()))), failed + 1
                else:
                    p = scenario.target((*text, draft))
                    text, failed = (*text, draft, int(RNG.choice(len(p), p=p))), 0
            return list(text[len(prompt) :])

        return decode

    return make


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(
    ("scenario", "paused_after", "expected"),
    [(0, 3, Status.REFUTED), (0, NEVER, Status.HOLDS), (1, 6, Status.REFUTED), (1, NEVER, Status.HOLDS)],
)
def test_a_round_without_drafts_after_rejections_is_examined(
    scenario: int, paused_after: int, expected: Status
) -> None:
    assert law_verdict(pausing_engine(paused_after), [HISTORIES[scenario]]).status is expected
    assert HISTORIES[0] in QUICK_OF_ENGINES


def looking_up_engine(paused_after: int) -> Callable[[Any], Any]:
    """Return a factory of engines that look up one draft in the text, and draw it from q after a rejection of that.

    After ``paused_after`` rejections in a row there is a round without drafts, which draws from the residual of the
    last q instead of from p.
    """

    def make(scenario: Any) -> Any:
        def drafted(text: tuple[int, ...], failed: int) -> tuple[int, Any] | None:
            earlier = [place for place in range(len(text) - 1) if text[place] == text[-1]]
            if failed % 2 == 0:
                return (text[earlier[-1] + 1], np.eye(scenario.vocabulary)[text[earlier[-1] + 1]]) if earlier else None
            q = scenario.draft(text)
            return int(RNG.choice(len(q), p=q)), q

        def decode(prompt: tuple[int, ...]) -> list[int]:
            text, failed, last = tuple(prompt), 0, np.zeros(scenario.vocabulary)
            while (left := len(prompt) + scenario.horizon - len(text)) > 0:
                p = scenario.target(text)
                if failed == paused_after:
                    rest, failed = np.maximum(p - last, 0), 0
                    rest = rest if rest.any() else p
                elif left > 1 and (draft := drafted(text, failed)):
                    token, last = draft
                    if RNG.random() * last[token] < p[token]:
                        text, failed = (*text, token), 0
                        rest = scenario.target(text)
                    else:
                        rest, failed = np.maximum(p - last, 0), failed + 1
                else:
                    rest = p
                text = (*text, int(RNG.choice(len(rest), p=rest / rest.sum())))
            return list(text[len(prompt) :])

        return decode

    return make


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize(("paused_after", "expected"), [(4, Status.REFUTED), (NEVER, Status.HOLDS)])
def test_rejections_of_two_ways_of_drafting_are_examined(paused_after: int, expected: Status) -> None:
    assert law_verdict(looking_up_engine(paused_after), HISTORIES[:1]).status is expected


@pytest.mark.thorough
def test_the_other_scenarios_do_not_show_it() -> None:
    assert status_of(4, {*SCENARIOS, *CERTAIN_SCENARIOS} - {AFTER_REJECTIONS}) is Status.HOLDS
