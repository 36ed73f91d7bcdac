"""Drafters with a vocabulary of their own (Timor et al. 2502.05202).

A drafter's token is a string. The target takes its own tokens, so a draft is spelled in them. The stand-in for two
tokenizers: ``pieces`` lists the tokens of the drafter that spell several tokens of the target, such as ``((0, (0,
1)),)``; every other token spells itself. Pieces that share a beginning make one text of several drafts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from .model import stateless

Pieces: TypeAlias = tuple[tuple[int, Tokens], ...]


def spelled(pieces: Pieces, token: int) -> Tokens:
    """Return the target's tokens that a drafter's token spells. Raises ``ValueError`` for one that spells nothing."""
    text = dict(pieces).get(token, (token,))
    if not text:
        raise ValueError(f"pieces are {pieces}, expected at least one token for each")
    return text


def shared_part(q: Pmf, missing: Tokens) -> Pmf | None:
    """Return q restricted to the tokens of both vocabularies, or None if no mass remains."""
    kept = q * 1
    for token in missing:
        if token < len(kept):
            kept[token] = kept[token] * 0
    mass = kept.sum()
    return kept / mass if mass > 0 else None


def shared_tokens_drafter(draft: LanguageModel, missing: Tokens) -> Drafter:
    """Draft from q restricted to the shared tokens and renormalised; the draft ends where no mass remains."""

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(drafted) < gamma and (q := shared_part(draft(prefix + drafted), missing)) is not None:
            token = draws.categorical(q, ("draft", len(drafted)))
            drafted, pmfs = (*drafted, token), (*pmfs, q)
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)


def respelling_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Draft the drafter's argmaxes, spelled in the target's tokens and cut at gamma of these."""

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, argmax(draft(prefix + text)))
        return chain(text[: max(gamma, 0)], (None,) * len(text[: max(gamma, 0)]))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def respelled_sample_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Draft a sampled text, spelled in the target's tokens and cut at gamma of these; each declares its point mass."""

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, draws.categorical(draft(prefix + text), ("draft", len(text))))
        return chain(text[: max(gamma, 0)], (None,) * len(text[: max(gamma, 0)]))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def string_law_drafter(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Draft target tokens from the law of the drafter's text, summed over all its spellings.

    ``weights[rest]`` is the probability that the drafter wrote this text and that ``rest`` is what its last token
    spells beyond it; the pmf of the next token is the sum over these, the drafter being asked where nothing is left.
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
