"""Read many paths of one engine as rounds: the role of each program line, and the rule that the rounds follow.

The *reading* of a path gives each draw a role: draft, test, replacement or bonus. Often several readings of a path are
possible. So the paths are read again, and each program line then prefers the roles that it had on most paths. The
rounds of each path up to its first deviation from speculative sampling are evidence. A wrong rule is named if it fits
the evidence of all paths.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.engine_paths import PathDraw
from specverify.checks.explaining.given_drafts import GivenDrafts
from specverify.checks.explaining.later_drafts import dependence_on_later_drafts
from specverify.checks.explaining.one_number_rules import further_temperature, powered
from specverify.checks.explaining.readings import UNDRAWN_WORDS, WIDE, Models, Reading, ReadRound
from specverify.checks.explaining.round_faults import GUESSED, Context, named_fault
from specverify.checks.explaining.round_readings import reading_of
from specverify.checks.explaining.round_rules import ModelRows, Row, same_row, scaled
from specverify.checks.explaining.wording import listed, short
from specverify.reference import LanguageModel, Pmf, Tokens

NEAR = 1e-6
LEAST_SHARE = 0.2
"""A line has a role if at least this share of the readings give it that role."""
READ_FIRST = 8
"""The number of paths of which half must be readable at any cost, before the others are read so."""
MOST_ORIENTED = 24
"""The number of paths by which it is decided whether tests accept below or above their bounds."""
PASSES = 3
CLEAR = 2.75
"""Only paths whose deviation exceeds the smallest deviation by at most this much are evidence."""
WELL_READ = 2.0
"""Without recorded queries, readings with guessed drafts are tried only if the others cost at least this per path."""
PREFERRED = 0.5
"""The given draft model is used unless a reading without it costs at least this much less per path."""

NewPath = tuple[Sequence[PathDraw], Tokens, Models]
"""The draws of a path, the new tokens, and the models with the queries of that path."""


class EngineRounds(NamedTuple):
    """Paths of an engine, read as rounds of speculative decoding, and a sentence about their common fault."""

    readings: Sequence[Reading | None]
    """The reading of each path; None if it cannot be read."""
    fault: str
    """A sentence about the deviation that all paths share; "" if there is none."""
    named: bool = False
    """Whether the sentence names the wrong rule; False if it only quotes numbers of one path."""
    contexts: tuple[Context, ...] = ()
    """The texts of the numbers in the sentence, with their rows of p and q."""
    whole: bool = True
    """Whether a named rule explains all wrong parts of the rounds."""


def engine_rounds(all_paths: Sequence[NewPath]) -> EngineRounds:
    """Return the readings of ``all_paths`` of one engine as rounds, and the sentence about their common deviation.

    A path is (draws, new tokens, models). The deviation is one from speculative sampling.
    """
    names = {name for _, _, models in all_paths for _, name, _ in models.queries}
    if names and "draft" not in names:
        all_paths = [(items, new, models._replace(q=None)) for items, new, models in all_paths]
    if _drafts_nothing(all_paths):
        return EngineRounds([None] * len(all_paths), "")
    own_drafts = bool(names) and "draft" not in names
    guesses = own_drafts or any(_begins_with_test(items) for items, _, _ in all_paths)
    greedy = guesses and "draft" in names
    all_paths = [(items, new, models._replace(greedy=greedy)) for items, new, models in all_paths]
    last_draws = _last_draws(all_paths)
    all_paths = [(items, new, models._replace(last_draws=last_draws)) for items, new, models in all_paths]
    drawn = [(items, new, models._replace(guesses=False)) for items, new, models in all_paths]
    all_paths = [(items, new, models._replace(guesses=guesses and models.guesses)) for items, new, models in all_paths]
    best = _settled(drawn) if guesses and not names else []  # of two tokens, a draft may look like a test
    if best and _cost(best) < WELL_READ:
        all_paths = drawn
    else:
        best = _settled(all_paths)
    if any(models.q is not None for _, _, models in all_paths):
        learned = _settled([(items, new, models._replace(q=None)) for items, new, models in all_paths])
        if _cost(learned) + PREFERRED < _cost(best):
            best, all_paths = learned, [(items, new, models._replace(q=None)) for items, new, models in all_paths]
    if _is_unshown(best):
        all_paths = [(items, new, models._replace(unshown=False)) for items, new, models in all_paths]
        best = _settled(all_paths)
    faulty = [reading.cost for reading in best if reading and reading.fault]
    most = min(faulty, default=0.0) + CLEAR
    read = [
        (reading, models)
        for reading, (_, _, models) in zip(best, all_paths, strict=True)
        if reading and reading.cost <= most
    ]
    if not _is_evidence(best):
        return _by_later_drafts(all_paths) or EngineRounds(best, "")
    if any(_is_contradicted(one, models) for reading, models in read for one in reading.rounds):
        again = drawn_again(all_paths)
        return EngineRounds([None] * len(best), again, bool(again))
    structure = _structure(read)
    best = best if structure else _without_left_out(best)
    rule = EngineRounds(best, structure, True) if structure else _rule(best, read)
    if rule.fault:
        return rule
    other = (
        _with_temperature(all_paths, read)
        or drawn_again(all_paths)
        or dependence_on_later_drafts(read)
        or _draft_row(read)
    )
    return EngineRounds(best, other, bool(other))


def _drafts_nothing(all_paths: Sequence[NewPath]) -> bool:
    """Return whether the program drafts no tokens, as far as its paths show it.

    No path has a coin, and the draft model is not queried. A text with which the target is queried has no more new
    tokens than there were draws before; tokens that are certain in p need no draw.
    """
    for items, _, models in all_paths:
        if any(map(_is_test, items)) or any(name == "draft" for _, name, _ in models.queries):
            return False
        for draws, _, text in models.queries:
            before = (text[:length] for length in range(len(models.prompt), len(text)))
            if sum(max(models.p(each)) < 1 - NEAR for each in before) > draws:
                return False
    return True


def _last_draws(all_paths: Sequence[NewPath]) -> dict[tuple[str, tuple[int, ...]], frozenset[int]]:
    """Return the draws of tokens that are the last draw on each path of ``all_paths``, with their outcomes.

    A draw is given as (place, outcomes of the earlier draws). If such a draw is a draft, it is not tested.
    """
    outcomes: dict[tuple[str, tuple[int, ...]], set[int]] = defaultdict(set)
    followed = set[tuple[str, tuple[int, ...]]]()
    for items, _, _ in all_paths:
        uncertain = [item for item in items if item.high - item.low < 1 - NEAR]
        for at, item in enumerate(uncertain):
            if item.is_lookup and item.outcome is not None and item.pmf:
                outcomes[item.place, item.before].add(item.outcome)
                followed |= {(item.place, item.before)} if at + 1 < len(uncertain) else set()
    return {draw: frozenset(seen) for draw, seen in outcomes.items() if draw not in followed}


def _by_later_drafts(all_paths: Sequence[NewPath]) -> EngineRounds | None:
    """Return the rounds of paths whose tests depend on later drafts; None if they do not.

    In such a program no number of any row may be right, so that readings of any cost are tried.
    """
    wide = [(items, new, models._replace(of_each_draw=WIDE)) for items, new, models in all_paths]
    if not _is_evidence(_read(wide[:READ_FIRST])):
        return None
    readings = _settled(wide)
    read = [(reading, models) for reading, (_, _, models) in zip(readings, wide, strict=True) if reading]
    said = dependence_on_later_drafts(read) if _is_evidence(readings) else ""
    return EngineRounds(readings, said, True) if said else None


def _is_contradicted(one: ReadRound, models: Models) -> bool:
    """Return whether the law of the program contradicts round ``one``.

    A draft with p < 1 that no draw chooses or tests is surely accepted, so that no other token can stand in its place.
    A token without a draft that is drawn from a wrong row has a wrong law. ``models`` has the law.
    """
    if models.emitted is None:
        return False
    if one.end[0] == "plain" and one.fault:
        return same_row(models.emitted(one.text).tolist(), models.p(one.text).tolist(), NEAR)
    shown = {i for role, i, place in one.places if role in {"draft", "test"} and place}
    for i, accepted in enumerate(one.accept):
        if i in shown or max(one.q[i]) < 1 or accepted < 1 - NEAR:
            continue
        text, draft = one.text + one.drafts[:i], one.drafts[i]
        if max(models.p(text)[draft], models.emitted(text)[draft]) < 1 - NEAR:
            return True
    return False


def _draft_row(read: Sequence[tuple[Reading, Models]]) -> str:
    """Return the sentence that drafts are drawn from a wrong row; "" if this is not the first deviation of most paths.

    ``read`` holds (reading, models) of each path; a reading describes the draws of the path as rounds. Returns "" also
    if the sentence of a path does not name the row.
    """
    faults = [reading.fault for reading, _ in read if reading.fault]
    drawn = [fault for fault in faults if is_of_draft_row(fault)]
    named = [fault for fault in drawn if " = (" in fault.partition(", expected")[0]]
    return named[0] if named and len(named) == len(drawn) and 2 * len(drawn) > len(faults) else ""


def is_of_draft_row(fault: str) -> bool:
    """Return whether the sentence ``fault`` states that a draft is drawn from a wrong row."""
    return bool(re.match(r"draft \d+ is drawn from ", fault))


def _is_unshown(best: Sequence[Reading | None]) -> bool:
    """Return whether the descriptions of the paths as rounds may be wrong, so that no fault should be named by them.

    ``best`` has the description (reading) of each path, or None. It may be wrong if it has a step that no right round
    has, such as a token without a draw, and if no path proves such a step: a right program may then be misread.
    """
    odd = [one for reading in best if reading for one in reading.rounds if one.structure]
    return bool(odd) and not any(one.shown for one in odd)


def _with_temperature(all_paths: Sequence[NewPath], read: Sequence[tuple[Reading, Models]]) -> str:
    """Return the sentence that the engine applies a temperature to p a second time; "" if it does not.

    Every path of ``all_paths`` must follow the rule with such a p. ``read`` has the paths that could be described as
    rounds, each as (this description, models).
    """
    power, said = further_temperature(_all_given(read))
    if not power or abs(power - 1) < NEAR:
        return ""

    def warmed(models: Models) -> Models:
        def row(text: Tokens) -> Pmf:
            return np.array(powered(models.p(text).tolist(), power))

        return models._replace(p=row)

    again = _settled([(items, new, warmed(models)) for items, new, models in all_paths])
    return said if all(reading is not None and not reading.fault for reading in again) else ""


def _begins_with_test(items: Sequence[PathDraw]) -> bool:
    """Return whether the first uncertain draw of a path is a coin, which tests a draft that no draw produced.

    ``items`` are the draws of the path.
    """
    first = next((item for item in items if item.high - item.low < 1 - NEAR), None)
    return first is not None and _is_test(first)


def _is_test(item: PathDraw) -> bool:
    """Return whether the draw ``item`` is a coin, as an accept test is."""
    return not item.is_lookup and item.high - item.low < 1 - NEAR


def _is_evidence(readings: Sequence[Reading | None]) -> bool:
    """Return whether enough paths could be described as rounds to name a fault by them: at least half.

    ``readings`` has the description of each path, or None.
    """
    return 2 * sum(reading is not None for reading in readings) >= len(readings) > 0


def _settled(all_paths: Sequence[NewPath]) -> list[Reading | None]:
    """Return the reading of each path of ``all_paths``: its draws as rounds. None if a path cannot be read.

    Of all readings of a path, the one with the lowest cost is chosen. The paths are read repeatedly: once more if model
    queries are recorded, else up to ``PASSES`` times more. In a repetition, a role of a draw costs more if the program
    line of the draw rarely had this role before.
    """
    readings = _read(all_paths)
    if _fits_upside_down(all_paths, readings):
        all_paths = _upside_down(all_paths)
        readings = _read(all_paths)
    known: Any = ({}, {})
    for _ in range(PASSES if not any(models.queries for _, _, models in all_paths) else 1):
        roles, learned = _roles(readings), _learned(readings)
        if (roles, learned) == known:
            break
        known = roles, learned
        readings = [
            reading_of(items, models._replace(roles=roles, learned=learned), new) for items, new, models in all_paths
        ]
    return readings


def _read(all_paths: Sequence[NewPath]) -> list[Reading | None]:
    """Return the reading of each path of ``all_paths``; only None if more than half of them cannot be read.

    The search for the reading of such a path takes long, and so few readings are no evidence (``_is_evidence``).
    """
    readings = list[Reading | None]()
    for items, new, models in all_paths:
        readings.append(reading_of(items, models, new))
        if 2 * readings.count(None) > len(all_paths):
            return [None] * len(all_paths)
    return readings


def _fits_upside_down(all_paths: Sequence[NewPath], readings: Sequence[Reading | None]) -> bool:
    """Return whether the paths fit the rule better if their tests accept a draft if u is above a bound.

    All tests of a program compare in the same way, so the costs of several paths with tests are compared. ``readings``
    are those of ``all_paths`` with tests that accept below their bounds.
    """
    pairs = zip(all_paths, readings, strict=True)
    tested = [(path, reading) for path, reading in pairs if any(map(_is_test, path[0]))][:MOST_ORIENTED]
    usual = _cost([reading for _, reading in tested])
    if not usual:
        return False  # no other reading costs less
    turned = _upside_down([path for path, _ in tested])
    return _cost([reading_of(items, models, new) for items, new, models in turned]) < usual


def _upside_down(all_paths: Sequence[NewPath]) -> list[NewPath]:
    return [(items, new, models._replace(upside_down=True)) for items, new, models in all_paths]


def _learned(readings: Sequence[Reading | None], *, only_shown: bool = False) -> dict[Tokens, Row]:
    """Return the row of q after each text, inferred from the drafts of all paths.

    ``readings`` has the description of each path as rounds, or None. The row after a text is the one from which most
    paths draw the draft there. A path counts less if it fits the rule worse. With ``only_shown``, the last token of a
    text does not count if it is neither tested nor followed by another one of its round: it may be no draft.
    """
    votes: dict[Tokens, dict[Row, float]] = defaultdict(lambda: defaultdict(float))
    for one, weight in _weighed(readings):
        tested = {i for role, i, _ in one.places if role == "test"}
        shown = len(one.q) if one.end[0] or not only_shown else max(tested, default=-1) + 1
        for i, row in enumerate(one.q[:shown]):
            votes[one.text + one.drafts[:i]][tuple(round(float(mass), 9) for mass in row)] += weight
    return {text: max(count, key=count.__getitem__) for text, count in votes.items()}


def _weighed(readings: Sequence[Reading | None]) -> Iterator[tuple[ReadRound, float]]:
    """Yield the rounds of all paths, each with a weight: how much it counts as evidence.

    ``readings`` has the description of each path as rounds, or None. A path has a smaller weight if it fits the rule of
    speculative sampling worse.
    """
    for reading in readings:
        if reading:
            yield from ((one, 1 / (1 + 4 * reading.cost)) for one in reading.rounds)


def _cost(readings: Sequence[Reading | None]) -> float:
    costs = [reading.cost if reading else 10.0 for reading in readings]
    return sum(costs) / max(1, len(costs))


def _roles(readings: Sequence[Reading | None]) -> dict[str, frozenset[str]]:
    """Return the roles of each program line that draws: those which it has in many of the paths, read as rounds.

    ``readings`` has the description of each path as rounds, or None. Paths that fit the rule of speculative sampling
    much worse than the best one do not count.
    """
    votes: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    most = min((reading.cost for reading in readings if reading), default=0.0) + CLEAR
    for one, weight in _weighed([reading for reading in readings if reading and reading.cost <= most]):
        for role, _, place in one.places:
            if place and role:
                votes[place][role] += weight
    return {
        place: frozenset(role for role, votes_of in count.items() if votes_of >= LEAST_SHARE * sum(count.values()))
        for place, count in votes.items()
    }


def _evidence(reading: Reading) -> Iterator[tuple[ReadRound, ReadRound | None]]:
    """Yield the rounds of a path that can show which rule the engine follows, each with the preceding round or None.

    They are the rounds up to the first that deviates from the rule. ``reading`` is the path, described as rounds.
    """
    before: ReadRound | None = None
    for one in reading.rounds:
        yield one, before
        if one.fault:
            return
        before = one


def _structure(read: Sequence[tuple[Reading, Models]]) -> str:
    """Return a sentence about an impossible step, which no right round has, such as an untested draft.

    Returns "" if fewer than half of the faulty paths first deviate by such a step. ``read`` has (reading, models) of
    each path; a reading describes the draws of the path as rounds.
    """
    faulty = [next((one for one in reading.rounds if one.fault), None) for reading, _ in read]
    odd = [one for one in faulty if one is not None and one.structure]
    if not odd or 2 * len(odd) < sum(one is not None for one in faulty):
        return ""
    dropped = [one for one in odd if one.dropped is not None]
    if len(dropped) < len(odd):
        return next(one.structure for one in odd if one.dropped is None)
    return _dropped(dropped, read) if _draws_drafts(dropped, read) else ""


def _without_left_out(best: Sequence[Reading | None]) -> list[Reading | None]:
    """Return the readings ``best`` with None for each with a round that leaves out a draft."""
    return [None if reading and any(one.dropped is not None for one in reading.rounds) else reading for reading in best]


def _draws_drafts(dropped: Sequence[ReadRound], read: Sequence[tuple[Reading, Models]]) -> bool:
    """Return whether each program line that draws one of the drafts left out draws drafts that a draw tests, too.

    Any other line may draw a token of the text that is cut off. ``dropped`` are the rounds that leave out a draft.
    ``read`` has (reading, models) of each path.
    """
    lines = {place for one in dropped for role, i, place in one.places if (role, i) == ("draft", len(one.drafts))}
    tested = {
        place
        for reading, _ in read
        for one in reading.rounds
        for role, i, place in one.places
        if role == "draft" and any((other, k) == ("test", i) and at for other, k, at in one.places)
    }
    return lines <= tested | {""}


def _dropped(dropped: Sequence[ReadRound], read: Sequence[tuple[Reading, Models]]) -> str:
    """Return the sentence that a program draws a draft and then leaves the draft out without a test.

    If the program tests other drafts at the same place, the sentence adds that the value of the draft decides whether
    it is tested. ``dropped`` are the rounds that leave out a draft. ``read`` has (reading, models) of each path.
    """
    first = min(dropped, key=lambda one: len(one.text))
    here, number = first.text + first.drafts, len(first.drafts) + 1
    out = {one.dropped for one in dropped if one.text + one.drafts == here}
    tested = {
        one.drafts[i]
        for reading, _ in read
        for one in reading.rounds
        for i in range(len(one.accept))
        if one.text + one.drafts[:i] == here
    }
    place = next((at for role, i, at in first.places if role == "draft" and i == number - 1), "")
    said = f"draft {number} is left out after it is drawn{f' ({place})' if place else ''}"
    which = f"token{'s' * (len(out) > 1)} {listed(sorted(map(str, out)))}"
    behind = "the next token is drawn from p in its place" if number == 1 else "the round continues without it"
    if tested and not tested & out:
        kept = f"token{'s' * (len(tested) > 1)} {listed(sorted(map(str, tested)))} {_are(tested)} tested"
        return f"{said} because of its own value: {which} {_are(out)} left out, {kept}; {behind}"
    return f"{said}, without a test ({which}); {behind}"


def _are(tokens: Collection[Any]) -> str:
    return "are" if len(tokens) > 1 else "is"


_OTHER_TEXT = re.compile(
    r"\((without the (last|first|first or the last) (\d+ )?tokens?|with \d+ tokens? more|"
    r"with token \d+(, the argmax of p,)? in place of \d+|which has [\d ]+ in place of [\d ]+|another text|"
    r"_: a position [a-z, ]+|which keeps the rejected draft \d+)\)"
)
"""Matches the phrase with which a reading states that a row belongs to another text."""


_OTHER_ODDS = re.compile(r" with ((?P<factor>[^ ]+) times the odds|tokens? [^=]*, which no mask excludes)")
"""Matches the phrase of a reading about a row of p with a factor on one token, or with tokens that p excludes."""
_AS_BY = re.compile(r", as by [pq].*? after .*?(?=; expected)")
"""Matches the phrase about the rows with which a draft, accepted without a draw, would pass surely."""
_BY_ROWS = re.compile(r"(, as by|; this is) [pq][^;]*? after \([^()]*\)( \((?P<kind>[^()]*)\))?")
"""Matches the phrase in the words of a round about the rows of another text that give the observed acceptance."""


def without_unseen_row(said: str) -> str:
    """Return the sentence ``said`` without its phrase "as by ...", which names a wrong row as the cause.

    For a draft that is accepted with certainty, several wrong rows give the same bound 1, so the phrase proves nothing.
    """
    return _AS_BY.sub("", said)


_DRAWN_AFTER = re.compile(r"\bdrawn from [pq] after \([^()]*\) \((?P<kind>[^()]*)\)(?= = \(|, expected)")
"""Matches the name of a row of another text in the words of a round, as the row that a token is drawn from."""
_PLAIN_ROWS = ("p", "q", "norm(max(p - q, 0))")
_DRAWN_FROM = re.compile(r"\bdrawn from (?P<row>(?:(?! after | = |, expected ).)+) = (?=\()")
"""Matches the name of a changed row of p or q in the words of a round."""


def without_other_cause(words: str, fault: str) -> str:
    """Return the description ``words`` of a round without the rows that it names as causes, but ``fault`` does not.

    ``fault`` names the rule that explains all paths. A row named in ``words``, such as that of another text, explains
    one path only, and may fit by chance.
    """

    def kept(match: re.Match[str]) -> str:
        return match.group() if match["kind"] and match["kind"] in fault else ""

    def kept_row(match: re.Match[str]) -> str:
        return match.group() if match["row"] in _PLAIN_ROWS or match["row"] in fault else "drawn from "

    def kept_text(match: re.Match[str]) -> str:
        return match.group() if match["kind"] in fault else "drawn from another row"

    return _DRAWN_AFTER.sub(kept_text, _DRAWN_FROM.sub(kept_row, _BY_ROWS.sub(kept, words)))


def _kind_of_text(difference: str) -> str:
    """Return the kind of the phrase ``difference`` about a wrong text; all paths with one fault have the same kind."""
    return "which has" if difference.startswith("which has") else difference


def changed_odds_of(readings: Sequence[Reading | None]) -> str:
    """Return the sentence that p has other odds of some tokens, if it fits more than half of the paths with a fault.

    These are the odds of one token, or tokens that p excludes. ``readings`` has the description of each path as rounds,
    or None. A factor must be the same in all these paths. Returns "" if this is not so.
    """
    faults = [reading.fault for reading in readings if reading and reading.fault]
    found = [(match["factor"] or "", said) for said in faults if (match := _OTHER_ODDS.search(said))]
    agree = len({factor for factor, _ in found}) == 1 and 2 * len(found) > len(faults)
    return found[0][1] if agree else ""


def is_by_other_text(said: str) -> bool:
    """Return whether the sentence ``said`` states that the row of another text was used."""
    return _OTHER_TEXT.search(said) is not None


def _rule(readings: Sequence[Reading | None], read: Sequence[tuple[Reading, Models]]) -> EngineRounds:
    """Return ``readings`` with the sentence about the wrong rule that the rounds follow; "" if none is recognised.

    The result also has the rows of p and q from which a reader can compute the numbers in the sentence. ``read`` has
    (reading, models) of each path that could be read. Rounds after the first deviation of a path from speculative
    sampling do not count.
    """
    unknown = EngineRounds(readings, "")
    given = _all_given(read)
    fault = named_fault(given, "") if given else None
    if fault is not None and not fault.named:  # numbers of a token without a draw show no row
        given = _all_given(read, undrawn=False)
        fault = named_fault(given, "") if given else None
        fault = None if fault is None or fault.named else fault  # a rule must fit all rounds
    if fault is None or not fault.named:
        faults = [reading.fault for reading, _ in read if reading.fault]
        by_text = [(_kind_of_text(match.group(1)), said) for said in faults if (match := _OTHER_TEXT.search(said))]
        if by_text:
            agree = len({kind for kind, _ in by_text}) == 1 and 2 * len(by_text) > len(faults)
            if agree and all(_AS_BY.search(said) for _, said in by_text):
                return unknown._replace(fault=without_unseen_row(by_text[0][1]))  # no bound tells one text from another
            return EngineRounds(readings, by_text[0][1], True) if agree else unknown
        if 2 * sum(UNDRAWN_WORDS in said for said in faults) > len(faults):
            return unknown  # the readings only fail to find a draw
    sure = fault is not None and (fault.named or any(models.queries or models.guesses for _, models in read))
    if fault is None or not sure:
        return unknown
    sentence = f"{fault.sentence}{_as_with_q(read) if GUESSED in fault.sentence else ''}"
    return EngineRounds(readings, sentence, fault.named, fault.contexts, fault.whole)


def _all_given(read: Sequence[tuple[Reading, Models]], *, undrawn: bool = True) -> list[GivenDrafts]:
    """Return the rounds of all paths from which a wrong rule may be inferred.

    Such a round has drafts, has no step that is impossible in a right round, and follows no deviation in its path.
    ``undrawn``: include rounds with a token that no draw produced and that is not explained. ``read`` has (reading,
    models) of each path.
    """
    learned = _learned([reading for reading, models in read if models.q is None], only_shown=True)
    return [
        _given(one, before, models, learned)
        for reading, models in read
        for one, before in _evidence(reading)
        if one.drafts
        and not one.structure
        and (undrawn or UNDRAWN_WORDS not in one.fault)
        and all(sum(_of(models.p)(text)) > 0 for text in _texts_of(one))
    ]


def _as_with_q(read: Sequence[tuple[Reading, Models]]) -> str:
    """Return a clause about the wrong bound with which a draft that no draw produced is tested; "" if there is none.

    Such a draft has q = 1, so the right bound is p. If the bound is larger, the clause states which q would give it.
    ``read`` has (reading, models) of each path; a reading describes the draws of the path as rounds.
    """
    for reading, models in read:
        for one in reading.rounds:
            for role, i, place in one.places:
                if role != "test" or max(one.q[i]) < 1 or i in _drawn_drafts(one):
                    continue
                token = one.drafts[i]
                p, seen = _of(models.p)(one.text + one.drafts[:i])[token], one.accept[i]
                if p + NEAR < seen < 1 - NEAR:
                    at = f" ({place})" if place else ""
                    values = f"u < {short(seen)} instead of {short(p)} = p/q, as with q = {short(p / seen)}"
                    return f"; token {token}, which is not drawn either, is tested with {values}{at}"
    return ""


def _drawn_drafts(one: ReadRound) -> set[int]:
    """Return the positions of the drafts of round ``one`` for which the program draws; the others have q = 1."""
    return {i for role, i, place in one.places if role == "draft" and place}


def _given(one: ReadRound, before: ReadRound | None, models: Models, learned: Mapping[Tokens, Row]) -> GivenDrafts:
    drafts, gamma = one.drafts, len(one.drafts)
    texts = [one.text + drafts[:i] for i in range(gamma + 1)]
    p = _of(models.p)
    end, row = one.end
    law = {token: mass for token, mass in enumerate(row) if mass > 0}
    places = {("accept" if role == "test" else role, i): place for role, i, place in one.places if place}
    if models.q is not None:  # a draft that is certain in q needs no draw
        places |= {("draft", i): "" for i, text in enumerate(texts[:-1]) if max(_of(models.q)(text)) >= 1}
    rows = ModelRows(tuple(map(p, texts)), (*one.q, _last_q(texts[-1], models, learned, len(one.q[0]))))
    return GivenDrafts(
        one.text,
        drafts,
        rows,
        None,
        one.accept,
        {len(one.accept) - 1: law} if end == "replace" and row else {},
        law if end == "bonus" and row else None,
        True,
        places,
        NEAR,
        dict(_other_rows(one, before, models, rows)),
        of_engine=True,
    )


def _texts_of(one: ReadRound) -> list[Tokens]:
    """Return the texts after which round ``one`` uses a row of p.

    They are the texts before each draft, and before the bonus if there is one.
    """
    return [one.text + one.drafts[:i] for i in range(len(one.drafts) + (one.end[0] == "bonus"))]


def _of(model: LanguageModel) -> Callable[[Tokens], Row]:
    return lambda text: tuple(float(mass) for mass in model(text).tolist())


def _last_q(text: Tokens, models: Models, learned: Mapping[Tokens, Row], size: int) -> Row:
    """Return the row of q after ``text``, which ends in the last draft of a round; a right round does not use it.

    The row comes from the draft model in ``models``. If there is none, it comes from ``learned``, the rows inferred
    from the drafts of all paths; if ``learned`` has no such row, it is zeros ``[size]``.
    """
    if models.q is not None:
        return _of(models.q)(text)
    return learned.get(text, (0.0,) * size)


def _other_rows(
    one: ReadRound, before: ReadRound | None, models: Models, rows: ModelRows
) -> Iterator[tuple[str, ModelRows]]:
    """Yield (description, rows) for wrong rows of p and q that the program may use in round ``one``.

    The rows are those of the round before, ``before`` (None for the first round), or rows after a text that lacks its
    last tokens. ``models`` give these rows, and ``rows`` are the right ones.
    """
    p = _of(models.p)
    last = before or one
    texts = [one.text + one.drafts[:i] for i in range(len(one.drafts) + 1)]
    old_texts = [last.text + last.drafts[:i] for i in range(len(last.drafts) + 1)]
    old_p = tuple(p(old_texts[i]) if i < len(old_texts) else row for i, row in enumerate(rows.p))
    old_q = tuple(last.q[i] if i < len(last.q) else row for i, row in enumerate(rows.q))
    yield "q is the row of the round before", rows._replace(q=old_q)
    yield "p is the row of the round before", rows._replace(p=old_p)
    yield "p and q are the rows of the round before", ModelRows(old_p, old_q)
    shorter = tuple(p(text[:-1]) if len(text) > len(models.prompt) else p(text) for text in texts)
    yield "p is computed without the last token of the text (one position early)", rows._replace(p=shorter)
    yield (
        "p is computed after the beginning of the round, without its drafts",
        rows._replace(p=(p(texts[0]),) * len(texts)),
    )
    if models.q is not None or _drawn_drafts(one).issuperset(range(len(one.drafts))):  # else some row of q is not known
        short = tuple(
            scaled([mass if other > 0 else 0.0 for mass, other in zip(row, q, strict=True)])
            for row, q in zip(rows.p, one.q, strict=False)
        )
        yield (
            "p is cut to the tokens with q > 0 and divided by their sum",
            rows._replace(p=(*short, *rows.p[len(short) :])),
        )
    if models.q is not None:
        q = _of(models.q)
        early = tuple(q(text[:-1]) if len(text) > len(models.prompt) else q(text) for text in texts)
        yield (
            "q in the test is computed without the last token of the text (one position early)",
            rows._replace(q=early),
        )


def drawn_again(all_paths: Sequence[NewPath]) -> str:
    """Return the sentence that a token is drawn from p twice, and the first draw is discarded; "" if it is not.

    At least two of ``all_paths`` must show it.
    """
    shown = [said for path in all_paths if (said := _first_drawn_again(*path))]
    return shown[0] if len(shown) > 1 else ""


def _first_drawn_again(items: Sequence[PathDraw], new: Tokens, models: Models) -> str:
    """Return the sentence about the first token that a path draws from p twice; "" if there is none.

    ``items`` are the draws of the path, and ``new`` its new tokens. ``models`` has the models and their queries.
    """
    open_ones = [item for item in items if item.high - item.low < 1 - NEAR]
    for one, other in pairwise(open_ones):
        texts = _texts_of_both(len(one.before), len(other.before), models)
        texts &= {models.prompt + new[:number] for number in range(len(new))}
        for text in sorted(texts, key=len):
            number, p = len(text) - len(models.prompt), _of(models.p)(text)
            is_again = one.outcome != other.outcome == new[number]
            if is_again and same_row(one.pmf, p, NEAR) and same_row(other.pmf, p, NEAR):
                first, second = f"{one.outcome} ({one.place})", f"{other.outcome} ({other.place})"
                said = f"new token {number + 1} is drawn from p twice: the first draw, {first}, is discarded"
                return f"{said}, and {second} is emitted; expected one draw"
    return ""


def _texts_of_both(first: int, second: int, models: Models) -> set[Tokens]:
    """Return the texts after which two draws of a path may both choose the next token, by the queries in ``models``.

    It is the text of the last query to the target before each of them. If the program has no draft model, and queries
    nothing between the two, it may be any text of an earlier query. ``first`` and ``second`` are the numbers of draws
    before the two.
    """
    if all(name == "target" and not first < at <= second for at, name, _ in models.queries):
        return {text for at, _, text in models.queries if at <= first}
    last = _last_queried(models, first)
    return {last} if last is not None and last == _last_queried(models, second) else set()


def _last_queried(models: Models, draws: int) -> Tokens | None:
    """Return the text of the last query to the target before draw number ``draws`` of a path; None without a query.

    ``models`` has the queries of the path.
    """
    return next((text for at, name, text in reversed(models.queries) if name == "target" and at <= draws), None)


def model_of_law(law: Mapping[Any, Any], size: int) -> LanguageModel:
    """Return the model whose next-token pmfs are the conditionals of ``law``, a law of texts.

    After tokens with which no text of ``law`` begins, the model returns zeros ``[size]``.
    """
    after: dict[Tokens, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    totals: dict[Tokens, float] = defaultdict(float)
    for text, mass in law.items():
        totals[text] += float(mass)
        for length, token in enumerate(text):
            after[text[:length]][token] += float(mass)
            totals[text[:length]] += float(mass)

    def model(text: Tokens) -> Pmf:
        row = np.zeros(size)
        for token, mass in after.get(text, {}).items():
            if 0 <= token < size:
                row[token] = mass
        return row / totals[text] if totals.get(text, 0.0) > 0 else row

    return model
