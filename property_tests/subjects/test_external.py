"""The form of a function outside: options behind three arguments, and an expected order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import malformed
import pytest

from specverify.subjects.external import decode_subject, verifier_subject_of

AS_GIVEN: list[Callable[..., Any]] = [
    lambda p, q, draft_tokens: [0],
    lambda target_probs, draft_probs, draft_token_ids: [0],
    lambda target_logits, draft_logits, draft_tokens, temperature: [0],
    lambda q_target, p_draft, x: [0],
    lambda a, b, c: [0],
    lambda target, draft, tokens: [0],
]


def test_options_behind_three_arguments_make_a_verifier_and_no_round():
    def verify(p, q, draft_tokens, epsilon=1e-9):
        """Emit one token."""
        return [0]

    assert decode_subject(verify, "verify").intercepted
    assert decode_subject(partial(verify, epsilon=0.0), "verify").summary == "Emit one token."
    assert not decode_subject(malformed.one_round, "round").intercepted


@pytest.mark.parametrize("verify", AS_GIVEN)
def test_the_order_that_is_expected_and_names_that_say_nothing_are_taken(verify: Callable[..., Any]) -> None:
    assert verifier_subject_of(verify, "mine:verify").name == "mine:verify"
