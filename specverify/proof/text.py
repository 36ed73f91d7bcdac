"""Format a proof as text: the statement, or the pmfs at which it fails and the outcome there."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from specverify.proof.result import Proof, ProofStatus
from specverify.proof.symbolic_tables import Model


def proof_text(proof: Proof) -> str:
    """Return the proof in a few lines: status, statement, model, and cost."""
    head = f"{proof.status}: {proof.what} of {proof.subject}, V = {proof.vocabulary}, gamma = {proof.gamma}"
    lines = [head, f"  {proof.statement}"]
    if proof.model is not None:
        lines += ["  where", *(f"    {line}" for line in model_lines(proof.model))]
    if "tv" in proof.figures:
        lines.append(f"  total variation there {proof.figures['tv']}, by enumeration with fractions")
    took = [f"{proof.queries} questions to z3", f"{proof.seconds:.1f} s"]
    for name in ("texts", "paths", "outcomes", "cells"):
        if name in proof.figures:
            took.insert(-2, f"{proof.figures[name]} {name}")
    if proof.status is ProofStatus.PROVED and "worlds" in proof.figures:
        took.append(f"the same found by enumeration in {proof.figures['worlds']} worlds")
    return "\n".join([*lines, f"  {', '.join(took)}"])


def model_lines(model: Model) -> Iterator[str]:
    """Yield one line for each text whose pmf the program read, then one line with the answer to each open question.

    An open question is a question of yes or no whose answer the proof leaves free, such as whether another token is
    drafted.
    """
    for text in sorted(model.target.keys() | model.draft.keys(), key=lambda text: (len(text), text)):
        rows = [("p", model.target.get(text)), ("q", model.draft.get(text))]
        yield f"after {text}: " + "   ".join(f"{letter} = {_row(row)}" for letter, row in rows if row is not None)
    for (verb, *rest), answer in model.choices.items():
        if verb == "hot":
            yield f"after {tuple(rest[1:])}: the target's token is {'' if answer else 'not '}{rest[0]}"
        else:
            yield f"{verb} {'after' if verb == 'draft' else 'the last of'} {tuple(rest)}: {'yes' if answer else 'no'}"


def _row(row: tuple[Fraction, ...]) -> str:
    return f"({', '.join(map(str, row))})"
