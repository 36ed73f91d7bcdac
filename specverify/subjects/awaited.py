"""Results that arrive later or in pieces: coroutines, async generators and generators.

``asyncio.run`` runs a coroutine until it returns. A generator of either kind is read to its end, or up to the
wanted number of tokens and then closed. Its pieces are tokens, or successive chunks of new tokens.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import aclosing, closing, nullcontext
from typing import Any, NamedTuple

import numpy as np

from specverify.subjects.subject import UnusableSubject


class Stream(NamedTuple):
    """The items that an engine's generator has yielded, in order.

    It has a type of its own, so that the items are not confused with a list of tokens that an engine returns.
    """

    pieces: list[Any]
    """Each is a token or a chunk of new tokens."""
    ended: bool = False
    """Whether the generator ended by itself; False: it was closed after the wanted number of tokens."""


Enough = Callable[[list[Any]], bool]
"""``enough(pieces)`` returns whether to stop reading a generator after these pieces."""


def awaited(answer: Any, enough: Enough = lambda pieces: False) -> Any:
    """Return the result of ``answer``: of an awaitable its value, of a generator a ``Stream``; other values unchanged.

    A generator is read until ``enough`` returns True for its items so far. Raises ``UnusableSubject`` for an awaitable
    or an async generator if an event loop is already running.
    """
    if inspect.isawaitable(answer) or hasattr(answer, "__aiter__"):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return awaited(asyncio.run(_arrived(answer, enough)), enough)
        if inspect.iscoroutine(answer):
            answer.close()
        raise UnusableSubject(
            "it returned a coroutine, and an event loop is running in this thread already: call the check function "
            "from a function that is not async"
        )
    if isinstance(answer, Iterator) and not hasattr(answer, "__len__"):
        return _read(answer, enough)
    return answer


def _as_it_is_now(piece: Any) -> Any:
    """Return a copy of ``piece`` if it is a list or an array, which a generator may use again for its next piece."""
    if type(piece) is list:
        return [_as_it_is_now(each) for each in piece]
    if type(piece) is np.ndarray:
        return piece.copy()
    return piece.clone() if callable(getattr(piece, "clone", None)) else piece


def _read(answer: Iterator[Any], enough: Enough) -> Stream:
    pieces: list[Any] = []
    ending: Any = closing(answer) if inspect.isgenerator(answer) else nullcontext()
    with ending:
        for piece in answer:
            pieces.append(_as_it_is_now(piece))
            if enough(pieces):
                return Stream(pieces)
    return Stream(pieces, ended=True)


async def _arrived(answer: Any, enough: Enough) -> Any:
    while inspect.isawaitable(answer):
        answer = await answer
    if not hasattr(answer, "__aiter__"):
        return answer
    pieces: list[Any] = []
    ending: Any = aclosing(answer) if inspect.isasyncgen(answer) else nullcontext()
    async with ending:
        async for piece in answer:
            pieces.append(_as_it_is_now(piece))
            if enough(pieces):
                return Stream(pieces)
    return Stream(pieces, ended=True)
