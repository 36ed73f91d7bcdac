"""The statistics by which engines test their own rejection samplers, written from their descriptions.

Each judges rounds over pmfs that do not depend on the context, with the vocabulary size, number of samples and
threshold of the engine's test. All rounds of a sample are drawn at once, by ``laws.divided``. The kill matrix lists
these statistics beside the suite's checks, with the bugs that they miss or cannot express.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from specverify.reference import Decoder, Sampled, Task, softmax
from specverify.subjects.subject import Subject
from specverify.trust.peer_rounds import CANNOT_BE_DRAWN, PROMPT, Blocks, PeerRounds, rounds_of

Array = np.ndarray[Any, np.dtype[np.float64]]

OF_VERIFIERS = frozenset("ACDE")
"""Classes of defects that a test of a verifier alone can express: it draws the drafts itself and makes one step."""
FIRST = 20
"""One in this many of FlashInfer's five million rounds is drawn first; the others are drawn if they could change the
result."""
TURNED = 1e-9
"""If the remaining rounds are not drawn, they would have changed the result with at most this probability."""


class PeerStatistic(NamedTuple):
    """One statistic of another project: its sizes, and its decision on a sample of rounds."""

    name: str
    described: str
    vocabulary: int
    gamma: int
    samples: int
    pmfs: Callable[[np.random.Generator, int], tuple[Array, Array]]
    """``pmfs(rng, vocabulary)`` returns p and q, each ``[vocabulary]``."""
    accepts: Callable[[PeerRounds, Array, int, np.random.Generator], bool]
    """``accepts(rounds, p, samples, rng)``: whether the peer's test passes on that many rounds."""
    expresses: frozenset[str] = OF_VERIFIERS
    """Classes of defects that the peer's test can express."""


def judged(statistic: PeerStatistic, subject: Subject, seed: int = 0) -> bool:
    """Return whether the statistic accepts the subject, with those of its options that draft most tokens.

    ``seed`` is the seed of the rounds. Raises ``ValueError`` if the subject has no decoder that takes pmfs of the
    statistic's size, ``TimeoutError`` if its rounds would take more than ``MOST_SECONDS``.
    """
    if not subject.variants:
        raise ValueError(f"{subject.name} is no decoder of pmfs, expected one whose round can be run by itself")
    rng = np.random.default_rng([seed, statistic.vocabulary, statistic.gamma])
    p, q = statistic.pmfs(rng, statistic.vocabulary)
    task = Task(lambda _: p, lambda _: q, horizon=statistic.gamma + 1)
    decoders = [variant.build(task) for variant in subject.variants]
    decoder = max(decoders, key=_drafted) if len(decoders) > 1 else decoders[0]
    ways = rounds_of(decoder, rng, subject.intercepted)
    while True:
        rounds = next(ways)
        try:
            return statistic.accepts(rounds, p, statistic.samples, rng)
        except CANNOT_BE_DRAWN:
            if not rounds.independent:
                raise


def _drafted(decoder: Decoder) -> int:
    return len(decoder.step(Sampled(0), decoder.init(PROMPT))[1].draft)


def _counts(blocks: Blocks, vocabulary: int, positions: range) -> Array:
    counts = np.zeros(vocabulary)
    for block, count in blocks.items():
        for position in positions:
            if position < len(block):
                counts[block[position]] += count
    return counts


def _two_softmaxes(rng: np.random.Generator, vocabulary: int) -> tuple[Array, Array]:
    return softmax(rng.standard_normal(vocabulary)), softmax(rng.standard_normal(vocabulary))


def _of_uniform_logits(rng: np.random.Generator, vocabulary: int) -> tuple[Array, Array]:
    return softmax(rng.random(vocabulary)), softmax(rng.random(vocabulary))


def _opposed(rng: np.random.Generator, vocabulary: int) -> tuple[Array, Array]:
    logits = rng.standard_normal(vocabulary)
    return softmax(logits), softmax(-logits)


def _top_hundred(rng: np.random.Generator, vocabulary: int) -> tuple[Array, Array]:
    def kept(pmf: Array) -> Array:
        low = np.sort(pmf)[-100]
        cut: Array = np.where(pmf >= low, pmf, 0.0)
        cut /= cut.sum()
        return cut

    p, q = _two_softmaxes(rng, vocabulary)
    return kept(p), kept(q)


def _ordered(_: np.random.Generator, vocabulary: int) -> tuple[Array, Array]:
    """Return p and q over ``vocabulary`` tokens.

    The largest probabilities of p are those of tokens 1, 8, 3 and 7, in this order; q is one-hot on a fixed token.
    """
    logits = np.full(vocabulary, -4.0)
    logits[[1, 8, 3, 7]] = 3.0, 2.0, 1.0, 0.0
    return softmax(logits), np.eye(vocabulary)[8]


def _distance_shrinks(rounds: PeerRounds, p: Array, samples: int, rng: np.random.Generator) -> bool:
    """Return whether the histogram of tokens approaches p much faster than it approaches 100 random pmfs.

    From 10 to ``samples`` rounds, the L2 distance to p shrinks by one factor, and the mean distance to the random pmfs
    by another; the first must be above 20 times the second. ``rounds`` draws the rounds, ``rng`` the random pmfs.
    """
    references = np.array([softmax(logits) for logits in rng.random((100, len(p)))])
    gamma = range(max(map(len, rounds.draw(10))) - 1 or 1)

    def distances(number: int) -> tuple[float, float]:
        counts = _counts(rounds.draw(number), len(p), gamma)
        share = counts / counts.sum()
        return float(np.linalg.norm(share - p)), float(np.linalg.norm(references - share, axis=1).mean())

    (few, few_reference), (many, many_reference) = distances(10), distances(samples)
    return few / max(many, 1e-300) > 20 * few_reference / many_reference


def _chi_square(rounds: PeerRounds, p: Array, samples: int, _: np.random.Generator) -> bool:
    """Return whether chi-square of the token counts is below df + 10 sqrt(2 df) at every position that a round reaches.

    Tokens with an expected count below 5 are merged. ``samples`` rounds are drawn, or fewer if chi-square is certain to
    be too large at the first position.
    """

    def refused(found: Blocks, position: int, number: float, so_far: bool = False) -> bool:
        counts, expected = _counts(found, len(p), range(position, position + 1)), number * p
        large = expected >= 5
        seen, wanted = counts[large], expected[large]
        if (rest := expected[~large].sum()) > 0:
            seen, wanted = np.append(seen, counts[~large].sum()), np.append(wanted, rest)
        off, freedom = seen - wanted, max(len(seen) - 1, 1)
        if so_far:
            off = np.maximum(off, 0.0)
        return bool((off**2 / wanted).sum() >= freedom + 10 * np.sqrt(2 * freedom))

    found = rounds.draw(samples, lambda found: refused(found, 0, samples, so_far=True))
    if sum(found.values()) < samples:
        return False
    reached = [sum(n for block, n in found.items() if len(block) > at) for at in range(max(map(len, found)))]
    return not any(refused(found, position, number) for position, number in enumerate(reached))


def _kl_alike(rounds: PeerRounds, p: Array, samples: int, rng: np.random.Generator) -> bool:
    """Return whether two KL divergences from p, in nats, differ by less than 0.01.

    One is to the histogram of the first tokens of ``samples`` rounds, the other to that of ``samples`` draws from p by
    ``rng``.
    """

    def divergence(counts: Array) -> float:
        share = counts / counts.sum()
        seen = (share > 0) & (p > 0)
        return float((p[seen] * np.log(p[seen] / share[seen])).sum())

    direct = rng.multinomial(samples, p).astype(float)
    return abs(divergence(_counts(rounds.draw(samples), len(p), range(1))) - divergence(direct)) < 0.01


def _cosine(rounds: PeerRounds, p: Array, samples: int, _: np.random.Generator) -> bool:
    """Return whether the cosine of the histogram and p is above 0.99, and no token of probability 0 occurs.

    The histogram counts the first tokens of ``samples`` rounds, or of fewer rounds if the result is already certain.
    ``rounds`` draws the rounds.
    """
    few = samples // FIRST if rounds.independent else samples
    counts = _counts(rounds.draw(few), len(p), range(1))
    if few < samples:
        off = _off(few, TURNED / 2) + _off(samples - few, TURNED / 2)
        turned = math.asin(min(off * few / float(np.linalg.norm(counts)), 1.0))
        angle, most = math.acos(min(_cosine_between(counts, p), 1.0)), math.acos(0.99)
        if angle - turned > most:
            return False
        if angle + turned < most and p.all():
            return True
        counts += _counts(rounds.draw(samples - few), len(p), range(1))
    return bool(_cosine_between(counts, p) > 0.99 and not counts[p == 0].any())


def _off(number: int, chance: float) -> float:
    """Return a bound that the distance of token shares from their law exceeds with probability at most ``chance``.

    The distance is Euclidean, over ``number`` rounds. The bound is McDiarmid's inequality.
    """
    return (1 + math.sqrt(-math.log(chance))) / math.sqrt(number)


def _cosine_between(counts: Array, p: Array) -> float:
    return float(counts @ p / (np.linalg.norm(counts) * np.linalg.norm(p)))


def _order_kept(rounds: PeerRounds, p: Array, samples: int, _: np.random.Generator) -> bool:
    """Return whether ``samples`` rounds keep the order of the four most probable tokens of ``_ordered``: 1, 8, 3 and 7.

    Tokens 1 and 8 must occur more often than token 3, and token 3 more often than token 7, which must occur. ``rounds``
    draws the rounds.
    """
    counts = _counts(rounds.draw(samples), len(p), range(1))
    return bool(counts[1] > counts[3] > counts[7] > 0 and counts[8] > counts[3])


PEERS: tuple[PeerStatistic, ...] = (
    PeerStatistic("vLLM V0", "pooled L2 against references", 10, 1, 100_000, _of_uniform_logits, _distance_shrinks),
    PeerStatistic("vLLM V1", "pooled L2 against references", 10, 2, 100_000, _of_uniform_logits, _distance_shrinks),
    PeerStatistic("vLLM V2 wide", "chi-square a position", 4096, 1, 40_960, _two_softmaxes, _chi_square),
    PeerStatistic(
        "vLLM V2 narrow", "chi-square, its own drafts", 16, 1, 200_000, _opposed, _chi_square, OF_VERIFIERS | {"B"}
    ),
    PeerStatistic("TensorRT-LLM", "difference of KLs below 0.01", 500, 1, 50_000, _top_hundred, _kl_alike),
    PeerStatistic("FlashInfer", "cosine above 0.99", 111, 1, 5_000_000, _two_softmaxes, _cosine),
    PeerStatistic("transformers", "order of four counts", 10, 1, 10_000, _ordered, _order_kept),
)
