"""Ouroboros: a greedy draft, extended by phrases that begin with its last token (Zhao et al. 2402.13720, Section 3).

The pool holds phrases, at most ``most`` for each first token. All phrases of the pool that begin with the draft's last
token are children of that token, and are verified in the same pass. The result of the pass changes the pool as in the
released code (thunlp/Ouroboros at 7dac65b, ``cache_engine.py`` and ``ouroboros.py``), in this order:

* ``add_extra_ngram``, after a mismatch: every draft from the mismatch on is the first token of a new phrase, even if
  the target does not agree with it. The phrase continues with the target's argmax after it, as long as the next draft
  equals it; the last token may differ from the draft's. Only phrases of full length are kept.
* ``update_in_place``: the phrases that were tried are replaced in the pool by the target's argmaxes at their positions,
  with the same first token. They are taken to be the newest phrases with this first token.

The release also fills the pool by lookahead decoding of the drafter; here each committed n-gram is added instead.
Whatever the pool holds, candidates depend on the past alone.
"""

from __future__ import annotations

from collections.abc import Callable

from ..pmf import argmax
from ..trees import deterministic_draft, merged
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens
from .lookahead import Pool, phrases_after, with_phrase


def phrases_drafter(draft: LanguageModel, gamma: int, length: int, most: int, warm: Pool = ()) -> Drafter:
    """Return a drafter of ``gamma`` greedy tokens, continued by each of up to ``most`` phrases of a pool.

    A phrase has ``length`` tokens and begins with the last greedy token, which is drafted once. ``warm`` is the pool of
    an earlier text. Raises ``ValueError`` unless gamma >= 0, length >= 2 and most >= 1.
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
        tried = [phrase for phrase in pool if phrase[0] == (prefix + stem)[-1]]
        missed = next((i for i, pair in enumerate(zip(stem, new, strict=False)) if pair[0] != pair[1]), len(stem))
        for phrase in extra_phrases(stem[missed:], said_behind(target, prefix, stem)[missed:], length):
            pool = with_phrase(pool, phrase, most)
        pool = put_right(pool, [(phrase[0], *said(target, prefix + stem, phrase[1:])) for phrase in tried])
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
    """Return the target's argmax at the position of every drafted token, given the drafts before it.

    The drafts ``drafted`` follow the text ``prefix``.
    """
    return tuple(argmax(target(prefix + drafted[:i])) for i in range(len(drafted)))


def said_behind(target: LanguageModel, prefix: Tokens, drafted: Tokens) -> Tokens:
    """Return the target's argmax after every drafted token, given the drafts up to it.

    The drafts ``drafted`` follow the text ``prefix``.
    """
    return tuple(argmax(target(prefix + drafted[: i + 1])) for i in range(len(drafted)))


def extra_phrases(drafted: Tokens, behind: Tokens, length: int) -> list[Tokens]:
    """Return the phrases of ``length`` tokens that a pass adds to the pool, in the order of their first tokens.

    ``drafted`` are the drafts from the first mismatch on, and ``behind[i]`` is the target's argmax after
    ``drafted[i]``. A phrase is ``drafted[i]``, ``behind[i]``, ``behind[i + 1]``, ...; it may contain ``behind[j]``, j >
    i, only if ``drafted[j]`` equals ``behind[j - 1]``.
    """
    phrases = []
    for i in range(len(drafted) - length + 2):
        said_so = behind[i : i + length - 1]
        if drafted[i + 1 : i + length - 1] == said_so[:-1]:
            phrases.append((drafted[i], *said_so))
    return phrases


def put_right(pool: Pool, better: list[Tokens]) -> Pool:
    """Return ``pool`` with its newest phrases replaced by the phrases ``better``, which all have the same first token.

    Only phrases with this first token are replaced, at most as many as ``better`` has. A new phrase takes the position
    of the old one.
    """
    places = [place for place, phrase in enumerate(pool) if phrase[0] in {new[0] for new in better}]
    changed = dict(zip(reversed(places), reversed(better), strict=False))
    return tuple(changed.get(place, phrase) for place, phrase in enumerate(pool))
