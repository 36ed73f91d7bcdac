"""Correct subjects that look wrong: no check may refute them.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them. A function of ``target_logits``, ``draft_logits`` and ``draft_tokens`` verifies a round too, with p and
q that it computes from the logits by its further parameters, such as ``temperature``.

A function of ``draws``, ``target``, ``prefix`` and ``draft`` verifies the drafts ``draft`` after the text ``prefix``
and returns the tokens to emit (``reference.types.Verifier``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, Control, correct, with_verifier
from specverify.mutants.numpy_trees import TREES, walked
from specverify.mutants.numpy_verifiers import decided, drawn, logits_at, owed, ragged, softmax_rows
from specverify.mutants.proposal import declaring
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import (
    Claim,
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Plan,
    Pmf,
    Task,
    Tokens,
    Verified,
    argmax,
    chain,
    constant,
    flip,
    from_parts,
    model_drafter,
    one_hot,
    point_on_argmax,
    prompt_lookup_drafter,
    residual,
)
from specverify.reference.drafters.tree import excluding, most_likely
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.forms import BATCHED, Form
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject


def argmax_draft_one_hot_build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling of argmax drafts whose q is declared as a point mass, which is right."""
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: point_on_argmax(draft(tokens)), lambda tokens: None)


ARGMAX_DRAFT_ONE_HOT_ROW = correct("speculative-sampling")._replace(
    name="argmax-draft-one-hot", build=argmax_draft_one_hot_build, examples=SHORT
)


argmax_draft_one_hot = Control(
    "argmax-draft-one-hot",
    "declares a point mass as q for greedy drafts",
    "vLLM PR #40651; EAGLE issues #183, #283",
    partial(algorithm_subject, ARGMAX_DRAFT_ONE_HOT_ROW, "control"),
)
"""The drafter's argmax is declared as a point mass: it is accepted with probability p(d), and otherwise replaced by a
draw from p without d."""


@from_parts
def drafts_past_the_end_build(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Prompt lookup that also drafts the tokens after an end-of-sequence token; accepted ones are removed later.

    ``max_ngram`` is the length of the longest n-gram that is looked up.
    """
    return Parts(prompt_lookup_drafter(max_ngram, eos=()), constant(gamma), sample_and_match)


DRAFTS_PAST_THE_END_ROW = correct("prompt-lookup")._replace(
    name="drafts-past-the-end", build=drafts_past_the_end_build, examples=({"max_ngram": 2, "gamma": 3},)
)


drafts_past_the_end = Control(
    "drafts-past-the-end",
    "drafts tokens after the end, and removes them later",
    "openvino.genai PR #1951 (review); koboldcpp issue #1276",
    partial(algorithm_subject, DRAFTS_PAST_THE_END_ROW, "control"),
)
"""Drafts continue after an end-of-sequence token; accepted drafts after it are removed before the commit."""


@from_parts
def gamma_by_position_build(task: Task, gamma: int = 4) -> Parts:
    """Speculative sampling that drafts gamma tokens after texts of odd length and none after even ones."""
    length = constant(gamma)._replace(plan=lambda state, prefix: Plan(gamma * (len(prefix) % 2), state))
    return Parts(model_drafter(draft_model(task)), length, speculative_sampling)


GAMMA_BY_POSITION_ROW = correct("speculative-sampling")._replace(
    name="gamma-by-position", build=gamma_by_position_build, examples=SHORT
)


gamma_by_position = Control(
    "gamma-by-position",
    "drafts another number of tokens at some positions",
    "TensorRT-LLM issue #2208",
    partial(algorithm_subject, GAMMA_BY_POSITION_ROW, "control"),
)
"""Gamma depends on the position, so a seed gives another text than with a constant gamma; the law is the same."""


def infinite_ratio_verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by a table of all ratios p/q, which are infinite or NaN where q is 0; correct.

    Only the ratio of a drafted token is read, and its q is positive.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = p[:-1] / q
    for i, token in enumerate(drafts):
        if not rng.random() < ratios[i, token]:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


infinite_ratio = Control(
    "infinite-ratio",
    "computes ratios p/q that are infinite or NaN where q is 0",
    "plausible",
    partial(verifier_subject, infinite_ratio_verify, "control:infinite-ratio", (1,)),
)
"""The ratios p/q of a row are infinite or NaN where q is 0, but only the ratio of a drawn token is read."""


def one_coin_a_level_verify(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify a tree with one uniform for each level, which selects at most one child of the node reached; correct.

    If it selects none, the last token is drawn from p without the tokens of the children. ``parents`` and ``tokens``
    have the parent (-1: the root) and the token of each node; ``p`` has the root's row first.
    """

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        coin, sought, rest = rng.random(), 0.0, row.copy()
        for node in nodes:
            sought += row[tokens[node]]
            rest[tokens[node]] = 0
            if coin < sought:
                return node, -1
        return None, drawn(rng, rest if rest.any() else row)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


one_coin_a_level = Control(
    "one-coin-a-level",
    "tests all siblings with one uniform (as one draw from p)",
    "SGLang tree_speculative_sampling_target_only",
    partial(tree_subject, one_coin_a_level_verify, "control:one-coin-a-level", Form(drafts="top_k"), (TREES["top_k"],)),
)
"""One uniform tests all children of a node: it is compared with the cumulative sums of p over the children, which is
one draw from p."""


SETTINGS = (("temperature", 0.7),)


def rounded_logits_verify(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Speculative sampling that rounds its logits to float32 before it computes p and q from them; correct."""
    rounded = [rows.astype(np.float32) for rows in (target_logits, draft_logits)]
    p, q = (softmax_rows(rows, temperature).astype(np.float64) for rows in rounded)
    return decided(np.random.default_rng(), p / p.sum(-1, keepdims=True), q, draft_tokens.tolist())


rounded_logits = Control(
    "rounded-logits",
    "computes logits in float32, which differ in the last bits",
    "transformers issue #39421; Medusa issue #56; MLC-LLM PR #2184; mlx-lm PR #1109",
    partial(logits_at, SETTINGS, rounded_logits_verify, "control:rounded-logits", (1,)),
)
"""Logits are computed in float32. They differ from the exact ones in the last bits, which matters only near a tie."""


SAMPLED_DRAFT_AS_A_POINT_ROW = correct("speculative-sampling")._replace(
    name="sampled-draft-as-a-point",
    build=with_verifier(
        accept_or_replace(lambda prefix, p, q, token: p[token], lambda p, q, token: residual(p, one_hot(token, p)))
    ),
    claims=frozenset(Claim) - {Claim.OPTIMAL_COUPLING},
    examples=SHORT,
)


sampled_draft_as_a_point = Control(
    "sampled-draft-as-a-point",
    "verifies a sampled draft without q",
    "EAGLE issues #183, #283 (qx = 1)",
    partial(algorithm_subject, SAMPLED_DRAFT_AS_A_POINT_ROW, "control"),
)
"""A sampled draft is verified as a point mass, without q: the law is exact, and the acceptance rate lower than
possible."""


def stops_on_the_target_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Cut the block after the first draft d with p(d) < q(d), then verify it by speculative sampling, including d."""
    kept = 0
    for token, q in zip(draft.tokens, draft.pmfs, strict=True):
        kept += 1
        if q is not None and target(prefix + draft.tokens[: kept - 1])[token] < q[token]:
            break
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


def stops_on_the_target_build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts up to the first token with p < q; correct, as this token is tested too."""
    return with_verifier(stops_on_the_target_verify)(task, gamma)


STOPS_ON_THE_TARGET_ROW = correct("sample-and-match")._replace(
    name="stops-on-the-target", build=stops_on_the_target_build, examples=SHORT
)


stops_on_the_target = Control(
    "stops-on-the-target",
    "stops drafting after a token with small p, and keeps this token",
    "plausible",
    partial(algorithm_subject, STOPS_ON_THE_TARGET_ROW, "control"),
)
"""Drafting stops after a token that is unlikely under the target, and the token is kept in the draft: exact."""


TARGET_DRAWN_IN_BOTH_BRANCHES_ROW = correct("sample-and-match")._replace(
    name="target-drawn-in-both-branches", examples=SHORT
)


target_drawn_in_both_branches = Control(
    "target-drawn-in-both-branches",
    "accepts a draft only if it equals a draw from p",
    "mlxcel PR #992, issue #902",
    partial(algorithm_subject, TARGET_DRAWN_IN_BOTH_BRANCHES_ROW, "control"),
)
"""A draft from q is accepted iff it equals a fresh draw from p, and the draw is emitted in both cases: exact."""


def tokens_in_floats_verify(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> Any:
    """Speculative sampling of a batch that returns token ids in an array of floats; correct.

    ``lengths`` has the number of drafts of each row of the batch.
    """
    emitted = np.zeros((len(p), p.shape[1])) - 1
    for row, tokens in enumerate(ragged(p, q, draft_tokens, lengths)):
        emitted[row, : len(tokens)] = tokens
    return emitted


tokens_in_floats = Control(
    "tokens-in-floats",
    "returns token ids as floats",
    "plausible",
    partial(verifier_subject, tokens_in_floats_verify, "control:tokens-in-floats", (1,), BATCHED),
)
"""Emitted tokens are returned in a float buffer; float64 and float32 represent the ids exactly."""


def unlikely_matches_dropped_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Drop the first draft that is not the target's argmax and all drafts after it, then sample and match."""
    tokens = draft.tokens
    kept = next((i for i, t in enumerate(tokens) if t != argmax(target(prefix + tokens[:i]))), len(tokens))
    return sample_and_match(draws, target, prefix, chain(tokens[:kept], draft.pmfs[:kept]))


def unlikely_matches_dropped_build(task: Task, gamma: int = 4) -> Decoder:
    """Sample and match that drops the first draft other than the target's argmax, and all drafts after it; lossless."""
    return with_verifier(unlikely_matches_dropped_verify)(task, gamma)


UNLIKELY_MATCHES_DROPPED_ROW = correct("sample-and-match")._replace(
    name="unlikely-matches-dropped", build=unlikely_matches_dropped_build, examples=SHORT
)


unlikely_matches_dropped = Control(
    "unlikely-matches-dropped",
    "removes drafts that are not the argmax of p before sample and match",
    "plausible",
    partial(algorithm_subject, UNLIKELY_MATCHES_DROPPED_ROW, "control"),
)
"""Drafts are dropped depending on their ids. Only draws from the target are emitted: exact."""


def what_is_left_of_a_coin_verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that tests all drafts of a round with one uniform; correct.

    After each acceptance the uniform is divided by min(1, p/q), so it is again uniform on [0, 1).
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    coin = rng.random()
    for i, token in enumerate(drafts):
        ratio = min(1.0, float(p[i, token] / q[i, token]))
        if not coin < ratio:
            return [*drafts[:i], drawn(rng, owed(p[i], q[i]))]
        coin = coin / ratio
    return [*drafts, drawn(rng, p[-1])]


what_is_left_of_a_coin = Control(
    "what-is-left-of-a-coin",
    "uses the rest of one uniform for the next test",
    "plausible",
    partial(verifier_subject, what_is_left_of_a_coin_verify, "control:what-is-left-of-a-coin", (2,)),
)
"""After an acceptance (u < r, where r is min(1, p/q)) the next uniform is u/r, which is uniform and independent."""


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Keep the candidate whose interval of [0, 1) contains one uniform; else emit a draw from p without the candidates.

    The intervals lie side by side from 0 on, and their lengths are the probabilities of the candidates ``tokens`` under
    ``p``, the target row of the node. ``depth`` is the depth of the node; ``pmfs`` is not used.
    """
    below = p[0] * 0
    for k, token in enumerate(tokens):
        if below < 1 and flip(draws, p[token] / (1 - below), ("accept", depth, k)):
            return Step(token, accepted=True)
        below = below + p[token]
    rest = excluding(p, tokens)
    return Step(draws.categorical(p if rest is None else rest, ("residual", depth)), accepted=False)


ZERO_DRAFT_PROBABILITIES_ROW = correct("candidate-set")._replace(
    name="zero-draft-probabilities", build=with_tree(by_siblings(rule), most_likely), examples=PAIR
)


zero_draft_probabilities = Control(
    "zero-draft-probabilities",
    "a tree kernel that gets q = 0",
    "SGLang issues #9877, #10308",
    partial(algorithm_subject, ZERO_DRAFT_PROBABILITIES_ROW, "control"),
)
"""A tree kernel with draft probabilities of 0: one uniform is compared with the sum of p over the candidates tried so
far."""
