"""A message names the wrong half of a verifier that follows only one half of block verification."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.testing import SpeculationRefuted, check_decoder, check_verifier

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


def other_verifier(mass=(0, 0), weight=0, row=0, most=1.0, in_order=False):
    """Return a verifier of blocks that looks up R, w or the row of the last token at another place.

    The test after i drafts has R of the rows after i + ``mass[0]`` drafts, with the w after ``mass[1]`` drafts more,
    and the w after i + ``weight`` drafts. The last token is drawn with the w after i + ``row`` drafts. w is limited to
    ``most``; ``in_order``: the first failed test ends the block.
    """

    def verify(p, q, draft_tokens):
        gamma, w = len(draft_tokens), [1.0]
        for i, token in enumerate(draft_tokens):
            w.append(min(most, w[-1] * p[i, token] / q[i, token]))
        bounds = []
        for i in range(1, gamma):
            at = i + mass[0]
            spare = excess(w[at + mass[1]], p[at], q[at]).sum()
            rest = spare + 1 - w[i + weight]
            bounds.append(spare / rest if rest > 0 else 1.0)
        passed = RNG.random(gamma) < np.array([*bounds, w[gamma]])[:gamma]
        first = next((i for i, each in enumerate(passed) if not each), gamma)
        accepted = first if in_order else max((i + 1 for i, each in enumerate(passed) if each), default=0)
        left = p[gamma] if accepted == gamma else excess(w[accepted + row], p[accepted], q[accepted])
        left = left if left.any() else p[accepted]
        return [*draft_tokens[:accepted], RNG.choice(len(left), p=left / left.sum())]

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


@pytest.mark.parametrize(
    ("faults", "named"),
    [
        ({"most": np.inf}, "w = the product of p/q over the accepted drafts, expected as in"),
        ({"in_order": True}, "the first failed test as the end of a block, expected as in"),
        ({"mass": (-1, 0)}, "tests of the drafts with R of one draft less, expected as in"),
        ({"weight": -1}, "tests of the drafts with w of one draft less, expected as in"),
        ({"mass": (-1, 0), "weight": -1}, "tests of the drafts with R and w of one draft less, expected as in"),
        (
            {"row": 1},
            "a draw from norm(max(w p - q, 0)) with w of one draft more after a partly accepted block, ",
        ),
        ({"mass": (0, 1), "row": 1}, "max(w p - q, 0) with w of one draft more in all tests and draws, expected as in"),
    ],
)
def test_a_wrong_rule_of_blocks_is_named(faults, named):
    said = message(other_verifier(**faults), gamma=3)
    assert f"blocks are verified with {named}" in said
    assert "expected min(1, p/q)" not in said.partition("\n")[0]


def test_the_verifier_of_wrong_rules_is_right_without_one():
    [verdict] = check_verifier(other_verifier(), gammas=(3,), checks=["law_is_target"], quick=True)
    assert verdict.status is Status.HOLDS


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


def block_decoder(residual=excess, passes=share, q_of=lambda row: row, gamma=2):
    """Return one round of block verification with named draws; each test of a beginning is a coin of its own.

    ``residual`` and ``passes`` are those of ``block_verifier``; a draft is drawn from ``q_of(q)``.
    """

    def one_round(draws, target, draft, tokens):
        drafts, q, weights = [], [], [1]
        for i in range(gamma):
            q.append(draft((*tokens, *drafts)))
            drafts.append(int(draws.categorical(q_of(q[i]), ("draft", i))))
        p = [target((*tokens, *drafts[:i])) for i in range(gamma + 1)]
        for i, token in enumerate(drafts):
            weights.append(min(1, weights[i] * p[i][token] / q[i][token]))
        kept = 0
        for i in range(1, gamma + 1):
            bound = weights[i] if i == gamma else passes(excess(weights[i], p[i], q[i]).sum(), weights[i])
            if draws.categorical(np.array([1 - bound, bound]), ("keeps", i)) == 1:
                kept = i
        row = p[gamma] if kept == gamma else residual(weights[kept], p[kept], q[kept])
        row = row if row.any() else p[kept]
        return (*drafts[:kept], int(draws.categorical(row / row.sum(), ("last", kept))))

    return one_round


def message_of_decoder(one_round):
    with pytest.raises(SpeculationRefuted) as refuted:
        check_decoder(one_round, checks=["law_is_target"], quick=True)
    return str(refuted.value)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("gamma", [2, 3])
def test_a_wrong_residual_of_a_block_with_named_draws_is_named(gamma):
    assert check_decoder(block_decoder(gamma=gamma), checks=["law_is_target"], quick=True)
    said = message_of_decoder(block_decoder(lambda w, p, q: excess(1, p, q), gamma=gamma))
    first, _, paths = said.partition("because")
    assert "drafts are accepted as by block verification (2403.10444), but the token after a partly accepted" in first
    assert "is drawn from norm(max(p - q, 0)), without w, expected norm(max(w p - q, 0))" in first
    assert paths.count("with probability") == 1
    assert "by norm(max(w p - q, 0)))" in paths


def test_only_a_single_draw_of_a_block_is_called_u():
    said = message_of_decoder(block_decoder(lambda w, p, q: excess(1, p, q)))
    assert "accepted (P(accept) = " in said


def test_a_wrong_test_of_a_block_with_named_draws_is_named():
    said = message_of_decoder(block_decoder(passes=lambda spare, weight: weight))
    assert "is drawn as by block verification (2403.10444), but blocks are accepted otherwise: of the drafts" in said


def single_drafts(residual):
    def one_round(draws, target, draft, tokens):
        drafts, q = [], []
        for i in range(2):
            q.append(draft((*tokens, *drafts)))
            drafts.append(int(draws.categorical(q[i], ("draft", i))))
        for i, token in enumerate(drafts):
            p = target((*tokens, *drafts[:i]))
            bound = min(1, p[token] / q[i][token])
            if draws.categorical(np.array([1 - bound, bound]), ("keeps", i)) == 0:
                row = residual(p, q[i])
                return (*drafts[:i], int(draws.categorical(row / row.sum(), ("last", i))))
        return (*drafts, int(draws.categorical(target((*tokens, *drafts)), ("last", 2))))

    return one_round


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    "one_round",
    [
        single_drafts(lambda p, q: p),
        single_drafts(lambda p, q: excess(1, p, q / 2)),
        block_decoder(lambda w, p, q: p, passes=lambda spare, weight: weight),  # both halves are wrong
        block_decoder(lambda w, p, q: excess(1, p, q), q_of=lambda row: (row + row[::-1]) / 2),  # not drawn from q
    ],
)
def test_named_draws_with_another_fault_are_not_told_as_blocks(one_round):
    assert "block verification" not in message_of_decoder(one_round)
