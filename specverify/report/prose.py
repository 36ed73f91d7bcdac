"""Verdicts as text: one line with the result and its evidence, and failures that can be checked by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from specverify.base.verdict import AT_AN_EDGE, Evidence, Status, Verdict, is_edge, word_of

SYMBOLS: Mapping[str, str] = {
    Status.HOLDS: "✔",
    Status.DECLARED_BIAS: "≈",
    Status.REFUTED: "✘",
    AT_AN_EDGE: "✘",
    Status.UNKNOWN: "?",
    Status.UNUSABLE: "!",
    Status.REFUSED: "·",
    Status.NOT_APPLICABLE: "-",
}

LAWS = frozenset({"law_is_target", "law_is_declared", "draws_are_independent", "rows_are_independent"})
"""Checks that compare a whole law."""
OF_ONE_LAW = (
    "draws_are_independent",
    "law_is_target",
    "law_is_declared",
    "rows_are_independent",
    "acceptance_law",
    "horizon_is_respected",
    "eos_is_final",
    "greedy_is_argmax",
    "tokens_are_supported",
    "acceptance_is_optimal",
    "support_at_boundary_draws",
    "stop_law",
)
"""Checks that one wrong law may fail together, the most informative one first."""


def strength(verdict: Verdict) -> str:
    """Return the kind and the resolution of a verdict's evidence in words, such as "exact, equal as rationals"."""
    figures = verdict.figures
    if verdict.status is Status.REFUTED:
        return str(verdict.evidence)
    if verdict.evidence is Evidence.EXACT:
        if figures.get("rational"):
            return "exact, equal as rationals"
        if "tv" not in figures:
            return "exact, within rounding"
        return f"exact, TV {figures['tv']:.1g} (rounding below {figures['rounding']:.1g})"
    if verdict.evidence is Evidence.STATISTICAL:
        return "statistical" + _resolution(figures)
    return str(verdict.evidence or "")


def _resolution(figures: Mapping[str, Any]) -> str:
    if "tv_detectable" in figures:
        return f", TV {figures['tv_detectable']:.3f} would have been seen"
    return f", TV at most {figures['tv_at_most']:.4f}" if "tv_at_most" in figures else ""


def scope(verdict: Verdict) -> str:
    """Describe the cases that a verdict covers, such as "36 cases, up to 3 drafts a round, 500 samples".

    The description also has the cases that were left out or were too large, and the declared bias.
    """
    figures = verdict.figures
    parts = [f"{figures['cases']} case{'s' * (figures['cases'] != 1)}"] if "cases" in figures else []
    if figures.get("left_out"):
        parts.append(f"{figures['left_out']} others left out" + " by the quick plan" * ("planned" in figures))
    if figures.get("skipped"):
        parts.append(f"{figures['skipped']} larger ones out of reach")
    if figures.get("rounds_of_two"):
        parts.append(f"up to {figures['rounds']} rounds")
        parts.append(f"{figures['rounds_of_two']} of them with gamma >= 2")
    if figures.get("gamma"):
        parts.append(f"up to {figures['gamma']} drafts a round")
    if figures.get("bias"):
        parts.append(f"TV up to {figures['bias']:.4f} from the target")
    if figures.get("replays"):
        parts.append(f"{figures['replays']} replays")
    if "runs" in figures:
        parts.append(f"{figures['runs']} runs")
    if "samples" in figures:
        parts.append(f"{figures['samples']} samples")
    return ", ".join(parts)


def first_sentence(verdict: Verdict) -> str:
    """Return the fault of a verdict in one sentence.

    It is the sentence of the counterexample, or the verdict's statement if there is no counterexample or no sentence.
    """
    example = verdict.counterexample
    return (example and example.fault) or verdict.statement


def failure(verdict: Verdict) -> str:
    """Return a refutation in prose: fault, deciding values, models and options, check, and replay command."""
    example = verdict.counterexample
    if example is None:
        return headline(verdict)
    first = first_sentence(verdict)
    then = "" if example.then in first else example.then
    lines = [first, *(f"        {line}" for line in example.rows)]
    if then:
        lines += _block("Then", (then + (", because" if example.because else ""), *example.because))
    else:
        lines += _block("Also", example.because)
    lines += _block("Let", example.let)
    lines += _block("Check", (_check_line(verdict),))
    lines += [f"  Again specverify replay {example.again}"] if example.again else []
    return "\n".join(lines)


OF_ONE_TOKEN = frozenset({"constraint_is_kept"})
"""Checks whose refutation is one emitted token that a promise forbids; this is a sure finding."""


def by_cause(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    """Return the refuted verdicts of one subject in groups; the verdicts of a group may have one cause.

    A wrong law can make several checks refute. If a check that compares laws is among the refuted ones, these checks
    form one group, the most informative verdict first. Every other verdict is a group of its own. The groups have the
    order of ``verdicts``, except that a forbidden token comes before a law whose cause is not sure.
    """
    refuted = [verdict for verdict in verdicts if verdict.status is Status.REFUTED]
    if not any(verdict.counterexample and verdict.counterexample.sure for verdict in refuted):
        refuted.sort(key=lambda verdict: verdict.check not in OF_ONE_TOKEN)
    of_law = [verdict for verdict in refuted if verdict.check in OF_ONE_LAW and not is_edge(verdict)]
    if not any(verdict.check in LAWS for verdict in of_law):
        return [[verdict] for verdict in refuted]
    of_law.sort(key=_cause_first)
    groups = [[verdict] if verdict not in of_law else of_law for verdict in refuted]
    return [group for index, group in enumerate(groups) if group not in groups[:index]]


def _cause_first(verdict: Verdict) -> tuple[bool, int]:
    """Return the sort key of a verdict within a group of ``by_cause``: first come the verdicts that state the cause.

    The first entry of the pair is False for checks that compare laws, and True for other checks and for counterexamples
    that name no cause. The second entry is the position of the check in ``OF_ONE_LAW``.
    """
    unnamed = verdict.counterexample is not None and not verdict.counterexample.named
    return unnamed or verdict.check not in LAWS, OF_ONE_LAW.index(verdict.check)


def also_refuted(others: Sequence[Verdict]) -> str:
    """Return the line "Refuted with it" below a refutation: the checks of ``others``; "" if there are none.

    ``others`` are the other refuted verdicts of the same group (see ``by_cause``). If the check of the first compares
    laws, a probability that differs is added. Its fault is not: what it infers from the law may be false where the
    fault is the one above.
    """
    named = [verdict.check.replace("_", " ") for verdict in others]
    example = others[0].counterexample if others and others[0].check in LAWS else None
    if example is not None and example.then:
        named[0] += f" ({example.then})"
    return f"  Refuted with it: {', '.join(named)}" if named else ""


def in_full(verdict: Verdict) -> str:
    """Return the counterexample of a refuted verdict, or the statement of any other verdict."""
    return failure(verdict) if verdict.status is Status.REFUTED else verdict.statement


def _check_line(verdict: Verdict) -> str:
    """Return the line with the check, the verdict and the strength of its evidence.

    If the statement contains the total variation between two laws ("TV = ..."), the line ends with it.
    """
    distance = re.search(r"TV = (\d+/\d+|\d[\d.]*(?:e[+-]?\d+)?)", verdict.statement)
    tv = f"TV = {float(Fraction(distance[1])):.3g}" if distance else ""
    return f"{verdict.check.replace('_', ' ')} - {', '.join(filter(None, (word_of(verdict), verdict.evidence, tv)))}"


def headline(verdict: Verdict) -> str:
    """Return the heading of a verdict: check, status, the claim that the check tests, evidence and statement.

    Other claims of the subject are not mentioned, because the check may not have examined them.
    """
    refuted = f": {verdict.claim.upper()}" if verdict.claim else ""
    title = verdict.check.replace("_", " ")
    return f"{title} - {word_of(verdict)}{refuted}    {', '.join(filter(None, (verdict.evidence, verdict.statement)))}"


def _block(word: str, lines: Sequence[str]) -> list[str]:
    return [f"  {word if index == 0 else '':<5} {line}" for index, line in enumerate(lines)]
