"""Edges: faults that only a random number at an end of its interval shows, and how likely each of them is.

An edge is no wrong law: the law of the program is right to within the probability of the edge. It refutes where this
probability, per draft, is at least that of the option ``edge``, and is a note beside HOLDS where it is below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from specverify.base.arguments import check_number

MOST_SHOWN: Final = 3
"""Edges of one verdict that are written out."""


def check_edge(value: Any, name: str = "edge") -> None:
    """Raise ``ValueError`` unless ``value`` is a probability from which on an edge can refute."""
    check_number(value, name, "a probability of at least 0 and below 1", lambda number: 0 <= number < 1)


def edge_of(fault: str, when: str, probability: float) -> dict[str, Any]:
    """Return an edge as a JSON-able figure.

    ``fault`` is what goes wrong, ``when`` which random number has which value, ``probability`` an upper bound on how
    often that happens, per draft.
    """
    return {"fault": fault, "when": when, "probability": probability, "cases": 1}


def merged_edges(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the edges of two lists, those of one random number as one: the likelier, with the number of its cases."""
    merged = {edge["when"]: edge for edge in one}
    for edge in other:
        known = merged.get(edge["when"])
        if known is None:
            merged[edge["when"]] = edge
        else:
            likelier = edge if edge["probability"] > known["probability"] else known
            merged[edge["when"]] = {**likelier, "cases": known["cases"] + edge["cases"]}
    return list(merged.values())


def once_in(probability: float) -> str:
    """Return a probability per draft in words, such as ``about once in 9e15 drafts``."""
    digits, _, exponent = f"{1 / probability:.0e}".partition("e")
    rarely = f"about once in {digits}e{int(exponent)} drafts"
    return rarely if probability < 1e-3 else f"in {probability:.2g} of all drafts"


def edge_lines(edges: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for each edge of a verdict, the likeliest first, and a count of those that are left out."""
    ordered = sorted(edges, key=lambda edge: -edge["probability"])
    for edge in ordered[:MOST_SHOWN]:
        cases = f", in {edge['cases']} cases" if edge["cases"] > 1 else ""
        yield f"edge: {edge['fault']}, when {edge['when']}: {once_in(edge['probability'])}{cases}"
    if len(ordered) > MOST_SHOWN:
        yield f"and {len(ordered) - MOST_SHOWN} less likely edges"
