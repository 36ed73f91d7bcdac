"""Find the earlier test on which a wrong token depends: the token is right wherever this test does not end so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from specverify.checks.explaining.counterexample_parts import laws_differ
from specverify.checks.explaining.engine_paths import MOST_PATHS, KeptPaths, draws_of
from specverify.checks.explaining.first_difference import CERTAIN, END, Difference
from specverify.laws.paths import outcomes_of
from specverify.reference import Tokens

Earlier = TypeVar("Earlier", bound=Hashable)

FAILED = "failed test (u >= its bound, {})"
PASSED = "passed test (u < its bound, {})"
"""How a test ended, with the program line of the test."""


class _EmittedTokens(NamedTuple):
    """The first tokens of a text that a path emits, and the tests of the path before these tokens are determined."""

    before: Tokens
    token: int
    """The token after ``before``."""
    mass: float
    ends: tuple[str, ...]
    """The distinct ends of the tests; failed ones come first."""
    history: tuple[tuple[str, bool], ...]
    """The line of each draw in order, and whether it is a test that failed."""
    choices: tuple[int, ...]
    """The outcomes of all draws of the path."""


def only_after(engine: KeptPaths, difference: Difference, expected: Mapping[Tokens, Any]) -> str:
    """Return the end of a sentence about the earlier test after which alone a token is wrong; "" if there is none.

    The tokens at the place of the wrong one are divided by a test that is made before all earlier tokens are
    determined: the law of the token is wrong after the test failed (or passed) at least once, and right after every
    text for which it did not. Of several such ends, the one is named without which most texts are right. If the token
    after it is always the same, this is stated.

    Args:
        engine: All paths of the engine. Returns "" if it has more than are kept.
        difference: The first wrong token. Returns "" if it is in one of several texts.
        expected: The expected law of texts.
    """
    if not difference.expected or sum(1 for _ in engine) >= MOST_PATHS:
        return ""
    found, should = list(_emitted(engine, len(difference.before))), _laws(_begun(expected, len(difference.before)))
    possible, certain = dict[str, int](), dict[str, str]()
    for end in dict.fromkeys(end for one in found for end in one.ends):
        after, others = (
            _laws((one.before, one.token, one.mass) for one in found if (end in one.ends) is inside)
            for inside in (True, False)
        )
        law = after.get(difference.before, difference.expected)
        right = not any(laws_differ(law, should.get(before, {})) for before, law in others.items())
        if others and right and laws_differ(law, difference.expected):
            possible[end] = len(others)
            token = max(law, key=law.__getitem__)
            is_new = law[token] > CERTAIN > max(difference.seen.values(), default=0.0) and token != END
            certain[end] = f": it is then always {token}" if is_new else ""
    if not possible:
        return ""
    named = max(possible, key=possible.__getitem__)
    return f"; wrong only after a {named}{certain[named]}"


def wrong_after_tests(
    engine: KeptPaths, difference: Difference, expected: Mapping[Tokens, Any]
) -> frozenset[tuple[int, ...]]:
    """Return the choices of the paths with a wrong token on which its law is wrong after the draws before it.

    The paths are divided by the lines of all draws that are made before all earlier tokens are determined, and by the
    ends of tests among them. The result is empty if the token is wrong, or right, in all of these parts, or if there
    are more paths than are kept. The parameters are those of ``only_after``.
    """
    if not difference.expected or sum(1 for _ in engine) >= MOST_PATHS:
        return frozenset()
    found = [one for one in _emitted(engine, len(difference.before)) if one.before == difference.before]
    laws = _laws((one.history, one.token, one.mass) for one in found)
    wrong = {history for history, law in laws.items() if laws_differ(law, difference.expected)}
    return frozenset(one.choices for one in found if one.history in wrong) if len(wrong) < len(laws) else frozenset()


def _emitted(engine: KeptPaths, number: int) -> Iterator[_EmittedTokens]:
    """Yield the first ``number`` tokens, and the next one, of each text of ``engine`` that has as many tokens."""
    texts = [
        (path, (*text, END), float(path.weight * share))
        for path in engine
        for text, share in outcomes_of(path.outcome)
        if share and len(text) >= number
    ]
    begun = dict[tuple[int, ...], set[Tokens]]()
    for path, text, _ in texts:
        for length in range(len(path.choices) + 1):
            begun.setdefault(path.choices[:length], set()).add(text[:number])
    for path, text, mass in texts:
        lengths = range(len(path.choices) + 1)
        first = next((length for length in lengths if len(begun[path.choices[:length]]) == 1), None)
        earlier = draws_of(path.decisions[:first])
        coins = [item for item in earlier if item.place and not item.is_lookup]
        failed = [FAILED.format(item.place) for item in coins if item.low > 0 and item.high >= 1]
        passed = [PASSED.format(item.place) for item in coins if item.low <= 0 and item.high < 1]
        history = tuple((item.place, not item.is_lookup and item.low > 0) for item in earlier)
        yield _EmittedTokens(
            text[:number], text[number], mass, tuple(dict.fromkeys((*failed, *passed))), history, path.choices
        )


def _begun(law: Mapping[Tokens, Any], number: int) -> Iterator[tuple[Tokens, int, float]]:
    """Yield (first ``number`` tokens, next token, probability) for each text of ``law`` with as many tokens."""
    for text, mass in law.items():
        if len(text) >= number:
            yield text[:number], (*text, END)[number], float(mass)


def _laws(found: Iterable[tuple[Earlier, int, float]]) -> dict[Earlier, dict[int, float]]:
    """Return the law of the next token after each text or history: ``found`` has (either, next token, probability)."""
    masses: dict[Earlier, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for before, token, mass in found:
        masses[before][token] += mass
    return {
        before: {token: mass / total for token, mass in law.items()}
        for before, law in masses.items()
        if (total := sum(law.values()))
    }
