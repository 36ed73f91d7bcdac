"""Compare the logarithms of probabilities that an engine returns: of tokens, of lists, of rows, of sums, of prompts.

Each ``compare_...`` returns the fault of ``value``, which ``answer`` has under ``name``; None if there is none.
``kind`` is the promise about the value, and ``known`` has the data for the comparison.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from specverify.checks.explaining.wording import apart, short, short_row
from specverify.promises.known_values import (
    FORBIDDEN,
    PLAIN,
    PROCESSED,
    RAW,
    Kind,
    KnownValues,
    WrongValue,
    compare_plain,
    kind_of,
    shown_value,
)
from specverify.reference import Pmf, Tokens
from specverify.subjects.answering import Facts, Value
from specverify.subjects.beside import Answer, Ranked, token_logprob

MOST_TOKENS = 64
"""The vocabulary of the largest scenario whose values are compared."""
MOST_EXPONENT = 100


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


def _missing(name: str, value: Value, answer: Answer) -> WrongValue | None:
    count = len(value.value)
    if count == answer.length:
        return None
    if count < answer.length:
        return WrongValue(f"{answer.length} new tokens are returned with {count} {name}: the last ones have none")
    return WrongValue(f"{answer.length} new tokens are returned with {count} {name}, expected one for each")


def compare_logprobs(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Compare the log-probability of each emitted token."""
    if missing := _missing(name, value, answer):
        return missing
    kind, doubt = kind_of(name, kind, known), None
    rows = None if kind == PLAIN else _rows(kind, known)
    for place, token in enumerate(answer.new):
        result, new = value.value[place], answer.new[:place]
        if result is None:
            return WrongValue(f"the {name} of new token {place + 1} do not have the token {token} that was emitted")
        expected = known.prefixes[name].get((*new, token)) if rows is None else _log(rows(new)[token])
        if expected is None:
            continue
        if not isinstance(result, float):
            return WrongValue(f"{name} of new token {place + 1} = {shown_value(result)}, expected a number")
        if rating := _rate_difference(result, expected, value.spacing):
            one, other = apart(result, expected)
            if rating == "undecided":
                doubt = doubt or WrongValue(
                    f"{name} of new token {place + 1}: {_between(result, expected, value)}", (), True
                )
                continue
            cause = _explanation(result, place, answer, known)
            said = f"the log-probability of new token {place + 1} is {one}{f' ({cause})' if cause else ''}"
            named = bool(cause) or math.isfinite(result)
            return WrongValue(f"{said}, expected {other}: {_source(kind)}", _ratio(result, expected), named=named)
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
        return f"{said[0]}: the token has probability 0" if len(said) == 1 else ""
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


def compare_cumulative(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Compare the sum of the log-probabilities of all new tokens."""
    kind = kind_of(name, kind, known)
    if answer.length != len(answer.new):
        return None
    if kind == PLAIN:
        return compare_plain(name, kind, value, answer, known)
    rows = _rows(kind, known)
    if rows is None:
        return None
    expected = sum(_log(rows(answer.new[:place])[token]) for place, token in enumerate(answer.new))
    if rating := _rate_difference(float(value.value), expected, value.spacing * len(answer.new)):
        one, other = apart(float(value.value), expected)
        said = f"the cumulative log-probability is {one}, expected {other}: the sum over the new tokens"
        return WrongValue(said, (), rating == "undecided")
    return None


def compare_top(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Compare the lists of the most probable tokens, one for each new token."""
    if missing := _missing(name, value, answer):
        return missing
    kind, doubt = kind_of(name, kind, known), None
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


def compare_rows(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Compare whole rows of logarithms or logits, one for each new token, up to a constant in each row."""
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


def compare_prompt(name: str, kind: Kind, value: Value, answer: Answer, known: KnownValues) -> WrongValue | None:
    """Compare the log-probability of each token of the prompt; the first may be left out."""
    facts = known.facts
    if facts is None or facts.target is None or kind == PLAIN:
        return compare_plain(name, kind, value, answer, known)
    if kind == PROCESSED or len(value.value) not in {len(answer.prompt), len(answer.prompt) - 1}:
        said = f"{len(value.value)} prompt log-probabilities are returned for {len(answer.prompt)} prompt tokens"
        return WrongValue(said) if len(value.value) not in {len(answer.prompt), len(answer.prompt) - 1} else None
    first = len(answer.prompt) - len(value.value)
    for place in range(max(first, 1), len(answer.prompt)):
        entry, token = value.value[place - first], answer.prompt[place]
        try:
            result = None if entry is None else token_logprob(entry, token)
        except (TypeError, KeyError, IndexError):
            return WrongValue(
                f"the log-probability of prompt token {place + 1} is {shown_value(entry)}, expected a number"
            )
        expected = _log(facts.target(answer.prompt[:place])[token])
        if result is None or _rate_difference(result, expected, value.spacing) == "wrong":
            said = "missing" if result is None else short(result)
            return WrongValue(f"the log-probability of prompt token {place + 1} is {said}, expected {short(expected)}")
    return None
