"""Checks of a drafter: its tokens are drawn from the reported q, and are no more than requested.

Speculative sampling is lossless only if every token was drawn from the q in its acceptance ratio (2211.17192, Theorem
1). Whether a draft continues may depend on everything known before a token is drawn, but not on that token: dropping a
token after drawing it changes the law of the remaining ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart, by
from specverify.checks.compared_laws import compare_laws, enumerated
from specverify.checks.explaining.one_number_rules import powered
from specverify.checks.graded_edges import WIDEST, at_an_edge
from specverify.checks.program_is_its_draws import CHECK as PROGRAM_IS_ITS_DRAWS
from specverify.laws.law import Law
from specverify.laws.rounding import FLOAT32, of_decision
from specverify.reference import LanguageModel
from specverify.subjects.proposed import Proposed, reports
from specverify.subjects.subject import EngineProgram

History = tuple[tuple[int, ...], tuple[tuple[float, ...], ...]]
"""The tokens before a draft, and the reported rows of q up to its own."""


def checks_of_drafter(draft: LanguageModel | None) -> tuple[Check, ...]:
    """Return the checks of a drafter: of the reported q, of the number of drafts, and of hidden randomness.

    If ``draft`` is not None, the reported q is also compared with the pmfs of this model.
    """
    own = (
        _check("drafts_follow_q", "each draft is drawn from the q that is reported for it", _compare_drafts_with_q),
        _check("drafts_are_supported", "q is a pmf, and gives each draft a positive probability", _supported),
        _check("gamma_is_respected", "no more than gamma tokens are drafted", _respected),
    )
    told = () if draft is None else (_check("q_is_the_models", "q is the draft model's", partial(_the_models, draft)),)
    return (PROGRAM_IS_ITS_DRAWS, *own, *told)


Examine = Callable[[EngineProgram, Law, Conditions], Examination]


def _check(name: str, summary: str, examine: Examine) -> Check:
    def examined(program: EngineProgram, conditions: Conditions) -> Examination:
        law = enumerated(program, conditions)
        if law.missing:
            said = f"{program.name}: more than {law.runs} drafts are possible, expected a smaller gamma or vocabulary"
            return Examination(said, unknown=True, rational=False)
        return examine(program, law, conditions)

    return Check(name, summary, None, Evidence.EXACT, (ExaminedPart(EngineProgram, by(examined), "it drafts nothing"),))


def _compare_drafts_with_q(program: EngineProgram, law: Law, _: Conditions) -> Examination:
    """Compare, position by position, the law of the drafted token with the q reported for it.

    ``law`` is the enumerated law of the drafter's answers. The first position that is refuted or unknown decides.
    ``program`` runs the drafter.
    """
    longest = max((len(draft.tokens) for draft in law.probabilities), default=0)
    result = None
    for place in range(longest):
        seen, expected = _laws_at_position(law, place)
        result = compare_laws(law._replace(probabilities=seen), expected, "q")
        if result.refuted or result.unknown:
            where = f"draft {place + 1} {program.name}: {result.statement}"
            example = _off(program, seen, expected) if result.refuted else None
            return Examination(where, result.refuted, result.unknown, False, example, result.figures)
    figures = result.figures if result else {"runs": law.runs}
    return Examination("each draft is drawn from its q", rational=False, figures=figures)


def _laws_at_position(law: Law, place: int) -> tuple[dict[object, float], dict[object, float]]:
    """Return the enumerated and the expected law of one draft, as two mappings from outcome to probability.

    ``law`` is the enumerated law of all drafts of a round with their reported rows of q. ``place`` is the index of the
    draft from 0. An outcome is the pair of the drafts 0 to ``place`` and their rows of q, or None if the drafter makes
    fewer drafts. In the expected law, the drafts and rows before are as enumerated, and this draft is drawn from its
    row.
    """
    seen: defaultdict[object, float] = defaultdict(float)
    histories: defaultdict[History, float] = defaultdict(float)
    for draft, mass in law.probabilities.items():
        if len(draft.tokens) > place:
            rows = _rows(draft)[: place + 1]
            seen[draft.tokens[: place + 1], rows] += float(mass)
            histories[draft.tokens[:place], rows] += float(mass)
        else:
            seen[None] += float(mass)
    expected: dict[object, float] = {
        ((*before, token), rows): mass * share
        for (before, rows), mass in histories.items()
        for token, share in enumerate(rows[-1])
        if share > 0
    }
    if None in seen:
        expected[None] = seen[None]
    return dict(seen), expected


LEAST_OF_POWER = 3
"""Least number of different probabilities that a power must fit to be named; a power fits any two."""
NEAR = 1e-6


def _rows(draft: Proposed) -> tuple[tuple[float, ...], ...]:
    """Return the reported q of each draft; if the drafter reports no rows, the one-hot row of each draft."""
    if draft.rows is not None:
        return draft.rows
    size = max(draft.tokens, default=0) + 1
    return tuple(tuple(float(other == token) for other in range(size)) for token in draft.tokens)


def _off(program: EngineProgram, seen: dict[object, float], expected: dict[object, float]) -> Counterexample:
    worst = max(seen.keys() | expected.keys(), key=lambda key: seen.get(key, 0.0) - expected.get(key, 0.0))
    assert isinstance(worst, tuple)
    tokens, rows = worst
    said = f"the drafts should begin {tokens} with probability {expected.get(worst, 0.0):.6g}"
    history, q = tokens[:-1], rows[-1]
    masses = [seen.get(((*history, token), rows), 0.0) for token in range(len(q))]
    drawn = tuple(mass / sum(masses) for mass in masses) if sum(masses) > 0 else q
    behind = f" after {history}" if history else ""
    return Counterexample(
        (f"propose {program.name}", *(f"q of draft {place} = {_shown(row)}" for place, row in enumerate(rows, 1))),
        f"{said}, but do with {seen.get(worst, 0.0):.6g}",
        fault=f"draft {len(tokens)}{behind} is drawn from {_shown(drawn)}, expected q = {_shown(q)}"
        f"{_cause(drawn, rows)}",
    )


def _cause(drawn: Sequence[float], rows: Sequence[Sequence[float]]) -> str:
    """Return a clause that relates the reported q of a draft to ``drawn``, the row from which it is really drawn.

    ``rows`` are the reported rows of the drafts so far; the last is q. Returns "" unless one of two relations holds:

    * ``drawn`` is the reported row of an earlier draft.
    * q is a power of ``drawn``, normalised.
    """
    for place, row in enumerate(rows[:-1]):
        if np.allclose(row, drawn, atol=NEAR, rtol=0):
            return f", which is the q of draft {place + 1}"
    q = rows[-1]
    if not any(min(a, b) > 0 for a, b in zip(drawn, q, strict=True)):
        return ""
    both = [(math.log(a), math.log(b)) for a, b in zip(drawn, q, strict=True) if min(a, b) > 0]
    (low, seen_low), (high, seen_high) = min(both), max(both)
    if (
        len({round(mass, 9) for mass, other in zip(drawn, q, strict=True) if min(mass, other) > 0}) < LEAST_OF_POWER
        or high - low < NEAR
        or any((a > 0) != (b > 0) for a, b in zip(drawn, q, strict=True))
    ):
        return ""
    power = (seen_high - seen_low) / (high - low)
    if power <= 0 or abs(power - 1) < NEAR or not np.allclose(powered(drawn, power), q, atol=NEAR, rtol=0):
        return ""
    either = f"a temperature of {1 / power:.3g} on q alone, or of {power:.3g} on the draw alone"
    return f" = norm(row^{power:.3g}) of the row that is drawn from ({either})"


def _supported(program: EngineProgram, law: Law, conditions: Conditions) -> Examination:
    """Refute a row of q that is no pmf, and a draft that its own row of q excludes.

    ``law`` is the enumerated law of the answers of ``program``. An excluded draft that is less probable than the edge
    of ``conditions`` is a note: rounding of a cumulative sum may draw such a token, once in 2^53 draws.
    """
    excluded: dict[tuple[int, int], list[tuple[Proposed, float]]] = defaultdict(list)
    for draft, mass in law.probabilities.items():
        for place, (token, row) in enumerate(zip(draft.tokens, _rows(draft), strict=True)):
            bound = of_decision(FLOAT32, len(row))
            if min(row) < 0 or not abs(sum(row) - 1) <= bound:
                return _refuted(program, draft, f"q of draft {place + 1} sums to {sum(row):.6g} and has {min(row):.6g}")
            if row[token] <= 0:
                excluded[place, token].append((draft, mass))
    edges = []
    for (place, token), drafts in excluded.items():
        fault = f"draft {place + 1} is {token}, and its q gives it probability 0"
        probability = sum(mass for _, mass in drafts)
        if probability >= conditions.edge:
            return at_an_edge(_refuted(program, drafts[0][0], fault), probability if probability < WIDEST else 1.0)
        edges.append(edge_of(fault, f"a random number is at an end of its range ({program.name})", probability))
    figures = {"runs": law.runs, "edges": edges} if edges else {"runs": law.runs}
    return Examination("every q is a pmf and gives its draft some probability", figures=figures)


def _respected(program: EngineProgram, law: Law, _: Conditions) -> Examination:
    gamma = program.source.gamma
    for draft in law.probabilities:
        if len(draft.tokens) > gamma:
            return _refuted(program, draft, f"{len(draft.tokens)} tokens are drafted, expected at most {gamma}")
    return Examination("never more than gamma tokens are drafted", figures={"runs": law.runs})


def _the_models(draft: LanguageModel, program: EngineProgram, law: Law, _: Conditions) -> Examination:
    for result in law.probabilities:
        for place, (row, wanted) in enumerate(
            zip(_rows(result), reports(draft, program.source, result.tokens), strict=True)
        ):
            size = max(len(row), len(wanted))
            told, model = (np.pad(values, (0, size - len(values))) for values in (row, wanted))
            distance = float(np.abs(told - model).sum() / 2)
            if distance > of_decision(FLOAT32, size):
                said = f"q of draft {place + 1} is {_shown(row)}, the model's is {_shown(wanted)}: TV = {distance:.6g}"
                return _refuted(program, result, said)
    return Examination("every q is the draft model's", rational=False, figures={"runs": law.runs})


def _refuted(program: EngineProgram, draft: Proposed, said: str) -> Examination:
    example = Counterexample((f"propose {program.name}", f"it drafts {draft.tokens}"), said)
    return Examination(f"{program.name}: {said}", failed=True, rational=False, counterexample=example)


def _shown(row: tuple[float, ...] | list[float]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in row) + ")"
