"""Name the wrong rule of an engine that draws several candidates for one position.

The candidates are drawn from one row, with or without replacement, or by several draft models from a row each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product, takewhile

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.round_rules import Row, excess, same_row, scaled, without
from specverify.checks.explaining.tree_rules import (
    TreeRound,
    draws_from,
    follows_rejection,
    name_of_tree_rule,
    outcome_of_tests,
)
from specverify.checks.explaining.wording import listed, rows_apart, short
from specverify.reference import Draft, LanguageModel, Pmf, Tokens
from specverify.subjects.subject import Trace

NEAR = 1e-6


def are_without_replacement(one: PathDraw, other: PathDraw) -> bool:
    """Return whether ``one`` and ``other`` are draws of one program line, the second without replacement of the first.

    The pmf of the second draw must be that of the first without its outcome, normalised.
    """
    if not one.place or one.place != other.place or one.outcome is None or len(one.pmf) != len(other.pmf):
        return False
    left = scaled(without(one.pmf, one.outcome))
    return one.pmf[one.outcome] < 1 - NEAR and same_row(left, other.pmf, NEAR)


def are_candidates(one: PathDraw, other: PathDraw, moments: Sequence[int]) -> bool:
    """Return whether ``one`` and ``other`` are drawn for the same position of the text.

    Such draws are made without replacement, or from equal rows with no model query between them. ``moments`` has the
    number of draws before each query.
    """
    if are_without_replacement(one, other):
        return True
    begin, end = len(one.before), len(other.before)
    unasked = begin < end and bool(moments) and not any(begin < at <= end for at in moments)
    return unasked and are_from_one_row(one, other)


def are_from_one_row(one: PathDraw, other: PathDraw) -> bool:
    """Return whether one program line made both draws, ``one`` and ``other``, from equal rows."""
    known = bool(one.place and one.pmf) and one.outcome is not None and other.outcome is not None
    return known and one.place == other.place and same_row(one.pmf, other.pmf, NEAR)


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
    if not follows_rejection(read):
        if follows_rejection([_merged(one) for one in read]):
            return _sentence_of_merged(read)
        if order := _lost_order(read):
            return order
    name = name_of_candidates(read)
    return f"{name}{_example(read)}" if name else _wrong_end(read)


def name_of_candidates(rounds: Sequence[TreeRound]) -> str:
    """Return the name of the wrong rule that all ``rounds`` follow, in words for candidates; "" if none is found."""
    return name_of_tree_rule(rounds).replace("sibling", "candidate").replace("child", "candidate")


def rule_of_drafters(paths: Sequence[tuple[Sequence[PathDraw], Tokens]], trace: Trace) -> str:
    """Return the sentence about the wrong rule for the candidates of several draft models; "" if there is none.

    All ``paths``, (draws, new tokens), begin with a candidate of each draft model for the first new token. A candidate
    from a certain row of the draft model in ``trace`` has no draw; its place among the others is not known, so the
    sentence must be the same for every place.
    """
    prompt, _ = trace.texts[0]
    first = list(takewhile(lambda query: query[1] == prompt, trace.queries))
    count, certain = sum(name == "draft" for name, _ in first), _certain_candidate(trace, prompt)
    if count < 2 or trace.target is None:
        return ""
    drawn = [(_candidates_of(items, count), items, new) for items, new in paths]
    numbers = {len(candidates) for candidates, _, _ in drawn}
    number = numbers.pop() if len(numbers) == 1 else 0
    if not number or (number < count and certain is None) or not all(new for _, _, new in drawn):
        return ""
    names, ends = set[str](), list[str]()
    for places in combinations(range(count), number):
        rounds = []
        for candidates, items, new in drawn:
            rest, made = iter(candidates), [certain] * count
            for place in places:
                made[place] = next(rest)
            tokens, pmfs = zip(*filter(None, made), strict=True)
            left = open_draws(items)[number:]
            rounds.append(TreeRound(Draft(tokens, (-1,) * count, pmfs), prompt, trace.target, left, new[:1]))
        if follows_rejection(rounds):
            return ""
        names.add(name_of_candidates(rounds))
        ends += filter(None, [_wrong_end(rounds)])
    name = names.pop() if len(names) == 1 else ""
    name = name or (ends[0] if len(ends) == 1 else "")
    return f"{count} draft models draw a candidate each for one position: {name}" if name else ""


def _wrong_end(rounds: Sequence[TreeRound]) -> str:
    """Return the sentence that only the token after the last rejected candidate has a wrong law; "" if this is not so.

    All tests in ``rounds`` must follow recursive rejection.
    """
    wrong = list[tuple[TreeRound, PathDraw, Row]]()
    for one in rounds:
        level = one.level((), range(len(one.draft.tokens)))
        tested = outcome_of_tests(level, one.items)
        if tested is None:
            return ""
        kept, left, items = tested
        if kept is not None and one.emitted != (level.tokens[kept],):
            return ""
        if kept is not None or (max(left) > 1 - NEAR and left[one.emitted[0]] > 1 - NEAR):
            continue
        if not items or not items[0].is_lookup:
            return ""  # a further test, of a residual that rounding leaves
        if not draws_from(items[0], left, one.emitted[0]):
            wrong.append((one, items[0], left))
    return _sentence_of_end(*wrong[0]) if wrong else ""


def _sentence_of_end(one: TreeRound, item: PathDraw, expected: Row) -> str:
    """Return the sentence about the wrong draw ``item`` of the token after all candidates of ``one`` are rejected.

    It names the row of the draw if this is p, or the residual of a single candidate. ``expected`` is the right row.
    """
    level, token = one.level((), range(len(one.draft.tokens))), one.emitted[0]
    known = {"p": level.p}
    known |= {
        f"norm(max(p - q, 0)) with q of candidate {i + 1} alone": excess(level.p, q) for i, q in enumerate(level.q)
    }
    name = next((name for name, row in known.items() if draws_from(item, row, token)), "")
    does, ought = rows_apart(known[name] if name else item.pmf or item.widths, expected)
    at = f" ({item.place})" if item.place else ""
    return (
        f"after all candidates are rejected, the token is drawn from {f'{name} = ' if name else ''}{does}{at}, "
        f"expected {ought}, the residual that the candidates leave one after the other"
    )


def _certain_candidate(trace: Trace, text: Tokens) -> tuple[int, Pmf] | None:
    """Return (token, row of q) of the candidate after ``text`` if the row is one-hot, so that it needs no draw.

    None if the row is not one-hot. ``trace`` has the draft model.
    """
    row = np.zeros(1) if trace.draft is None else trace.draft(text)
    return (int(row.argmax()), row) if row.max() > 1 - NEAR else None


def _candidates_of(items: Sequence[PathDraw], most: int) -> list[tuple[int, Pmf]]:
    """Return (token, pmf) of each of the first draws on a path, as long as they come from one program line.

    ``items`` are the draws of the path. At most ``most`` draws are returned.
    """
    shown = open_draws(items)
    same = takewhile(lambda item: item.place == shown[0].place and item.outcome is not None, shown)
    return [(item.outcome or 0, np.array(item.pmf)) for item in same][:most]


def has_several_drafters(items: Sequence[PathDraw], trace: Trace) -> bool:
    """Return whether several draft models make a draft each for one position, on the path with the draws ``items``.

    The draft model in ``trace`` is then queried at least twice with the same text. After that, a token is drawn
    although the row of q is certain, or two tokens are drawn before the next query. Draws from p and from the residual
    do not count.
    """
    if trace.draft is None or trace.target is None or len(trace.moments) != len(trace.queries):
        return False
    shown, made = open_draws(items), -1
    for i, item in enumerate(shown):
        begin = len(item.before)
        asked = [query for at, query in zip(trace.moments, trace.queries, strict=True) if made < at <= begin]
        texts = [text for name, text in asked if name == "draft"]
        made = begin
        if len(texts) < 2 or len(set(texts)) > 1 or item.outcome is None:
            continue
        p, q = (model(texts[0]).tolist() for model in (trace.target, trace.draft))
        after = [at for at in trace.moments if at > begin]
        following = shown[i + 1] if i + 1 < len(shown) else None
        second = following if following and not any(at <= len(following.before) for at in after) else None
        if max(q) > 1 - NEAR and not _is_one_of(item.pmf, (p, excess(p, q))):
            return True
        if second and second.outcome is not None and not _is_one_of(second.pmf, (p, excess(p, item.pmf))):
            return True
    return False


def _is_one_of(row: Row, others: Sequence[Row]) -> bool:
    return any(same_row(row, other, NEAR) for other in others)


def _merged(one: TreeRound) -> TreeRound:
    """Return the round ``one`` with only the first of each group of equal candidates."""
    tokens = one.draft.tokens
    kept = [i for i, token in enumerate(tokens) if token not in tokens[:i]]
    pmfs = tuple(one.draft.pmfs[i] for i in kept)
    return one._replace(draft=Draft(tuple(tokens[i] for i in kept), (-1,) * len(kept), pmfs))


_ORDERS: Mapping[str, Callable[[TreeRound, int], float]] = {
    "from the smallest token to the largest": lambda one, i: one.draft.tokens[i],
    "from the largest token to the smallest": lambda one, i: -one.draft.tokens[i],
    "from the largest q to the smallest": lambda one, i: -float(one.level((), (i,)).q[0][one.draft.tokens[i]]),
    "from the largest p to the smallest": lambda one, i: -float(one.target(one.prefix)[one.draft.tokens[i]]),
    "from the last draw to the first": lambda one, i: -i,
}
"""Wrong order of candidates -> the key by which they are sorted: ``key(round, number of the candidate)``."""


def _lost_order(rounds: Sequence[TreeRound]) -> str:
    """Return the sentence that candidates are tested in another order than they are drawn; "" if they are not.

    In this order, all ``rounds`` follow recursive rejection; equal candidates may be tested only once.
    """
    for merged, (order, key) in product((False, True), _ORDERS.items()):
        changed = [_sorted(_merged(one) if merged else one, key) for one in rounds]
        if follows_rejection(changed):
            once = ", each token once" if merged else ""
            pairs = ((listed(a.draft.tokens), listed(b.draft.tokens)) for a, b in zip(rounds, changed, strict=True))
            drawn, tested = next(pair for pair in pairs if pair[0] != pair[1])
            said = f"candidates are tested {order}{once}, expected in the order in which they are drawn"
            return f"{said}: candidates {drawn} are tested as {tested}"
    return ""


def _sorted(one: TreeRound, key: Callable[[TreeRound, int], float]) -> TreeRound:
    """Return the round ``one`` with its candidates sorted by ``key``."""
    draft = one.draft
    order = sorted(range(len(draft.tokens)), key=lambda i: key(one, i))
    pmfs = tuple(draft.pmfs[i] for i in order)
    return one._replace(draft=Draft(tuple(draft.tokens[i] for i in order), draft.parents, pmfs))


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
    """Return the first round of a path as a tree whose nodes are the candidates for one position, or None.

    ``items`` are the draws of the path, and ``new`` its new tokens after ``prompt``. ``target`` gives p. The result is
    None if there are fewer than two candidates, or if the round emits no token.
    """
    shown = open_draws(items)
    count = 1
    alike = are_without_replacement if shown[1:] and are_without_replacement(*shown[:2]) else are_from_one_row
    while count < len(shown) and alike(shown[count - 1], shown[count]):
        count += 1
    if count == 1 or not new:
        return None
    tokens = tuple(item.outcome for item in shown[:count] if item.outcome is not None)
    pmfs = tuple(np.array(item.pmf) for item in shown[:count])
    return TreeRound(Draft(tokens, (-1,) * count, pmfs), prompt, target, shown[count:], new[:1])


def open_draws(items: Sequence[PathDraw]) -> tuple[PathDraw, ...]:
    """Return the draws ``items`` of a path whose outcome is random: those with more than one possible outcome."""
    return tuple(item for item in items if item.high - item.low < 1 - NEAR)


def _example(rounds: Sequence[TreeRound]) -> str:
    """Return a clause with two probabilities of candidate 2: in q, and in q without candidate 1, normalised.

    The example is the first of ``rounds`` that emits candidate 2; "" if there is none, or if the two probabilities are
    equal, because candidates are drawn with replacement.
    """
    one = next((one for one in rounds if one.emitted == one.draft.tokens[1:2]), None)
    if one is None:
        return ""
    level = one.level((), range(len(one.draft.tokens)))
    (first, second), q = level.tokens[:2], level.q[1]
    if same_row([level.whole_q[second]], [q[second]], NEAR):
        return ""
    told = f"q = {short(level.whole_q[second])}, and {short(q[second])} without candidate 1"
    return f": candidate 2 ({second}) after candidate 1 ({first}) is rejected has {told}"
