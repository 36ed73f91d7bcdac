"""The law of a round of a kernel, from its uniforms: the size of a bias, and the text of a wrong row."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from property_tests.checks.kernels.test_kernels import named
from specverify.base.verdict import Status
from specverify.checks.check import Conditions
from specverify.checks.kernels import kernel_law_is_target
from specverify.checks.kernels.kernel_law_is_target import DOUBT, examine_law, found_laws
from specverify.laws.law import Law
from specverify.subjects.kernel import kernel_of
from specverify.subjects.kernel_rounds import rounds_of
from specverify.testing import KernelConvention, SpeculationRefuted, check_kernel
from test_support.kernels import kernels
from test_support.kernels.planted_kernels import PLANTED

SMALL = dict(vocabularies=(129,), rows=2**13)


def test_a_bias_is_located_to_a_part_in_ten_thousand():
    """The acceptance is lowered by 1/200: the law is off by what the residual gives away, in an interval."""
    verdict = named(check_kernel(PLANTED["accepts a little less"].kernel, on_fail=None, **SMALL), "law_is_target")
    low, high = map(float, re.match(r"TV = (\S+) to (\S+) from", verdict.statement).groups())
    assert DOUBT < low <= high < 0.01


@pytest.mark.parametrize(
    ("emitted", "ought", "said"),
    [
        ((0, 1), (1,), "draft 1 (0) of a row is accepted where the rule has it rejected"),
        ((1,), (0, 2, 1), "draft 1 (0) of a row is rejected where the rule has it accepted"),
        ((0, 2, 2), (0, 2, 1), "the bonus token of a row is 2 where the rule draws 1"),
        ((0, 0), (0, 1), "the token in place of the rejected draft 2 of a row is 0 where the rule draws 1"),
        ((), (1,), "a row of 2 drafts emits () where the rule emits (1,)"),
    ],
)
def test_a_row_that_leaves_the_rule_is_told_in_the_words_of_decoding(emitted, ought, said):
    assert kernel_law_is_target._fault((0, 2), emitted, ought) == said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "noise of the first row",
            "every row reads the noise of the last draw of the first row: the bonus token of row",
        ),
        ("race of p", "the token in place of the rejected draft 1 of a row is"),
    ],
)
def test_random_numbers_of_another_row_are_named_only_where_they_explain_every_answer(name, says):
    planted = PLANTED[name]
    convention = KernelConvention(**planted.convention)
    verdicts = check_kernel(planted.kernel, convention, on_fail=None, quick=True, vocabularies=(5,), rows=2**10)
    assert named(verdicts, "law_is_target").counterexample.fault.startswith(says)


def by_inverse_cdf(odd_row):
    """Return a kernel whose draw of the last token in odd rows is made by ``odd_row(p, q, accepted, weights)``."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        rows, gamma = drafts.shape
        result = np.full((rows, gamma + 1), -1)
        for b, tokens in enumerate(drafts):
            n = 0
            while n < gamma and accept_uniforms[b, n] * q[b, n, tokens[n]] < p[b, n, tokens[n]]:
                n += 1
            left = p[b, n] if n == gamma else np.maximum(p[b, n] - q[b, n], 0)
            weights = left if left.any() else p[b, n]
            weights = odd_row(p[b], n, weights) if b % 2 else weights
            sums = np.cumsum(weights, dtype=np.float64)
            place = np.searchsorted(sums, final_uniforms[b] * sums[-1], side="right")
            result[b, : n + 1] = [*tokens[:n], min(place, np.flatnonzero(weights)[-1])]
        return result

    return kernel


@pytest.mark.parametrize(
    ("odd_row", "status"),
    [
        (lambda p, accepted, weights: p[accepted] if accepted == 2 else weights, Status.REFUTED),
        (lambda p, accepted, weights: weights.astype(np.float16), Status.UNKNOWN),
        (lambda p, accepted, weights: weights, Status.HOLDS),
    ],
    ids=["another draw", "another precision", "right"],
)
def test_a_row_with_another_result_in_another_place_has_no_law(odd_row, status):
    kernel = by_inverse_cdf(odd_row)
    (verdict,) = check_kernel(kernel, vocabularies=(7,), checks=["law_is_target"], on_fail=None)
    assert verdict.status is status, verdict.statement
    if status is Status.REFUTED:
        assert "in a call with the same rows in another order" in str(verdict.counterexample.fault)


def by_race(of_noise, recovery):
    """Return a kernel whose last token wins a race; ``of_noise`` changes its noise."""

    def kernel(p, q, drafts, accept_uniforms, noise):
        out = np.full((len(p), drafts.shape[1] + 1), -1)
        for row, given in enumerate(drafts):
            at = [row, np.arange(len(given)), given]
            kept = accept_uniforms[row] * q[tuple(at)] < p[row, :-1][at[1], given]
            number = len(given) if kept.all() else int(np.argmin(kept))
            left = p[row, number] if kept.all() else np.maximum(p[row, number] - q[row, number], 0)
            weights = left if left.any() else p[row, number]
            with np.errstate(divide="ignore"):
                changed = of_noise(noise[row])
                scores = weights / changed if recovery == "exponential" else np.log(weights) + changed
            out[row, : number + 1] = [*given[:number], scores.argmax()]
        return out

    return kernel


@pytest.mark.parametrize(
    ("recovery", "of_noise", "status"),
    [
        ("exponential", lambda noise: noise, Status.HOLDS),
        ("exponential", lambda noise: np.maximum(noise, 1e-10), Status.HOLDS),
        ("exponential", lambda noise: np.maximum(noise, 0.05), Status.UNKNOWN),
        ("gumbel", lambda noise: noise, Status.HOLDS),
        ("gumbel", lambda noise: np.clip(noise, -2, 3), Status.UNKNOWN),
    ],
)
def test_a_race_whose_noise_is_clamped_has_no_law_at_one_size_of_noise(recovery, of_noise, status):
    convention = KernelConvention(recovery=recovery)
    kernel = by_race(of_noise, recovery)
    (found,) = check_kernel(kernel, convention, checks=["law_is_target"], quick=True, on_fail=None)
    assert found.status is status, found
    assert ("with all noise of the race multiplied by" in found.statement) == (status is Status.UNKNOWN)


def with_coins_of_at_least(least):
    """Return the plain kernel with accept uniforms that are never below ``least``."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        return kernels.plain(p, q, drafts, np.maximum(accept_uniforms, np.float32(least)), final_uniforms)

    return kernel


def test_a_small_ratio_is_accepted_as_often_as_by_the_rule():
    check_kernel(with_coins_of_at_least(0), quick=True, checks=["law_is_target", "acceptance_is_optimal"])
    with pytest.raises(SpeculationRefuted, match=r"is accepted with probability 0, expected 0\.000977 = min"):
        check_kernel(with_coins_of_at_least(1e-3), quick=True, checks=["law_is_target"])


def test_the_law_with_the_most_unexamined_uniforms_decides_whether_the_check_holds():
    """Another law, which differs by less than rounding explains, must not hide it."""
    kernel = kernel_of(kernels.plain, "plain", KernelConvention())
    rounds = rounds_of(kernel, 1, 3, 2**12)
    found = found_laws(rounds)
    nearly, unexamined = (name for name, _ in zip(found.laws, range(2), strict=False))

    def moved(name, mass, missing=0):
        law = dict(found.laws[name].probabilities)
        tokens = max(law, key=law.__getitem__)
        law[tokens] -= mass
        other = next(text for text in law if text != tokens)
        law[other] += mass - missing
        return {name: Law(law, missing=missing)}

    def examined(more):
        return examine_law(rounds, lambda: found._replace(laws=found.laws | more), Conditions())

    little, much = Fraction(1, 2**20), Fraction(1, 32)
    assert not examined(moved(nearly, little)).unknown
    assert examined(moved(unexamined, much, much)).unknown
    assert examined(moved(nearly, little) | moved(unexamined, much, much)).unknown


def by_two_shards(shards, uniforms, accepted, gamma):
    """Return the last token of a row by inverse CDF over two shards; the bug is in the residual of a later draft."""
    half = (len(shards) + 1) // 2
    left, right = shards[:half], shards[half:]
    u = float(uniforms) * float(shards.sum(dtype=np.float64))
    if u < left.sum(dtype=np.float64):
        return np.searchsorted(left.cumsum(dtype=np.float64), u, side="right")
    before = left.sum(dtype=np.float64) if accepted in (0, gamma) else 0
    place = half + np.searchsorted(right.cumsum(dtype=np.float64), u - before, side="right")
    return min(place, np.flatnonzero(shards)[-1])


def test_a_residual_of_three_tokens_in_two_shards_is_examined():
    """With two tokens left, the clamp to the last one with a positive weight hides that u is not shifted."""

    def kernel(p, q, drafts, accept_uniforms, final_uniforms):
        result = np.full((len(drafts), drafts.shape[1] + 1), -1)
        for b, tokens in enumerate(drafts):
            n, gamma = 0, len(tokens)
            while n < gamma and accept_uniforms[b, n] * q[b, n, tokens[n]] < p[b, n, tokens[n]]:
                n += 1
            left = p[b, n] if n == gamma else np.maximum(p[b, n] - q[b, n], 0)
            last = by_two_shards(left if left.any() else p[b, n], final_uniforms[b], n, gamma)
            result[b, : n + 1] = [*tokens[:n], last]
        return result

    with pytest.raises(SpeculationRefuted, match=r"draft 2, token 0, is rejected and replaced by a draw from"):
        check_kernel(kernel, quick=True, checks=["law_is_target"])
