"""The runs of an observed engine, recorded once and used by several checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import Conditions, ExaminedPart, Need, by
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.paths import outcomes_of, paths
from specverify.laws.rounding import Rounding
from specverify.reference import Draws, Tokens
from specverify.subjects.subject import EngineProgram, Forward, Observed, Watch

MOST_RUNS = 4000
"""The most observed runs of one engine at one setting; an observed run takes some ten milliseconds."""


class Run(NamedTuple):
    """One observed run of an engine.

    ``seen`` is its record. ``ends`` has each possible outcome with its probability: there are several if the program
    never reads the last token. ``rounding`` has the dtypes and lookups from which rounding errors are bounded.
    """

    seen: Observed
    ends: tuple[tuple[Tokens, float], ...]
    rounding: Rounding = Rounding()


class Seen(NamedTuple):
    """The recorded ``runs`` of an engine with speculation, and those without (``plain``).

    ``prompt`` is the text before the new tokens.
    """

    runs: tuple[Run, ...]
    plain: tuple[Run, ...]
    caches: Mapping[Tokens, tuple[Any, ...]]
    """Tokens -> the attention keys and values of these tokens, from the cache of a run without speculation."""
    prompt: Tokens


class Observable(NamedTuple):
    """An engine program whose runs can be recorded.

    ``watch`` opens the engine so that its forward passes, tokens and returned values are recorded.
    """

    program: EngineProgram
    watch: Watch


ExamineRuns = Callable[[Observable, Conditions], Examination]


NOT_OBSERVED = "its forward passes are not recorded while it runs"


def needs_recorded(field: str) -> tuple[Need, ...]:
    """Return the conditions on an engine's program: it has an observer, and the observer records ``field``.

    ``field`` is the name of a field of ``Observed``.
    """
    return (
        Need(lambda _, program: program.watch, NOT_OBSERVED),
        Need(lambda _, program: field in program.tells, f"its {field} are not reported"),
    )


def watched(field: str, examine: ExamineRuns, *needs: Need) -> ExaminedPart:
    """Return the part of a check that calls ``examine`` for each observed program.

    The observer must record ``field``, a field of ``Observed``, and the program must meet ``needs``.
    """

    def examined(program: EngineProgram, conditions: Conditions) -> Examination:
        assert program.watch is not None
        return examine(Observable(program, program.watch), conditions)

    return ExaminedPart(EngineProgram, by(examined), NOT_OBSERVED, (*needs, *needs_recorded(field)))


def seen_in(watch: Watch) -> Seen:
    """Return the recorded runs of the engine that ``watch`` opens.

    ``watch`` returns a context manager that yields the observed engine. Raises ``EnumerationTooLarge`` for more than
    ``MOST_RUNS`` runs.
    """
    seen = _seen_or_refusal(watch)
    if isinstance(seen, EnumerationTooLarge):
        raise seen
    return seen


@lru_cache(maxsize=32)
def _seen_or_refusal(watch: Watch) -> Seen | EnumerationTooLarge:
    """Return the recorded runs of the engine that ``watch`` opens, or the error for too many runs; cached."""
    with watch() as watched:
        try:
            runs, plain = _followed(watched.run), _followed(watched.plain)
        except EnumerationTooLarge as refusal:
            return refusal
        runs, plain = (with_drafts_told(each, watched.prompt) for each in (runs, plain))
        return Seen(runs, plain, _caches(watched.prompt, plain), watched.prompt)


def with_drafts_told(runs: Sequence[Run], prompt: Tokens) -> tuple[Run, ...]:
    """Return ``runs`` with passes whose first unknown token is a draft told apart from those where it is emitted.

    The question arises where a pass is fed all tokens that earlier passes processed, or the last of them, and one more.
    This token is a bonus, or a draft if there was no bonus or if the prompt was processed before. It is a draft if it
    differs in some run from the text of the run: passes after equal texts are of one kind. If it never differs, nothing
    is lost by taking it for an emitted token. ``prompt`` is the prompt of the runs.
    """
    asked = [(run, forward) for run in runs for forward in run.seen.forwards if forward.is_behind_all]
    drafted = {
        (prompt + new)[: forward.held + forward.again]
        for run, forward in asked
        for new, _ in run.ends
        if _differs_behind(forward, prompt + new)
    }

    def told(forward: Forward, tokens: Tokens) -> Forward:
        is_draft = forward.is_behind_all and tokens[: forward.held + forward.again] in drafted
        return forward._replace(again=forward.again - 1) if is_draft else forward

    def with_forwards(run: Run) -> Run:
        forwards = tuple(told(forward, prompt + run.ends[0][0]) for forward in run.seen.forwards)
        return run._replace(seen=run.seen._replace(forwards=forwards))

    return tuple(map(with_forwards, runs)) if drafted else tuple(runs)


def _differs_behind(forward: Forward, tokens: Tokens) -> bool:
    """Return whether the token that ``forward`` is fed behind known ones is not that of the text ``tokens``."""
    fed = forward.fed[forward.again : forward.again + 1]
    return bool(fed) and tokens[forward.held + forward.again :][:1] != fed


def examine_runs(
    fault: Callable[[Seen, Run, Observable], str | None],
    holds: str,
    returned: Callable[[Run, Observable], str] = lambda run, observable: "",
) -> ExamineRuns:
    """Return an examination that applies ``fault`` to every recorded run and reports the first fault.

    Args:
        fault: ``fault(seen, run, observable)`` describes what is wrong with a run, or returns None.
        holds: The sentence if no run has a fault.
        returned: ``returned(run, observable)`` names the wrong value that the engine returns beside the tokens, or
            returns "". It is called for the run with a fault.
    """

    def examine(observable: Observable, _: Conditions) -> Examination:
        seen = seen_in(observable.watch)
        figures = {"runs": len(seen.runs)}
        for run in seen.runs:
            result = fault(seen, run, observable)
            if result:
                where = f"a run that ends with new tokens {run.ends[0][0]}"
                return refuted(observable.program, result, where, figures)._replace(returned=returned(run, observable))
        return Examination(holds, rational=False, figures=figures)

    return examine


def refuted(program: EngineProgram, then: str, where: str, figures: Mapping[str, Any], fault: str = "") -> Examination:
    """Return a refutation of a program; ``then`` is the sentence about the fault.

    ``where`` describes the run, and ``figures`` are those of the examination. ``fault`` is the first sentence of the
    message, if it can name the wrong token.
    """
    example = Counterexample(let=(f"setting {program.name}", where), then=then, fault=fault)
    statement = f"{program.name}: {then}"
    return Examination(statement, failed=True, rational=False, counterexample=example, figures=figures)


def _followed(program: Callable[[Draws], Observed]) -> tuple[Run, ...]:
    runs: list[Run] = []
    for path in paths(program):
        if len(runs) == MOST_RUNS:
            raise EnumerationTooLarge(f"it has more than {MOST_RUNS} runs, the most that are looked into")
        ends = outcomes_of(path.outcome.new)
        runs.append(
            Run(path.outcome, tuple((tuple(new), float(path.weight * share)) for new, share in ends), path.rounding)
        )
    return tuple(runs)


def _caches(prompt: Tokens, plain: tuple[Run, ...]) -> dict[Tokens, tuple[Any, ...]]:
    return {
        (prompt + run.ends[0][0])[: forward.held]: forward.entries
        for run in plain
        for forward in run.seen.forwards
        if forward.entries
    }
