"""The window in which stop strings are looked for is made for one new token a step."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.stopping import Pieces, text_of
from specverify.reference import Tokens


def at_first(strings: Sequence[str], tokens: Tokens, fresh: int, pieces: Pieces) -> bool:
    """Return whether the first new token of a round completes a stop string."""
    return fresh == 1 and text_of(tokens, pieces).endswith(tuple(strings))


MUTANT = in_situation(
    "stop strings",
    "stop-string-window-of-one",
    "stop strings end at a round's first token",
    category="K",
    citation="openvino.genai PR #1719 (56fe5bf02)",
    killed_by="stop_law",
    has_stop_string=at_first,
)
