"""The drafter: a draft model with its own cache and vocabulary, or a lookup in the text so far."""

from __future__ import annotations

from typing import NamedTuple

from specverify.mutants.serving.model import DRAFT, Entry
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.reference import Tokens


class DraftCache(NamedTuple):
    """The cache of the draft model: its ``entries``, and ``seen``, the number of the text's tokens that it has read."""

    entries: tuple[Entry, ...] = ()
    seen: int = 0


def draft_feed(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the tokens fed to the draft model before its first draft: all after the ``seen`` tokens it has read.

    ``rounds`` is the number of earlier rounds.
    """
    return tokens[seen:]


def draft_write(cache: DraftCache, fed: Tokens) -> DraftCache:
    """Return the draft model's cache after it was fed the tokens ``fed``."""
    entries = tuple(Entry(token, cache.seen + index, DRAFT) for index, token in enumerate(fed))
    return DraftCache(cache.entries + entries, cache.seen + len(fed))


def draft_kept(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the draft model's cache after verification: the entries of the committed tokens, as far as they exist.

    The text had ``known`` tokens before ``drafts`` drafts, of which ``accepted`` were accepted.
    """
    keep = min(known + accepted, cache.seen)
    return DraftCache(cache.entries[:keep], keep)


def draft_reused(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the draft model's cache for a prompt that shares its first ``count`` tokens with the previous text.

    ``target`` are the target's cache entries, which are not used.
    """
    keep = min(count, cache.seen)
    return DraftCache(cache.entries[:keep], keep)


def draft_prefix(history: Tokens, drafted: Tokens) -> Tokens:
    """Return the tokens passed to the logits processors of a draft row: ``history``, then the drafts ``drafted``."""
    return history + drafted


def to_target(row: ExactPmf, ids: Tokens, vocabulary: int) -> ExactPmf:
    """Return ``row``, a pmf over draft ids, as a pmf over the ``vocabulary`` target ids.

    ``ids[j]`` is the target id of draft token j.
    """
    masses = [ZERO] * vocabulary
    for mass, token in zip(row, ids, strict=True):
        masses[token] += mass
    return tuple(masses)


def declared(raw: ExactPmf, drawn: ExactPmf) -> ExactPmf:
    """Return the pmf declared as q: ``drawn``, from which the draft was drawn, not the model's ``raw`` row."""
    return drawn


def corpus(tokens: Tokens, before: Tokens) -> Tokens:
    """Return the text that the lookup drafter searches when a request is admitted: ``tokens``, the request's own text.

    ``before``, the text of the last finished request, is not used here.
    """
    return tokens


def lookup(corpus: Tokens, tokens: Tokens, count: int) -> Tokens:
    """Return at most ``count`` tokens of ``corpus`` that follow the last occurrence of the final token of ``tokens``.

    ``corpus`` is the text that is searched, usually ``tokens``. An occurrence at the very end of ``corpus`` does not
    count. Empty without an occurrence.
    """
    earlier = corpus[:-1]
    if tokens[-1] not in earlier:
        return ()
    result = len(earlier) - 1 - earlier[::-1].index(tokens[-1])
    return corpus[result + 1 : result + 1 + count]
