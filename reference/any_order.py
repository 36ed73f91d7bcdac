"""A masked model derived from a left-to-right model: the law of a position of a block, given the filled positions.

A masked diffusion model predicts every masked position of a block from the text before the block and the filled
positions. This model is exact: its rows are the conditionals of the joint law that the left-to-right model gives the
block. If the positions are filled one after another by draws from these rows, the block has that joint law (chain
rule). The order is arbitrary, if the next position is chosen by the filled positions alone. Two positions may not be
filled from the rows of one pass: these draws are independent, but the joint law need not be a product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

from .types import LanguageModel, Pmf, Tokens

Block: TypeAlias = tuple[int | None, ...]
"""Positions of a block: a token id, or None at a masked position."""
MaskedModel: TypeAlias = Callable[[Tokens, Block, int], Pmf]
"""``model(prefix, block, place)``: the pmf of the token at the masked position ``place`` of ``block``."""


def masked_model(model: LanguageModel) -> MaskedModel:
    """Return the masked model whose blocks have the joint law of ``model``; its last 4096 rows are cached."""

    @lru_cache(maxsize=4096)
    def row(prefix: Tokens, block: Block, place: int) -> Pmf:
        return conditional(model, prefix, block, place)

    return row


def conditional(model: LanguageModel, prefix: Tokens, block: Block, place: int) -> Pmf:
    """Return the pmf ``[V]`` of ``block[place]`` under ``model`` after ``prefix``, given the filled positions.

    Raises ``ValueError`` if ``place`` is filled, or if the filled positions have probability 0.
    """
    if block[place] is not None:
        raise ValueError(f"place {place} of {block} is filled, expected a masked place")
    if all(token is not None for token in block[:place]) and not any(_filled(block[place + 1 :])):
        return model(prefix + tuple(token for token in block[:place] if token is not None))
    masses = _masses(model, prefix, block, place)
    total = masses.sum()
    if not total > 0:
        raise ValueError(f"{block} has probability 0 after {prefix}, expected filled places that can occur")
    return masses / total


def filled(block: Block, place: int, token: int) -> Block:
    """Return ``block`` with ``token`` at ``place``."""
    return (*block[:place], token, *block[place + 1 :])


def masked_places(block: Block) -> list[int]:
    """Return the masked positions of ``block`` in increasing order."""
    return [place for place, token in enumerate(block) if token is None]


def _filled(block: Block) -> list[bool]:
    return [token is not None for token in block]


def _masses(model: LanguageModel, text: Tokens, rest: Block, place: int) -> Pmf:
    """Return for each token the probability that ``model`` continues ``text`` with this token at ``place`` of ``rest``.

    ``rest`` are the positions of the block after ``text``. Its filled positions must have their tokens; other masked
    positions are summed out.
    """
    row = model(text)
    if place == 0:
        masses = row * 1
        for token, mass in enumerate(row.tolist()):
            if mass > 0:
                masses[token] = mass * _mass(model, (*text, token), rest[1:])
        return masses
    masses = row * 0
    for token, mass in enumerate(row.tolist()):
        if mass > 0 and rest[0] in {None, token}:
            masses = masses + mass * _masses(model, (*text, token), rest[1:], place - 1)
    return masses


def _mass(model: LanguageModel, text: Tokens, rest: Block) -> Any:
    """Return the probability that ``model`` continues ``text`` with the tokens of the filled positions of ``rest``.

    ``rest`` are the positions of the block after ``text``; its masked positions are summed out.
    """
    if not any(_filled(rest)):
        return 1
    return sum(
        mass * _mass(model, (*text, token), rest[1:])
        for token, mass in enumerate(model(text).tolist())
        if mass > 0 and rest[0] in {None, token}
    )
