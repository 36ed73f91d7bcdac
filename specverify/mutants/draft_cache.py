"""Planted bugs of the drafter's cache: the output stays exact, the acceptance falls."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache, draft_kept, draft_reused, draft_write
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import drafting_part
from specverify.reference import Tokens


@drafting_part(
    "draft_feed",
    "bonus-slot-filled-wrong",
    "the extra token's slot holds another",
    citation="vLLM PR #9730 (after #5765, #4212)",
)
def bonus_slot_filled_wrong(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the last token as often as tokens are missing, once the prompt was fed.

    After a fully accepted round the drafter lacks two tokens, and the last one is written into both places.
    """
    return tokens[-1:] * (len(tokens) - seen) if rounds else tokens[seen:]


@drafting_part(
    "draft_kept",
    "draft-cache-not-cropped",
    "the drafter keeps its rejected tokens",
    citation="transformers issue #32366, PR #32370",
)
def draft_cache_not_cropped(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return all entries under the right length.

    The drafter goes on with the entries of drafts that were rejected.
    """
    return DraftCache(cache.entries, draft_kept(cache, known, drafts, accepted).seen)


@drafting_part(
    "draft_reused",
    "draft-not-rewound-on-reuse",
    "only the target is rewound to the prefix",
    warm=True,
    citation="exllamav2 commit d7a4ecd",
)
def draft_not_rewound_on_reuse(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return all of the drafter's entries under the length of the prefix.

    When a prefix is used again, the target's length is set back to it and the drafter's entries stay as they are.
    """
    return DraftCache(cache.entries, count)


@drafting_part(
    "draft_prefix",
    "draft-step-lacks-last-token",
    "the draft is not told what it just drew",
    penalised=True,
    citation="mlx-lm commit 79441dc2 (branch), second of three errors",
)
def draft_step_lacks_last_token(history: Tokens, drafted: Tokens) -> Tokens:
    """Return the prefix without the last draft.

    The processors of a draft step are shown the drafts without the newest one.
    """
    return history + drafted[:-1]


@drafting_part(
    "corpus",
    "lookup-keeps-last-request",
    "the lookup knows the request before",
    drafting="lookup",
    warm=True,
    citation="llama.cpp issue #27852",
)
def lookup_keeps_last_request(tokens: Tokens, before: Tokens) -> Tokens:
    """Return this request's text in front of the last one's.

    The table of the lookup drafter is not emptied between requests, and proposes what another text said.
    """
    return tokens + before


@drafting_part(
    "draft_write",
    "padding-taken-for-tokens",
    "the drafter's padding is not masked",
    citation="vLLM PR #26498 (issue #26191)",
)
def padding_taken_for_tokens(cache: DraftCache, fed: Tokens) -> DraftCache:
    """Return the cache with an entry for the padding of a row of one token; the length is right.

    The drafter is fed rows padded to two tokens, and neither slots nor lengths leave the padding out.
    """
    after = draft_write(cache, fed)
    padding = draft_write(after, (0,)).entries[-1:] if len(fed) == 1 else ()
    return after._replace(entries=after.entries + padding)


@drafting_part(
    "draft_reused",
    "page-copied-from-target",
    "a shared page is copied from the target",
    warm=True,
    citation="exllamav2 commit 4587220",
)
def page_copied_from_target(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the drafter's entries but for the last, which is the target's.

    The loop that copies a partly used page goes over both caches and always reads from the target's.
    """
    own = draft_reused(cache, target, count)
    return own._replace(entries=own.entries[:-1] + target[max(own.seen - 1, 0) : own.seen])


@drafting_part(
    "draft_reused",
    "target-cache-given-to-draft",
    "the drafter is handed the target's cache",
    warm=True,
    citation="transformers PR #31644",
)
def target_cache_given_to_draft(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the target's entries.

    A cache that was passed in is the target's, and is copied into the arguments of the drafter too.
    """
    return DraftCache(target[:count], count)


@drafting_part(
    "draft_kept",
    "trimmed-though-nothing-written",
    "a rejection trims what was accepted",
    citation="mlx-lm commit e6ae82d3 (branch)",
)
def trimmed_though_nothing_written(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the cache without its last good entry if a draft was rejected.

    On a rejection the drafter's cache is trimmed by an entry that had not been written: acceptance decays.
    """
    kept = draft_kept(cache, known, drafts, accepted)
    return kept._replace(entries=kept.entries[:-1]) if accepted < drafts else kept
