"""Draw a text as a figure, each letter coloured by its origin: prompt, accepted draft, or target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.patches import Patch, Rectangle

from specverify.reference import Round
from specverify.report.pictures.style import ORANGE, SKY

COLUMNS = 48
"""Letters per line; as many as are legible on a telephone."""
_WHITE, _ALPHA = "#ffffff", 0.75


class Piece(NamedTuple):
    """A piece of text with its origin, which is a key of the dictionary of colours."""

    text: str
    kind: str


COLOURS = {"written before": _WHITE, "drafted and accepted": SKY, "from the target": ORANGE}
"""The colours of ``pieces_of``."""


def pieces_of(before: str, rounds: Sequence[Round], spelled: Callable[[int], str]) -> list[Piece]:
    """Return the pieces of a text: the prompt ``before``, then for each of ``rounds`` its accepted drafts and the rest.

    The rest of a round are the tokens of the target. ``spelled`` returns the string of a token.
    """
    pieces = [Piece(before, "written before")]
    for done in rounds:
        kept, added = done.tokens[: done.accepted], done.tokens[done.accepted :]
        pieces.append(Piece("".join(map(spelled, kept)), "drafted and accepted"))
        pieces.append(Piece("".join(map(spelled, added)), "from the target"))
    return pieces


def draw_words(axes: Any, pieces: Sequence[Piece], colours: Mapping[str, str] = COLOURS) -> None:
    """Draw the pieces into ``axes`` in lines of ``COLUMNS`` letters; a line break is shown as ``↵``.

    ``colours`` maps the origin of a piece to its colour.
    """
    row = column = 0
    for text, kind in pieces:
        for letter in text:
            shown = "↵" if letter == "\n" else letter
            axes.text(column + 0.5, row, shown, ha="center", va="center_baseline", family="monospace", fontsize=9.5)
            if colours[kind] != _WHITE:
                axes.add_patch(Rectangle((column, row - 0.43), 1, 0.86, color=colours[kind], alpha=_ALPHA, linewidth=0))
            column += 1
            if letter == "\n" or column == COLUMNS:
                row, column = row + 1, 0
    axes.set_xlim(0, COLUMNS)
    axes.set_ylim(row + 0.6, -0.6)
    axes.set_axis_off()
    used = {piece.kind for piece in pieces if piece.text}
    keys = [(kind, colour) for kind, colour in colours.items() if kind in used and colour != _WHITE]
    handles = [Patch(color=colour, alpha=_ALPHA, linewidth=0, label=kind) for kind, colour in keys]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, -0.01), ncols=3, handlelength=1, borderaxespad=0)
