"""Measure how often the suite refutes right subjects, and compare that rate with the declared one.

The sampled checks judge samples of right laws with an enlarged false-alarm probability, so that alarms are frequent
enough to be counted. The exact checks examine random right configurations and must refute none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from specverify.base.parallel import in_parallel
from specverify.base.verdict import Status
from specverify.checks import EXACT_CHECKS
from specverify.checks.forgetting import forget_laws
from specverify.laws.divided import divided_counts
from specverify.laws.enumeration import decoder_law
from specverify.laws.scenarios import Scenario
from specverify.laws.tables import SHAPES
from specverify.reference import ALGORITHMS, Algorithm, Decoder, Tokens
from specverify.run.verify import Checklist, verify_subject
from specverify.statistics import FitVerdict, confirmed_fit, samples_for, stage_level
from specverify.subjects.algorithm import PROMPT, algorithm_subject, float_task
from specverify.subjects.subject import Subject, Variant

DETECTABLE = (0.05, 0.1, 0.2, 0.4)
"""Total variations for which the counted tests are planned; smaller ones need more samples."""
SHARES = 64
ACCUSATIONS = frozenset({Status.REFUTED, Status.UNUSABLE})


class CountedAlarms(NamedTuple):
    """How often an event happened to a right subject in ``runs`` examinations.

    ``what`` names the event: a refutation, or a rejection by the first of two samples. ``accused`` is the number of
    events, and ``declared`` their declared probability. ``low`` and ``high`` are the ends of the interval of the rate,
    and ``examples`` name the subjects of some events.
    """

    what: str
    runs: int
    declared: float
    accused: int
    low: float
    """Lower end of the exact 99 percent binomial interval of the rate."""
    high: float
    examples: tuple[str, ...] = ()

    @property
    def as_declared(self) -> bool:
        """Return whether the counted rate is compatible with the declared rate.

        It is compatible unless the whole confidence interval of the counted rate lies above the declared rate.
        """
        return self.low <= self.declared


class _AlarmTally(NamedTuple):
    runs: int
    suspicions: int
    accused: int


def statistical_alarms(
    runs: int, false_alarm: float = 1e-2, seed: int = 0, jobs: int = 1, done: Callable[[int], None] = lambda index: None
) -> list[CountedAlarms]:
    """Judge ``runs`` right subjects by samples; return two rates: rejections by the first sample, and refutations.

    A subject is refuted if a second sample rejects it too. Each subject is a random algorithm of the registry, compared
    with its own output law by a random number of samples.

    Args:
        runs: Number of subjects.
        false_alarm: Declared probability of a refutation; its square root is that of a rejection by the first sample.
        seed: Seed of all samples.
        jobs: Number of processes.
        done: ``done(index)`` is called for each finished part of the work.
    """
    works = [partial(_tally, share, false_alarm, seed) for share in _shares(runs)]
    tallies: list[_AlarmTally] = list(in_parallel(works, jobs, done))
    judged, suspicions, accused = (sum(column) for column in zip(*tallies, strict=True))
    return [
        _counted("the first stage rejects", judged, float(np.sqrt(false_alarm)), suspicions),
        _counted("both stages reject: a refutation", judged, false_alarm, accused),
    ]


def exact_alarms(
    configurations: int, seed: int = 0, jobs: int = 1, done: Callable[[int], None] = lambda index: None
) -> CountedAlarms:
    """Examine random right configurations by every exact check that applies; return how often one was refuted.

    A verdict REFUTED or UNUSABLE counts. ``seed`` selects the ``configurations``. ``jobs`` processes examine them;
    ``done(index)`` is called for each finished part of the work.
    """
    works = [partial(_accusations, share, seed) for share in _shares(configurations)]
    result = [line for lines in in_parallel(works, jobs, done) for line in lines]
    return _counted("an exact check refutes", configurations, 0.0, len(result))._replace(examples=tuple(result))


def _shares(number: int) -> list[tuple[int, ...]]:
    """Split the indices 0 .. number - 1 into at most ``SHARES`` parts."""
    return [tuple(map(int, share)) for share in np.array_split(np.arange(number), min(number, SHARES))]


def _counted(what: str, runs: int, declared: float, accused: int) -> CountedAlarms:
    from scipy.stats import binomtest  # noqa: PLC0415 - half a second, and only where something is sampled

    interval = binomtest(accused, runs).proportion_ci(0.99)
    return CountedAlarms(what, runs, declared, accused, float(interval.low), float(interval.high))


def _tally(indices: Sequence[int], false_alarm: float, seed: int) -> _AlarmTally:
    suspicions = accused = 0
    miss = 0.1
    for index in indices:
        rng = np.random.default_rng([seed, index])
        decoder, law = _correct(int(rng.integers(len(ALGORITHMS))), int(rng.integers(3)))
        detect = float(rng.choice(DETECTABLE))
        fit = confirmed_fit(
            partial(divided_counts, decoder, PROMPT),
            law,
            samples=samples_for(law, detect, stage_level(false_alarm), miss / 2),
            false_alarm=false_alarm,
            miss=miss,
            seed=int(rng.integers(2**62)),
        )
        suspicions += fit.second is not None
        accused += fit.verdict is FitVerdict.REFUTED
    return _AlarmTally(len(indices), suspicions, accused)


@lru_cache(maxsize=1024)
def _correct(row: int, size: int) -> tuple[Decoder, Mapping[Tokens, float]]:
    """Return a right decoder and its output law: algorithm number ``row`` of the registry on float64 models.

    ``size`` 0, 1 or 2 selects a law with few, more or many outcomes.
    """
    algorithm: Algorithm = ALGORITHMS[row]
    vocabulary, horizon = ((2, 1), (4, 2), (5, 3))[size]
    decoder = algorithm.build(float_task(vocabulary, 1.0, horizon), **algorithm.examples[0])
    law = {outcome: float(mass) for outcome, mass in decoder_law(decoder, PROMPT).probabilities.items() if mass > 0}
    total = sum(law.values())
    return decoder, {outcome: mass / total for outcome, mass in law.items()}


def _accusations(indices: Sequence[int], seed: int) -> list[str]:
    result = []
    for index in indices:
        subject = random_configuration(seed, index)
        result += [
            f"{verdict.subject} {verdict.check}: {verdict.statement}"
            for verdict in verify_subject(subject, Checklist(EXACT_CHECKS))
            if verdict.status in ACCUSATIONS
        ]
        forget_laws()
    return result


def random_configuration(seed: int, index: int) -> Subject:
    """Return a subject: a random registry algorithm with the options of one of its examples, in one random scenario.

    A scenario has models, prompt and horizon. ``seed`` and ``index`` determine algorithm, options and scenario.
    """
    rng = np.random.default_rng([seed, index])
    subject = algorithm_subject(ALGORITHMS[int(rng.integers(len(ALGORITHMS)))])
    vocabulary = int(rng.integers(2, 5))
    ends = int(rng.integers(0, 3))
    scenario = Scenario(
        shape=str(rng.choice(sorted(SHAPES))),
        vocabulary=vocabulary,
        prompt=tuple(int(token) for token in rng.integers(vocabulary, size=int(rng.integers(1, 5)))),
        horizon=int(rng.integers(1, 4)),
        eos=tuple(int(token) for token in rng.choice(vocabulary, size=min(ends, vocabulary - 1), replace=False)),
        seed=int(rng.integers(10**6)),
        greedy=bool(rng.random() < 0.2),
    )
    variant = subject.variants[int(rng.integers(len(subject.variants)))]
    return subject._replace(scenarios=(scenario,)).with_situations(Variant, (variant,))
