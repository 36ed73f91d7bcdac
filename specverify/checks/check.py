"""The type of a check: a property, with the cases in which it is examined and a function that examines each case.

A *situation* is the input of one examination: a variant of a subject in a scenario, the program of an engine, options
of a subject that is sampled, or a single call of a verifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from specverify.base.default_limits import EDGE, MOST_PROGRAMS
from specverify.base.verdict import Evidence, Examination
from specverify.laws.certain_tables import is_certain
from specverify.laws.deep_scenarios import ONE_ROW_SCENARIOS
from specverify.laws.enumeration import decoder_law, one_round_law, whole_run
from specverify.laws.law import Law
from specverify.laws.paths import PROBES, estimated_paths
from specverify.laws.rounding import FLOAT32, of_decision
from specverify.laws.scenarios import Scenario
from specverify.reference import Claim, Draws
from specverify.subjects.subject import (
    EngineProgram,
    InScenario,
    KernelSetting,
    Situation,
    Subject,
    SubjectSituation,
    Variant,
)

Here = TypeVar("Here", bound=Situation)

PATHS_IN_REACH = 4000
"""The largest number of paths of one case, for a decode that is enumerated as a whole."""
PATHS_OF_ONE_ROW = 2000
"""The largest number of paths of a round in a scenario in which only one row is not one-hot."""
SEVERAL_ROUNDS = 3
"""The largest horizon at which the law of a decoder with memoised calls is enumerated over several rounds."""
NO_ENGINE = "it is no engine"
ONLY_SAMPLED = "its draws cannot be enumerated, only sampled"
ORDERED = 5
"""The largest vocabulary for which all orders of the tokens can be enumerated."""

MOST_RARE = 1e-6
"""More probability than this is missing only if the run limit ended the enumeration, not because paths are rare."""


class Conditions(NamedTuple):
    """The settings that the checks of a run use, such as the number of enumerated runs and the seed.

    ``runs``: the most runs of one enumeration. ``false_alarm`` and ``miss``: the error probabilities of statistical
    tests.
    """

    runs: int = 200_000
    seed: int = 0
    false_alarm: float = 1e-6
    miss: float = 1e-3
    jobs: int = 1
    """Number of processes for a long enumeration or for sampled settings."""
    paths: int = 1000
    """The number of paths of one case on which reuse of random numbers is searched for."""
    apart: int = 1
    """Stride: boundary draws are tested on every n-th text of a scenario; 1 means all texts."""
    edge: float = EDGE
    """A fault that occurs only at an extreme value of a random number refutes from this probability per draft on."""
    replays: int = 140
    """The most replays of one engine program with other initial states, such as other seeds."""
    explained: bool = True
    """Whether the refutation by a law has a counterexample, which can take longer than the law."""
    complete_within: int | None = None
    """The most runs of a law that is compared: with more, ``EnumerationTooLarge`` is raised. None: at ``runs`` the
    enumeration ends, and the incomplete law can still refute the subject. An enumeration with all uniforms at an end of
    their range stops after as many runs, and raises nothing."""

    @property
    def run_limit(self) -> int:
        """Return the smaller of the limits ``runs`` and ``complete_within``."""
        return self.runs if self.complete_within is None else min(self.runs, self.complete_within)


class Case(NamedTuple):
    """One examination to make: a subject, a situation (the input), and the function that examines both."""

    subject: Subject
    situation: Situation
    examine: Callable[[Conditions], Examination]


Examine = Callable[[Any, Conditions], Examination]
"""``examine(situation, conditions)`` examines one situation."""


class Need(NamedTuple):
    """A condition that a situation (the input of an examination) must meet, or else the check leaves it out."""

    holds: Callable[[Subject, Any], object]
    """``holds(subject, situation)`` returns whether the situation meets the condition."""
    otherwise: str
    """Why the check does not apply if the condition holds in no situation."""


class ExaminedPart(NamedTuple):
    """The situations of one type that a check examines, and the function that examines each of them.

    A situation is the input of one examination, for example a verifier in a scenario. ``kind`` is the type.
    ``examine_for(subject)`` returns the function. A situation is left out unless it meets all of ``needs``.
    """

    kind: type[SubjectSituation] | None
    """None: the check brings its own situations, and applies to every subject."""
    examine_for: Callable[[Subject], Examine]
    absent: str
    """Why the check does not apply to a subject without situations of the kind."""
    needs: tuple[Need, ...] = ()
    within: Callable[[Subject], Iterable[Situation]] | None = None
    """Returns the situations to examine.

    Its argument is the subject, restricted to the situations of the kind that meet the needs. None: all of these
    situations are examined.
    """

    def obstacle(self, subject: Subject) -> str | None:
        """Return the reason why no situation of ``subject`` can be examined; None if at least one can.

        A situation is the input of one examination, for example a verifier in a scenario.
        """
        return None if self.kind is None else self._meeting(subject, self.kind)[1]

    def cases(self, subject: Subject) -> Iterator[Case]:
        """Yield a case for each situation of ``subject`` that meets the needs of the check.

        A situation is the input of one examination, for example a verifier in a scenario.
        """
        if self.kind is None:
            within = self.within(subject) if self.within else ()
        else:
            kept, _ = self._meeting(subject, self.kind)
            within = self.within(subject.with_situations(self.kind, kept)) if self.within else kept
        examine = self.examine_for(subject)
        return (Case(subject, here, partial(examine, here)) for here in within)

    def _meeting(self, subject: Subject, kind: type[Any]) -> tuple[tuple[Any, ...], str | None]:
        """Return (situations of type ``kind`` that meet all needs, reason), where the reason is None if there are any.

        A situation is the input of one examination, for example a verifier in a scenario. The reason states why
        ``subject`` has no such situation: none of the type, or the first need that leaves none.
        """
        kept, reason = subject.of(kind), self.absent
        for need in self.needs:
            if kept:
                kept, reason = tuple(here for here in kept if need.holds(subject, here)), need.otherwise
        return kept, None if kept else reason


class Check(NamedTuple):
    """One property of a subject, with the parts that examine it: one for each type of situation.

    A situation is the input of one examination, for example a verifier in a scenario. ``name`` is the word for the
    check on the command line, ``summary`` the property in a sentence, and ``evidence`` the strength of a verdict, such
    as ``EXACT`` for a comparison of laws.
    """

    name: str
    summary: str
    claim: Claim | None
    """The claim that this check tests; None if every subject must pass it."""
    evidence: Evidence
    examines: tuple[ExaminedPart, ...]
    """The parts of the check, in the order in which they are examined."""

    def obstacle(self, subject: Subject) -> str | None:
        """Return why the check examines no situation of ``subject``; None if it examines some.

        A check has a part for each type of situation. The reason returned is that of the first part whose type of
        situation the subject has; if it has none of these types, that of the last part.
        """
        if any(part.obstacle(subject) is None for part in self.examines):
            return None
        kinds = set(map(type, subject.situations))
        return next((part for part in self.examines if part.kind in kinds), self.examines[-1]).obstacle(subject)

    def cases(self, subject: Subject) -> Iterator[Case]:
        """Yield the cases of ``subject``: all cases of the first examined part, then those of the next."""
        for part in self.examines:
            yield from part.cases(subject)


def by(examine: Callable[[Any, Conditions], Examination]) -> Callable[[Subject], Examine]:
    """Return a function that takes a subject, ignores it, and returns ``examine``.

    Used for ``ExaminedPart.examine_for`` if every subject is examined alike.
    """
    return lambda _: examine


def of_names(
    examinations: Mapping[str, Callable[[Conditions], Examination]], in_quick: Collection[str] = ()
) -> ExaminedPart:
    """Return the part of a check that makes its own situations, the inputs of its examinations, for every subject.

    ``examinations`` maps the name of each situation to the function that examines it. Every quick run examines those
    named in ``in_quick``.
    """
    return ExaminedPart(
        None, by(lambda here, conditions: examinations[here.name](conditions)), "", (),
        lambda _: (KernelSetting(name, name in in_quick) for name in examinations),
    )  # fmt: skip


def in_scenarios(keep: Callable[[Scenario], bool] = lambda scenario: True) -> Callable[[Subject], Iterator[InScenario]]:
    """Return the function that yields every variant of a subject in every scenario that ``keep`` accepts.

    Of variants with equal decoders, only the first is yielded. A scenario with an end-of-sequence token is left out if
    the subject does not stop at it.
    """

    def situations(subject: Subject) -> Iterator[InScenario]:
        for scenario in subject.scenarios:
            if keep(scenario) and (subject.stops_at_eos or not scenario.eos):
                for variant in _unequal_variants(subject.variants, scenario.horizon):
                    yield InScenario(variant, scenario, subject.rational)

    return situations


def _unequal_variants(variants: Iterable[Variant], horizon: int) -> Iterator[Variant]:
    """Yield the variants without those that act like an earlier one in decodes of ``horizon`` new tokens.

    Nothing is run. A round drafts at most ``horizon`` - 1 tokens, so variants with at least this many drafts act alike.
    """
    seen = set[int]()
    for variant in variants:
        drafts = None if variant.drafts is None else min(variant.drafts, horizon - 1)
        if drafts is None or drafts not in seen:
            yield variant
        if drafts is not None:
            seen.add(drafts)


def in_deep_scenarios(subject: Subject) -> Iterator[InScenario]:
    """Yield the situations that ``subject`` adds to the usual ones: scenarios with longer drafts or more new tokens."""
    for variant, scenario in subject.deep():
        yield InScenario(variant, scenario, subject.rational)


def in_all_scenarios(subject: Subject) -> Iterator[InScenario]:
    """Return every variant of ``subject`` in every scenario, then the situations of ``in_deep_scenarios``."""
    return chain(in_scenarios()(subject), in_deep_scenarios(subject))


def variants_in(
    keep: Callable[[Scenario], bool], examine: Callable[[InScenario, Conditions], Examination]
) -> ExaminedPart:
    """Return the part of a check that examines every variant in every scenario that ``keep`` accepts.

    ``examine`` examines one variant in one scenario.
    """
    return ExaminedPart(Variant, by(examine), ONLY_SAMPLED, (), in_scenarios(keep))


def case_of_program(check: Check, subject: Subject, program: EngineProgram) -> Case | None:
    """Return the case in which ``check`` examines ``program``, one of the programs of the engine ``subject``.

    Returns None if the check does not apply to the program.
    """
    return next(iter(check.cases(subject._replace(situations=(program,)))), None)


def only_sampled(subject: Subject, reason: object) -> str:
    """Return the sentence that a subject cannot be enumerated, only sampled; ``reason`` is why."""
    by = " (samples_fit_law, in a test with sampled=True)" if subject.settings else ""
    return f"cannot be enumerated, only sampled{by}: {reason}"


@lru_cache(maxsize=4096)
def law_in(here: InScenario, runs: int) -> Law:
    """Return the law of the new tokens of the decoder ``here``, from at most ``runs`` runs; cached for all checks.

    The law is of all rounds, or of the first round followed by tokens of the target (``is_law_of_one_round``).
    """
    if is_law_of_one_round(here):
        return one_round_law(here.remembering, here.task, here.prompt, runs)
    return decoder_law(here.remembering, here.prompt, runs)


def is_law_of_one_round(here: InScenario) -> bool:
    """Return whether ``law_in(here)`` enumerates only the first round, and the later tokens have the target's law.

    This is done for a verifier with memoised calls, in a scenario that is long and not greedy.
    """
    has_few_paths = here.scenario.greedy or here.scenario.horizon <= SEVERAL_ROUNDS
    return here.variant.remembered is not None and not has_few_paths


def beyond_reach(case: Case) -> bool:
    """Return whether a case has too many paths to enumerate; such a case is skipped if other cases remain."""
    here = case.situation
    if isinstance(here, EngineProgram):
        return here.most_paths < math.inf and paths_of_program(here.open, here.most_paths, PROBES) > here.most_paths
    if not isinstance(here, InScenario) or here.scenario.order:  # states of a fixed order are merged, or refused
        return False
    if case.subject.whole:
        return paths_of_whole(here) > PATHS_IN_REACH
    if here.scenario in ONE_ROW_SCENARIOS and here.scenario.vocabulary > ORDERED:
        return paths_of_one_row(here) > PATHS_OF_ONE_ROW
    certain = case.subject.most_runs == math.inf or is_certain(here.scenario.shape)
    return not certain and runs_by_round(here) > case.subject.most_runs


class BeyondReach(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised by an examination that finds that its case has too many paths; the case is skipped if others remain."""


def may_be_refused(case: Case) -> bool:
    """Return whether a case may be skipped if the enumeration refuses a draw because of its many outcomes.

    True only for the scenarios with large vocabularies, ``ONE_ROW_SCENARIOS``.
    """
    return isinstance(case.situation, InScenario) and case.situation.scenario in ONE_ROW_SCENARIOS


@lru_cache(maxsize=MOST_PROGRAMS)
def paths_of_program(
    opened: Callable[[], AbstractContextManager[Callable[[Draws], Any]]], most: float, probes: int
) -> float:
    """Return the approximate number of paths of a program, or any number above ``most`` if it exceeds ``most``.

    ``opened`` returns a context manager that yields the program. ``probes`` random runs are made.
    """
    with opened() as run:
        return estimated_paths(run, probes, most=most)


@lru_cache(maxsize=4096)
def runs_by_round(here: InScenario) -> float:
    """Return the approximate number of runs that give the law of the decoder ``here`` round by round.

    The estimate is the number of texts shorter than the horizon, times the number of paths of the first round.
    """
    decoder, scenario = here.decoder, here.scenario
    first = decoder.init(here.prompt)
    texts = sum(float(scenario.vocabulary) ** length for length in range(scenario.horizon))
    return texts * estimated_paths(lambda draws: decoder.step(draws, first))


@lru_cache(maxsize=4096)
def paths_of_one_row(here: InScenario) -> float:
    """Return the approximate number of paths of the first round of the decoder ``here``.

    The scenario must have a large vocabulary (``ONE_ROW_SCENARIOS``).
    """
    decoder = here.decoder
    return estimated_paths(lambda draws: decoder.step(draws, decoder.init(here.prompt)), probes=3)


@lru_cache(maxsize=4096)
def paths_of_whole(here: InScenario) -> float:
    """Return the approximate number of paths of a whole decode by ``here``, if equal states are not merged."""
    return estimated_paths(whole_run(here.decoder, here.prompt))


def slack(here: InScenario, decisions: int, epsilon: float = FLOAT32) -> float:
    """Return the largest rounding error of a probability after ``decisions`` decisions of ``here``; 0 for rationals.

    A decision is an acceptance test or the draw of a token. ``epsilon`` is the spacing of the floats at 1.
    """
    return 0.0 if here.rational else decisions * of_decision(epsilon, here.scenario.vocabulary)
