"""Models that compute the next row from the visible cache entries, in the order of their positions.

A target and a draft are full-context tables of ``Fraction``. A cache entry is (token, position, writer). A row depends
on all visible entries. Entries with positions other than 0, 1, 2, ... or written by the other model give the row of
another context. Every mistake with a cache, a position or a mask therefore changes the law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from specverify.laws.tables import table_pair
from specverify.mutants.serving.request import ExactPmf
from specverify.reference import LanguageModel, Tokens

TARGET, DRAFT = 0, 1
OTHER_WRITER = 1000
OTHER_PLACE = 100


class Entry(NamedTuple):
    """The cache entry of one input token: the token, its position, and the model that wrote the entry."""

    token: int
    position: int
    writer: int = TARGET


class Models(NamedTuple):
    """A target and a draft model, as functions from cache entries to the pmf of the next token.

    ``target`` and ``draft`` take the entries that a pass may read, which the attention mask leaves visible. Wrong
    positions or writers among them give another pmf. ``by_tokens`` is the target as a function of tokens alone.
    """

    target: Callable[[Sequence[Entry]], ExactPmf]
    draft: Callable[[Sequence[Entry]], ExactPmf]
    by_tokens: Callable[[Tokens], ExactPmf]
    """The target's pmf after the tokens of a clean cache; for a recurrent target, after the tokens in its state."""


@cache
def table_sides(shape: str, vocabulary: int, seed: int) -> Models:
    """Return the target and the draft model of the tables with this shape, vocabulary size and seed.

    ``specverify.laws.tables`` defines the tables and the names of the shapes.
    """
    return models_of(*table_pair(shape, vocabulary, seed))


def models_of(target: LanguageModel, draft: LanguageModel) -> Models:
    """Return models that read a cache, made from two language models ``tokens -> pmf``."""
    sides = [cache(lambda tokens, model=model: tuple(model(tokens).tolist())) for model in (target, draft)]

    def read(side: int) -> Callable[[Sequence[Entry]], ExactPmf]:
        return lambda entries: sides[side](context(entries, side))

    return Models(read(TARGET), read(DRAFT), sides[TARGET])


def context(entries: Sequence[Entry], reader: int, first: int = 0) -> Tokens:
    """Return the context that the model ``reader`` reads from ``entries``: their tokens in order of position.

    ``first`` is the position that the first entry should have. If the positions are not ``first``, ``first`` + 1, ...,
    or the other model wrote an entry, marker tokens follow: they lead to another row.
    """
    ordered = sorted(entries, key=lambda entry: entry.position)
    tokens = tuple(entry.token for entry in ordered)
    places = tuple(entry.position for entry in ordered)
    strange = () if places == tuple(range(first, first + len(places))) else tuple(OTHER_PLACE + p for p in places)
    foreign = tuple(OTHER_WRITER + entry.position for entry in ordered if entry.writer != reader)
    return tokens + strange + foreign


def scan(state: Tokens, fed: Tokens) -> tuple[Tokens, ...]:
    """Return the recurrent state after each token of ``fed``, from ``state`` on.

    A state is the tuple of tokens read.
    """
    return tuple(state + fed[: count + 1] for count in range(len(fed)))
