"""A verifier that takes q or the drafts first is not given p in their place: one sentence says what to hand over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specverify.subjects.external import decode_subject, verifier_subject_of
from specverify.subjects.subject import UnusableSubject

OTHERWISE: list[tuple[Callable[..., Any], str]] = [
    (lambda q, p, draft_tokens: [0], "verify(q, p, draft_tokens)"),
    (lambda draft_probs, target_probs, draft_ids: [0], "verify(q, p, draft_tokens)"),
    (lambda draft_tokens, draft_probs, target_probs: [0], "verify(draft_tokens, q, p)"),
    (lambda drafted_ids, target_logits, draft_logits, temperature: [0], "verify(draft_tokens, p, q)"),
]
AS_GIVEN: list[Callable[..., Any]] = [
    lambda p, q, draft_tokens: [0],
    lambda target_probs, draft_probs, draft_token_ids: [0],
    lambda target_logits, draft_logits, draft_tokens, temperature: [0],
    lambda q_target, p_draft, x: [0],
    lambda a, b, c: [0],
    lambda target, draft, tokens: [0],
]


@pytest.mark.parametrize(("verify", "call"), OTHERWISE)
def test_another_order_is_refused_with_what_to_hand_over(verify: Callable[..., Any], call: str) -> None:
    with pytest.raises(UnusableSubject, match=r"\A[^\n]+\Z") as caught:
        verifier_subject_of(verify, "mine:verify")
    assert str(caught.value).endswith(f"hand over lambda p, q, draft_tokens: {call}")


def test_a_subject_of_the_command_line_is_refused_too() -> None:
    with pytest.raises(UnusableSubject, match="in this order"):
        decode_subject(OTHERWISE[0][0], "mine:verify")


@pytest.mark.parametrize("verify", AS_GIVEN)
def test_the_order_that_is_expected_and_names_that_say_nothing_are_taken(verify: Callable[..., Any]) -> None:
    assert verifier_subject_of(verify, "mine:verify").name == "mine:verify"
