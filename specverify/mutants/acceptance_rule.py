"""Planted bugs, class A: a wrong rule accepts or rejects drafts.

A function with the decorator ``planted(ORIGINAL, ...)`` changes the registry algorithm ORIGINAL, and its options are
those of that algorithm.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them. A function of ``target_logits``, ``draft_logits`` and ``draft_tokens`` verifies a round too, with p and
q that it computes from the logits by its further parameters, such as ``temperature``.

A function of ``draws``, ``target``, ``prefix`` and ``draft`` verifies the drafts ``draft`` after the text ``prefix``
and returns the tokens to emit (``reference.types.Verifier``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, as_part, correct, dropping_last, planted, with_parts, with_verifier
from specverify.mutants.numpy_verifiers import drawn, excess, owed, planted_verifier, processed_rows, softmax_rows
from specverify.mutants.small_engine import engine_of, planted_engine
from specverify.mutants.tree_mutants import PAIR, by_siblings
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
    accept_probability,
    argmax,
    chain,
    commit,
    confidence,
    constant,
    excess_law,
    flip,
    from_parts,
    model_drafter,
    point_on_argmax,
    residual,
    top_tokens,
)
from specverify.reference.algorithms import bild_released, fly, self_speculative_diffusion, specdec_pp, svip
from specverify.reference.algorithms.bild import confident_drafter, rolls_back
from specverify.reference.algorithms.canonical_selection import selection
from specverify.reference.algorithms.fly import loosely
from specverify.reference.algorithms.fly_vllm import deferring
from specverify.reference.algorithms.hierarchical import backward
from specverify.reference.algorithms.judge_decoding import Pairs
from specverify.reference.algorithms.lenience import lenient_probability
from specverify.reference.algorithms.speculative_cascade import cascade
from specverify.reference.algorithms.swift import RELEASED, Widths, layer_drafter
from specverify.reference.algorithms.token_cascade import cascade as token_cascade
from specverify.reference.algorithms.typical_acceptance import typical_threshold
from specverify.reference.algorithms.typical_sampling_released import typical_part
from specverify.reference.any_order import Block, filled, masked_model, masked_places
from specverify.reference.coupling import positive_part
from specverify.reference.drafters.self_draft import partial_model
from specverify.reference.drafters.tree import independent, tree_drafter
from specverify.reference.models import draft_model
from specverify.reference.parameters import parameter
from specverify.reference.tree_rounds import Step, tree_decoder
from specverify.reference.trees import child_pmf, regular_tree
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.block_verification import capped_ratios
from specverify.reference.verifiers.greedy_match import greedy_match
from specverify.reference.verifiers.match_argmax_then_sample import match_argmax_then_sample
from specverify.reference.verifiers.recursive_rejection import recursive_rejection
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.forms import BATCHED


@planted(
    "greedy-speculation",
    "accepts-after-rejection",
    "counts matching drafts after the first mismatch too",
    category="A",
    citation="lucidrains/speculative-decoding commit a536030; plausible elsewhere",
    killed_by="greedy_is_argmax",
)
@as_part("greedy-speculation", "verifier")
def accepts_after_rejection(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Greedy matching that counts every matching draft, also those after the first mismatch.

    Only the matches before the first mismatch may count.
    """
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
    accepted = sum(argmax(row) == token for row, token in zip(rows, draft.tokens, strict=False))
    return Verified((*draft.tokens[:accepted], argmax(rows[accepted])), accepted)


@planted_verifier(
    "argmax-for-a-draw",
    "accepts a draft if it equals the argmax of p, not a draw from p",
    category="A",
    citation="mistral.rs issue #2329, PR #2424",
    killed_by="law_is_target",
    gammas=(1,),
    setting=(("temperature", 1.0),),
)
def argmax_for_a_draw(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Accept a draft if it equals the argmax of its target row; this is wrong at a positive temperature.

    The right rule draws a token from the target row and accepts the draft if both are equal.
    """
    best: list[int] = softmax_rows(target_logits, temperature).argmax(-1).tolist()
    misses = [i for i, token in enumerate(draft_tokens.tolist()) if token != best[i]]
    return best[: misses[0] + 1 if misses else len(best)]


argmax_judges_drafts = planted(
    "speculative-sampling",
    "argmax-judges-drafts",
    "tests drafts by the argmax of p, but samples the bonus token",
    category="A",
    citation="ROCm/ATOM PR #2318; mlxcel issue #902",
    killed_by="law_is_target",
    examples=SHORT,
)(
    with_verifier(
        accept_or_replace(lambda prefix, p, q, token: int(token == argmax(p)), lambda p, q, token: point_on_argmax(p))
    )
)
"""Drafts are accepted iff they equal the target's argmax, although T > 0; only the token after the last draft is
sampled."""


block_end_not_capped = planted(
    "hierarchical",
    "block-end-not-capped",
    "keeps the whole block with a ratio that is not capped at 1",
    category="A",
    citation="ZhouYuxuanYX/Hierarchical-Speculative-Decoding generation/utils.py at b8575e2",
    killed_by="law_is_target",
)(with_parts("hierarchical", verifier=backward(capped_end=False)))
"""A whole block is accepted with the product of its ratios p/q, which is not capped at 1; shorter prefixes use the
capped product."""


AGAIN = accept_or_replace(accept=lambda prefix, p, q, token: p[token], replacement=lambda p, q, token: p)
"""A rejected draft may be drawn again, so a draft d is emitted with probability p(d) (2 - p(d))."""


block_matched_then_drawn = planted(
    "dflash",
    "block-matched-then-drawn",
    "draws again if the draw from p differs from the draft",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)(with_parts("dflash", verifier=AGAIN))
"""A block of drafts is compared with draws from p; at the first mismatch another token is drawn instead of that draw.
"""


def block_mode_token_formulas_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Keep the longest prefix of the drafts whose last draft passes the test min(1, p/q); then draw from (p - q)+.

    Block verification requires the product of the ratios p/q, and a residual scaled by this product.
    """
    for length in range(len(draft.tokens), -1, -1):
        p = target(prefix + draft.tokens[:length])
        owed = p if length == len(draft.tokens) else residual(p, draft.pmfs[length])
        if length == 0 or _stays(draws, target(prefix + draft.tokens[: length - 1]), draft, length - 1):
            token = draws.categorical(owed, ("residual", length))
            return Verified((*draft.tokens[:length], token), accepted=length)
    raise AssertionError("the empty prefix always stays")


def _stays(draws: Draws, p: object, draft: Draft, i: int) -> bool:
    return flip(draws, accept_probability(p, draft.pmfs[i], draft.tokens[i]), ("accept", i))


@planted(
    "block-verification",
    "block-mode-token-formulas",
    "tests a block by the ratio of its last token alone",
    category="A",
    citation="vllm-ascend issue #7807, PR #7808 (2f4d55e7e8)",
    killed_by="law_is_target",
    examples=SHORT,
)
def block_mode_token_formulas(task: Task, gamma: int = 4) -> Decoder:
    """Block verification (2403.10444) with a wrong test: a prefix of the drafts is tested by its last draft alone."""
    return with_verifier(block_mode_token_formulas_verify)(task, gamma)


def block_ratio_not_capped_heads(w: Any, p: Any, q: Any) -> Any:
    """Return R / (R + 1 - w), the probability that a prefix of the drafts is accepted; 1 if ``w`` is at least 1.

    ``w`` is the product of p/q over the prefix, not capped at 1. R is the sum of (w p - q)+ for the rows ``p`` and
    ``q`` after the prefix.
    """
    spare = positive_part(w * p - q).sum()
    return spare / (spare + 1 - w) if w < 1 else 1


def ratio(p: list[Any], q: tuple[Any, ...], tokens: Tokens) -> Any:
    """Return the product of the ratios p/q of the drafted ``tokens``, not capped at 1.

    ``p[i]`` and ``q[i]`` are the rows of token i.
    """
    product = p[0].sum()
    for i, token in enumerate(tokens):
        product = product * p[i][token] / q[i][token]
    return product


@planted(
    "block-verification",
    "block-ratio-not-capped",
    "does not cap the product of ratios at 1",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def block_ratio_not_capped(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Block verification with the plain product of p/q, which is not capped at 1 after each draft.

    A product above 1 can then make up for a later, unlikely draft.
    """
    gamma, q = len(draft.tokens), draft.pmfs
    p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
    w = [p[0].sum(), *(ratio(p, q, draft.tokens[: i + 1]) for i in range(gamma))]
    if gamma == 0 or flip(draws, min(w[gamma], 1), ("accept", gamma - 1)):
        return Verified((*draft.tokens, draws.categorical(p[gamma], ("bonus",))), accepted=gamma)
    kept = gamma - 1
    while kept and not flip(draws, block_ratio_not_capped_heads(w[kept], p[kept], q[kept]), ("accept", kept - 1)):
        kept -= 1
    replacement = draws.categorical(excess_law(w[kept] * p[kept], q[kept]), ("residual", kept))
    return Verified((*draft.tokens[:kept], replacement), accepted=kept)


def block_ratio_token_residual_heads(w: Any, p: Any, q: Any) -> Any:
    """Return R / (R + 1 - w), the probability that a prefix of the drafts is accepted; 1 if R = 0 and ``w`` = 1.

    ``w`` is the product of p/q over the prefix, capped at 1 after each draft. R is the sum of (w p - q)+ for the rows
    ``p`` and ``q`` after the prefix.
    """
    spare = positive_part(w * p - q).sum()
    return spare / (spare + 1 - w) if spare > 0 or w < 1 else w


@planted(
    "block-verification",
    "block-ratio-token-residual",
    "replaces the token after a block from (p - q)+, without the weight of the block",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def block_ratio_token_residual(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Block verification (2403.10444) whose replacement is drawn from (p - q)+ instead of (w p - q)+.

    w is the product of p/q over the accepted drafts, capped at 1 after each draft.
    """
    gamma, q = len(draft.tokens), draft.pmfs
    p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
    w = capped_ratios(p, list(q), draft.tokens)
    if gamma == 0 or flip(draws, w[gamma], ("accept", gamma - 1)):
        return Verified((*draft.tokens, draws.categorical(p[gamma], ("bonus",))), accepted=gamma)
    kept = gamma - 1
    while kept and not flip(draws, block_ratio_token_residual_heads(w[kept], p[kept], q[kept]), ("accept", kept - 1)):
        kept -= 1
    replacement = draws.categorical(residual(p[kept], q[kept]), ("residual", kept))
    return Verified((*draft.tokens[:kept], replacement), accepted=kept)


@planted(
    "speculative-cascade",
    "cascade-defers-the-wrong-way",
    "exchanges p and q in the deferral rule",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def cascade_defers_the_wrong_way(task: Task, rule: str = "opt", alpha: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """Speculative cascade with a bug: the rule that chooses between the small and the large model exchanges p and q.

    A speculative cascade samples from a mixture of p and q, which this rule determines. ``rule`` and ``alpha`` select
    the rule, as in ``reference.algorithms.speculative_cascade``.
    """
    exchanged = cascade(task._replace(target=draft_model(task), draft=task.target), rule, alpha)
    return with_verifier(speculative_sampling)(task._replace(target=exchanged), gamma)


@planted(
    "token-cascade",
    "cascade-residual-of-target",
    "accepts by a mixture of p and q, but replaces from (p - q)+",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def cascade_residual_of_target(task: Task, alpha: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """Token cascade that tests drafts by its mixture of p and q, but replaces a rejected draft from (p - q)+.

    The cascade should emit the mixture, so the right residual is (mixture - q)+. ``alpha`` is the parameter of the
    mixture.
    """
    mixed = token_cascade(task, alpha)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        for i, token in enumerate(draft.tokens):
            before, q = prefix + draft.tokens[:i], draft.pmfs[i]
            if not flip(draws, accept_probability(mixed(before), q, token), ("accept", i)):
                replacement = draws.categorical(residual(target(before), q), ("residual", i))
                return Verified((*draft.tokens[:i], replacement), accepted=i)
        last = draws.categorical(mixed(prefix + draft.tokens), ("bonus",))
        return Verified((*draft.tokens, last), accepted=len(draft.tokens))

    return with_verifier(verify)(task, gamma)


def choose_then_accept(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Draw one of a node's candidates by a rule that depends on p, and accept it with min(1, p/q): the bug.

    The test is wrong because the drawn candidate does not have the law q. After a rejection the token is drawn from
    norm((p - q)+). ``p`` is the target row of the node, ``tokens`` are its candidates, and ``pmfs`` the q of each.
    """
    q = pmfs[0]
    chosen, _ = selection(p, q, len(tokens), 0)
    token = draws.categorical(chosen[frozenset(tokens)], ("choose", depth))
    if flip(draws, accept_probability(p, q, token), ("accept", depth)):
        return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, q), ("residual", depth)), accepted=False)


@planted(
    "canonical-selection",
    "choice-accepted-against-q",
    "accepts a candidate with p/q, although it was selected by a rule on p",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
def choice_accepted_against_q(task: Task, branching: tuple[int, ...] = (2, 1)) -> Decoder:
    """Tree verification that draws one candidate of each node by a rule on p, and accepts it with min(1, p/q).

    The right rule divides p by the law of the drawn candidate. ``branching[i]`` is the number of candidates of each
    node at depth i.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), independent)
    return tree_decoder(task, drafter, by_siblings(choose_then_accept))


@planted(
    "mentored-decoding",
    "clip-without-floor",
    "limits q from above by b p, but not from below by a p",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def clip_without_floor(task: Task, clip: Any = 2, gamma: int = 4) -> Decoder:
    """Mentored decoding with a wrong mixture of p and q: q is limited from above, but not from below.

    The right mixture keeps q between ``a p`` and ``b p``, where b is ``clip`` and a follows from b. Here the mass above
    ``b p`` is given to all tokens in proportion to p instead.
    """
    draft = draft_model(task)

    def mixed(tokens: Tokens) -> Pmf:
        p, q = task.target(tokens), draft(tokens)
        raised = p * parameter(clip, p)
        kept = q - positive_part(q - raised)
        return kept + (1 - kept.sum()) * p

    return with_verifier(speculative_sampling)(task._replace(target=mixed), gamma)


@planted_verifier(
    "coin-may-be-the-ratio",
    "accepts if u = p/q, so u = 0 accepts a draft that top-k removed",
    category="A",
    citation="SGLang issue #35771",
    killed_by="support_at_boundary_draws",
    setting=(("temperature", 1.0), ("top_k", 2)),
)
def coin_may_be_the_ratio(
    target_logits: Any,
    draft_logits: Any,
    draft_tokens: Any,
    temperature: float,
    top_k: float,
    top_p: float,
    min_p: float,
) -> list[int]:
    """Speculative sampling that accepts if u <= p/q instead of u < p/q.

    A uniform of exactly 0 then accepts a draft whose target probability is 0.
    """
    p, q = (processed_rows(rows, temperature, top_k, top_p, min_p) for rows in (target_logits, draft_logits))
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() <= p[i, token] / q[i, token]:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


coins_always_zero = planted(
    "speculative-sampling",
    "coins-always-zero",
    "compares p/q with 0 instead of a uniform",
    category="A",
    citation="vllm-ascend issue #13730, PR #13470, commit 15c3f9ae45",
    killed_by="law_is_target",
    examples=SHORT,
)(with_verifier(accept_or_replace(lambda prefix, p, q, token: int(p[token] > 0), lambda p, q, token: residual(p, q))))
"""The uniform is the constant 0, so log u is minus infinity and every draft with positive target probability is
accepted."""


copies_judged_by_argmax = planted(
    "sam-decoding",
    "copies-judged-by-argmax",
    "tests copied drafts by the argmax of p, but samples the token after them",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)(with_parts("sam-decoding", verifier=match_argmax_then_sample))
"""Copied drafts are accepted iff they equal the target's argmax; only the token after them is sampled."""


@planted_verifier(
    "count-along-rows",
    "counts accepted drafts along the rows of the batch, not along the positions",
    category="A",
    citation="lucidrains/speculative-decoding commit a536030",
    killed_by="law_is_target",
    gammas=(1,),
    form=BATCHED,
)
def count_along_rows(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling of a batch that counts the accepted drafts of a row wrongly.

    The cumulative product of the acceptances is taken over the rows instead of the positions. So a rejection counts in
    all later rows, and not at later positions.
    """
    rng, gamma = np.random.default_rng(), draft_tokens.shape[1]
    coins = [
        [rng.random() < a[t] / b[t] for a, b, t in zip(*row, strict=False)]
        for row in zip(p, q, draft_tokens, strict=True)
    ]
    counts = np.array(coins, dtype=int).cumprod(axis=0).sum(axis=1)
    result = []
    for row, n in enumerate(counts.tolist()):
        rest = excess(p[row, n], q[row, n]) if n < gamma else p[row, n]
        result.append([*draft_tokens[row, :n].tolist(), drawn(rng, rest if rest.sum() else p[row, n])])
    return result


@planted(
    "speculative-sampling",
    "dropped-block",
    "drops the whole block if q of its first token is small",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def dropped_block(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that discards the whole draft block if q of its first token is below 1/3.

    So the blocks that are verified do not have the law q.
    """
    unsure = bool(draft.tokens) and child_pmf(draft, 0, target(prefix))[draft.tokens[0]] < Fraction(1, 3)
    kept = 0 if unsure else len(draft.tokens)
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


@planted(
    "speculative-sampling",
    "dropped-by-ratio",
    "cuts the block before a draft with small p/q",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def dropped_by_ratio(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that removes the first draft with p/q < 1/2, and all drafts after it, before the tests.

    The drafts that remain are selected by p/q, so they do not have the law q.
    """
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens))]
    q = [child_pmf(draft, i, p) for i, p in enumerate(rows)]
    ratios = [rows[i][token] / q[i][token] for i, token in enumerate(draft.tokens)]
    kept = next((i for i, ratio in enumerate(ratios) if ratio < Fraction(1, 2)), len(ratios))
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


@planted(
    "speculative-sampling",
    "dropped-by-target",
    "cuts the block before a draft with small p",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def dropped_by_target(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that removes the first draft d with p(d) < 1/3, and all drafts after it, before the tests.

    The drafts that remain are selected by p, so they do not have the law q.
    """
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens))]
    kept = next((i for i, t in enumerate(draft.tokens) if rows[i][t] < Fraction(1, 3)), len(rows))
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


@planted(
    "confidence-stopping",
    "dropped-confidence-token",
    "drops the draft whose small q ended the drafting, instead of keeping it",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
@from_parts
def dropped_confidence_token(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Stop drafting at the first token whose q is below ``threshold``, and drop this token: the bug.

    The right algorithm keeps the token as the last draft.
    """
    rule = confidence(threshold, gamma)
    return Parts(dropping_last(model_drafter(draft_model(task)), rule.stop_after), rule, speculative_sampling)


@planted(
    "kangaroo",
    "exit-believed-once",
    "emits the first draft of every round without a test",
    category="A",
    citation="plausible",
    killed_by="greedy_is_argmax",
)
@as_part("kangaroo", "verifier")
def exit_believed_once(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Greedy matching that emits the first draft of each round without a test, and tests the others.

    The original is Kangaroo, whose drafts come from an early exit of the target.
    """
    first = draft.tokens[:1]
    rest = greedy_match(draws, target, prefix + first, chain(draft.tokens[1:], draft.pmfs[1:]))
    return Verified(first + rest.tokens, len(first) + rest.accepted)


@planted(
    "speculative-sampling",
    "gamma-from-this-round",
    "draws from p in place of a rejected draft, as if it had not been drafted",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def gamma_from_this_round(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with a wrong replacement: a rejected draft is replaced by a draw from p.

    The replacement should come from the residual. Here gamma is taken to be the number of accepted drafts, so the
    replacement is drawn like a bonus token.
    """
    first = speculative_sampling(draws, target, prefix, draft)
    if first.accepted == len(draft.tokens):
        return first
    shorter = chain(draft.tokens[: first.accepted], draft.pmfs[: first.accepted])
    bonus = draws.categorical(target(prefix + shorter.tokens), ("shorter",))
    return Verified((*shorter.tokens, bonus), first.accepted)


def decide(rng: Any, p: Any, q: Any, drafts: Sequence[int]) -> list[int]:
    """Verify the ``drafts`` of a round with the test u q <= p, which u = 0 passes even if p is 0.

    Returns the accepted drafts and one more token. ``rng`` draws the uniforms u.
    """
    for i, token in enumerate(drafts):
        if not rng.random() * q[i, token] <= p[i, token]:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[len(drafts)])]


inclusive_coin = planted_engine(
    engine_of(decide),
    "inclusive-coin",
    "accepts a draft of probability 0 if u is 0",
    category="A",
    citation="SGLang issue #35771; Sequoia commits 12844ff, 530d1bf, b8f7b10, df58fc0; "
    "romsto/Speculative-Decoding speculative_decoding.py:143 at db7db67",
    killed_by="support_at_boundary_draws",
    control=engine_of(),
    decide=decide,
)
"""The uniform is compared with <= instead of <, so u = 0 accepts a draft of target probability 0."""


@planted(
    "speculative-sampling",
    "inverted-ratio",
    "accepts with probability min(1, q/p)",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def inverted_ratio(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with the ratio inverted: a draft is accepted with probability min(1, q/p)."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(q, p, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


@planted(
    "judge-decoding",
    "judge-sees-the-prompt",
    "the judge reads the last committed token, not the token before the draft",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def judge_sees_the_prompt(task: Task, correct: Pairs = (), gamma: int = 4) -> Decoder:
    """Judge decoding with a bug: every draft is judged by the last committed token, not by the token before the draft.

    Judge decoding also accepts a draft if a judge calls it correct. ``correct`` are the pairs (token before the draft,
    draft) that the judge accepts.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def accept(before: Tokens, p: Pmf, q: Pmf, token: int) -> Any:
            return 1 if (prefix[-1], token) in correct else accept_probability(p, q, token)

        return accept_or_replace(accept, lambda p, q, token: residual(p, q))(draws, target, prefix, draft)

    return with_verifier(verify)(task, gamma)


@planted(
    "lenience",
    "lenient-residual",
    "uses p / lenience in the residual too, not only in the test",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def lenient_residual(task: Task, lenience: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """Speculative sampling with lenience: p is divided by ``lenience`` in the residual too, not only in the test.

    The right residual is that of p and q. Lenience makes the test accept more drafts.
    """
    verify = accept_or_replace(
        lambda prefix, p, q, token: lenient_probability(p, q, token, lenience),
        lambda p, q, token: excess_law(p / parameter(lenience, p), q),
    )
    return with_verifier(verify)(task, gamma)


likelier_strictly = planted(
    "accept-if-likelier",
    "likelier-strictly",
    "keeps a draft d if p(d) > q(d), but not if p(d) = q(d)",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)(with_verifier(accept_or_replace(lambda prefix, p, q, token: int(p[token] > q[token]), lambda p, q, token: p)))
"""A draft is accepted if p(d) > q(d), while the declared rule also accepts ties; with p = q every draft is rejected."""


@planted(
    "nasd",
    "match-then-fresh-sample",
    "draws again from p if the first draw differs from the draft",
    category="A",
    citation="romsto/Speculative-Decoding ngram_assisted.py at db7db67; REST and Medusa nucleus modes",
    killed_by="law_is_target",
)
@as_part("nasd", "verifier")
def match_then_fresh_sample(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Sample and match that draws from p a second time if the first draw differs from the draft.

    Sample and match draws a token from p and accepts the draft if both are equal. If not, the drawn token should be
    emitted.
    """
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        if draws.categorical(p, ("target", i)) != token:
            return Verified((*draft.tokens[:i], draws.categorical(p, ("again", i))), accepted=i)
    end = len(draft.tokens)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("target", end))), end)


@planted(
    "specdec-pp",
    "predicted-rejection-dropped",
    "drops the last draft if its rejection is predicted, instead of keeping it",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
@from_parts
def predicted_rejection_dropped(task: Task, threshold: Any = 0, gamma: int = 20) -> Parts:
    """Speculative sampling that drops the last drafted token if its q is below ``threshold``.

    The original, SpecDec++, stops drafting there too, but keeps the token as a draft.
    """
    parts = specdec_pp.build.parts(task, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(drafter=dropping_last(parts.drafter, lambda q, token: q[token] < threshold))


@planted(
    "fly-vllm",
    "release-for-vllm",
    "one draft fewer has to pass after an excused draft than in vLLM",
    category="A",
    citation="plausible: the authors' release counts so",
    killed_by="law_is_declared",
    examples=({"window": 2, "threshold": 0.5, "gamma": 3},),
)
def release_for_vllm(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 8) -> Decoder:
    """FLy, as vLLM runs it, with a bug: one draft fewer must pass after an excused draft.

    FLy keeps a rejected draft (excuses it) if the ``window`` drafts after it pass their tests and the target's entropy
    is at least ``threshold``. Here ``window - 1`` drafts must pass, as in the authors' release.
    """
    return with_parts("fly-vllm", verifier=deferring(window - 1, threshold))(task, window, threshold, gamma)


released_block_capped = planted(
    "hierarchical-released",
    "released-block-capped",
    "caps the ratio of the whole block, which the release does not cap",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)(with_parts("hierarchical-released", verifier=backward(capped_end=True)))
"""The rule of the hierarchical release, with the product of the ratios of a whole block capped at 1. The release does
not cap it, so the law is not the one declared for the release."""


released_miss_emitted = planted(
    "nasd-released",
    "released-miss-emitted",
    "emits the draw that differs from the draft; the release draws again",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)(with_parts("nasd-released", verifier=sample_and_match))
"""The released NASD rule draws again if a draw from p differs from the draft. This mutant emits the first draw: it is
lossless, so its law is not the declared, biased one."""


@planted(
    "bild",
    "rollback-one-too-far",
    "rolls back one token too many",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
@from_parts
def rollback_one_too_far(task: Task, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10) -> Parts:
    """BiLD with a bug: its rollback removes one token too many.

    In BiLD a small model writes until its largest q is below ``fallback``. Then the large model removes the first token
    with ``-log p > rollback`` and all after it. Here the token before the first one is removed too.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
        result = [i for i, token in enumerate(draft.tokens) if rolls_back(rows[i], token, rollback)]
        kept = max(result[0] - 1, 0) if result else len(draft.tokens)
        return Verified((*draft.tokens[:kept], argmax(rows[kept])), accepted=kept)

    return Parts(confident_drafter(draft_model(task), fallback), constant(gamma), verify)


@planted(
    "speculative-sampling",
    "row-off-by-one",
    "tests draft i by the row of p of draft i - 1",
    category="A",
    citation="FlashInfer PR #425; transformers PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
@with_verifier
def row_off_by_one(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that tests draft i by the target row of draft i - 1, for every i after the first."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[: max(i - 1, 0)]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


@planted(
    "nasd-seed-rule",
    "seed-rule-top-two",
    "accepts the two most probable tokens, not only the most probable one",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
@as_part("nasd-seed-rule", "verifier")
def seed_rule_top_two(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Accept n-gram drafts that are among the two most probable tokens of the target, instead of only the first.

    The original is the seed rule of NASD. The last token of a round is a draw from p.
    """
    accepted = 0
    while accepted < len(draft.tokens):
        if draft.tokens[accepted] not in top_tokens(target(prefix + draft.tokens[:accepted]), 2):
            break
        accepted += 1
    kept = draft.tokens[:accepted]
    return Verified((*kept, draws.categorical(target(prefix + kept), ("target", accepted))), accepted)


@planted(
    "bild-released",
    "small-model-first",
    "begins the text with the small model instead of the large one",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def small_model_first(task: Task, **options: Any) -> Decoder:
    """BiLD, as released, with a bug: the small model writes the first token.

    In the release, whose law is the expected one here, the large model writes it; in the paper the small model does.
    ``options`` are those of ``reference.algorithms.bild_released``.
    """
    decoder = bild_released.build(task, **options)
    return decoder._replace(init=lambda prompt: decoder.init(prompt)._replace(drafter=False))


@planted(
    "speculative-sampling",
    "stale-offset",
    "in every round tests draft i by p/q of the i-th token after the prompt",
    category="A",
    citation="romsto/Speculative-Decoding commit 41668c8",
    killed_by="law_is_target",
    examples=SHORT,
)
def stale_offset(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that tests draft i of every round by p/q of the i-th token after the prompt.

    The rule is right in round 1 and wrong from round 2 on.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft, start: int) -> Verified:
        text = prefix + draft.tokens
        for i, q in enumerate(draft.pmfs):
            p = target(prefix + draft.tokens[:i])
            if not flip(draws, accept_probability(p, q, text[start + i]), ("accept", i)):
                return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
        return Verified((*draft.tokens, draws.categorical(target(text), ("bonus",))), len(draft.tokens))

    def round_from(state: State) -> Decoder:
        start = len(state.tokens) - (task.horizon - state.remaining)
        return with_verifier(lambda draws, target, prefix, draft: verify(draws, target, prefix, draft, start))(
            task, gamma
        )

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        return round_from(state).step(draws, state)

    return Decoder(round_from(State((), 0)).init, step)


suffixes_judged_by_argmax = planted(
    "suffix-decoding",
    "suffixes-judged-by-argmax",
    "tests suffix drafts by the argmax of p, but samples the token after them",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)(with_parts("suffix-decoding", verifier=match_argmax_then_sample))
"""Copied drafts are accepted iff they equal the target's argmax; only the token after them is sampled."""


@planted(
    "fly",
    "sure-misses-excused",
    "excuses mismatching drafts also if the target's entropy is low",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
    examples=({"window": 1, "threshold": 0.9, "gamma": 2},),
)
@from_parts
def sure_misses_excused(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 15) -> Parts:
    """FLy without its entropy test.

    FLy excuses a mismatching draft if the drafts after it, in a ``window``, match and the target's entropy is at least
    ``threshold``. Here the entropy is ignored.
    """
    parts = fly.build.parts(task, window, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(verifier=loosely(window, -1))


@planted(
    "svip",
    "surprise-for-entropy",
    "stops drafting by -log q of the draft, not by the entropy of q, and drops this draft",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
@from_parts
def surprise_for_entropy(task: Task, threshold: float = 0.3, scale: float = 0.15, gamma: int = 40) -> Parts:
    """Speculative sampling that stops drafting by the surprise -log q of the drafted token, and drops this token.

    Drafting stops if ``sqrt(scale * surprise)`` is above ``threshold``. The original, SVIP, uses the entropy of q
    instead of the surprise, and keeps the token.
    """
    parts = svip.build.parts(task, threshold, scale, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(
        drafter=dropping_last(parts.drafter, lambda q, token: math.sqrt(scale * -math.log(q[token])) > threshold)
    )


@planted(
    "specdec",
    "tolerance-in-bits",
    "reads a tolerance in nats as bits",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def tolerance_in_bits(task: Task, beta: int = 5, tau: float = 3.0, gamma: int = 4) -> Decoder:
    """SpecDec with a wrong unit: the tolerance ``tau`` is read in bits, although it is given in nats.

    SpecDec accepts a draft that is among the ``beta`` most probable tokens of the target and whose log p is at most
    ``tau`` below the largest.
    """
    return correct("specdec").build(task, beta=beta, tau=tau * math.log(2), gamma=gamma)


@planted(
    "bild-released",
    "turn-ends-with-rollback",
    "after a rollback lets the small model write the next token, not the large one",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def turn_ends_with_rollback(task: Task, **options: Any) -> Decoder:
    """BiLD, as released, with a bug: the small model writes the next token after every round.

    In a rollback the large model removes bad drafts and writes one token. In the release it also writes the token after
    this one; here the small model does. ``options`` are those of ``reference.algorithms.bild_released``.
    """
    decoder = bild_released.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        return after._replace(drafter=False), done

    return decoder._replace(step=step)


@planted(
    "typical-sampling-released",
    "typical-against-p",
    "compares drafts with draws from the whole p, not from its typical part",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def typical_against_p(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Decoder:
    """Typical acceptance of Medusa, sampled, with a bug: drafts are matched with draws from p, not from a truncated p.

    The truncated p has only the tokens above the threshold that ``epsilon`` and ``delta`` determine.
    """
    verify = accept_or_replace(
        lambda prefix, p, q, token: p[token],
        lambda p, q, token: typical_part(p, epsilon, delta),
        lambda p: typical_part(p, epsilon, delta),
    )
    return with_verifier(verify)(task, gamma)


@planted(
    "typical-acceptance",
    "typical-in-bits",
    "computes the entropy in bits instead of nats",
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
def typical_in_bits(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Decoder:
    """Typical acceptance with a bug: the entropy H in its threshold min(epsilon, delta exp(-H)) is in bits, not nats.

    The entropy is then larger, so the threshold is too low and too many drafts are accepted.
    """

    def threshold(p: Pmf) -> float:
        nats = -math.log(typical_threshold(p, 1, 1))
        return min(epsilon, delta * math.exp(-nats / math.log(2)))

    verify = accept_or_replace(
        lambda prefix, p, q, token: int(p[token] > threshold(p)),
        lambda p, q, token: point_on_argmax(p),
        point_on_argmax,
    )
    return with_verifier(verify)(task, gamma)


@planted(
    "swift",
    "unsure-candidates-dropped",
    "drops the last drafted position if its first candidate is improbable",
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"depth": 2, "stop": 0.4, "widths": ((-1, 1),), "sets": (0,), "layers": 2, "window": 1},),
)
def unsure_candidates_dropped(
    task: Task,
    depth: int = 25,
    stop: Any = 0.8,
    widths: Widths = RELEASED,
    sets: tuple[int, ...] = (1, 2, 3),
    layers: int = 4,
    window: int = 32,
) -> Decoder:
    """SWIFT with a bug: the last drafted position is removed if its first candidate has a low probability.

    In SWIFT the target without some layers drafts several candidates for each position. SWIFT stops drafting at such a
    position too, but keeps it. The parameters are those of ``reference.algorithms.swift``.
    """
    models = [partial_model(task.target, draft_model(task), run, layers) for run in sets]
    drafter = layer_drafter(models, depth, stop, widths, window)

    def propose(*args: Any) -> Draft:
        draft = drafter.propose(*args)
        first = draft.parents.index(draft.parents[-1]) if draft.tokens else 0
        pmf = draft.pmfs[first] if draft.tokens else None
        if pmf is None or pmf[draft.tokens[first]] >= stop:
            return draft
        return Draft(draft.tokens[:first], draft.parents[:first], draft.pmfs[:first])

    return tree_decoder(task, drafter._replace(propose=propose), recursive_rejection)


@planted(
    "self-speculative-diffusion",
    "rows-blind-to-the-drafts",
    "verifies drafts by the rows from which they were drawn",
    category="A",
    citation="plausible: a mask that shows the verifying layers the filled places alone",
    killed_by="law_is_target",
)
def rows_blind_to_the_drafts(task: Task, block: int = 4, window: int = 4) -> Decoder:
    """Self-speculative masked diffusion that verifies drafts with the same rows from which they were drawn.

    So every draft is accepted. The right rows for verification depend on the drafts before each position. ``block`` is
    the number of masked positions, ``window`` the number of positions drafted in a pass.
    """
    model = masked_model(task.target)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        here: Block = (None,) * min(block, state.remaining)
        drafted: Tokens = ()
        while places := masked_places(here):
            rows = [model(state.tokens, here, place) for place in places[:window]]
            for place, row in zip(places, rows, strict=False):
                here = filled(here, place, draws.categorical(row, ("draft", place)))
            drafted += tuple(here[place] or 0 for place in places[: len(rows)])
        new, remaining = commit(tuple(token for token in here if token is not None), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, drafted, len(new), len(new))

    return self_speculative_diffusion.build(task, block, window)._replace(step=step)
