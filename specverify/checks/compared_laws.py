"""Compare an enumerated law with an expected one. Shared by all checks whose property is a law."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, NamedTuple

from specverify.base.default_limits import MOST_PROGRAMS
from specverify.base.parallel import in_parallel
from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import MOST_RARE, Conditions, law_in, paths_of_program
from specverify.checks.explaining.counterexample_parts import readable
from specverify.checks.explaining.decoder_counterexamples import law_counterexample
from specverify.checks.explaining.engine_counterexamples import program_counterexample
from specverify.checks.explaining.engine_paths import KeptPaths
from specverify.intercept.audit import side_audit
from specverify.laws.enumeration import EnumerationTooLarge, far_exceeds, program_law
from specverify.laws.law import Law, combined_law, is_rational, rounding_bound, target_law, total_variation
from specverify.laws.near_ties import Logits, Parting, greedy_parting
from specverify.laws.paths import PROBES, Path, estimated_paths, first_outcomes
from specverify.laws.rounding import (
    FLOAT64,
    LARGEST,
    at_most_float32,
    floats_named,
    holds_within,
    of_enumeration,
)
from specverify.reference import Draws, Pmf
from specverify.subjects.subject import EngineProgram, InScenario

IN_FLOAT64 = "Let it compute in float64 where it is examined, or let samples decide (sampled=True)"
NOT_EXAMINED = (
    "drafts and their acceptance were not examined: a draft from a stale cache leaves the law as it is; pass an "
    "Observer, or promises={'drafts'} for make(scenario)"
)
WORTH_SHARING = 1000
"""Number of runs below which one process is faster than several, each of which imports the engine."""
ERROR_OF_ESTIMATE, RUNS_OF_A_PROBE, MOST_PROBES = 1.2, 20, 400
"""The usual error of an estimated number of paths, as a factor; the number of runs for each of its probes; and the most
probes."""
KEPT_PATHS = 5000
"""The paths of a law with at most this many are kept for the explanation."""

Probabilities = Mapping[Any, Any]
Promise = Callable[[], Probabilities]
OpenProgram = Callable[[], AbstractContextManager[Callable[[Draws], Any]]]


class Comparison(NamedTuple):
    """The result of comparing an enumerated law with an expected one.

    The laws differ if ``refuted`` is True. If ``unknown`` is True, this could not be decided; otherwise they are equal.
    ``statement`` is the result in a sentence, ``figures`` has its numbers by name for the report, and ``rational``
    states whether both laws are exact rationals.
    """

    refuted: bool
    unknown: bool
    statement: str
    figures: Mapping[str, Any]
    rational: bool
    out_of_runs: bool = False
    """Whether this is unknown because the law was not enumerated within its limit of runs."""


class LawBearing(NamedTuple):
    """The parts of a case that a comparison of laws needs: functions that return its law and the expected laws."""

    law: Callable[[Conditions], Law]
    """Returns the law, by enumeration."""
    target: Promise
    """Returns the law of decoding without speculation."""
    declared: Promise | None
    """Returns the law that the subject declares instead of the target's; None if it declares none."""
    explain: Callable[[Probabilities, Probabilities], Counterexample]
    """``explain(law, expected)`` returns a counterexample: an outcome that is too probable, and how it arises."""
    covered: Callable[[Law], Mapping[str, Any]] = lambda law: {}
    """Returns figures about the coverage of an enumeration, such as its rounds."""
    name: str = ""
    """A prefix of the verdict's sentence, or ""."""
    setting: str = ""
    """The name of the case in messages that concern several cases."""
    logits: Logits | None = None
    """The target's next-token logits, if known; they distinguish near-ties of greedy texts from defects."""


def bearing_of(situation: InScenario | EngineProgram) -> LawBearing:
    """Return ``situation`` as a ``LawBearing``: functions that return its law and the expected laws.

    ``situation`` is a decoder in a scenario, or the program of an engine.
    """
    return of_decoder(situation) if isinstance(situation, InScenario) else of_engine(situation)


def of_decoder(situation: InScenario) -> LawBearing:
    """Return the decoder ``situation`` as a ``LawBearing``: functions that return its law and the expected laws."""
    declared = situation.variant.declared_law
    return LawBearing(
        law=lambda conditions: law_in(situation, conditions.runs),
        target=lambda: target_law(situation.task, situation.prompt),
        declared=None if declared is None else lambda: declared(situation.task, situation.prompt),
        explain=partial(law_counterexample, situation),
        covered=_covered,
        setting=f"{situation.variant.label}, {situation.scenario.name}",
        logits=Logits(lambda new: _logarithms(situation.task.target(situation.prompt + new)), rounding=0.0),
    )


def _logarithms(pmf: Pmf) -> list[float]:
    return [math.log(mass) if mass > 0 else -math.inf for mass in pmf.tolist()]


def _covered(law: Law) -> Mapping[str, Any]:
    return {
        "rounds": law.coverage.rounds,
        "rounds_of_two": law.coverage.rounds_of_two,
        "gamma": max((drafted for drafted, _ in law.coverage.outcomes), default=0),
    }


def of_engine(program: EngineProgram) -> LawBearing:
    """Return the engine ``program`` as a ``LawBearing``: functions that return its law and the expected laws."""

    def explain(law: Probabilities, expected: Probabilities) -> Counterexample:
        with program.open() as run:
            return program_counterexample(program, run, law, expected, KeptPaths(run, paths_of_opened(program.open)))

    def covered(_: Law) -> Mapping[str, Any]:
        notes = [*(() if program.watch else (NOT_EXAMINED,)), *program.not_examined, *program.also_not_examined()]
        return {"notes": notes} if notes else {}

    return LawBearing(
        law=partial(enumerated, program),
        target=program.target or program.law,
        declared=program.target and program.law,
        explain=explain,
        covered=covered,
        name=program.name,
        setting=program.name,
        logits=program.logits,
    )


def compare_laws(law: Law, expected: Probabilities, what: str) -> Comparison:
    """Compare the enumerated ``law`` with ``expected``; ``what`` names the expected law in messages.

    Let d be their total variation. Three bounds state the largest d that rounding can cause: in the subject, in the
    subject if no dtype were coarser than float32, and in the enumeration alone. All are 0 for rationals.

    * d is above the first bound: refuted.
    * d is at most a quarter of the third bound: holds.
    * d is at most a quarter of the second bound, this bound is small, and the enumeration is complete: holds.
    * Otherwise: unknown.
    """
    distance, bound = total_variation(law, expected), rounding_bound(law)
    figures = {
        "runs": law.runs,
        "draws": law.decisions,
        "tv": float(distance.high),
        "rounding": bound,
        "missing": float(law.missing),
        **({"within": law.rounding.within} if law.rounding.within else {}),
    }
    rational = is_rational(law)
    exactly = 0 if rational else of_enumeration(law.rounding, law.runs)
    if distance.low > bound:
        return Comparison(True, False, f"TV = {readable(distance.low)} from {what}", figures, rational)
    if distance.high <= exactly / 4 and law.rounding.within <= exactly:
        return Comparison(False, False, f"the law is {what}", {**figures, "rounding": exactly}, rational)
    if law.missing > exactly:
        cut = f"probability {readable(law.missing)} was not enumerated within {law.runs} runs"
        return Comparison(False, True, cut, figures, rational, out_of_runs=True)
    fine = rounding_bound(law._replace(rounding=at_most_float32(law.rounding)))
    if not holds_within(distance.high, fine):
        if law.rounding.within > LARGEST / 2:
            return Comparison(False, True, _between_bounds(law, float(distance.high), what), figures, rational)
        return Comparison(False, True, _too_coarse(law, float(distance.high), bound, what), figures, rational)
    return Comparison(False, False, f"the law is {what}", {**figures, "rounding": fine}, rational)


def _too_coarse(law: Law, distance: float, bound: float, what: str) -> str:
    fine = law._replace(rounding=law.rounding._replace(epsilon=FLOAT64))
    in_float64 = rounding_bound(fine, FLOAT64)
    if law.rounding.epsilon <= FLOAT64:
        return (
            f"TV = {readable(distance)} from {what} may be rounding: in float64, all that was seen, rounding in this "
            f"subject can cause a TV of up to {in_float64:.1g}, and in float32, which may not be seen, of up to "
            f"{bound:.1g}. If all of it computes in float64, the law is wrong; samples can decide (sampled=True)"
        )
    return (
        f"TV = {readable(distance)} from {what} may be rounding: in {floats_named(law.rounding.epsilon)}, rounding in "
        f"this subject can cause a TV of up to {bound:.1g}; in float64 up to {in_float64:.1g}. {IN_FLOAT64}"
    )


def _between_bounds(law: Law, distance: float, what: str) -> str:
    return (
        f"TV = {readable(distance)} from {what}: probabilities of several random numbers together, or of those that "
        f"meet 16 bits, are known between bounds alone, which leaves {law.rounding.within:.1g} of the law open, and "
        f"{LARGEST / 2:g} would be little"
    )


def compare(bearing: LawBearing, conditions: Conditions, expected: Probabilities, what: str) -> Examination:
    """Enumerate the law of ``bearing`` and compare it with ``expected``.

    The result is unknown if greedy texts with and without speculation first differ where logits are nearly tied.
    ``what`` names the expected law in messages, and ``conditions`` limits the enumeration.

    Raises ``EnumerationTooLarge`` for an incomplete law if ``conditions`` require a complete one.
    """
    law = bearing.law(conditions._replace(runs=conditions.run_limit))
    if conditions.complete_within is not None and law.missing > MOST_RARE:
        raise EnumerationTooLarge(f"its law is not complete after {law.runs} runs")
    result = compare_laws(law, expected, what)
    parted = greedy_parting(bearing.setting, bearing.logits, law.probabilities, expected) if result.refuted else None
    if parted is not None:
        result = _with_parting(result, parted)
    wrong = result.refuted or result.unknown
    explained = result.refuted and conditions.explained
    example = bearing.explain(law.probabilities, expected) if explained else None
    if example is not None and parted is not None and math.isfinite(parted.gap):
        example = example._replace(because=(*example.because, str(parted)))
    return Examination(
        f"{bearing.name}: {result.statement}" if wrong and bearing.name else result.statement,
        result.refuted,
        result.unknown,
        result.rational,
        example,
        {**result.figures, **bearing.covered(law)},
        out_of_runs=result.out_of_runs,
    )


def _with_parting(found: Comparison, parted: Parting) -> Comparison:
    """Add the first difference of two greedy texts, ``parted``, to the figures of the refutation ``found``.

    The two texts are those with and without speculation. If the logits are nearly tied at the difference, the result is
    unknown instead of a refutation, because rounding may explain the difference.
    """
    figures = {**found.figures, "partings": [parted._asdict()]}
    if not parted.near_tie:
        return found._replace(figures=figures)
    return found._replace(refuted=False, unknown=True, statement=parted.undecided, figures=figures)


def differ(one: Law, other: Law) -> bool:
    """Return whether the laws ``one`` and ``other`` of a program differ by more than the rounding of the enumerations.

    Exact rationals must be equal.
    """
    exact = is_rational(one) and is_rational(other)
    bound = 0 if exact else sum(of_enumeration(law.rounding, law.runs) + law.rounding.within for law in (one, other))
    return bool(total_variation(one, other.probabilities).high > bound)


def enumerated(program: EngineProgram, conditions: Conditions) -> Law:
    """Return the law of the output of the engine ``program``, by enumeration; cached for all checks.

    ``conditions`` has the largest number of runs and the number of processes. A program that almost surely has more
    paths gets a quarter of the runs: its law stays incomplete, but can still show a wrong program. If ``conditions``
    require a complete law within few runs, and the estimated number of paths is larger by more than the usual error of
    the estimate, ``EnumerationTooLarge`` is raised without a run.
    """
    runs, within = conditions.runs, conditions.complete_within
    if within is not None and program.most_paths < math.inf:
        number = _number_of_paths(program, within)
        if number > ERROR_OF_ESTIMATE * within:
            raise EnumerationTooLarge(f"it has about {number:.0f} paths")
    if program.most_paths == math.inf:
        is_larger = has_far_more_paths(program.open, runs)
    else:
        is_larger = within is None and _number_of_paths(program, runs) > runs
    return law_of_opened(program.open, max(1, runs // 4) if is_larger else runs, conditions.jobs)


def _number_of_paths(program: EngineProgram, runs: int) -> float:
    """Return the approximate number of paths of ``program``, to be compared with ``runs``, by random runs.

    The larger ``runs``, the more random runs are made, unless a few show that the number is far below ``runs``.
    """
    probes = min(runs // RUNS_OF_A_PROBE, MOST_PROBES)
    if probes <= PROBES:
        return paths_of_program(program.open, program.most_paths, PROBES)
    by_few = paths_of_program(program.open, math.inf, PROBES)
    return by_few if by_few <= runs / 4 else paths_of_program(program.open, math.inf, probes)


@lru_cache(maxsize=MOST_PROGRAMS)
def has_far_more_paths(opened: OpenProgram, runs: int) -> bool:
    """Return whether a few random runs of the opened program show that it has more than ``runs`` paths."""
    with opened() as run:
        return far_exceeds(run, runs)


class NoReuse(NamedTuple):
    """The counts of an enumeration that followed all paths of a program and found no random number used twice.

    A later check of reused random numbers then need not follow the paths again.
    """

    shares: Mapping[tuple[int, ...], int]
    """Outcomes of the first two draws -> number of paths that begin with them."""
    draws: int
    """The number of draws on all paths together."""


@lru_cache(maxsize=MOST_PROGRAMS)
def no_reuse_of(opened: OpenProgram) -> list[NoReuse]:
    """Return the list in which the enumeration of a program stores a ``NoReuse``; it is empty until then.

    The list belongs to ``opened``, the function that opens the program. A later check with the same ``opened`` gets the
    same list, and so the result of the earlier enumeration.
    """
    return []


@lru_cache(maxsize=4)
def paths_of_opened(opened: OpenProgram) -> list[Path[Any]]:
    """Return the list in which the enumeration of a program stores its paths; empty until then, or if they are many.

    The list is cached by ``opened``, the function that opens the program. If the law is wrong, the explanation reads
    the paths from this list and need not enumerate them again.
    """
    return []


@lru_cache(maxsize=MOST_PROGRAMS)
def law_of_opened(opened: OpenProgram, runs: int, jobs: int) -> Law:
    """Return the law of a program by at most ``runs`` runs; a large one is enumerated in ``jobs`` processes.

    ``opened`` returns a context manager that yields the program.
    """
    with opened() as run:
        if jobs == 1 or estimated_paths(run, most=WORTH_SHARING) < WORTH_SHARING:
            return _audited_law(opened, run, runs)
        shares = first_outcomes(run, depth=3)
        dealt = [shares[start :: 4 * jobs] for start in range(4 * jobs)]
        works = [partial(_share_of_law, opened, part, runs) for part in dealt]
        return combined_law([law for laws in in_parallel(works, jobs) for law in laws])


def _audited_law(opened: OpenProgram, run: Callable[[Draws], Any], runs: int) -> Law:
    """Return the law of the program ``run``, by at most ``runs`` runs, and store the paths for later checks.

    If the enumeration is complete, its paths are stored under ``opened``, the function that opens the program. If also
    no random number is used twice, a ``NoReuse`` is stored: the check of reuse need not run the program again.
    """
    shares: Counter[tuple[int, ...]] = Counter()
    draws = 0
    kept: list[Path[Any]] = []

    def keep_path(path: Path[Any]) -> None:
        nonlocal draws
        shares[path.choices[:2]] += 1
        draws += len(path.decisions)
        if len(kept) <= KEPT_PATHS:
            kept.append(path)

    with side_audit() as audit:
        law = program_law(run, runs, on_path=keep_path)
    complete = not law.missing and law.runs < runs
    if complete and len(kept) <= KEPT_PATHS:
        paths_of_opened(opened)[:] = kept
    if complete and not audit.found and not audit.undecided:
        no_reuse_of(opened)[:] = [NoReuse(shares, draws)]
    return law


def _share_of_law(opened: OpenProgram, shares: list[tuple[int, ...]], runs: int) -> list[Law]:
    with opened() as run:
        return [program_law(run, runs, share) for share in shares]
