"""The statistics by which engines test their own rejection samplers, written from their descriptions.

Each takes one round over pmfs that do not depend on the context, as those tests do, with their vocabulary sizes,
numbers of samples and thresholds. All rounds of a sample are run at once, by ``laws.divided``. They stand beside
our own checks in the kill matrix: what they miss, and what they cannot even express.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from reference import Decoder, Draws, Sampled, Task, Tokens, softmax
from specverify.laws.divided import divided_runs
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.subjects.subject import Subject

Array = np.ndarray[Any, np.dtype[np.float64]]
Blocks = Mapping[Tokens, int]
"""What rounds emitted, with how often."""

OF_VERIFIERS = frozenset("ACDE")
"""Classes of defects that a test of the verifier alone can express: it draws the drafts itself, for one step."""
PROMPT = (0,)
MOST_SECONDS = 1200
"""Of the processor, for one sample. Most take a few, some minutes; a joint law of two races over 4096 tokens days."""
PROBE_SECONDS = 20
"""After that many it is asked whether those that are left will do."""


class PeerStatistic(NamedTuple):
    """One statistic of another project: its sizes, and whether it accepts a sample of blocks."""

    name: str
    described: str
    vocabulary: int
    gamma: int
    samples: int
    pmfs: Callable[[np.random.Generator, int], tuple[Array, Array]]
    """``pmfs(rng, vocabulary)`` -> p and q, ``[vocabulary]`` each."""
    accepts: Callable[[Callable[[int], Blocks], Array, int, np.random.Generator], bool]
    """``accepts(blocks, p, samples, rng)``; ``blocks(n)`` are ``n`` fresh rounds."""
    expresses: frozenset[str] = OF_VERIFIERS
    """Classes of defects that its test can express."""


def judged(statistic: PeerStatistic, subject: Subject, seed: int = 0) -> bool:
    """Return whether the statistic accepts the subject, at the options with which it drafts most.

    Raises ``ValueError`` if the subject has no decoder that takes pmfs of the statistic's size, ``TimeoutError`` if its
    rounds at that size would take more than ``MOST_SECONDS``.
    """
    if not subject.variants:
        raise ValueError(f"{subject.name} is no decoder of pmfs, expected one whose round can be run by itself")
    rng = np.random.default_rng([seed, statistic.vocabulary, statistic.gamma])
    p, q = statistic.pmfs(rng, statistic.vocabulary)
    task = Task(lambda _: p, lambda _: q, horizon=statistic.gamma + 1)
    decoder = max((variant.build(task) for variant in subject.variants), key=_drafted)
    return statistic.accepts(partial(_run, decoder, rng), p, statistic.samples, rng)


def _run(decoder: Decoder, rng: np.random.Generator, number: int) -> Blocks:
    """Return what ``number`` rounds emit: all at once, or one by one if they are no function of their draws."""
    start = decoder.init(PROMPT)

    def one_round(draws: Draws) -> Tokens:
        return decoder.step(draws, start)[1].tokens

    try:
        return _counted(divided_runs(one_round, number, rng), number)
    except NotAFunctionOfItsDraws:
        draws = Sampled(rng)
        return _counted(((one_round(draws), 1) for _ in range(number)), number)


def _counted(blocks: Iterable[tuple[Tokens, int]], number: int) -> Blocks:
    found, done, begun = Counter[Tokens](), 0, time.process_time()
    for block, here in blocks:
        found[block] += here
        done += here
        spent = time.process_time() - begun
        if spent > PROBE_SECONDS and spent * number / done > MOST_SECONDS:
            raise TimeoutError(f"{number} rounds would take {spent * number / done:.0f} s, more than {MOST_SECONDS}")
    return found


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
    """Order p as 1 > 8 > 3 > 7 > the rest; the draft is a fixed token."""
    logits = np.full(vocabulary, -4.0)
    logits[[1, 8, 3, 7]] = 3.0, 2.0, 1.0, 0.0
    return softmax(logits), np.eye(vocabulary)[8]


def _distance_shrinks(blocks: Callable[[int], Blocks], p: Array, samples: int, rng: np.random.Generator) -> bool:
    """The L2 distance to p shrinks 20 times as much as that to 100 random references, from 10 samples to all."""
    references = np.array([softmax(logits) for logits in rng.random((100, len(p)))])
    gamma = range(max(map(len, blocks(10))) - 1 or 1)

    def distances(number: int) -> tuple[float, float]:
        counts = _counts(blocks(number), len(p), gamma)
        share = counts / counts.sum()
        return float(np.linalg.norm(share - p)), float(np.linalg.norm(references - share, axis=1).mean())

    (few, few_reference), (many, many_reference) = distances(10), distances(samples)
    return few / max(many, 1e-300) > 20 * few_reference / many_reference


def _chi_square(blocks: Callable[[int], Blocks], p: Array, samples: int, _: np.random.Generator) -> bool:
    """At every position reached, chi-square is below df + 10 sqrt(2 df); bins that expect fewer than 5 are merged."""
    found = blocks(samples)
    for position in range(max(map(len, found))):
        counts = _counts(found, len(p), range(position, position + 1))
        expected = counts.sum() * p
        large = expected >= 5
        seen, wanted = counts[large], expected[large]
        if (rest := expected[~large].sum()) > 0:
            seen, wanted = np.append(seen, counts[~large].sum()), np.append(wanted, rest)
        freedom = max(len(seen) - 1, 1)
        if ((seen - wanted) ** 2 / wanted).sum() >= freedom + 10 * np.sqrt(2 * freedom):
            return False
    return True


def _kl_alike(blocks: Callable[[int], Blocks], p: Array, samples: int, rng: np.random.Generator) -> bool:
    """KL from p to the histogram differs by less than 0.01 nats from that of samples drawn from p itself."""

    def divergence(counts: Array) -> float:
        share = counts / counts.sum()
        seen = (share > 0) & (p > 0)
        return float((p[seen] * np.log(p[seen] / share[seen])).sum())

    direct = rng.multinomial(samples, p).astype(float)
    return abs(divergence(_counts(blocks(samples), len(p), range(1))) - divergence(direct)) < 0.01


def _cosine(blocks: Callable[[int], Blocks], p: Array, samples: int, _: np.random.Generator) -> bool:
    """The cosine of the histogram and p is above 0.99, and no token of probability 0 is seen."""
    counts = _counts(blocks(samples), len(p), range(1))
    cosine = counts @ p / (np.linalg.norm(counts) * np.linalg.norm(p))
    return bool(cosine > 0.99 and not counts[p == 0].any())


def _order_kept(blocks: Callable[[int], Blocks], p: Array, samples: int, _: np.random.Generator) -> bool:
    """Counts of four tokens come in the order of their probabilities."""
    counts = _counts(blocks(samples), len(p), range(1))
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
