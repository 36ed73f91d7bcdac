"""Ouroboros: a greedy draft, made longer by phrases that begin with its last token (Zhao et al. 2402.13720, Section 3).

The pool holds phrases, at most ``most`` for each first token; all the phrases found hang below the draft's last token
and are verified in the same pass. That pass refines the pool: a phrase that was tried is replaced by what the target
says in its place, under the same first token; a run of drafts behind the first miss that the target agrees with becomes
a phrase; so does every committed n-gram. Whatever the pool holds, candidates depend on the past alone. The paper also
drafts by lookahead, faster and with the same greedy text. Its released code was not at hand: when a phrase is replaced,
and that runs count from two tokens on, could not be confirmed.
"""

from __future__ import annotations

from collections.abc import Callable

from reference.drafters.lookahead import Pool, phrases_after, with_phrase
from reference.pmf import argmax
from reference.trees import deterministic_draft, merged
from reference.types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens


def phrases_drafter(draft: LanguageModel, gamma: int, length: int, most: int, warm: Pool = ()) -> Drafter:
    """Draft gamma tokens greedily, then up to ``most`` phrases of ``length`` tokens that begin with the last one.

    ``warm`` is the pool of an earlier text. Raises ``ValueError`` unless gamma >= 0, length >= 2 and most >= 1.
    """
    if gamma < 0 or length < 2 or most < 1:
        raise ValueError(f"gamma is {gamma}, length {length}, most {most}, expected at least 0, 2 and 1")

    def propose(draws: Draws, pool: Pool, prefix: Tokens, depth: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        stem = greedy(draft, prefix, min(gamma, depth))
        ends = phrases_after(pool, (prefix + stem)[-1], depth - len(stem))
        return deterministic_draft(merged([stem, *(stem + end for end in ends)]))

    def observe(pool: Pool, tokens: Tokens, start: int, target: LanguageModel) -> Pool:
        prefix, new = tokens[:start], tokens[start:]
        stem = greedy(draft, prefix, gamma)
        for phrase in [phrase for phrase in pool if phrase[0] == (prefix + stem)[-1]]:
            pool = with_better_phrase(pool, phrase, said(target, prefix + stem, phrase[1:]), most)
        for run in agreements(stem, said(target, prefix, stem), len(new)):
            pool = with_phrase(pool, run[:length], most)
        for end in range(max(start + 1, length), len(tokens) + 1):
            pool = with_phrase(pool, tokens[end - length : end], most)
        return pool

    return Drafter(init=lambda prompt: warm, propose=propose, observe=observe)


def greedy(model: LanguageModel, prefix: Tokens, count: int) -> Tokens:
    """Return the model's ``count`` most probable tokens after ``prefix``, one after the other."""
    drafted: Tokens = ()
    while len(drafted) < count:
        drafted = (*drafted, argmax(model(prefix + drafted)))
    return drafted


def said(target: LanguageModel, prefix: Tokens, drafted: Tokens) -> Tokens:
    """Return the target's argmax at the place of every drafted token."""
    return tuple(argmax(target(prefix + drafted[:i])) for i in range(len(drafted)))


def with_better_phrase(pool: Pool, phrase: Tokens, better: Tokens, most: int) -> Pool:
    """Return the pool with ``better`` behind the first token of ``phrase``; the first token stays."""
    return with_phrase(tuple(other for other in pool if other != phrase), (phrase[0], *better), most)


def agreements(drafted: Tokens, answered: Tokens, start: int) -> list[Tokens]:
    """Return the runs of at least two drafts from ``start`` on that the target would have said in their places."""
    runs: list[Tokens] = [()]
    for token, answer in list(zip(drafted, answered, strict=True))[start:]:
        if token == answer:
            runs[-1] += (token,)
        else:
            runs.append(())
    return [run for run in runs if len(run) > 1]
