"""The style of all figures: colours for colour-blind readers, legible letters.

A figure is 6.4 inches wide with its panels above each other, so that it is readable on a telephone. Lines with
different colours also have different markers or dashes.
"""

from __future__ import annotations

from typing import Any

try:
    import matplotlib.pyplot as plt
    from cycler import cycler
except ImportError as error:
    raise ImportError('pictures need matplotlib: pip install "specverify-suite[notebooks]"') from error

BLUE, ORANGE, GREEN, RED = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, GREY = "#cc79a7", "#56b4e9", "#8c8c8c"
"""Okabe and Ito's palette, and a grey."""

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=[BLUE, ORANGE, GREEN, RED, PURPLE, SKY]),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.dpi": 130,
    "figure.figsize": (6.4, 3.4),
    "font.size": 11,
    "grid.color": "#e4e4e4",
    "hatch.linewidth": 0.8,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "lines.linewidth": 2,
    "lines.markersize": 6,
}


def use_style() -> None:
    """Apply the style of the notebooks to all later figures."""
    plt.rcParams.update(_STYLE)
