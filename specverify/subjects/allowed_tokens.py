"""The constraint of an engine: the tokens that it allows after each text, and the target's law under it.

A constraint may forbid every token that a row of a small model makes possible, which rows of real models do not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np

from specverify.reference import LanguageModel, Pmf, Tokens
from specverify.reference.validation import shown
from specverify.subjects.subject import NothingAllowed, UnusableSubject


def constrained(target: LanguageModel, allowed: Callable[[Tokens], Any], prompt: Tokens) -> LanguageModel:
    """Return the target with each pmf multiplied by the weights of a constraint and renormalised.

    ``allowed(new)`` returns the weights ``[vocabulary]`` after the new tokens ``new``, which follow ``prompt``. The
    returned model raises ``NothingAllowed`` after a text for which all possible tokens have the weight 0.
    """

    def row(tokens: Tokens) -> Pmf:
        mask = allowed_after(allowed, tokens[len(prompt) :])
        p = target(tokens)
        if mask.shape != p.shape:
            raise UnusableSubject(f"allowed({tokens[len(prompt) :]}) has shape {mask.shape}, expected {p.shape}")
        masked = p * mask
        total = masked.sum()
        if not total > 0:
            raise NothingAllowed
        return masked / total

    return row


def allowed_after(allowed: Callable[[Tokens], Any], new: Tokens) -> Any:
    """Return the weights ``[vocabulary]`` of the constraint ``allowed`` after the tokens ``new``, in float64.

    ``allowed(new)`` returns a mask, or weights; the weight 0 forbids a token. Raises ``UnusableSubject`` unless the
    result is a vector of finite numbers that are not negative.
    """
    given = allowed(new)
    try:
        weights = np.asarray(given.tolist() if hasattr(given, "tolist") else given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UnusableSubject(f"allowed({new}) returned {shown(given)}, expected a mask [vocabulary]") from None
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise UnusableSubject(f"allowed({new}) returned {shown(given)}, expected a mask [vocabulary], or weights")
    return weights


class QueriedConstraint:
    """The constraint ``allowed`` of an engine, with the rows that the engine asked of its models since a run began.

    ``models`` are the target and the draft by name, and ``queries`` are filled by the models that the engine got.
    """

    def __init__(
        self,
        allowed: Callable[[Tokens], Any],
        models: Mapping[str, LanguageModel],
        queries: deque[tuple[str, Tokens]],
    ) -> None:
        """Keep the constraint, the models and their queries."""
        self.allowed, self.models, self.queries = allowed, models, queries

    def __call__(self, new: Tokens) -> Any:
        """Return the mask, or the weights, of the token after the new tokens ``new``."""
        return self.allowed(new)

    def forbidden_row(self, prompts: Iterable[Tokens]) -> Tokens | None:
        """Return a queried text after which no token is both possible and allowed; None if there is none.

        The text begins with one of ``prompts``, the prompts of the run.
        """
        for (name, text), prompt in product(self.queries, set(prompts)):
            if text[: len(prompt)] == prompt:
                row, mask = self.models[name](text), allowed_after(self.allowed, text[len(prompt) :])
                if row.shape == mask.shape and not (row * mask).any():
                    return text
        return None


@contextmanager
def errors_of_empty_rows(allowed: Callable[[Tokens], Any] | None, prompts: Iterable[Tokens]) -> Iterator[None]:
    """Replace an error of a run by ``NothingAllowed`` if the constraint forbids every possible token of a queried row.

    ``allowed`` is the engine's constraint, None if it has none. ``prompts`` are the prompts of the run, which is the
    body of the ``with`` statement. Errors of this package are not replaced.
    """
    if not isinstance(allowed, QueriedConstraint):
        yield
        return
    allowed.queries.clear()
    try:
        yield
    except Exception as error:
        is_own = type(error).__module__.partition(".")[0] == __name__.partition(".")[0]
        text = None if is_own else allowed.forbidden_row(prompts)
        if text is None:
            raise
        raise NothingAllowed(f"the constraint forbids every possible token after {text}: {error}") from error


def first_forbidden(allowed: Callable[[Tokens], Any], new: Tokens) -> tuple[int, Tokens] | None:
    """Return (position, allowed tokens) of the first token of ``new`` that a constraint forbids; None if there is none.

    ``allowed(new)`` returns the weights ``[vocabulary]`` of the token after ``new``; the weight 0 forbids a token.
    Raises ``UnusableSubject`` for invalid weights.
    """
    for place, token in enumerate(new):
        weights = allowed_after(allowed, new[:place])
        if not (token < len(weights) and weights[token] > 0):
            return place, tuple(int(other) for other in np.flatnonzero(weights))
    return None
