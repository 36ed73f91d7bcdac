"""Check that each value returned with the tokens is a function of the tokens, and the promised one.

On every path of the enumeration, the log-probability of a token must be that of the pmf after the tokens before it,
whether the token was an accepted draft, a replacement or a bonus token. Without any statement of the caller two things
are checked: equal tokens have equal values, however they were drafted, and the values are those of the call without
speculation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.checks.explaining.wording import apart, listed, short, short_row
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.paths import paths
from specverify.reference import LanguageModel, Pmf, Tokens
from specverify.subjects.answering import Answering, Facts, Run, Value
from specverify.subjects.beside import NAMES, OF_TOKENS, Answer, Ranked, Unreadable, token_logprob
from specverify.subjects.subject import EngineProgram, Subject, UnusableSubject

RAW, PROCESSED, PLAIN = "raw", "processed", "plain"
Kind = str | Callable[[Tokens], Any] | None
"""The promise about a value: "raw" (of the unprocessed row of the model), "processed" (of the row from which the token
is drawn), "plain" (equal to that of the call without speculation), a function of the new tokens, or None (not stated).
"""
KINDS: Final = (RAW, PROCESSED, PLAIN)
OF_ROWS: Final = frozenset({"logprobs", "top_logprobs", "cumulative_logprob", "scores", "logits"})
"""Values that consist of logarithms of probabilities."""
MOST_PATHS = 4000
MOST_TOKENS = 64
"""The vocabulary of the largest scenario whose values are compared."""
MOST_EXPONENT = 100
FORBIDDEN = 1e-6
"""Largest probability that may be returned for a token of probability 0, for example if a finite logit stands for -inf.
"""
SAME_REASONS: Final = (
    frozenset({"stop", "eos", "eos_token", "end"}),
    frozenset({"length", "max_tokens", "max_length"}),
)


class WrongValue(NamedTuple):
    """A returned value that differs from the promised one.

    ``because`` are further lines of the message, which show why.
    """

    fault: str
    """A sentence about what is wrong."""
    because: tuple[str, ...] = ()
    undecided: bool = False
    """Whether rounding may explain the difference."""


class KnownValues(NamedTuple):
    """What is known about the values that an engine should return for one request.

    ``promises`` maps the name of each value to its promise, and ``facts`` has the models, or is None. The other fields
    have the values that the call without speculation returns.
    """

    facts: Facts | None
    promises: Mapping[str, Kind]
    plain: Mapping[Tokens, Mapping[str, Value]]
    """New tokens -> the values that the call without speculation returns with them."""
    prefixes: Mapping[str, Mapping[Tokens, Any]]
    """The values with one element per token, from the call without speculation. ``prefixes[name][tokens]`` is the
    element of the value ``name`` at the last of the new tokens ``tokens``."""


def examine(answering: Answering, promises: Mapping[str, Kind], conditions: Conditions) -> Examination:
    """Compare every value that the engine program ``answering`` returns, on every path, with its promise.

    ``promises`` maps the name of each value to its promise.

    * A wrong value refutes, and so does a value that only some answers have.
    * A wrong value on a path with a draw less probable than ``conditions.edge`` becomes a note.
    * The result is unknown if rounding may explain every difference, or if a value has no known expected value.

    Raises ``UnusableSubject`` if no answer has one of the values, and ``EnumerationTooLarge`` for more than
    ``MOST_PATHS`` paths.
    """
    known, seen, runs, edges = _known(answering, promises), dict[Any, Any](), 0, list[Mapping[str, Any]]()
    undecided: WrongValue | None = None
    lacking: dict[str, tuple[Answer, KnownValues]] = {}
    present: set[str] = set()
    for answers, rarest in followed(answering.open()):
        runs += 1
        for place, answer in enumerate(answers):
            against = known[place] if place < len(known) else known[-1]
            if rarest < conditions.edge:
                edges += edges_of(answering, fault_of_values(answer, against), rarest)
                continue
            present |= answer.values.keys()
            for name in promises.keys() - answer.values.keys():
                lacking.setdefault(name, (answer, against))
            wrong = fault_of_values(answer, against) or changed_value(answer, place, seen, promises)
            if wrong is not None and not wrong.undecided:
                return _refuted(answering, answer, against, wrong, runs)
            undecided = undecided or wrong
    for name, (answer, against) in lacking.items():
        if name in present:
            return _refuted(answering, answer, against, WrongValue(f"no {name} are returned on some paths"), runs)
        raise UnusableSubject(absent(name))
    said = f"{answering.name}: {undecided.fault}" if undecided else nothing_says(known[0])
    if said:
        return Examination(said, unknown=True, rational=False, figures={"runs": runs})
    return Examination(
        f"on every path the {listed_names(promises)} are those promised",
        rational=False,
        figures=figures_of(runs, edges),
    )


def figures_of(runs: int, edges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a check that holds: the number of runs, and the first of ``edges`` if there is one.

    An edge is a fault that needs a very improbable random number; it becomes a note of the verdict.
    """
    return {"runs": runs, **({"edges": edges[:1]} if edges else {})}


def edges_of(answering: Answering, wrong: WrongValue | None, rarest: float) -> list[Mapping[str, Any]]:
    """Return the fault of the returned value ``wrong`` as a list of one edge: a fault that needs an improbable draw.

    The list is empty if ``wrong`` is None, or if rounding may explain the value. ``rarest`` is the probability of the
    least probable draw on the path of the engine program ``answering`` on which the value was returned.
    """
    if wrong is None or wrong.undecided:
        return []
    when = "a random number falls into an interval as rare as this"
    return [edge_of(f"{answering.name}: {wrong.fault}", when, rarest)]


def nothing_says(known: KnownValues) -> str:
    """Return a sentence that lists the promised values for which no expected value is known; "" if there are none."""
    plain = {name for values in known.plain.values() for name in values}
    facts = known.facts
    open_names = [
        name
        for name, kind in known.promises.items()
        if not (callable(kind) or name in plain or _is_said(name, kind, facts, known.promises))
    ]
    if not open_names:
        return ""
    return (
        f"no expected value is known for {listed(open_names)}, except that equal tokens have equal ones: let the call "
        f"without speculation return them too, or state a function, returns={{{open_names[0]!r}: function}}"
    )


def _is_said(name: str, kind: Kind, facts: Facts | None, promises: Mapping[str, Kind]) -> bool:
    """Return whether the value ``name`` can be checked without a result of the call without speculation.

    ``kind`` is the promise for this value, and ``promises`` are those for all values. ``facts`` is what is known about
    the request. Chunks and snapshots can be checked if the text is promised too. If ``kind`` is "plain" (the value
    equals that of the call without speculation), no other value can be checked. For all other kinds:

    * The finish reason can be checked if ``facts`` has the requested number of tokens.
    * Log-probabilities of the prompt can be checked if ``facts`` has the target and ``kind`` is not "processed".
    * Values of ``OF_ROWS``, such as log-probabilities, need the target if ``kind`` is "raw". Otherwise they need the
      law of the tokens.
    """
    if name in {"chunks", "snapshots"} and "text" in promises:
        return True
    if facts is None or kind == PLAIN:
        return False
    if name == "finish_reason":
        return facts.horizon > 0
    if name == "prompt_logprobs":
        return kind != PROCESSED and facts.target is not None
    return name in OF_ROWS and (facts.target is not None if kind == RAW else facts.law is not None)


def absent(name: str) -> str:
    """Return the sentence about the promised value ``name`` that no answer contains."""
    where = NAMES.get(name)
    looked = f", or under {', '.join(where[1:])}" if where and where[1:] else ""
    return (
        f"no {name} were found beside its tokens: return (tokens, {{{name!r}: ...}}), or an object that has them under "
        f"{(where or (name,))[0]}{looked}"
    )


def listed_names(promises: Mapping[str, Kind]) -> str:
    """Return the names of the values in ``promises``, separated by commas."""
    return ", ".join(promises)


class FollowedPath(NamedTuple):
    """One path of a program: the answers to all requests.

    ``rarest`` is the probability of the least probable draw on the path.
    """

    answers: tuple[Answer, ...]
    rarest: float


def followed(program: Run) -> Iterator[FollowedPath]:
    """Yield each path of a program.

    Raises ``EnumerationTooLarge`` for more than ``MOST_PATHS`` paths.
    """
    for number, path in enumerate(paths(program)):
        if number == MOST_PATHS:
            raise EnumerationTooLarge(f"it has more than {MOST_PATHS} paths, the most whose values are compared")
        rarest = min((float(draw.weights[draw.outcome]) for draw in path.decisions), default=1.0)
        yield FollowedPath(path.outcome, rarest)


def _known(answering: Answering, promises: Mapping[str, Kind]) -> list[KnownValues]:
    """Return, for each request of ``answering``, what is known about the values that should be returned for it.

    ``promises`` maps the name of each value, for example "logprobs", to its promise.
    """
    plain: list[dict[Tokens, Mapping[str, Value]]] = []
    for answers, _ in followed(answering.plain()) if answering.plain else ():
        for place, answer in enumerate(answers):
            while len(plain) <= place:
                plain.append({})
            plain[place].setdefault(answer.new, answer.values)
    facts: list[Facts | None] = [*answering.requests, *[None] * (len(plain) - len(answering.requests))]
    plain += [{}] * (len(facts) - len(plain))
    return [
        KnownValues(one, promises, texts, {name: by_prefix(texts, name) for name in promises if name in OF_TOKENS})
        for one, texts in zip(facts, plain, strict=True)
    ]


def by_prefix(texts: Mapping[Tokens, Mapping[str, Value]], name: str) -> dict[Tokens, Any]:
    """Return prefix of a text -> entry of the value called ``name`` for the last token of the prefix.

    For "logprobs" this is the log-probability of the token. ``texts`` maps the new tokens of each text to the values
    that were returned with them. If several texts have a prefix in common, the first one counts.
    """
    result: dict[Tokens, Any] = {}
    for new, values in texts.items():
        given = values.get(name)
        if given is not None and not isinstance(given.value, Unreadable):
            for place, entry in enumerate(given.value[: len(new)]):
                result.setdefault(new[: place + 1], entry)
    return result


def fault_of_values(answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of the first value of ``answer`` that differs from the promised one; None if there is none.

    A difference that rounding may explain is returned only if no other value has a certain fault. ``known`` has the
    promises and the data for the comparison.
    """
    doubt = None
    for name, kind in known.promises.items():
        if name not in answer.values:
            continue
        value = answer.values[name]
        if isinstance(value.value, Unreadable):
            return WrongValue(f"{name} = {value.value.said}, expected one of the documented forms")
        wrong = _COMPARED.get(name, _compare_other)(name, kind, value, answer, known)
        if wrong is not None and not wrong.undecided:
            return wrong
        doubt = doubt or wrong
    return doubt


def changed_value(answer: Answer, place: int, seen: dict[Any, Any], promises: Mapping[str, Kind]) -> WrongValue | None:
    """Return the fault of the first value that differs from that on an earlier path with the same tokens; else None.

    ``seen`` holds the values of earlier paths and is updated; ``place`` is the index of the request. Only the values
    named in ``promises`` are compared. ``answer`` is the answer on the present path.
    """
    for name in promises.keys() & answer.values.keys():
        value = answer.values[name]
        entries = (
            enumerate(value.value[: len(answer.new)]) if name in OF_TOKENS else [(len(answer.new) - 1, value.value)]
        )
        for at, entry in entries:
            whole = name not in OF_TOKENS
            key = (place, name, answer.new[: at + 1], whole, answer.length if whole else 0)
            shown = _TEXT_OF[name](entry) if name in _TEXT_OF else entry
            before = seen.setdefault(key, shown)
            if not _alike(before, shown, value.spacing):
                what = f"new token {at + 1}" if name in OF_TOKENS else "a text"
                return WrongValue(
                    f"the {name} of {what} depend on which drafts were accepted: {_shown(before)} on one path and "
                    f"{_shown(shown)} on another, for the same tokens"
                )
    return None


# Logarithms of single tokens.


def explained(spacing: float, logarithm: float) -> float:
    """Return the largest error of a log-probability that rounding can cause, in floats of this ``spacing`` at 1.

    ``logarithm`` is the log-probability, from a softmax of ``MOST_TOKENS`` tokens.
    """
    # in units of half a spacing: 1 for each token in the sum; 16 for exponential, division and logarithm; 4 times the
    # logarithm for its storage and that of the logits
    return spacing * (MOST_TOKENS / 2 + 8 + 2 * abs(logarithm))


def _rate_difference(value: float, expected: float, spacing: float) -> str:
    """Compare a returned logarithm, ``value``, with the ``expected`` one.

    Returns "" if they agree, "undecided" if rounding in floats of this ``spacing`` may explain the difference, else
    "wrong".
    """
    if expected == -math.inf or math.isnan(value):
        return "" if value == -math.inf or value < math.log(FORBIDDEN) else "wrong"
    difference = abs(value - expected)
    if difference <= explained(spacing, expected):
        return ""
    return "undecided" if difference <= math.sqrt(spacing) else "wrong"


def _rows(kind: Kind, known: KnownValues) -> Callable[[Tokens], Pmf] | None:
    """Return the function from new tokens to the pmf of the next token; None if the pmf is not known.

    ``kind`` selects the pmf: "raw" is the target's own row, any other kind is the pmf that follows from the law of the
    text.
    """
    facts = known.facts
    if facts is None:
        return None
    if kind == RAW and facts.target is not None:
        target, prompt = facts.target, facts.prompt
        return lambda new: target(prompt + new)
    if kind == RAW or facts.law is None:
        return None
    law = facts.law
    if not _masses(law):
        return None
    size = 1 + max(token for row in _masses(law).values() for token in row)
    if facts.target is not None:
        size = len(facts.target(facts.prompt))
    return lambda new: _conditional(law, size, new)


def _conditional(law: Callable[[], Mapping[Tokens, float]], size: int, new: Tokens) -> Any:
    """Return the pmf of the token after ``new`` under ``law``, with ``size`` entries.

    All entries are 0 if ``new`` is impossible under the law.
    """
    masses = _masses(law).get(new, {})
    total = sum(masses.values())
    return [masses.get(token, 0.0) / total if total else 0.0 for token in range(size)]


@lru_cache(maxsize=64)
def _masses(law: Callable[[], Mapping[Tokens, float]]) -> Mapping[Tokens, Mapping[int, float]]:
    result: dict[Tokens, dict[int, float]] = {}
    for new, mass in law().items():
        for place, token in enumerate(new):
            row = result.setdefault(new[:place], {})
            row[token] = row.get(token, 0.0) + float(mass)
    return result


def _log(mass: Any) -> float:
    return math.log(mass) if mass > 0 else -math.inf


def _kind(name: str, kind: Kind, known: KnownValues) -> Kind:
    """Return ``kind``, the promise about the value ``name``; if it is None, the default promise.

    The default is "plain" if the call without speculation returns the value too (``known.plain``), else "processed".
    """
    if kind is None:
        return PLAIN if known.plain and any(name in values for values in known.plain.values()) else PROCESSED
    return kind


def _missing(name: str, value: Value, answer: Answer) -> WrongValue | None:
    count = len(value.value)
    if count == answer.length:
        return None
    if count < answer.length:
        return WrongValue(f"{answer.length} new tokens are returned with {count} {name}: the last ones have none")
    return WrongValue(f"{answer.length} new tokens are returned with {count} {name}, expected one for each")


def _compare_logprobs(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    if missing := _missing(name, value, answer):
        return missing
    kind, doubt = _kind(name, kind, known), None
    rows = None if kind == PLAIN else _rows(kind, known)
    for place, token in enumerate(answer.new):
        result, new = value.value[place], answer.new[:place]
        if result is None:
            return WrongValue(f"the {name} of new token {place + 1} do not have the token {token} that was emitted")
        expected = known.prefixes[name].get((*new, token)) if rows is None else _log(rows(new)[token])
        if expected is None:
            continue
        if not isinstance(result, float):
            return WrongValue(f"{name} of new token {place + 1} = {_shown(result)}, expected a number")
        if rating := _rate_difference(result, expected, value.spacing):
            one, other = apart(result, expected)
            if rating == "undecided":
                doubt = doubt or WrongValue(
                    f"{name} of new token {place + 1}: {_between(result, expected, value)}", (), True
                )
                continue
            cause = _explanation(result, place, answer, known)
            said = f"the log-probability of new token {place + 1} is {one}{f' ({cause})' if cause else ''}"
            return WrongValue(f"{said}, expected {other}: {_source(kind)}", _ratio(result, expected))
    return doubt


def _ratio(found: float, expected: float) -> tuple[str, ...]:
    """Return the sentence with the factor exp(``found`` - ``expected``), by which a training gradient would be wrong.

    ``found`` is the returned logarithm. Returns () if the factor is huge or ``found`` is not finite.
    """
    if not (math.isfinite(found) and abs(found - expected) < MOST_EXPONENT):
        return ()
    return (f"exp(returned - recomputed) is {short(math.exp(found - expected))}, expected 1",)


def _between(found: float, expected: float, value: Value) -> str:
    """Return the sentence about a returned logarithm ``found`` that differs slightly from the ``expected`` one.

    Rounding does not explain the difference, but it is too small to name a fault. ``value`` has the spacing of the
    floats.
    """
    return (
        f"exp(returned - recomputed) is 1 {math.expm1(found - expected):+.2g}; floats with a spacing of "
        f"{value.spacing:.1g} explain {explained(value.spacing, expected):.1g}, and a fault is named from "
        f"{math.sqrt(value.spacing):.1g} on. Compute them in float32 at least, or in one place"
    )


def _source(kind: Kind) -> str:
    if kind == RAW:
        return "that of the target's row as it is (raw)"
    return (
        "what the call without speculation returns"
        if kind == PLAIN
        else "that of p, the target's row after its sampling parameters"
    )


def _explanation(found: float, place: int, answer: Answer, known: KnownValues) -> str:
    """Return the words for another pmf that gives the wrong logarithm ``found`` at ``place``; "" if none gives it.

    ``known`` has the models and the law, from which such pmfs are computed. ``answer`` has the tokens.
    """
    facts = known.facts
    if facts is None:
        return ""
    text, token = answer.new, answer.new[place]
    candidates: list[tuple[str, float]] = [("0, the logarithm of a certain token", 0.0)]
    for kind, words in ((RAW, "the target's row as it is"), (PROCESSED, "the processed row")):
        rows = _rows(kind, known)
        if rows is None:
            continue
        own = rows(text[:place])[token]
        candidates.append((f"that of {words}", _log(own)))
        if own > 0:
            candidates.append((f"the probability in {words}, and not its logarithm", float(own)))
            candidates.append((f"that of {words} with the wrong sign", -_log(own)))
        for other in range(len(text)):
            if other != place:
                row = rows(text[:other])
                candidates.append((f"that of {words} at new token {other + 1}", _log(row[token])))
                candidates.append((f"the one of new token {other + 1}, {text[other]}", _log(row[text[other]])))
    candidates += _of_draft(facts, text[:place], token)
    said = [words for words, value in candidates if math.isfinite(value) and abs(value - found) < 1e-6]
    if not said and found < math.log(FORBIDDEN):
        said = [words for words, value in candidates if value == -math.inf]
        return f"{said[0]}: the token has probability 0" if said else ""
    return said[0] if said else ""


def _of_draft(facts: Facts, before: Tokens, token: int) -> list[tuple[str, float]]:
    """Return logarithms that an engine may wrongly return for ``token`` after ``before``, each with a description.

    With p and q the pmfs of the target and the draft model after ``before``, these are the logarithms of: q of the
    token, its probability in the residual max(p - q, 0) / sum, and its acceptance probability min(1, p/q). The last two
    are left out where they are undefined. ``facts`` has the models; returns [] if one of the two is absent.
    """
    if facts.draft is None or facts.target is None:
        return []
    p, q = facts.target(facts.prompt + before), facts.draft(facts.prompt + before)
    left = [max(float(a) - float(b), 0.0) for a, b in zip(p, q, strict=True)]
    result = [("that of the draft's row", _log(q[token]))]
    if sum(left) > 0:
        result.append(("that of the residual, and not of p", _log(left[token] / sum(left))))
    if q[token] > 0:
        result.append(("min(1, p/q), the probability of acceptance", _log(min(1.0, p[token] / q[token]))))
    return result


def _compare_cumulative(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    kind = _kind(name, kind, known)
    if answer.length != len(answer.new):
        return None
    if kind == PLAIN:
        return _compare_other(name, kind, value, answer, known)
    rows = _rows(kind, known)
    if rows is None:
        return None
    expected = sum(_log(rows(answer.new[:place])[token]) for place, token in enumerate(answer.new))
    if rating := _rate_difference(float(value.value), expected, value.spacing * len(answer.new)):
        one, other = apart(float(value.value), expected)
        said = f"the cumulative log-probability is {one}, expected {other}: the sum over the new tokens"
        return WrongValue(said, (), rating == "undecided")
    return None


def _compare_top(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    if missing := _missing(name, value, answer):
        return missing
    kind, doubt = _kind(name, kind, known), None
    rows = None if kind == PLAIN else _rows(kind, known)
    for place, token in enumerate(answer.new):
        entry = value.value[place]
        row = None if rows is None else rows(answer.new[:place])
        expected = known.prefixes[name].get((*answer.new[:place], token)) if row is None else None
        if entry is None:
            return WrongValue(f"the list of the most probable tokens at new token {place + 1} is missing")
        wrong = _wrong_list(entry, token, value.spacing, row, expected)
        if wrong is not None:
            wrong = wrong._replace(fault=f"the list of the most probable tokens at new token {place + 1} {wrong.fault}")
            if not wrong.undecided:
                return wrong._replace(because=() if row is None else (f"the row is {short_row(list(row))}",))
            doubt = doubt or wrong
    return doubt


def _wrong_list(entry: Ranked, emitted: int, spacing: float, row: Any, expected: Ranked | None) -> WrongValue | None:
    """Return the first fault of ``entry``, a list of most probable tokens and their logarithms; None if there is none.

    A fault is a repeated token, a wrong logarithm, a wrong order, a missing token or a wrong rank. A wrong logarithm
    that rounding may explain is undecided; it is returned only if there is no other fault.

    * ``emitted``: The emitted token, which engines list even if it is improbable.
    * ``spacing``: The spacing of the floats.
    * ``row``: The right pmf. If it is None, ranks are not compared.
    * ``expected``: The list that a plain call returns, used if ``row`` is None. If both are None, only repeated tokens
      and the order are examined.
    """
    if len(set(entry.tokens)) < len(entry.tokens):
        return WrongValue(f"has a token twice: {list(entry.tokens)}")
    masses: Mapping[int, float] = {}
    if row is not None:
        masses = {token: _log(mass) for token, mass in enumerate(row)}
    elif expected is not None:
        masses = dict(zip(expected.tokens, expected.logprobs, strict=True))
    inner = list(zip(entry.tokens, entry.logprobs, strict=True))
    wrong = _wrong_entry(inner, emitted, spacing, masses)
    if wrong is not None and not wrong.undecided:
        return wrong
    if entry.ordered and (swapped := _swapped(inner, emitted, spacing)):
        return WrongValue(f"names {swapped[0]} before {swapped[1]}, which is more probable")
    least = _least_of_others(inner, emitted) + math.sqrt(spacing)
    left_out = [token for token, mass in masses.items() if token not in entry.tokens and mass > least]
    if left_out:
        return WrongValue(f"leaves out token {left_out[0]}, which is more probable than one that it names")
    for token, rank in zip(entry.tokens, entry.ranks, strict=False):
        if rank is not None and row is not None and not _rank_fits(rank, token, masses, spacing):
            return WrongValue(f"gives token {token} the rank {rank}")
    return wrong


def _wrong_entry(
    inner: Sequence[tuple[int, float]], emitted: int, spacing: float, masses: Mapping[int, float]
) -> WrongValue | None:
    """Return the fault of the first entry of a list that has a wrong logarithm; None if there is none.

    ``inner`` are the entries (token, logarithm), and ``masses`` the right logarithms by token (empty if unknown). A
    token that known ``masses`` lack is a fault too, unless it is the ``emitted`` token. A difference that rounding in
    floats of this ``spacing`` may explain is an undecided fault; it is returned only if there is no other.
    """
    doubt = None
    for token, result in inner:
        if token not in masses:
            if masses and token != emitted:
                return WrongValue(f"has the token {token}, expected one of {sorted(masses)}")
            continue
        if rating := _rate_difference(result, masses[token], spacing):
            one, other = apart(result, masses[token])
            if rating == "wrong":
                return WrongValue(f"gives token {token} {one}, expected {other}")
            doubt = doubt or WrongValue(
                f"gives token {token} {one}, expected {other}, which rounding may explain", (), True
            )
    return doubt


def _swapped(listed: Sequence[tuple[int, float]], emitted: int, spacing: float) -> tuple[int, int] | None:
    """Return two successive tokens of ``listed`` of which the second is more probable; None if there are none.

    ``listed`` has pairs (token, log-probability), expected with the most probable token first. The ``emitted`` token
    may also come first. Differences that rounding in floats with the distance ``spacing`` at 1 explains are ignored.
    """
    first_apart = listed[1:] if listed and listed[0][0] == emitted else listed
    for (one, more), (other, less) in itertools.pairwise(first_apart):
        if less > more + explained(spacing, more):
            return one, other
    return None


def _least_of_others(inner: Sequence[tuple[int, float]], emitted: int) -> float:
    """Return the smallest logarithm in ``inner``, a list of most probable tokens, without the emitted token.

    Engines list the emitted token even if it is improbable.
    """
    return min((value for token, value in inner if token != emitted), default=math.inf)


def _rank_fits(rank: int, token: int, masses: Mapping[int, float], spacing: float) -> bool:
    margin = math.sqrt(spacing)
    above = sum(mass > masses[token] + margin for mass in masses.values())
    equal = sum(
        abs(mass - masses[token]) <= margin for other, mass in masses.items() if other != token and mass > -math.inf
    )
    return above + 1 <= rank <= above + 1 + equal or masses[token] == -math.inf


def _compare_rows(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    if missing := _missing(name, value, answer):
        return missing
    if kind is None:
        kind = PLAIN if known.prefixes[name] else RAW if name == "logits" else PROCESSED
    rows, doubt = None if kind == PLAIN else _rows(kind, known), None
    for place, token in enumerate(answer.new):
        result = value.value[place]
        if rows is None:
            given = known.prefixes[name].get((*answer.new[:place], token))
            if given is None:
                continue
            expected: Any = _log_softmax(given)
        else:
            expected = [_log(mass) for mass in rows(answer.new[:place])]
        if len(result) != len(expected):
            return WrongValue(
                f"the {name} of new token {place + 1} have {len(result)} entries, expected {len(expected)}"
            )
        for at, (one, other) in enumerate(zip(_log_softmax(result), expected, strict=True)):
            if rating := _rate_difference(one, other, value.spacing):
                said = f"the {name} of new token {place + 1} give token {at} {short(one)}, expected {short(other)}"
                if rating == "wrong":
                    cause = _explanation(_log_softmax(result)[token], place, answer, known)
                    own = (f"the value of token {token} is {cause}",) if cause else ()
                    return WrongValue(f"{said}: {_source(kind)}", own)
                doubt = doubt or WrongValue(f"{said}, which rounding may explain", (), True)
    return doubt


def _log_softmax(row: Sequence[float]) -> list[float]:
    top = max(row)
    if top == -math.inf:
        return list(row)
    total = top + math.log(sum(math.exp(entry - top) for entry in row))
    return [entry - total for entry in row]


# Values of a whole text.


def _text_of(answer: Answer, known: KnownValues, names: Sequence[str]) -> str | None:
    """Return the right text of an answer, or None if it is not known.

    ``names`` are values that contain the text, such as "text" and "chunks". If the promise for one of them is a
    function, this function computes the text from the tokens. Otherwise the text is the first of these values that the
    call without speculation returns with the same tokens.
    """
    for name in names:
        kind = known.promises.get(name)
        if callable(kind):
            return str(kind(answer.new))
    values = known.plain.get(answer.new, {})
    for name in names:
        if name in values and values[name].value is not None:
            given = values[name].value
            return given if isinstance(given, str) else "".join(given) if name == "chunks" else given[-1]
    return None


_TEXTS: Final = ("text", "chunks", "snapshots")


def _last(snapshots: Any) -> Any:
    if not isinstance(snapshots, list | tuple):
        return snapshots
    return snapshots[-1] if snapshots else ""


_TEXT_OF: Final[Mapping[str, Callable[[Any], Any]]] = {
    "chunks": lambda chunks: "".join(map(str, chunks)),
    "snapshots": _last,
}
"""Name of a stream's value -> the function that returns its whole text, wherever the stream is cut."""


def _compare_text(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of ``value``, the text of an answer or its parts; None if there is none.

    ``name`` is "text", "chunks" of a stream, or "snapshots", each of which must extend the one before. The value must
    give the right text, from ``known`` or from the returned text. If no right text is known, only snapshots are
    examined. Return None if the answer goes on beyond the horizon. ``kind``, the promise, is not used.
    """
    if answer.length != len(answer.new):
        return None  # it goes on behind the horizon
    if name == "snapshots":
        for before, after in itertools.pairwise(value.value):
            if not after.startswith(before):
                return WrongValue(f"the stream withdraws text that it has sent: {before!r} is followed by {after!r}")
    result = _TEXT_OF[name](value.value) if name in _TEXT_OF else value.value
    wanted = _text_of(answer, known, (name, *_TEXTS))
    if wanted is None and name != "text" and "text" in answer.values:
        wanted = answer.values["text"].value
    if wanted is None or result == wanted:
        return None
    what = {"text": "the text is", "chunks": "the chunks of the stream add up to", "snapshots": "the stream ends with"}
    return WrongValue(f"{what[name]} {result!r}, expected {wanted!r}: {_part_that_differs(result, wanted)}")


def _part_that_differs(found: str, wanted: str) -> str:
    if wanted.startswith(found):
        return f"the end {wanted[len(found) :]!r} is lost"
    if found.startswith(wanted):
        return f"{found[len(wanted) :]!r} is after its end"
    at = next(i for i, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other)
    return f"they differ from character {at + 1} on"


def _compare_finish(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    if callable(kind) or kind == PLAIN or known.plain.get(answer.new, {}).get(name):
        return _compare_other(name, kind, value, answer, known)
    facts = known.facts
    if facts is None or not facts.horizon:
        return None
    ended, full = bool(set(answer.new) & set(facts.ends)), len(answer.new) >= facts.horizon
    if ended == full:
        return None  # both are so
    expected = SAME_REASONS[0 if ended else 1]
    if str(value.value).lower() in expected:
        return None
    why = (
        f"ends with the end-of-sequence token {answer.new[-1]}"
        if ended
        else f"has the {facts.horizon} requested tokens"
    )
    return WrongValue(
        f"the finish reason is {value.value!r}, and the text {why}: expected {min(expected, key=len)!r} or the like"
    )


def _compare_prompt(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    facts = known.facts
    if facts is None or facts.target is None or kind == PLAIN:
        return _compare_other(name, kind, value, answer, known)
    if kind == PROCESSED or len(value.value) not in {len(answer.prompt), len(answer.prompt) - 1}:
        said = f"{len(value.value)} prompt log-probabilities are returned for {len(answer.prompt)} prompt tokens"
        return WrongValue(said) if len(value.value) not in {len(answer.prompt), len(answer.prompt) - 1} else None
    first = len(answer.prompt) - len(value.value)
    for place in range(max(first, 1), len(answer.prompt)):
        entry, token = value.value[place - first], answer.prompt[place]
        try:
            result = None if entry is None else token_logprob(entry, token)
        except (TypeError, KeyError, IndexError):
            return WrongValue(f"the log-probability of prompt token {place + 1} is {_shown(entry)}, expected a number")
        expected = _log(facts.target(answer.prompt[:place])[token])
        if result is None or _rate_difference(result, expected, value.spacing) == "wrong":
            said = "missing" if result is None else short(result)
            return WrongValue(f"the log-probability of prompt token {place + 1} is {said}, expected {short(expected)}")
    return None


def _compare_other(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of ``value``, which a call with speculation returns as ``name``; None if it is as expected.

    ``kind`` is what is promised of the value. If it is a function, the expected value is ``kind(new tokens)``.
    Otherwise it is the value ``name`` that the call without speculation returns with the same tokens; ``known`` has the
    values of that call. Returns None also if no value is expected, or if ``answer`` has more tokens than the call may
    return.
    """
    if callable(kind):
        expected = kind(answer.new)
    else:
        given = known.plain.get(answer.new, {}).get(name)
        if given is None:
            return None
        expected = given.value
    if answer.length != len(answer.new) or _alike(value.value, expected, value.spacing):
        return None
    return WrongValue(f"{name} = {_shown(value.value)}, expected {_shown(expected)} for these tokens")


def _alike(one: Any, other: Any, spacing: float) -> bool:
    """Return whether the values ``one`` and ``other`` are equal, up to the rounding of floats with this spacing."""
    if isinstance(one, float) and isinstance(other, int | float):
        return (
            one == other or (one < math.log(FORBIDDEN) and other == -math.inf) or abs(one - other) <= math.sqrt(spacing)
        )
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key], spacing) for key in one)
    if isinstance(one, tuple | list) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(_alike(a, b, spacing) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return short(value, 6)
    if isinstance(value, Ranked):
        return str(dict(zip(value.tokens, (round(v, 6) for v in value.logprobs), strict=True)))
    if isinstance(value, tuple) and value and all(isinstance(item, float) for item in value):
        return short_row(value)
    text = repr(value)
    return text if len(text) < 100 else f"{text[:97]}..."


_COMPARED: Final[Mapping[str, Callable[[str, Kind, Value, Answer, KnownValues], WrongValue | None]]] = {
    "logprobs": _compare_logprobs,
    "top_logprobs": _compare_top,
    "cumulative_logprob": _compare_cumulative,
    "prompt_logprobs": _compare_prompt,
    "scores": _compare_rows,
    "logits": _compare_rows,
    "text": _compare_text,
    "chunks": _compare_text,
    "snapshots": _compare_text,
    "finish_reason": _compare_finish,
}


def _refuted(answering: Answering, answer: Answer, known: KnownValues, wrong: WrongValue, runs: int) -> Examination:
    facts = known.facts
    let: list[str] = []
    for place in range(len(answer.new)) if facts is not None and facts.target is not None else ():
        assert facts is not None
        let.append(_row_line(facts.target, facts.draft, facts.prompt + answer.new[:place]))
    return refutation_by(answering, answer, wrong, runs, let)


def refutation_by(
    answering: Answering, answer: Answer, wrong: WrongValue, runs: int, let: Sequence[str]
) -> Examination:
    """Return the examination of an engine that is refuted by the value ``wrong`` in ``answer``, after ``runs`` paths.

    ``answering`` is the engine program that returned ``answer``. ``let`` are further lines for the part "Let" of the
    counterexample; they state the rows or numbers from which a reader can see the fault.
    """
    where = (f"setting {answering.name}", f"a run that ends with new tokens {answer.new}")
    example = Counterexample((*where, *let), wrong.fault, wrong.because, fault=wrong.fault)
    return Examination(
        f"{answering.name}: {wrong.fault}", failed=True, rational=False, counterexample=example, figures={"runs": runs}
    )


def _row_line(target: LanguageModel | None, draft: LanguageModel | None, text: Tokens) -> str:
    said = "" if target is None else f"p = {short_row(list(target(text)))}"
    return f"after {text}: {said}" + ("" if draft is None else f"  q = {short_row(list(draft(text)))}")


def values_check(answerings: Sequence[Answering], promises: Mapping[str, Kind]) -> Check:
    """Return the check of the values that an engine returns with its tokens.

    ``answerings`` are the engine's programs, and ``promises`` maps the name of each value to its promise.
    """
    by_name = {answering.name: answering for answering in answerings}

    of_ends = bool(promises.keys() & {"finish_reason", "stop_reason"})

    def last(name: str) -> bool:
        """Return whether the program called ``name`` is examined after the other programs, because it shows less.

        The check may concern the reason why a text ends. A program then shows less if none of its texts can end with an
        end-of-sequence token.
        """
        return of_ends and not any(facts.ends for facts in by_name[name].requests)

    def known(subject: Subject) -> list[EngineProgram]:
        result = (program for program in subject.programs if program.name in by_name)
        return sorted(result, key=lambda program: last(program.name))

    def examined(program: EngineProgram, conditions: Conditions) -> Examination:
        return examine(by_name[program.name], promises, conditions)

    return Check(
        name="values_match",
        summary="log-probabilities, top-k lists, text and finish reason are those of the tokens, on every path",
        claim=None,
        evidence=Evidence.EQUAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), known),),
    )
