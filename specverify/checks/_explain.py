"""Counterexamples in prose: the fault, the texts that tell it, and the heaviest paths that lead to the worst one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import accumulate
from typing import Any

from specverify.base.verdict import Counterexample
from specverify.checks._first_difference import CERTAIN, first_difference, text_fault
from specverify.checks._round_faults import fault_of_rounds
from specverify.checks._round_stories import rounds_of_path
from specverify.checks._traces import listed_tokens, round_around
from specverify.checks._trees import trees_of_run
from specverify.checks._wording import apart, short_row
from specverify.laws.draws import AMONG, BELOW, Decision, Replayed
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import Path, heaviest_paths, outcomes_of
from specverify.reference import Draws, LanguageModel, Pmf, Site, Task, Tokens
from specverify.subjects.processed import Processed
from specverify.subjects.subject import EngineProgram, InScenario, Trace

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
    difference, fault = first_difference(law, expected), fault_of_rounds(here)
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
    trace = program.trace(heaviest[0][1].choices) if program.trace and heaviest else None
    (wanted, most), *others = sorted(expected.items(), key=lambda item: -item[1])
    if trace is not None and not others and most >= CERTAIN:
        found = certain_counterexample(program, trace, wanted)
        if found is not None:
            return found
    difference = first_difference(law, expected, program.split, program.each)
    example = Counterexample(
        let=(described(program), *_rows(program.rows(worst))),
        then=then,
        because=tuple(f"{_story(path.decisions)}   contributes {_weight(weight)}" for weight, path in heaviest),
    )
    return example if difference is None else example._replace(fault=difference.fault, rows=difference.rows)


def certain_counterexample(program: EngineProgram, trace: Trace, wanted: Tokens) -> Counterexample | None:
    """Explain a wrong text where every token is certain: the two texts, the first token that differs, its round."""
    texts = program.split(wanted) if program.split else (wanted,)
    for index, (should, (prompt, does)) in enumerate(zip(texts, trace.texts, strict=True)):
        if should != does:
            named = f"{program.each} {index + 1}, " if len(texts) > 1 else ""
            lines = [f"prompt {listed_tokens(prompt)}", f"expected {listed_tokens(should)}", f"got {listed_tokens(does)}"]
            lines += [round_around(trace, index, should)]
            if len(texts) > 1:
                lines = [f"{program.each} {index + 1} of {len(texts)}", *lines]
            fault = named + text_fault(should, does)
            return Counterexample(
                let=(described(program),), then=fault, fault=fault, rows=tuple(filter(None, lines))
            )
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
    return (not trees and rounds_of_path(here, path.choices)) or "; ".join([*trees, _story(path.decisions)])


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
    parts, known = [], dict[Site, tuple[float, float]]()
    for decision in decisions:
        if decision.site[-2:-1] in {(BELOW,), (AMONG,)}:
            said = _compared(decision, known)
        else:
            said = _PHRASES.get(decision.site[0] if decision.site else None, _any_site)(decision)
        weight = decision.weights[decision.outcome]
        parts.append(said + (f" ({readable(weight)})" if weight != 1 else ""))
    return ", ".join(parts) or "without any draw"


def _compared(decision: Decision, known: dict[Site, tuple[float, float]]) -> str:
    """Say what a comparison found of a uniform, and keep in ``known`` the interval that it lies in from now on."""
    uniform, question = decision.site[:-2], decision.site[-2]
    low, high = known.get(uniform, (0.0, 1.0))
    edges = [low, *(low + (high - low) * share for share in accumulate(map(float, decision.weights)))]
    known[uniform] = edges[decision.outcome], edges[decision.outcome + 1]
    if question != BELOW:
        return _any_site(decision)
    found = f"{edges[1]:.6g} or more" if decision.outcome else f"below {edges[1]:.6g}"
    return f"{_place(decision)} draws {found}"


def _any_site(decision: Decision) -> str:
    return f"{_place(decision)} gives {decision.outcome}"


def _place(decision: Decision) -> str:
    call, *where = decision.site or ("a draw",)
    return f"{call or 'a draw'}{f' at {where[0]}' if where and where[0] != '' else ''}"


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
