"""Equality of the laws of two decoders on long texts, at a cost that grows linearly with the horizon.

The rounds of a decoder form a graph: a node is a state, an edge is a path of one round with its new tokens and its
probability. Two states are one node if they agree in their length, in the remaining tokens, in the state of the drafter
and of the rule for the number of drafts, and in the last ``window`` tokens. All earlier tokens are replaced by
``Hidden`` before a round runs, and ``Hidden`` raises on any use. A round that ends therefore did not depend on them, so
merging is sound for that round. A decoder that reads further back raises ``ReadsWholeText``.

The fingerprint of a law is the sum over all texts of probability times the product of z[t][v] over the tokens v at
positions t, modulo the prime 2^61 - 1, for random z. It is a polynomial in z whose coefficients are the probabilities.
Two equal laws have equal fingerprints. Two different laws have different fingerprints except with probability at most
horizon / 2^61 (Schwartz 1980, Corollary 1). The graph gives the fingerprint in one pass. With indicators in place of
random numbers the same pass gives the exact probability of a pattern of tokens, so a difference is reported with a
pattern that shows it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from specverify.laws.paths import Path, paths
from specverify.reference import Decoder, Round, State, Tokens

PRIME = 2**61 - 1
SETTLED = 5
"""Number of new tokens after which the number of runs per position is extrapolated to all later positions."""


class ReadsWholeText(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if a round used a token before the window, so that states cannot be merged by their last tokens."""


class NotRational(Exception):  # noqa: N818 - as above
    """Raised if a weight is a float, so that laws cannot be compared modulo a prime."""


class TooManyRounds(Exception):  # noqa: N818 - as above
    """Raised if the graph of the rounds of a decoder has more edges than the budget."""


def _used(self: Hidden, *_: Any) -> NoReturn:
    self.uses.append(self.place)
    raise ReadsWholeText("a round uses tokens before the last ones")


class Hidden:
    """A token whose value must not be used: it equals only itself, and any other use raises ``ReadsWholeText``."""

    __slots__ = ("place", "uses")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = __floordiv__ = _used
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __index__ = __int__ = __float__ = __neg__ = __xor__ = __and__ = _used
    __eq__ = __ne__ = __hash__ = __repr__ = __str__ = __format__ = __reduce_ex__ = _used

    def __init__(self, place: int, uses: list[int]) -> None:
        """Hide the token at position ``place`` of the text.

        Each use of the token raises ``ReadsWholeText``, and appends its position to the shared list ``uses``: so a use
        is known even if the program catches the exception.
        """
        self.place, self.uses = place, uses


class RoundEdge(NamedTuple):
    """One path of a round and its probability: an edge of the graph of a decoder's rounds."""

    tokens: Tokens
    """New tokens that the round commits."""
    weight: Fraction
    """Conditional probability of the edge given the state it leaves."""
    after: int
    """Index of the node to which the edge leads; -1 if the text has ended."""


class StateClass(NamedTuple):
    """A class of states after which the law of the remaining text is the same: a node of the graph.

    ``edges`` are the paths of the next round.
    """

    place: int
    """Number of new tokens before this state."""
    edges: tuple[RoundEdge, ...]


class Rounds(NamedTuple):
    """The rounds of a decoder after one prompt, as an acyclic graph.

    A node is a class of states between rounds. An edge is one path of a round, from the state before it to the state
    after it.
    """

    nodes: tuple[StateClass, ...]
    """Nodes in topological order; the first is the state after the prompt."""
    runs: int
    """Number of runs of a round that the graph needed."""
    horizon: int
    """Number of new tokens of the longest text."""


def rounds_of(decoder: Decoder, prompt: Tokens, window: int, budget: int) -> Rounds:
    """Return the graph of the rounds of ``decoder`` after ``prompt``.

    Args:
        decoder: The decoder.
        prompt: The tokens before the first round.
        window: Number of last tokens. States that agree in them, and in the other data that the module lists, are
            merged.
        budget: The largest number of paths of rounds in the graph.

    Raises:
        ReadsWholeText: A round uses a token before the window.
        NotRational: A probability is a float.
        TooManyRounds: The budget does not suffice.
        ValueError: A round commits no token.
    """
    start = decoder.init(prompt)
    uses: list[int] = []
    hidden: list[Any] = [Hidden(place, uses) for place in range(len(prompt) + start.remaining)]
    numbers: dict[Hashable, int] = {}
    waiting: dict[int, list[tuple[int, State]]] = defaultdict(list)
    edges: dict[int, list[RoundEdge]] = {}
    runs = before = 0

    def number_of(state: State) -> int:
        size = len(state.tokens)
        first = max(size - window, 0)
        tail = state.tokens[first:]
        key = (size, state.remaining, tail, state.drafter, state.length)
        if key not in numbers:
            numbers[key] = len(numbers)
            waiting[size].append((numbers[key], state._replace(tokens=(*hidden[:first], *tail))))
        return numbers[key]

    number_of(start)
    places: dict[int, int] = {}
    while waiting:
        size = min(waiting)
        place = size - len(prompt)
        if place >= SETTLED and runs + (runs - before) * (start.remaining - place) > budget:
            raise TooManyRounds(f"new token {place} alone takes {runs - before} runs of a round")
        before = runs
        for number, state in waiting.pop(size):
            places[number], edges[number] = place, []
            for tokens, weight, after in _edges_of(decoder, state, uses):
                runs += 1
                if runs > budget:
                    raise TooManyRounds(f"{place} of {start.remaining} new tokens take more than {budget} runs")
                edges[number].append(RoundEdge(tokens, weight, number_of(after) if after.remaining > 0 else -1))
    order = sorted(edges, key=places.__getitem__)
    place_of = {number: index for index, number in enumerate(order)} | {-1: -1}
    nodes = [
        StateClass(places[number], tuple(edge._replace(after=place_of[edge.after]) for edge in edges[number]))
        for number in order
    ]
    return Rounds(tuple(nodes), runs, start.remaining)


def _edges_of(decoder: Decoder, state: State, uses: list[int]) -> Iterator[tuple[Tokens, Fraction, State]]:
    """Yield (new tokens, probability, next state) for every path of a round of ``decoder`` from ``state``.

    Hidden tokens of ``state`` are appended to ``uses`` when the round uses them. Raises ``ReadsWholeText`` after such a
    use, ``NotRational`` for a float probability, and ``ValueError`` for a round that commits no token.
    """
    result = paths(lambda draws: decoder.step(draws, state))
    while (path := _next(result, uses)) is not None:
        if isinstance(path.weight, float):
            raise NotRational("a probability is a float")
        after, _ = path.outcome
        tokens = after.tokens[len(state.tokens) :]
        if not tokens:
            raise ValueError("a round committed no token, expected at least one")
        yield tokens, Fraction(path.weight), after


def _next(found: Iterator[Path[tuple[State, Round]]], uses: list[int]) -> Path[tuple[State, Round]] | None:
    """Return the next path of the iterator ``found``, or None at its end.

    Raises ``ReadsWholeText`` if ``uses``, the positions of the hidden tokens that the round used, is not empty. This
    holds even if the program caught the exception of the use.
    """
    try:
        return next(found, None)
    finally:
        if uses:
            raise ReadsWholeText("a round uses tokens before the last ones")


Factors = Sequence[Sequence[Any]]
"""``factors[t][v]``: the factor that token v contributes at position t of the new tokens."""


def expectation(rounds: Rounds, factors: Factors) -> Fraction:
    """Return the expectation of the product of the factors of all tokens of a text, under the law of ``rounds``.

    ``factors[t][v]`` is the factor of token v at position t of the new tokens. With factors 1 and 0 the result is the
    probability of a pattern. It is rational.
    """
    values: list[Fraction] = [Fraction(1)] * (len(rounds.nodes) + 1)  # the last one is behind the end
    for number in range(len(rounds.nodes) - 1, -1, -1):
        place, edges = rounds.nodes[number]
        total = Fraction(0)
        for tokens, weight, after in edges:
            factor: Any = 1
            for offset, token in enumerate(tokens):
                factor *= factors[place + offset][token]
            total += weight * factor * values[after] if factor else 0
        values[number] = total
    return values[0]


def fingerprint(rounds: Rounds, factors: Factors) -> int:
    """Return the fingerprint of the law of ``rounds``: ``expectation(rounds, factors)`` modulo ``PRIME``.

    ``factors[t][v]``, an integer, is the factor of token v at position t of the new tokens.
    """
    values = [1] * (len(rounds.nodes) + 1)
    for number in range(len(rounds.nodes) - 1, -1, -1):
        place, edges = rounds.nodes[number]
        total = 0
        for tokens, weight, after in edges:
            value = _modulo(weight) * values[after] % PRIME
            for offset, token in enumerate(tokens):
                value = value * factors[place + offset][token] % PRIME
            total += value
        values[number] = total % PRIME
    return values[0]


def _modulo(weight: Fraction) -> int:
    return weight.numerator * pow(weight.denominator, -1, PRIME)


class Pattern(NamedTuple):
    """New tokens at consecutive positions whose probability differs between two laws."""

    place: int
    """Number of new tokens before the pattern."""
    tokens: Tokens
    one: Fraction
    """Probability of the pattern under the first law."""
    other: Fraction
    """Probability of the pattern under the second law."""


def difference(one: Rounds, other: Rounds, vocabulary: int, seed: int) -> Pattern | None:
    """Return a pattern of tokens whose probability differs between the laws of ``one`` and ``other``, or None.

    Tokens are below ``vocabulary``. The result is None if the laws have equal fingerprints, computed with random
    numbers from ``seed``. Different laws have equal fingerprints for at most ``horizon / 2**61`` of all choices of
    these numbers.
    """
    rng = random.Random(seed)  # noqa: S311 - no secrets
    horizon = max(one.horizon, other.horizon)
    mixed = [[rng.randrange(1, PRIME) for _ in range(vocabulary)] for _ in range(horizon)]
    every = [1] * vocabulary

    def differ(factors: Factors) -> bool:
        return fingerprint(one, factors) != fingerprint(other, factors)

    if not differ(mixed):
        return None
    length = _first(horizon, lambda length: differ([*mixed[:length], *([every] * (horizon - length))]))
    tokens: Tokens = ()
    for place in range(length - 1, -1, -1):
        behind = [_only(token, vocabulary) for token in tokens] + [every] * (horizon - length)
        token = next(
            token for token in range(vocabulary) if differ([*mixed[:place], _only(token, vocabulary), *behind])
        )
        tokens = (token, *tokens)
        pattern = [every] * place + [_only(token, vocabulary) for token in tokens] + [every] * (horizon - length)
        chances = expectation(one, pattern), expectation(other, pattern)
        if chances[0] != chances[1]:
            return Pattern(place, tokens, *chances)
    raise AssertionError("a text has different probabilities, but none of its parts does")


def _only(token: int, vocabulary: int) -> list[int]:
    return [int(other == token) for other in range(vocabulary)]


def _first(most: int, holds: Any) -> int:
    """Return the smallest number in [1, ``most``] for which ``holds(number)`` is true.

    ``holds`` must be true for all larger numbers too, up to ``most``.
    """
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
