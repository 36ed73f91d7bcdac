"""The form in which an engine takes prompts and returns new tokens, determined by a few calls.

A prompt is passed as a tuple; if an engine raises ``TypeError`` or ``AttributeError``, as a list, an array, or a tensor
``[length]`` or ``[1, length]``. The rows that these first calls return show whether a row contains the prompt: this is
so if all of them begin with their prompt and have a whole text after it. In later calls, a row that then does not begin
with its prompt is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.awaited import Enough, Stream, awaited
from specverify.subjects.call_arguments import run_seeds, takes_prompt
from specverify.subjects.engine_answers import (
    AnswerRows,
    elements_of_row,
    grows,
    has_tokens,
    is_complete,
    prompt_end,
    read_answer_rows,
    refuse_growing,
    without_padding,
)
from specverify.subjects.seeded import seeded

UNLIKE_PROMPTS: tuple[Tokens, ...] = ((0, 1, 0), (1,))
"""Prompts of different length, of which an engine may pad the shorter one."""
BEYOND = 64
"""Most tokens that are read beyond the wanted number, from a stream that seems to end by itself."""


class EngineForm(NamedTuple):
    """How an engine takes a prompt, and where new tokens are in its rows."""

    give: Callable[[Tokens], Any] = tuple
    """``give(prompt)`` converts a prompt to the type that the engine takes."""
    in_front: bool = False
    """Whether each row begins with its prompt, after padding up to the longest prompt of the call."""
    ends: bool = False
    """Whether its streams end by themselves soon after the wanted number of tokens. Such a stream is read to its end,
    because the engine may finish its request there."""

    def is_enough(self, wanted: int) -> Enough:
        """Return the function that states after which pieces of a stream of ``wanted`` tokens to stop reading."""
        return partial(has_tokens, wanted + BEYOND if self.ends else wanted)


PLAIN_FORM: Final = EngineForm()


class ProbedCall(NamedTuple):
    """A call made to determine the form of an engine.

    ``prompts`` are passed as a list if ``batched``, and ``horizon`` is the number of new tokens that each should get.
    """

    fresh: Callable[[], Callable[..., Any]]
    """Creates the engine and returns its call."""
    prompts: tuple[Tokens, ...]
    batched: bool
    horizon: int


def form_of_calls(calls: Sequence[ProbedCall]) -> EngineForm:
    """Return the form of prompts and results that ``calls`` determine; the default form if all calls failed.

    Failures are ignored here; the checks report them. Raises ``UnusableSubject`` for a generator that repeats the whole
    text so far in each piece.
    """
    for give in (tuple, list, np.array, _tensor, _row_tensor):
        with suppress(TypeError, AttributeError, ImportError):
            return _form_given(calls, give)
    return PLAIN_FORM


def _form_given(calls: Sequence[ProbedCall], give: Callable[[Tokens], Any]) -> EngineForm:
    growing, in_front, ends = list[bool](), list[bool](), list[bool]()
    given = [[give(prompt) for prompt in call.prompts] for call in calls]
    for call, prompts in zip(calls, given, strict=True):
        try:
            with seeded(0), run_seeds():
                answer = _answer(call, prompts)
                if isinstance(answer, Stream):
                    ends.append(answer.ended)
                    if len(answer.pieces) > 1:
                        growing.append(grows(answer))
                result = read_answer_rows(answer, len(call.prompts) if call.batched else None)
        except (TypeError, AttributeError):
            raise
        except Exception:  # noqa: BLE001, S112 - the checks will name it
            continue
        in_front.append(_is_in_front(result, call))
    refuse_growing(growing)
    return EngineForm(give, len(in_front) > 1 and all(in_front), bool(ends) and all(ends))


def _answer(call: ProbedCall, given: list[Any]) -> Any:
    decode = call.fresh()
    enough = partial(has_tokens, call.horizon + max(map(len, call.prompts)))
    if call.batched:
        return awaited(decode(given), enough)
    return awaited(decode(*given) if takes_prompt(decode) else decode(), enough)


def _is_in_front(found: AnswerRows, call: ProbedCall) -> bool:
    """Return whether every row of the result ``found`` begins with its prompt and has a whole text after the prompt.

    ``call`` is the call that returned the result; it has the prompts and the number of new tokens.
    """
    if len(found.rows) != len(call.prompts):
        return False
    longest = max(map(len, call.prompts))
    for row, prompt in zip(found.rows, call.prompts, strict=True):
        elements = without_padding(elements_of_row(row), left=True)
        end = prompt_end(elements, prompt, longest)
        if end is None or not is_complete(elements[end:], call.horizon, ()):
            return False
    return True


def _tensor(prompt: Tokens) -> Any:
    if "torch" not in sys.modules:
        raise ImportError("torch")
    return sys.modules["torch"].tensor(prompt)


def _row_tensor(prompt: Tokens) -> Any:
    return _tensor(prompt)[None]
