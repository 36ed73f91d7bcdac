"""Find the first token of sampled texts whose counts cannot be chance, given the tokens before it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from specverify.checks.explaining.wording import rows_apart
from specverify.checks.samplers.tally import Tally
from specverify.reference import Tokens

DEVIATIONS = 5.0
"""The least deviation of a count, in standard deviations, that is described."""
LONGEST_ROW = 8
END = -1


class _Deviation(NamedTuple):
    """How far the count of ``token``, after the new tokens ``before``, deviates from the law."""

    size: float
    """The deviation, in standard deviations."""
    before: Tokens
    token: int


def first_wrong_token(tally: Tally) -> str:
    """Return a sentence about the first new token whose counts are too far from the law to be chance.

    A token is counted among the samples with the same tokens before it. Returns "" if there is none, or if the outcomes
    of ``tally`` are no texts.
    """
    texts = [tally.name(i) for i in range(len(tally.seen))]
    if not all(isinstance(text, tuple) and all(isinstance(token, int) for token in text) for text in texts):
        return ""
    longest = max(map(len, texts), default=0)  # type: ignore[arg-type]
    for length in range(1, longest + 1):
        seen, expected = _beginnings(tally, texts, length)
        found = [
            one for before in expected if (one := _deviation(seen.get(before, {}), expected[before], before, tally))
        ]
        if found:
            worst = max(found)
            return _sentence(seen[worst.before], expected[worst.before], worst)
    return ""


def _beginnings(tally: Tally, texts: list[Any], length: int) -> tuple[dict[Tokens, Any], dict[Tokens, Any]]:
    """Return the observed and the expected counts of token number ``length`` of a text.

    Each result maps ``before`` -> token -> count: the number of texts that begin with the tokens ``before`` and
    continue with the token, or with ``END`` if they end there. ``texts`` are the outcomes of ``tally``.
    """
    results: tuple[dict[Tokens, Any], dict[Tokens, Any]] = (
        defaultdict(lambda: defaultdict(float)),
        defaultdict(lambda: defaultdict(float)),
    )
    for text, *counts in zip(texts, tally.seen.tolist(), tally.expected.tolist(), strict=True):
        if len(text) >= length - 1:
            for result, count in zip(results, counts, strict=True):
                result[text[: length - 1]][(*text, END)[length - 1]] += count
    return results


def _deviation(seen: dict[int, float], expected: dict[int, float], before: Tokens, tally: Tally) -> _Deviation | None:
    samples, total = sum(seen.values()), sum(expected.values())
    if samples < 1 or total <= 0:
        return None
    found = []
    for token, mass in expected.items():
        share = mass / total
        variance = max(samples * share * (1 - share), 1.0) * (1 + tally.sampled * samples / total)
        found.append(_Deviation(abs(seen.get(token, 0) - samples * share) / variance**0.5, before, token))
    worst = max(found)
    return worst if worst.size >= DEVIATIONS else None


def _sentence(seen: dict[int, float], expected: dict[int, float], worst: _Deviation) -> str:
    samples, total, token = sum(seen.values()), sum(expected.values()), worst.token
    number, count, ought = len(worst.before) + 1, seen.get(token, 0), samples * expected[token] / total
    behind = f" after new token{'s' * (number > 2)} {', '.join(map(str, worst.before))}" if worst.before else ""
    if token == END:
        return f"{count:.0f} of {samples:.0f} texts end after {number - 1} new tokens{behind}, expected {ought:.1f}"

    said = f"new token {number} is {token} in {count:.0f} of {samples:.0f} samples{behind}, expected {ought:.1f}"
    tokens = range(max(expected) + 1)
    if not count:
        said = f"new token {number} is never {token} in {samples:.0f} samples{behind}, expected {ought:.1f}"
    if min(expected) < 0 or len(tokens) > LONGEST_ROW:
        return said
    does, should = rows_apart(
        [round(seen.get(one, 0) / samples, 3) for one in tokens],
        [round(expected.get(one, 0) / total, 3) for one in tokens],
    )
    return f"{said}: shares {does} instead of {should}"
