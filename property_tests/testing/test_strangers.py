"""Programs in strangers' styles: right ones that were accused or left undecided once, each with its wrong twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from specverify.checks import check_named
from specverify.checks.check import Conditions
from specverify.subjects.forms import LOGITS
from specverify.subjects.subject import Variant
from specverify.subjects.verifier import verifier_subject
from specverify.testing import Made, SpeculationRefuted, Status, UnusableSubject, check_engine, check_verifier
from specverify.testing.verifiers import GREEDY_HINT


def in_inference_mode(p, q, draft_tokens, least=0.0):
    with torch.inference_mode():
        tokens = torch.full((2,), -1)
        kept = torch.rand(()) * q[0, draft_tokens[0]] < p[0, draft_tokens[0]]
        left = torch.clamp(p[0] - q[0], min=least)
        left = torch.where(left.sum() > 0, left, p[0])
        replaced, bonus = torch.multinomial(left, 1)[0], torch.multinomial(p[1], 1)[0]
        tokens[0] = torch.where(kept, draft_tokens[0], replaced)
        tokens[1] = bonus
        return tokens[: 1 + int(kept)]


def first_examination(verify, check):
    subject = verifier_subject(verify, "it", (1,))
    return next(iter(check_named(check).cases(subject))).examine(Conditions())


@pytest.mark.parametrize("check", ["inputs_unchanged", "outputs_are_fresh"])
def test_an_answer_of_inference_mode_is_read(check):
    assert not first_examination(in_inference_mode, check).failed


def writes_in_inference_mode(p, q, draft_tokens):
    tokens = in_inference_mode(p, q, draft_tokens)
    with torch.inference_mode():
        p[0] = 0
    return tokens


def test_an_argument_that_is_changed_in_inference_mode_is_refuted():
    examination = first_examination(writes_in_inference_mode, "inputs_unchanged")
    assert examination.failed
    assert "p[0, 0] was" in examination.statement


def by_logarithms(target_logits, draft_logits, draft_tokens, temperature=1.0):
    log_p, log_q = (torch.log_softmax(logits / temperature, -1) for logits in (target_logits, draft_logits))
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()).log() < log_p[i, token] - log_q[i, token]:
            left = (log_p[i].exp() - log_q[i].exp()).clamp(min=0)
            left = left if left.sum() > 0 else log_p[i].exp()
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left, 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(log_p[-1].exp(), 1))]


def by_an_inclusive_ratio(target_logits, draft_logits, draft_tokens, temperature=1.0):
    p, q = (torch.softmax(logits / temperature, -1) for logits in (target_logits, draft_logits))
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) <= p[i, token] / q[i, token]:
            left = (p[i] - q[i]).clamp(min=0)
            left = left if left.sum() > 0 else p[i]
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(left, 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


@pytest.mark.parametrize(("verify", "status"), [(by_logarithms, "holds"), (by_an_inclusive_ratio, "refuted")])
def test_a_logit_that_underflows_may_be_accepted_at_0_and_a_forbidden_one_not(verify, status):
    check = check_named("support_at_boundary_draws")
    subject = verifier_subject(verify, "it", (1,), LOGITS)
    subject = subject.with_situations(Variant, subject.variants[:1])
    cases = [case for case in check.cases(subject) if case.situation.scenario.name.startswith("zeros")]
    examinations = [case.examine(Conditions()) for case in cases[:1]]
    assert [one.failed for one in examinations] == [status == "refuted"]


def engine_with(text_of_residual):
    def make(scenario):
        rng = np.random.default_rng()

        def pick(row):
            return int(rng.choice(len(row), p=row))

        def generate(prompt):
            text = tuple(prompt)
            while len(text) < len(prompt) + scenario.horizon:
                p, q = (np.asarray(model(text), float) for model in (scenario.target, scenario.draft))
                draft = pick(q)
                if rng.random() * q[draft] < p[draft]:
                    text = (*text, draft)
                else:
                    left = np.maximum(np.asarray(scenario.target(text_of_residual(text)), float) - q, 0)
                    text = (*text, pick(left / left.sum() if left.any() else p))
            return text[len(prompt) :]

        return Made(generate)

    return make


@pytest.mark.thorough
def test_an_engine_whose_wrong_text_tells_no_cause_is_explained_where_its_rows_are_open():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(engine_with(lambda text: text[:1]), checks=["law_is_target"], quick=True)
    first = str(raised.value).splitlines()[0]
    assert "is rejected and replaced by a draw from" in first
    assert "setting certain" not in str(raised.value)


WHOLE_P, WHOLE_Q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.5, 0.4])


def draws_for_all_positions(pmf):
    return np.searchsorted(pmf.cumsum(), np.random.random(2))


def replaced_by_p_in_whole_arrays():
    """Draw the drafts of two positions, then both coins, then both replacements; a replacement is drawn from p."""
    drafts = draws_for_all_positions(WHOLE_Q)
    kept = np.random.random(2) < WHOLE_P[drafts] / WHOLE_Q[drafts]
    return np.where(kept, drafts, draws_for_all_positions(WHOLE_P))


@pytest.mark.thorough
def test_an_engine_that_draws_in_whole_arrays_is_told_the_rule_and_its_own_draws():
    law = {(i, j): float(WHOLE_P[i] * WHOLE_P[j]) for i in range(3) for j in range(3)}
    with pytest.raises(SpeculationRefuted) as refuted:
        check_engine(replaced_by_p_in_whole_arrays, law, checks=["law_is_target"], quick=True)
    said = str(refuted.value)
    assert ": a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0))" in said
    assert "without a draw" not in said


def without_greedy_decoding(target_logits, draft_logits, draft_tokens, temperature):
    if temperature <= 0:
        raise ValueError("the temperature must be positive")
    p, q = (np.exp(logits / temperature) for logits in (target_logits, draft_logits))
    p, q = (rows / rows.sum(-1, keepdims=True) for rows in (p, q))
    token = draft_tokens[0]
    if np.random.random() < p[0, token] / q[0, token]:
        return [token, np.random.choice(len(p[1]), p=p[1])]
    left = np.maximum(p[0] - q[0], 0)
    return [np.random.choice(len(left), p=left / left.sum())]


def test_a_verifier_without_greedy_decoding_is_told_the_way_out():
    options: dict[str, Any] = dict(gammas=(1,), checks=["law_is_target"], quick=True)
    with pytest.raises(UnusableSubject) as unusable:
        check_verifier(without_greedy_decoding, **options)
    assert GREEDY_HINT in str(unusable.value)

    def at_one(target_logits, draft_logits, draft_tokens):
        return without_greedy_decoding(target_logits, draft_logits, draft_tokens, 1.0)

    assert all(verdict.status is Status.HOLDS for verdict in check_verifier(at_one, form="logits", **options))
    with pytest.raises(UnusableSubject) as unusable:
        check_verifier(lambda p, q, draft_tokens, temperature: 1 / 0, **options)
    assert GREEDY_HINT not in str(unusable.value)
