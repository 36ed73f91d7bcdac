"""Verifiers that take no q, because their drafts are certain."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.subjects.certain_drafts import takes_no_q
from specverify.testing import SpeculationRefuted, check_verifier

RNG = np.random.default_rng()
EXAMINED = {"quick": True, "gammas": (1,), "checks": ["law_is_target"]}


def replaced(pmf, token):
    """Return the token that replaces a rejected one."""
    rest = np.where(np.arange(len(pmf)) == token, 0, pmf)
    return RNG.choice(len(pmf), p=rest / rest.sum())


def verify(target_probs, draft_token_ids, replacement=replaced):
    for i, token in enumerate(draft_token_ids):
        if not RNG.random() < target_probs[i][token]:
            return [*draft_token_ids[:i], replacement(target_probs[i], token)]
    last = target_probs[len(draft_token_ids)]
    return [*draft_token_ids, RNG.choice(len(last), p=last)]


def drafts_first(draft_tokens, target_probs):
    return verify(target_probs, draft_tokens)


def of_logits(target_logits, draft_tokens, temperature):
    if temperature == 0:
        return verify(np.eye(target_logits.shape[-1])[target_logits.argmax(-1)], draft_tokens)
    weights = np.exp((target_logits - target_logits.max(-1, keepdims=True)) / temperature)
    return verify(weights / weights.sum(-1, keepdims=True), draft_tokens)


def batched(p, draft_tokens, lengths):
    return [verify(*row) for row in zip(p, (d[:n] for d, n in zip(draft_tokens, lengths, strict=True)), strict=True)]


def from_p(target_probs, draft_token_ids):
    return verify(target_probs, draft_token_ids, lambda pmf, _: RNG.choice(len(pmf), p=pmf))


def argmax_alone(target_probs, draft_token_ids):
    for i, token in enumerate(draft_token_ids):
        if token != np.argmax(target_probs[i]):
            return [*draft_token_ids[:i], replaced(target_probs[i], token)]
    return [*draft_token_ids, RNG.choice(len(target_probs[-1]), p=target_probs[-1])]


@pytest.mark.parametrize("right", [verify, drafts_first, of_logits, batched])
def test_a_right_verifier_holds(right):
    check_verifier(right, **EXAMINED)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [(from_p, r"a rejected draft is replaced by a draw from p"), (argmax_alone, r"the draft is the argmax of p")],
)
def test_a_wrong_verifier_is_refuted(wrong, said):
    with pytest.raises(SpeculationRefuted, match=said):
        check_verifier(wrong, **EXAMINED)


def test_names_state_that_there_is_no_q():
    assert takes_no_q(lambda p, draft_tokens, lengths: None)
    assert takes_no_q(lambda rows, draft_tokens: None)
    assert takes_no_q(lambda target_probs, token_ids: None)
    assert not takes_no_q(lambda p, q: None)
    assert not takes_no_q(lambda target, tokens: None)
    assert not takes_no_q(lambda target_probs, prompt: None)
    assert not takes_no_q(lambda p, draft_tokens, draft_probs=None: None)
    assert not takes_no_q(lambda a, b: None)
    assert not takes_no_q(lambda p, q, draft_tokens: None)
