"""From a refutation to a script that shows it with the engine alone: the smallest setting in which it still shows."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from reference import Tokens
from specverify.base.verdict import Examination
from specverify.checks import Case, Check, Conditions
from specverify.checks._laws import enumerated
from specverify.checks._observed import Seen, seen_in
from specverify.checks.acceptance_law import Rate, rates, told
from specverify.checks.cache_equals_prefill import misfed
from specverify.checks.check import case_of_program
from specverify.checks.inputs_unchanged import undocumented
from specverify.checks.stop_law import first_stop, is_unfinished, stops_of
from specverify.checks.support_at_boundary_draws import at_boundaries
from specverify.engines import Reproducer
from specverify.laws.enumeration import program_law
from specverify.run.catalogue import reproducer_of, written_as_scripts
from specverify.subjects.fault import FEWEST_CALLS, MOST_CALLS, Drafted, Fault, NoScript, calls_to_see
from specverify.subjects.subject import EngineProgram, SettingRefused, Subject

DEFAULTS = Conditions()
SECONDS = 10.0
"""For the search of a smaller setting: with it, what is found is written and run within half a minute."""
CLEAR = 1e-3
"""A rate of emission that is off by less is not shown by a script."""
FEW_CALLS = 300
"""A smaller setting may need more calls than the one before it, up to these."""


class Reproduction(NamedTuple):
    """A script that shows a fault with the engine alone."""

    script: str
    fault: Fault
    smaller: tuple[str, ...]
    """What the setting has less than the one that was refuted."""


Find = Callable[[EngineProgram], Fault | None]
"""``find(program)`` -> what is wrong with it, or None."""
Progress = Callable[[str], None]


def reproduction(
    case: Case,
    check: Check,
    conditions: Conditions = DEFAULTS,
    seconds: float = SECONDS,
    progress: Progress = lambda doing: None,
) -> Reproduction:
    """Return a script for a case that ``check`` refutes, in the smallest setting that is found within ``seconds``.

    ``progress`` is told what is tried.
    Raises ``NoScript`` where nothing is refuted, or what is refuted cannot be shown by a script.
    """
    if check.name not in FAULTS:
        raise NoScript(f"{', '.join(FAULTS)} and what raises are written as scripts, not {check.name}")
    find = partial(_fault, case.subject, check, conditions)
    return _reproduced(case.subject, case.situation, find, f"{check.name} holds here", seconds, progress)


def reproduction_of_error(
    subject: Subject, seconds: float = SECONDS, progress: Progress = lambda doing: None
) -> Reproduction:
    """Return a script for a call that raises with speculation and does not without, as ``reproduction``."""
    program = subject.programs[0] if subject.programs else None
    return _reproduced(subject, program, _error, "nothing is raised, or without speculation too", seconds, progress)


def _reproduced(
    subject: Subject, program: Any, find: Find, nothing: str, seconds: float, progress: Progress
) -> Reproduction:
    reproducer = reproducer_of(subject.name)
    if not isinstance(program, EngineProgram) or program.source is None or reproducer is None:
        raise NoScript(f"{subject.name} is not a call of {written_as_scripts()}, and only those are written as scripts")
    progress(f"looking at {subject.name} again")
    fault = find(program)
    if fault is None:
        raise NoScript(f"{subject.name}: {nothing}, so there is nothing to reproduce")
    reproducer.script(program.source, fault)  # what cannot be written is refused before anything is made smaller
    program, fault, smaller = _smallest(program, reproducer, fault, find, seconds, progress)
    if fault.calls > MOST_CALLS:
        raise NoScript(
            f"{fault.calls} calls would be needed to see {fault.got:.4g} instead of {fault.expected:.4g}, more than "
            f"{MOST_CALLS}: too small to be seen by sampling in a script"
        )
    setting = f"{subject.name}, {', '.join(smaller)}" if smaller else subject.name
    script = reproducer.script(program.source, fault._replace(said=f"{setting}: {fault.said}"))
    return Reproduction(script, fault, smaller)


def printed_by(script: str) -> str:
    """Run a script away from everything but the installed libraries and return what it prints.

    Raises ``NoScript`` if it does not show what it was written for.
    """
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "reproduction.py"
        path.write_text(script, "utf-8")
        done = subprocess.run(  # noqa: S603 - a script of our own
            [sys.executable, "-I", str(path)], cwd=directory, capture_output=True, text=True, check=False
        )
    if done.returncode != 1 or "expected" not in done.stdout:
        last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
        raise NoScript(f"the script was written but does not show it: exit status {done.returncode}, {last!r}")
    return done.stdout.strip()


def _smallest(
    program: EngineProgram, reproducer: Reproducer, fault: Fault, find: Find, seconds: float, progress: Progress
) -> tuple[EngineProgram, Fault, tuple[str, ...]]:
    """Take away one thing after the other as long as the fault stays and is as easy to see."""
    until, taken = time.monotonic() + seconds, dict[str, str]()
    script = reproducer.script(program.source, fault)
    again = True
    while again:
        again = False
        for said, candidate in reproducer.smaller(program.source):
            if time.monotonic() > until:
                return program, fault, tuple(taken.values())
            progress(f"looking for the smallest setting that shows it: {said}")
            found = _tried(candidate, reproducer, find)
            if found is not None and _as_clear(found.fault, fault) and found.script != script:
                program, (fault, script), again = candidate, found, True
                taken[said if said.startswith("no ") else said.split()[0]] = said
                break
    return program, fault, tuple(taken.values())


def _as_clear(found: Fault, before: Fault) -> bool:
    """Return whether ``found`` is seen in few calls, or fewer than before, and one outcome is still enough for it."""
    same = found.error == before.error and _words(found.said) == _words(before.said) if before.error else True
    return same and found.calls <= max(before.calls, FEW_CALLS) and len(found.wrong) <= max(1, len(before.wrong))


def _words(said: str) -> str:
    """Return a message without its numbers."""
    return re.sub(r"\d+", "", said)


class _Written(NamedTuple):
    fault: Fault
    script: str


def _tried(program: EngineProgram, reproducer: Reproducer, find: Find) -> _Written | None:
    try:
        fault = find(program)
        return None if fault is None else _Written(fault, reproducer.script(program.source, fault))
    except Exception:  # noqa: BLE001 - the engine may not take the setting, and says so in any way
        return None


def _fault(subject: Subject, check: Check, conditions: Conditions, program: EngineProgram) -> Fault | None:
    """Return the fault that ``check`` finds, or None if it finds none."""
    case = case_of_program(check, subject, program)
    if case is None or not (examined := case.examine(conditions)).failed:
        return None
    return FAULTS[check.name](program, examined, conditions)


def _error(program: EngineProgram) -> Fault | None:
    """Return what a program raises, or None if it does not, or raises without speculation too."""
    if program.plain is None:
        return None
    with program.plain() as run:
        program_law(run, DEFAULTS.runs)
    try:
        with program.open() as run:
            program_law(run, DEFAULTS.runs)
    except SettingRefused as error:
        raise NoScript(f"the engine refuses it, and says so: {error}") from error
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        kind = type(error).__name__
        frames = tuple((at.filename, at.lineno or 0, at.line or "") for at in extract_tb(error.__traceback__))
        return Fault(f"{kind}: {error}", calls=FEWEST_CALLS, error=kind, frames=frames)
    return None


def _law_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    law, expected = enumerated(program, conditions).probabilities, program.law()
    return _likeliest(law, expected, sorted(law), "new tokens come out too often")


def _stop_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    law, expected = enumerated(program, conditions).probabilities, program.law()
    stops = stops_of(expected)
    beyond = [new for new in law if first_stop(new, stops) is not None]
    short = [new for new in law if is_unfinished(new, stops)]
    said = "the output goes on where it should have stopped" if beyond else "the output stops where nothing stops it"
    return _likeliest(law, expected, beyond or short, said)


def _support_fault(program: EngineProgram, _: Examination, conditions: Conditions) -> Fault:
    expected = program.law()
    for found in at_boundaries(program, conditions.runs):
        if found.outside:
            what = f"tokens of probability 0 come out when every uniform is {found.said}"
            return _likeliest(found.law.probabilities, expected, found.outside, what)._replace(uniform=found.uniform)
    raise NoScript("nothing forbidden comes out any more")


def _returned_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    said = f"the {examined.returned} that are returned are not those of a call without speculation"
    return Fault(said, calls=1 if _is_certain(program) else FEWEST_CALLS, returned=examined.returned)


def _cache_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    seen = _seen(program)
    fed = any(
        misfed(forward, seen.prompt + run.ends[0][0], seen.prompt) for run in seen.runs for forward in run.seen.forwards
    )
    said = examined.statement.removeprefix(f"{program.name}: ")
    return Fault(said, calls=1 if _is_certain(program) else FEWEST_CALLS, cache="fed" if fed else "held")


def _acceptance_fault(program: EngineProgram, _: Examination, __: Conditions) -> Fault:
    seen, expected = _seen(program), program.law()
    found = [rate for rate in rates(seen, expected) if abs(rate.emitted - rate.expected) > CLEAR]
    law: dict[Tokens, float] = {}
    for new, mass in (end for run in seen.runs for end in run.ends):
        law[new] = law.get(new, 0.0) + mass
    beyond = [(*rate.before, rate.token) for rate in found if not rate.p]
    wrong = [new for new in law if not expected.get(new) and any(new[: len(begin)] == begin for begin in beyond)]
    if wrong:
        return _likeliest(law, expected, wrong, "drafts of probability 0 are emitted")
    faults = [_rate_fault(rate) for rate in found if rate.rounds == (0,)]
    if not faults:
        raise NoScript("drafts of the first round are emitted as they should be, and a script looks at those alone")
    return min(faults, key=lambda fault: fault.calls)


def _rate_fault(rate: Rate) -> Fault:
    calls = math.ceil(2 * calls_to_see(rate.expected, rate.emitted) / rate.reached)
    drafted = Drafted(rate.before, rate.token, rate.p)
    return Fault(told(rate), expected=rate.expected, got=rate.emitted, calls=calls, drafted=drafted)


def _seen(program: EngineProgram) -> Seen:
    if program.watch is None:
        raise NoScript(f"{program.name} cannot be looked into while it runs")
    return seen_in(program.watch)


def _changed_fault(program: EngineProgram, examined: Examination, _: Conditions) -> Fault:
    found = (undocumented(run, program) for run in _seen(program).runs)
    return Fault(examined.statement.removeprefix(f"{program.name}: "), changed=next(filter(None, found)))


def _is_certain(program: EngineProgram) -> bool:
    return max(program.law().values()) > 1 - 1e-6


FAULTS: dict[str, Callable[[EngineProgram, Examination, Conditions], Fault]] = {
    "law_is_target": _law_fault,
    "stop_law": _stop_fault,
    "support_at_boundary_draws": _support_fault,
    "scores_match": _returned_fault,
    "inputs_unchanged": _changed_fault,
    "cache_equals_prefill": _cache_fault,
    "acceptance_law": _acceptance_fault,
}
"""Check -> what a script has to show of its refutation."""


def _likeliest(law: Mapping[Tokens, Any], expected: Mapping[Tokens, Any], outcomes: list[Tokens], said: str) -> Fault:
    """Return the outcome that is seen to be too frequent in the fewest calls; several together if one needs many."""

    def fault(wrong: tuple[Tokens, ...]) -> Fault:
        should = float(sum(expected.get(new, 0) for new in wrong))
        does = float(sum(law[new] for new in wrong))
        return Fault(said, wrong, should, does, calls_to_see(should, does))

    ordered = sorted(outcomes, key=lambda new: (expected.get(new, 0) / max(law[new], 1e-30), new))
    found = [new for new in ordered if law[new] > expected.get(new, 0)]
    one = min((fault((new,)) for new in found), key=lambda found: found.calls)
    several = min((fault(wrong) for wrong in accumulate((new,) for new in found)), key=lambda found: found.calls)
    return one if one.calls <= max(FEW_CALLS, 4 * several.calls) else several
