"""Twenty bugs of real engines in one small vectorised decoder.

All but three can be detected from samples of texts alone.

Seventeen bugs change the law of the decoded texts, or make texts dependent on each other. The other three leave the
texts right and report a wrong number of accepted drafts.

The models do not depend on the context: the target's pmf is p = (.1, .2, .3, .4), the draft model's q is p reversed. A
round drafts three tokens, and a text has two tokens. Each row of a batch has its own noise (exponential races for
tokens, uniforms for coins), and each bug changes one detail of the right algorithm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.statistics.e_processes import Array

P: Final = np.array([0.1, 0.2, 0.3, 0.4])
Q: Final = P[::-1].copy()
TOKENS: Final = 2
GREEDY: Final = np.array([1.0, 0.0, 0.0, 0.0])
TRUNCATED: Final = np.array([4.0, 3.0, 0.0, 0.0]) / 7
TEMPERED: Final = Q**1.25 / (Q**1.25).sum()
"""The draft pmf Q at temperature 0.8."""


def _ratio(token: Array) -> Array:
    ratio: Array = P[token] / Q[token]
    return ratio


class BlackBoxBug(NamedTuple):
    """The settings of a decoder, which describe one bug. The defaults describe the right decoder."""

    drafted: Array = Q
    """``[V]``: the pmf from which drafts are drawn; the verifier assumes Q."""
    ratio: Callable[[Array], Array] = _ratio
    """Maps tokens to acceptance thresholds: a draft is accepted if its uniform is below."""
    residual: Array = np.maximum(P - Q, 0)
    """``[V]``, unnormalised: the law of the replacement of a rejected draft."""
    bonus: Array = P
    gamma: int = 3
    one_coin: bool = False
    """Whether one uniform decides all drafts of a round."""
    coin_again: bool = False
    """Whether the uniform that rejected a draft also draws the replacement."""
    noise_again: bool = False
    """Whether the replacement is drawn with the Gumbel noise of the draft."""
    matching: bool = False
    """Whether a draft is accepted if it equals a draw from p; otherwise another token is drawn from p."""
    after_rejection: bool = False
    """Whether drafts after a rejected one are tested and may be accepted."""
    rounds_alike: bool = False
    """Whether every round restarts the stream of random numbers."""
    rows_alike: bool = False
    """Whether two neighbouring rows share their random stream."""
    counted_behind_the_end: bool = False
    """Whether accepted drafts of the last round are counted although the text ended before them."""


MUTANTS: Final[Mapping[str, BlackBoxBug]] = {
    "none: a correct decoder": BlackBoxBug(),
    "replacement drawn from p": BlackBoxBug(residual=P),
    "every draft accepted": BlackBoxBug(ratio=lambda token: np.full(token.shape, 2.0)),
    "replacement from max(0, q - p)": BlackBoxBug(residual=np.maximum(Q - P, 0)),
    "ratio inverted": BlackBoxBug(ratio=lambda token: 1 / _ratio(token)),
    "rejecting coin looks the replacement up": BlackBoxBug(coin_again=True),
    "draft's noise used for the replacement": BlackBoxBug(noise_again=True),
    "match, else a fresh sample": BlackBoxBug(matching=True),
    "lenience 0.9": BlackBoxBug(ratio=lambda token: _ratio(token) / 0.9),
    "lenience 0.5": BlackBoxBug(ratio=lambda token: _ratio(token) / 0.5),
    "one coin for all positions of a round": BlackBoxBug(one_coin=True),
    "bonus drawn from q (gamma 1)": BlackBoxBug(bonus=Q, gamma=1),
    "draft accepted after a rejection": BlackBoxBug(after_rejection=True),
    "two rows share a stream": BlackBoxBug(rows_alike=True),
    "greedy draft, softmax q": BlackBoxBug(drafted=GREEDY),
    "truncated draft, raw q": BlackBoxBug(drafted=TRUNCATED),
    "draft at temperature 0.8, q at 1": BlackBoxBug(drafted=TEMPERED),
    "every round begins its stream again": BlackBoxBug(rounds_alike=True),
}
"""Name of the defect -> decoder. Lenience and the dishonest draft each have two strengths."""

KEPT: Final = 0.8
OF_ACCEPTANCE: Final[Mapping[str, BlackBoxBug]] = {
    "none: a correct decoder": BlackBoxBug(),
    "every draft rejected": BlackBoxBug(ratio=lambda token: np.zeros(token.shape), residual=P),
    "a fifth of the drafts rejected without need": BlackBoxBug(
        ratio=lambda token: KEPT * np.minimum(_ratio(token), 1), residual=P - KEPT * np.minimum(P, Q)
    ),
    "drafts counted after the end": BlackBoxBug(counted_behind_the_end=True),
}
"""Name of the defect -> decoder whose text has the target's law; only its reported acceptance is wrong."""


def acceptance() -> Array:
    """Return the law ``[3]`` of the number of accepted drafts among the two tokens of a text.

    Each of the two drafts is accepted with probability sum(min(p, q)), independently.
    """
    rate = np.minimum(P, Q).sum()
    return np.array([(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2])


def decode(bug: BlackBoxBug, seed: int, number: int) -> Array:
    """Return ``number`` decoded texts, int64 ``[number, 2]``, of the decoder with the bug ``bug``.

    ``partial(decode, bug)`` is a function ``sample(seed, number)``, as ``check_sampler`` takes it.
    """
    return decode_with_counts(bug, seed, number)["tokens"]


def decode_with_counts(bug: BlackBoxBug, seed: int, number: int) -> Mapping[str, Array]:
    """Return ``number`` texts of the decoder with the bug ``bug``, and how many accepted drafts it reports for each.

    The keys are ``tokens``, int64 ``[number, 2]``, and ``accepted``, int64 ``[number]``.
    """
    rows = (number + 1) // 2 if bug.rows_alike else number
    rng = np.random.default_rng(seed)
    text, filled = np.zeros((rows, TOKENS), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    accepted = np.zeros(rows, dtype=np.int64)
    while (filled < TOKENS).any():
        if bug.rounds_alike:
            rng = np.random.default_rng(seed)
        new, count, first = _round(bug, rng, rows)
        stay = first if bug.counted_behind_the_end else np.minimum(first, TOKENS - filled)
        accepted += np.where(filled < TOKENS, stay, 0)
        for place in range(bug.gamma + 1):
            taken = (place < count) & (filled < TOKENS)
            text[taken, filled[taken]] = new[taken, place]
            filled[taken] += 1
    if bug.rows_alike:
        text, accepted = (np.repeat(result, 2, axis=0)[:number] for result in (text, accepted))
    return {"tokens": text, "accepted": accepted}


def counts(bug: BlackBoxBug, seed: int, number: int) -> Array:
    """Return how often each of the 16 possible texts occurs in ``number`` texts of the decoder with ``bug``."""
    text = decode(bug, seed, number)
    return np.bincount(text[:, 0] * len(P) + text[:, 1], minlength=len(P) ** 2)


def _round(bug: BlackBoxBug, rng: np.random.Generator, rows: int) -> tuple[Array, Array, Array]:
    """Decode one round of ``rows`` texts with the bug ``bug``.

    Returns the tokens ``[rows, gamma + 1]``, and for each row the number of valid tokens and of accepted drafts.
    """
    noise = rng.exponential(size=(rows, bug.gamma + 1, len(P)))
    coins, fresh = rng.random((rows, bug.gamma)), rng.exponential(size=(rows, bug.gamma, len(P)))
    drafts = _raced(bug.drafted, noise[:, :-1])
    if bug.matching:
        kept = _raced(P, rng.exponential(size=fresh.shape)) == drafts
    else:
        kept = (coins[:, :1] if bug.one_coin else coins) < bug.ratio(drafts)
    replacements = _replacements(bug, coins, noise[:, :-1], fresh)
    first = np.where(kept.all(axis=1), bug.gamma, kept.argmin(axis=1))
    places = np.arange(bug.gamma)
    new = np.where(places == first[:, None], replacements, drafts)
    new = np.concatenate([new, _raced(bug.bonus, noise[:, -1:])], axis=1)
    count = first + 1
    if bug.after_rejection:
        for place in range(1, bug.gamma):
            count += (count == place) & (first < place) & kept[:, place]
    return new, count, first


def _replacements(bug: BlackBoxBug, coins: Array, noise: Array, fresh: Array) -> Array:
    if bug.coin_again:
        edges = np.cumsum(bug.residual) / bug.residual.sum()
        return np.searchsorted(edges, coins, side="right")
    weights = P if bug.matching else bug.residual
    return _raced(weights, noise if bug.noise_again else fresh)


def _raced(weights: Array, noise: Array) -> Array:
    """Return the token of the smallest ``noise / weights`` in each row.

    For independent exponential noise of shape ``[..., V]`` this is a draw from ``weights``.
    """
    times = np.full(noise.shape, np.inf)
    np.divide(noise, weights, out=times, where=weights > 0)
    winners: Any = times.argmin(axis=-1)
    return np.asarray(winners)
