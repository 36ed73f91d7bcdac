"""Edges: faults that occur only if a random number is at an end of its interval, each with its probability.

An edge does not make a law wrong: the law of the program is correct up to the probability of the edge. An edge refutes
if its probability per draft is at least the option ``edge``; a less likely edge becomes a note of a verdict HOLDS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from specverify.base.arguments import check_number

MOST_SHOWN: Final = 3
"""Largest number of edges that a verdict lists."""


def check_edge(value: Any, name: str = "edge") -> None:
    """Raise ``ValueError`` unless ``value``, the smallest probability at which an edge refutes, is in [0, 1).

    An edge is a fault that occurs only if a random number is very close to 0 or 1.
    """
    check_number(value, name, "a probability of at least 0 and below 1", lambda number: 0 <= number < 1)


def edge_of(fault: str, when: str, probability: float) -> dict[str, Any]:
    """Return an edge (a fault at an end of a random number's interval) as JSON-able data.

    Args:
        fault: Description of the wrong output.
        when: The random number and the value at which the fault occurs.
        probability: Upper bound on the probability of the fault per draft.
    """
    return {"fault": fault, "when": when, "probability": probability, "cases": 1}


def merged_edges(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return all edges of the lists ``one`` and ``other``, with duplicates merged.

    Two edges are duplicates if they have the same ``when`` (the random number and its value). The one with the larger
    probability is kept. Its ``cases``, the number of cases in which the fault was found, becomes the sum of both.
    """
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
    """Format an upper bound on a probability per draft, such as ``at most once in 9e15 drafts``."""
    digits, _, exponent = f"{1 / probability:.0e}".partition("e")
    rarely = f"at most once in {digits}e{int(exponent)} drafts"
    return rarely if probability < 1e-3 else f"in at most {probability:.2g} of all drafts"


def edge_lines(edges: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines of text on ``edges``, the edges of a verdict: one for each of the ``MOST_SHOWN`` most likely.

    If there are more edges, a last line states how many are left out.
    """
    ordered = sorted(edges, key=lambda edge: -edge["probability"])
    for edge in ordered[:MOST_SHOWN]:
        cases = f", in {edge['cases']} cases" if edge["cases"] > 1 else ""
        yield f"edge: {edge['fault']}, when {edge['when']}: {once_in(edge['probability'])}{cases}"
    if len(ordered) > MOST_SHOWN:
        yield f"and {len(ordered) - MOST_SHOWN} less likely edges"
