"""A language model as drafter (Leviathan et al. 2211.17192, Algorithm 1, the drafting loop)."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from ..validation import check_callable


def model_drafter(draft: LanguageModel) -> Drafter:
    """Return a drafter that draws token by token from ``draft``.

    The draft has, for each token, the pmf from which it was drawn. Raises ``ValueError`` if ``draft`` is no callable.
    """
    check_callable(draft, "draft")

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(drafted) < gamma:
            q = draft(prefix + drafted)
            token = draws.categorical(q, ("draft", len(drafted)))
            drafted, pmfs = (*drafted, token), (*pmfs, q)
            if stop_after(q, token):
                break
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)


def greedy_drafter(draft: LanguageModel) -> Drafter:
    """Return a drafter that drafts the argmax of ``draft``, token by token, as point masses.

    The stopping condition ``stop_after(q, token)`` gets the row of ``draft`` as q, not the point mass. Raises
    ``ValueError`` if ``draft`` is no callable.
    """
    check_callable(draft, "draft")

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        while len(drafted) < gamma:
            q = draft(prefix + drafted)
            drafted = (*drafted, argmax(q))
            if stop_after(q, drafted[-1]):
                break
        return chain(drafted, (None,) * len(drafted))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def stateless(*_: object) -> None:
    """Return None, the state of a drafter without state."""
    return
