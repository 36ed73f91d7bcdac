"""A message names the wrong half of a verifier that follows only one half of block verification."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import SpeculationRefuted, check_verifier

RNG = np.random.default_rng()


def excess(weight, p, q):
    return np.maximum(weight * p - q, 0)


def share(spare, weight):
    return spare / (spare + 1 - weight) if spare > 0 else 0.0


def block_verifier(residual=excess, passes=share, weigh=lambda w, ratio: min(1.0, w * ratio), bonus=-1):
    """Return a verifier of blocks.

    ``residual`` gives the row after a part of a block, ``passes`` the probability with which a part is accepted, and
    ``weigh`` the next w from the w before it and p/q of the draft. ``bonus`` is the index of the last row of p.
    """

    def verify(p, q, draft_tokens):
        gamma, weights = len(draft_tokens), [1.0]
        for i, token in enumerate(draft_tokens):
            weights.append(weigh(weights[-1], p[i, token] / q[i, token]))
        accepted = gamma if RNG.random() < weights[gamma] else 0
        for i in range(gamma - 1, 0, -1):
            spare = excess(weights[i], p[i], q[i]).sum()
            if accepted == 0 and RNG.random() < passes(spare, weights[i]):
                accepted = i
        row = p[bonus] if accepted == gamma else residual(weights[accepted], p[accepted], q[accepted])
        row = row if row.any() else p[accepted]
        return [*draft_tokens[:accepted], RNG.choice(len(row), p=row / row.sum())]

    return verify


def message(verify, gamma=2):
    with pytest.raises(SpeculationRefuted) as refuted:
        check_verifier(verify, gammas=(gamma,), checks=["law_is_target"], quick=True)
    return str(refuted.value)


def test_the_right_rule_holds():
    [verdict] = check_verifier(block_verifier(), gammas=(2,), checks=["law_is_target"], quick=True)
    assert verdict.status is Status.HOLDS


@pytest.mark.parametrize(
    ("residual", "named"),
    [
        (lambda w, p, q: excess(1.0, p, q), "norm(max(p - q, 0)), without w"),
        (lambda w, p, q: p, "p"),
        (lambda w, p, q: excess(w, p, q / 2), "another row"),
    ],
)
def test_a_wrong_residual_of_a_block_is_named(residual, named):
    said = message(block_verifier(residual))
    assert "drafts are accepted as by block verification" in said
    assert f"is drawn from {named}, expected norm(max(w p - q, 0))" in said


def test_a_wrong_test_of_a_block_is_named():
    said = message(block_verifier(passes=lambda spare, weight: weight))
    assert "but blocks are accepted otherwise: of the drafts" in said


@pytest.mark.parametrize("gamma", [2, 3])
def test_a_wrong_w_of_a_block_is_named_and_no_path_has_the_test_of_single_drafts(gamma):
    said = message(block_verifier(weigh=lambda w, ratio: w * min(1.0, ratio)), gamma)
    assert "blocks are verified with w = the product of min(1, p/q) over the accepted drafts, expected as in" in said
    assert " by block verification)" in said
    assert "= min(1, p/q)" not in said


def test_a_wrong_bonus_of_a_block_is_named_alone():
    said = message(block_verifier(bonus=-2))
    assert "block_verifier.<locals>.verify: the bonus token is drawn from the row of p before the last draft" in said
    assert "min(1, p/q)" not in said


def kept(logits, temperature, top_k):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(-1)]
    least = np.sort(logits, axis=-1)[..., -top_k, None]
    mass = np.where(logits >= least, np.exp((logits - logits.max(-1, keepdims=True)) / temperature), 0.0)
    return mass / mass.sum(-1, keepdims=True)


def test_single_drafts_are_tested_in_each_path_if_p_and_q_differ_less_than_the_residual_can_show():
    """The rounding of a residual that is small hides which rule the residual follows."""

    def verify(target_logits, draft_logits, draft_tokens, temperature, top_k):
        top_k = min(top_k, target_logits.shape[-1])
        p, q = kept(target_logits, temperature, top_k), kept(draft_logits, temperature, top_k)
        for i, token in enumerate(draft_tokens):
            if RNG.random() * q[i, token] >= p[i, token]:
                left = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], RNG.choice(len(left), p=left / left.sum() if left.any() else p[i])]
        row = kept(target_logits[-1], temperature, target_logits.shape[-1])
        return [*draft_tokens, RNG.choice(len(row), p=row)]

    said = message(verify)
    assert "draft 1 (2) rejected (u >= 0.014, test_block_rules.py:" in said
    assert "block verification" not in said


def test_a_verifier_of_single_drafts_is_not_compared_with_blocks():
    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if RNG.random() * q[i, token] >= p[i, token]:
                return [*draft_tokens[:i], RNG.choice(len(p[i]), p=p[i])]
        return [*draft_tokens, RNG.choice(len(p[-1]), p=p[-1])]

    assert "block verification" not in message(verify)
