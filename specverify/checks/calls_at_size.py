"""The law of a user's call with a large vocabulary, and smaller or extreme calls of the same program.

The smaller calls have rows with three possible tokens. In an extreme call one random number is at an end of its range.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.call_verdicts import compared
from specverify.checks.explaining.counterexample_parts import readable
from specverify.intercept.distributions import Boundary
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.large import MANY
from specverify.laws.call_paths import Ending, call_paths
from specverify.laws.call_rule import Rows
from specverify.laws.draws import NotAFunctionOfItsDraws, Tape
from specverify.laws.law_of_call import CallLaw, call_law
from specverify.laws.rounding import LARGEST, UNDERFLOW, spacing
from specverify.reference import Draws, Tokens
from specverify.subjects.emitted import no_token
from specverify.subjects.subject import GivenCall, OpenedCall, emitted_by

ORDINARY = 0.25
SMALL = 5
"""The vocabulary size of the small calls that show which rule a program follows."""
ROWS_IN_A_DTYPE, NEGLIGIBLE_IN_SUM = 4, 1e-9
"""The total-variation error of stored rows, in spacings of their dtype; and the largest error of a law's sum."""


def law_of(opened: OpenedCall, seed: int) -> CallLaw:
    """Return the law of the tokens that the call ``opened`` emits, by enumeration.

    If a draw selects a token of the vocabulary, only the drafted tokens and a random sample of the others are followed.
    ``seed`` is the seed of the sample.
    """
    return call_law(opened.run, opened.rows.vocabulary, opened.rows.drafts, (NeedsValue,), seed)


def follows_the_rule(opened: OpenedCall, seed: int) -> bool:
    """Return whether the program of ``opened`` follows speculative sampling in small calls (``small_calls``).

    Returns False also if the program runs none of these calls. ``seed`` is passed to ``law_of``.
    """
    return bool(calls := small_calls(opened)) and all(_has_target_law(call, seed) for call in calls)


def small_calls(opened: OpenedCall) -> list[OpenedCall]:
    """Return calls like ``opened`` whose rows have three possible tokens; [] if the program cannot run them.

    At first calls with a small vocabulary and at most two drafts are tried. If the program raises an error there, calls
    with the vocabulary size and the number of drafts of ``opened`` are tried.
    """
    drafts = len(opened.rows.drafts)
    for vocabulary, gamma in ((SMALL, min(drafts, 2)), (max(opened.rows.vocabulary, SMALL), drafts)):
        calls = [opened.alike(*row) for row in _few_tokens(vocabulary, gamma)]
        try:
            for call in calls:
                emitted_by(call, Tape(0))
        except Exception:  # noqa: BLE001, S112 - it is made for one vocabulary or one number of drafts, or refused there
            continue
        return calls
    return []


def wrong_on_few_tokens(opened: OpenedCall, seed: int) -> str:
    """Describe how the program of ``opened`` misses the target's law on rows of three tokens; "" if it does not.

    In these calls the drafts are drawn from q, and draws from p extend the output to a fixed length. Then
    every lossless program has the product of the rows of p as its law. ``seed`` is passed to ``law_of``.
    """
    gamma = min(len(opened.rows.drafts), 2)
    for p, q, _ in _few_tokens(SMALL, gamma):
        with suppress(Exception):  # it is made for one vocabulary or one number of drafts, or refused there
            said = _unlike_the_target(opened, p, q, seed)
            if said:
                return said
    return ""


def _unlike_the_target(opened: OpenedCall, p: Any, q: Any, seed: int) -> str:
    texts, allowed = np.zeros((SMALL,) * len(p)), LARGEST + ROWS_IN_A_DTYPE * spacing(opened.dtype)
    for drafts in product(np.flatnonzero(q[0]).tolist(), repeat=len(q)):
        call = opened.alike(p, q, tuple(drafts))
        law, rows = law_of(call, seed), call.rows
        likely = math.prod(float(row.pmf[token] / row.pmf.sum()) for row, token in zip(rows.q, drafts, strict=True))
        slack = compared(law, rows, call.dtype)[1].get("rounding", 1.0)
        if law.missing or law.faults or any(each.unread or each.outside for each in law.behind.values()):
            return ""
        allowed += 2 * likely * slack
        for kept, result in law.behind.items():
            rest = [row.pmf / row.pmf.sum() for row in rows.p[len(kept) + 1 :]]
            texts[kept] += likely * reduce(np.multiply.outer, rest, result.masses)
    target = [row.pmf / row.pmf.sum() for row in rows.p]
    promised = reduce(np.multiply.outer, target)
    if abs(texts.sum() - 1) > NEGLIGIBLE_IN_SUM or np.abs(texts - promised).sum() / 2 <= allowed:
        return ""
    of_first = texts.reshape(SMALL, -1).sum(1)
    worst = int(np.abs(of_first - target[0]).argmax())
    if abs(of_first[worst] - target[0][worst]) > allowed:
        what, found_mass, wanted = f"new token 1 is {worst}", of_first[worst], target[0][worst]
    else:
        text = tuple(map(int, np.unravel_index(int(np.abs(texts - promised).argmax()), texts.shape)))
        what, found_mass, wanted = f"the new tokens are {text}", texts[text], promised[text]
    shown = ", ".join(f"{name} = {_row(row)}" for name, row in (("p", target[0]), ("q", rows.q[0].pmf)))
    return f"{shown}, drafts drawn from q: {what} with probability {readable(found_mass)}, expected {readable(wanted)}"


def _row(pmf: Any) -> str:
    return f"({', '.join(readable(float(mass)) for mass in pmf / pmf.sum())})"


def _has_target_law(opened: OpenedCall, seed: int) -> bool:
    law = law_of(opened, seed)
    return not compared(law, opened.rows, opened.dtype)[0].refuted


def _few_tokens(vocabulary: int, gamma: int) -> list[tuple[Any, Any, Tokens]]:
    """Return triples (p ``[gamma + 1, vocabulary]``, q ``[gamma, vocabulary]``, drafts) with three possible tokens.

    The first and the last token of the vocabulary have probability 0.
    """
    result = []
    for weights in (((1, 2, 3), (3, 2, 1)), ((4, 1, 1), (1, 1, 4)), ((1, 1, 2), (2, 1, 1))):
        p, q = np.zeros((gamma + 1, vocabulary)), np.zeros((gamma, vocabulary))
        for row in range(gamma + 1):
            p[row, 1:4] = np.roll(weights[0], row)
            q[row : row + 1, 1:4] = np.roll(weights[1], row)
        drafts = tuple(1 + place % 3 for place in range(gamma))
        result.append((p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True), drafts))
    return result


def described(given: GivenCall, opened: OpenedCall) -> tuple[str, ...]:
    """Format a call as lines: its name and sizes, and for each draft its p and q.

    ``given`` has the name of the call, and ``opened`` its rows.
    """
    rows, gamma = opened.rows, len(opened.rows.drafts)
    masses = [(float(rows.p[i].pmf[token]), float(rows.q[i].pmf[token])) for i, token in enumerate(rows.drafts)]
    at = [
        f"draft {i + 1} is token {token}: p = {readable(p)}, q = {readable(q)}"
        for i, (token, (p, q)) in enumerate(zip(rows.drafts, masses, strict=True))
    ]
    return (f"call {given.name!r}: vocabulary {rows.vocabulary}, gamma {gamma}, rows in {opened.dtype}", *at)


# Random numbers at their ends


class AtPlace(NamedTuple):
    """The result of a call in which one random number has an extreme value, such as 0.

    ``runs`` is the number of paths, and ``boundary`` the source of random numbers that the call used.
    """

    fault: str
    """A description of the wrong output, or ""."""
    when: str
    """A description of the random number and its value."""
    runs: int
    boundary: Boundary


def places_of(opened: OpenedCall) -> list[int]:
    """Return the indices of the random numbers of the call ``opened`` that are tested at the ends of their range.

    * Of the numbers drawn singly or in arrays of at most ``MANY``: the first ``MANY``.
    * Of each longer array: the first and the last entry, and those of the least and of the most probable token in the
      first row of p.
    """
    boundary = Boundary(0.25)
    next(call_paths(lambda draws: opened.run(draws, boundary)))
    together = [(first, count) for first, count in boundary.arrays if count > MANY]
    inside = {place for first, count in together for place in range(first, first + count)} if together else set()
    result = [place for place in range(boundary.drawn) if place not in inside][:MANY]
    pmf = opened.rows.p[0].pmf
    tokens = {int(pmf.argmin()), int(pmf.argmax()), 0, len(pmf) - 1}
    for first, count in together:
        result += sorted({first + token for token in tokens if token < count} | {first + count - 1})
    return result


def at_place(opened: OpenedCall, end: float, place: int, apart: float = 0.0) -> AtPlace:
    """Return the result of a call with one random number at an end of its range, and all others inside their range.

    An error of the verifier counts as a fault. If it also occurs without a number at an end, it is raised.

    Args:
        opened: The call.
        end: 0 or 1: the end.
        place: The index of the random number.
        apart: Its distance from the end.
    """
    boundaries: list[Boundary] = []

    def run(draws: Draws) -> Ending:
        boundaries.append(Boundary(end, place, apart=apart))
        return opened.run(draws, boundaries[-1])

    paths, fault = 0, ""
    try:
        for path in call_paths(run):
            paths += 1
            fault = fault or _forbidden(path.ending, opened.rows) or ""
    except (NeedsValue, NotAFunctionOfItsDraws):
        raise
    except Exception as error:  # noqa: BLE001 - the verifier may raise anything; it is judged or raised again
        next(call_paths(lambda draws: opened.run(draws, Boundary(ORDINARY))))
        fault = f"it raises {type(error).__name__}: {' '.join(str(error).split())}"
    number = boundaries[-1]
    when = f"{number.where} gives {number.value!r}" if number.where else "numbers are ordinary"
    return AtPlace(fault, when, paths, number)


def _forbidden(ending: Ending, rows: Rows) -> str | None:
    """Describe an emitted number that is no token or has p = 0; None if there is none.

    ``ending`` holds the emitted tokens of a call, and ``rows`` its p, q and drafts.
    """
    for position, token in enumerate(ending.tokens):
        wrong = no_token(token, rows.vocabulary)
        if wrong or not rows.p[position].pmf[token] > 0:
            return f"token {wrong or f'{token} has target probability 0'}, at position {position}"
    if ending.values is None:
        return None
    values, position = ending.values, len(ending.tokens)
    inside = (values >= 0) & (values < rows.vocabulary)
    possible = inside & (rows.p[position].pmf[np.where(inside, values, 0).astype(np.int64)] > 0)
    wrong_ones = np.where(possible, 0.0, ending.masses)
    if wrong_ones.sum() <= UNDERFLOW:
        return None
    return f"token {int(values[wrong_ones.argmax()])} has target probability 0, and comes out at position {position}"
