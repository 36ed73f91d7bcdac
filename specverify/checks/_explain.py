"""Counterexamples in prose: the fault, the texts that tell it, and the heaviest paths that lead to the worst one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from specverify.base.verdict import Counterexample
from specverify.checks._engine_stories import Drawn, draws_of, told, with_pmfs
from specverify.checks._first_difference import CERTAIN, END, Difference, first_difference, text_fault
from specverify.checks._round_faults import fault_of_rounds
from specverify.checks._round_stories import rounds_of_path
from specverify.checks._token_names import name_of_token
from specverify.checks._traces import listed_tokens, round_around
from specverify.checks._trees import trees_of_run
from specverify.checks._wording import apart, short, short_row
from specverify.laws.draws import Decision, Replayed
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import Path, heaviest_paths, outcomes_of
from specverify.reference import Draws, LanguageModel, Pmf, Task, Tokens
from specverify.subjects.processed import Processed
from specverify.subjects.subject import EngineProgram, InScenario, Trace

Found = TypeVar("Found")
SHOWN = 3
"""How many paths a counterexample tells."""
MOST_PATHS = 20_000
"""How many paths are searched for the heaviest ones."""

_PHRASES: dict[object, Callable[[Decision], str]] = {
    "draft": lambda d: f"draft {d.outcome}",
    "accept": lambda d: "accepted" if d.outcome == 0 else "rejected",
    "residual": lambda d: f"resampled {d.outcome}",
    "bonus": lambda d: f"bonus {d.outcome}",
    "target": lambda d: f"target draws {d.outcome}",
}


def law_counterexample(here: InScenario, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> Counterexample:
    """Explain where ``law`` puts most probability beyond ``expected``, and what in the rounds does it."""
    worst, then = _most_beyond(law, expected)
    example = outcome_counterexample(here, lambda outcome: outcome == worst, then)
    difference, fault = first_difference(law, expected), or_none(lambda: fault_of_rounds(here))
    if difference is None:
        return example if fault is None else example._replace(fault=fault.sentence)
    return example._replace(fault=fault.sentence if fault else difference.fault, rows=difference.rows)


def program_counterexample(
    program: EngineProgram, run: Callable[[Draws], Any], law: Mapping[Any, Any], expected: Mapping[Any, Any]
) -> Counterexample:
    """Explain the same for an engine: the calls of its library are the decisions."""
    worst, then = _most_beyond(law, expected)

    def share(end: Any) -> Any:
        return sum(part for outcome, part in outcomes_of(end) if outcome == worst)

    heaviest = heaviest_paths(run, share, SHOWN, MOST_PATHS)
    traced = program.trace
    trace = or_none(lambda: traced(heaviest[0][1].choices)) if traced and heaviest else None
    (wanted, most), *others = sorted(expected.items(), key=lambda item: -item[1])
    if trace is not None and not others and most >= CERTAIN:
        found = certain_counterexample(program, trace, wanted)
        if found is not None:
            return found
    difference = first_difference(law, expected, program.split, program.each)
    size, cells, rows = _vocabulary(expected), dict[tuple[int, ...], Any](), program.rows(worst)
    drawn = [with_pmfs(run, draws_of(path.decisions), size, cells) for _, path in heaviest]
    stories = zip(heaviest, drawn, strict=True)
    example = Counterexample(
        let=(described(program), *_rows(rows)),
        then=then,
        because=tuple(f"{told(items)}   contributes {_weight(weight)}" for (weight, _), items in stories),
    )
    if difference is None:
        return example
    named = _token_named(difference, rows, drawn, size)
    return example._replace(fault=f"{named}: {difference.fault}" if named else difference.fault, rows=difference.rows)


def _token_named(
    difference: Difference, rows: Mapping[Tokens, Mapping[str, Pmf]], drawn: Sequence[Sequence[Drawn]], size: int
) -> str:
    """Return why the first token that differs has the law that it has, where a computation tells, or nothing.

    q is the draft model's row, where models were given, else what the first draw of all was made from.
    """
    seen, p = ([law.get(token, 0) for token in range(size)] for law in (difference.seen, difference.expected))
    if not size or END in difference.seen or not any(seen):
        return ""
    for text, row in rows.items():
        if difference.before == text[len(text) - len(difference.before) :] and _is_row(row["p"], p):
            return name_of_token(seen, p, row["q"].tolist())
    firsts = [items[0].pmf for items in drawn if items and items[0].pmf]
    if not difference.before and firsts:
        return name_of_token(seen, p, firsts[0])
    for items in drawn:
        at = next((item.place for item in items if len(item.pmf) == size and _is_row(np.array(item.pmf), seen)), "")
        if at:
            said = f"new token {len(difference.before) + 1} is drawn from {short_row(seen)} at {at}"
            return f"{said}, expected p = {short_row(p)}"
    return ""


def _is_row(row: Pmf, other: Sequence[Any]) -> bool:
    return len(row) == len(other) and all(abs(a - b) < 1e-9 for a, b in zip(row.tolist(), other, strict=True))


def _vocabulary(law: Mapping[Any, Any]) -> int:
    """Return how many tokens the texts of a law are made of; 0 for pairs of texts."""
    tokens = {token for text in law for token in text}
    return max(tokens) + 1 if tokens and all(isinstance(token, int) for token in tokens) else 0


def certain_counterexample(program: EngineProgram, trace: Trace, wanted: Tokens) -> Counterexample | None:
    """Explain a wrong text where every token is certain: the two texts, the first token that differs, its round."""
    texts = program.split(wanted) if program.split else (wanted,)
    for index, (should, (prompt, does)) in enumerate(zip(texts, trace.texts, strict=True)):
        if should != does:
            named = f"{program.each} {index + 1}, " if len(texts) > 1 else ""
            lines = [
                f"prompt {listed_tokens(prompt)}",
                f"expected {listed_tokens(should)}",
                f"got {listed_tokens(does)}",
            ]
            lines += [round_around(trace, index, should)]
            if len(texts) > 1:
                lines = [f"{program.each} {index + 1} of {len(texts)}", *lines]
            fault = named + text_fault(should, does)
            return Counterexample(let=(described(program),), then=fault, fault=fault, rows=tuple(filter(None, lines)))
    return None


def _most_beyond(law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> tuple[Any, str]:
    """Return the outcome that ``law`` makes likelier than ``expected`` by most, and the sentence about it."""
    worst = max(law.keys() | expected.keys(), key=lambda key: (law.get(key, 0) - expected.get(key, 0), key))
    does, should = apart(law.get(worst, 0), expected.get(worst, 0))
    return worst, f"the new tokens should be {worst} with probability {should}, but are with {does}"


def outcome_counterexample(here: InScenario, offends: Callable[[Tokens], bool], then: str) -> Counterexample:
    """Explain ``then`` by the three heaviest paths to an outcome for which ``offends`` is true."""
    seen: dict[Tokens, dict[str, Pmf]] = {}
    program = whole_run(here.variant.build(_recording(here.task, seen)), here.prompt)
    heaviest = [path for _, path in heaviest_paths(program, offends, SHOWN, MOST_PATHS)]
    seen.clear()
    for path in heaviest:
        program(Replayed(path.choices))
    return Counterexample(
        let=(described(here), *_rows(seen)),
        then=then,
        because=tuple(f"{_told(here, path)}   contributes {_weight(path.weight)}" for path in heaviest),
    )


def _told(here: InScenario, path: Path[Any]) -> str:
    """Return a path round by round, or where that cannot be, its trees and its decisions."""
    trees = trees_of_run(here.decoder, here.prompt, path.choices)
    rounds = None if trees else or_none(lambda: rounds_of_path(here, path.choices))
    return rounds or "; ".join([*trees, _story(path.decisions)])


def or_none(explain: Callable[[], Found]) -> Found | None:
    """Return what ``explain`` finds, or None where the program does not go through it: the refutation stands anyway."""
    try:
        return explain()
    except Exception:  # noqa: BLE001 - an explanation runs the program once more, and that may raise anything
        return None


def described(here: InScenario | EngineProgram) -> str:
    """Return what is looked at in one line: vocabulary, options, prompt, limits; or the name of a setting."""
    if isinstance(here, EngineProgram):
        return f"setting {here.name}"
    scenario = here.scenario
    tokens = ", ".join(str(token) for token in range(scenario.vocabulary))
    line = f"vocabulary {{{tokens}}}, {here.variant.label}, prompt {scenario.prompt}, horizon {scenario.horizon}"
    return line + (f", end-of-sequence {scenario.eos}" if scenario.eos else "")


def readable(value: Any) -> str:
    """Return a probability for a reader: a rational as it is, a float to six digits."""
    return str(value) if isinstance(value, (Fraction, int)) else f"{value:.6g}"


def _weight(value: Any) -> str:
    return str(value) if isinstance(value, (Fraction, int)) else f"{value:.3g}"


def shown_pmf(pmf: Pmf) -> str:
    """Return a pmf as ``(1/2, 1/2)``."""
    return short_row(pmf.tolist())


def _story(decisions: tuple[Decision, ...]) -> str:
    """Return the decisions of a path: those of our own decoder by their names, others as draws and coins."""
    parts, rest = [], list[Decision]()

    def told_rest() -> list[str]:
        said = [told(draws_of(rest))] if any(decision.weights[decision.outcome] != 1 for decision in rest) else []
        rest.clear()
        return said

    for decision in decisions:
        name = decision.site[0] if decision.site else None
        if name not in _PHRASES:
            rest.append(decision)
            continue
        parts += told_rest()
        weight = decision.weights[decision.outcome]
        parts.append(_PHRASES[name](decision) + (f" ({short(weight)})" if weight != 1 else ""))
    return ", ".join([*parts, *told_rest()]) or "without any draw"


def _rows(seen: Mapping[Tokens, Mapping[str, Pmf]]) -> list[str]:
    ordered = sorted(seen.items(), key=lambda item: (len(item[0]), item[0]))
    return [
        f"after {tokens}: " + "   ".join(f"{letter} = {shown_pmf(rows[letter])}" for letter in sorted(rows))
        for tokens, rows in ordered
    ]


def _recording(task: Task, seen: dict[Tokens, dict[str, Pmf]]) -> Task:
    def record(model: LanguageModel, letter: str) -> LanguageModel:
        def answer(tokens: Tokens) -> Pmf:
            pmf = model(tokens)
            seen.setdefault(tokens, {})[letter] = pmf
            return pmf

        return model._replace(pmfs=answer) if isinstance(model, Processed) else answer

    return task._replace(target=record(task.target, "p"), draft=None if task.draft is None else record(task.draft, "q"))
