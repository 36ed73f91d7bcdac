"""The kernel hands out the state after the last token of the window only, with every rejected draft in it."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def last(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the state after everything that was fed."""
    return states[-1]


MUTANT = in_situation(
    "recurrent",
    "state-after-last-draft",
    "the state keeps rejected drafts",
    category="I",
    citation="tpu-inference PRs #3178, #3057",
    checkpoint=last,
)
