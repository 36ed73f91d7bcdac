"""A black box sampled batch by batch, until its law and independence are decided or the samples are used up.

Batches grow: the first 32 samples show impossible outcomes, the last batches a bias of a thousandth. A batch is two
calls with different seeds, whose rows are compared. The tests are evaluated after every batch: the evidence is
anytime-valid, so early stopping does not raise the false-alarm rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.arguments import check_count, check_probability, check_rounding, check_seed
from specverify.base.verdict import Status, Verdict
from specverify.checks.samplers.independent_rows import CellOf, IndependenceFound, cells_of
from specverify.checks.samplers.reference import log_evidence as reference_evidence
from specverify.checks.samplers.reference import (
    plan_reference,
    reference_begun,
    reference_seen,
    reference_status,
    reference_verdict,
)
from specverify.checks.samplers.sampler_law import LawPlan, law_begun, law_seen, law_status, law_verdicts, plan_law
from specverify.checks.samplers.sampler_law import log_evidence as law_evidence
from specverify.laws.known_law import OTHERS, KnownLaw, known_law
from specverify.reference import Tokens
from specverify.run.acceptance import acceptance_of, combine_statuses
from specverify.run.couples import CONFIRMING_BATCHES, Batch, Watch, watch
from specverify.run.course import Course, going_on, with_course
from specverify.statistics.coarsening import samples_to_hold
from specverify.subjects.sampler import Sampler, answered, drawn

FIRST_CALL = 32
LARGEST_CALL = 4096
MOST_SAMPLES = 10**6
"""The default limit of the number of samples."""
UNCONFIRMED = (
    "the samples deviate from the law, but too few calls were made to exclude that their rows share random numbers: "
    f"allow more samples (most_samples), at least {FIRST_CALL * 2 * CONFIRMING_BATCHES}"
)
PILOT = 1000
OF_COUPLES = 4
"""The dependence to detect is this multiple of the ``tv`` of the law, because four rows give one sample of it."""
POSITIONS = 4


class SamplingPlan(NamedTuple):
    """The total variation to detect, the error probability, and the limits of a sampling run.

    A sampler holds if its distance from the law is at most the total variation ``tv``. ``most_samples`` is the largest
    number of samples (None: chosen for the law), ``largest_call`` the largest number in one call, and ``rounding`` the
    relative error of the law's probabilities. ``seed`` selects the seeds of all calls.
    """

    tv: float = 0.05
    alarm: float = 1e-6
    """Upper bound on two probabilities: that a right sampler is refuted, and that one beyond ``tv`` holds."""
    most_samples: int | None = None
    largest_call: int = LARGEST_CALL
    rounding: float = 1e-6
    seed: int = 0


class Judge(NamedTuple):
    """A test of a sampler that takes samples batch by batch: against a law, or against another sampler.

    ``seen`` adds a batch, ``status`` and ``verdicts`` return the result so far. ``cell`` maps an outcome to one of four
    cells, by which the independence tests count pairs of outcomes. ``most_samples`` is the largest number of samples.
    """

    seen: Callable[[Batch], None]
    status: Callable[[], Status]
    verdicts: Callable[[], Sequence[Verdict]]
    most_samples: int
    cell: CellOf
    evidence: Callable[[], float]
    """Returns the natural logarithm of the e-value so far."""
    impossible: Callable[[], bool] = lambda: False
    """Returns whether an outcome of probability 0 was sampled."""
    dependent: Callable[[], str] = lambda: ""
    """Returns why the reference sampler is no valid reference (its samples depend on each other); "" if it is valid."""


def check_plan(plan: SamplingPlan) -> None:
    """Raise ``ValueError`` if a field of ``plan`` is invalid."""
    check_probability(plan.tv, "tv")
    check_probability(plan.alarm, "alarm")
    if plan.most_samples is not None:
        check_count(plan.most_samples, "most_samples", least=2 * FIRST_CALL)
    check_count(plan.largest_call, "largest_call")
    check_rounding(plan.rounding, "rounding")
    check_seed(plan.seed)


def sampled_verdicts(
    sampler: Sampler,
    plan: SamplingPlan,
    *,
    law: Any = None,
    reference: Sampler | None = None,
    draft: Any = None,
    acceptance: Any = None,
    progress: Callable[[int, int], None] = lambda done, most: None,
) -> Sequence[Verdict]:
    """Return the verdicts on a black box, sampled and tested against exactly one of ``law`` and ``reference``.

    ``draft`` is the pmf of drafts over the outcomes of ``law``, if it is known. ``acceptance`` is the law of the number
    of accepted drafts per sequence, which the black box must then report. ``progress(samples, at most)`` is called
    after every batch. Raises ``ValueError`` for an invalid law or plan, ``UnusableSubject`` for invalid answers, and
    the errors of the sampler.
    """
    check_plan(plan)
    if (law is None) == (reference is None):
        raise ValueError("a law or a reference is needed to judge samples by, expected exactly one of them")
    seeds = seeds_of([plan.seed])
    whole = plan.alarm
    if acceptance is not None:
        plan = plan._replace(alarm=whole * 3 / 4)  # a fourth question has its share
    judge = (
        _of_law(sampler.name, plan, law, draft)
        if reference is None
        else _of_reference(sampler.name, plan, reference, seeds)
    )
    told = acceptance_of(sampler.name, acceptance, whole, plan.tv, judge.most_samples)
    judge = judge._replace(
        status=partial(combine_statuses, judge.status, told.status), verdicts=partial(told.verdicts, judge.verdicts)
    )
    watched = watched_couples(sampler.name, plan, judge.cell, judge.most_samples)
    repeats = _repeats(sampler, next(seeds), min(FIRST_CALL, plan.largest_call))
    done, calls, course = 0, 0, Course()
    while done < judge.most_samples and (stage := stage_of(judge, watched)) is not SamplingStage.DECIDED:
        steps = 0 if stage is SamplingStage.NEEDS_CALLS and not watched.repeats() else calls
        size = _size(steps, plan.largest_call, judge.most_samples - done)
        answers = answered(sampler, next(seeds), size), answered(sampler, next(seeds), size)
        batch = answers[0].tokens, answers[1].tokens
        for answer in answers:
            told.seen(answer.accepted)
        judge.seen(batch)
        watched.seen(batch)
        done, calls = done + 2 * size, calls + 1
        course = going_on(course, done, judge.evidence)
        progress(done, judge.most_samples)
    return with_course(joint_verdicts(judge, watched, [repeats]), course)


class SamplingStage(Enum):
    """What a sampling run still needs."""

    NEEDS_SAMPLES = "more samples"
    NEEDS_CALLS = "more calls, which may be small: a refutation is to be confirmed"
    DECIDED = "nothing"


def stage_of(judge: Judge, watched: Watch) -> SamplingStage:
    """Return what sampling still needs; ``judge`` tests the law, and ``watched`` tests independence.

    Sampling stops in four cases:

    * The law holds, and no test of independence is undecided.
    * The rows of a call are dependent, of the program's samples or of the reference sampler's.
    * An outcome of probability 0 was sampled.
    * The law, or the independence of two calls, is refuted, and enough pairs of rows and enough calls were tested for
      independence. With fewer tests the rows of a call could still be copies of each other, or share a random number;
      such samples deviate from a right law too.
    """
    (rows, calls), law = watched.statuses(), judge.status()
    if rows is Status.REFUTED or judge.dependent() or judge.impossible():
        return SamplingStage.DECIDED
    if Status.REFUTED in (calls, law):
        return SamplingStage.DECIDED if watched.confirming() else SamplingStage.NEEDS_CALLS
    return (
        SamplingStage.DECIDED
        if law is Status.HOLDS and Status.UNKNOWN not in (rows, calls)
        else SamplingStage.NEEDS_SAMPLES
    )


def joint_verdicts(judge: Judge, watched: Watch, notes: Sequence[str]) -> Sequence[Verdict]:
    """Return the verdicts of ``judge`` on the law and of ``watched`` on independence.

    ``notes`` are added to the verdict on rows of two calls. The verdicts on the law become UNKNOWN in two cases, unless
    an outcome of probability 0 was sampled: samples depend on each other; or a refutation is not confirmed, because
    sampling ended before the tests of independence had seen enough.
    """
    independent = watched.verdicts(notes)
    reasons = [verdict.statement for verdict in independent if verdict.status is Status.REFUTED]
    reasons += [judge.dependent()] if judge.dependent() else []
    verdicts = judge.verdicts()
    if judge.impossible():
        return [*verdicts, *independent]
    if reasons:
        said = f"a law needs independent samples, and {reasons[0]}"
        verdicts = [_undecided(verdict, said) for verdict in verdicts]
    elif not watched.confirming():
        verdicts = [_undecided(item, UNCONFIRMED) if item.status is Status.REFUTED else item for item in verdicts]
    return [*verdicts, *independent]


def _undecided(verdict: Verdict, reason: str) -> Verdict:
    """Return ``verdict`` as UNKNOWN with the ``reason``."""
    return verdict._replace(status=Status.UNKNOWN, statement=reason, counterexample=None)


def planned_law(plan: SamplingPlan, law: Any, draft: Any = None) -> tuple[LawPlan, CellOf]:
    """Return the plan of a test against ``law``, and the function that maps an outcome to one of four cells.

    The independence tests count pairs of samples by their cells. ``draft`` is the law of drafts over the outcomes of
    ``law``; None if it is not known.
    """
    known = known_law(law)
    needed = samples_to_hold(known.masses, plan.tv - known.unnamed, plan.alarm, MOST_SAMPLES)
    outcomes = [known.outcome(index) for index in range(len(known.masses))]
    chosen = plan_law(
        known,
        alarm=plan.alarm / 3,
        error=plan.alarm,
        tv=plan.tv,
        most_samples=plan.most_samples or _planned(needed),
        rounding=plan.rounding,
        draft=None if draft is None else _aligned(known_law(draft, "the draft's law"), known),
        more=_margins(outcomes),
    )
    named = {outcome: float(mass) for outcome, mass in zip(outcomes, known.masses, strict=True) if outcome != OTHERS}
    return chosen, cells_of(list(named), list(named.values()))  # type: ignore[arg-type]  # OTHERS alone is a string


def _of_law(name: str, plan: SamplingPlan, law: Any, draft: Any) -> Judge:
    chosen, cell = planned_law(plan, law, draft)
    found = law_begun(chosen)

    def seen(batch: Batch) -> None:
        nonlocal found
        for rows in batch:
            found = law_seen(chosen, found, rows)

    def status() -> Status:
        return law_status(chosen, found) if found.samples else Status.UNKNOWN

    def verdicts() -> Sequence[Verdict]:
        return law_verdicts(name, chosen, found)

    def surprise() -> float:
        return law_evidence(chosen, found)

    return Judge(seen, status, verdicts, chosen.most_samples, cell, surprise, impossible=lambda: bool(found.impossible))


def _of_reference(name: str, plan: SamplingPlan, reference: Sampler, seeds: Iterator[int]) -> Judge:
    number = min(PILOT, plan.most_samples or PILOT)
    pilot = [row for size in _pieces(number, plan.largest_call) for row in drawn(reference, next(seeds), size)]
    counts = Counter(pilot)
    shares = np.array(list(counts.values())) / len(pilot)
    # twice for the variance of two samplers, and once more for the rare outcomes, which count in both bounds
    needed = 3 * samples_to_hold(shares, plan.tv, plan.alarm / 2, MOST_SAMPLES)
    most = plan.most_samples or _planned(needed)
    chosen = plan_reference(pilot, alarm=plan.alarm / 3, error=plan.alarm, tv=plan.tv, most_samples=most)
    cell = cells_of(list(counts), shares.tolist())
    theirs = watched_couples(reference.name, plan, cell, most)
    found = reference_begun()

    def seen(batch: Batch) -> None:
        nonlocal found
        answers = drawn(reference, next(seeds), len(batch[0])), drawn(reference, next(seeds), len(batch[1]))
        theirs.seen(answers)
        for rows, others in zip(batch, answers, strict=True):
            found = reference_seen(found, rows, others)

    def dependent() -> str:
        wrong = [verdict.statement for verdict in theirs.verdicts([]) if verdict.status is Status.REFUTED]
        return f"of the reference, {wrong[0]}" if wrong else ""

    return Judge(
        seen,
        lambda: reference_status(chosen, found),
        lambda: [reference_verdict(name, chosen, found)],
        most,
        cell,
        lambda: reference_evidence(found),
        dependent=dependent,
    )


def watched_couples(
    name: str,
    plan: SamplingPlan,
    cell: CellOf,
    most_samples: int,
    begun: tuple[IndependenceFound, IndependenceFound] = (IndependenceFound(), IndependenceFound()),
) -> Watch:
    """Return the two independence tests of the rows of the subject ``name``.

    ``plan`` has the total variation and the alarm; at most ``most_samples`` samples are drawn. ``cell`` maps an outcome
    to one of four cells, by which couples (pairs of rows) are counted. ``begun`` is the evidence of earlier samples,
    for rows of one call and of two calls.
    """
    tv = min(OF_COUPLES * plan.tv, 0.5)
    alone = plan.largest_call == 1
    return watch(name, cell, plan.alarm / 3, plan.alarm, tv, most_samples // 2, alone=alone, begun=begun)


def _margins(outcomes: Sequence[Tokens | str]) -> dict[str, Any]:
    """Return coarser groupings of the outcomes, by single tokens; the test of the law also compares their counts.

    The result is a dict: name of a position -> array with an integer for each outcome. Two outcomes have the same
    integer if they have the same token at the position, or if both have none there, such as ``OTHERS``. There are at
    most ``POSITIONS`` positions, and none if no outcome has two tokens.
    """
    longest = max((len(outcome) for outcome in outcomes if outcome != OTHERS), default=0)
    return {
        f"by token {position + 1}": np.unique(
            [
                outcome[position] if outcome != OTHERS and len(outcome) > position else -1  # a string has no tokens
                for outcome in outcomes
            ],
            return_inverse=True,
        )[1]
        for position in range(min(longest, POSITIONS) if longest > 1 else 0)
    }


def _planned(samples: int) -> int:
    """Return the largest number of samples that a test may use.

    ``samples`` is the number that it is expected to need for a right sampler.
    """
    return min(2 * int(samples) + 2000, MOST_SAMPLES)


def _size(calls: int, largest: int, left: int) -> int:
    """Return the size of each of the two calls of the next batch.

    It doubles every second batch, but is at most ``largest``, and at most half of ``left``, the number of samples left.
    ``calls`` is the number of batches so far.
    """
    return max(1, min(FIRST_CALL << min(calls // 2, 20), largest, left // 2))


def _pieces(number: int, largest: int) -> list[int]:
    return [min(largest, number - start) for start in range(0, number, largest)]


def seeds_of(seed: Sequence[int]) -> Iterator[int]:
    """Yield distinct seeds below 2**31, which every engine accepts, derived from ``seed``."""
    rng, given = np.random.default_rng(seed), set[int]()
    while True:
        result = int(rng.integers(2**31))
        if result not in given:
            given.add(result)
            yield result


def _repeats(sampler: Sampler, seed: int, number: int) -> str:
    same = drawn(sampler, seed, number) == drawn(sampler, seed, number)
    return "a seed gives the same samples again" if same else "a seed does not give the same samples again"


def _aligned(draft: KnownLaw, law: KnownLaw) -> Any:
    """Return the probabilities of ``draft`` in the order of the outcomes of ``law``.

    The probability is 0 for an outcome that ``draft`` does not have.
    """
    places = [
        draft.place(outcome) if not isinstance(outcome, str) else -1
        for outcome in map(law.outcome, range(len(law.masses)))
    ]
    return np.array([draft.masses[place] if place >= 0 else 0.0 for place in places])
