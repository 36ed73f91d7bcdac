"""NASD as released: a guess is compared with one draw from p; after a mismatch another draw is emitted.

Not lossless: ``declared_law`` returns the law of the output. The code is romsto/Speculative-Decoding at db7db67.

``ngram_assisted.py``: every guess is compared with a sample of p. After the last match the token is sampled anew, so a
guess d is emitted with probability ``p(d) (2 - p(d))``. In an unseen context a token is drafted uniformly from the
vocabulary, and drafting continues (``stop_if_unknown`` is off).

``ngram_storage.py``, ``NGramStorage``: contexts have 2 to n - 1 tokens. A context never has one token, although a
comment announces 2-grams, so n = 2 stores nothing. Of the continuations of a context with the largest count, the one
that reached this count first is drafted.

The theory document's rule is ``nasd-seed-rule``, the lossless one ``nasd``. Not covered: the option ``first_target``,
with which the first token comes from the target alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..drafters.ngram import NgramTable, ngram_drafter
from ..lengths.constant import constant
from ..pmf import checked_model, one_hot, uniform
from ..rounds import commit, from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    chain,
)
from ..verifiers.accept_or_replace import accept_or_replace


def contexts_of(order: int) -> NgramTable:
    """Return an empty table of contexts of 2 to ``order`` - 1 tokens. Raises ``ValueError`` for an order below 2."""
    if order < 2:
        raise ValueError(f"n-gram order is {order}, expected at least 2")
    return NgramTable(tuple(range(order - 1, 1, -1)))


def guessing_drafter(target: LanguageModel, order: int, filler_top_k: int) -> Drafter:
    """Return a drafter that drafts the predictions of an n-gram table; in an unseen context it draws a token uniformly.

    The table has n = ``order``. If ``filler_top_k`` is above 1, it also counts, at each position, the ``filler_top_k``
    most probable tokens of ``target``.
    """
    known = ngram_drafter(contexts_of(order), filler_top_k)

    def propose(draws: Draws, table: NgramTable, prefix: Tokens, gamma: int, stop: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf | None, ...] = ()
        while len(drafted) < gamma:
            token, pmf = table.predict(prefix + drafted), None
            if token is None:
                p = target(prefix)
                pmf = uniform(len(p), p)
                token = draws.categorical(pmf, ("draft", len(drafted)))
            drafted, pmfs = (*drafted, token), (*pmfs, pmf)
        return chain(drafted, pmfs)

    return known._replace(propose=propose)


@from_parts
def build(task: Task, order: int = 3, gamma: int = 5, filler_top_k: int = 3) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens; a guess d is accepted with probability p(d).

    After a rejection a token is drawn from p. Drafts are predictions of an n-gram table with n = ``order``. If
    ``filler_top_k`` is above 1, the table also counts the ``filler_top_k`` most probable tokens of p at each position.
    """
    verify = accept_or_replace(accept=lambda prefix, p, q, token: p[token], replacement=lambda p, q, token: p)
    target = checked_model(task.target, "target")
    return Parts(guessing_drafter(target, order, filler_top_k), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, order: int = 3, gamma: int = 5, filler_top_k: int = 3
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    Every sequence of rounds is followed with its own n-gram table. The options are those of ``build``.
    """
    law: dict[Tokens, Any] = {}
    observe: Callable[..., Any] = ngram_drafter(contexts_of(order), filler_top_k).observe

    def begin(tokens: Tokens, remaining: int, table: NgramTable, weight: Any) -> None:
        if remaining == 0:
            law[tokens[len(prompt) :]] = law.get(tokens[len(prompt) :], 0) + weight
        else:
            guess(tokens, (), remaining, table, weight)

    def end(tokens: Tokens, block: Tokens, remaining: int, table: NgramTable, weight: Any) -> None:
        new, left = commit(block, remaining, task.eos)
        begin(tokens + new, left, observe(table, tokens + new, len(tokens), task.target), weight)

    def guess(tokens: Tokens, kept: Tokens, remaining: int, table: NgramTable, weight: Any) -> None:
        p = task.target(tokens + kept)
        stays = 0 * p
        if len(kept) < min(gamma, remaining - 1):
            known = table.predict(tokens + kept)
            guessed = uniform(len(p), p) if known is None else one_hot(known, p)
            stays = guessed * p
        for token, mass in enumerate(stays.tolist()):
            if mass > 0:
                guess(tokens, (*kept, token), remaining, table, weight * mass)
        for token, mass in enumerate(((1 - stays.sum()) * p).tolist()):
            if mass > 0:
                end(tokens, (*kept, token), remaining, table, weight * mass)

    begin(prompt, task.horizon, contexts_of(order).observe(prompt), 1)
    return law


ALGORITHM = Algorithm(
    name="nasd-released",
    summary="accept d while z ~ p equals it, then draw from p again; uniform guesses in unknown contexts "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"order": 3, "gamma": 1, "filler_top_k": 1}, {"order": 3, "gamma": 2, "filler_top_k": 2}),
    paper="romsto/Speculative-Decoding db7db67, ngram_assisted.py and ngram_storage.py",
    declared_law=declared_law,
    systems=("NASD",),
    reductions=(Reduction("autoregressive", "gamma = 0", {"order": 3, "gamma": 0}),),
)
