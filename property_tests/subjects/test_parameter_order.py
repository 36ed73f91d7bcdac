"""A verifier that takes q or the drafts first, or by name, gets its arguments in its own way."""

from __future__ import annotations

import inspect
import re

import pytest

from specverify.subjects.external import decode_subject
from specverify.subjects.parameter_order import in_named_order
from specverify.testing import SpeculationRefuted, UnusableSubject, check_verifier
from test_support.verifiers.one_round import decided, residual, unchanged_p

OTHERWISE = [
    lambda q, p, draft_tokens: (p, q, draft_tokens),
    lambda drafts, q, p: (p, q, drafts),
    lambda draft_probs, target_probs, draft_ids: (target_probs, draft_probs, draft_ids),
    lambda draft_tokens, draft_probs, target_probs: (target_probs, draft_probs, draft_tokens),
    lambda drafted_ids, target_logits, draft_logits, temperature: (target_logits, draft_logits, drafted_ids),
    lambda *, p, q, draft_tokens: (p, q, draft_tokens),
    lambda draft_tokens, *, draft_probs, target_probs: (target_probs, draft_probs, draft_tokens),
    lambda p, draft_ids, *, q: (p, q, draft_ids),
    lambda q, p, x: (p, q, x),
    lambda tokens, q_probs, p_probs: (p_probs, q_probs, tokens),
    lambda log_q, log_p, proposed: (log_p, log_q, proposed),
    lambda draft_ids, draft_dist, target_dist: (target_dist, draft_dist, draft_ids),
    lambda draft_tokens, draft_token_probs, target_probs: (target_probs, draft_token_probs, draft_tokens),
    lambda verify_ids, verify_logits, *, draft_logits: (verify_logits, draft_logits, verify_ids),
]


@pytest.mark.parametrize("verify", OTHERWISE)
def test_the_names_of_parameters_state_their_order(verify):
    called = in_named_order(verify)
    assert called("p", "q", "drafts", *[1.0] * (len(inspect.signature(called).parameters) - 3)) == ("p", "q", "drafts")
    assert in_named_order(called) is called


UNCHANGED = [
    lambda p, q, draft_tokens: 0,
    lambda a, b, c: 0,
    lambda target, draft, ids: 0,
    lambda draws, target, draft, tokens: 0,
    lambda q, p, parents, tokens: 0,
    lambda small_probs, large_probs, draft_tokens: 0,
    lambda top_p, q, draft_tokens: 0,
    len,
]


@pytest.mark.parametrize("verify", UNCHANGED)
def test_other_names_leave_the_order_as_it_is(verify):
    assert in_named_order(verify) is verify


def drafts_first(replace):
    def verify(draft_tokens, draft_probs, target_probs):
        accepted, token = decided(target_probs, draft_probs, draft_tokens, replace)
        return [*accepted, token]

    return verify


def test_the_law_is_examined_in_another_order_too():
    check_verifier(drafts_first(residual), checks=["law_is_target"], quick=True)
    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(drafts_first(unchanged_p), checks=["law_is_target"], quick=True)


def test_the_law_is_examined_if_rows_are_passed_by_name():
    def by_name(draft_tokens, *, draft_probs, target_probs):
        return drafts_first(unchanged_p)(draft_tokens, draft_probs, target_probs)

    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(by_name, checks=["law_is_target"], quick=True)


def test_an_error_shows_which_argument_has_arrived_where():
    def verify(candidate, verifier_rows, speculator_rows):
        return [verifier_rows[0][token] for token in candidate]

    with pytest.raises(UnusableSubject) as raised:
        check_verifier(verify, quick=True)
    rows = r"= \[\[.*\]\]"
    given = rf"given candidate \(p\) {rows}, verifier_rows \(q\) {rows}, speculator_rows \(draft_tokens\) = \[\d"
    assert re.search(given, str(raised.value))


def test_a_subject_of_the_command_line_is_reordered_too():
    assert decode_subject(drafts_first(residual), "mine:verify").kind == "row"
