"""Planted bugs of grammar-constrained decoding: advancing the grammar's matcher, its rollback, its mask.

A function with the decorator ``engine_part(NAME, ...)`` replaces the function NAME of the serving engine
(``mutants.serving``), which documents its parameters.
"""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.serving.planted import engine_part
from specverify.mutants.serving.processors import Matcher, advance, committed, rollback
from specverify.mutants.serving.request import ExactPmf, Grammar, argmax
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, chain_decoder, constant
from specverify.reference import model_drafter as drafting
from specverify.reference.algorithms.constrained_decoding import Grammar as RowGrammar
from specverify.reference.algorithms.constrained_decoding import allowed, masked_row
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@engine_part(
    "draft_matcher",
    "grammar with drafts under it",
    "draft-matcher-of-first-position",
    "the drafter's grammar state is missing after its first draft",
    category="G",
    citation="TensorRT-LLM issue #7878",
)
def draft_matcher_of_first_position(grammar: Grammar, matcher: Matcher, drafted: Tokens) -> Matcher:
    """Return the grammar's matcher for the next row of the drafter, after the drafts ``drafted`` of this round.

    If there is a draft, the returned matcher has no state, so that its use fails: the bug.
    """
    return Matcher(matcher.states[: None if not drafted else 0], matcher.active[: None if not drafted else 0])


@engine_part(
    "committed",
    "grammar from the first token",
    "first-token-not-accepted",
    "the grammar does not read the first token",
    category="G",
    citation="LMDeploy commit aece784ee (during PR #4559)",
)
def first_token_not_accepted(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher after the ``new`` tokens of a round, but unchanged after the first round.

    The matcher is the state of the grammar; ``first`` states whether this is the first round.
    """
    return matcher if first else committed(grammar, matcher, new, first)


@engine_part(
    "forked",
    "grammar",
    "forks-follow-argmax",
    "the grammar of the next row reads the argmax instead of the draft",
    category="G",
    citation="LMDeploy commit 616d56cfa (during PR #4559)",
)
def forks_follow_argmax(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher (the state of the grammar) for the next target row, advanced by a wrong token.

    The matcher is advanced by the argmax of ``row``, the pmf of the present row. The right token is the drafted one,
    ``draft``, which is not used.
    """
    return advance(grammar, matcher, argmax(row))


@planted(
    "constrained-decoding",
    "grammar-sees-rejected-drafts",
    "masks every row by the grammar state after all drafts",
    category="G",
    citation="plausible: a matcher that is advanced over the block and never rolled back",
    killed_by="law_is_declared",
)
def grammar_sees_rejected_drafts(task: Task, grammar: RowGrammar = (), gamma: int = 4) -> Decoder:
    """Constrained decoding that masks every row of a block by the grammar state after the last draft.

    ``grammar`` has pairs (last token, tokens that may follow it).
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def masked(text: Tokens) -> object:
            p = target(text)
            return masked_row(p, allowed(grammar, prefix + draft.tokens, len(p)))

        return speculative_sampling(draws, masked, prefix, draft)

    return chain_decoder(task, drafting(draft_model(task)), constant(gamma), verify)


@engine_part(
    "committed",
    "grammar",
    "last-token-matched-repeatedly",
    "the grammar reads the newest token several times instead of each new token once",
    category="G",
    citation="exllamav2 commit f4119ae",
)
def last_token_matched_repeatedly(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return the matcher, the state of the grammar, after a round with the ``new`` tokens.

    The matcher is advanced by the newest token as often as there are new tokens, instead of by each new token once.
    """
    return committed(grammar, matcher, new[-1:] * len(new), first)


@engine_part(
    "needs_mask",
    "grammar that ends",
    "mask-of-finished",
    "requests a mask after the grammar has ended",
    category="G",
    citation="SGLang issue #15050, PR #15373",
)
def mask_of_finished(grammar: Grammar, matcher: Matcher) -> bool:
    """Return whether the grammar masks the next row; the result is also True if the matcher has finished: the bug.

    A matcher is the state of the grammar. A finished matcher has no mask, and a request for it raises an error.
    """
    return matcher.active[-1]


@engine_part(
    "rollback",
    "grammar after a trigger",
    "rollback-keeps-mode",
    "a rollback of the grammar does not switch it off again",
    category="G",
    citation="vLLM PR #46272, issue #44006",
)
def rollback_keeps_mode(matcher: Matcher, count: int) -> Matcher:
    """Return ``matcher``, the states of the grammar, as it was ``count`` tokens ago.

    The grammar stays on or off as now: the bug.
    """
    earlier = rollback(matcher, count)
    return earlier._replace(active=earlier.active[:-1] + matcher.active[-1:])


@engine_part(
    "committed",
    "grammar",
    "second-token-not-accepted",
    "the grammar reads only the first token of each round",
    category="G",
    citation="exllamav3 commit fd5b65b",
)
def second_token_not_accepted(grammar: Grammar, matcher: Matcher, new: Tokens, first: bool) -> Matcher:
    """Return ``matcher``, the states of the grammar, advanced by only the first of the ``new`` tokens of a round."""
    return committed(grammar, matcher, new[:1], first)


@engine_part(
    "forked",
    "grammar after a trigger",
    "switched-on-between-rounds",
    "a draft that switches the grammar on has no effect on the next rows",
    category="G",
    citation="vLLM PR #36138; issues #31858, #34650",
)
def switched_on_between_rounds(grammar: Grammar, matcher: Matcher, draft: int, row: ExactPmf) -> Matcher:
    """Return the matcher (the state of the grammar) after ``draft``, with the grammar on or off as before ``draft``.

    So a draft that switches the grammar on has no effect on the rows after it.
    """
    after = advance(grammar, matcher, draft)
    return after._replace(active=after.active[:-1] + matcher.active[-1:])
