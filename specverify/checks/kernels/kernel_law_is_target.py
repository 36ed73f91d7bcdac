"""One round of a kernel, continued by the target, has the target's law.

A round emits up to gamma + 1 tokens. A shorter output is continued by draws from the target, so that every output has
gamma + 1 tokens, and a lossless kernel gives exactly the target's law. The law of the kernel is computed from the
uniforms that are passed to it. The number of accepted drafts must also have the law of speculative sampling, because a
kernel that rejects everything is lossless.

A *situation* is a target, a draft model and a number of drafts. A *cell* is a box of uniforms, for one sequence of
drafts, in which a right kernel emits the same tokens (``laws.grid``). The kernel is evaluated at several points of each
cell; a cell is resolved if all points give the same tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.explaining.counterexample_parts import or_none
from specverify.checks.kernels.other_recipes import other_recipe
from specverify.checks.kernels.rounds_of_cells import fault_of_cells
from specverify.checks.kernels.row_texts import described_rounds, described_row, emitted_ids, kernel_check, models_of
from specverify.laws.grid import MARGIN, GridCell, look, places_in, rows_of
from specverify.laws.law import Distance, Law, continued, target_law, total_variation
from specverify.laws.paths import paths
from specverify.reference import Claim, Task, Tokens
from specverify.subjects.kernel_rounds import KernelRounds, by_rule, decided, in_ids, launched, verified
from specverify.subjects.kernel_tables import PROMPT, Situation

DOUBT = 64 * MARGIN
"""A total variation up to this may come from breakpoints that a lower precision moves by more than the margin."""
REFINED = 8
"""The most rows of later evaluations, as a multiple of the rows of the first evaluation."""


class SituationLaws(NamedTuple):
    """The law of a kernel's output in each situation, that is, for each target, draft model and number of drafts.

    ``laws`` maps the name of a situation to its law. The laws are computed from the resolved cells: boxes of uniforms
    in which the kernel emits the same tokens at all evaluated points. ``settled`` has (cell, emitted tokens) of each,
    and ``rows`` is the number of evaluated rows.
    """

    laws: Mapping[str, Law]
    settled: Sequence[tuple[GridCell, Tokens]]
    rows: int
    blind: float
    """An upper bound on the probability of uniforms within the margin of a breakpoint, which are not evaluated."""
    mixed: bool
    """Whether a row had another result beside other rows."""
    two_answers: str = ""
    """Describes such a row, if rounding does not explain it; "" if there is none."""


def found_laws(rounds: KernelRounds) -> SituationLaws:
    """Return the laws of the kernel's output in all situations, by evaluating the kernel at uniforms in all cells.

    A situation is a target, a draft model and a number of drafts. A cell is a box of uniforms in which a right kernel
    emits the same tokens. A cell with several results is halved and evaluated again, until a law is wrong or the budget
    of rows is used. ``rounds`` is the kernel in one setting (gamma, vocabulary), with its cells.
    """
    settled, unsettled = list[tuple[GridCell, Tokens]](), list[GridCell]()
    waiting, rows, mixed, two_answers = list(rounds.cells), 0, False, ""
    most = (1 + REFINED) * rows_of(rounds.cells)
    cells = waiting
    while cells and (not rows or rows + rows_of(cells) <= most):
        looked = look(partial(launched, rounds, seed=rows), cells, seed=rows)
        if not rows and looked.others:
            mixed, two_answers = bool(_two_answers(rounds, looked.others, MARGIN)), _two_answers(rounds, looked.others)
        rows += rows_of(cells)
        settled += looked.settled
        unsettled += looked.unsettled
        waiting = [*looked.halves, *(waiting[len(cells) :])]
        if any(distance(rounds, name, law).low > DOUBT for name, law in _laws(rounds, settled, waiting).items()):
            break
        cells = _of_one_situation(rounds, waiting)
    return SituationLaws(
        _laws(rounds, settled, [*unsettled, *waiting]),
        settled,
        rows,
        max(blind_of(rounds).values()),
        mixed,
        two_answers,
    )


def _of_one_situation(rounds: KernelRounds, cells: Sequence[GridCell]) -> list[GridCell]:
    """Return the cells at the beginning of ``cells`` that belong to the same situation as the first one.

    A situation is a target, a draft model and a number of drafts; a cell is a box of uniforms. The cells are ordered by
    situation, so these are all cells of this situation that are left. ``rounds`` is the kernel in one setting (gamma,
    vocabulary).
    """
    situations = [rounds.cases[cell.case].situation.name for cell in cells]
    return list(cells[: situations.count(situations[0])]) if cells else []


def _two_answers(rounds: KernelRounds, cells: Sequence[GridCell], margin: float = DOUBT) -> str:
    """Describe a row of a batch that has two results, if the rows are in two orders; return "" if there is none.

    The rows have uniforms in ``cells``, boxes of uniforms, at least ``margin`` inside. With the default, a breakpoint
    that rounding moves with the place of a row is no reason. ``rounds`` is the kernel in one setting (gamma,
    vocabulary).
    """
    cases, uniforms = places_in(cells, margin)
    one, other = (launched(rounds, cases, uniforms, seed=seed) for seed in (1, 2))
    differs = np.flatnonzero((one != other).any(axis=1))
    if not len(differs):
        return ""
    row = int(differs[0])
    first, second = (emitted_ids(rounds, answers[row].tolist()) for answers in (one, other))
    described = described_row(rounds, int(cases[row]), uniforms[row], "a row")
    return f"{described}: it gives {first}, and {second} in a call with the same rows in another order"


def blind_of(rounds: KernelRounds) -> Counter[str]:
    """Return how much of the law of a kernel is not examined: for each situation, a probability.

    It is the probability of the uniforms that are never tried. They are near the faces of the cells, the boxes of
    uniforms with one result, where rounding may decide. A situation is a target, a draft model and a number of drafts.
    ``rounds`` is the kernel in one setting (gamma, vocabulary), with its cells.
    """
    blind: Counter[str] = Counter()
    for cell in rounds.cells:
        inner = 1.0
        for low, high in zip(cell.low, cell.high, strict=True):
            inner *= float(high - low) - 2 * min(MARGIN, float(high - low) / 4)
        case = rounds.cases[cell.case]
        blind[case.situation.name] += float(case.weight) * (float(cell.volume) - inner)  # type: ignore[assignment]
    return blind


def _laws(
    rounds: KernelRounds, settled: Sequence[tuple[GridCell, Tokens]], others: Sequence[GridCell]
) -> dict[str, Law]:
    """Return name of a situation (target, draft model, number of drafts) -> law of the emitted tokens.

    A cell is a box of uniforms, resolved if the kernel emits the same tokens at all evaluated points of the box.
    ``settled`` has (cell, emitted tokens) of each resolved cell. The probability of ``others``, the unresolved cells,
    is missing from the laws. ``rounds`` is the kernel in one setting (gamma, vocabulary), with its cells.
    """
    masses: dict[str, Counter[Tokens]] = {case.situation.name: Counter() for case in rounds.cases}
    missing: Counter[str] = Counter()
    for cell, outcome in settled:
        case = rounds.cases[cell.case]
        masses[case.situation.name][outcome] += case.weight * cell.volume
    for cell in others:
        case = rounds.cases[cell.case]
        missing[case.situation.name] += case.weight * cell.volume
    return {name: Law(dict(law), missing=Fraction(missing[name])) for name, law in masses.items()}


def distance(rounds: KernelRounds, name: str, law: Law) -> Distance:
    """Return the total variation between ``law`` and the target's law in the situation called ``name``.

    A situation is a target, a draft model and a number of drafts. The target first completes the texts of ``law``.
    ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    situation = situation_named(rounds, name)
    return total_variation(law._replace(probabilities=completed(situation, law.probabilities)), _wanted(situation, ()))


def situation_named(rounds: KernelRounds, name: str) -> Situation:
    """Return the situation of ``rounds`` (a target, a draft model and a number of drafts) that is called ``name``.

    ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    return next(case.situation for case in rounds.cases if case.situation.name == name)


def completed(situation: Situation, law: Mapping[Tokens, Any]) -> dict[Tokens, Any]:
    """Return ``law`` with each shorter text continued by the target.

    A full text has one token more than there are drafts in ``situation``. Outcomes that are no texts stay unchanged.
    """

    def later(tokens: Tokens) -> Mapping[Tokens, Any]:
        is_text = 0 < len(tokens) <= situation.length + 1 and all(0 <= token < situation.size for token in tokens)
        return _wanted(situation, tokens) if is_text else {(): 1}

    return continued(law, later)


@cache
def _wanted(situation: Situation, tokens: Tokens) -> dict[Tokens, Any]:
    return target_law(Task(situation.target, horizon=situation.length + 1 - len(tokens)), PROMPT + tokens)


def examine_law(rounds: KernelRounds, find: Callable[[], SituationLaws], _: Conditions) -> Examination:
    """Compare the law of every situation with the target's law; ``find`` computes the laws.

    A situation is a target, a draft model and a number of drafts. The largest total variation decides. The result is
    unknown if rows seem to depend on other rows, or if uniforms that were not evaluated (``blind_of``) may explain the
    difference. A row that certainly has two results refutes, because it has no law. ``rounds`` is the kernel in one
    setting (gamma, vocabulary).
    """
    result = find()
    distances = {name: distance(rounds, name, law) for name, law in result.laws.items()}
    worst = max(distances, key=lambda name: (distances[name].low, distances[name].high))
    least_known = max(distances, key=lambda name: (distances[name].high, distances[name].low))
    low, high = float(distances[worst].low), float(distances[least_known].high)
    figures = {"runs": result.rows, "tv": high, "rounding": result.blind}
    if low > DOUBT:
        example = _example(rounds, result, situation_named(rounds, worst))
        statement = f"TV = {_said(distances[worst])} from the target's"
        is_exact = distances[worst].low == distances[worst].high
        return Examination(statement, failed=True, rational=is_exact, counterexample=example, figures=figures)
    if result.two_answers:
        then = "a row has another result in another place or beside other rows, so it has no law"
        example = Counterexample((described_rounds(rounds),), then, fault=f"{then}: {result.two_answers}")
        return Examination(then, failed=True, counterexample=example, figures=figures)
    if result.mixed:
        then = "a row is answered otherwise beside other rows, so no row has a law: see rows_are_independent"
        return Examination(then, unknown=True, figures=figures)
    if high > result.blind:
        return Examination(
            f"TV = {_said(distances[least_known])} from the target's: it steps more than {MARGIN:.1g} from the places "
            f"of rule={rounds.kernel.convention.rule!r}; is its precision lower, or its rule another?",
            unknown=True,
            figures=figures,
        )
    if rounds.kernel.race and (said := _depends_on_size(rounds)):
        return Examination(said, unknown=True, figures=figures)
    statement = f"the law of a round is the target's, at all but {result.blind:.1g} of the uniforms"
    return Examination(statement, rational=high == 0, figures=figures)


SIZES = (1 / 16, 8.0)
"""Factors of the noise of a race. The sum of two noises is smaller than the first, or larger than the second, about
twice in a thousand rounds."""
ROWS_OF_SIZES, FEW_OF_SIZES = 4096, 4
"""Number of rows that are compared at each of ``SIZES``, and the number that rounding at a threshold may change."""


def _depends_on_size(rounds: KernelRounds) -> str:
    """Return the sentence that a race is decided otherwise if all of its noise is multiplied by a number; "" if not.

    The law is computed with noise of one size, and a right race has the same winner at every size. One whose noise is
    clamped or gets a constant added has not. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    rng, rows = np.random.default_rng(0), min(ROWS_OF_SIZES, rounds.most)
    cases, uniforms = rng.integers(len(rounds.cases), size=rows), rng.random((rows, rounds.gamma + 2))
    usual = decided(rounds, cases, uniforms)
    for size in SIZES:
        other = int((decided(rounds, cases, uniforms, size) != usual).any(axis=1).sum())
        if other > FEW_OF_SIZES:
            return (
                f"with all noise of the race multiplied by {size:g}, {other} of {rows} rows draw another token, as if "
                "noise were clamped, or a constant were added: the law was computed with noise of one size. Leave the "
                "noise as it is, or let the kernel draw it, so that it is sampled"
            )
    return ""


def _said(found: Distance) -> str:
    return str(found.low) if found.low == found.high else f"{float(found.low):.4g} to {float(found.high):.4g}"


def _example(rounds: KernelRounds, found: SituationLaws, situation: Situation) -> Counterexample:
    """Return a counterexample in ``situation``: the outcome with the largest excess, and a wrong row.

    ``found`` has the computed laws; the excess is that over the target's law. ``rounds`` is the kernel in one setting
    (gamma, vocabulary).
    """
    law, wanted = completed(situation, found.laws[situation.name].probabilities), _wanted(situation, ())
    excess = {tokens: mass - wanted.get(tokens, 0) for tokens, mass in law.items()}
    cells = [cell for cell, _ in found.settled if rounds.cases[cell.case].situation is situation][: rounds.most]
    cases = np.array([cell.case for cell in cells])
    middles = np.array([[float(a + b) / 2 for a, b in zip(cell.low, cell.high, strict=True)] for cell in cells])
    answers = decided(rounds, cases, middles)
    rows = [
        KernelRow(row, emitted_ids(rounds, answer), emitted_ids(rounds, by_rule(rounds, rounds.cases[case], numbers)))
        for row, (case, answer, numbers) in enumerate(zip(cases, answers.tolist(), middles, strict=True))
    ]
    wrong = [row for row in rows if row.emitted != row.ought]

    def wrong_prefix_row(tokens: Tokens) -> KernelRow | None:
        """Return a row that differs from the rule and whose emitted tokens are a prefix of ``tokens``, or None.

        Such a row contributes to a too large probability of ``tokens``.
        """
        return next((row for row in wrong if in_ids(rounds, tokens)[: len(row.emitted)] == row.emitted), None)

    worst = max(
        excess, key=lambda tokens: (excess[tokens] > 0 and wrong_prefix_row(tokens) is not None, excess[tokens], tokens)
    )
    then = (
        f"the tokens {in_ids(rounds, worst)} should come with probability {wanted.get(worst, 0)}, and come with "
        f"{law[worst]}{' at least' if found.laws[situation.name].missing else ''}"
    )
    if not wrong:
        return Counterexample(
            (described_rounds(rounds), situation.name), then, ("in no row alone does it differ from the rule",)
        )
    shown = wrong_prefix_row(worst) or wrong[0]
    case = int(cases[shown.number])
    where = f"row {shown.number + 1} of {len(rows)}"
    because = f"{described_row(rounds, case, middles[shown.number], where)} -> {shown.emitted}"
    step = _fault(in_ids(rounds, rounds.cases[case].draft), shown.emitted, shown.ought)
    of_rounds = None if found.mixed else or_none(fault_of_cells, rounds, found.settled, situation)
    recipe = or_none(other_recipe, rounds, found.settled) or ""
    fault = f"{recipe}: {step}" if recipe else f"{of_rounds.sentence}{_ids_of(rounds)}" if of_rounds else step
    borrowed = borrowed_numbers(rounds, cases, middles, [row.emitted for row in rows])
    if borrowed:
        then = f"{where} should be answered {shown.ought}, but is answered {shown.emitted}"
    return Counterexample(
        (described_rounds(rounds), situation.name, *models_of(rounds, case)),
        then,
        (f"{because}, and the rule answers {shown.ought}",),
        fault=f"{borrowed}: {step.replace('of a row', f'of {where}')}" if borrowed else fault,
        named=bool(borrowed or recipe or (of_rounds and of_rounds.named)),
    )


def _ids_of(rounds: KernelRounds) -> str:
    """Return a clause with the ids of the tokens that a sentence about rounds numbers 0, 1 and 2; "" if these are."""
    *first, last = range(len(rounds.ids))
    *ids, last_id = map(str, rounds.ids)
    if rounds.ids == (*first, last):
        return ""
    return f", where tokens {', '.join(map(str, first))} and {last} are {', '.join(ids)} and {last_id}"


class KernelRow(NamedTuple):
    """One row of a call of a kernel: the tokens that the kernel emits (``emitted``), and those that the rule emits."""

    number: int
    """Its index in the launch."""
    emitted: Tokens
    ought: Tokens
    """The tokens that the rule emits."""


OTHER_ROWS: Mapping[str, Callable[[int, int], int]] = {
    "the first row": lambda row, rows: 0,
    "the row before": lambda row, rows: max(row - 1, 0),
    "the next row": lambda row, rows: min(row + 1, rows - 1),
    "the last row": lambda row, rows: rows - 1,
}
"""Rows whose random numbers a wrong kernel may read, by name. Each function gets the index of the right row and the
number of rows of the launch, and returns the index of the other row."""
LEAST_ROWS = 4
"""With fewer rows in a launch, the answers do not show of which row a kernel reads the random numbers."""


def borrowed_numbers(rounds: KernelRounds, cases: Any, uniforms: Any, answers: Sequence[Tokens]) -> str:
    """Return the sentence that every row reads random numbers of another row; "" if that does not explain all answers.

    ``cases`` ``[rows]`` and ``uniforms`` ``[rows, k]`` are those of one call in one situation, and ``answers`` the
    emitted tokens of its rows. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    gamma, count = rounds.gamma, len(answers)
    if count < LEAST_ROWS:
        return ""

    def by_numbers(numbers: Any) -> Iterator[Tokens]:
        ruled = (by_rule(rounds, rounds.cases[case], row) for case, row in zip(cases, numbers, strict=True))
        return (emitted_ids(rounds, tokens) for tokens in ruled)

    what = "noise of the last draw" if rounds.kernel.race else "uniform of the last draw"
    parts = {what: slice(gamma, None)}
    pairs = zip(by_numbers(uniforms), answers, strict=True)
    if {len(answer) > len(ought) for ought, answer in pairs if ought != answer} == {False, True}:
        # answers that are all too long, or all too short, are also explained by a wrong bound in the test of drafts
        parts["accept uniforms"] = slice(0, gamma)
    for name, part in parts.items():
        for whose, row_of in OTHER_ROWS.items():
            mixed = uniforms.copy()
            mixed[:, part] = uniforms[[row_of(row, count) for row in range(count)], part]
            if all(ought == answer for ought, answer in zip(by_numbers(mixed), answers, strict=True)):
                return f"every row reads the {name} of {whose}"
    return ""


def _fault(drafts: Tokens, emitted: Tokens, ought: Tokens) -> str:
    """Describe the first step at which a row with the drafts ``drafts`` differs from the rule.

    The row emits ``emitted``, and the rule emits ``ought``.
    """
    kept, wanted = len(emitted) - 1, len(ought) - 1
    if not 0 <= kept <= len(drafts):
        return f"a row of {len(drafts)} drafts emits {emitted} where the rule emits {ought}"
    if kept != wanted:
        draft = min(kept, wanted)
        words = ("accepted", "rejected") if kept > wanted else ("rejected", "accepted")
        return f"draft {draft + 1} ({drafts[draft]}) of a row is {words[0]} where the rule has it {words[1]}"
    part = "the bonus token" if kept == len(drafts) else f"the token in place of the rejected draft {kept + 1}"
    return f"{part} of a row is {emitted[-1]} where the rule draws {ought[-1]}"


def examine_acceptance(rounds: KernelRounds, find: Callable[[], SituationLaws], _: Conditions) -> Examination:
    """Compare, for each i, P(the first i drafts are accepted) with that of the rule; a smaller one refutes.

    The result is unknown if rows depend on other rows, or if the law may differ from the target's. ``find`` computes
    the laws. ``rounds`` is the kernel in one setting (gamma, vocabulary).
    """
    result = find()
    figures = {"runs": result.rows}
    for name, law in result.laws.items():
        best, slack = _acceptance(rounds, name), float(law.missing) + (DOUBT if law.missing else result.blind)
        for i in range(1, situation_named(rounds, name).length + 1):
            accepted = sum(mass for tokens, mass in law.probabilities.items() if len(tokens) > i)
            if best[i] - accepted > slack:
                then = f"the first {i} drafts are accepted with probability {accepted}, by the rule with {best[i]}"
                example = Counterexample((described_rounds(rounds), name), then)
                return Examination(then, failed=True, counterexample=example, figures=figures)
    if result.mixed or any(distance(rounds, name, law).high > result.blind for name, law in result.laws.items()):
        return Examination("where it steps is not known: see law_is_target", unknown=True, figures=figures)
    rational = not any(law.missing for law in result.laws.values())
    return Examination("drafts are accepted as often as by the rule", rational=rational, figures=figures)


def _acceptance(rounds: KernelRounds, name: str) -> Counter[int]:
    """Return i -> probability that the rule accepts the first i drafts in the situation called ``name``.

    A situation is a target, a draft model and a number of drafts. ``rounds`` is the kernel in one setting (gamma,
    vocabulary).
    """
    best: Counter[int] = Counter()
    for case in rounds.cases:
        if case.situation.name == name:
            for path in paths(partial(verified, rounds.kernel, case.draft, case.p, case.q)):
                for i in range(1, path.outcome.accepted + 1):
                    best[i] += case.weight * path.weight
    return best


def checks_of(all_rounds: Sequence[KernelRounds]) -> tuple[Check, Check]:
    """Return the checks ``law_is_target`` and ``acceptance_is_optimal`` of one kernel, which share one evaluation.

    ``all_rounds`` are the settings (gamma, vocabulary) of the kernel. Every quick run has all but those with the fewest
    drafts; of a kernel whose rows may differ in length it has all, because a batch has rows of all lengths.
    """
    gammas = {rounds.gamma for rounds in all_rounds}
    in_quick = {
        described_rounds(rounds)
        for rounds in all_rounds
        if rounds.kernel.ragged or len(gammas) == 1 or rounds.gamma > min(gammas)
    }
    result = {described_rounds(rounds): (rounds, cache(partial(found_laws, rounds))) for rounds in all_rounds}
    return (
        kernel_check(
            "law_is_target",
            "the exact law of a round, completed by the target, is the target's",
            Claim.LOSSLESS,
            Evidence.EXACT,
            {name: partial(examine_law, rounds, find) for name, (rounds, find) in result.items()},
            in_quick,
        ),
        kernel_check(
            "acceptance_is_optimal",
            "the first i drafts are accepted as often as by the rule",
            Claim.OPTIMAL_COUPLING,
            Evidence.EXACT,
            {name: partial(examine_acceptance, rounds, find) for name, (rounds, find) in result.items()},
            in_quick,
        ),
    )
