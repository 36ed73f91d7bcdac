"""A verifier that takes q or the drafts first, or by name, gets its arguments in its own way."""

from __future__ import annotations

import inspect
import re
from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.subjects.external import decode_subject
from specverify.subjects.forms import ROW
from specverify.subjects.found_order import in_found_order
from specverify.subjects.parameter_order import in_named_order
from specverify.testing import Call, SpeculationRefuted, UnusableSubject, check_verifier
from test_support.verifiers.one_round import decided, residual, unchanged_p

pytestmark = pytest.mark.usefixtures("named_checks_alone")

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
    lambda p, q, parents, tokens: 0,
    lambda target, draft, parents, tokens: 0,
    lambda draft, rows, draft_tokens: 0,
    lambda top_p, q, draft_tokens: 0,
    len,
]


@pytest.mark.parametrize("verify", UNCHANGED)
def test_other_names_leave_the_order_as_it_is(verify):
    assert in_named_order(verify) is verify


OF_TREES = [
    lambda q, p, parents, tokens: (p, q, parents, tokens),
    lambda parents, tokens, target_probs, draft_probs: (target_probs, draft_probs, parents, tokens),
    lambda p, q, token_ids, tree_parents: (p, q, tree_parents, token_ids),
    lambda *, draft_ids, parent_ids, draft_logits, target_logits: (target_logits, draft_logits, parent_ids, draft_ids),
]


@pytest.mark.parametrize("verify", OF_TREES)
def test_the_names_of_parameters_state_their_order_in_trees(verify):
    called = in_named_order(verify)
    assert called("p", "q", "parents", "tokens") == ("p", "q", "parents", "tokens")
    assert in_named_order(called) is called


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


@pytest.mark.parametrize("keyword_only", [False, True])
def test_a_default_of_a_row_is_no_obstacle_to_another_order(keyword_only):
    def optional(target_probs, draft_tokens, draft_probs=None):
        return drafts_first(unchanged_p)(draft_tokens, draft_probs, target_probs)

    def by_name(draft_tokens, target_probs, *, draft_probs=None, scale=1.0):
        return drafts_first(unchanged_p)(draft_tokens, draft_probs, target_probs * scale)

    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(by_name if keyword_only else optional, checks=["law_is_target"], quick=True)


def test_a_parameter_that_partial_sets_by_name_is_no_row():
    def scaled(scale, draft_probs, target_probs, draft_tokens):
        return drafts_first(unchanged_p)(draft_tokens, draft_probs, target_probs * scale)

    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(partial(scaled, scale=1.0), checks=["law_is_target"], quick=True)


def small_first(replace):
    def verify(small_probs, large_probs, tokens):
        accepted, token = decided(large_probs, small_probs, tokens, replace)
        return [*accepted, token]

    return verify


def drafts_before_rows(replace):
    def verify(guesses, ours, theirs):
        accepted, token = decided(ours, theirs, guesses, replace)
        return [*accepted, token]

    return verify


def by_unknown_names(replace):
    def verify(*, candidates, speculator, base):
        accepted, token = decided(base, speculator, candidates, replace)
        return [*accepted, token]

    return verify


def counted(replace):
    def verify(candidates, verifier_logprobs, speculator_logprobs):
        accepted, token = decided(np.exp(verifier_logprobs), np.exp(speculator_logprobs), candidates, replace)
        return len(accepted), token

    return verify


@pytest.mark.parametrize("make", [drafts_before_rows, by_unknown_names])
def test_calls_show_the_order_that_names_do_not_state(make):
    (verdict,) = check_verifier(make(residual), checks=["law_is_target"], quick=True)
    (note,) = [note for note in verdict.figures["notes"] if "only in this order" in note]
    assert note.startswith("it takes ")
    with pytest.raises(SpeculationRefuted, match="replaced by a draw from p"):
        check_verifier(make(unchanged_p), checks=["law_is_target"], quick=True)


@pytest.mark.parametrize("make", [small_first, counted])
def test_names_of_models_state_the_order(make):
    (verdict,) = check_verifier(make(residual), checks=["law_is_target"], quick=True)
    assert not [note for note in verdict.figures.get("notes", ()) if "order" in note]


def test_q_before_p_must_be_stated():
    """A verifier that exchanges p and q looks the same as one that takes q first."""

    def verify(a, b, guesses):
        return small_first(residual)(a, b, guesses)

    said = r"seems to take a as q, b as p, guesses as draft_tokens: .* pass lambda p, q, draft_tokens: verify\(q, p, dr"
    with pytest.raises(UnusableSubject, match=said):
        check_verifier(verify, quick=True)
    check_verifier(lambda p, q, draft_tokens: verify(q, p, draft_tokens), checks=["law_is_target"], quick=True)


def test_single_calls_are_passed_in_the_order_that_calls_show():
    call = Call(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([[0.25, 0.75]]), np.array([1]))
    verdicts = check_verifier(drafts_before_rows(residual), cases=[call], on_fail=None)
    assert {verdict.status for verdict in verdicts} <= {Status.HOLDS, Status.NOT_APPLICABLE}


def test_the_usual_order_is_kept_if_it_is_right_or_no_order_is():
    calls = []

    def usual(one, other, tokens):
        calls.append(len(tokens))
        return drafts_first(residual)(tokens, other, one)

    for verify in (usual, lambda a, b, c: [0]):
        assert in_found_order(verify, lambda _: ROW) == (verify, ())
    assert calls == [2, 2]


def test_an_error_shows_which_argument_has_arrived_where():
    def verify(candidate, one, other):
        return [one[0][token] for token in candidate]

    with pytest.raises(UnusableSubject) as raised:
        check_verifier(verify, quick=True)
    rows = r"= \[\[.*\]\]"
    given = rf"given candidate \(p\) {rows}, one \(q\) {rows}, other \(draft_tokens\) = \[\d"
    assert re.search(given, str(raised.value))


def test_a_subject_of_the_command_line_is_reordered_too():
    assert decode_subject(drafts_first(residual), "mine:verify").kind == "row"
