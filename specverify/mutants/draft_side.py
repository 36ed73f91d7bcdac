"""Planted bugs, class Q: the output has the right law, but drafts are accepted too rarely.

The cause is a wrong acceptance rule or a fault of the drafter's cache.

A function with the decorator ``drafting_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters. A function with the decorator ``drafting_from()`` returns the
wrong text that the drafter reads (type ``See``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specverify.mutants.mutant import SHORT, correct, planted, with_verifier
from specverify.mutants.numpy_verifiers import decided
from specverify.mutants.serving.drafting import DraftCache, draft_kept, draft_reused, draft_write
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import drafting_part
from specverify.mutants.small_engine import engine_of, planted_engine
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    constant,
    from_parts,
    prompt_lookup_drafter,
)
from specverify.reference.models import draft_model
from specverify.reference.verifiers.sample_and_match import sample_and_match

# A decoder whose drafts come from something stale. ``propose`` shows what a drafter that is up to date would draft.
# So acceptance is compared with what the task's own draft model allows, and the law is exact, whatever is drafted.


See = Callable[[Tokens, Tokens, bool], Tokens]
"""``see(tokens, known, first)`` returns the tokens shown to the drafter in place of ``tokens``.

``known`` are the committed ones, and ``first`` is True in the first round.
"""


def drafting_from(see: See, original: str = "speculative-sampling") -> Callable[..., Decoder]:
    """Return the build function of the registry algorithm ``original`` with a drafter that reads a wrong text.

    The drafter reads ``see(tokens, known, first)`` instead of the text ``tokens``, which begins with the committed
    tokens ``known``. ``first`` states whether this is the first round.
    """

    def build(task: Task, gamma: int = 4) -> Decoder:
        draft: LanguageModel = draft_model(task)
        right = correct(original).build(task, gamma=gamma)

        def step(draws: Draws, state: State) -> tuple[State, Round]:
            def stale(tokens: Tokens) -> Pmf:
                return draft(see(tokens, state.tokens, state.remaining == task.horizon))

            return correct(original).build(task._replace(draft=stale), gamma=gamma).step(draws, state)

        return right._replace(step=step)

    return build


@planted(
    "speculative-sampling",
    "always-reject",
    "rejects every draft and samples p",
    category="Q",
    citation="plausible",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@with_verifier
def always_reject(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Reject every draft and emit one draw from p: lossless, but without any speed-up."""
    return Verified((draws.categorical(target(prefix), ("target", 0)),), accepted=0)


@planted(
    "speculative-sampling",
    "bonus-slot-of-another",
    "drafts after a wrong last token",
    category="Q",
    citation="vLLM PRs #9730, #5765, #4212",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def bonus_slot_of_another(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: ``tokens`` with token 0 in place of the last committed token.

    The text is right in the ``first`` round, and before the first draft of each round. ``known`` are the committed
    tokens, with which ``tokens`` begins.
    """
    n = len(known)
    return tokens if first or len(tokens) == n else (*tokens[: n - 1], 0, *tokens[n:])


@planted(
    "speculative-sampling",
    "cache-trimmed-for-nothing",
    "drafts without the second to last committed token",
    category="Q",
    citation="mlx-lm commit e6ae82d3 (branch)",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def cache_trimmed_for_nothing(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: ``tokens`` without the second to last of the committed tokens.

    The text is right in the ``first`` round, and if there are fewer than three committed tokens. ``known`` are these
    tokens, with which ``tokens`` begins.
    """
    n = len(known)
    return tokens if first or n < 3 else tokens[: n - 2] + tokens[n - 1 :]


def drafts_before_the_last_token_see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: ``tokens`` without the last one; a text of one token is unchanged.

    The other parameters are not used.
    """
    return tokens[:-1] or tokens


drafts_before_the_last_token = planted(
    "sample-and-match",
    "drafts-before-the-last-token",
    "drafts without the last token, but records that the drafter read it",
    category="Q",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)(drafting_from(drafts_before_the_last_token_see, "sample-and-match"))
"""Rounds draft from a cache that lacks the last token, while the recorded draft requests contain it. The text is exact,
and sample-and-match claims no acceptance rate, so only a check of the drafts can refute it."""


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Verify only the first of ``drafts`` by speculative sampling, and discard the others.

    Returns the draft, if it is accepted, and one more token. ``rng`` draws the uniforms; ``p`` and ``q`` are the rows.
    """
    return decided(rng, p, q, drafts[:1])


first_draft_alone = planted_engine(
    engine_of(decide),
    "first-draft-alone",
    "accepts at most one draft per round",
    category="Q",
    citation="plausible",
    killed_by="acceptance_law",
    control=engine_of(),
)
"""Only the first draft of a round is tested; all further drafts are discarded and replaced by a token of the target."""


@planted(
    "speculative-sampling",
    "keys-of-the-last-step",
    "the drafter reads only the first token and its new drafts",
    category="Q",
    citation="transformers issue #32366, PR #32370",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def keys_of_the_last_step(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: only the first token and the new drafts, except in the ``first`` round.

    ``known`` are the committed tokens, with which the right text ``tokens`` begins.
    """
    return tokens if first else tokens[:1] + tokens[len(known) :]


BEFORE = (1, 1, 1, 0, 1, 1)


@planted(
    "prompt-lookup",
    "lookup-of-another-request",
    "looks up drafts in the previous request first",
    category="Q",
    citation="llama.cpp issue #27852",
    killed_by="acceptance_is_optimal",
    examples=({"max_ngram": 2, "gamma": 2},),
)
@from_parts
def lookup_of_another_request(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Prompt lookup that searches the text of another request first, because the n-gram table is not cleared.

    ``max_ngram`` is the length of the longest n-gram that is looked up.
    """
    drafter = prompt_lookup_drafter(max_ngram, task.eos)
    polluted = drafter._replace(
        propose=lambda draws, state, prefix, count, stop: drafter.propose(draws, state, BEFORE + prefix, count, stop)
    )
    right = correct("prompt-lookup").build(task, max_ngram=max_ngram, gamma=gamma)
    return Parts(polluted, constant(gamma), sample_and_match, around=lambda wrong: right._replace(step=wrong.step))


@planted(
    "speculative-sampling",
    "padding-in-the-drafter",
    "the drafter reads padding tokens before the text",
    category="Q",
    citation="vLLM PR #26498, issue #26191",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def padding_in_the_drafter(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: ``tokens`` with two padding tokens (0) before it, in every round.

    The other parameters are not used.
    """
    return (0, 0, *tokens)


@drafting_part(
    "draft_feed",
    "bonus-slot-filled-wrong",
    "feeds the newest token to the drafter in place of each new token",
    citation="vLLM PR #9730 (after #5765, #4212)",
)
def bonus_slot_filled_wrong(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the tokens to feed to the drafter; from round 2 on, each of them is replaced by the newest token.

    The drafter has read the first ``seen`` of the ``tokens``, and ``rounds`` is the number of earlier rounds.
    """
    return tokens[-1:] * (len(tokens) - seen) if rounds else tokens[seen:]


@drafting_part(
    "draft_kept",
    "draft-cache-not-cropped",
    "leaves rejected drafts in the drafter's cache",
    citation="transformers issue #32366, PR #32370",
)
def draft_cache_not_cropped(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the drafter's cache after a round with all of its entries, also those of rejected drafts.

    The text had ``known`` tokens before ``drafts`` drafts, of which ``accepted`` were accepted.
    """
    return DraftCache(cache.entries, draft_kept(cache, known, drafts, accepted).seen)


@drafting_part(
    "draft_reused",
    "draft-not-rewound-on-reuse",
    "rolls back only the target's cache to the shared prefix",
    warm=True,
    citation="exllamav2 commit d7a4ecd",
)
def draft_not_rewound_on_reuse(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return all entries of the drafter's cache for a prompt that shares only ``count`` tokens with the previous text.

    Only the first ``count`` entries are valid. ``target`` is not used.
    """
    return DraftCache(cache.entries, count)


@drafting_part(
    "draft_prefix",
    "draft-step-lacks-last-token",
    "the drafter's processors do not get the newest draft",
    penalised=True,
    citation="mlx-lm commit 79441dc2 (branch), second of three errors",
)
def draft_step_lacks_last_token(history: Tokens, drafted: Tokens) -> Tokens:
    """Return the text passed to the logits processors of a draft row, without the newest draft.

    ``history`` are the committed tokens, and ``drafted`` the drafts before the row.
    """
    return history + drafted[:-1]


@drafting_part(
    "corpus",
    "lookup-keeps-last-request",
    "looks up drafts in the previous request too",
    drafting="lookup",
    warm=True,
    citation="llama.cpp issue #27852",
)
def lookup_keeps_last_request(tokens: Tokens, before: Tokens) -> Tokens:
    """Return the text that the lookup searches: ``tokens``, followed by ``before``, the text of the previous request.

    The right text is ``tokens``, that of this request.
    """
    return tokens + before


@drafting_part(
    "draft_write",
    "padding-taken-for-tokens",
    "the drafter's cache has an entry for padding",
    citation="vLLM PR #26498 (issue #26191)",
)
def padding_taken_for_tokens(cache: DraftCache, fed: Tokens) -> DraftCache:
    """Return the drafter's cache after the tokens ``fed``, with a further entry, for padding, if one token was fed.

    A row of one token is padded to two, and the padding is then treated as a token.
    """
    after = draft_write(cache, fed)
    padding = draft_write(after, (0,)).entries[-1:] if len(fed) == 1 else ()
    return after._replace(entries=after.entries + padding)


@drafting_part(
    "draft_reused",
    "page-copied-from-target",
    "copies an entry of the target's cache into the drafter's cache",
    warm=True,
    citation="exllamav2 commit 4587220",
)
def page_copied_from_target(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the drafter's cache for a prompt that shares its first ``count`` tokens with the previous text.

    ``cache`` is the drafter's cache after the previous text, and ``target`` has the entries of the target's cache. The
    last reused entry is copied from ``target``: the bug.
    """
    own = draft_reused(cache, target, count)
    return own._replace(entries=own.entries[:-1] + target[max(own.seen - 1, 0) : own.seen])


@drafting_part(
    "draft_reused",
    "target-cache-given-to-draft",
    "gives the drafter entries of the target's cache",
    warm=True,
    citation="transformers PR #31644",
)
def target_cache_given_to_draft(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return a drafter's cache with the first ``count`` entries of ``target``, the entries of the target's cache.

    The right result has entries of ``cache``, the drafter's own cache, which is not used here.
    """
    return DraftCache(target[:count], count)


@drafting_part(
    "draft_kept",
    "trimmed-though-nothing-written",
    "after a rejection removes a valid entry from the drafter's cache",
    citation="mlx-lm commit e6ae82d3 (branch)",
)
def trimmed_though_nothing_written(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the drafter's cache after a round, without its last valid entry if a draft was rejected.

    The text had ``known`` tokens before ``drafts`` drafts, of which ``accepted`` were accepted.
    """
    kept = draft_kept(cache, known, drafts, accepted)
    return kept._replace(entries=kept.entries[:-1]) if accepted < drafts else kept
