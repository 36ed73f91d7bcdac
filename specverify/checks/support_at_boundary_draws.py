"""No token of target probability 0 comes out when a uniform is exactly 0, or the largest float below 1.

A verifier goes on to answer there: an error, or no token at all, is a failure too. It is asked on rows that differ by
rounding alone as well, where its residual may be empty, and on float32 ones if it takes them. What refutes it is one
random number at its end, the others ordinary, and the number is one that its generator can return (``boundary``); that
several are at their ends together is left alone. An engine is judged with all of them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks._calls import (
    ORDINARY,
    Called,
    Came,
    call_cases,
    described_call,
    needs_calls,
    rounds_after,
    starting_texts,
)
from specverify.checks._given_calls import at_place, described, places_of
from specverify.checks._observed import refuted
from specverify.checks.check import Case, Check, Conditions, cases_of
from specverify.laws.draws import Replayed
from specverify.laws.enumeration import program_law
from specverify.laws.law import Law
from specverify.laws.near_ties import greedy_parting
from specverify.laws.scenarios import ROUNDING_SCENARIOS
from specverify.reference import Claim, Task, Tokens
from specverify.subjects.emitted import no_token
from specverify.subjects.subject import EngineProgram, GivenCall, Subject, UnusableSubject

BOUNDARIES = {0.0: "exactly 0", 1.0: "the largest float below 1"}


class AtBoundary(NamedTuple):
    """What comes out when every uniform has one value."""

    uniform: float
    said: str
    law: Law
    outside: list[Tokens]
    """Outcomes that have probability 0 without speculation."""


def at_boundaries(program: EngineProgram, runs: int) -> Iterator[AtBoundary]:
    """Give every uniform its smallest value, then its largest, and enumerate the other draws."""
    supported = {new for new, mass in program.law().items() if mass > 0}
    for uniform, said in BOUNDARIES.items():
        with program.open(forced_uniform=uniform) as run:
            law = program_law(run, runs)
        forbidden = (new for new, mass in law.probabilities.items() if mass > 0 and new not in supported)
        outside = sorted(new for new in forbidden if not _comes_out_rarely(program, new))
        yield AtBoundary(uniform, said, law, outside)


def _comes_out_rarely(program: EngineProgram, new: Tokens) -> bool:
    """Return whether a text comes out without speculation too, by outcomes that are too rare to be followed.

    A logarithm that is clamped leaves such: they are drawn one by one, each being its token.
    """
    if program.plain is None:
        return False
    with suppress(Exception), program.plain() as run:
        return bool(run(Replayed(new)) == new)
    return False


def obstacle(subject: Subject) -> str | None:
    """The uniforms must be drawn by a library, so that they can be given a value."""
    intercepted = subject.programs or subject.calls or needs_calls(subject) is None
    return None if intercepted else "it draws no uniforms: it asks for outcomes"


def cases(subject: Subject) -> Iterator[Case]:
    """Return every program, and every variant of a verifier in its own scenarios and those of rounded rows."""
    yield from cases_of(lambda subject: subject.programs, examine_program)(subject)
    yield from cases_of(lambda subject: subject.calls, examine_given)(subject)
    rounded = subject._replace(scenarios=subject.scenarios + ROUNDING_SCENARIOS)
    yield from call_cases(lambda scenario: True, examine_calls_at_ends)(rounded)


def examine_program(program: EngineProgram, conditions: Conditions) -> Examination:
    """Give every uniform its smallest value, then its largest; other draws are enumerated."""
    runs = 0
    for found in at_boundaries(program, conditions.runs):
        runs += found.law.runs
        tied = greedy_parting(program.name, program.logits, found.law.probabilities, program.law())
        if found.outside and tied is not None and tied.near_tie:
            return Examination(tied.undecided, unknown=True, rational=False, figures={"runs": runs})
        if found.outside:
            then = f"{found.outside[0]} comes out, which has probability 0 without speculation"
            return refuted(program, then, f"every uniform is {found.said}", {"runs": runs})
    return Examination("nothing forbidden comes out", rational=False, figures={"runs": runs})


def examine_calls_at_ends(called: Called, conditions: Conditions) -> Examination:
    """Give one uniform of a call its smallest value, then its largest."""
    task, runs = called.here.task, 0
    for end in BOUNDARIES:
        for start in starting_texts(called.here)[:: conditions.apart]:
            for came in rounds_after(called, start, end, left_open=True):
                runs += 1
                fault = _fault(task, came) and _by_one_number(called, task, start, end, came)
                if fault:
                    return fault._replace(figures={"runs": runs})
    return Examination("nothing forbidden comes out", rational=False, figures={"runs": runs})


def examine_given(given: GivenCall, _: Conditions) -> Examination:
    """Give one random number of a call at the caller's own size its smallest value, then its largest."""
    opened, runs = given.open(), 0
    for end in BOUNDARIES:
        for place in places_of(opened):
            found = at_place(opened, end, place)
            runs += found.runs
            if found.fault:
                let = (*described(given, opened), found.when)
                said = f"{given.name}: {found.fault}, when {found.when}"
                example = Counterexample(let, found.fault)
                return Examination(said, failed=True, rational=False, counterexample=example, figures={"runs": runs})
    return Examination("nothing forbidden comes out", rational=False, figures={"runs": runs})


def _by_one_number(called: Called, task: Task, start: Tokens, end: float, seen: Came) -> Examination | None:
    """Return the refutation by one number at its end, the others near it, or None if it takes more than one."""
    if seen.error is not None and _is_ordinary(called, start):
        return None
    for place in range(max(1, seen.boundary.drawn)):
        for came in rounds_after(called, start, end, place, left_open=True):
            fault, number = _fault(task, came), came.boundary
            if fault:
                when = f"{number.where} gives {number.value!r}" if number.where else "random numbers are ordinary"
                let = (*described_call(called.here, came), when)
                example = Counterexample(let, fault, fault=_accepted_at_zero(called, came) or f"{fault}, when {when}")
                return Examination(f"{fault}, when {when}", failed=True, rational=False, counterexample=example)
    return None


def _accepted_at_zero(called: Called, came: Came) -> str:
    """Return the sentence about an impossible draft that is accepted at u = 0, as by ``u <= p/q``, or nothing."""
    propose, value = called.here.decoder.propose, came.boundary.value
    if came.error is not None or propose is None or value != 0:
        return ""
    drafts = propose(Replayed(came.choices), came.state).tokens
    for position, (token, draft) in enumerate(zip(came.new, drafts, strict=False)):
        row = called.here.task.target(came.state.tokens + came.new[:position])
        if token != draft or not 0 <= token < len(row):
            return ""
        if not row[token] > 0:
            number = f"draft {position + 1}, token {token} with p = 0"
            return f"{number}, is accepted when u = {value!r} ({came.boundary.where}): expected u < p/q, not u <= p/q"
    return ""


def _is_ordinary(called: Called, start: Tokens) -> bool:
    """Return whether a verifier raises at ordinary numbers as well, as it may on float32, which it was not promised.

    Raises the error where the rows are those that it was promised: then it is unusable, not wrong.
    """
    for came in chain.from_iterable(rounds_after(called, start, uniform) for uniform in ORDINARY):
        if came.error is not None:
            if called.here.scenario.float32:
                return True
            raise came.error
    return False


def _fault(task: Task, came: Came) -> str | None:
    """Say what is wrong with what came out, or nothing."""
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
    summary="no forbidden token, and of a verifier no error, comes out when a random number is at its end",
    claim=Claim.SUPPORTED,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
)
