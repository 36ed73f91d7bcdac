"""The drafter: a model with a cache beside the target's, in a vocabulary of its own, or a lookup in the text so far."""

from __future__ import annotations

from typing import NamedTuple

from specverify.mutants.serving.model import DRAFT, Entry
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.reference import Tokens


class DraftCache(NamedTuple):
    """The cache of the draft model, and the number of tokens of the text that it counts as read."""

    entries: tuple[Entry, ...] = ()
    seen: int = 0


def draft_feed(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return what the draft model is fed before its first draft: all that it has not seen."""
    return tokens[seen:]


def draft_write(cache: DraftCache, fed: Tokens) -> DraftCache:
    """Return the cache after the draft model was fed tokens."""
    entries = tuple(Entry(token, cache.seen + index, DRAFT) for index, token in enumerate(fed))
    return DraftCache(cache.entries + entries, cache.seen + len(fed))


def draft_kept(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the cache after ``accepted`` of the drafts behind ``known`` tokens were accepted: theirs stay, at most."""
    keep = min(known + accepted, cache.seen)
    return DraftCache(cache.entries[:keep], keep)


def draft_reused(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the draft model's cache for a prompt whose first ``count`` tokens are those of the text before it."""
    keep = min(count, cache.seen)
    return DraftCache(cache.entries[:keep], keep)


def draft_prefix(history: Tokens, drafted: Tokens) -> Tokens:
    """Return the tokens that the draft's own processors are shown: the history and what was drafted so far."""
    return history + drafted


def to_target(row: ExactPmf, ids: Tokens, vocabulary: int) -> ExactPmf:
    """Return a row over draft ids as one over target ids; ``ids[j]`` is the target id of draft token j."""
    masses = [ZERO] * vocabulary
    for mass, token in zip(row, ids, strict=True):
        masses[token] += mass
    return tuple(masses)


def declared(raw: ExactPmf, drawn: ExactPmf) -> ExactPmf:
    """Return the pmf declared to the verifier, from the model's ``raw`` row and the row of the draft, ``drawn``."""
    return drawn


def corpus(tokens: Tokens, before: Tokens) -> Tokens:
    """Return the text that the lookup searches: this request's, nothing of the one ``before`` it in the slot."""
    return tokens


def lookup(corpus: Tokens, tokens: Tokens, count: int) -> Tokens:
    """Return what followed the last earlier occurrence of the last token, ``count`` tokens of it at most."""
    earlier = corpus[:-1]
    if tokens[-1] not in earlier:
        return ()
    result = len(earlier) - 1 - earlier[::-1].index(tokens[-1])
    return corpus[result + 1 : result + 1 + count]
