"""Planted bugs, class B: the declared q is not the law from which the draft was drawn.

A function with the decorator ``planted(ORIGINAL, ...)`` changes the registry algorithm ORIGINAL, and its options are
those of that algorithm.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, planted, with_parts, with_verifier
from specverify.mutants.numpy_verifiers import decided, planted_verifier
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
    Verifier,
    accept_probability,
    argmax,
    chain,
    chain_decoder,
    constant,
    excess_law,
    flip,
    from_parts,
    model_drafter,
    one_hot,
    point_on_argmax,
    prompt_lookup_drafter,
    residual,
    top_k,
)
from specverify.reference.algorithms import sjd_pac, speculative_jacobi
from specverify.reference.algorithms.greedy_multi_path import selection
from specverify.reference.drafters.cascade import vertical
from specverify.reference.drafters.sequences import sequences_drafter
from specverify.reference.drafters.tree import excluding
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.block_verification import block_verification
from specverify.reference.verifiers.speculative_sampling import speculative_sampling

# A drafter that draws from one model and declares another: what all dishonest drafters are.


def declaring(
    task: Task,
    gamma: int,
    sampled: LanguageModel,
    declared: Callable[[Tokens], Pmf | None],
    verify: Verifier = speculative_sampling,
) -> Decoder:
    """Return the decoder that drafts from the model ``sampled`` but declares ``declared(text)`` as q.

    A declared q of None is the point mass on the draft. ``verify`` is the verifier.
    """
    drafter = model_drafter(sampled)

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tokens = drafter.propose(draws, state, prefix, count, stop_after).tokens
        return chain(tokens, tuple(declared(prefix + tokens[:i]) for i in range(len(tokens))))

    return chain_decoder(task, drafter._replace(propose=propose), constant(gamma), verify)


@planted(
    "speculative-sampling",
    "argmax-draft-soft-ratio",
    "drafts the argmax of q, but declares q instead of a point mass",
    category="B",
    citation="jaymody/speculative-sampling issue #3, PR #4; transformers issue #32867, PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
def argmax_draft_soft_ratio(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts the argmax of q but declares q: likely tokens come out too often.

    The right declaration is the point mass on the draft.
    """
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: point_on_argmax(draft(tokens)), draft)


@planted(
    "speculative-sampling",
    "banned-in-one-place",
    "removes a banned token from the declared q, but may draft it",
    category="B",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
def banned_in_one_place(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that removes a banned token from the declared q, but may still draft it."""
    draft = draft_model(task)

    def without_banned(tokens: Tokens) -> Pmf:
        q = draft(tokens).copy()
        q[1] = q[1] * (q[1] == 1)
        return q / q.sum()

    return declaring(task, gamma, draft, without_banned)


@planted_verifier(
    "batch-forgets-q",
    "ignores q in all rows if one row has no drafts",
    category="B",
    citation="vllm-ascend commit f6c2314817",
    killed_by="acceptance_is_optimal",
    gammas=(1,),
)
def batch_forgets_q(p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:
    """Verify all drafts as point masses, without q, if any row of the batch has no drafts.

    The output is exact, but drafts are accepted too rarely.
    """
    rng, vocabulary = np.random.default_rng(), p.shape[-1]
    if (lengths == 0).any():
        q = np.eye(vocabulary)[draft_tokens]
    return [decided(rng, p[row], q[row], draft_tokens[row, :n].tolist()) for row, n in enumerate(lengths)]


copier_always_believed = planted(
    "prompt-lookup",
    "copier-always-believed",
    "accepts all copied drafts without a test",
    category="B",
    citation="openvino.genai PR #2331 (18b7b7818)",
    killed_by="tokens_are_supported",
    examples=({"max_ngram": 2, "gamma": 2},),
)(with_parts("prompt-lookup", verifier=accept_or_replace(lambda prefix, p, q, token: 1, lambda p, q, token: p)))
"""Copied tokens enter the ratio with target mass 1 instead of p: every copy is accepted."""


@planted(
    "speculative-sampling",
    "declared-at-another-temperature",
    "drafts at temperature 1/2, but declares q at temperature 1",
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)
def declared_at_another_temperature(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts at temperature 1/2 and declares q at the target's temperature."""
    draft = draft_model(task)

    def sharper(tokens: Tokens) -> Pmf:
        squared = draft(tokens) ** 2
        return squared / squared.sum()

    return declaring(task, gamma, sharper, draft)


def filtered(draws: Draws, q: Pmf, site: tuple[Any, ...]) -> Pmf:
    """Return q or, with probability 1/2, q without its most probable token, renormalised.

    If q has no other token, it is returned. ``site`` names the random decision.
    """
    rest = excluding(q, (argmax(q),))
    return rest if rest is not None and flip(draws, Fraction(1, 2), site) else q


@planted(
    "speculative-sampling",
    "filter-drawn-twice",
    "filters q at random, once for the draft and again for the declared q",
    category="B",
    citation="mlx-lm commit cb92766f (MTP branch)",
    killed_by="draft_is_honest",
    examples=SHORT,
)
@from_parts
def filter_drawn_twice(task: Task, gamma: int = 4) -> Parts:
    """Speculative sampling whose q is filtered at random.

    The filter is drawn once for the draft and again for the declared q.
    """
    draft: LanguageModel = draft_model(task)

    def propose(draws: Draws, state: Any, prefix: Tokens, count: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        tokens: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        while len(tokens) < count:
            q, place = draft(prefix + tokens), len(tokens)
            tokens = (*tokens, draws.categorical(filtered(draws, q, ("filter", place)), ("draft", place)))
            pmfs = (*pmfs, filtered(draws, q, ("filter again", place)))
        return chain(tokens, pmfs)

    return Parts(model_drafter(draft)._replace(propose=propose), constant(gamma), speculative_sampling)


@planted(
    "cascade-drafting",
    "inner-rounds-biased",
    "drafts by inner rounds that are not lossless",
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=({"large": 2, "small": 0, "inner": 2, "max_ngram": 2},),
)
@from_parts
def inner_rounds_biased(task: Task, large: int = 4, small: int = 3, inner: int = 3, max_ngram: int = 3) -> Parts:
    """Cascade drafting with a bug: the inner verification replaces a rejected token by a draw from the whole q.

    In cascade drafting an inner round verifies n-gram drafts by the draft model, and its tokens are the drafts of the
    outer round. The replacement must come from the residual. ``large`` and ``inner`` are the numbers of drafts of an
    outer and an inner round, and ``max_ngram`` is the longest n-gram of the lookup. ``small`` is not used.
    """
    shortcut = accept_or_replace(lambda _, p, q, token: accept_probability(p, q, token), lambda p, q, token: p)
    drafter = vertical(draft_model(task), prompt_lookup_drafter(max_ngram, task.eos), inner, shortcut)
    return Parts(drafter, constant(large), speculative_sampling)


STEPS = 256
"""Number of steps to which q is rounded: 8 bits of significand, as in bfloat16."""


def rounded(pmf: Pmf) -> Pmf:
    """Return the pmf rounded to multiples of 1/256 and normalised."""
    steps = [round(mass * STEPS) for mass in pmf.tolist()]
    return np.array([Fraction(step, sum(steps)) for step in steps], dtype=object)


@planted(
    "speculative-sampling",
    "low-precision-draft",
    "drafts from q in 8 bits, but declares q in full precision",
    category="B",
    citation="DeepSpec issue #31 (commit 379f222)",
    killed_by="draft_is_honest",
    examples=SHORT,
)
def low_precision_draft(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts from a q in low precision and declares the q in high precision."""
    draft = draft_model(task)
    return declaring(task, gamma, lambda tokens: rounded(draft(tokens)), draft)


@planted(
    "speculative-sampling",
    "q-row-off-by-one",
    "declares q of the previous position",
    category="B",
    citation="transformers PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
def q_row_off_by_one(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that declares the q of the previous position for each draft after the first."""
    draft = draft_model(task)
    return declaring(task, gamma, draft, lambda tokens: draft(tokens[:-1] or tokens))


@planted(
    "speculative-sampling",
    "raw-draft-declared",
    "drafts from a truncated q, but declares the whole q",
    category="B",
    citation="transformers issue #47932, PR #47961",
    killed_by="draft_is_honest",
    examples=SHORT,
)
def raw_draft_declared(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts from a truncated q and declares the whole q."""
    raw = draft_model(task)
    return declaring(task, gamma, lambda tokens: top_k(raw(tokens), 1), raw)


@planted(
    "speculative-jacobi",
    "row-of-this-sweep",
    "tests a draft with q of this sweep, not with the q that drew it",
    category="B",
    citation="plausible",
    killed_by="law_is_target",
)
def row_of_this_sweep(task: Task, **options: Any) -> Decoder:
    """Speculative Jacobi decoding that tests a draft with a row of this sweep, not with the row it was drawn from.

    A sweep is one Jacobi iteration over the block: the tokens drawn in one sweep are the drafts of the next.
    ``options`` are those of the registry algorithm.
    """
    decoder = speculative_jacobi.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        assert isinstance(after.drafter, tuple)
        tokens = tuple(token for token, _ in after.drafter)
        window = tuple((token, after.tokens + tokens[:i]) for i, token in enumerate(tokens))
        return after._replace(drafter=window), done

    return decoder._replace(step=step)


@planted(
    "sjd-pac",
    "kept-draft-declares-its-old-row",
    "tests a draft kept after a rejection with q of the previous sweep",
    category="B",
    citation="plausible",
    killed_by="law_is_target",
)
def kept_draft_declares_its_old_row(task: Task, **options: Any) -> Decoder:
    """SJD-PAC with a bug: a draft kept after a rejection is tested with the q of the previous sweep.

    SJD-PAC is speculative Jacobi decoding that keeps some drafts after a rejection for the next sweep (iteration). The
    right q of such a draft is the row by which it was kept. ``options`` are those of the registry algorithm.
    """
    decoder = sjd_pac.build(task, **options)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        assert isinstance(state.drafter, tuple)
        assert isinstance(after.drafter, tuple)
        rows = [after for _, after in state.drafter] + [None] * len(done.draft)
        old = tuple(zip(done.draft, rows, strict=False))[len(done.tokens) :]
        window = tuple(
            before if before[0] == draft[0] else draft for before, draft in zip(old, after.drafter, strict=False)
        )
        return after._replace(drafter=window + after.drafter[len(window) :]), done

    return decoder._replace(step=step)


scalar_q = planted(
    "speculative-sampling",
    "scalar-q",
    "takes q to be 0 for all tokens except the draft",
    category="B",
    citation="xLLM PR #2175 (6337bec39)",
    killed_by="law_is_target",
    examples=SHORT,
)(
    with_verifier(
        accept_or_replace(
            lambda prefix, p, q, token: accept_probability(p, q, token),
            lambda p, q, token: excess_law(p, one_hot(token, p) * q[token]),
        )
    )
)
"""A verifier for greedy drafts is used for sampled drafts and treats q as 0 except at the drafted token."""


@planted(
    "greedy-multi-path",
    "selected-path-declared-as-drawn",
    "declares q for a selected path, which does not have the law q",
    category="B",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"paths": 2, "depth": 1},),
)
def selected_path_declared_as_drawn(task: Task, paths: int = 3, depth: int = 8) -> Decoder:
    """Block verification of the best of several drafted paths that declares q as the law of this path.

    A selected path does not have the law q. The original is greedy multi-path block verification (2602.16961).
    ``paths`` is the number of drafted paths, and ``depth`` their length.
    """
    model = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        path = selection(target, prefix, draft)
        rows = tuple(model(prefix + path.tokens[:place]) for place in range(len(path.tokens)))
        return block_verification(draws, target, prefix, path._replace(pmfs=rows))

    return tree_decoder(task, sequences_drafter((model,) * paths, depth), verify)


target_only_for_sampled_drafts = planted(
    "speculative-sampling",
    "target-only-for-sampled-drafts",
    "verifies a sampled draft as if it were deterministic",
    category="B",
    citation="vLLM issue #40149, PR #40269",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)(
    with_verifier(
        accept_or_replace(lambda prefix, p, q, token: p[token], lambda p, q, token: residual(p, one_hot(token, p)))
    )
)
"""Drafts sampled from q are verified as point masses, because q is not passed to the verifier. The law is exact: given
d, accepting d with probability p(d) and otherwise drawing from p without d is a draw from p. The acceptance rate is
below the optimum."""


@planted(
    "speculative-sampling",
    "ties-cut-differently",
    "if tokens are tied, drafts the last one but declares the first",
    category="B",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=SHORT,
)
def ties_cut_differently(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that drafts the last of the most probable tokens, but declares the point mass on the first.

    The two differ only if several tokens are tied.
    """
    draft = draft_model(task)

    def first(tokens: Tokens) -> Pmf:
        return point_on_argmax(draft(tokens))

    def last(tokens: Tokens) -> Pmf:
        q = draft(tokens)
        return one_hot(len(q) - 1 - argmax(q[::-1]), q)

    return declaring(task, gamma, last, first)
