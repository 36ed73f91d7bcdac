"""Name the wrong rule of an engine that tests several candidates for one position, which no draw chooses.

Examples are branches of a pool of n-grams (Lookahead, arXiv 2402.02057) and the most probable tokens of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import numpy as np

from specverify.checks.explaining.drawn_candidates import name_of_candidates, open_draws
from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_rules import Row
from specverify.checks.explaining.tree_rules import TreeRound
from specverify.checks.explaining.wording import short
from specverify.reference import Draft, LanguageModel, Tokens

Path = tuple[Sequence[PathDraw], Tokens]
"""The draws of a path whose outcome is random, and its new tokens."""
NEAR = 1e-6
LEAST = 2
"""A single candidate is an ordinary draft."""


def rule_of_chosen(paths: Sequence[Path], target: LanguageModel, prompt: Tokens) -> str:
    """Return the sentence about the wrong rule for candidates that no draw chooses; "" if there is none.

    A path is (draws, new tokens after ``prompt``). All paths begin with tests of the same candidates for the first
    token that is not certain in p, at one program line. The token of a candidate is read off the paths on which its
    test is the first to pass: they emit it. ``target`` gives p.
    """
    open_ones = [(open_draws(items), new) for items, new in paths]
    if not all(items and new for items, new in open_ones):
        return ""
    before = _certain_beginning(open_ones[0][1], target, prompt)
    if any(new[: len(before)] != before or len(new) == len(before) for _, new in open_ones):
        return ""
    text, at = prompt + before, len(before)
    p = target(text).tolist()
    candidates = _candidates([(items, new[at:]) for items, new in open_ones], p)
    if len(candidates) < LEAST:
        return ""
    pmfs = tuple(np.eye(len(p))[token] for token in candidates)
    draft = Draft(candidates, (-1,) * len(candidates), pmfs)
    rounds = [TreeRound(draft, text, target, items, new[at : at + 1]) for items, new in open_ones]
    name = name_of_candidates(rounds)
    return f"{name}{_example(open_ones, p, candidates)}" if name else ""


def _certain_beginning(new: Tokens, target: LanguageModel, prompt: Tokens) -> Tokens:
    """Return the first tokens of ``new``, the new tokens after ``prompt``, that are certain in p."""
    sure = takewhile(lambda i: float(np.max(target(prompt + new[:i]))) > 1 - NEAR, range(len(new)))
    return new[: sum(1 for _ in sure)]


def _candidates(paths: Sequence[Path], p: Row) -> Tokens:
    """Return the candidates for the first new token of ``paths``, which are tested one after the other.

    There is no further candidate if those before it leave one token possible in ``p``: no draw replaces them then, and
    the next test may belong to another position.
    """
    found: Tokens = ()
    place = paths[0][0][0].place
    while sum(mass > NEAR and token not in found for token, mass in enumerate(p)) > 1:
        number = len(found)
        reached = [path for path in paths if _are_tests(path[0][: number + 1], number + 1, place)]
        passed = {new[0] for items, new in reached if _fail(items[:number]) and items[number].low <= 0}
        if len(passed) != 1 or passed & set(found):
            break
        found += (*passed,)
    return found


def _are_tests(items: Sequence[PathDraw], number: int, place: str) -> bool:
    """Return whether ``items`` are ``number`` tests at the program line ``place``."""
    return len(items) == number and not any(item.is_lookup or item.place != place for item in items)


def _fail(tests: Sequence[PathDraw]) -> bool:
    return all(test.low > 0 for test in tests)


def _example(paths: Sequence[Path], p: Row, candidates: Tokens) -> str:
    """Return a clause with the bound of the second candidate's test, and the right one; "" if the bound is right."""
    first, second = candidates[:LEAST]
    tests = (items[:LEAST] for items, _ in paths if _are_tests(items[:LEAST], LEAST, items[0].place))
    test = next((both[1] for both in tests if _fail(both[:1])), None)
    bound = 0.0 if test is None else test.bound
    right = p[second] / (1 - p[first])
    if test is None or abs(bound - right) < NEAR:
        return ""
    at = f" ({test.place})" if test.place else ""
    said = f"after candidate 1 ({first}) is rejected, candidate 2 ({second}) is tested with u < {short(bound)}{at}"
    return f": {said}, expected u < {short(right)}"
