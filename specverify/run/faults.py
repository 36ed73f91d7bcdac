"""Turn a refutation into the fault that a script for users must show.

A fault is one of: a wrong outcome, a wrong call of the model, a wrong rate of acceptance, a wrong returned value, or a
changed object.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from specverify.base.verdict import Examination
from specverify.checks import Conditions
from specverify.checks.acceptance_law import Rate, describe_rate, rates
from specverify.checks.cache_equals_prefill import misfed
from specverify.checks.compared_laws import enumerated
from specverify.checks.inputs_unchanged import undocumented
from specverify.checks.observed_runs import Seen, seen_in
from specverify.checks.stop_law import first_stop, is_unfinished, stops_of
from specverify.checks.support_at_boundary_draws import at_boundaries
from specverify.reference import Tokens
from specverify.subjects.fault import FEWEST_CALLS, Drafted, Fault, NoScript, calls_to_see
from specverify.subjects.subject import EngineProgram

FEW_CALLS = 300
"""Number of calls up to which a smaller setting, or a single outcome, may need more calls than its alternative."""
CLEAR = 1e-3
"""Least error of an emission rate that a script is written to show."""


def _law_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    law, expected = enumerated(program, conditions).probabilities, program.law()
    return _likeliest(law, expected, sorted(law), "new tokens come out too often")


def _stop_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    law, expected = enumerated(program, conditions).probabilities, program.law()
    stops = stops_of(expected)
    beyond = [new for new in law if first_stop(new, stops) is not None]
    short = [new for new in law if is_unfinished(new, stops)]
    said = "the output continues where it should have stopped" if beyond else "the output stops where nothing stops it"
    return _likeliest(law, expected, beyond or short, said)


def _support_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    expected = program.law()
    for result in at_boundaries(program, conditions.runs):
        if result.outside:
            what = f"tokens of probability 0 are emitted if every uniform is {result.said}"
            return _likeliest(result.law.probabilities, expected, result.outside, what)._replace(uniform=result.uniform)
    raise NoScript("nothing forbidden comes out any more")


def _returned_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    said = f"the {examined.returned} that are returned are not those of a call without speculation"
    return Fault(said, calls=1 if is_certain(program) else FEWEST_CALLS, returned=examined.returned)


def _cache_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    seen = _seen(program)
    fed = any(
        misfed(forward, seen.prompt + run.ends[0][0], seen.prompt) for run in seen.runs for forward in run.seen.forwards
    )
    said = examined.statement.removeprefix(f"{program.name}: ")
    return Fault(said, calls=1 if is_certain(program) else FEWEST_CALLS, cache="fed" if fed else "held")


def _shown_fault(program: EngineProgram, _: Examination, __: Conditions) -> Fault:
    said = "logits processors are shown other tokens than the target has read"
    return Fault(said, calls=1 if is_certain(program) else FEWEST_CALLS, cache="shown")


def _acceptance_fault(program: EngineProgram, _: Examination, __: Conditions) -> Fault:
    seen, expected = _seen(program), program.law()
    result = [rate for rate in rates(seen, expected) if abs(rate.emitted - rate.expected) > CLEAR]
    law: dict[Tokens, float] = {}
    for new, mass in (end for run in seen.runs for end in run.ends):
        law[new] = law.get(new, 0.0) + mass
    beyond = [(*rate.before, rate.token) for rate in result if not rate.p]
    wrong = [new for new in law if not expected.get(new) and any(new[: len(begin)] == begin for begin in beyond)]
    if wrong:
        return _likeliest(law, expected, wrong, "drafts of probability 0 are emitted")
    if not result:
        raise NoScript(f"no draft is emitted with a probability that is off by {CLEAR}, which a script could show")
    return min(map(_rate_fault, result), key=lambda fault: fault.calls)


def _rate_fault(rate: Rate) -> Fault:
    calls = math.ceil(2 * calls_to_see(rate.expected, rate.emitted) / rate.reached)
    drafted = Drafted(rate.rounds, rate.before, rate.token, rate.p)
    return Fault(describe_rate(rate), expected=rate.expected, got=rate.emitted, calls=calls, drafted=drafted)


def _seen(program: EngineProgram) -> Seen:
    if program.watch is None:
        raise NoScript(f"{program.name} cannot be looked into while it runs")
    return seen_in(program.watch)


def _changed_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    result = (undocumented(run, program) for run in _seen(program).runs)
    return Fault(examined.statement.removeprefix(f"{program.name}: "), changed=next(filter(None, result)))


def is_certain(program: EngineProgram) -> bool:
    """Return whether a program has only one outcome, as in greedy decoding. One call then shows a wrong outcome."""
    return max(program.law().values()) > 1 - 1e-6


FAULTS: dict[str, Callable[[EngineProgram, Examination, Conditions], Fault]] = {
    "law_is_target": _law_fault,
    "stop_law": _stop_fault,
    "support_at_boundary_draws": _support_fault,
    "scores_match": _returned_fault,
    "inputs_unchanged": _changed_fault,
    "cache_equals_prefill": _cache_fault,
    "processors_see_their_prefix": _shown_fault,
    "acceptance_law": _acceptance_fault,
}
"""Check -> function that returns the fault which a script of its refutation must show."""


def _likeliest(law: Mapping[Tokens, Any], expected: Mapping[Tokens, Any], outcomes: list[Tokens], said: str) -> Fault:
    """Return the fault that consists of too probable outcomes and can be shown with few calls.

    ``law`` is the law of the program, and ``expected`` the right law. Only those of ``outcomes`` are considered that
    are more probable than in the right law. The fault is the single outcome that can be shown with the fewest calls,
    unless several outcomes together need far fewer. ``said`` is the sentence of the fault.
    """

    def fault(wrong: tuple[Tokens, ...]) -> Fault:
        should = float(sum(expected.get(new, 0) for new in wrong))
        does = float(sum(law[new] for new in wrong))
        return Fault(said, wrong, should, does, calls_to_see(should, does))

    ordered = sorted(outcomes, key=lambda new: (expected.get(new, 0) / max(law[new], 1e-30), new))
    found = [new for new in ordered if law[new] > expected.get(new, 0)]
    one = min((fault((new,)) for new in found), key=lambda found: found.calls)
    several = min((fault(wrong) for wrong in accumulate((new,) for new in found)), key=lambda found: found.calls)
    return one if one.calls <= max(FEW_CALLS, 4 * several.calls) else several
