"""Planted bugs, class E: NaN, zero mass, rounding and temperatures near 0.

A function of ``p``, ``q`` and ``draft_tokens`` verifies a round: ``p`` has gamma + 1 rows of the target and ``q`` gamma
rows of the drafter. It returns the accepted drafts and one more token, for a batch (a leading dimension of the arrays)
a list of them. A function of ``target_logits``, ``draft_logits`` and ``draft_tokens`` verifies a round too, with p and
q that it computes from the logits by its further parameters, such as ``temperature``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.mutants.numpy_verifiers import (
    at_large,
    decided,
    drawn,
    excess,
    likeliest,
    owed,
    planted_verifier,
    ratio,
    softmax_rows,
)
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    flip,
    residual,
)
from specverify.reference.trees import child_pmf
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.forms import BATCHED
from specverify.subjects.subject import SampledSetting, Subject
from specverify.subjects.verifier import verifier_subject


def looked_up(rng: Any, weights: Any) -> int:
    """Return the index at which the cumulative sum of ``weights`` passes a uniform, which ``rng`` draws.

    If rounding leaves the sum below the uniform, this index is one past the end.
    """
    return int(np.searchsorted((weights / weights.sum()).cumsum(), rng.random(), side="right"))


@planted_verifier(
    "cumulative-sum-runs-out",
    "emits token V, which does not exist, at the largest uniform",
    category="E",
    citation="plausible",
    killed_by="support_at_boundary_draws",
)
def cumulative_sum_runs_out(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling by a lookup in a cumulative sum that ends below 1 because of rounding.

    The largest uniform then returns the index after the last token, which is no token id.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if not rng.random() < ratio(p[i], q[i], token):
            return [*drafts[:i], looked_up(rng, owed(p[i], q[i]))]
    return [*drafts, looked_up(rng, p[len(drafts)])]


STEP = 0.25


@planted_verifier(
    "draft-mass-underflows",
    "accepts a draft whose q is rounded to 0",
    category="E",
    citation="plausible",
    killed_by="tokens_are_supported",
)
def draft_mass_underflows(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that reads a probability of q below ``STEP`` as 0, as a float of few bits would store it.

    A draft with such a q is always accepted: its ratio is infinite, or NaN if p is 0 too.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = p[i, token] / (q[i, token] if q[i, token] >= STEP else np.float64(0))
        if rng.random() >= ratio:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


def replacement(rng: Any, p: Any, q: Any) -> int:
    """Return a token drawn from the normalised ``(p - q)+`` by the Gumbel-max method.

    If a weight is NaN, its score counts as the largest, so its token is returned. ``rng`` draws the noise.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = excess(p, q) / excess(p, q).sum()
        return int((np.log(weights) + rng.gumbel(size=len(weights))).argmax())


@planted_verifier(
    "empty-residual-divided",
    "divides a residual that is empty by rounding by its sum",
    category="E",
    citation="plausible",
    killed_by="support_at_boundary_draws",
    form=BATCHED,
)
def empty_residual_divided(p: Any, q: Any, draft_tokens: Any) -> list[list[int]]:
    """Speculative sampling of a batch that divides the residual by its sum without a test for 0.

    The sum is 0 where p and q are rows of one softmax, computed by two kernels, and differ by rounding only.
    """
    rng, result = np.random.default_rng(), []
    for row, drafts in enumerate(draft_tokens.tolist()):
        kept = [rng.random() < ratio(p[row, i], q[row, i], token) for i, token in enumerate(drafts)]
        n = kept.index(False) if False in kept else len(drafts)
        last = replacement(rng, p[row, n], q[row, n]) if n < len(drafts) else drawn(rng, p[row, n])
        result.append([*drafts[:n], last])
    return result


def normalised(p: Any, q: Any) -> Any:
    """Return the residual divided by its sum; the point mass on token 0 if the residual is empty."""
    with np.errstate(invalid="ignore"):
        result = excess(p, q) / excess(p, q).sum()
    return np.eye(len(p))[0] if np.isnan(result).all() else result


@planted_verifier(
    "empty-residual-is-nan",
    "divides an empty residual by its sum, and emits token 0",
    category="E",
    citation="romsto/Speculative-Decoding speculative_decoding.py:17-19 at db7db67",
    killed_by="tokens_are_supported",
)
def empty_residual_is_nan(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that divides an empty residual by its sum and emits token 0 for the NaN.

    A draft can be rejected even if p = q, because the denominator of the ratio is q + 1e-10.
    """
    return decided(
        np.random.default_rng(),
        p,
        q,
        draft_tokens.tolist(),
        accept=lambda p, q, token: p[token] / (q[token] + 1e-10),
        weights=normalised,
    )


LOST_RECOVERY_IS_COUNTED_EPSILON = Fraction(1, 2**40)


def lost_recovery_is_counted_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that emits -1 in place of a rejected draft if the residual ``(p - q)+`` is 0 everywhere.

    A draft can be rejected although p = q, because it is accepted with probability p / (q + epsilon), below 1. The
    first draft of a round is an exception: if its residual is 0 everywhere, its replacement is drawn from p.
    """
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), child_pmf(draft, i, target(prefix))
        if not flip(draws, min(p[token] / (q[token] + LOST_RECOVERY_IS_COUNTED_EPSILON), 1), ("accept", i)):
            result = -1 if i and (p <= q).all() else draws.categorical(residual(p, q), ("residual", i))
            return Verified((*draft.tokens[:i], result), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


@planted(
    "speculative-sampling",
    "lost-recovery-is-counted",
    "drops the replacement -1 from the output, but counts it as a token",
    category="E",
    citation="vllm-ascend commit 9247a2fb9f",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
def lost_recovery_is_counted(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that removes negative tokens from the output but counts them in the length budget.

    The replacement is -1 if the residual is empty.
    """
    inner = with_verifier(lost_recovery_is_counted_verify)(task, gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        shown = tuple(token for token in after.tokens if token >= 0)
        return after._replace(tokens=shown), done

    return inner._replace(step=step)


def processed(logits: Any, temperature: float, top_k: float) -> Any:
    """Return the softmax of ``logits`` at ``temperature``, with the logits outside the ``top_k`` largest replaced by 0.

    Those logits should become -inf.
    """
    keep = likeliest(softmax_rows(logits), top_k) > 0
    with np.errstate(invalid="ignore"):
        return softmax_rows(np.nan_to_num(np.where(keep, logits, -np.inf) * keep, nan=0.0), temperature)


def nan_as_zero_logit_control(
    target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float, top_k: float
) -> list[int]:
    """Speculative sampling of logits cut to the ``top_k`` largest: the correct counterpart of ``nan_as_zero_logit``."""
    p, q = (likeliest(softmax_rows(rows, temperature), top_k) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


@planted_verifier(
    "nan-as-zero-logit",
    "masked logits become NaN and then 0, which is a high logit",
    category="E",
    citation="vllm-ascend PRs #14116, #14098",
    killed_by="law_is_target",
    control=nan_as_zero_logit_control,
    gammas=(1,),
    setting=(("temperature", 0.7), ("top_k", 2)),
)
def nan_as_zero_logit(
    target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float, top_k: float
) -> list[int]:
    """Speculative sampling whose mask turns logits outside top-k into NaN, and NaN into 0.

    A logit of 0 is a high value, so masked tokens become likely.
    """
    p, q = (processed(rows, temperature, top_k) for rows in (target_logits, draft_logits))
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist())


def excess_by_ratio(p: Any, q: Any) -> Any:
    """Return q (p/q - 1)+ with NaN as 0; if all entries are 0, the point mass on token 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.nan_to_num(q * np.maximum(p / q - 1, 0), nan=0.0)
    return result if result.any() else np.eye(len(p))[0]


@planted_verifier(
    "nan-swallowed",
    "replaces NaN in the residual by 0, so tokens with q = 0 are lost",
    category="E",
    citation="vLLM PR #41834",
    killed_by="tokens_are_supported",
)
def nan_swallowed(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that computes the residual as q (p/q - 1)+ and replaces NaN in it by 0.

    So tokens with q = 0 are never drawn as replacements. If no other token is left, token 0 is emitted.
    """
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=excess_by_ratio)


def noise_in_another_type_verify(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling that reads the bytes of two float16 uniforms as one float32 number.

    The acceptance tests use these numbers, which are not uniform.
    """
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    pairs = np.array([float(rng.random()) for _ in range(2 * len(drafts))])
    coins = np.abs(pairs.astype(np.float16).view(np.float32))
    for i, token in enumerate(drafts):
        if not coins[i] < ratio(p[i], q[i], token):
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, drawn(rng, p[-1])]


def coarsely_sampled(verify: BareVerifier, name: str, gammas: tuple[int, ...]) -> Subject:
    """Return the subject of ``verify`` whose samples detect a total variation of 0.3 or more.

    A bug of this size needs only few samples. ``gammas`` are the numbers of drafts with which ``verify`` is examined.
    """
    subject = verifier_subject(verify, name, gammas)
    return subject.with_situations(SampledSetting, tuple(setting._replace(detect=0.3) for setting in subject.settings))


noise_in_another_type = planted_verifier(
    "noise-in-another-type",
    "reads the bytes of float16 uniforms as float32",
    category="E",
    citation="xLLM commit 2460314d0",
    killed_by="samples_fit_law",
    make=coarsely_sampled,
)(noise_in_another_type_verify)
"""Uniforms are created in float16 and their bytes are read as float32: two neighbouring values become one meaningless
number."""


NEAR_ZERO = (("temperature", 1e-6),)


def decide(p: Any, q: Any, drafts: list[int]) -> list[int]:
    """Verify the ``drafts`` of a round; return the accepted drafts and one more token.

    A ratio that is NaN never rejects, and token 0 is emitted from a bonus row of NaN.
    """
    rng = np.random.default_rng()
    for i, token in enumerate(drafts):
        if rng.random() >= p[i, token] / q[i, token]:
            return [*drafts[:i], drawn(rng, excess(p[i], q[i]))]
    return [*drafts, 0 if np.isnan(p[-1]).any() else drawn(rng, p[-1])]


def overflow_near_temperature_zero_control(
    target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float
) -> list[int]:
    """Speculative sampling of softmax(logits / T), with the largest logit subtracted before exp, which is correct.

    It is the correct counterpart of ``overflow_near_temperature_zero``.
    """
    p, q = (softmax_rows(rows, temperature) for rows in (target_logits, draft_logits))
    return decide(p, q, draft_tokens.tolist())


@planted_verifier(
    "overflow-near-temperature-zero",
    "near temperature 0 the ratio is NaN, so every draft is accepted",
    category="E",
    citation="NeMo Automodel PR #3627; romsto/Speculative-Decoding speculative_decoding.py:143 at db7db67",
    killed_by="law_is_target",
    control=overflow_near_temperature_zero_control,
    setting=NEAR_ZERO,
)
def overflow_near_temperature_zero(
    target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float
) -> list[int]:
    """Speculative sampling of softmax(logits / T) without subtracting the largest logit.

    Near T = 0 the quotients are NaN, and a comparison with NaN never rejects.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weights = [np.exp(rows / temperature) for rows in (target_logits, draft_logits)]
        p, q = (rows / rows.sum(-1, keepdims=True) for rows in weights)
        return decide(p, q, draft_tokens.tolist())


PADDED_LANE_WINS_EPSILON = Fraction(1, 2**40)


@planted(
    "speculative-sampling",
    "padded-lane-wins",
    "may emit an id in the padding of the vocabulary",
    category="E",
    citation="vLLM PR #45060, issue #53029, PR #50183",
    killed_by="tokens_are_supported",
    examples=SHORT,
)
@with_verifier
def padded_lane_wins(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that can emit an id from the padding of the vocabulary.

    If a draft is rejected and the residual is empty, the size of the vocabulary is emitted. This can happen because the
    test divides by q + epsilon.
    """
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), child_pmf(draft, i, target(prefix))
        if not flip(draws, min(p[token] / (q[token] + PADDED_LANE_WINS_EPSILON), 1), ("accept", i)):
            if (p <= q).all():
                return Verified((*draft.tokens[:i], len(p)), accepted=i)
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


FLOOR = 1e-9


def floored(p: Any, q: Any) -> Any:
    """Return the weights ``max(p - q, FLOOR)``, not normalised; ``FLOOR`` is a small positive number."""
    return np.maximum(p - q, FLOOR)


@planted_verifier(
    "padded-tail-has-mass",
    "may replace a draft by a token in the padding of the vocabulary",
    category="E",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def padded_tail_has_mass(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling whose residual is at least ``FLOOR`` everywhere.

    So tokens in the padding at the end of the vocabulary can be drawn as replacements.
    """
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=floored)


def in_float16(p: Any, q: Any) -> Any:
    """Return the weights of a replacement, computed from p and q rounded to float16; p if all of them are 0."""
    left = excess(p.astype(np.float16), q.astype(np.float16)).astype(np.float64)
    return left if left.any() else p


@planted_verifier(
    "residual-in-float16",
    "computes the residual in float16, where small probabilities become 0",
    category="E",
    citation="plausible",
    killed_by="call_law",
    make=at_large,
)
def residual_in_float16(p: Any, q: Any, draft_tokens: Any) -> list[int]:
    """Speculative sampling with the residual in float16, in which small probabilities become 0.

    With a large vocabulary most probabilities are that small.
    """
    return decided(np.random.default_rng(), p, q, draft_tokens.tolist(), weights=in_float16)
