"""The rows on which idioms of any library are judged, their law, the twin with one mistake, and the exact checks.

There are three tokens and given drafts. Rejections are likely, the residual has a token of probability 0, and no two
rows are equal.
"""

from __future__ import annotations

import inspect
import textwrap
from collections import Counter
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from reference import accept_probability, residual
from specverify.base.verdict import Status
from specverify.checks import EXACT_CHECKS
from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law
from specverify.laws.law import total_variation
from specverify.run.verify import Checklist, verify_subject

P = np.array([[0.42, 0.18, 0.4], [1 / 6, 1 / 3, 1 / 2], [1 / 2, 1 / 6, 1 / 3]])
Q = np.array([[0.25, 0.6, 0.15], [0.5, 0.3, 0.2]])
DRAFTS = np.array([1, 0])
WORST = (Status.REFUTED, Status.UNUSABLE, Status.UNKNOWN, Status.REFUSED, Status.HOLDS)


def rejection_law(gamma):
    """Return emitted tokens -> probability, of rejection sampling with these drafts."""
    law, kept = Counter(), 1.0
    for i, (p, q, draft) in enumerate(zip(P[:gamma], Q, DRAFTS.tolist(), strict=False)):
        ratio, before = accept_probability(p, q, draft), tuple(DRAFTS[:i].tolist())
        for token, mass in enumerate(residual(p, q)):
            law[(*before, token)] += kept * (1 - ratio) * mass
        kept *= ratio
    for token, mass in enumerate(P[gamma]):
        law[(*DRAFTS[:gamma].tolist(), token)] += kept * mass
    return {tokens: mass for tokens, mass in law.items() if mass > 0}


def distance_of(once, gamma):
    """Return the total variation between the law of the tokens that ``once()`` emits and that of rejection sampling."""

    def program(draws):
        with answered_everywhere(draws):
            return once()

    law = patches.again(partial(program_law, program))
    return float(total_variation(law, rejection_law(gamma)).high)


def with_mistake(function: Any, right: str, wrong: str) -> Any:
    """Return a function with a piece of its source, which must occur once, replaced by another."""
    source, line = inspect.getsource(function), function.__code__.co_firstlineno
    source = textwrap.dedent(source)
    start = source.index("def ")
    head, body = source[:start], source[start:]
    if body.count(right) != 1:
        raise ValueError(f"{function.__name__} has {right!r} {body.count(right)} times, expected once")
    again = "\n" * (line - 1 + head.count("\n")) + body.replace(right, wrong)
    made: dict[str, Any] = {}
    exec(compile(again, function.__code__.co_filename, "exec"), made)
    twin = made[function.__name__]
    return FunctionType(twin.__code__, function.__globals__, twin.__name__, twin.__defaults__)


def worst_of(subject, place, shares, checks=EXACT_CHECKS):
    """Return the worst status of the exact checks that had a case, and its statement; stops at a refutation.

    The checks run in one of several shares of the scenarios; ``place`` selects the share. ``checks`` are those that
    run.
    """
    subject = subject._replace(scenarios=subject.scenarios[place % shares :: shares])
    worst = Status.HOLDS.value, ""
    for verdict in verify_subject(subject, Checklist(checks)):
        if verdict.status in WORST and not verdict.statement.startswith("no case applies"):
            said = verdict.status.value, f"{verdict.check}: {verdict.statement}"
            worst = min(worst, said, key=lambda each: WORST.index(each[0]))
        if verdict.status is Status.REFUTED:
            break
    return worst
