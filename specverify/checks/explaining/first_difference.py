"""Find the first token at which two laws of texts differ, its probabilities, and the shortest texts that show it.

A text is the new tokens of one request. An outcome may hold several texts: a tuple for the rows of a batch, or the
requests of one engine, separated by ``split``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from specverify.checks.explaining.wording import after_new, apart, table
from specverify.reference import Tokens

Texts = tuple[Tokens, ...]
Split = Callable[[Any], Texts]
CERTAIN = 1 - 1e-9
"""An outcome with at least this probability is called certain."""
MOST_ROWS = 6
SHARE = 0.05
"""A difference of less than this share of the largest one may be rounding."""
LISTED = 1e-6
"""A text is listed if its difference is more than this share of the largest one; smaller ones are rounding."""
IN_PROPORTION = 1e-6
"""Probabilities are in proportion if their quotients differ by at most this share."""
NOT_EXCLUDED = "; the other tokens keep their proportions, as if no mask, top-k or top-p excluded it"
"""The end of a sentence about a token that should have probability 0."""
END = -1
"""A marker after the last token of a text."""


class Difference(NamedTuple):
    """The first token at which the observed law of texts differs from the expected one, with both laws of the token."""

    fault: str
    """A sentence about the difference."""
    rows: tuple[str, ...]
    """Lines of a table with the shortest texts whose probabilities differ."""
    before: Tokens = ()
    """The new tokens before the first wrong token."""
    seen: Mapping[int, Any] = {}
    """The observed law of the first wrong token; the next field is the expected one.

    Both are empty if an outcome has several texts.
    """
    expected: Mapping[int, Any] = {}
    request: int | None = None
    """The index of the request whose own law is wrong; None if there is one request, or only the joint law is wrong."""
    wrong: Tokens | None = None
    """The new tokens of this request, up to the wrong one; the wrong one may be ``END``. None without ``request``."""
    sentence: str = ""
    """The sentence ``fault`` without the name of the request."""


class _FirstTexts(NamedTuple):
    """The shortest prefixes of texts whose probability differs from the expected one.

    ``masses`` and ``expected`` map each prefix to its observed and its expected probability. The prefix with the
    largest excess is (``*before``, ``token``).
    """

    masses: Mapping[Tokens, Any]
    expected: Mapping[Tokens, Any]
    before: Tokens
    token: int
    longest: int
    """Length of the longest expected text."""


def first_difference(
    law: Mapping[Any, Any], expected: Mapping[Any, Any], split: Split | None = None, each: str = "request"
) -> Difference | None:
    """Return the first difference between the laws ``law`` and ``expected``; None if they agree.

    The laws of each text are compared token by token. If all agree, the joint law of the texts is compared. A
    difference below ``SHARE`` of the largest excess is ignored.

    Args:
        law: Outcome -> observed probability.
        expected: Outcome -> expected probability.
        split: Separates an outcome into texts; None: an outcome is one text.
        each: The word for one of several texts.
    """
    texts = split or texts_in
    bound = SHARE * max(law.get(key, 0) - expected.get(key, 0) for key in law.keys() | expected.keys())
    number = max((len(texts(outcome)) for outcome in expected), default=1)
    for index in range(number):
        place = _place(_of_one(law, texts, index), _of_one(expected, texts, index), bound)
        if place is not None:
            named = f"{each} {index + 1}, " if number > 1 else ""
            sentence = _sentence(place)
            result = Difference(named + sentence, _rows(place), sentence=sentence)
            seen, should = _token_laws(place)
            if number > 1:
                return result._replace(request=index, wrong=(*place.before, place.token))
            return result._replace(before=place.before, seen=seen, expected=should)
    return _dependence(law, expected, bound, texts, each) if number > 1 else None


def text_fault(wanted: Tokens, got: Tokens, eos: int | None = None) -> str:
    """Describe how the text ``got`` differs from the only possible text ``wanted``.

    ``eos`` is the end-of-sequence token.
    """
    at = next((i for i, pair in enumerate(zip(wanted, got, strict=False)) if pair[0] != pair[1]), None)
    if at is None and len(got) < len(wanted):
        return _early_end(len(wanted), got, eos)
    if at is None:
        more = len(got) - len(wanted)
        if eos is not None and wanted and wanted[-1] == eos:
            behind = " ".join(map(str, got[len(wanted) :]))
            return f"the text continues after its end token {eos} (new token {len(wanted)}): {behind} follows it"
        return f"{more} token{'s' * (more > 1)} too many: the text should end after new token {len(wanted)}"
    rest = got[at:]
    if len(rest) > 2 and rest == wanted[at + 1 :][: len(rest)]:
        return f"new token {at + 1} ({wanted[at]}) is missing"
    if len(rest) > 2 and at and rest == wanted[at - 1 :][: len(rest)]:
        return f"new token {at} ({wanted[at - 1]}) comes twice"
    does, ought = (f"{token}, the end token" if token == eos else f"{token}" for token in (got[at], wanted[at]))
    return f"new token {at + 1} is {does}{',' * (got[at] == eos)} instead of {ought}"


def _early_end(wanted: int, got: Tokens, eos: int | None) -> str:
    """Describe how the text ``got`` ends too early: it is a prefix of the only possible text, of ``wanted`` tokens.

    ``eos`` is the end-of-sequence token.
    """
    if not got and eos is not None:
        return f"the text is empty: the prompt holds the end token {eos}, which ends no text"
    early = eos is not None and got[-1] != eos
    why = f", although its last one, {got[-1]}, is not the end token {eos}" if early else ""
    return f"the text ends after {len(got)} of {wanted} new tokens{why}"


def texts_in(outcome: Any) -> Texts:
    """Return the texts of ``outcome``, which is a tuple of texts or one text."""
    return outcome if outcome and isinstance(outcome[0], tuple) else (outcome,)


def _of_one(law: Mapping[Any, Any], texts: Split, index: int) -> dict[Tokens, Any]:
    result: dict[Tokens, Any] = defaultdict(int)
    for outcome, mass in law.items():
        result[(*texts(outcome), ())[index] if index < len(texts(outcome)) else ()] += mass
    return result


def _place(law: Mapping[Tokens, Any], expected: Mapping[Tokens, Any], bound: float) -> _FirstTexts | None:
    """Return the shortest prefixes that differ and, among them, the one with the largest excess; None if none differs.

    ``law`` and ``expected`` map texts to probabilities. The largest excess must be above ``bound``.
    """
    longest = max(map(len, law.keys() | expected.keys()), default=0)
    for length in range(1, longest + 2):
        masses, should = _beginnings(law, length), _beginnings(expected, length)
        most = max(masses.keys() | should.keys(), key=lambda key: (masses.get(key, 0) - should.get(key, 0), key))
        if masses.get(most, 0) - should.get(most, 0) > bound:
            return _FirstTexts(masses, should, most[:-1], most[-1], max(map(len, expected), default=0))
    return None


def _beginnings(law: Mapping[Tokens, Any], length: int) -> dict[Tokens, Any]:
    """Return the probability of each prefix of ``length`` tokens; a shorter text gets the marker ``END`` as its end.

    ``law`` maps texts to probabilities.
    """
    result: dict[Tokens, Any] = defaultdict(int)
    for text, mass in law.items():
        result[(*text, END)[:length]] += mass
    return result


def _token_laws(place: _FirstTexts) -> tuple[Mapping[int, Any], Mapping[int, Any]]:
    """Return the observed and the expected law of the first differing token, given the tokens before it.

    ``place`` has the probabilities of the prefixes that end with this token.
    """
    laws = []
    for masses in (place.masses, place.expected):
        here = {key[-1]: mass for key, mass in masses.items() if key[:-1] == place.before}
        total = sum(here.values())
        laws.append({token: mass / total for token, mass in here.items()} if total else {})
    return laws[0], laws[1]


def _sentence(place: _FirstTexts) -> str:
    number = len(place.before) + 1
    seen, should = _token_laws(place)
    does, ought = seen[place.token], should.get(place.token, 0)
    behind = f" {after_new(place.before)}".rstrip()
    only = next((token for token, mass in should.items() if mass >= CERTAIN), None)
    if place.token == END:
        sure = "" if does >= CERTAIN else f" with probability {apart(does, ought)[0]}"
        return f"the text ends after {number - 1} of {place.longest} new tokens{sure}{behind if sure else ''}"
    if only == END:
        return f"the text continues with token {place.token} after its end{behind}"
    if only is not None and does >= CERTAIN:
        return f"new token {number} is {place.token} instead of {only}{behind}"
    does_text, ought_text = apart(does, ought)
    allowed = "" if ought or not _others_in_proportion(seen, should) else NOT_EXCLUDED
    return f"new token {number} is {place.token} with probability {does_text}, expected {ought_text}{behind}{allowed}"


def _others_in_proportion(seen: Mapping[int, Any], expected: Mapping[int, Any]) -> bool:
    """Return whether the law ``seen`` of a token has the proportions of ``expected`` among its possible tokens.

    Returns False if ``expected`` has only one possible token, which has no proportions.
    """
    factors = [float(seen.get(token, 0) / mass) for token, mass in expected.items() if mass > 0]
    return len(factors) > 1 and min(factors) > 0 and max(factors) / min(factors) < 1 + IN_PROPORTION


def _rows(place: _FirstTexts) -> tuple[str, ...]:
    """Return table lines with the differing prefixes; those with too much probability come first.

    ``place`` has the prefixes, with their observed and expected probabilities.
    """
    result = []
    for text in place.masses.keys() | place.expected.keys():
        does, ought = place.masses.get(text, 0), place.expected.get(text, 0)
        if abs(does - ought) > 1e-12:
            result.append((does - ought, text, apart(does, ought)))
    least = LISTED * max((abs(difference) for difference, _, _ in result), default=0)
    result = [item for item in result if abs(item[0]) > least]
    result.sort(key=lambda item: (item[0] < 0, -abs(item[0]), item[1]))
    lines = [
        (_shown(text), does, ought, f"{float(difference):+.3g}")
        for difference, text, (does, ought) in result[:MOST_ROWS]
    ]
    return table(("new tokens", "probability", "expected", "difference"), lines)


def _shown(text: Tokens) -> str:
    return " ".join("end" if token == END else str(token) for token in text)


def _dependence(
    law: Mapping[Any, Any], expected: Mapping[Any, Any], bound: float, texts: Split, each: str
) -> Difference | None:
    """Return the difference between two joint laws of several texts, each of which alone has the right law, or None.

    So a difference shows that the texts are dependent. None means that the laws differ by at most ``bound``. ``law``
    and ``expected`` map outcomes to their observed and expected probabilities. ``texts`` splits an outcome into texts,
    and ``each`` is the word for a text.
    """
    worst = max(law.keys() | expected.keys(), key=lambda key: (law.get(key, 0) - expected.get(key, 0), key))
    does, ought = law.get(worst, 0), expected.get(worst, 0)
    if does - ought <= bound:
        return None
    said = " and ".join(f"({_shown(text)})" for text in texts(worst))
    does_text, ought_text = apart(does, ought)
    fault = (
        f"the {each}s are not independent: each alone is right, but {said} come together with probability "
        f"{does_text}, expected {ought_text}, the product"
    )
    return Difference(fault, ())
