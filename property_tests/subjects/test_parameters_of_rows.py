"""Verifiers of batches of logits whose rows have sampling parameters of their own."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.subjects.batch_call import takes_parameters_of_rows
from specverify.subjects.forms import BATCHED_LOGITS
from specverify.testing import SpeculationRefuted, check_verifier

RNG = np.random.default_rng()
EXAMINED = {"quick": True, "checks": ["law_is_target"], "gammas": (1,)}


def softmax(logits, temperature):
    """Return the pmf at a temperature; at 0 the one-hot row of the largest logit."""
    if temperature == 0:
        return np.eye(len(logits))[np.argmax(logits)]
    weights = np.exp((logits - logits.max()) / temperature)
    return weights / weights.sum()


def largest(pmf, top_k):
    """Return the pmf of the ``top_k`` most probable tokens."""
    kept = np.where(pmf >= np.sort(pmf)[-min(top_k, len(pmf))], pmf, 0.0)
    return kept / kept.sum()


def one_row(target_logits, draft_logits, drafts, temperature, top_k):
    """Return the tokens of one row."""
    p = [largest(softmax(row, temperature), top_k) for row in target_logits]
    q = [largest(softmax(row, temperature), top_k) for row in draft_logits]
    for i, token in enumerate(drafts):
        if not RNG.random() * q[i][token] < p[i][token]:
            residual = np.maximum(p[i] - q[i], 0)
            return [*drafts[:i], RNG.choice(len(residual), p=residual / residual.sum())]
    return [*drafts, RNG.choice(len(p[0]), p=p[len(drafts)])]


def of_row(place):
    """Return a verifier in which row i uses the parameters of row ``place(i)``."""

    def verify(target_logits, draft_logits, draft_tokens, lengths, temperatures, top_ks):
        rows = []
        for i, drafts in enumerate(draft_tokens.tolist()):
            own = place(i, len(lengths))
            arguments = target_logits[i], draft_logits[i], drafts[: lengths[i]]
            rows.append(one_row(*arguments, float(temperatures[own]), int(top_ks[own])))
        return rows

    return verify


def with_soft_bonus(target_logits, draft_logits, draft_tokens, lengths, temperatures):
    """Verify rows of several lengths; a bonus token after as many drafts as fit is drawn at temperature 1 if greedy."""
    rows = []
    for i, drafts in enumerate(draft_tokens.tolist()):
        certain, own = target_logits[i].copy(), float(temperatures[i])
        if own == 0:  # at temperature 1 the other rows are as certain as at 0
            certain[:-1] *= 1000
        arguments = certain, 1000 * draft_logits[i] if own == 0 else draft_logits[i], drafts[: lengths[i]]
        rows.append(one_row(*arguments, own or 1.0, len(certain[0])))
    return rows


def singular(target_logits, draft_logits, draft_tokens, temperature):
    """Verify rows of equal length whose temperatures have the name of a number."""
    rows = zip(target_logits, draft_logits, draft_tokens.tolist(), temperature, strict=True)
    return [one_row(*row, top_k=len(target_logits[0][0])) for row in rows]


def in_common(target_logits, draft_logits, draft_tokens, temperature):
    """Verify rows of equal length at one temperature, a number."""
    rows = zip(target_logits, draft_logits, draft_tokens.tolist(), strict=True)
    return [one_row(*row, temperature=temperature, top_k=len(target_logits[0][0])) for row in rows]


@pytest.mark.parametrize(
    ("verify", "form"),
    [(of_row(lambda i, _: i), None), (singular, "batched_logits")],
    ids=["plural", "singular"],
)
def test_each_row_has_its_own_parameters(verify, form):
    check_verifier(verify, form=form, **EXAMINED)


@pytest.mark.parametrize(
    "place",
    [lambda _, __: 0, lambda i, number: (i + 1) % number, lambda _, number: number - 1],
    ids=["of the first row", "of the next row", "of the last row"],
)
def test_parameters_of_another_row_are_refuted(place):
    with pytest.raises(SpeculationRefuted, match="with other sampling parameters"):
        check_verifier(of_row(place), **EXAMINED)


@pytest.mark.usefixtures("unexplained")
def test_a_greedy_row_with_all_drafts_accepted_has_a_greedy_bonus_token():
    options = {**EXAMINED, "checks": ["rows_are_independent"]}
    check_verifier(of_row(lambda i, _: i), **options)
    with pytest.raises(SpeculationRefuted, match=r"alone they are off by \S+, 0\.399836 and"):
        check_verifier(with_soft_bonus, **options)


def test_numbers_are_passed_to_a_verifier_that_runs_on_numbers_alone():
    assert takes_parameters_of_rows(singular, BATCHED_LOGITS)
    assert not takes_parameters_of_rows(in_common, BATCHED_LOGITS)
