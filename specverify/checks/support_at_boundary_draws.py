"""No token with p = 0 is emitted when a uniform is exactly 0, or the largest float below 1.

A verifier must return a result there: an error, or no token, is a failure too. A verifier is also called with rows of p
and q that differ by rounding alone, so that the residual may be empty, and with float32 rows if it accepts them. In a
refutation of a verifier, one random number is at an end of its range, at a value that its generator can return
(``boundary``), and all others are ordinary. Faults that need several numbers at their ends are ignored. An engine is
examined with all uniforms at their ends.

A fault refutes if its probability per draft is at least ``Conditions.edge`` (``graded_edges``); otherwise it is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain, islice, product
from typing import Any, NamedTuple

import numpy as np

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.calls_at_size import at_place, described, places_of
from specverify.checks.check import Check, Conditions, ExaminedPart, by
from specverify.checks.explaining.first_difference import first_difference
from specverify.checks.graded_edges import Look, at_an_edge, holds_beside, is_below, probability_of
from specverify.checks.observed_runs import refuted
from specverify.checks.verifier_calls import (
    ORDINARY,
    CalledVerifier,
    Came,
    called_in,
    described_call,
    rounds_after,
    starting_texts,
)
from specverify.intercept.distributions import SMALLEST, Boundary, NearEnd
from specverify.laws.draws import Replayed
from specverify.laws.enumeration import program_law
from specverify.laws.law import Law
from specverify.laws.near_ties import greedy_parting
from specverify.laws.paths import Path, outcomes_of
from specverify.laws.scenarios import ROUNDING_SCENARIOS
from specverify.reference import Claim, Task, Tokens
from specverify.reference.models import draft_model
from specverify.subjects.emitted import no_token
from specverify.subjects.logits_verifier import with_true_zeros
from specverify.subjects.subject import EngineProgram, GivenCall, OpenedCall, UnusableSubject

BOUNDARIES = {0.0: "exactly 0", 1.0: "the largest float below 1"}
_RULES = {
    0.0: "a test u <= p/q, or a search for u that finds a cell of mass 0, does so; u < p/q does not",
    1.0: "a search for u in sums of p that end below 1 does so",
}
"""Boundary -> the rules of an engine that usually emit a forbidden token there."""
NUMBERS_OF_A_TEXT = 1024
"""Engines that draw more uniforms for a text than this are searched at more distances from the end."""


class AtBoundary(NamedTuple):
    """The outcomes of a program if every uniform has the extreme value ``uniform``.

    ``said`` describes this value, and ``law`` is the law of the outcomes.
    """

    uniform: float
    said: str
    law: Law
    outside: list[Tokens]
    """Outcomes that have probability 0 without speculation."""


def at_boundaries(program: EngineProgram, runs: int) -> Iterator[AtBoundary]:
    """Yield the outcomes of ``program`` with every uniform at its smallest value, then at its largest.

    Other draws are enumerated, by at most ``runs`` runs. If the program draws no uniforms, both laws are the same, and
    one enumeration suffices.
    """
    supported, law, draws_uniforms = _supported(program), None, True
    for uniform, said in BOUNDARIES.items():
        if law is None or draws_uniforms:
            law, draws_uniforms = _law_at(program, uniform, runs)
        forbidden = (new for new, mass in law.probabilities.items() if mass > 0 and new not in supported)
        outside = sorted(new for new in forbidden if not _comes_out_rarely(program, new))
        yield AtBoundary(uniform, said, law, outside)


def _law_at(program: EngineProgram, uniform: float, runs: int) -> tuple[Law, bool]:
    """Return the law of ``program`` with every uniform at the end ``uniform``, and whether it may draw uniforms.

    It is enumerated by at most ``runs`` runs. A path of which no uniforms are recorded may have drawn some.
    """
    boundaries, draws_uniforms = list[Boundary](), False

    def look_at(_: Path[Any]) -> None:
        nonlocal draws_uniforms
        draws_uniforms = draws_uniforms or not boundaries or any(boundary.drawn > 0 for boundary in boundaries)
        boundaries.clear()

    with program.open(forced_uniform=NearEnd(uniform, 0.0, boundaries)) as run:
        law = program_law(run, runs, on_path=look_at)
    return law, draws_uniforms or any(boundary.drawn > 0 for boundary in boundaries)


def _supported(program: EngineProgram) -> set[Tokens]:
    return {new for new, mass in program.law().items() if mass > 0}


class _Outside(Exception):  # noqa: N818 - it ends an enumeration
    """Raised to end an enumeration early: a text was found that is impossible without speculation."""

    def __init__(self, new: Tokens) -> None:
        self.new = new


def _is_outside(program: EngineProgram, near: NearEnd, runs: int) -> bool:
    """Return whether ``program`` can emit a forbidden token if all uniforms are near an end of their range.

    ``near`` has the end (0 or 1) and the distance from it. Returns True also if the program has more paths than
    ``runs``, because the answer is then not known.
    """
    supported = _supported(program)

    def look_at(path: Path[Any]) -> None:
        for new, share in outcomes_of(path.outcome):
            if path.weight * share > 0 and new not in supported:
                raise _Outside(new)

    while True:
        try:
            with program.open(forced_uniform=near) as run:
                return program_law(run, runs, on_path=look_at).runs >= runs
        except _Outside as found:
            if not _comes_out_rarely(program, found.new):
                return True
            supported.add(found.new)


def _comes_out_rarely(program: EngineProgram, new: Tokens) -> bool:
    """Return whether ``new`` is possible without speculation although the enumeration did not find it.

    The enumeration may leave out very rare outcomes. So the plain program is run with the tokens of ``new`` as the
    outcomes of its draws.
    """
    if program.plain is None:
        return False
    # A program that clamps a logarithm gives a token with p = 0 such a tiny probability.
    with suppress(Exception), program.plain() as run:
        return bool(run(Replayed(new)) == new)
    return False


NO_UNIFORMS = "it draws no uniforms: it draws outcomes directly"


def examine_program(program: EngineProgram, conditions: Conditions) -> Examination:
    """Examine an engine program with every uniform at its smallest value, then at its largest.

    An output that is impossible without speculation refutes, or becomes a note if its probability per draft is below
    ``conditions.edge``. The result is unknown if greedy texts with and without speculation first differ where logits
    are nearly tied. For each of the two values, at most ``conditions.complete_within`` paths are examined if it is set.
    """
    runs, edges = 0, list[Any]()
    for result in at_boundaries(program, conditions.run_limit):
        runs += result.law.runs
        if not result.outside:
            continue
        tied = greedy_parting(program.name, program.logits, result.law.probabilities, program.law())
        if tied is not None and tied.near_tie:
            return Examination(tied.undecided, unknown=True, rational=False, figures={"runs": runs})
        then, when = f"{result.outside[0]} comes out, which has probability 0 without speculation", result.said
        probability = _probability_in(program, result.uniform, conditions)
        if probability >= conditions.edge:
            refutation = refuted(program, then, f"every uniform is {when}", {"runs": runs}, _fault_of(program, result))
            return at_an_edge(refutation, probability)
        edges.append(edge_of(f"{program.name}: {then}", f"uniforms are {when}", probability))
    return holds_beside(edges, runs)


def _fault_of(program: EngineProgram, at: AtBoundary) -> str:
    """Return the sentence about the first forbidden token of ``program`` at the boundary ``at``."""
    difference = first_difference({at.outside[0]: 1}, program.law(), program.split, program.each)
    assert difference is not None, "the text has probability 0 without speculation"
    return f"{difference.fault}, when every uniform is {at.said}: {_RULES[at.uniform]}"


def _probability_in(program: EngineProgram, end: float, conditions: Conditions) -> float:
    """Return an upper bound on the probability that uniforms near the end ``end`` (0 or 1) cause a forbidden token.

    Runs of engines are long. So the numbers next to the end are searched first, and then those at a distance such that
    numbers closer to the end have together a probability below ``conditions.edge``. If the fault does not occur there,
    it is not searched at larger distances. Each search enumerates ``program`` by at most ``conditions.runs`` runs.
    """
    boundaries = list[Boundary]()

    def look(apart: float) -> Look:
        boundaries.clear()
        faulty = _is_outside(program, NearEnd(end, apart, boundaries), conditions.runs)
        return Look(faulty, max((boundary.closer for boundary in boundaries), default=0.0))

    next_to_it = look(SMALLEST)
    if next_to_it.is_gone(conditions.edge):
        return next_to_it.closer
    seen = look(conditions.edge / NUMBERS_OF_A_TEXT) if next_to_it.faulty else next_to_it
    least = max((boundary.coarsest for boundary in boundaries), default=0.0)
    return probability_of(look, least, bound=seen.closer if seen.is_gone(conditions.edge) else None)


class BoundaryCalls(NamedTuple):
    """Calls of the verifier ``called`` after the text ``start``, with random numbers at the end ``end`` (0 or 1)."""

    called: CalledVerifier
    start: Tokens
    end: float


def examine_calls_at_ends(called: CalledVerifier, conditions: Conditions) -> Examination:
    """Examine the verifier ``called`` with its uniforms at an end of their range: first 0, then the largest value.

    If an output is wrong, the calls are repeated with each uniform alone at this end, and ordinary values for the
    others. A fault that occurs with one such uniform refutes if its probability per draft is at least
    ``conditions.edge``; otherwise it becomes a note. A fault that needs several uniforms at the end at once is ignored,
    because it is far less probable.
    """
    runs, edges, edge = 0, dict[float, Any](), conditions.edge
    for end, start in product(BOUNDARIES, starting_texts(called.situation)[:: conditions.apart]):
        rows = BoundaryCalls(called, start, end)
        seen = [(came, fault) for came, fault in _rounds(rows)]
        runs += len(seen)
        rows, faults = _of_true_zeros(rows, {fault for _, fault in seen if fault})
        faulty = [came for came, fault in seen if fault in faults]
        if not faulty:
            continue
        numbers = max(came.boundary.drawn for came in faulty)
        least = max(came.boundary.coarsest for came in faulty)
        rare = is_below(edge, partial(_look, rows, None, ()), numbers, least)
        if rare and end in edges:
            continue  # one such edge is reported for each end
        for place, came, fault in _by_one_number(rows, max(1, numbers), each_place_once=rare):
            if fault not in faults:
                continue
            look = partial(_look, rows, place, came.choices[: came.drafted])
            if end in edges and is_below(edge, look, came.boundary.together, came.boundary.coarsest):
                continue
            probability, number = probability_of(look, came.boundary.coarsest), came.boundary
            when = (
                f"{number.where} gives {number.value!r}"
                if number.where
                else "no random number is at an end of its range"
            )
            if probability >= edge:
                said = f"{fault}, when {when}"
                at_zero_alone = probability <= 2 * number.coarsest
                of_test = _accepted_at_zero(called, came) if at_zero_alone else ""
                sentence = of_test or _empty_residual(called, came, fault) or said
                example = Counterexample((*described_call(called.situation, came), when), fault, fault=sentence)
                result = Examination(said, failed=True, rational=False, counterexample=example, figures={"runs": runs})
                return at_an_edge(result, probability)
            edges[end] = edge_of(fault, when, probability)
    return holds_beside(list(edges.values()), runs)


def examine_given(given: GivenCall, conditions: Conditions) -> Examination:
    """Set each random number of the user's call ``given`` to both extreme values, and examine the output.

    A fault refutes, or becomes a note if its probability per draft is below ``conditions.edge``.
    """
    opened, runs, edges = given.open(), 0, dict[str, Any]()
    for end, place in product(BOUNDARIES, places_of(opened)):
        result = at_place(opened, end, place)
        runs += result.runs
        if not result.fault:
            continue
        look, number = partial(_look_at_place, opened, end, place), result.boundary
        if result.when in edges and is_below(conditions.edge, look, number.together, number.coarsest):
            continue
        probability = probability_of(look, number.coarsest)
        if probability >= conditions.edge:
            example = Counterexample((*described(given, opened), result.when), result.fault)
            said = f"{given.name}: {result.fault}, when {result.when}"
            refutation = Examination(said, failed=True, rational=False, counterexample=example, figures={"runs": runs})
            return at_an_edge(refutation, probability)
        edges[result.when] = edge_of(f"{given.name}: {result.fault}", result.when, probability)
    return holds_beside(list(edges.values()), runs)


def _look_at_place(opened: OpenedCall, end: float, place: int, apart: float) -> Look:
    result = at_place(opened, end, place, apart)
    return Look(bool(result.fault), result.boundary.closer)


def _rounds(
    rows: BoundaryCalls, only: int | None = None, apart: float = 0.0, first: tuple[int, ...] = ()
) -> Iterator[tuple[Came, str]]:
    """Yield (round, fault) for the calls ``rows`` with random numbers near an end of their range; fault is "" if none.

    Args:
        rows: The calls, and the end of the range: 0 or 1.
        only: The index of the only random number near the end; all others are ordinary. None: all are near the end.
        apart: The distance from the end; 0 is the extreme value itself.
        first: The outcomes of the first draws, which are the drafts.
    """
    called, start, end = rows
    for came in rounds_after(called, start, end, only, left_open=True, apart=apart, first=first):
        fault = _fault(called.situation.task, came) or ""
        if fault and came.error is not None and _raises_on_float32(called, start):
            fault = ""
        yield came, fault


def _of_true_zeros(rows: BoundaryCalls, faults: set[str]) -> tuple[BoundaryCalls, set[str]]:
    """Repeat faulty calls with logits of -inf for impossible tokens; return the calls and the faults that remain.

    The calls ``rows`` have the logit -2000 for these tokens, with which even a right verifier may accept an impossible
    token at u = 0. If ``faults`` is empty, or if the verifier applies no sampling parameters, both arguments are
    returned unchanged.
    """
    variant = rows.called.situation.variant
    if not faults or variant.process is None:
        return rows, faults
    masked = variant._replace(process=partial(_masked, variant.process))
    other = rows._replace(called=rows.called._replace(situation=rows.called.situation._replace(variant=masked)))
    return other, faults & {fault for _, fault in _rounds(other)}


def _masked(process: Callable[[Task], Task], task: Task) -> Task:
    return with_true_zeros(process(task))


def _look(rows: BoundaryCalls, only: int | None, drafts: tuple[int, ...], apart: float) -> Look:
    """Search the rounds of the calls ``rows`` for a fault, with random numbers near an end of their range.

    Args:
        rows: The calls and the end.
        only: The index of the only number near the end; None: all are.
        drafts: The outcomes of the drafts.
        apart: The distance of the numbers from the end.
    """
    seen = list(_rounds(rows, only, apart, drafts))
    return Look(any(fault for _, fault in seen), max(came.boundary.closer for came, _ in seen))


def _by_one_number(rows: BoundaryCalls, numbers: int, *, each_place_once: bool) -> Iterator[tuple[int, Came, str]]:
    """Yield (index, round, fault) for each fault that occurs if one random number alone has its extreme value.

    The index is the position of this random number among the random numbers of its call. The positions from 0 to
    ``numbers - 1`` are tried in turn, each in all calls of ``rows``. With ``each_place_once``, only the first fault of
    each position is yielded.
    """
    for place in range(numbers):
        faults = ((place, came, fault) for came, fault in _rounds(rows, place) if fault)
        yield from islice(faults, 1) if each_place_once else faults


def _accepted_at_zero(called: CalledVerifier, came: Came) -> str:
    """Return the sentence about an impossible draft that the round ``came`` accepts at u = 0; "" if there is none.

    A test ``u <= p/q`` does so, and a larger u then rejects the draft. ``called`` is the verifier in its scenario.
    """
    propose, value = called.situation.decoder.propose, came.boundary.value
    if came.error is not None or propose is None or value != 0:
        return ""
    drafts = propose(Replayed(came.choices), came.state).tokens
    for position, (token, draft) in enumerate(zip(came.new, drafts, strict=False)):
        row = called.situation.task.target(came.state.tokens + came.new[:position])
        if token != draft or not 0 <= token < len(row):
            return ""
        if not row[token] > 0:
            number = f"draft {position + 1}, token {token} with p = 0"
            return f"{number}, is accepted when u = {value!r} ({came.boundary.where}): expected u < p/q, not u <= p/q"
    return ""


def _empty_residual(called: CalledVerifier, came: Came, fault: str) -> str:
    """Return the sentence that the round ``came`` has a fault because a residual is empty; "" if none is empty.

    ``called`` is the verifier in its scenario. ``fault`` describes the fault: an error, or a token of probability 0 in
    place of the rejected draft.
    """
    propose, boundary = called.situation.decoder.propose, came.boundary
    if isinstance(came.error, UnusableSubject) or propose is None:
        return ""
    drafts, q_of = propose(Replayed(came.choices), came.state).tokens, draft_model(called.situation.task)
    kept = next((i for i, pair in enumerate(zip(came.new, drafts, strict=False)) if pair[0] != pair[1]), len(drafts))
    kind: Any = np.float32 if called.situation.scenario.float32 else np.float64
    for position in range(len(drafts)) if came.error is not None else range(kept, min(kept + 1, len(drafts))):
        text = came.state.tokens + drafts[:position]
        p, q = (np.asarray(model(text), dtype=float).astype(kind) for model in (called.situation.task.target, q_of))
        if not (p > q).any():
            at = f" at u = {boundary.value:.9g} ({boundary.where})" if boundary.where else ""
            left = f"the residual max(p - q, 0) sums to 0, as p - q is nowhere positive after {text}"
            return f"{left}: where draft {position + 1} is rejected{at}, {fault}"
    return ""


@lru_cache(maxsize=1)
def _raises_on_float32(called: CalledVerifier, start: Tokens) -> bool:
    """Return whether a verifier raises an error on float32 rows with ordinary random numbers.

    A verifier need not accept float32 rows. If it raises an error in a scenario with other rows, it is unusable, and
    this function raises the error. ``called`` is the verifier in its scenario, and ``start`` the text before the call.
    """
    for came in chain.from_iterable(rounds_after(called, start, uniform) for uniform in ORDINARY):
        if came.error is not None:
            if called.situation.scenario.float32:
                return True
            raise came.error
    return False


def _fault(task: Task, came: Came) -> str | None:
    """Describe the error or the impossible token of the round ``came``; None if there is none.

    The target of ``task`` gives p.
    """
    if isinstance(came.error, UnusableSubject):
        return str(came.error)
    if came.error is not None:
        return f"it raises {type(came.error).__name__}: {' '.join(str(came.error).split())}"
    for position, token in enumerate(came.new):
        p = task.target(came.state.tokens + came.new[:position])
        wrong = no_token(token, len(p)) or (f"{token} has target probability 0" if not p[token] > 0 else None)
        if wrong:
            return f"{came.new} comes out: token {wrong}, at position {position}"
    return None


CHECK = Check(
    name="support_at_boundary_draws",
    summary="no forbidden token is emitted, and no verifier raises, when a random number is at an end of its range",
    claim=Claim.SUPPORTED,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(EngineProgram, by(examine_program), NO_UNIFORMS),
        ExaminedPart(GivenCall, by(examine_given), NO_UNIFORMS),
        called_in(lambda scenario: True, examine_calls_at_ends, NO_UNIFORMS, ROUNDING_SCENARIOS),
    ),
)
