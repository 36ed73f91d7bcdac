"""Class Q: the output is exact and acceptance collapses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specverify.mutants.mutant import SHORT, correct, planted, with_verifier
from specverify.mutants.numpy_verifiers import decided
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
"""``see(tokens, known, first)``: what the drafter is shown of ``tokens``, of which ``known`` were committed before."""


def drafting_from(see: See, original: str = "speculative-sampling") -> Callable[..., Decoder]:
    """Return the build of a registry row whose drafter is shown another text than there is."""

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
    """One draw from the target, whatever was drafted.

    Every draft is thrown away and p is sampled: lossless, and no faster than no speculation at all.
    """
    return Verified((draws.categorical(target(prefix), ("target", 0)),), accepted=0)


@planted(
    "speculative-sampling",
    "bonus-slot-of-another",
    "drafts behind a wrong bonus token",
    category="Q",
    citation="vLLM PRs #9730, #5765, #4212",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def bonus_slot_of_another(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show token 0 in the place of the last committed token to all drafts but the first.

    The bonus token's slot in the drafter's cache holds another token: later drafts are about that text.
    """
    n = len(known)
    return tokens if first or len(tokens) == n else (*tokens[: n - 1], 0, *tokens[n:])


@planted(
    "speculative-sampling",
    "cache-trimmed-for-nothing",
    "drafts without a committed token",
    category="Q",
    citation="mlx-lm commit e6ae82d3 (branch)",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def cache_trimmed_for_nothing(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Leave out the token before the last committed one, from round 2 on.

    The drafter's cache is trimmed after a rejection though nothing had been written: a committed token is missing.
    """
    n = len(known)
    return tokens if first or n < 3 else tokens[: n - 2] + tokens[n - 1 :]


def drafts_before_the_last_token_see(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show the drafter everything but the last token."""
    return tokens[:-1] or tokens


drafts_before_the_last_token = planted(
    "sample-and-match",
    "drafts-before-the-last-token",
    "drafts something else than it proposes",
    category="Q",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)(drafting_from(drafts_before_the_last_token_see, "sample-and-match"))
"""Rounds draft from a cache that lacks the last token, though the drafting shown is up to date.

The text is exact, and no claim of acceptance falls, for sample-and-match makes none: only the drafts tell."""


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Speculative sampling of the first draft."""
    return decided(rng, p, q, drafts[:1])


first_draft_alone = planted_engine(
    engine_of(decide),
    "first-draft-alone",
    "refuses every draft but the first",
    category="Q",
    citation="plausible",
    killed_by="acceptance_law",
    control=engine_of(),
)
"""One draft a round is looked at, whatever was drafted; what follows it comes from the target."""


@planted(
    "speculative-sampling",
    "keys-of-the-last-step",
    "drafts from an old step's cache",
    category="Q",
    citation="transformers issue #32366, PR #32370",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def keys_of_the_last_step(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Show the first token and the new drafts, from round 2 on.

    The drafter goes on from the keys and values of the step before: it does not see what was committed since.
    """
    return tokens if first else tokens[:1] + tokens[len(known) :]


BEFORE = (1, 1, 1, 0, 1, 1)


@planted(
    "prompt-lookup",
    "lookup-of-another-request",
    "looks drafts up in the last request",
    category="Q",
    citation="llama.cpp issue #27852",
    killed_by="acceptance_is_optimal",
    examples=({"max_ngram": 2, "gamma": 2},),
)
@from_parts
def lookup_of_another_request(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Prompt lookup in another text first; ``propose`` shows what this text alone gives.

    The n-gram cache of the request before is kept: its continuations are drafted for this one.
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
    "drafts behind padding",
    category="Q",
    citation="vLLM PR #26498, issue #26191",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def padding_in_the_drafter(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Put two padding tokens before the text.

    The drafter runs on padded rows, and slots and lengths are not told of it: padding stands before the text.
    """
    return (0, 0, *tokens)
