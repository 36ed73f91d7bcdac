"""A law given by the caller, with which samples are compared: a pmf over tokens, or probabilities of sequences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from specverify.base.arguments import argument_error, check_number, is_token, shown
from specverify.reference import Tokens

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

OTHERS: Final = "others"
"""Key of a law for the total probability of all sequences without an entry of their own."""
SUM_TOLERANCE: Final = 1e-4
"""Largest deviation of the probabilities' sum from 1, as in float32 sums over a large vocabulary; the law is then
normalised."""


class KnownLaw(NamedTuple):
    """A law given by the caller, as numbered outcomes and their probabilities."""

    masses: Array
    """float64 ``[k]``: probability of each outcome; the sum is 1."""
    place: Callable[[Tokens], int]
    """Maps an outcome to its index in ``masses``; -1 if its probability is 0."""
    outcome: Callable[[int], Tokens | str]
    """Maps an index of ``masses`` to its outcome."""
    unnamed: float = 0.0
    """Total probability of all sequences without an entry of their own."""

    def places(self, rows: Sequence[Tokens]) -> Array:
        """Return, for each sequence of ``rows``, the index of its outcome in ``masses``; -1 if its probability is 0."""
        return np.fromiter(map(self.place, rows), dtype=np.int64, count=len(rows))


def known_law(law: Any, name: str = "the law") -> KnownLaw:
    """Return ``law`` as a ``KnownLaw``; ``name`` is its name in messages.

    ``law`` maps token sequences (tuples) to probabilities, with ``OTHERS`` for all other sequences; or it is a pmf
    ``[vocabulary]`` of the only token. Raises ``ValueError`` for anything else, and unless the probabilities sum to 1
    within 1e-4.
    """
    if isinstance(law, Mapping):
        return _of_sequences(law, name)
    expected = "a mapping from tuples of token ids to probabilities, or a pmf [vocabulary]"
    try:
        masses = np.asarray(law.tolist() if hasattr(law, "tolist") else law, dtype=np.float64)
    except (TypeError, ValueError):
        raise argument_error(name, law, expected) from None
    if masses.ndim != 1 or not len(masses):
        raise argument_error(name, law, expected)
    if not (masses >= 0).all():
        worst = int(np.flatnonzero(~(masses >= 0))[0])
        raise ValueError(f"{name} gives token {worst} the probability {masses[worst]}, expected a number >= 0")
    size = len(masses)

    def place(tokens: Tokens) -> int:
        return tokens[0] if len(tokens) == 1 and tokens[0] < size else -1

    return KnownLaw(_scaled(masses, name), place, lambda number: (number,))


def _of_sequences(law: Mapping[Any, Any], name: str) -> KnownLaw:
    for key, mass in law.items():
        if key != OTHERS and not (isinstance(key, tuple) and all(map(is_token, key))):
            raise ValueError(f"{name} has the key {shown(key)}, expected a tuple of token ids or {OTHERS!r}")
        check_number(mass, f"{name} at {key}", "a probability from 0 to 1", lambda value: 0 <= value <= 1 + 1e-6)
    keys = sorted((key for key in law if key != OTHERS), key=lambda key: (len(key), key))
    rest = len(keys) if OTHERS in law else -1
    keys += [OTHERS] if OTHERS in law else []
    numbers = {key: number for number, key in enumerate(keys)}
    masses = _scaled(np.array([float(law[key]) for key in keys]), name)
    unnamed = float(masses[rest]) if rest >= 0 else 0.0
    return KnownLaw(masses, lambda tokens: numbers.get(tokens, rest), lambda number: keys[number], unnamed)


def _scaled(masses: Array, name: str) -> Array:
    total = math.fsum(masses)
    if not abs(total - 1) <= SUM_TOLERANCE:
        raise ValueError(f"{name} sums to {total:.6g}, expected probabilities that sum to 1")
    scaled: Array = masses / total
    return scaled
