"""The shape of a check: a plain function from a case to what it found, and the cases it goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from reference import Claim
from specverify.enumeration import decoder_law, estimated_paths, whole_run
from specverify.law import Law
from specverify.rounding import FLOAT32, of_decision
from specverify.scenarios import Scenario
from specverify.subjects.subject import Case, Subject, case_decoder
from specverify.verdict import Evidence, Examination


class Conditions(NamedTuple):
    """What a run decides for its checks: how many enumeration runs, which seed, which share of the alarm budget."""

    runs: int = 200_000
    seed: int = 0
    false_alarm: float = 1e-6
    miss: float = 1e-3
    jobs: int = 1
    """Processes that share a long enumeration, or sampled settings."""


class Check(NamedTuple):
    """One property. One file per check; ``specverify.checks`` lists them."""

    name: str
    summary: str
    claim: Claim | None
    """The claim it tests, or None for what every subject owes."""
    evidence: Evidence
    obstacle: Callable[[Subject], str | None]
    """Why the check says nothing of a subject, or None when it applies."""
    cases: Callable[[Subject], Iterable[Case]]
    examine: Callable[[Case, Conditions], Examination]


def exact_cases(keep: Callable[[Scenario], bool]) -> Callable[[Subject], Iterator[Case]]:
    """Return every variant in every scenario of the subject that ``keep`` lets through, in their order."""

    def cases(subject: Subject) -> Iterator[Case]:
        for scenario in subject.scenarios:
            if keep(scenario) and (subject.stops_at_eos or not scenario.eos):
                for variant in subject.variants:
                    yield Case(subject, variant, scenario)

    return cases


def needs_variants(subject: Subject) -> str | None:
    """The obstacle of every check that enumerates."""
    return None if subject.variants else "its draws cannot be enumerated, only sampled"


def only_sampled(subject: Subject, reason: object) -> str:
    """Return the sentence about a subject whose draws cannot be enumerated, for the ``reason`` given."""
    return f"cannot be enumerated, only sampled{': see samples_fit_law' if subject.settings else ''}: {reason}"


@lru_cache(maxsize=4096)
def case_law(case: Case, runs: int) -> Law:
    """Return the law of the new tokens in a case; several checks read the same one."""
    assert case.scenario is not None
    return decoder_law(case_decoder(case), case.scenario.prompt, runs)


@lru_cache(maxsize=4096)
def beyond_reach(case: Case, runs: int = 4000) -> bool:
    """Return whether a whole decode has too many paths to follow: about ``runs`` is what one case may take."""
    if not case.subject.whole or case.scenario is None:
        return False
    return estimated_paths(whole_run(case_decoder(case), case.scenario.prompt)) > runs


def slack(case: Case, decisions: int) -> float:
    """Return how far a probability over this many decisions may be off by rounding; 0 in rationals."""
    assert case.scenario is not None
    return 0.0 if case.subject.rational else decisions * of_decision(FLOAT32, case.scenario.vocabulary)
