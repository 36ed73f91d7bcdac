"""The kill matrix: every planted bug, and every right subject that looks wrong, under every check and peer statistic.

A check kills a mutant (planted bug) by refuting it. Every check examines every third of its scenarios (models, prompt,
horizon), with fewer samples. If the check that a mutant names as its killer does not refute there, it examines all
scenarios. The matrix also records the checks that hold on a mutant or do not apply to it. The control (the subject
without the bug) is judged in the scenarios that were needed to kill the mutant. Peer statistics are those by which
other projects test their samplers; they judge the mutants that those tests can express.

If only the named checks are run, the matrix answers in a fraction of the time whether every bug is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from specverify.base.parallel import in_parallel
from specverify.base.verdict import Status, Verdict
from specverify.checks import CHECKS, Check, Conditions, check_named, checks_named
from specverify.checks.forgetting import forget_laws
from specverify.mutants import Mutant, mutants, suspects
from specverify.run.verify import Checklist, run_check, verify_subject, warmed_up
from specverify.subjects.subject import Method, SampledPair, SampledSetting, Subject
from specverify.trust.peers import PEERS, PeerStatistic, judged

KILLED, SURVIVED, NOT_EXPRESSED, NOT_RUN = "killed", "survived", "not expressed", "not run"
REFUSES_BOTH = "refuses both"
"""Result if a peer's test also refutes the subject without the bug: the test expects p, and the subject declares a
bias."""
DETECT = 0.4
"""Total variation that the samples of one check on one mutant must detect. A bug that only sampling kills must be at
least this large."""
DETECT_DIVIDED = 0.05
"""The same for samples that are divided among the paths of a subject, where many samples cost little."""
WIDEST_INTERCEPTED = 100
"""Largest vocabulary for peers' tests on intercepted code: a round takes milliseconds, and larger tests need tens of
thousands of rounds."""
APART, PATHS = 3, 250
"""Limits of the checks other than the named one: they examine every third scenario, and in it every third text at
boundary draws; the check of draws follows at most 250 paths."""
REFUSED_AS_CORRECT = frozenset({Status.REFUTED, Status.UNUSABLE})
_USUAL = Conditions()


class MatrixCell(NamedTuple):
    """The result of one check on one mutant.

    ``tv`` is the total variation of a refutation, or None. ``runs`` is the number of runs or samples, and ``seconds``
    the duration.
    """

    check: str
    status: str
    """``killed`` if the check refutes the mutant, ``survived`` if it holds on it, else the status of the verdict."""
    tv: float | None
    runs: int
    seconds: float


class MutantRow(NamedTuple):
    """One mutant with the result of each check, and of each statistic of another project."""

    name: str
    summary: str
    category: str
    citation: str
    killed_by: str
    cells: tuple[MatrixCell, ...]
    control: str
    """Verdict of the named check on the subject without the bug."""
    peers: tuple[tuple[str, str], ...] = ()

    @property
    def as_expected(self) -> bool:
        """Return whether the check that the mutant names refutes the mutant, and holds on its control.

        A control that has the law it declares, although this is not the target's, counts as holding.
        """
        return self.killed_by in self.killers and self.control in {Status.HOLDS, Status.DECLARED_BIAS}

    @property
    def killers(self) -> tuple[str, ...]:
        """Return the names of the checks that refute the mutant."""
        return tuple(cell.check for cell in self.cells if cell.status == KILLED)


class ControlRow(NamedTuple):
    """A right subject that looks wrong, and the checks that refute it or find it unusable (``accused_by``): none may.

    ``held`` are the checks that hold on it. ``citation`` names the report in which it was taken for a bug.
    """

    name: str
    summary: str
    citation: str
    accused_by: tuple[str, ...]
    held: tuple[str, ...]
    applied: int
    """Number of checks that apply to the control."""

    @property
    def as_expected(self) -> bool:
        """Return whether no check accuses the subject, and at least one check holds on it if any applies."""
        return not self.accused_by and (bool(self.held) or not self.applied)


class KillMatrix(NamedTuple):
    """The results of all mutants and controls of one run."""

    mutants: tuple[MutantRow, ...]
    controls: tuple[ControlRow, ...]
    seed: int = 0
    """Seed of all sampling."""


def kill_matrix(
    chosen: Sequence[str],
    checks: Sequence[Check] | None = CHECKS,
    conditions: Conditions = _USUAL,
    peers: bool = False,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda name: None,
) -> KillMatrix:
    """Return the matrix of the mutants named in ``chosen`` and of every control, on ``jobs`` processes.

    ``checks`` examine each of them under ``conditions``; if None, the check that a mutant names examines it, and every
    check examines every third scenario of each control. ``peers`` adds the verdicts of other projects' statistics.
    ``progress`` is called with the name of each finished row.
    """
    names = None if checks is None else _names(checks)
    suspected, accusing = [item.name for item in suspects()], names or _names(CHECKS)
    shared = _sharing(tuple(chosen))
    works: list[Callable[[], Any]] = [partial(_without_control, name, names, conditions, peers) for name in chosen]
    works += [partial(control_row, name, accusing, conditions, every=checks is not None) for name in suspected]
    works += [partial(_control_status, name, conditions) for name in dict.fromkeys(shared)]
    works = [partial(_and_forgotten, work) for work in works]
    told = [*chosen, *suspected, *(f"{name} without the bug" for name in dict.fromkeys(shared))]
    done = list(in_parallel(works, jobs, lambda index: progress(told[index])))
    number = len(chosen) + len(suspected)
    statuses = dict(zip(dict.fromkeys(shared), done[number:], strict=True))
    rows = [row if row.control else row._replace(control=statuses[one]) for row, one in zip(done, shared, strict=False)]
    return KillMatrix(tuple(rows), tuple(done[len(chosen) : number]), conditions.seed)


def number_of_works(chosen: Sequence[str]) -> int:
    """Return how many times ``kill_matrix`` calls ``progress``, given the names ``chosen`` of the mutants."""
    return len(chosen) + len(suspects()) + len(set(_sharing(tuple(chosen))))


def mutant_row(name: str, checks: Sequence[str] | None, conditions: Conditions, peers: bool = False) -> MutantRow:
    """Return the result of every check in ``checks`` on the mutant ``name``, and the result on its control.

    ``checks`` are names of checks; if None, the one that the mutant names. ``conditions`` are their settings. ``peers``
    adds the verdicts of other projects' statistics.
    """
    row = _without_control(name, checks, conditions, peers)
    return row if row.control else row._replace(control=_control_status(name, conditions))


def _names(checks: Sequence[Check]) -> tuple[str, ...]:
    return tuple(check.name for check in checks)


def _and_forgotten(work: Callable[[], Any]) -> Any:
    result = work()
    forget_laws()
    return result


def _without_control(name: str, checks: Sequence[str] | None, conditions: Conditions, peers: bool) -> MutantRow:
    """Return the results of the mutant ``name``; the result of its control may be left out.

    The control is judged only if the check that the mutant names needed all scenarios; otherwise the field ``control``
    is "". ``checks`` are names of checks; if None, the one that the mutant names. ``conditions`` are their settings,
    and ``peers`` adds the verdicts of other projects' statistics.
    """
    mutant = _mutant(name)
    checklist = _checklist((mutant.killed_by,) if checks is None else checks, conditions)
    subject = _thinned(mutant.open())
    killer = check_named(mutant.killed_by)
    some = list(verify_subject(*_in_fewer(subject, checklist)))
    in_all = [verdict.check == killer.name and verdict.status is not Status.REFUTED for verdict in some]
    cells = tuple(
        _cell(run_check(warmed_up(subject), killer, checklist) if every else verdict)
        for verdict, every in zip(some, in_all, strict=True)
    )
    outside = tuple((peer.name, _peer(peer, mutant, subject)) for peer in PEERS) if peers else ()
    control = _control_status(name, conditions, every=True) if any(in_all) else ""
    return MutantRow(
        mutant.name, mutant.summary, mutant.category, mutant.citation, mutant.killed_by, cells, control, outside
    )


def _control_status(name: str, conditions: Conditions, every: bool = False) -> str:
    """Return the result on the control of the mutant ``name``, by the check that the mutant names as its killer.

    The control is the subject without the bug, and a killer is a check that must refute the mutant. The check examines
    every scenario if ``every``, else every third. ``conditions`` are its settings.
    """
    mutant = _mutant(name)
    killer, subject = check_named(mutant.killed_by), _thinned(mutant.control())
    checklist = _checklist((killer.name,), conditions)
    return run_check(subject if every else _in_some(subject), killer, checklist).status.value


@lru_cache(maxsize=1)
def _sharing(chosen: tuple[str, ...]) -> list[str]:
    """Return, for each mutant of ``chosen``, the name of the mutant whose control result it shares.

    Mutants whose controls are equal and that name the same check as killer share the result of the first of them.
    """
    first: dict[Hashable, str] = {}
    return [first.setdefault(_made_of((_mutant(name).control(), _mutant(name).killed_by)), name) for name in chosen]


def _mutant(name: str) -> Mutant:
    return next(item for item in mutants() if item.name == name)


def _made_of(value: Any) -> Hashable:
    """Return a hashable description of ``value``, equal for two values that were built in the same way.

    A value whose content cannot be read equals no other value.
    """
    if isinstance(value, partial):
        return partial, _made_of((value.func, value.args, value.keywords))
    if isinstance(value, Mapping):
        return type(value), frozenset((name, _made_of(item)) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        return type(value), *map(_made_of, value)
    return (type(value), value) if isinstance(value, Hashable) else object()


def control_row(name: str, checks: Sequence[str], conditions: Conditions, every: bool = True) -> ControlRow:
    """Run the checks named in ``checks`` on the right subject ``name``; return which hold and which accuse it.

    A check accuses a subject that it refutes or finds unusable. ``conditions`` are the settings of the checks, which
    examine every scenario if ``every``, else as few as on a mutant that does not name them.
    """
    control = next(item for item in suspects() if item.name == name)
    subject, checklist = _thinned(control.open()), _checklist(checks, conditions)
    verdicts = list(verify_subject(subject, checklist) if every else verify_subject(*_in_fewer(subject, checklist)))
    return ControlRow(
        control.name,
        control.summary,
        control.citation,
        tuple(verdict.check for verdict in verdicts if verdict.status in REFUSED_AS_CORRECT),
        tuple(verdict.check for verdict in verdicts if verdict.status is Status.HOLDS),
        sum(verdict.status is not Status.NOT_APPLICABLE for verdict in verdicts),
    )


def lonely_killers(matrix: KillMatrix) -> dict[str, tuple[str, ...]]:
    """Return check -> the mutants of ``matrix`` that only this check kills, for each check of ``CHECKS``."""
    alone: dict[str, list[str]] = {check.name: [] for check in CHECKS}
    for row in matrix.mutants:
        if len(row.killers) == 1:
            alone[row.killers[0]].append(row.name)
    return {check: tuple(names) for check, names in alone.items()}


def _in_some(subject: Subject) -> Subject:
    return subject._replace(scenarios=subject.scenarios[::APART])


def _in_fewer(subject: Subject, checklist: Checklist) -> tuple[Subject, Checklist]:
    """Return ``subject`` with every third scenario, and ``checklist`` with fewer texts and paths in each of them."""
    return _in_some(subject), checklist._replace(conditions=checklist.conditions._replace(paths=PATHS, apart=APART))


def _thinned(subject: Subject) -> Subject:
    first = tuple(
        setting._replace(detect=DETECT_DIVIDED, first_look=DETECT, confirmation_factor=1)
        if setting.method is Method.DIVIDED
        else setting._replace(detect=DETECT, first_look=None, confirmation_factor=1)
        for setting in subject.settings[:1]
    )
    pairs = tuple(pair._replace(detect=DETECT) for pair in subject.pairs)
    return subject.with_situations(SampledSetting, first).with_situations(SampledPair, pairs)


def _checklist(checks: Sequence[str], conditions: Conditions) -> Checklist:
    return Checklist(checks_named(checks), conditions._replace(edge=0.0, explained=False), seconds=300.0)


def _cell(verdict: Verdict) -> MatrixCell:
    tv = verdict.figures.get("tv", verdict.figures.get("tv_observed"))
    killed = verdict.status is Status.REFUTED
    return MatrixCell(
        verdict.check,
        KILLED if killed else SURVIVED if verdict.status is Status.HOLDS else verdict.status.value,
        float(tv) if killed and tv else None,
        int(verdict.figures.get("runs", verdict.figures.get("samples", 0))),
        verdict.seconds,
    )


def _peer(peer: PeerStatistic, mutant: Mutant, subject: Subject) -> str:
    if mutant.category not in peer.expresses or not subject.variants:
        return NOT_EXPRESSED
    if subject.intercepted and peer.vocabulary > WIDEST_INTERCEPTED:
        return NOT_RUN
    try:
        if judged(peer, subject):
            return SURVIVED
        return KILLED if _accepts_control(peer, mutant) else REFUSES_BOTH
    except TimeoutError:
        return NOT_RUN
    except Exception as error:  # noqa: BLE001 - whatever a bug raises at this size, the statistic said nothing
        return f"{NOT_EXPRESSED} ({type(error).__name__})"


_ACCEPTED: dict[Hashable, bool] = {}
"""Cache: result of a peer's test on a subject without the bug, which many bugs share."""


def _accepts_control(peer: PeerStatistic, mutant: Mutant) -> bool:
    control = mutant.control()
    made = peer, _made_of(control)
    if made not in _ACCEPTED:
        _ACCEPTED[made] = judged(peer, control)
    return _ACCEPTED[made]
