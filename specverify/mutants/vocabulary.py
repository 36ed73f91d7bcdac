"""Planted bugs, class N: the drafter has another vocabulary than the target.

A function with the decorator ``engine_part(NAME, ...)`` or ``drafting_part(NAME, ...)`` replaces the function NAME of
the serving engine (``mutants.serving``), which documents its parameters. A function with the decorator
``drafting_from()`` returns the wrong text that the drafter reads (type ``draft_side.See``).

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.mutants.draft_side import drafting_from
from specverify.mutants.mutant import SHORT, planted, with_parts, with_verifier
from specverify.mutants.numpy_verifiers import at_large, decided, one_row, owed, planted_verifier
from specverify.mutants.proposal import declaring
from specverify.mutants.serving.planted import drafting_part, engine_part
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.reference import (
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Task,
    Tokens,
    Verified,
    accept_probability,
    chain,
    constant,
    from_parts,
    model_drafter,
    one_hot,
    residual,
)
from specverify.reference.algorithms import tli, token_timing
from specverify.reference.drafters.tree import excluding
from specverify.reference.drafters.two_vocabularies import (
    Pieces,
    respelled_sample_drafter,
    shared_tokens_drafter,
    spelled,
)
from specverify.reference.models import draft_model
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@drafting_part(
    "draft_feed",
    "begin-token-each-round",
    "feeds a begin token to the drafter in each later round",
    category="N",
    citation="transformers PR #46124",
)
def begin_token_each_round(tokens: Tokens, seen: int, rounds: int) -> Tokens:
    """Return the tokens fed to the drafter with a begin token (0) before them, in every round after the first.

    The drafter has read the first ``seen`` of the ``tokens``, and ``rounds`` is the number of earlier rounds.
    """
    return ((0,) if rounds else ()) + tokens[seen:]


BLOCK_EDGE_OFF_BY_ONE_BLOCK = 8192


def without_firsts(p: Any, q: Any) -> Any:
    """Return max(p - q, 0), not normalised, with 0 at the first token of each block of 8192 ids, except block 0.

    Return max(p - q, 0) unchanged if all other weights are 0. ``p`` and ``q`` are one row each, ``[vocabulary]``.
    """
    weights = owed(p, q).copy()
    firsts = weights[BLOCK_EDGE_OFF_BY_ONE_BLOCK::BLOCK_EDGE_OFF_BY_ONE_BLOCK].copy()
    weights[BLOCK_EDGE_OFF_BY_ONE_BLOCK::BLOCK_EDGE_OFF_BY_ONE_BLOCK] = 0.0
    if not weights.any():
        weights[BLOCK_EDGE_OFF_BY_ONE_BLOCK::BLOCK_EDGE_OFF_BY_ONE_BLOCK] = firsts
    return weights


@planted_verifier(
    "block-edge-off-by-one",
    "never replaces a draft by the first token of a block of the vocabulary",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def block_edge_off_by_one(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling whose replacements are never the first token of a block of 8192 ids, except in block 0."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=without_firsts)


@planted(
    "speculative-sampling",
    "bos-at-every-round",
    "puts a second begin token before the drafter's text",
    category="N",
    citation="transformers PR #46124",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def bos_at_every_round(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: from round 2 on, ``tokens`` with one more begin token (0) before it.

    ``first`` states whether this is the first round; ``known`` is not used.
    """
    return tokens if first else (0, *tokens)


@planted(
    "speculative-sampling",
    "drafts-not-mapped",
    "does not convert the target's ids for the drafter",
    category="N",
    citation="vllm-ascend PR #15863 (review)",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
@drafting_from
def drafts_not_mapped(tokens: Tokens, known: Tokens, first: bool) -> Tokens:
    """Return the text that the drafter reads: ``tokens`` with 0 and 1 exchanged, as if ids were not mapped.

    The target's ids should be mapped to the drafter's. The other parameters are not used.
    """
    return tuple((token + 1) % 2 if token < 2 else token for token in tokens)


def emitted_in_draft_ids_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify a round by speculative sampling, but return accepted drafts in the drafter's ids: t + 1 for token t."""
    result = speculative_sampling(draws, target, prefix, draft)
    size, n = len(target(prefix)), result.accepted
    return Verified((*((token + 1) % size for token in result.tokens[:n]), *result.tokens[n:]), n)


@planted(
    "speculative-sampling",
    "emitted-in-draft-ids",
    "emits drafts with the drafter's ids",
    category="N",
    citation="EAGLE issue #258",
    killed_by="law_is_target",
    examples=SHORT,
)
def emitted_in_draft_ids(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that verifies drafts under the target's ids and emits them under the drafter's ids."""
    return with_verifier(emitted_in_draft_ids_verify)(task, gamma)


def forgetting(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Return a drafter of pieces that declares a wrong q for the target tokens inside a piece.

    A piece is a token of the drafter that stands for one or more target tokens. ``pieces`` has pairs (piece, its target
    tokens). The declared q is always the law of the first target token of a new piece.
    """

    def first(text: Tokens) -> Pmf:
        q = draft(text)
        law = q * 0
        for token, mass in enumerate(q.tolist()):
            begins = spelled(pieces, token)[0]
            law[begins] = law[begins] + mass
        return law

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, draws.categorical(draft(prefix + text), ("draft", len(text))))
        kept = text[: max(gamma, 0)]
        return chain(kept, tuple(first(prefix + kept[:i]) for i in range(len(kept))))

    return Drafter(init=lambda prompt: None, propose=propose, observe=lambda *_: None)


@planted(
    "slrs",
    "every-place-begins-a-piece",
    "declares the law of a first token for tokens inside a piece",
    category="N",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"pieces": ((0, (0, 1)), (1, (0, 0))), "gamma": 2},),
)
def every_place_begins_a_piece(task: Task, pieces: Pieces = (), gamma: int = 4) -> Decoder:
    """Verification over two vocabularies that declares the law of the first token of a piece at every position.

    A piece is a token of the drafter that stands for several target tokens. Inside a piece the law is another one. The
    original is SLRS. ``pieces`` has pairs (piece, its target tokens).
    """
    return with_parts("slrs", drafter=forgetting(draft_model(task), pieces))(task, pieces, gamma)


@planted_verifier(
    "ids-in-int16",
    "stores replacements and bonus tokens in 16 bits",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def ids_in_int16(p: Any, q: Any, draft_tokens: Any) -> Any:
    """Speculative sampling that stores the last token of a round, a replacement or a bonus, in int16.

    An id above 32767 becomes another id or a negative number.
    """
    emitted = np.array(one_row(p, q, draft_tokens))
    emitted[-1:] = emitted[-1:].astype(np.int16)
    return emitted


LAST_BLOCK_LEFT_OUT_BLOCK = 8192


def in_whole_blocks(p: Any, q: Any) -> Any:
    """Return the weights max(p - q, 0), not normalised, with 0 for the tokens after the last whole block of 8192 ids.

    Return max(p - q, 0) unchanged if all other weights are 0. ``p`` and ``q`` are one row each, ``[vocabulary]``.
    """
    weights = owed(p, q).copy()
    whole = len(weights) // LAST_BLOCK_LEFT_OUT_BLOCK * LAST_BLOCK_LEFT_OUT_BLOCK
    if weights[:whole].any():
        weights[whole:] = 0.0
    return weights


@planted_verifier(
    "last-block-left-out",
    "never replaces a draft by a token after the last whole block of the vocabulary",
    category="N",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def last_block_left_out(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that replaces only by tokens of whole blocks of 8192, not by those after the last one."""
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=in_whole_blocks)


@engine_part(
    "to_target",
    "draft in its own ids",
    "map-never-initialised",
    "does not fill the map of token ids",
    category="N",
    citation="transformers issue #45307",
)
def map_never_initialised(row: ExactPmf, ids: Tokens, vocabulary: int) -> ExactPmf:
    """Return ``row``, a pmf over the drafter's ids, as a pmf over the target's ids; but raise ``IndexError``: the bug.

    The map of ids is empty, because it was never filled. ``ids``, the right map, is not used; ``vocabulary`` is the
    number of the target's ids.
    """
    empty: list[int] = []
    masses = [ZERO] * vocabulary
    for token, mass in enumerate(row):
        masses[empty[token]] += mass
    return tuple(masses)


@engine_part(
    "declared",
    "draft in its own ids",
    "pmf-in-the-drafts-order",
    "declares q in the drafter's order of tokens",
    category="N",
    citation="rtp-llm commit 607ec2c23 (second defect)",
)
def pmf_in_the_drafts_order(raw: ExactPmf, drawn: ExactPmf) -> ExactPmf:
    """Return ``raw``, q in the drafter's token order, although the drafted token is mapped to the target's ids.

    The right pmf is ``drawn``, which has the target's order.
    """
    return raw


@planted(
    "speculative-sampling",
    "q-in-draft-order",
    "declares q in the drafter's order of tokens",
    category="N",
    citation="rtp-llm commit 607ec2c23 (second defect)",
    killed_by="law_is_target",
    examples=SHORT,
)
def q_in_draft_order(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that declares q in the drafter's token order, although drafted ids are mapped."""
    draft = draft_model(task)
    return declaring(task, gamma, draft, lambda tokens: np.roll(draft(tokens), 1))


def known(pmf: Pmf) -> Pmf:
    """Return ``pmf`` restricted to the drafter's vocabulary, which lacks the last token, and renormalised.

    If nothing is left, return the point mass on token 0.
    """
    rest = excluding(pmf, (len(pmf) - 1,))
    return one_hot(0, pmf) if rest is None else rest


@planted(
    "speculative-sampling",
    "residual-within-the-subset",
    "never replaces a draft by a token that the drafter lacks",
    category="N",
    citation="xLLM PR #2175 (d2t part)",
    killed_by="law_is_target",
    examples=SHORT,
)
@from_parts
def residual_within_the_subset(task: Task, gamma: int = 4) -> Parts:
    """Speculative sampling that takes the residual over the drafter's vocabulary, which lacks the last token.

    A token that the drafter lacks is never drawn as a replacement.
    """
    draft = draft_model(task)
    verify = accept_or_replace(
        lambda prefix, p, q, token: accept_probability(p, q, token), lambda p, q, token: known(residual(p, q))
    )
    return Parts(model_drafter(lambda tokens: known(draft(tokens))), constant(gamma), verify)


@planted(
    "tli",
    "shared-part-not-renormalised",
    "drafts from the shared tokens of q, but declares the whole q",
    category="N",
    citation="plausible: tokens masked after the softmax that is kept",
    killed_by="law_is_target",
    examples=tli.ALGORITHM.examples,
)
def shared_part_not_renormalised(task: Task, missing: Tokens = (), gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts from the tokens of q that both vocabularies share, but declares the whole q.

    The original is TLI (token-level intersection). ``missing`` are the tokens of the drafter that the target does not
    share.
    """
    inner, q = shared_tokens_drafter(draft_model(task), missing), draft_model(task)

    def propose(draws: object, state: object, prefix: Tokens, *rest: object) -> Draft:
        drafted = inner.propose(draws, state, prefix, *rest)  # type: ignore[arg-type]
        return chain(drafted.tokens, tuple(q(prefix + drafted.tokens[:i]) for i in range(len(drafted.tokens))))

    drafter: Drafter = inner._replace(propose=propose)
    return with_parts("tli", drafter=drafter)(task, missing, gamma)


@planted(
    "token-timing",
    "aligned-probability-for-q",
    "declares the drafter's q for a re-spelled token instead of a point mass",
    category="N",
    citation="plausible: the transfer of probabilities by alignment, taken at its word",
    killed_by="law_is_target",
    examples=token_timing.ALGORITHM.examples,
)
def aligned_probability_for_q(task: Task, pieces: Pieces = (), gamma: int = 4) -> Decoder:
    """TokenTiming with a wrong declared q: the drafter's own probability of each draft, and 0 for other tokens.

    TokenTiming spells the drafter's text again in tokens of the target. The right q of each of these is a point mass.
    ``pieces`` is as in ``reference.algorithms.token_timing``.
    """
    q = draft_model(task)
    inner = respelled_sample_drafter(q, pieces)

    def propose(draws: Draws, state: object, prefix: Tokens, *rest: object) -> Draft:
        drafted = inner.propose(draws, state, prefix, *rest)  # type: ignore[arg-type]
        rows = [q(prefix + drafted.tokens[:i]) for i in range(len(drafted.tokens))]
        masses = (one_hot(token, row) * row[token] for token, row in zip(drafted.tokens, rows, strict=True))
        return chain(drafted.tokens, tuple(masses))

    return with_parts("token-timing", drafter=inner._replace(propose=propose))(task, pieces, gamma)
