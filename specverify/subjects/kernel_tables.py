"""Rational models for kernels, so that the law of a round is known exactly.

The law of a kernel is computed from cells of its uniforms (``laws.grid``). A kernel that draws its last token by a race
(the largest weight / noise) is examined in the same way if this token is one of two, a and b. For exponentials of rate
1, E_a / (E_a + E_b) is uniform: with E_a = r and E_b = 1 - r, token a wins if r < w_a / (w_a + w_b), as under inverse
CDF. A third noise E_c = (1 - s) / s, with s = sqrt(t) and t uniform, makes the three a uniform point of the simplex, up
to scale. So the law of a kernel that wrongly lets token c take part in the race is computed correctly too. For this
reason, in the models of a race p exceeds q only on a and b, and the last row of p has no other token.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.grid import grid_tables
from specverify.reference import LanguageModel, Pmf, Tokens
from specverify.subjects.kernel import Kernel

PROMPT = (0,)
SIZE = 3
"""Number of tokens with positive probability in most situations, for every vocabulary size."""
DENOMINATORS = (4, 3, 6, 5, 2, 8)
DYADIC = (4, 2, 8)
"""Denominators for pmfs in a 16-bit dtype, which holds their fractions exactly."""
PAIRS = ((0, 1), (1, 2), (0, 2))
KERNEL_GAMMA = 4
"""Number of drafts in ``deep_situations``."""


class Situation(NamedTuple):
    """A target, a draft model, and the number of drafts (``length``) of one round after the prompt.

    Together they determine the exact law of the round. ``name`` describes them in messages.
    """

    name: str
    target: LanguageModel
    draft: LanguageModel
    length: int
    pair: tuple[int, int]
    """The two tokens between which a race decides."""

    @property
    def size(self) -> int:
        """Return the number of tokens that the models are over."""
        return len(self.target(PROMPT))


def situations_of(kernel: Kernel, gamma: int, table: int) -> tuple[Situation, ...]:
    """Return the rounds of ``gamma`` drafts for the pair of models with the number ``table``, as a ``Situation``.

    If the kernel's rows may differ in length, return also one for each smaller number of drafts, from 0.
    """
    denominators = DYADIC if kernel.short else DENOMINATORS
    denominator, pair = denominators[table % len(denominators)], PAIRS[table % len(PAIRS)]
    result = []
    for length in range(0 if kernel.ragged else gamma, gamma + 1):
        models = race_tables(denominator, table, length, pair) if kernel.race else grid_tables(SIZE, denominator, table)
        result.append(Situation(f"table {table}, in {denominator}ths, gamma={length}", *models, length, pair))
    return tuple(result)


_SMALL_WEIGHT: Mapping[Tokens, tuple[tuple[int, ...], tuple[int, ...]]] = {
    PROMPT: ((2, 4, 2), (4, 2, 2)),
    (*PROMPT, 0): ((5, 3, 0), (1, 0, 7)),
}
"""Text -> p and q in eighths. After draft 0 the weight w of block verification (2403.10444) is 1/2, and max(w p - q, 0)
has two tokens in other proportions than max(p - q, 0), which small denominators rarely give."""
_FAIR = ((4, 4, 0), (4, 4, 0))
"""p and q, in eighths, after all other texts."""


def small_weight_situation() -> Situation:
    """Return models for a round of two drafts in which block verification replaces the second one with a weight < 1."""

    def row(which: int, tokens: Tokens) -> Pmf:
        return np.array([Fraction(mass, 8) for mass in _SMALL_WEIGHT.get(tokens, _FAIR)[which]])

    return Situation("a weight of 1/2 before draft 2, gamma=2", partial(row, 0), partial(row, 1), 2, PAIRS[0])


_FIRST_WEIGHT, _TRIPLED, _LAST_WEIGHT = ((2, 4, 2), (4, 2, 2)), ((6, 1, 1), (2, 3, 3)), ((5, 3, 0), (1, 0, 7))
"""p and q in eighths. For draft 0 the first make the weight w 1/2, and the second then 1. The residual of the last
has other tokens if w is another one."""


def weight_situations() -> tuple[Situation, ...]:
    """Return models for rounds of ``KERNEL_GAMMA`` drafts by block verification, with a weight below 1 (2403.10444).

    After draft 1 the weight may be 1/2. It is that of the residual of draft 2, 3 or 4. In the last ``Situation`` it is
    1 again after draft 2, before the residual of draft 3.
    """
    plans = [{0: _FIRST_WEIGHT, place: _LAST_WEIGHT} for place in range(1, KERNEL_GAMMA)]
    plans.append({0: _FIRST_WEIGHT, 1: _TRIPLED, 2: _LAST_WEIGHT})

    def row(which: int, plan: Mapping[int, Any], tokens: Tokens) -> Pmf:
        return np.array([Fraction(mass, 8) for mass in plan[len(tokens) - len(PROMPT)][which]])

    return tuple(
        certain_but(tuple(plan), len(plans) + seed, (partial(row, 0, plan), partial(row, 1, plan)))
        for seed, plan in enumerate(plans)
    )


def deep_situations(kernel: Kernel) -> tuple[Situation, ...]:
    """Return models for rounds of ``KERNEL_GAMMA`` drafts whose pmfs are one-hot except at two positions.

    There is a ``Situation`` for each pair of positions. Two more come first: with p and q that are nearly equal at two
    positions (``apart_tables``), and with very different probabilities there (``scale_tables``). Before these, a kernel
    of block verification has ``weight_situations``. The models are exact in the dtype of ``kernel``.
    """
    exponent = 7 if kernel.short else 11
    result = [
        *(weight_situations() if kernel.convention.rule == "block" and not kernel.race else ()),
        certain_but((0, 2), exponent, apart_tables(exponent), PAIRS[1]),
        certain_but((0, 2), exponent + 1, scale_tables(exponent), PAIRS[2]),
    ]
    for table, places in enumerate(combinations(range(KERNEL_GAMMA + 1), 2)):
        pair = PAIRS[table % len(PAIRS)]
        models = race_tables(4, table, KERNEL_GAMMA, pair) if kernel.race else grid_tables(SIZE, 4, table)
        result.append(certain_but(places, table, models, pair))
    return tuple(result)


def certain_but(
    places: Collection[int],
    seed: int,
    models: tuple[LanguageModel, LanguageModel],
    pair: tuple[int, int] = PAIRS[0],
    length: int = KERNEL_GAMMA,
) -> Situation:
    """Return models for rounds of ``length`` drafts whose pmfs are one-hot except at the positions ``places``.

    ``models`` are the target and the draft model at these positions, and ``seed`` selects the one-hot pmfs. ``pair``
    are the two tokens between which a race decides.
    """
    size = len(models[0](PROMPT))

    def row(model: LanguageModel, tokens: Tokens) -> Pmf:
        if len(tokens) - len(PROMPT) in places:
            return model(tokens)
        point = np.full(size, Fraction(0))
        point[np.random.default_rng([seed, *tokens]).integers(size)] = Fraction(1)
        return point

    target, draft = (cache(partial(row, model)) for model in models)
    name = f"table {seed}, one-hot except after {' and '.join(map(str, places))} drafts, gamma={length}"
    return Situation(name, target, draft, length, pair)


THREE_LEFT = ((8, 5, 9, 10), (16, 4, 7, 5))
"""p and q in 1/32: the first token is drafted too often, and one of the three others replaces it. It is accepted with
probability 1/2, so that a kernel that compares 1 - u changes its result at the same uniform."""
OFTEN_THREE_LEFT = ((2, 6, 10, 14), (32, 0, 0, 0))
"""The same with a first token that is rejected nearly always, for samples."""
_FOUR = 4


def three_left_situations(gamma: int) -> tuple[Situation, ...]:
    """Return ``three_left_situation`` for each position of a round of ``gamma`` drafts, and each token."""
    return tuple(three_left_situation(gamma, place, token) for place in range(gamma + 1) for token in range(_FOUR))


def three_left_situation(
    gamma: int, place: int, token: int, thirty_seconds: tuple[Tokens, Tokens] = THREE_LEFT
) -> Situation:
    """Return models over four tokens for rounds of ``gamma`` drafts, with a draft that is replaced by one of three.

    Models over three tokens leave at most two, so they do not show how a kernel adds up more than two weights of a
    replacement, for example those of several blocks of the vocabulary. ``thirty_seconds`` are p and q, in 1/32, at the
    position ``place``, rotated so that ``token`` is drafted too often. At the other positions the pmfs are one-hot.
    """
    p, q = np.roll(thirty_seconds, token, axis=1) * Fraction(1, 32)
    return certain_but((place,), _FOUR * place + token, ((lambda _: p), (lambda _: q)), length=gamma)


def race_tables(denominator: int, seed: int, length: int, pair: tuple[int, int]) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) for a race: replacements, and the token after ``length`` drafts, are always in ``pair``.

    Probabilities are multiples of 1/``denominator``. ``seed`` selects them.
    """
    (odd,) = {*range(SIZE)} - {*pair}

    @cache
    def both(tokens: Tokens) -> tuple[Pmf, Pmf]:
        rng = np.random.default_rng([denominator, seed, length, *tokens])
        q: Any = np.bincount(rng.integers(SIZE, size=denominator), minlength=SIZE)
        moved = int(q[odd] if len(tokens) == len(PROMPT) + length else rng.integers(q[odd] + 1))
        share = int(rng.integers(moved + 1))
        p = q.copy()
        p[[odd, *pair]] += np.array([-moved, share, moved - share])
        return p * Fraction(1, denominator), q * Fraction(1, denominator)

    return (lambda tokens: both(tokens)[0]), (lambda tokens: both(tokens)[1])


def scale_tables(exponent: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) with p/q = 2^(1 - exponent) for a likely draft, to expose kernels with a threshold.

    That is so after the prompt. After any longer text a token has all of p but 2^(1 - exponent). bfloat16 holds the
    pmfs exactly if ``exponent`` is 7.
    """
    little, half = Fraction(1, 2**exponent), Fraction(1, 2)
    begun = np.array([[little, half / 2, 1 - half / 2 - little], [half, half / 2, half / 2]])
    later = np.array([[1 - 2 * little, 2 * little, Fraction(0)], [half, half, Fraction(0)]])
    return _begun_and_later(begun, later)


def apart_tables(exponent: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) whose pmfs differ by 2^-exponent at two tokens, to expose kernels with a threshold.

    After the prompt an unlikely token has more mass under p than under q; after any longer text an unlikely token has
    less. bfloat16 holds the pmfs exactly if ``exponent`` is 7.
    """
    little, half = Fraction(1, 2**exponent), Fraction(1, 2)
    begun = np.array([[half - little, half - little, 2 * little], [half, half - little, little]])
    later = np.array([[little, half, half - little], [2 * little, half - little, half - little]])
    return _begun_and_later(begun, later)


def _begun_and_later(begun: Any, later: Any) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) with rows p and q: ``begun`` after the prompt, and ``later`` after any longer text."""

    def row(which: int, tokens: Tokens) -> Pmf:
        return (later if len(tokens) > len(PROMPT) else begun)[which]

    return partial(row, 0), partial(row, 1)
