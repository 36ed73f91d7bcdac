"""A user's drafter: its drafts, and the rows of q that it reports for them.

  propose(tokens, gamma) -> (draft_tokens, q)

``tokens`` is the tuple of all tokens so far; ``draft_tokens`` are at most ``gamma`` token ids, and ``q``
``[len(draft_tokens), vocabulary]`` the rows they were drawn from, or None if nothing is drawn. A drafter that draws
nothing may also return the token ids alone. Its draws (of torch, NumPy or ``random``) are enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import numpy as np

from specverify.base.callables import first_line
from specverify.intercept.distributions import Forced
from specverify.intercept.everywhere import answered_everywhere
from specverify.reference import Draws, Tokens
from specverify.reference.validation import shown
from specverify.subjects.engine import tokens_of
from specverify.subjects.proposed import DraftRequest, Proposed, numbers_of
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import EngineProgram, Subject, UnusableSubject

Propose = Callable[[Tokens, int], Any]


GAMMAS, DEEP_GAMMAS = (1, 2, 3), (5, 6, 8)
MOST_PATHS = 2000
"""The most paths of a drafter at ``DEEP_GAMMAS``: 8 drafts of two tokens, 6 of three or 5 of four stay below it."""


def drafter_subject(
    propose: Propose, name: str, prompts: Sequence[Tokens], gammas: Sequence[int] | None = None
) -> Subject:
    """Return the subject of the drafter ``propose``, to be examined after each of ``prompts`` with each of ``gammas``.

    ``name`` is the name of the subject. If ``gammas`` is None, they are ``GAMMAS``, and after the last prompt also
    those of ``DEEP_GAMMAS`` with which the drafter has few paths (``MOST_PATHS``). Successive requests have different
    prompts, so that a drafter with a stale cache reports another q.
    """
    asked = [DraftRequest(prompt, gamma) for gamma in gammas or GAMMAS for prompt in prompts]
    deep = [] if gammas else [DraftRequest(prompts[-1], gamma) for gamma in DEEP_GAMMAS]
    return Subject(
        name=name,
        summary=first_line(propose, "a drafter"),
        claims=frozenset(),
        rational=False,
        warm=partial(_warm, propose, asked[-1]),
        situations=(
            *(_program(propose, item) for item in asked),
            *(_program(propose, item)._replace(most_paths=MOST_PATHS) for item in deep),
        ),
    )


def _program(propose: Propose, asked: DraftRequest) -> EngineProgram:
    label = f"after {asked.tokens}, gamma={asked.gamma}"
    return EngineProgram(label, partial(_opened, propose, asked), law=dict, replays=20, source=asked)


def _warm(propose: Propose, asked: DraftRequest) -> None:
    with seeded(0), suppress(Exception):
        propose(*asked)


@contextmanager
def _opened(propose: Propose, asked: DraftRequest, forced_uniform: Forced = None) -> Iterator[Callable[[Draws], Any]]:
    def program(draws: Draws) -> Proposed:
        with answered_everywhere(draws, forced_uniform):
            return proposed(propose(*asked))

    yield program


def proposed(answer: Any) -> Proposed:
    """Return ``answer``, the result of a drafter, as ``Proposed``.

    Raises ``UnusableSubject`` unless it consists of tokens and their pmfs (or None), or is a row of tokens alone.
    """
    expected = "expected (draft_tokens, q), q being [drafts, vocabulary] or None"
    if _is_row(answer):
        return Proposed(_tokens(answer), None)
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise UnusableSubject(f"it returned {shown(answer)}, {expected}")
    tokens, q = _tokens(answer[0]), answer[1]
    if tokens and min(tokens) < 0:
        raise UnusableSubject(f"it drafted token {min(tokens)}, expected token ids of at least 0")
    if q is None:
        return Proposed(tokens, None)
    try:
        rows = tuple(tuple(numbers_of(row)) for row in q)
    except (TypeError, ValueError):
        raise UnusableSubject(f"it returned {shown(q)} for q, {expected}") from None
    if len(rows) != len(tokens) or any(len(row) != len(rows[0]) for row in rows):
        raise UnusableSubject(f"it returned {len(tokens)} drafts and {len(rows)} rows of q, {expected}")
    for place, row in enumerate(rows):
        if not np.isfinite(row).all():
            raise UnusableSubject(f"row {place} of q is {shown(row)}, expected finite probabilities")
    if rows and max(tokens) >= len(rows[0]):
        raise UnusableSubject(f"it drafted token {max(tokens)} of a vocabulary of {len(rows[0])}, {expected}")
    return Proposed(tokens, rows)


def _is_row(answer: Any) -> bool:
    """Return whether ``answer``, the result of a drafter, is one row of numbers: tokens without pmfs."""
    if not isinstance(answer, (tuple, list)):
        return bool(getattr(answer, "ndim", 0) == 1)
    return all(item is not None and not isinstance(item, str) and np.ndim(item) == 0 for item in answer)


def _tokens(answer: Any) -> Tokens:
    if hasattr(answer, "detach"):
        from specverify.intercept.torch.tensors import elements_of  # noqa: PLC0415 - it is a tensor

        answer = list(elements_of(answer.reshape(-1)))
    return tokens_of(answer) if np.size(answer) else ()
