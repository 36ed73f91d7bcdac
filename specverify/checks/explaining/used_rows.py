"""Find rounds of an engine that follow the rule of speculative sampling with a wrong row of p or q.

An example is a cache of the target that keeps the entry of a rejected draft: the tests and replacements of the next
round are right for the row that the program computes. The row is computed from the paths: if a round follows the rule,
the law of the next token, given all draws before the round, is the row of p that the round uses. Often the same tests
and replacements also follow the rule with the right p and another q than the drafts are drawn from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import takewhile
from math import prod
from typing import Any, NamedTuple

from specverify.checks.explaining.counterexample_parts import NEAR_LAW
from specverify.checks.explaining.engine_paths import KeptPaths, PathDraw, draws_of, with_pmfs
from specverify.checks.explaining.first_difference import CERTAIN
from specverify.checks.explaining.readings import Reading, ReadRound
from specverify.checks.explaining.round_rules import Row, excess, other_in_one_token, ratio, same_row
from specverify.checks.explaining.wording import after_new, rows_apart
from specverify.laws.paths import Path, outcomes_of
from specverify.reference import LanguageModel, Tokens

MOST_ENDS = 500
"""The largest number of paths after the beginning of a round whose draws are read."""
REPLACED, KEPT, FIRST = "replace", "kept", "first"
REJECTED_CHANGES = "p has other odds of the rejected draft alone"
"""The beginning of a sentence about a row of p that a rejected draft changes."""


class _Used(NamedTuple):
    """A row of p that a round of an engine uses, with the row that it should use.

    ``number`` is the number of the round, and ``position`` is that of the draft in the round for which the row is used
    (0: the first). ``row`` is the row that the engine used. ``expected`` is the row of the target after the prompt and
    ``new``, which a right engine uses. ``before`` is how the preceding round ended: ``FIRST`` if there is none,
    ``REPLACED`` if it replaced a rejected draft.
    """

    number: int
    position: int
    before: str
    new: Tokens
    """The new tokens before the draft."""
    row: Row
    expected: Row
    ends: Sequence[_RoundPath]
    """The paths on which the round begins after the same draws, and accepts the same drafts before this one."""
    rejected: int | None = None
    """The draft that the preceding round rejected; None if it rejected none."""
    rejected_last: bool = False
    """Whether the preceding round rejected the last of several drafts."""

    @property
    def is_right(self) -> bool:
        """Return whether the engine used the right row: ``row`` equals ``expected`` up to rounding."""
        return same_row(self.row, self.expected, NEAR_LAW)


class _RoundPath(NamedTuple):
    """A path of an engine, from the beginning of one of its rounds to its end.

    The round begins after the first ``begin`` decisions of ``path``. ``texts`` are the possible new tokens of the whole
    path with their probabilities.
    """

    path: Path[Any]
    begin: int
    texts: Sequence[tuple[Tokens, float]]


class _EnginePaths:
    """The enumerated paths of an engine, sorted by their outcomes, with a cache of the draws on each path."""

    def __init__(self, engine: KeptPaths, size: int, cells: dict[tuple[int, ...], Any]) -> None:
        """Store the paths of the engine.

        ``size`` is the vocabulary size. ``cells`` is a cache of the intervals in which each uniform lies on the
        different paths, which ``with_pmfs`` fills.
        """
        self._engine, self.size, self._cells = engine, size, cells
        self._paths = sorted(engine, key=lambda path: path.choices)
        self._drawn = dict[tuple[int, ...], Sequence[PathDraw]]()

    def ends(self, choices: tuple[int, ...]) -> list[_RoundPath]:
        """Return the paths whose first decisions have the outcomes ``choices``.

        Returns [] if some of these paths are not known.
        """
        begin = len(choices)
        first = bisect_left(self._paths, choices, key=lambda path: path.choices)
        same = list(takewhile(lambda path: path.choices[:begin] == choices, self._paths[first:]))
        mass = prod(float(one.weights[one.outcome]) for one in same[0].decisions[:begin]) if same else 0.0
        if abs(sum(float(path.weight) for path in same) - mass) > NEAR_LAW * mass:
            return []
        return [_RoundPath(path, begin, _texts_of(path)) for path in same]

    def draws(self, end: _RoundPath) -> list[PathDraw]:
        """Return the draws of the path ``end`` from the beginning of its round on.

        Draws with a certain outcome are left out.
        """
        path = end.path
        if path.choices not in self._drawn:
            self._drawn[path.choices] = with_pmfs(self._engine, draws_of(path.decisions), self.size, self._cells)
        return [item for item in self._drawn[path.choices] if len(item.before) >= end.begin and _is_open(item)]


def _texts_of(path: Path[Any]) -> list[tuple[Tokens, float]]:
    weight = float(path.weight)
    return [(text, weight * float(share)) for text, share in outcomes_of(path.outcome) if share]


def wrong_row_used(
    engine: KeptPaths,
    drawn: Sequence[Sequence[PathDraw]],
    readings: Sequence[Reading | None],
    target: tuple[LanguageModel, int],
    cells: dict[tuple[int, ...], Any],
) -> str:
    """Return the sentence that some rounds follow the rule with a wrong row of p or q; "" if this is not proved.

    Two conditions prove it:

    * All tests of such a round have the bound min(1, p/q) with the wrong row.
    * The replacement is drawn from the residual of the wrong row, or other rounds, with right rows, have tests with the
      right bound. So the acceptance rule is right, and only the row is wrong.

    Args:
        engine: The paths of the engine.
        drawn: The draws of some of the paths.
        readings: For each of them, its reading as rounds, or None.
        target: The target as a function of the new tokens, and the vocabulary size.
        cells: The cache of ``with_pmfs``.
    """
    read = [(items, reading) for items, reading in zip(drawn, readings, strict=True) if reading]
    model, size = target
    known, seen = _EnginePaths(engine, size, cells), dict[tuple[Any, ...], _Used]()
    for items, reading in read:
        for key, used in _rows_used(known, items, reading, model):
            seen.setdefault(key, used)
    wrong = [used for used in seen.values() if not used.is_right]
    right = [used for used in seen.values() if used.is_right]
    wrong.sort(key=lambda used: (len(used.new), used.number, used.position))
    drafted = [(used, q) for used in wrong if (q := _drawn_row(known, used)) is not None]
    if not drafted or drafted[0][0] is not wrong[0]:
        return ""
    rounds = [one for _, reading in read for one in reading.rounds]
    if all(_tests_alike(used, q) for used, q in drafted):
        return ""  # the replacements alone are wrong
    if not (right and any(map(_tests_by_rule, rounds))) and not any(_replaces_by_it(*one) for one in drafted):
        return ""
    tested = [_other_q(used, q) for used, q in drafted]
    bonuses = _bonuses(rounds, model)
    penalty = all(used.before == REPLACED and _only_rejected_changes(used) for used in wrong)
    is_p = penalty or None in tested or not all(bonuses)
    is_q = not is_p and all(row is not None and _is_drafted(row, rounds) for row in tested)
    when, others = _when(wrong, right)
    others += "; the bonus token is drawn from the right p" * (bool(bonuses) and not is_p)
    row_of_p = _words_of_rejected(wrong) if penalty else "p is not the target's row"
    return f"{when}{_words_of(*drafted[0], row_of_p, None if is_p else tested[0], is_q=is_q)}{others}"


def _words_of_rejected(wrong: Sequence[_Used]) -> str:
    """Return the words for wrong rows of p in which only the odds of the draft just rejected were changed.

    ``wrong`` are such rows: all other tokens have the odds of the target's row.
    """
    lower = all(used.row[used.rejected] < used.expected[used.rejected] for used in wrong if used.rejected is not None)
    still = ", as if a penalty still counted it" * lower
    return f"{REJECTED_CHANGES} (token {wrong[0].rejected}){still}"


def _only_rejected_changes(used: _Used) -> bool:
    """Return whether a wrong row of p has the target's odds for all tokens but one: the draft rejected just before.

    ``used`` has the row that the engine used, and the target's.
    """
    token = used.rejected
    return token is not None and token == other_in_one_token(used.row, used.expected, NEAR_LAW)


def _replaces_by_it(used: _Used, q: Row) -> bool:
    """Return whether a rejected draft is replaced by the residual of ``used.row`` and ``q``, not by that of p and q."""
    residual, right = excess(used.row, q), excess(used.expected, q)
    return max(residual) < 1 - NEAR_LAW and not same_row(residual, right, NEAR_LAW)


def _tests_alike(used: _Used, q: Row) -> bool:
    """Return whether each draft from ``q`` has the same acceptance probability with both rows of p in ``used``."""
    bounds = ((ratio(used.row[token], own), ratio(used.expected[token], own)) for token, own in enumerate(q) if own > 0)
    return all(abs(float(one) - float(other)) < NEAR_LAW for one, other in bounds)


def _words_of(used: _Used, q: Row, row_of_p: str, tested: Row | None, *, is_q: bool) -> str:
    """Return a sentence about the round of ``used`` and the wrong row in it: a row of p, or with ``is_q`` one of q.

    ``q`` is the row that the draft is drawn from. For a wrong row of q, ``tested`` is the row of q with which the draft
    is tested and replaced. For a wrong row of p, ``tested`` is None and ``row_of_p`` describes the row.
    """
    p, ought = rows_apart(used.row, used.expected)
    draft = f"draft {used.position + 1} of round {used.number}"
    after = f" {after_new(used.new)}".rstrip()
    if tested is None:
        return f"{row_of_p}: {draft} is tested and replaced as with p = {p}{after}, expected p = {ought}"
    other, own = rows_apart(tested, q)
    if is_q:
        said = "q in the test is not the row that the draft was drawn from"
        return f"{said}: {draft}{after} is tested and replaced as with q = {other}, expected q = {own}"
    said = f"p or q is wrong: {draft}{after} is tested and replaced as with p = {p} in place of p = {ought}"
    return f"{said}, or as with q = {other} in place of q = {own}"


def _other_q(used: _Used, q: Row) -> Row | None:
    """Return the row of q with which the draft of ``used`` is tested and replaced, if p is the target's row; or None.

    ``q`` is the row that the draft is drawn from. With ``used.row`` as p, the round follows the rule.
    """
    row, beyond = list(used.expected), 0.0
    for token, (mass, p, own) in enumerate(zip(used.row, used.expected, q, strict=True)):
        if mass < own - NEAR_LAW:
            if not mass > 0 < p:
                return None
            row[token] = p * own / mass
            beyond += row[token] - p
    row = [mass - beyond * left for mass, left in zip(row, excess(used.row, q), strict=True)]
    return [max(mass, 0.0) for mass in row] if min(row) > -NEAR_LAW else None


def _is_drafted(row: Row, rounds: Sequence[ReadRound]) -> bool:
    """Return whether a draft of one of ``rounds`` is drawn from ``row``."""
    return any(same_row(row, q, NEAR_LAW) for one in rounds for q in one.q)


def _bonuses(rounds: Sequence[ReadRound], model: LanguageModel) -> list[bool]:
    """Return one bool for each bonus token of a wrong round: whether it is drawn from the row of ``model``.

    ``model`` is the target as a function of the new tokens, and ``rounds`` are all rounds. A bonus from a one-hot row
    is left out, because it does not show from which row it is drawn.
    """
    wrong = [one for one in rounds if one.fault and one.end[0] == "bonus"]
    ends = [(one.text[len(rounds[0].text) :] + one.drafts, one.end[1]) for one in wrong]
    return [same_row(row, model(new).tolist(), NEAR_LAW) for new, row in ends if row and max(row) < 1 - NEAR_LAW]


def _when(wrong: Sequence[_Used], right: Sequence[_Used]) -> tuple[str, str]:
    """Return words for the rounds with a wrong row, and words for the rounds with a right one.

    Both are "" if no words separate the two groups. ``wrong`` and ``right`` are the rows used in rounds of several
    paths.
    """
    every = (*wrong, *right)
    if all((used.before == REPLACED) != used.is_right for used in every):
        others = " and after accepted drafts" * any(used.before == KEPT for used in right)
        return "after a rejection, ", f" (in the first round{others}, the rows are right)"
    if all(used.rejected_last != used.is_right for used in every):
        return "after a round that rejects its last draft, ", " (after other rounds, the rows are right)"
    if all((used.before == FIRST) == used.is_right for used in every):
        return "after the first round, ", " (in the first round, the rows are right)"
    if all((used.position == 0) == used.is_right for used in every):
        return "after the first draft of a round, ", " (for the first draft, the rows are right)"
    return "", ""


def _is_open(item: PathDraw) -> bool:
    return item.high - item.low < CERTAIN


def _tests_by_rule(one: ReadRound) -> bool:
    """Return whether the round ``one`` has a test that shows that the engine follows the rule.

    Such a test does not deviate from the rule, and its result is not certain.
    """
    return not one.fault and any(NEAR_LAW < bound < 1 - NEAR_LAW for bound in one.accept)


def _rows_used(
    engine: _EnginePaths, items: Sequence[PathDraw], reading: Reading, model: LanguageModel
) -> Iterator[tuple[tuple[Any, ...], _Used]]:
    """Yield (identifier, row) for the rows of p that the rounds of one path use, up to the first round that deviates.

    ``items`` are the draws of the path, ``reading`` its reading as rounds, and ``engine`` has all paths. ``model`` is
    the target as a function of the new tokens. Rows after a wrong one of the same round are left out.
    """
    open_items, before = [item for item in items if _is_open(item)], FIRST
    rejected: int | None = None
    last = False
    for number, one in enumerate(reading.rounds, 1):
        if one.begin >= len(open_items):
            return
        choices, new = open_items[one.begin].before, one.text[len(reading.rounds[0].text) :]
        ends = engine.ends(choices)
        for position in range(min(len(one.accept), len(one.drafts))):
            here = new + one.drafts[:position]
            if position and len(ends) > MOST_ENDS:
                break
            kept = [end for end in ends if _accepts(engine, end, one.drafts[:position], here)]
            row = _law_of_next(kept, len(here), engine.size)
            if row is None:
                break
            used = _Used(number, position, before, here, row, model(here).tolist(), kept, rejected, last)
            yield (choices, position, here), used
            if not used.is_right:
                break
        if one.fault:
            return
        before = REPLACED if one.end[0] == REPLACED else KEPT
        rejected = one.drafts[len(one.accept) - 1] if before == REPLACED else None
        last = before == REPLACED and 1 < len(one.accept) == len(one.drafts)


def _accepts(engine: _EnginePaths, end: _RoundPath, drafts: Tokens, new: Tokens) -> bool:
    """Return whether the path ``end`` begins with a round that drafts ``drafts``, and its texts begin with ``new``.

    ``end`` is a path from the beginning of a round to its end, with the possible texts. ``engine`` has the draws on
    each path.
    """
    if any(text[: len(new)] != new for text, _ in end.texts):
        return False
    return not drafts or tuple(item.outcome for item in engine.draws(end) if item.is_lookup)[: len(drafts)] == drafts


def _law_of_next(ends: Sequence[_RoundPath], at: int, size: int) -> Row | None:
    """Return the law of new token number ``at`` (0 is the first), ``[size]``; None if a path ends before it."""
    row = [0.0] * size
    for end in ends:
        for text, mass in end.texts:
            if len(text) <= at:
                return None
            row[text[at]] += mass
    total = sum(row)
    return [mass / total for mass in row] if total > 0 else None


def _drawn_row(engine: _EnginePaths, used: _Used) -> Row | None:
    """Return the row that the draft in the round ``used`` is drawn from, if the draft is tested with ``used.row`` as p.

    None if it is not. On all paths of the round in ``engine``, the draft x must be drawn from the same row q and
    accepted with probability min(1, p(x)/q(x)), which must be below 1 at least once. The replacement then follows the
    rule too, because the law of the token is p.
    """
    at, shown = used.position, False
    if len(used.ends) > MOST_ENDS:
        return None
    q: Row | None = None
    number: int | None = None
    for end in used.ends:
        draws = engine.draws(end)
        lookups = [item for item in draws if item.is_lookup]
        if len(lookups) <= at or lookups[at].outcome is None or len(lookups[at].pmf) != len(used.row):
            return None
        draft, row = lookups[at].outcome or 0, lookups[at].pmf
        if q is not None and not same_row(q, row, NEAR_LAW):
            return None
        q = row
        bound = float(ratio(used.row[draft], row[draft]))
        emitted = {text[len(used.new)] for text, _ in end.texts}
        if not NEAR_LAW < bound < 1 - NEAR_LAW:
            if (emitted == {draft}) != (bound > NEAR_LAW):
                return None
            continue
        coins = [item for item in draws if not item.is_lookup]
        fitting = [i for i, item in enumerate(coins) if abs(item.bound - bound) < NEAR_LAW]
        number = next((i for i in fitting if number in {None, i}), None)
        if number is None or (coins[number].low <= 0) != (emitted == {draft}):
            return None
        shown = True
    return q if shown else None
