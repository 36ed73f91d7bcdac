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


@pytest.mark.parametrize(("verify", "call"), OTHERWISE)
def test_another_order_is_refused_with_what_to_hand_over(verify: Callable[..., Any], call: str) -> None:
    with pytest.raises(UnusableSubject, match=r"\A[^\n]+\Z") as caught:
        verifier_subject_of(verify, "mine:verify")
    assert str(caught.value).endswith(f"hand over lambda p, q, draft_tokens: {call}")


def test_a_subject_of_the_command_line_is_refused_too() -> None:
    with pytest.raises(UnusableSubject, match="in this order"):
        decode_subject(OTHERWISE[0][0], "mine:verify")
