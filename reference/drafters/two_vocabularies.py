"""Drafters whose vocabulary differs from the target's (Timor et al. 2502.05202).

A drafter's token is a string, which is spelled in the target's tokens. Two tokenizers are modelled by ``pieces``: the
tokens of the drafter that spell several tokens of the target, such as ``((0, (0, 1)),)``; every other token spells
itself. If pieces share a beginning, several drafts give the same text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from .model import stateless

Pieces: TypeAlias = tuple[tuple[int, Tokens], ...]


def spelled(pieces: Pieces, token: int) -> Tokens:
    """Return the target tokens that the drafter's ``token`` spells, by ``pieces``.

    Raises ``ValueError`` if it spells nothing.
    """
    text = dict(pieces).get(token, (token,))
    if not text:
        raise ValueError(f"pieces are {pieces}, expected at least one token for each")
    return text


def shared_part(q: Pmf, missing: Tokens) -> Pmf | None:
    """Return q without the tokens ``missing``, normalised; None if no mass remains.

    ``missing`` are the tokens that the target's vocabulary lacks.
    """
    kept = q * 1
    for token in missing:
        if token < len(kept):
            kept[token] = kept[token] * 0
    mass = kept.sum()
    return kept / mass if mass > 0 else None


def shared_tokens_drafter(draft: LanguageModel, missing: Tokens) -> Drafter:
    """Return a drafter of q without the tokens ``missing``, normalised; the draft ends where no mass remains."""

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(drafted) < gamma and (q := shared_part(draft(prefix + drafted), missing)) is not None:
            token = draws.categorical(q, ("draft", len(drafted)))
            drafted, pmfs = (*drafted, token), (*pmfs, q)
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)


def respelling_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Return a drafter of the argmaxes of ``draft``, spelled in the target's tokens; at most gamma target tokens.

    ``pieces`` has the target tokens that each token of ``draft`` spells.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, argmax(draft(prefix + text)))
        return chain(text[: max(gamma, 0)], (None,) * len(text[: max(gamma, 0)]))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def respelled_sample_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Return a drafter of text sampled from ``draft``, spelled in the target's tokens; at most gamma target tokens.

    ``pieces`` has the target tokens that each token of ``draft`` spells. Each target token is a point mass in the
    draft.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, draws.categorical(draft(prefix + text), ("draft", len(text))))
        return chain(text[: max(gamma, 0)], (None,) * len(text[: max(gamma, 0)]))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def string_law_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Return a drafter of target tokens with the law of the drafter's text, summed over all ways to spell it.

    A token of ``draft`` may spell several target tokens: ``pieces`` states which. Each target token is drawn from the
    law of the next target token, given those drafted before. This pmf is its q in the draft.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        weights: dict[Tokens, Any] = {(): 1}
        while len(drafted) < gamma:
            ahead: dict[Tokens, Any] = {}
            for rest, weight in weights.items():
                q = draft(prefix + drafted)
                options = (
                    [(rest, weight)]
                    if rest
                    else [(spelled(pieces, token), weight * mass) for token, mass in enumerate(q.tolist()) if mass > 0]
                )
                for text, mass in options:
                    ahead[text] = ahead.get(text, 0) + mass
            psi = draft(prefix + drafted) * 0
            for text, mass in ahead.items():
                psi[text[0]] = psi[text[0]] + mass
            token = draws.categorical(psi, ("draft", len(drafted)))
            drafted, pmfs = (*drafted, token), (*pmfs, psi)
            weights = {text[1:]: mass / psi[token] for text, mass in ahead.items() if text[0] == token}
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)
