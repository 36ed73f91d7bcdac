"""Verdicts as text: one line that says what is known and how, and failures that a stranger can check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specverify.base.verdict import AT_AN_EDGE, Evidence, Status, Verdict, word_of

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


def strength(verdict: Verdict) -> str:
    """Say how strong the evidence is."""
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
    """Say what the verdict covers."""
    figures = verdict.figures
    parts = [f"{figures['cases']} cases"] if "cases" in figures else []
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


def failure(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return a refutation in prose: Let, Then, Again."""
    lines = [headline(verdict, verdicts)]
    example = verdict.counterexample
    if example is not None:
        lines += _block("Let", example.let)
        lines += _block("Then", (example.then + (", because" if example.because else ""), *example.because))
        lines += [f"  Again specverify replay {example.again}"] if example.again else []
    return "\n".join(lines)


def in_full(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return what there is to say of a verdict, ``verdicts`` being all of the subject's: more of a refutation."""
    mine = [other for other in verdicts if other.subject == verdict.subject]
    return failure(verdict, mine) if verdict.status is Status.REFUTED else verdict.statement


def headline(verdict: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Name the property, what is refuted, what still holds, and the strength of the evidence."""
    refuted = f": {verdict.claim.upper()}" if verdict.claim else ""
    mine = [
        (other.status, other.claim.upper()) for other in verdicts if other.claim and other.subject == verdict.subject
    ]
    fallen = {claim for status, claim in mine if status is Status.REFUTED}
    standing = sorted({claim for status, claim in mine if status is Status.HOLDS} - fallen)
    still = f" ({', '.join(standing)} still hold{'s' if len(standing) == 1 else ''})" if standing else ""
    title = verdict.check.replace("_", " ")
    found = ", ".join(filter(None, (verdict.evidence, verdict.statement)))
    return f"{title} - {word_of(verdict)}{refuted}{still}    {found}"


def _block(word: str, lines: Sequence[str]) -> list[str]:
    return [f"  {word if index == 0 else '':<5} {line}" for index, line in enumerate(lines)]
