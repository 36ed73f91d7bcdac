"""A chain drafted by heads, each with its own pmf (Medusa 2401.10774, Hydra 2402.05109, MTP 2404.19737).

Head i drafts the i-th token. The methods differ in the inputs of a head: ``head(prefix, drafted)`` gets the text so far
and the drafts before its own, and an independent head ignores the latter. In both cases q_i is fixed before token i is
drawn, as speculative sampling requires. Trained heads are modelled by tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from .heads import stand_in_head
from .model import stateless

Head: TypeAlias = Callable[[Tokens, Tokens], Pmf]


def head_chain_drafter(heads: Sequence[Head]) -> Drafter:
    """Return a drafter of at most gamma tokens, one drawn from each of ``heads`` in turn.

    The pmf of each token in the draft is that of its head, which may depend on the drafts before it.
    """

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        for i, head in enumerate(heads[:gamma]):
            q = head(prefix, drafted)
            token = draws.categorical(q, ("draft", i))
            drafted, pmfs = (*drafted, token), (*pmfs, q)
            if stop_after(q, token):
                break
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)


def greedy_head_chain_drafter(heads: Sequence[Head]) -> Drafter:
    """Return a drafter of at most gamma tokens, the most probable one of each head, as point masses."""

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        for head in heads[:gamma]:
            drafted = (*drafted, argmax(head(prefix, drafted)))
        return chain(drafted, (None,) * len(drafted))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def independent_heads(draft: LanguageModel, count: int) -> tuple[Head, ...]:
    """Return ``count`` heads that depend neither on the last token of the text nor on the drafts.

    They model heads on the hidden state that predicted the last token. Head i, from 0, appends 1 + i argmaxes of q to
    the text without its last token (unless it has only one), and returns q after the result.
    """
    return tuple(_on_state_before_last(stand_in_head(draft, 1 + i)) for i in range(count))


def look_ahead_heads(draft: LanguageModel, count: int) -> tuple[Head, ...]:
    """Return ``count`` heads that depend on the whole text, but not on the drafts.

    Head i, from 0, appends the argmax of q to the text 1 + i times and returns q after the result.
    """
    return tuple(_on_text(stand_in_head(draft, 1 + i)) for i in range(count))


def dependent_head(draft: LanguageModel) -> Head:
    """Return the head that depends on the text and on the drafts before its own: q after both."""
    return lambda prefix, drafted: draft(prefix + drafted)


def _on_state_before_last(head: LanguageModel) -> Head:
    return lambda prefix, drafted: head(prefix[:-1] or prefix)


def _on_text(head: LanguageModel) -> Head:
    return lambda prefix, drafted: head(prefix)
