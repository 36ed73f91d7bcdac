"""Speculative sampling of one token as a figure: bars of q and p, drafts as points under q, and sliders."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from specverify.reference import Pmf, overlap, residual
from specverify.report.pictures.style import BLUE, ORANGE

WIDTH = 0.38
"""Width of a bar; each token has two, q on the left and p on the right."""
_STEP = 24
"""Number of points added from one picture of the animation to the next."""


def draw_coupling(axes: Any, p: Pmf, q: Pmf, title: str = "") -> None:
    """Draw bars of q and p ``[vocabulary]`` into the matplotlib ``axes``, under the ``title``.

    The common part of the two is accepted, and the rest of p is the residual.
    """
    kept = np.minimum(p, q).astype(float)
    for side, pmf, name, hatch in ((-1, q, "thrown away", "//"), (1, p, "put in its place", "..")):
        places = np.arange(len(p)) + side * (WIDTH / 2 + 0.02)
        rest = pmf.astype(float) - kept
        some = rest > 0
        axes.bar(places, kept, WIDTH, color=BLUE, label="kept: in both" if side < 0 else None)
        if some.any():
            axes.bar(places[some], rest[some], WIDTH, bottom=kept[some], color=ORANGE, hatch=hatch, label=name)
        for place, height in zip(places, pmf.astype(float), strict=True):
            letter = "q" if side < 0 else "p"
            axes.annotate(letter, (place, height), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    axes.set(title=title, xlabel="token", ylabel="probability", xticks=range(len(p)))
    axes.set_ylim(0, max(*p.astype(float), *q.astype(float)) + 0.1)
    axes.grid(visible=False, axis="x")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


class Thrown(NamedTuple):
    """Drafts as points: first position (under q), final position (under p), and whether the draft was accepted."""

    start: np.ndarray[Any, np.dtype[np.float64]]
    """``[number, 2]``: horizontal position and height of each draft under q."""
    end: np.ndarray[Any, np.dtype[np.float64]]
    """``[number, 2]``: final horizontal position and height of each draft under p."""
    kept: np.ndarray[Any, np.dtype[np.bool_]]
    """``[number]``: whether each draft was accepted."""


def thrown_points(p: Pmf, q: Pmf, number: int, seed: int) -> Thrown:
    """Place ``number`` points uniformly under q; move those above p to where p is above q, as the rejection rule does.

    A point over token v stays with probability min(1, p(v) / q(v)). ``seed`` selects the points.
    """
    rng = np.random.default_rng(seed)
    high, low = p.astype(float), q.astype(float)
    drafts = rng.choice(len(q), size=number, p=low)
    heights = rng.random(number) * low[drafts]
    kept = heights < high[drafts]
    replaced = rng.choice(len(p), size=number, p=residual(p, q).astype(float))
    lifted = low[replaced] + rng.random(number) * np.maximum(high - low, 0)[replaced]
    across = (rng.random((2, number)) - 0.5) * 0.7
    start = np.stack([drafts + across[0], heights], axis=1)
    end = np.where(kept[:, None], start, np.stack([replaced + across[1], lifted], axis=1))
    return Thrown(start, end, kept)


def draw_points(axes: Any, p: Pmf, q: Pmf, thrown: Thrown, number: int, newest: int = 0) -> None:
    """Draw the first ``number`` of the points ``thrown`` into ``axes``, and the outlines of p and q.

    The last ``newest`` of these points are drawn at their initial places, the others at their final places.
    """
    edges = np.arange(len(p) + 1) - 0.5
    axes.stairs(q.astype(float), edges, color="#444444", linestyle="--", linewidth=1.5, label="q")
    axes.stairs(p.astype(float), edges, color="#444444", linewidth=2, label="p")
    settled = number - newest
    for points, chosen in ((thrown.end[:settled], thrown.kept[:settled]), (thrown.start[settled:number], None)):
        kept = thrown.kept[settled:number] if chosen is None else chosen
        size = 14 if chosen is not None else 40
        axes.scatter(*points[kept].T, size, color=BLUE, label=None if chosen is None else "kept")
        axes.scatter(*points[~kept].T, size, color=ORANGE, marker="x", label=None if chosen is None else "replaced")
    stayed = int(thrown.kept[:number].sum())
    axes.set(title=f"{number} drafts: {stayed} kept, {number - stayed} replaced", xticks=range(len(p)))
    axes.set(xlabel="token", ylabel="probability", ylim=(0, 1.08 * float(max(*p, *q))))
    axes.legend(loc="upper right", ncols=2)


def acceptance_film(p: Pmf, q: Pmf, thrown: Thrown) -> bytes:
    """Return the bytes of an animated PNG of the drafts ``thrown``, as points.

    The points appear under q; then the points of rejected drafts move to where p is above q.
    """
    from PIL import Image  # noqa: PLC0415  # matplotlib brings it

    figure, axes = plt.subplots(layout="none", dpi=100)
    figure.subplots_adjust(left=0.12, right=0.98, bottom=0.18, top=0.9)
    pictures = []
    for number in range(_STEP, len(thrown.kept) + 1, _STEP):
        for newest in (_STEP, 0):
            axes.clear()
            draw_points(axes, p, q, thrown, number, newest)
            figure.canvas.draw()
            pictures.append(Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB"))  # type: ignore[attr-defined, unused-ignore]
    plt.close(figure)
    film = io.BytesIO()
    pictures[0].save(film, "PNG", save_all=True, append_images=pictures[1:], duration=700, loop=2)
    return film.getvalue()


def explore(draw: Callable[[Pmf, Pmf], object], p: Sequence[int], q: Sequence[int]) -> Any:
    """Return sliders for the integer weights ``p`` and ``q``, above the output of ``draw(p, q)`` for their pmfs.

    Without ipywidgets, return a sentence that names the missing package.
    """
    try:
        import ipywidgets  # noqa: PLC0415
    except ImportError:
        return 'sliders need ipywidgets: pip install "specverify-suite[notebooks]"'
    names = [f"{name}({token})" for name, weights in (("p", p), ("q", q)) for token in range(len(weights))]
    sliders = {
        name: ipywidgets.IntSlider(value, 0, 10, description=name) for name, value in zip(names, (*p, *q), strict=True)
    }

    def shown(**weights: int) -> None:
        values = list(weights.values())
        draw_weights(draw, values[: len(p)], values[len(p) :])

    columns = [ipywidgets.VBox(list(sliders.values())[at : at + len(p)]) for at in (0, len(p))]
    return ipywidgets.VBox([ipywidgets.HBox(columns), ipywidgets.interactive_output(shown, sliders)])


def draw_weights(draw: Callable[[Pmf, Pmf], object], p: Sequence[int], q: Sequence[int]) -> None:
    """Call ``draw`` with the pmfs of the integer weights ``p`` and ``q``, and print their acceptance.

    If all weights of ``p`` or all weights of ``q`` are 0, print instead that they are no pmf.
    """
    if not any(p) or not any(q):
        print("all weights are 0: expected one above 0")  # noqa: T201  # a widget shows what is printed
        return
    high, low = (np.array([Fraction(weight, sum(row)) for weight in row]) for row in (p, q))
    draw(high, low)
    plt.show()
    print(f"accepted with probability {overlap(high, low)}")  # noqa: T201
