"""Jacobi iteration as a drafter: the tokens of one sweep are the next draft (Santilli et al. 2305.10427, Section 3).

A sweep over a block of m unknown tokens computes ``y'_i = argmax p(. | x, y_<i)`` for all i at once. The leading tokens
that a sweep does not change are final, and so is the token after them: the sweep is a greedy verification of the block
before it. After j sweeps at least j tokens are final. Blocks follow each other (the paper's GS-Jacobi); a block starts
from padding, here the prompt's last token. The drafter's state is the unfinished block. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable

from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain


def sweep(target: LanguageModel, prefix: Tokens, guess: Tokens) -> Tokens:
    """Return the block after one sweep: the target's argmax at every position, given the tokens of ``guess``.

    The block follows the text ``prefix``.
    """
    return tuple(argmax(target(prefix + guess[:i])) for i in range(len(guess)))


def jacobi_drafter(block: int) -> Drafter:
    """Return a drafter of the block that the last sweep computed, without the block's last token.

    The last token is left out because no other token depends on it. Raises ``ValueError`` for a ``block`` below 1.
    """
    check_block(block)

    def propose(
        draws: Draws, guess: Tokens, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        drafted = guess[:-1][:gamma]
        return chain(drafted, (None,) * len(drafted))

    def observe(guess: Tokens, tokens: Tokens, start: int, target: LanguageModel) -> Tokens:
        left = sweep(target, tokens[:start], guess)[len(tokens) - start :]
        return left or padding(tokens, block)

    return Drafter(init=lambda prompt: padding(prompt, block), propose=propose, observe=observe)


def padding(tokens: Tokens, block: int) -> Tokens:
    """Return the block before its first sweep: the last known token, ``block`` times."""
    return tokens[-1:] * block


def check_block(block: int) -> None:
    """Raise ``ValueError`` unless ``block`` is an integer >= 1."""
    if isinstance(block, bool) or not isinstance(block, int) or block < 1:
        raise ValueError(f"block is {block!r}, expected an integer >= 1 (the tokens of one Jacobi iteration)")
