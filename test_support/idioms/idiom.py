"""Ways to write a step of a rejection sampler: each right, and once more with one mistake in it.

A table of idioms is a module whose functions are decorated by the step that they are: ``coin`` decides one draft,
``count`` all drafts of a row, ``token`` draws from weights, and ``verifier`` is the whole sampler. The rest of the
sampler is the same for all. ``wrong`` is the mistake: a piece of the source that occurs once, and its replacement.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import torch

from test_support.idioms.judged import with_mistake

Verify = Callable[..., Any]


class Idiom(NamedTuple):
    """An idiom, and the sampler that is written with it."""

    table: str
    """The module that it stands in."""
    name: str
    library: str
    what: str
    """The first line of its docstring."""
    right: Verify
    """``right(p, q, draft_tokens)`` returns the emitted tokens."""
    wrong: Verify
    """The same with the mistake."""
    mistake: tuple[str, str]
    """What is right, and what is written instead."""
    gamma: int
    unknown: str
    """What cannot be told of it, if the verdict is to be UNKNOWN."""
    place: int
    """The line that it begins at."""


def _part(
    into: Callable[[str, Any], Verify], gamma: int, library: str, wrong: tuple[str, str], unknown: str = ""
) -> Callable[[Any], Idiom]:
    def made(function: Any) -> Idiom:
        return Idiom(
            table=function.__module__.rpartition(".")[2],
            name=function.__name__.replace("_", " "),
            library=library,
            what=(function.__doc__ or "").strip().partition("\n")[0],
            right=into(library, function),
            wrong=into(library, with_mistake(function, *wrong)),
            mistake=wrong,
            gamma=gamma,
            unknown=unknown,
            place=function.__code__.co_firstlineno,
        )

    return made


def idioms_of(modules: Iterable[ModuleType]) -> tuple[Idiom, ...]:
    """Return the idioms of some tables, in the order of their definition."""
    found = [[value for value in vars(module).values() if isinstance(value, Idiom)] for module in modules]
    return tuple(idiom for each in found for idiom in sorted(each, key=lambda idiom: idiom.place))


# The rest of the sampler, in each library


class Arrays(NamedTuple):
    """The functions of a library with which the rest of a sampler is written."""

    uniform: Callable[[], Any]
    owed: Callable[[Any, Any], Any]
    """``owed(p, q)``: the residual, and p where rounding leaves nothing of it."""
    drawn: Callable[[Any], int]
    """A token drawn from weights."""


def _owed_of_tensors(p: Any, q: Any) -> Any:
    left = torch.clamp(p - q, min=0)
    return left if left.any() else p


def _owed_of_arrays(p: Any, q: Any) -> Any:
    left = np.maximum(p - q, 0)
    return left if left.any() else p


TENSORS = Arrays(lambda: torch.rand(()), _owed_of_tensors, lambda weights: int(torch.multinomial(weights, 1)))
ARRAYS = Arrays(
    lambda: np.random.default_rng().random(),
    _owed_of_arrays,
    lambda weights: int(np.random.default_rng().choice(len(weights), p=weights / weights.sum())),
)
NUMBERS = Arrays(
    random.random, _owed_of_arrays, lambda weights: random.choices(range(len(weights)), weights.tolist())[0]
)


def _arrays(library: str) -> Arrays:
    return {"NumPy": ARRAYS, "random": NUMBERS}.get(library, TENSORS)


def _of_coin(library: str, keeps: Any) -> Verify:
    _, owed, drawn = _arrays(library)

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not keeps(p[i, token], q[i, token]):
                return [*draft_tokens[:i].tolist(), drawn(owed(p[i], q[i]))]
        return [*draft_tokens.tolist(), drawn(p[-1])]

    return _named_after(verify, keeps, library)


def _of_count(library: str, accepted: Any) -> Verify:
    _, owed, drawn = _arrays(library)

    def verify(p, q, draft_tokens):
        places = list(range(len(draft_tokens)))
        count = int(accepted(p[places, draft_tokens], q[places, draft_tokens]))
        row = p[-1] if count == len(draft_tokens) else owed(p[count], q[count])
        return [*draft_tokens[:count].tolist(), drawn(row)]

    return _named_after(verify, accepted, library)


def _of_token(library: str, drawn: Any) -> Verify:
    uniform, owed, _ = _arrays(library)

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens.tolist()):
            if not uniform() * q[i, token] < p[i, token]:
                return [*draft_tokens[:i].tolist(), int(drawn(owed(p[i], q[i])))]
        return [*draft_tokens.tolist(), int(drawn(p[-1]))]

    return _named_after(verify, drawn, library)


def _whole(library: str, verify: Verify) -> Verify:
    return verify


def _named_after(verify: Verify, part: Any, library: str) -> Verify:
    """Return the sampler under the name of the step. A sampler of torch names torch, so that it gets tensors."""
    verify.__name__ = verify.__qualname__ = part.__name__
    verify.__doc__ = part.__doc__
    if "torch" in library:
        return _of_torch(verify)
    return verify


def _of_torch(verify: Verify) -> Verify:
    def in_torch(p, q, draft_tokens):
        assert isinstance(p, torch.Tensor)
        return verify(p, q, draft_tokens)

    in_torch.__name__ = in_torch.__qualname__ = verify.__name__
    in_torch.__doc__ = verify.__doc__
    return in_torch


coin = partial(_part, _of_coin, 1)
"""``coin(library, wrong)``: a function of p and q of one draft that returns whether it is kept."""
count = partial(_part, _of_count, 2)
"""``count(library, wrong)``: a function of p and q of two drafts that returns how many of them are kept."""
token = partial(_part, _of_token, 1)
"""``token(library, wrong)``: a function of weights that returns a token drawn from them."""
verifier = partial(_part, _whole, 2)
"""``verifier(library, wrong)``: a whole rejection sampler."""
