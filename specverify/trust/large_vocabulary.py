"""Test which statistics detect wrong probabilities of thirty tokens among 128 256.

The total variation is 0.01. Tokens are too many, and each too rare, to compare their counts one by one.
``check_sampler`` compares counts in partitions that are fixed before the samples are drawn. For comparison, the
statistics by which vLLM tests its rejection samplers (``trust.peers``) get samples of the same sampler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from specverify.base.verdict import Status
from specverify.reference import Tokens, softmax
from specverify.run.sequential_samples import SamplingPlan, sampled_verdicts
from specverify.subjects.sampler import Sampler
from specverify.trust.peer_rounds import PeerRounds
from specverify.trust.peers import PEERS

Array = np.ndarray[Any, np.dtype[Any]]
V: Final = 128_256
TOKENS: Final = 30
TV: Final = 0.01
P: Final = softmax(4.0 * np.random.default_rng(0).standard_normal(V))
Q: Final = softmax(np.log(P) + np.random.default_rng(1).standard_normal(V))
"""``[V]``: the draft pmf. Tokens are grouped into cells by p/q."""
PLAN: Final = SamplingPlan(tv=0.04, most_samples=400_000)
STATISTICS: Final = {"pooled L2": "vLLM V1", "chi-square": "vLLM V2 wide"}
MORE: Final = 10
"""Factor of the second, larger sample size given to the other statistics."""


def moved(tokens: Array, *, more: bool) -> Array:
    """Return the right law ``P`` with the total probability of ``tokens`` changed by ``TV``.

    With ``more`` each of ``tokens`` gets an equal part of ``TV``; otherwise they lose ``TV`` in proportion. The other
    tokens are scaled.
    """
    law: Array = P.copy()
    here = P[tokens].sum()
    law[tokens] = P[tokens] + TV / len(tokens) if more else P[tokens] * (1 - TV / here)
    rest = np.ones(V, bool)
    rest[tokens] = False
    law[rest] *= (1 - law[tokens].sum()) / law[rest].sum()
    return law


PLANTED: Final[Mapping[str, Array]] = {
    "thirty rare tokens are too frequent": moved(np.random.default_rng(2).choice(V, TOKENS, replace=False), more=True),
    "the last ids are too frequent": moved(np.arange(V - TOKENS, V), more=True),
    "thirty likely tokens are too rare": moved(np.argsort(-P)[40 : 40 + TOKENS], more=False),
}
RIGHT: Final = "the law itself"


def sampler_of(law: Array) -> Callable[[int, int], Array]:
    """Return the sampler ``(seed, number)`` -> tokens ``[number]`` of ``law`` ``[vocabulary]``."""
    edges = np.cumsum(law)
    edges /= edges[-1]
    return lambda seed, number: np.searchsorted(edges, np.random.default_rng(seed).random(number), side="right")


def table() -> str:
    """Return a Markdown table with one line for each sampled law: the right law ``P``, and each of ``PLANTED``.

    A line has the verdict of ``check_sampler``, and those of vLLM's statistics: with as many samples as it needed, and
    with ``MORE`` times as many.
    """
    heads = [f"{name}, {times}" for name in STATISTICS for times in ("as many", f"{MORE} times")]
    lines = [f"| law | `samples_fit_law` | samples | {' | '.join(heads)} |", f"|{'---|' * (3 + len(heads))}"]
    for name, law in {RIGHT: P, **PLANTED}.items():
        status, samples = judged(law)
        said = (describe_acceptance(peer, law, samples * times) for peer in STATISTICS.values() for times in (1, MORE))
        lines.append(f"| {name} | {status.value} | {samples} | {' | '.join(said)} |")
    return "\n".join(lines)


def judged(law: Array) -> tuple[Status, int]:
    """Sample ``law`` and test the samples by ``check_sampler`` against the right law ``P``.

    Returns the verdict and the number of samples.
    """
    verdicts = sampled_verdicts(Sampler("it", sampler_of(law)), PLAN, law=P, draft=Q)
    fit = next(verdict for verdict in verdicts if verdict.check == "samples_fit_law")
    return fit.status, fit.figures["samples"]


def describe_acceptance(peer: str, law: Array, samples: int) -> str:
    """Return in words whether the statistic of the project ``peer`` accepts samples of ``law`` as samples of ``P``.

    If it alarms, the text also states whether it alarms on samples of the right law ``P`` itself.
    """
    if accepted(peer, law, samples):
        return "accepts"
    return "alarms" if accepted(peer, P, samples) else "alarms, and on the law itself"


def accepted(peer: str, law: Array, samples: int) -> bool:
    """Return whether the statistic of the project ``peer`` accepts samples of ``law`` as samples of the right law.

    ``samples`` is the number of samples that are drawn. The right law is ``P``.
    """
    statistic = next(item for item in PEERS if item.name == peer)
    rounds = PeerRounds(lambda number, settled=None, /: _blocks(law, 1, number), independent=True)
    return statistic.accepts(rounds, P, samples, np.random.default_rng(3))


def _blocks(law: Array, seed: int, number: int) -> Mapping[Tokens, int]:
    counts = np.bincount(sampler_of(law)(seed, number), minlength=V)
    return {(int(token),): int(counts[token]) for token in np.flatnonzero(counts)}
