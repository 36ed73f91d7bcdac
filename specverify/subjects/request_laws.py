"""Parts of the law of a request to an engine: texts up to a stop string, truncated pmfs, distances from ties."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from specverify.laws.law import target_law
from specverify.reference import Task, Tokens
from specverify.subjects.subject import UnusableSubject

CLEAR: Final = 1e-4
"""The least distance of a truncation or an argmax from a tie; float32 errors are below a tenth of it."""


def law_of_texts(
    pmf: Callable[[Tokens], Any], prompt: Tokens, horizon: int, ends: Tokens, cut: Callable[[Tokens], Tokens]
) -> dict[Tokens, float]:
    """Return the law of the new tokens after ``prompt``, with ``cut`` applied to each text.

    ``pmf(new)`` returns the pmf after the prompt and the new tokens ``new``. A text ends after ``horizon`` new tokens,
    or with a token in ``ends``. ``cut(text)`` returns the part of the new tokens ``text`` that the engine should
    return.
    """
    task = Task(target=lambda tokens: pmf(tokens[len(prompt) :]), horizon=horizon, eos=ends)
    exact = target_law(task, prompt)
    total, result = sum(exact.values()), defaultdict[Tokens, float](float)
    for text, mass in exact.items():
        result[cut(text)] += float(mass / total)
    return dict(result)


def up_to_stop(text: Tokens, letters: Sequence[str], stops: Sequence[str]) -> Tokens:
    """Return a text up to and including the token that completes one of the ``stops`` strings; else the whole text.

    ``letters[token]`` is a token's string.
    """
    written = [letters[token] for token in text]
    for length in range(1, len(text) + 1):
        if any(stop in "".join(written[:length]) for stop in stops):
            return text[:length]
    return text


def only(masses: Any, kept: Any) -> Any:
    """Return ``masses`` restricted to the tokens of the mask ``kept``, scaled to sum to 1."""
    masses = np.where(kept, masses, 0.0)
    return masses / masses.sum()


def check_clear(distance: Any, what: str, prompt: Tokens) -> None:
    """Raise ``UnusableSubject`` if rounding could change a decision of a law, such as which token is the argmax.

    ``distance`` has the distances from a tie; one below ``CLEAR`` is too small. ``what`` is the decision in words, and
    ``prompt`` the prompt of the request.
    """
    least = np.abs(distance).min(initial=np.inf)
    if least < CLEAR:
        raise UnusableSubject(
            f"{what} is decided by {least:.1g} somewhere after {prompt}, expected {CLEAR:g} at least: "
            "another prompt or parameter has a law that rounding cannot change"
        )
