"""Name the wrong rule of an engine that draws several candidates for one position, with or without replacement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_readings import are_from_one_row, are_without_replacement
from specverify.checks.explaining.tree_rules import TreeRound, follows_rejection, name_of_tree_rule
from specverify.checks.explaining.wording import short
from specverify.reference import Draft, LanguageModel, Tokens

NEAR = 1e-6


def rule_of_candidates(
    paths: Iterable[tuple[Sequence[PathDraw], Tokens]], target: LanguageModel, prompt: Tokens
) -> str:
    """Return the sentence about the wrong rule that the first rounds of all ``paths`` follow; "" if there is none.

    A path is (draws, new tokens after ``prompt``). It begins with several candidates: one call draws them without
    replacement, or one program line draws them from the same row. ``target`` gives p.
    """
    read = list[TreeRound]()
    for items, new in paths:
        one = _round_of(items, new, target, prompt)
        if one is None:
            return ""
        read.append(one)
    if not follows_rejection(read) and follows_rejection([_merged(one) for one in read]):
        return _sentence_of_merged(read)
    name = name_of_tree_rule(read).replace("sibling", "candidate").replace("child", "candidate")
    return f"{name}{_example(read)}" if name else ""


def _merged(one: TreeRound) -> TreeRound:
    """Return the round ``one`` with only the first of each group of equal candidates."""
    tokens = one.draft.tokens
    kept = [i for i, token in enumerate(tokens) if token not in tokens[:i]]
    pmfs = tuple(one.draft.pmfs[i] for i in kept)
    return one._replace(draft=Draft(tuple(tokens[i] for i in kept), (-1,) * len(kept), pmfs))


def _sentence_of_merged(rounds: Sequence[TreeRound]) -> str:
    """Return the sentence that equal candidates are tested only once, with an example of ``rounds``."""
    tokens = next(one.draft.tokens for one in rounds if len(set(one.draft.tokens)) < len(one.draft.tokens))
    second = next(i for i, token in enumerate(tokens) if token in tokens[:i])
    first, token = tokens.index(tokens[second]), tokens[second]
    said = (
        f"equal candidates are tested only once: candidates {first + 1} and {second + 1}, both {token}, are two draws"
    )
    return f"{said} from q, so the residual after their rejection has to subtract q once for each of them"


def _round_of(items: Sequence[PathDraw], new: Tokens, target: LanguageModel, prompt: Tokens) -> TreeRound | None:
    """Return the first round of a path as a tree of siblings; None if it has no two candidates, or emits no token.

    ``items`` are the draws of the path, and ``new`` its new tokens after ``prompt``. ``target`` gives p.
    """
    shown = [item for item in items if item.high - item.low < 1 - NEAR]
    count = 1
    alike = are_without_replacement if shown[1:] and are_without_replacement(*shown[:2]) else are_from_one_row
    while count < len(shown) and alike(shown[count - 1], shown[count]):
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
