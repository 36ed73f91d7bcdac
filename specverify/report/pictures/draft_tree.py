"""A draft tree as a figure: the root at the top, one line per depth, children from left to right."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from specverify.report.pictures.style import BLUE, GREY, ORANGE


def draw_tree(
    axes: Any,
    parents: Sequence[int],
    labels: Sequence[str] | None = None,
    *,
    path: Collection[int] = (),
    root: str = "text",
) -> None:
    """Draw a tree into the matplotlib ``axes``; node i has the parent ``parents[i]``, -1 for the root.

    ``labels`` are the texts of the nodes, ``root`` is that of the root. The nodes of ``path`` are highlighted. Raises
    ``ValueError`` if a parent does not precede its children, or for another number of labels.
    """
    names = [str(node) for node in range(len(parents))] if labels is None else list(labels)
    if len(names) != len(parents):
        raise ValueError(f"{len(names)} labels for {len(parents)} nodes: expected one each")
    places = _places(parents)
    for node, up in enumerate(parents):
        (x, y), (above, top) = places[node], places[up]
        chosen = node in path
        axes.plot([above, x], [top, y], color=ORANGE if chosen else GREY, linewidth=3 if chosen else 1.2, zorder=1)
    for node, (x, y) in places.items():
        colour = ORANGE if node in path else BLUE if node >= 0 else "#444444"
        frame = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 2}
        axes.text(x, y, root if node < 0 else names[node], ha="center", va="center", bbox=frame, zorder=2)
    across = [x for x, _ in places.values()]
    axes.set_xlim(min(across) - 0.6, max(across) + 0.6)
    axes.set_ylim(min(y for _, y in places.values()) - 0.5, 0.5)
    axes.set_axis_off()


def _places(parents: Sequence[int]) -> dict[int, tuple[float, float]]:
    """Return the position of each node in the figure: node -> (x, y), with -1 for the root.

    Leaves are next to each other, and every other node is centred above its children. ``parents`` are as in
    ``draw_tree``.
    """
    children: dict[int, list[int]] = {node: [] for node in range(-1, len(parents))}
    for node, up in enumerate(parents):
        if not -1 <= up < node:
            raise ValueError(f"node {node} has the parent {up}: expected -1 or an earlier node")
        children[up].append(node)
    places: dict[int, tuple[float, float]] = {}
    leaves = 0

    def place(node: int, depth: int) -> float:
        nonlocal leaves
        below = [place(child, depth + 1) for child in children[node]]
        if below:
            x = (below[0] + below[-1]) / 2
        else:
            x, leaves = float(leaves), leaves + 1
        places[node] = (x, -float(depth))
        return x

    place(-1, 0)
    return places
