"""Planted bugs of the target's paged cache: rollback, positions, slots, pages.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters.
"""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.mutants.serving.cache import CacheMemory, fed_last, written
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import engine_part
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@engine_part(
    "after_drafting",
    "one request",
    "draft-writes-target-cache",
    "the draft model writes into the target's cache",
    category="H",
    citation="lucidrains/speculative-decoding commit 2ac580e",
)
def draft_writes_target_cache(memory: CacheMemory, places: Sequence[int], drafted: Sequence[Entry]) -> CacheMemory:
    """Return the target's memory with the drafter's entries ``drafted`` written to ``places`` in it.

    This is the effect of one cache variable for both models.
    """
    count = min(len(places), len(drafted))
    return written(memory, places[:count], drafted[:count])


@engine_part(
    "written_count",
    "one request",
    "last-draft-never-written",
    "the cache lacks the entry of the last draft",
    category="H",
    citation="exllamav2 commit 05807d1",
    killed_by="cache_equals_prefill",
)
def last_draft_never_written(fed: int, drafts: int) -> int:
    """Return the number of cache entries that a pass writes: one fewer than the ``fed`` tokens if there are ``drafts``.

    So the cache lacks the last draft. The right number is ``fed``.
    """
    return fed - 1 if drafts else fed


@engine_part(
    "kept",
    "one request",
    "length-ignores-accepted",
    "removes the entries of accepted drafts from the cache",
    category="H",
    citation="text-generation-inference commit b4ebfa52",
    killed_by="cache_equals_prefill",
    fed_next=fed_last,
)
def length_ignores_accepted(known: int, accepted: int, written: int, batch: int) -> int:
    """Return ``known``, the number of tokens before the drafts, as the number of cache entries to keep.

    The entries of the ``accepted`` drafts should be kept too. The other parameters are not used.
    """
    return known


@engine_part(
    "kept",
    "one request",
    "no-rollback",
    "never removes rejected drafts from the cache",
    category="H",
    citation="feifeibear/LLMSpeculativeSampling commit 8043c01",
    killed_by="cache_equals_prefill",
    fed_next=fed_last,
)
def no_rollback(known: int, accepted: int, written: int, batch: int) -> int:
    """Return ``written``, the number of all entries, as the number of cache entries to keep.

    So the entries of rejected drafts stay. The right number is ``known`` tokens before the drafts plus ``accepted``
    drafts. ``batch`` is not used.
    """
    return written


@engine_part(
    "kept",
    "one request",
    "one-rejected-stays",
    "leaves the entry of one rejected draft in the cache",
    category="H",
    citation="MLC-LLM issue #2167, PR #2184 (d43e10e6)",
    killed_by="cache_equals_prefill",
    fed_next=fed_last,
)
def one_rejected_stays(known: int, accepted: int, written: int, batch: int) -> int:
    """Return the number of cache entries to keep: one too many, if a draft was rejected.

    The right number is ``known`` tokens before the drafts plus ``accepted`` drafts; ``written`` entries exist.
    ``batch`` is not used.
    """
    return min(known + accepted + 1, written)


@engine_part(
    "trimmed",
    "few pages",
    "pages-never-given-back",
    "does not free the pages of rejected drafts",
    category="H",
    citation="TensorRT-LLM issue #16448",
)
def pages_never_given_back(
    pages: tuple[int, ...], free: tuple[int, ...], needed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first ``needed`` pages of a request, and the ``free`` pages without those that the request gives up.

    The right function adds them to the free pages.
    """
    return pages[:needed], free


@engine_part(
    "fed_next",
    "one request",
    "prefix-fed-again",
    "feeds the whole prompt although the cache has its beginning",
    category="H",
    citation="romsto/Speculative-Decoding base_decoding.py, speculative_decoding.py, ngram_assisted.py at db7db67",
    killed_by="cache_equals_prefill",
)
def prefix_fed_again(tokens: Tokens, held: int) -> Tokens:
    """Return the whole text as the tokens to feed, although the cache already holds its first ``held`` tokens.

    The tokens are then in the cache twice, at shifted positions.
    """
    return tokens


@engine_part(
    "trimmed",
    "one request",
    "reset-instead-of-rollback",
    "a rollback frees all pages of the request",
    category="H",
    citation="paiml/aprender PR #2014",
    killed_by="cache_equals_prefill",
)
def reset_instead_of_rollback(
    pages: tuple[int, ...], free: tuple[int, ...], needed: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pages that a request keeps after a rewind, and the free pages.

    If the request has more than ``needed`` pages, all of them become free, and none is kept: the bug. The first
    ``needed`` should be kept.
    """
    return ((), free + pages) if needed < len(pages) else (pages, free)


@engine_part(
    "reused",
    "conversation",
    "reuse-shifted-by-one",
    "reuses one cache entry too many of the previous text",
    category="H",
    citation="MLC-LLM PR #2664 (8290a970)",
)
def reuse_shifted_by_one(held: int, boundary: int, recurrent: bool) -> int:
    """Return ``boundary + 1`` as the number of cache entries that a prompt reuses, or 0 if ``boundary`` is 0.

    The right number is ``boundary``: the entries in whole pages that the prompt shares with the previous text. The
    other parameters are not used.
    """
    return boundary + 1 if boundary else 0


@engine_part(
    "kept",
    "one request",
    "rollback-in-batches-only",
    "does not roll back the cache in a batch of one",
    category="H",
    citation="lucidrains/speculative-decoding issue #3, commits 3194f53, becf35d",
    fed_next=fed_last,
)
def rollback_in_batches_only(known: int, accepted: int, written: int, batch: int) -> int:
    """Return the number of cache entries to keep; for a batch of one request, the number of all ``written`` entries.

    The right number is always ``known`` tokens before the drafts plus ``accepted`` drafts.
    """
    return known + accepted if batch > 1 else written


@engine_part(
    "slots",
    "batch",
    "slots-taken-as-consecutive",
    "assumes that the pages of a request follow one another in memory",
    category="H",
    citation="text-generation-inference PR #2711 (aadc9cb4)",
)
def slots_taken_as_consecutive(pages: tuple[int, ...], page_size: int, first: int, count: int) -> tuple[int, ...]:
    """Return ``count`` consecutive slots of the memory, from the slot of the request's entry ``first`` on.

    This is wrong after the end of a page, because the next of the request's ``pages`` is elsewhere in the memory. A
    page has ``page_size`` slots.
    """
    start = pages[first // page_size] * page_size + first % page_size
    return tuple(range(start, start + count))


@planted(
    "speculative-sampling",
    "page-of-sixteen-begins-late",
    "the target does not read the last token of a full page of 16 tokens",
    category="H",
    citation="plausible",
    killed_by="long_law_is_target",
    examples=SHORT,
)
@with_verifier
def page_of_sixteen_begins_late(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling whose target does not see the last token of a full page of 16 tokens.

    Texts shorter than 16 tokens do not show the bug.
    """

    def of_pages(tokens: Tokens) -> object:
        return target(tokens[:-1] if len(tokens) % 16 == 0 else tokens)

    return speculative_sampling(draws, of_pages, prefix, draft)
