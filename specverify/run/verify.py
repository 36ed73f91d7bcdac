"""Run checks on subjects: every case of every check; the first failure is reported. An undecided case never passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from functools import partial
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple

from specverify.base.default_limits import SECONDS
from specverify.base.edges import edge_lines
from specverify.base.figures import merged_figures
from specverify.base.own_time import Clock, own_clock
from specverify.base.parallel import in_parallel
from specverify.base.process import NOTHING, Changes, joined_changes
from specverify.base.verdict import DoesNotApply, Evidence, Examination, Status, Verdict
from specverify.checks import Case, Check, Conditions
from specverify.checks.check import BeyondReach, beyond_reach, may_be_refused, only_sampled
from specverify.checks.compared_laws import enumerated, has_far_more_paths
from specverify.checks.constant_draws import find_constant_draws
from specverify.checks.explaining.counterexample_parts import described
from specverify.checks.forgetting import forget_laws
from specverify.checks.moved_replays import noticed
from specverify.checks.program_is_its_draws import CHECK as PROGRAM_IS_ITS_DRAWS
from specverify.checks.program_is_its_draws import examine_refuted
from specverify.foreign.guard import Guarded, guarded
from specverify.foreign.places import sentence_of
from specverify.intercept.cpython import patches
from specverify.intercept.cpython.sandbox import look_around
from specverify.intercept.everywhere import libraries_replaced
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import PROCESS
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.reference import Claim
from specverify.run.cases import CaseTold, counted_cases, number_of_cases
from specverify.run.quick import (
    NO_RUNS,
    ChosenCases,
    RunsTaken,
    first_runs,
    in_quick,
    most_runs,
    name_of_case,
    quick_cases,
    runs_in_words,
    second_runs,
)
from specverify.run.replays import identifier_of
from specverify.subjects.subject import EngineProgram, NothingAllowed, SettingRefused, Subject, UnusableSubject

OTHERS_FOR_CAUSE = 3
"""The number of further cases of an engine that are examined for the cause, if the refuting case does not show it."""
PATHS_OF_PROBE = 1000
"""The setting that explains the refutation of an engine is left out if the engine has more paths there."""
CONSTANT = "draws constants at {lines}, from a generator that it seeds itself: they are the numbers of the library"
MOST_WITHOUT = 4
"""In the quick plan, the call without speculation may have this many times the paths of a case."""
FOR_SAMPLES = 0.25
"""The share of a subject's time that is reserved for sampling checks, if an engine is sampled."""

FEWER = "; fewer tokens, drafts or rows have fewer paths, and samples need none (sampled=True, or samples_agree)"
FEWER_OF_VERIFIERS = (
    "; fewer drafts have fewer paths (gammas), a loop that draws until a condition holds has no limit of them, and "
    "samples need none (sampled=True, or samples_fit_law)"
)


class Checklist(NamedTuple):
    """The checks to run on a subject, with their settings (``conditions``) and limits."""

    checks: tuple[Check, ...]
    conditions: Conditions = Conditions()
    seconds: float = SECONDS
    """Time limit in seconds of all checks of a subject together."""
    quick: bool = False
    """Whether to examine only the cases of the quick plan (``specverify.run.quick``)."""


class _Time(NamedTuple):
    """The time limit of all checks of a subject: it is over when the clock ``now`` reaches ``deadline``, in seconds."""

    deadline: float
    now: Clock
    """The clock by which ``deadline`` is reached."""

    def left(self, kept: float = 0.0) -> float:
        """Return the seconds until the time limit, minus ``kept`` seconds; a small positive number if none are left."""
        return max(self.deadline - kept - self.now(), 1e-3)

    def is_over(self, kept: float = 0.0) -> bool:
        """Return whether at most ``kept`` seconds are left until the time limit."""
        return self.now() >= self.deadline - kept


CheckTold = Callable[[str, int, int], None]
"""``told(check, examined, cases)`` reports the numbers of examined cases and of all cases (0 if unknown) of a check."""


def verify_subject(
    subject: Subject,
    checklist: Checklist,
    progress: CheckTold = lambda check, examined, cases: None,
    spent: float = 0.0,
    changes: Changes = NOTHING,
    known: Mapping[str, Verdict] | None = None,
) -> Iterator[Verdict]:
    """Yield the verdict of every check of the checklist, including checks that do not apply.

    * ``progress``: ``progress(check, examined, cases)`` is called while a check examines its cases.
    * ``spent``: The loading time of the subject in seconds.
    * ``changes``: The changes that loading made to the process.
    * ``known``: Verdicts that are not computed again.

    Before exact checks of foreign code, the check ``program_is_its_draws`` runs. If the checklist does not contain it,
    its verdict is yielded only if it fails.
    """
    now = own_clock()
    clock = _Time(now() + checklist.seconds - spent, now)
    yield from _verdicts(subject, checklist, progress, clock, changes, known or {})


def _verdicts(
    subject: Subject,
    checklist: Checklist,
    progress: CheckTold,
    clock: _Time,
    changes: Changes,
    known: Mapping[str, Verdict],
) -> Iterator[Verdict]:
    """Yield the verdicts of ``verify_subject``, with the same parameters, within the time of ``clock``."""
    subject, result = _settled_in_time(subject, clock.left())
    own = Changes((result.ended,) if result.ended else (), subject.notes)
    unsaid = joined_changes(joined_changes(changes, result.changes), own)
    over, blocked, refused, last, hidden = _never_warm(result, checklist.seconds), "", "", "being loaded", False
    kept = FOR_SAMPLES * checklist.seconds if any(_samples(subject, check) for check in checklist.checks) else 0.0
    for check in _grounded(subject, checklist.checks):
        progress(check.name, 0, 0)
        started, samples = time.perf_counter(), check.evidence is Evidence.STATISTICAL
        left, late = 0.0 if samples else kept, ""
        if clock.is_over(left):
            whose = "the exact checks of the subject" if left else "the subject"
            late = f"not reached: the {checklist.seconds - left:g} s for {whose} were over in {last}"
        stopped = over or late or ("" if hidden and samples else blocked)
        verdict = not_applicable(subject, check, refused)
        if verdict is None and stopped:
            verdict = verdict_of(subject.name, check, Status.UNKNOWN, stopped)
        elif verdict is None:
            within = checklist._replace(seconds=clock.left(left))
            told = partial(progress, check.name)
            verdict, last = known.get(check.name) or run_check(subject, check, within, told), check.name
            verdict = with_changes(verdict, unsaid)
        if verdict.status is Status.REFUSED:
            refused = "the engine refuses the setting"
        over = verdict.statement if verdict.figures.get("looping") else over  # samples would not end either
        if stops := _stops_exact_checks(verdict):
            blocked, hidden = stops, True
        elif verdict.status is Status.UNKNOWN and clock.is_over(left):
            hidden = True  # it says where the time went
        if check in checklist.checks or hidden or verdict.status is Status.UNUSABLE:
            unsaid = unsaid if verdict.status is Status.NOT_APPLICABLE else NOTHING
            yield verdict._replace(seconds=time.perf_counter() - started)


def _in_doubt(verdict: Verdict, subject: Subject, again: Callable[[], Verdict]) -> Verdict:
    """Return ``verdict``, or UNKNOWN in place of REFUTED if there is a doubt about which numbers are constants.

    The law is wrong with the numbers of the library in their place; with other seeds it may be right. So it is examined
    once more, by ``again()``, with these numbers as random ones: if it is wrong in both ways, it is refuted.
    """
    if not subject.doubt or verdict.status is not Status.REFUTED:
        return verdict
    with _as_random(subject.doubtful):
        with_any_seed = again()
    if with_any_seed.status is Status.REFUTED:
        return with_any_seed
    said = f"{subject.doubt}. With the numbers of the library in their place it is refuted: {verdict.statement}"
    return verdict._replace(status=Status.UNKNOWN, statement=said, counterexample=None)


@contextmanager
def _as_random(lines: Collection[str]) -> Iterator[None]:
    """Context manager: while it is open, what these ``lines`` draw is random, though the engine sets its seed."""
    constant = PROCESS.constant_lines
    forget_laws()
    PROCESS.constant_lines = constant - {*lines}
    try:
        yield
    finally:
        forget_laws()
        PROCESS.constant_lines = constant


def _grounded(subject: Subject, checks: tuple[Check, ...]) -> tuple[Check, ...]:
    """Return the checks, preceded by ``program_is_its_draws`` if the subject is foreign code and a check is exact.

    The check ``program_is_its_draws`` tests whether a program is a function of its draws, as exact checks require. If
    it is added here, it is reported only if it fails.
    """
    foreign = subject.programs or subject.intercepted
    resting = any(check.evidence is not Evidence.STATISTICAL for check in checks)
    needed = foreign and resting and PROGRAM_IS_ITS_DRAWS not in checks
    return (PROGRAM_IS_ITS_DRAWS, *checks) if needed else checks


def _stops_exact_checks(verdict: Verdict) -> str:
    """Return why no exact check can run after a check with this ``verdict``; "" if the other checks can run."""
    if verdict.figures.get("function_of_draws") is False:
        return "it is not a function of its draws, so it has no law to compare"
    stops = verdict.figures.get("looping") or verdict.figures.get("replays") == 0
    return verdict.statement if stops and verdict.status is Status.UNKNOWN else ""


def _never_warm(found: Guarded[Subject], seconds: float) -> str:
    """Return a sentence if the first decode of a subject (its warm-up) did not end in time; "" if it ended.

    ``found`` is the outcome of this decode: its result, or why it has none. ``seconds`` is the time limit.
    """
    if not found.out_of_time:
        return ""
    late = "does not end" if found.looping else f"did not finish within {seconds:g} s"
    return f"its first decode {late}: {found.out_of_time}"


def _settled_in_time(subject: Subject, seconds: float) -> tuple[Subject, Guarded[Subject]]:
    """Run the warm-up of a subject for at most ``seconds``; return the subject to examine, and the outcome.

    The warm-up (``warmed_up``) runs the subject once, so that lazy initialisation does not affect the checks, and finds
    out whether it computes with rationals. The outcome has the warmed-up subject, or the reason why there is none.

    If the time is over, the subject is returned as it is. If the warm-up raises an error, the fields ``warm`` and
    ``probe`` of the subject, which run the subject, are removed. The warm-up without them only searches foreign code
    for its sources of randomness.
    """
    result = guarded(partial(warmed_up, subject), seconds, watch_loops=True)
    if result.result is not None:
        return result.result, result
    subject = subject._replace(probe=None, warm=None)
    return subject if result.out_of_time else guarded(partial(warmed_up, subject), seconds).result or subject, result


def unready(found: Guarded[Any], what: str, seconds: float) -> tuple[Status, str]:
    """Return the status and the reason for a subject that was not ready within ``seconds``.

    The status is UNKNOWN if the time was over, and UNUSABLE if the attempt failed. ``what`` is the state that was not
    reached, such as "loaded", and ``found`` the outcome of the attempt, which has no result.
    """
    if found.out_of_time:
        return Status.UNKNOWN, f"not {what} within {seconds:g} s: {found.out_of_time}"
    return Status.UNUSABLE, f"it {found.ended} when it is {what}"


def warmed_up(subject: Subject) -> Subject:
    """Run a subject once, so that lazy initialisation does not affect its checks; return it ready for the checks.

    The field ``rational`` is determined: whether the subject computes with rationals or with floats. For foreign code,
    its sources of randomness are searched too.
    """
    if subject.warm is not None:
        subject.warm()
    if subject.intercepted or subject.programs:
        look_around()
    constant = find_constant_draws(subject)
    if constant.lines:
        note = CONSTANT.format(lines=", ".join(constant.lines))
        subject = subject._replace(notes=(*subject.notes, note), doubt=constant.doubt, doubtful=constant.doubtful)
    return subject if subject.probe is None else subject._replace(rational=subject.probe(), probe=None)


def run_check(
    subject: Subject, check: Check, checklist: Checklist, told: CaseTold = lambda examined, cases: None
) -> Verdict:
    """Return the verdict of one check on a subject, from all cases of the check.

    The check ends within the time limit of ``checklist``, which also has its settings. ``told(examined, cases)`` is
    called now and then. Its arguments are the number of cases examined so far, and that of all cases (0 if unknown).
    """
    examined = partial(_named, subject, check, checklist.seconds, partial(_over_cases, subject, check, checklist, told))
    verdict = examined()
    return verdict if check.evidence is Evidence.STATISTICAL else _in_doubt(verdict, subject, examined)


def run_case(case: Case, check: Check, conditions: Conditions, seconds: float = SECONDS) -> Verdict:
    """Run one check on one case, as a replay does, within ``seconds``.

    ``conditions`` are the settings of the check.
    """

    def examined() -> Verdict:
        return _judge(case.subject, check, [(case, case.examine(conditions))], conditions)

    return _named(case.subject, check, seconds, examined)


def _named(subject: Subject, check: Check, seconds: float, examine: Callable[[], Verdict]) -> Verdict:
    """Return the verdict of ``examine``, with the changes that the examination made to the process.

    If ``examine`` raises an error, or returns no verdict within ``seconds``, the result is a verdict of ``check`` on
    ``subject`` with the reason.
    """
    foreign = (subject.intercepted or subject.programs) and check.evidence is not Evidence.STATISTICAL

    def examined() -> Verdict:
        try:
            with libraries_replaced() if foreign else nullcontext():
                return examine()
        except _SAID as reason:
            status = _STATUS.get(type(reason), Status.UNKNOWN)
            figures = {"function_of_draws": False} if isinstance(reason, NotAFunctionOfItsDraws) else {}
            return verdict_of(subject.name, check, status, _why(subject, reason))._replace(figures=figures)
        except Exception as error:  # noqa: BLE001 - a subject may raise anything; it is named, never passed
            return verdict_of(subject.name, check, Status.UNUSABLE, sentence_of(error))

    now = own_clock()
    done = guarded(partial(patches.again, examined), seconds, watch_loops=True)
    used = now()
    if done.looping:
        verdict = verdict_of(subject.name, check, Status.UNKNOWN, done.out_of_time)._replace(figures={"looping": True})
    elif done.out_of_time:
        elapsed = f"{used:.2g}" if seconds < 10 else f"{seconds:.0f}"
        of_verifiers = FEWER_OF_VERIFIERS if done.out_of_time.startswith("it was drawing") else ""
        fewer = FEWER if subject.programs else of_verifiers
        said = f"not finished after {elapsed} s: {done.out_of_time}{fewer if foreign else ''}"
        verdict = verdict_of(subject.name, check, Status.UNKNOWN, said)
    elif done.ended or done.result is None:
        verdict = verdict_of(subject.name, check, Status.UNUSABLE, f"it {done.ended}")
    else:
        verdict = done.result
    return with_changes(verdict, done.changes)


def with_changes(verdict: Verdict, changes: Changes) -> Verdict:
    """Return ``verdict`` with the changes that the subject made to the process.

    * Notes are added to the figures.
    * A fault that the statement already names is ignored.
    * Any other fault is added to the statement of a verdict REFUTED, REFUSED or UNUSABLE. Every other verdict becomes
      UNUSABLE, with the fault as statement.
    """
    if changes.notes:
        notes = [*verdict.figures.get("notes", ()), *(f"it {note}" for note in changes.notes)]
        verdict = verdict._replace(figures={**verdict.figures, "notes": notes})
    new = [fault for fault in changes.faults if fault not in verdict.statement]
    if not new:
        return verdict
    faults = " and ".join(new)
    if verdict.status in {Status.REFUTED, Status.UNUSABLE, Status.REFUSED}:
        return verdict._replace(statement=f"{verdict.statement}; it also {faults}")
    return verdict._replace(status=Status.UNUSABLE, statement=f"it {faults}")


_SAID = (SettingRefused, EnumerationTooLarge, NeedsValue, NotAFunctionOfItsDraws, DoesNotApply)
"""Exceptions whose message states why there is no verdict."""
_STATUS = {SettingRefused: Status.REFUSED, DoesNotApply: Status.NOT_APPLICABLE}
"""The status for those of these exceptions that do not give UNKNOWN."""


def _fewer(subject: Subject) -> str:
    """Return the end of a sentence on how to get fewer paths, for subjects that are engine programs; "" for others.

    For example "; fewer tokens, drafts or rows have fewer paths".
    """
    return FEWER if subject.programs else ""


def _why(subject: Subject, reason: Exception) -> str:
    if isinstance(reason, NeedsValue):
        return only_sampled(subject, reason)
    if isinstance(reason, EnumerationTooLarge):
        return f"{reason}{_fewer(subject)}"
    return f"not a function of its draws: {reason}" if isinstance(reason, NotAFunctionOfItsDraws) else str(reason)


BEYOND_REACH = (
    "all of its cases ({}) have too many paths to follow, such as {}{}. An engine that runs past the wanted number of "
    "tokens has many more paths"
)
NOTHING_ALLOWED = (
    "left out, because the constraint forbids every token that a row makes possible, and the engine raises an error: "
    "{} of its cases, such as {}"
)
"""The note on cases that were left out: their number, and the name of the first."""
MOST_STOPPED = 12
"""The number of cases stopped by a refusal or an error after which a check ends. Before, other cases may refute the
program."""
RAISES = "in {} of its cases an error is raised instead, such as in {}: {}"
"""The note on a refuted program that raises errors too: the number of these cases, the name of the first, its error."""
SMALL, LARGER, OTHERS_IF_SMALL, OTHERS_EXPLAINED = 0.01, 10.0, 12, 4
"""Limits of the search for a clearer case.

If the TV of a refuted case is below ``SMALL``, and its counterexample names no wrong rule, the first
``OTHERS_IF_SMALL`` cases of the check that were not examined yet are examined too, and the ``OTHERS_EXPLAINED`` with
the largest TV are explained. One that shows its cause with certainty is reported, or else the one with the largest TV,
if this is more than ``LARGER`` times that of the refuted case.
"""


class _NotExamined(Enum):
    """The reason why a case was not decided."""

    OUT_OF_REACH = 1
    """The case has too many paths or outcomes; other cases are examined instead."""
    OUT_OF_RUNS = 2
    """The case has more runs than the quick plan allows."""
    NOTHING_ALLOWED = 3
    """An engine raised an error where its constraint forbids every possible token."""


class _CaseResults(NamedTuple):
    """The results of the cases of one check: examined, undecided, inapplicable and stopped cases, each in order."""

    examined: list[tuple[Case, Examination]]
    passed: dict[_NotExamined, list[Case]]
    """Cases that were not decided, by the reason."""
    inapplicable: list[DoesNotApply]
    """Why the check does not apply to some cases."""
    stopped: list[tuple[Case, Exception]]
    """The cases that ended in a refusal of interception or in an error of the subject."""

    @property
    def is_refuted(self) -> bool:
        """Return whether the last case is refuted; then no further case is examined."""
        return bool(self.examined) and self.examined[-1][1].failed

    def examine(self, cases: Iterable[Case], conditions: Conditions, *, quick: bool) -> RunsTaken:
        """Examine ``cases`` until one is refuted, or until ``MOST_STOPPED`` of them ended in a refusal or an error.

        Returns the number of runs that they took.

        With ``quick``, programs of engines whose laws have many paths are examined after all others: a wrong engine
        often has far more paths than a right one, and a smaller case refutes it sooner.
        """
        taken, large = NO_RUNS, list[Case]()
        for is_first, group in ((True, cases), (False, large)):
            for case in group:
                most = most_runs(case, conditions, taken) if quick else conditions.runs
                first = first_runs(case, most) if quick and is_first else None
                within = first if is_first or not quick else second_runs(case, most)
                limited = conditions._replace(runs=most, complete_within=within)
                try:
                    examination = _examine(case, limited, quick=quick)
                except DoesNotApply as reason:
                    self.inapplicable.append(reason)
                except (SettingRefused, EnumerationTooLarge, NotAFunctionOfItsDraws):
                    raise
                except Exception as reason:  # noqa: BLE001 - a subject may raise anything; it is named, never passed
                    self.stopped.append((case, reason))
                else:
                    if isinstance(examination, _NotExamined):
                        is_large = examination is _NotExamined.OUT_OF_RUNS
                        taken = taken.after_skipped((first or most) if is_large else 0)
                        (large if first and is_large else self.passed[examination]).append(case)
                    else:
                        self.examined.append((case, examination))
                        taken = taken.after_examined(examination.figures.get("runs", 0))
                if self.is_refuted or len(self.stopped) == MOST_STOPPED:
                    return taken
        return taken

    def replay_refuted(self, check: Check, conditions: Conditions) -> None:
        """Make the result of a case that ``check`` refutes unknown if its program is not a function of its draws."""
        if not self.is_refuted or check.evidence is Evidence.STATISTICAL or check is PROGRAM_IS_ITS_DRAWS:
            return
        case, again = self.examined[-1][0], None
        with suppress(Exception):  # the refutation stands, whatever a replay raises
            again = examine_refuted(case, conditions)
        if again is not None:
            self.examined[-1] = (case, again)

    def check_decided(self) -> None:
        """Raise an error if the results decide nothing.

        If cases ended in a refusal or an error and no case is refuted, the first of these is raised. If no case was
        examined and the check does not apply to some case, its reason is raised, unless another case ran out of runs.
        """
        if self.stopped and not self.is_refuted:
            case, error = self.stopped[0]
            if isinstance(case.situation, EngineProgram) and not isinstance(error, (*_SAID, UnusableSubject)):
                raise UnusableSubject(f"{sentence_of(error)}, in {described(case.situation)}") from None
            raise error
        if self.inapplicable and not self.examined and not any(self.passed.values()):
            raise self.inapplicable[-1]


def _over_cases(subject: Subject, check: Check, checklist: Checklist, told: CaseTold) -> Verdict:
    conditions = in_quick(checklist.conditions) if checklist.quick else checklist.conditions
    every = check.cases(subject)
    chosen = quick_cases(subject.kind, check, every) if checklist.quick else ChosenCases(every, 0)
    cases, examined = chosen.cases, list[tuple[Case, Examination]]()
    if check.evidence is Evidence.STATISTICAL and conditions.jobs > 1:
        listed = list(cases)
        result = in_parallel([partial(case.examine, conditions) for case in listed], conditions.jobs)
        examined, cases = list(zip(listed, result, strict=True)), []
    known = len(cases) if isinstance(cases, list) else 0
    if chosen.instead:
        cases = chain(cases, takewhile(lambda _: not outcomes.examined, chosen.instead))
    outcomes = _CaseResults(examined, {reason: [] for reason in _NotExamined}, [], [])
    counted = counted_cases(cases, partial(number_of_cases, subject, check), told, known)
    taken = outcomes.examine(counted, conditions, quick=checklist.quick)
    outcomes.check_decided()
    passed = outcomes.passed
    outcomes.replay_refuted(check, conditions)
    if outcomes.is_refuted:
        examined = _explained(examined, check, chosen.cases, conditions, quick=checklist.quick)
    if not examined and (beyond := passed[_NotExamined.OUT_OF_REACH]):
        said = BEYOND_REACH.format(len(beyond), _words_of(beyond[0]), _fewer(subject))
        return verdict_of(subject.name, check, Status.UNKNOWN, said)
    skipped = passed[_NotExamined.OUT_OF_RUNS]
    too_long = ", ".join(map(_words_of, skipped))
    most = runs_in_words(skipped[0], conditions, taken) if skipped else ""
    if too_long and not (outcomes.is_refuted or _has_random_drafts(examined)):
        within = most_runs(skipped[0], conditions)
        which = "none of its cases with drafts and random tokens" if examined else "none of its cases"
        said = f"{which} was followed within {within} runs: {too_long}{_fewer(subject)}"
        way_out = f"Without quick, {checklist.conditions.runs} runs are followed; or let samples decide"
        return verdict_of(subject.name, check, Status.UNKNOWN, f"{said}. {way_out}")
    verdict = _judge(subject, check, examined, conditions)
    tried = len(outcomes.examined) + sum(map(len, passed.values()))
    instead = max(0, tried - len(list(chosen.cases))) if checklist.quick else 0
    notes = [f"left out, with more runs each than {most}: {too_long}"] if too_long else []
    if empty := passed[_NotExamined.NOTHING_ALLOWED]:
        notes.append(NOTHING_ALLOWED.format(len(empty), _words_of(empty[0])))
    if errors := [(case, error) for case, error in outcomes.stopped if not isinstance(error, NeedsValue)]:
        notes.append(RAISES.format(len(errors), _words_of(errors[0][0]), sentence_of(errors[0][1])))
    more = {
        "skipped": len(passed[_NotExamined.OUT_OF_REACH]),
        "left_out": chosen.left_out + len(passed[_NotExamined.OUT_OF_RUNS]) - instead,
        "planned": [_words_of(case) for case, _ in examined] if checklist.quick else [],
        "notes": [*verdict.figures.get("notes", ()), *notes],
    }
    return verdict._replace(figures={**verdict.figures, **{name: value for name, value in more.items() if value}})


def _has_random_drafts(examined: Sequence[tuple[Case, Examination]]) -> bool:
    """Return whether a case was examined whose program drafts tokens and has more than one run.

    A law of one run shows certain tokens alone, and a law without drafts no rule of acceptance. Checks that count no
    runs or no drafts are taken to have such a case.
    """
    figures = [examination.figures for _, examination in examined]
    return any(one.get("runs", 2) > 1 and one.get("gamma", 1) > 0 for one in figures)


def _lacks_cause(examination: Examination) -> bool:
    return examination.counterexample is not None and not examination.counterexample.named


def _explained(
    examined: list[tuple[Case, Examination]],
    check: Check,
    cases: Iterable[Case],
    conditions: Conditions,
    *,
    quick: bool,
) -> list[tuple[Case, Examination]]:
    """Return ``examined``, with one more refuted case added if that case shows the refutation better.

    It shows the cause, which only other cases of engines are searched for, or a far larger deviation. ``examined`` has
    the cases of ``check`` that were examined; the last one is refuted. ``cases`` are all cases that the check may
    examine, and ``conditions`` its settings. With ``quick``, a case with too many runs is skipped.
    """
    case, examination = examined[-1]
    explained = _in_probe(case, examination, check, conditions)
    if explained is not None:
        return [*examined[:-1], explained, examined[-1]]
    if _lacks_cause(examination):
        return [*examined, *_with_cause(examined, cases, conditions, quick=quick)]
    example, tv = examination.counterexample, examination.figures.get("tv", 1.0)
    if conditions.explained and 0 < tv < SMALL and example is not None and not example.sure:
        return [*examined[:-1], *_with_larger_deviation(examined, cases, conditions, quick=quick), examined[-1]]
    return examined


def _in_probe(
    case: Case, examination: Examination, check: Check, conditions: Conditions
) -> tuple[Case, Examination] | None:
    """Return a case of an engine that shows the cause of a refutation, with its examination, to report for ``case``.

    The case is the engine's ``probe``, a program made to tell wrong rules apart. ``examination`` is the refutation of
    ``case`` by ``check``; ``conditions`` are the settings of the check. Returns None in these cases:

    * The refutation itself states its cause with certainty, or compares no laws.
    * ``check`` does not refute the probe with a certain cause.
    """
    program, example = case.situation, examination.counterexample
    if not isinstance(program, EngineProgram) or program.probe is None or example is None or example.sure:
        return None
    if not conditions.explained or "tv" not in examination.figures:  # only a difference of laws has a certain cause
        return None
    few = conditions._replace(runs=PATHS_OF_PROBE, jobs=1)
    with suppress(Exception):  # the refutation stands, whatever another case raises
        probe = program.probe()
        if enumerated(probe, few).missing:
            return None  # too many paths
        for other in check.cases(case.subject.with_programs((probe,))):
            if isinstance(other.situation, EngineProgram):
                result = _examine(other, few, quick=True)
                if isinstance(result, Examination) and result.counterexample is not None and result.counterexample.sure:
                    return other, result
    return None


def _with_cause(
    examined: Sequence[tuple[Case, Examination]], cases: Iterable[Case], conditions: Conditions, *, quick: bool
) -> list[tuple[Case, Examination]]:
    """Search other cases of an engine for a refuted one whose examination shows the cause.

    Return a list with this case and its examination; [] if there is none.

    * ``examined``: The examined cases of the check with their examinations; only the last is refuted, and it shows no
      cause.
    * ``cases``: All cases that the check may examine; at most ``OTHERS_FOR_CAUSE`` of them are tried.
    * ``conditions``: The settings of the check.
    * ``quick``: Whether a case with many runs is skipped.
    """
    others = (case for case in cases if isinstance(case.situation, EngineProgram) and case.situation.split is None)
    for case, examination in _refuted_others(examined, others, OTHERS_FOR_CAUSE, conditions, quick=quick):
        if not _lacks_cause(examination):
            return [(case, examination)]
    return []


def _with_larger_deviation(
    examined: Sequence[tuple[Case, Examination]], cases: Iterable[Case], conditions: Conditions, *, quick: bool
) -> list[tuple[Case, Examination]]:
    """Search for the refuted case that shows its cause with certainty, or else for the one with the largest deviation.

    A deviation must be far larger than that of the last of ``examined``, which is refuted. Return a list with this case
    and its examination; [] if there is none. The other parameters are as in ``_with_cause``.
    """
    bare = conditions._replace(explained=False)
    others = list(_refuted_others(examined, cases, OTHERS_IF_SMALL, bare, quick=quick))
    others.sort(key=lambda item: -item[1].figures.get("tv", 0.0))
    clearest = [case for case, _ in others[:OTHERS_EXPLAINED]]
    best, least = list[tuple[Case, Examination]](), LARGER * examined[-1][1].figures["tv"]
    for case, examination in _refuted_others(examined, clearest, OTHERS_EXPLAINED, conditions, quick=quick):
        example = examination.counterexample
        if example is not None and example.sure:
            return [(case, examination)]
        if not best and examination.figures.get("tv", 0.0) > least and not _lacks_cause(examination):
            best = [(case, examination)]
    return best


def _refuted_others(
    examined: Sequence[tuple[Case, Examination]],
    cases: Iterable[Case],
    most: int,
    conditions: Conditions,
    *,
    quick: bool,
) -> Iterator[tuple[Case, Examination]]:
    """Yield the refuted cases of ``cases`` with their examinations among the first ``most`` not in ``examined``."""
    known = {name_of_case(case) for case, _ in examined}
    for case in islice((case for case in cases if name_of_case(case) not in known), most):
        examination: Any = None
        few = conditions._replace(complete_within=first_runs(case, conditions.runs) if quick else None)
        with suppress(Exception):  # the refutation stands, whatever another case raises
            examination = _examine(case, few, quick=quick)
        if isinstance(examination, Examination) and examination.failed:
            yield case, examination


def _examine(case: Case, conditions: Conditions, *, quick: bool) -> Examination | _NotExamined:
    """Return the examination of a case, or the reason why there is none.

    With ``quick``, a case with too many runs is skipped and raises no error. ``conditions`` are the settings of the
    check, with the limit of runs for this case.
    """
    try:
        if beyond_reach(case):
            return _NotExamined.OUT_OF_REACH
        if quick:
            _check_runs_without(case, conditions.run_limit)
        examination = case.examine(conditions)
    except BeyondReach:
        return _NotExamined.OUT_OF_REACH
    except NothingAllowed:
        return _NotExamined.NOTHING_ALLOWED
    except (EnumerationTooLarge, NeedsValue) as reason:
        if quick and isinstance(reason, EnumerationTooLarge):
            return _NotExamined.OUT_OF_RUNS
        if may_be_refused(case):
            return _NotExamined.OUT_OF_REACH
        raise
    return _NotExamined.OUT_OF_RUNS if quick and examination.out_of_runs else examination


def _check_runs_without(case: Case, most: int) -> None:
    """Raise ``EnumerationTooLarge`` if the engine's call without speculation has far more paths than ``most``.

    Its law is the expected one, and has more paths than a case may have if it draws more than a token at each position.
    """
    without = case.situation.plain if isinstance(case.situation, EngineProgram) else None
    if without is not None and has_far_more_paths(without, MOST_WITHOUT * most):
        raise EnumerationTooLarge(f"the call without speculation has more than {MOST_WITHOUT * most} paths")


def _words_of(case: Case) -> str:
    """Return the name of a case for a report: subject options and scenario, or the name of its program or setting."""
    return ", ".join(filter(None, name_of_case(case)))


def _judge(subject: Subject, check: Check, examined: list[tuple[Case, Examination]], conditions: Conditions) -> Verdict:
    figures = _merged([examination.figures for _, examination in examined])
    figures["cases"] = len(examined)
    figures["rational"] = all(examination.rational for _, examination in examined)
    failures = [(case, item) for case, item in examined if item.failed]
    failed = min(failures, key=lambda failure: _lacks_cause(failure[1])) if failures else None
    shows_nothing = all(item.is_empty for _, item in examined)
    undecided = [item for _, item in examined if item.unknown and (shows_nothing or not item.is_empty)]
    unknown = max(undecided, key=lambda item: item.figures.get("tv", 0.0), default=None)
    if failed:
        case, item = failed
        again = identifier_of(case, check, conditions)
        verdict = verdict_of(subject.name, check, Status.REFUTED, item.statement)
        figures["tv"] = item.figures.get("tv", 0.0)
        figures["rational"] = item.rational
        example = item.counterexample._replace(again=again) if item.counterexample else None
        return verdict._replace(counterexample=example, figures=figures)
    if unknown:
        fewer = _fewer(subject) if unknown.out_of_runs else ""
        return verdict_of(subject.name, check, Status.UNKNOWN, f"{unknown.statement}{fewer}")._replace(figures=figures)
    if not examined:
        return verdict_of(subject.name, check, Status.UNKNOWN, "no case applies, so nothing was examined")
    status = Status.DECLARED_BIAS if figures.get("bias") else Status.HOLDS
    shown = max(reversed(examined), key=lambda item: item[1].figures.get("draws", 0))[1]
    statement = "; ".join((shown.statement, *edge_lines(figures.get("edges", ()))))
    return verdict_of(subject.name, check, status, statement)._replace(figures=figures)


def not_applicable(subject: Subject, check: Check, refused: str = "") -> Verdict | None:
    """Return the verdict NOT_APPLICABLE if a check does not apply to a subject; None if it applies.

    ``refused`` is the reason why the exact checks of the subject cannot run, "" if they can.
    """
    reason = check.obstacle(subject) or refused or None
    if reason is None and check.claim is not None and check.claim not in implied(subject.claims):
        reason = f"it does not claim to be {check.claim.value}"
    return None if reason is None else verdict_of(subject.name, check, Status.NOT_APPLICABLE, reason)


def _samples(subject: Subject, check: Check) -> bool:
    """Return whether a check samples an engine program of the subject."""
    return bool(subject.programs) and check.evidence is Evidence.STATISTICAL and not_applicable(subject, check) is None


def implied(claims: frozenset[Claim]) -> frozenset[Claim]:
    """Return the claims with their consequences: LOSSLESS implies GREEDY and SUPPORTED."""
    return claims | {Claim.GREEDY, Claim.SUPPORTED} if Claim.LOSSLESS in claims else claims


def verdict_of(subject: str, check: Check, status: Status, statement: str) -> Verdict:
    """Return the verdict of ``check`` on ``subject`` with this status and statement, without figures."""
    claim = check.claim.value if check.claim else None
    return Verdict(subject, check.name, status, statement, claim, check.evidence)


def _merged(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    result = merged_figures(figures)
    above = {"noticed_above": "replays", "coupled_noticed_above": "coupled_runs"}
    return result | {name: noticed(result[runs]) for name, runs in above.items() if runs in result}
