"""Name the wrong rule of an engine that draws several candidates for one position, without replacement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_readings import are_without_replacement
from specverify.checks.explaining.tree_rules import TreeRound, name_of_tree_rule
from specverify.checks.explaining.wording import short
from specverify.reference import Draft, LanguageModel, Tokens

NEAR = 1e-6


def rule_of_candidates(
    paths: Iterable[tuple[Sequence[PathDraw], Tokens]], target: LanguageModel, prompt: Tokens
) -> str:
    """Return the sentence about the wrong rule that the first rounds of all ``paths`` follow; "" if there is none.

    A path is (draws, new tokens after ``prompt``), and begins with several candidates that one call draws without
    replacement. ``target`` gives p.
    """
    read = list[TreeRound]()
    for items, new in paths:
        one = _round_of(items, new, target, prompt)
        if one is None:
            return ""
        read.append(one)
    name = name_of_tree_rule(read).replace("sibling", "candidate").replace("child", "candidate")
    return f"{name}{_example(read)}" if name else ""


def _round_of(items: Sequence[PathDraw], new: Tokens, target: LanguageModel, prompt: Tokens) -> TreeRound | None:
    """Return the first round of a path as a tree of siblings; None if it draws no candidates, or emits no token.

    ``items`` are the draws of the path, and ``new`` its new tokens after ``prompt``. ``target`` gives p.
    """
    shown = [item for item in items if item.high - item.low < 1 - NEAR]
    count = 1
    while count < len(shown) and are_without_replacement(shown[count - 1], shown[count]):
        count += 1
    if count == 1 or not new:
        return None
    tokens = tuple(item.outcome for item in shown[:count] if item.outcome is not None)
    pmfs = tuple(np.array(item.pmf) for item in shown[:count])
    return TreeRound(Draft(tokens, (-1,) * count, pmfs), prompt, target, tuple(shown[count:]), new[:1])


def _example(rounds: Sequence[TreeRound]) -> str:
    """Return a clause with two probabilities of candidate 2: in q, and in q without candidate 1, normalised.

    The example is the first of ``rounds`` that emits candidate 2; "" if there is none.
    """
    one = next((one for one in rounds if one.emitted == one.draft.tokens[1:2]), None)
    if one is None:
        return ""
    level = one.level(0, range(len(one.draft.tokens)))
    (first, second), q = level.tokens[:2], level.q[1]
    told = f"q = {short(level.whole_q[second])}, and {short(q[second])} without candidate 1"
    return f": candidate 2 ({second}) after candidate 1 ({first}) is rejected has {told}"
