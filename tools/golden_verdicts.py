# ruff: noqa: T201 - a command
"""Golden verdicts: what every check decides of every corpus of the project, to compare two states of the code.

    python -m tools.golden_verdicts write FILE [GROUP ...]
    python -m tools.golden_verdicts compare BEFORE AFTER

``write`` judges the groups, all unless some are named, and adds lines to FILE. ``compare`` lists every verdict that
differs; its exit status is 1 unless each of them was UNKNOWN before.

``write FILE GROUP --every N`` judges every N-th subject, and ``compare --common`` the subjects that both files have.

FILE has a line of JSON a subject: (subject, check) -> status and refusal, and the CPU seconds. A verdict that leaves
UNKNOWN is *decided*; each other difference is a *change*. A second run with the same FILE continues where the first one
ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from specverify.base.verdict import Status
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions
from specverify.checks.forgetting import forget_laws
from specverify.run.catalogue import expanded, find_subject
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.verifier import verifier_subject
from specverify.trust.false_alarms import random_configuration
from specverify.trust.kills import control_row, mutant_row

UNDECIDED = frozenset({Status.UNKNOWN.value, Status.REFUSED.value, Status.UNUSABLE.value})
ANSWERED = "answered"
"""The status of a call that draws and has a law; the law stands in place of the refusal."""
DECIDED = frozenset({Status.HOLDS.value, Status.REFUTED.value, Status.DECLARED_BIAS.value, ANSWERED})
NONE = ["none", ""]
SHARES, CONFIGURATIONS, SECONDS = 6, 200, 600.0
"""One in this number of the scenarios of an idiom; random correct configurations; the guard of one subject."""


class Golden(NamedTuple):
    """One verdict of a check."""

    check: str
    status: str
    refusal: str = ""
    """Why nothing was decided; empty where something was."""


Judged = Callable[[], list[Golden]]


def judged_by_checks(subject: Any, checks: Any = EXACT_CHECKS) -> list[Golden]:
    """Return the verdict of every check of ``checks`` that applies to ``subject``."""
    verdicts = verify_subject(subject, Checklist(tuple(checks), seconds=SECONDS))
    return [
        Golden(each.check, each.status.value, each.statement if each.status.value in UNDECIDED else "")
        for each in verdicts
        if each.status is not Status.NOT_APPLICABLE
    ]


def idioms() -> Iterator[tuple[str, Judged]]:
    """Yield every idiom (a step of a rejection sampler as published code writes it), and its twin with a mistake."""
    from test_support.idioms.tables import IDIOMS

    for place, idiom in enumerate(IDIOMS):
        for which in ("right", "wrong"):
            yield f"{idiom.table}/{idiom.name}/{which}", partial(_idiom, idiom, which, place)


def _idiom(idiom: Any, which: str, place: int) -> list[Golden]:
    verify = getattr(idiom, which)
    subject = verifier_subject(verify, verify.__name__, (idiom.gamma,))
    return judged_by_checks(subject._replace(scenarios=subject.scenarios[place % SHARES :: SHARES]))


def draws() -> Iterator[tuple[str, Judged]]:
    """Yield every function of NumPy, ``random`` and torch that draws random numbers."""
    from test_support.intercept.drawing_calls import lines_of, of_this_python
    from test_support.intercept.numpy_and_random import NUMPY, RANDOM
    from test_support.intercept.torch_under_test import TORCH

    for library in (NUMPY, RANDOM, TORCH):
        for line in filter(of_this_python, lines_of(library)):
            if line.kind != "absent":
                yield from (
                    (f"{line.place} {name}", partial(_draw, library, line, call))
                    for name, call in zip(line.names(), line.calls(), strict=True)
                )


def _draw(library: Any, line: Any, call: str) -> list[Golden]:
    from specverify.intercept.refusals import NeedsValue
    from test_support.intercept.drawing_calls import law_of, unanswered_law

    try:
        if line.kind in {"answered", "many"}:
            law = law_of(library, line, call)
            masses = sorted((repr(outcome), f"{float(mass):.9g}") for outcome, mass in law.items())
            return [Golden("law", ANSWERED, repr(masses))]
        unanswered_law(library, line, call)
    except NeedsValue as refusal:
        return [Golden("law", "unknown", str(refusal))]
    return [Golden("law", line.kind)]


def sources() -> Iterator[tuple[str, Judged]]:
    """Yield an engine for every source of randomness, once with a right coin and once with a wrong one."""
    from test_support.soundness.sources_of_randomness import HIDDEN, SOURCES
    from tools.pages.sources_page import RIGHT, WRONG

    for name, make in {**SOURCES, **HIDDEN}.items():
        for which, chance in (("right", RIGHT), ("wrong", WRONG)):
            yield f"{name}/{which}", partial(_source, make, chance)


def _source(make: Any, chance: float) -> list[Golden]:
    from tools.pages.sources_page import verdicts

    return [
        Golden(name, verdict.status.value, verdict.statement if verdict.status.value in UNDECIDED else "")
        for name, verdict in verdicts(make, chance).items()
        if verdict.status is not Status.NOT_APPLICABLE
    ]


def kills() -> Iterator[tuple[str, Judged]]:
    """Yield every planted bug, and every correct subject that looks wrong."""
    from specverify.mutants import mutants, suspects

    for mutant in mutants():
        yield mutant.name, partial(_killed, mutant.name)
    for control in suspects():
        yield f"control {control.name}", partial(_control, control.name)


def _killed(name: str) -> list[Golden]:
    row = mutant_row(name, [check.name for check in CHECKS], Conditions())
    return [Golden(cell.check, cell.status) for cell in row.cells] + [Golden("control", row.control)]


def _control(name: str) -> list[Golden]:
    row = control_row(name, [check.name for check in CHECKS], Conditions())
    return [Golden(check, Status.REFUTED.value) for check in row.accused_by] + [
        Golden(check, Status.HOLDS.value) for check in row.held
    ]


def huggingface() -> Iterator[tuple[str, Judged]]:
    """Yield every mode of speculation of transformers."""
    for name in expanded("hf:all"):
        yield name, partial(_engine, name)


def _engine(name: str) -> list[Golden]:
    return judged_by_checks(find_subject(name))


def correct() -> Iterator[tuple[str, Judged]]:
    """Yield random correct configurations of the registry."""
    for index in range(CONFIGURATIONS):
        yield f"configuration {index}", partial(_configuration, index)


def _configuration(index: int) -> list[Golden]:
    return judged_by_checks(random_configuration(0, index))


GROUPS: Mapping[str, Callable[[], Iterable[tuple[str, Judged]]]] = {
    function.__name__: function for function in (idioms, draws, sources, kills, huggingface, correct)
}


class Line(NamedTuple):
    """The verdicts on one subject, by check, and the CPU seconds that they took."""

    cpu_seconds: float
    verdicts: Mapping[str, list[str]]


State = dict[str, dict[str, Line]]
"""Group -> subject -> what was decided of it."""


def read(file: Path) -> State:
    """Return the golden verdicts in ``file``; an unfinished last line of an interrupted run is ignored."""
    state: State = {}
    for text in file.read_text("utf-8").splitlines() if file.exists() else ():
        with suppress(json.JSONDecodeError):
            line = json.loads(text)
            state.setdefault(line["group"], {})[line["subject"]] = Line(line["cpu_seconds"], line["verdicts"])
    return state


def write(file: Path, groups: Iterable[str], every: int = 1) -> None:
    """Judge every ``every``-th subject of the groups that ``file`` does not contain yet.

    Append a line of JSON for each.
    """
    done = read(file)
    if file.exists() and not file.read_text("utf-8").endswith("\n"):
        with file.open("a", encoding="utf-8") as out:
            out.write("\n")
    for group in groups:
        for subject, judge in islice(GROUPS[group](), 0, None, every):
            if subject in done.get(group, {}):
                continue
            begin = time.process_time()
            verdicts = {each.check: [each.status, each.refusal] for each in judge()}
            forget_laws()
            line = Line(round(time.process_time() - begin, 3), verdicts)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"group": group, "subject": subject, **line._asdict()}) + "\n")
            print(group, subject, *sorted({status for status, _ in verdicts.values()}), flush=True)


class Difference(NamedTuple):
    """One verdict that differs between two states of the code."""

    group: str
    subject: str
    check: str
    before: str
    after: str

    @property
    def decided(self) -> bool:
        """Return whether the verdict was undecided (UNKNOWN) before and is decided now."""
        return self.before in UNDECIDED and self.after in DECIDED


def differences(before: State, after: State, *, common: bool = False) -> Iterator[Difference]:
    """Yield every verdict that differs, in the groups that both states contain; a missing verdict is called ``none``.

    ``common`` leaves out the subjects that only one state contains.
    """
    for group in sorted(before.keys() & after.keys()):
        subjects = (before[group].keys(), after[group].keys())
        for subject in sorted(subjects[0] & subjects[1] if common else subjects[0] | subjects[1]):
            old, new = (state[group][subject].verdicts if subject in state[group] else {} for state in (before, after))
            for check in sorted(old.keys() | new.keys()):
                was, now = old.get(check, NONE), new.get(check, NONE)
                if was[0] != now[0] or (was[0] == ANSWERED and was != now):
                    yield Difference(group, subject, check, was[0], now[0])


def compare(before: Path, after: Path, *, common: bool = False) -> int:
    """Print every verdict that differs between two files, and return the exit status of the command."""
    states = [read(file) for file in (before, after)]
    changed = 0
    for each in differences(*states, common=common):
        changed += not each.decided
        word = "decided" if each.decided else "CHANGED"
        print(f"{word} {each.group} {each.subject} {each.check}: {each.before} -> {each.after}")
    for group in sorted(states[0].keys() & states[1].keys()):
        both = states[0][group].keys() & states[1][group].keys()
        was, now = (sum(state[group][name].cpu_seconds for name in both) for state in states)
        print(f"{group}: {len(both)} subjects, {was:.0f} s of CPU before, {now:.0f} s now")
    return int(changed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write verdicts of every corpus, or compare two files of them.")
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("file", type=Path)
    writing.add_argument("--every", type=int, default=1)
    writing.add_argument("groups", nargs="*", choices=[*GROUPS, []], default=[])
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--common", action="store_true")
    given = parser.parse_args()
    if given.command == "write":
        write(given.file, given.groups or GROUPS, given.every)
    else:
        sys.exit(compare(given.before, given.after, common=given.common))
