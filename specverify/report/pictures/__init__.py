"""Figures of the notebooks: bars of p and q, trees, and texts coloured by origin, in one style. Needs matplotlib."""

from specverify.report.pictures.acceptance_bars import (
    acceptance_film,
    draw_coupling,
    draw_points,
    explore,
    thrown_points,
)
from specverify.report.pictures.draft_tree import draw_tree
from specverify.report.pictures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, use_style
from specverify.report.pictures.words import Piece, draw_words, pieces_of

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "SKY",
    "Piece",
    "acceptance_film",
    "draw_coupling",
    "draw_points",
    "draw_tree",
    "draw_words",
    "explore",
    "pieces_of",
    "thrown_points",
    "use_style",
]
