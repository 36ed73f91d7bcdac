"""A situation of the engine, as plain data: requests, models, drafter, batch, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from specverify.mutants.serving.stopping import Pieces
from specverify.reference import Tokens

LETTERS: Pieces = (b"a", b"b", b"c", b"d", b"e")
HALVES: Pieces = (b"a", b"\xc3", b"\xa9", b"d")
"""Tokens 1 and 2 together are one character, each alone none."""


class Setup(NamedTuple):
    """Everything but the parts."""

    bodies: tuple[Mapping[str, Any], ...]
    """What the callers send; see ``request.Request``."""
    name: str = ""
    vocabulary: int = 3
    shape: str = "generic"
    seed: int = 0
    gammas: Tokens = (2,)
    """Tokens a request drafts in its rounds, in turn, starting at its number."""
    drafting: str = "sampled"
    """How: ``sampled`` from the draft model, ``argmax`` of it, or by ``lookup`` in the text."""
    draft_processed: bool = False
    """Whether the draft's rows go through the request's parameters and grammar too."""
    draft_ids: Tokens = ()
    """The target ids of the draft's tokens; the same ids if empty."""
    flavour: str = "attention"
    """Or ``recurrent``."""
    window: int = 0
    """Entries that the newest token sees, itself included; all if 0."""
    spare: int = 2
    """Entries beyond the window that a cache holds."""
    page_size: int = 2
    pages: int = 16
    chunk: int = 0
    """Prompt tokens fed a pass; all of them, and the first drafts behind them, if 0."""
    alone_first: bool = False
    """Whether the first new token comes from the pass that feeds the prompt, without drafts."""
    capacity: int = 4
    """Requests in the batch, at most."""
    rotates: bool = False
    rectangular: bool = False
    padding: int = 0
    """Rows of the pass that belong to nobody."""
    preempted: tuple[tuple[int, int], ...] = ()
    """(step, request): the request loses its caches before the step."""
    aborted: tuple[tuple[int, int], ...] = ()
    """(step, request): its caller goes away while the step's pass runs."""
    waits: bool = False
    ranks: int = 1
    pieces: Pieces = LETTERS
    outcome: str = "tokens"
    """What a request ends with: new ``tokens``, those and their ``reported`` probabilities, or what was ``streamed``.

    A request whose caller went away ends with the number of its accepted drafts.
    """
    reports: bool = False
    """Whether the most probable tokens and the prompt's probabilities are handed out beside the tokens."""
    top: int = 2
