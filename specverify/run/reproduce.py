"""Write a refutation as a script that needs only the engine, with the smallest models and options that still fail."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from traceback import extract_tb
from typing import Any, NamedTuple

from specverify.checks import Case, Check, Conditions
from specverify.checks.check import case_of_program
from specverify.engines import Reproducer
from specverify.laws.enumeration import program_law
from specverify.run.catalogue import reproducer_of, written_as_scripts
from specverify.run.faults import FAULTS, FEW_CALLS, is_certain
from specverify.subjects.fault import FEWEST_CALLS, MOST_CALLS, Fault, NoScript
from specverify.subjects.subject import EngineProgram, SettingRefused, Subject

DEFAULTS = Conditions()
ORDINARY, LARGEST = 0.5, 1.0
"""Values to which every uniform may be set; 1 means the largest float below 1."""
SECONDS = 10.0
"""Time in seconds to search for a smaller setting; with it a script is written and run within half a minute."""


class Reproduction(NamedTuple):
    """A script that shows a fault with the engine alone, the fault, and the differences from the refuted setting."""

    script: str
    fault: Fault
    smaller: tuple[str, ...]
    """The differences of the setting from the refuted one, such as "horizon 2"."""


Find = Callable[[EngineProgram], Fault | None]
"""``find(program)`` returns the fault of a program, or None."""
Progress = Callable[[str], None]


def reproduction(
    case: Case,
    check: Check,
    conditions: Conditions = DEFAULTS,
    seconds: float = SECONDS,
    progress: Progress = lambda doing: None,
) -> Reproduction:
    """Return a script for a case that ``check`` refutes, with the smallest models and options that still fail.

    They are searched for ``seconds``. ``progress`` is called with a sentence about each attempt. ``conditions`` are the
    settings of the check. Raises ``NoScript`` if nothing is refuted, or if a script cannot show the refutation.
    """
    if check.name not in FAULTS:
        raise NoScript(f"{', '.join(FAULTS)} and what raises are written as scripts, not {check.name}")
    find = partial(_fault, case.subject, check, conditions)
    return _reproduced(case.subject, case.situation, find, f"{check.name} holds here", seconds, progress)


def reproduction_of_error(
    subject: Subject, seconds: float = SECONDS, progress: Progress = lambda doing: None
) -> Reproduction:
    """Return a script for a call of ``subject`` that raises only with speculation.

    ``seconds`` and ``progress`` are those of ``reproduction``. Raises ``NoScript`` if there is no such error, or if a
    script cannot show it.
    """
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
    """Run a script in a new process with only the installed libraries, and return its output.

    Raises ``NoScript`` if the output does not show the fault.
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
    """Return the smallest program that still shows a fault, this fault, and the differences from the first program.

    ``reproducer`` proposes changes of the program's setting. A change to a smaller setting is made if the fault stays
    as easy to show (``_as_clear``). A change that may show the fault more clearly is made if the fault then needs at
    most half the calls. The search ends after ``seconds``, or when no change is made. ``find(program)`` returns the
    fault of a program, and ``progress`` is called as in ``reproduction``.
    """
    until, taken = time.monotonic() + seconds, dict[str, str]()
    script = reproducer.script(program.source, fault)
    again = True
    while again:
        again = False
        smaller = ((said, candidate, _as_clear) for said, candidate in reproducer.smaller(program.source))
        clearer = ((said, candidate, _clearer) for said, candidate in reproducer.clearer(program.source))
        for said, candidate, accepts in chain(smaller, clearer if fault.calls > 1 else ()):
            if time.monotonic() > until:
                return program, fault, tuple(taken.values())
            progress(f"looking for the smallest setting that shows it: {said}")
            result = _tried(candidate, reproducer, find)
            if result is not None and accepts(result.fault, fault) and result.script != script:
                program, (fault, script), again = candidate, result, True
                taken[said if said.startswith("no ") else said.split()[0]] = said
                break
    return program, fault, tuple(taken.values())


def _clearer(found: Fault, before: Fault) -> bool:
    """Return whether ``found`` can be shown by at most half the calls of the fault ``before``, with the same error."""
    return 2 * found.calls <= before.calls and _same_error(found, before)


def _as_clear(found: Fault, before: Fault) -> bool:
    """Return whether ``found``, the fault of a smaller program, is as easy to show as ``before``, the fault so far.

    It must need no more calls than ``before`` (or at most ``FEW_CALLS``), have no more wrong outcomes, and show the
    same error.
    """
    few = found.calls <= max(before.calls, FEW_CALLS) and len(found.wrong) <= max(1, len(before.wrong))
    return few and _same_error(found, before)


def _same_error(found: Fault, before: Fault) -> bool:
    return found.error == before.error and (not before.error or _words(found.said) == _words(before.said))


def _words(said: str) -> str:
    """Return the error message ``said`` without its numbers, to compare the errors of two runs.

    The numbers may differ between two runs of the same error.
    """
    return re.sub(r"\d+", "", said)


class _WrittenScript(NamedTuple):
    fault: Fault
    script: str


def _tried(program: EngineProgram, reproducer: Reproducer, find: Find) -> _WrittenScript | None:
    try:
        fault = find(program)
        return None if fault is None else _WrittenScript(fault, reproducer.script(program.source, fault))
    except Exception:  # noqa: BLE001 - the engine may not take the setting, and says so in any way
        return None


def _fault(subject: Subject, check: Check, conditions: Conditions, program: EngineProgram) -> Fault | None:
    """Return the fault that ``check`` finds in ``program``, a case of ``subject``; None if it does not refute it.

    ``conditions`` are the settings of the check.
    """
    case = case_of_program(check, subject, program)
    if case is None or not (examined := case.examine(conditions)).failed:
        return None
    return FAULTS[check.name](program, examined, conditions)


def _error(program: EngineProgram) -> Fault | None:
    """Return the error that a program raises only with speculation; None if there is none.

    The program is run with ordinary uniforms, and then with every uniform at its largest value. If only the second run
    raises the error, the returned fault has this value of the uniforms, so that a script can show the error.
    """
    if program.plain is None:
        return None
    with program.plain() as run:
        program_law(run, DEFAULTS.runs)
    fault = _raised(program, None)
    if fault is None or fault.calls == 1 or _raised(program, ORDINARY) is not None:
        return fault
    at_the_largest = _raised(program, LARGEST)
    return fault if at_the_largest is None else at_the_largest._replace(uniform=LARGEST, calls=10 * FEWEST_CALLS)


def _raised(program: EngineProgram, uniform: float | None) -> Fault | None:
    """Return the error that a program raises; None if it raises none.

    Every uniform is ``uniform``; if this is None, uniforms are random.
    """
    try:
        with program.open() if uniform is None else program.open(forced_uniform=uniform) as run:
            program_law(run, DEFAULTS.runs)
    except SettingRefused as error:
        raise NoScript(f"the engine rejects it: {error}") from error
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        kind = type(error).__name__
        frames = tuple((at.filename, at.lineno or 0, at.line or "") for at in extract_tb(error.__traceback__))
        return Fault(f"{kind}: {error}", calls=1 if is_certain(program) else FEWEST_CALLS, error=kind, frames=frames)
    return None
