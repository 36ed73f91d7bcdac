"""Verifiers that make pmfs of logits themselves: temperature and truncation are part of what is examined."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reference import softmax, warped
from specverify.base.verdict import Status
from specverify.subjects.external import decode_subject
from specverify.subjects.forms import LOGITS
from specverify.subjects.logits_verifier import FORBIDDEN, logits_of, settings_of
from specverify.subjects.verifier import verifier_subject
from specverify.testing import UnusableSubject, check_verifier
from test_support.verifiers.examined import verdict_of

pytestmark = pytest.mark.usefixtures("named_checks_alone")


def pmfs(logits, temperature=1.0, top_k=None, top_p=1.0):
    """Return rows of processed probabilities: temperature, top-k, top-p."""
    if temperature == 0:
        return np.eye(logits.shape[1])[logits.argmax(-1)]
    weights = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
    found = weights / weights.sum(-1, keepdims=True)
    return kept(best(found, top_k or logits.shape[1]), nucleus(best(found, top_k or logits.shape[1]), top_p))


def kept(rows, mask):
    return rows * mask / (rows * mask).sum(-1, keepdims=True)


def best(rows, top_k):
    return kept(rows, rows >= np.sort(rows, axis=-1)[:, -top_k:][:, :1])


def nucleus(rows, top_p):
    """Return the mask of the smallest set of likeliest tokens that holds ``top_p``."""
    order = (-rows).argsort(axis=-1)
    ranked = np.take_along_axis(rows, order, -1)
    mask = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(mask, order, ranked.cumsum(-1) - ranked < top_p, -1)
    return mask


def decided(p, q, draft_tokens):
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens.tolist()):
        if not rng.random() * q[i, token] < p[i, token]:
            residual = np.maximum(p[i] - q[i], 0)
            law = residual / residual.sum() if residual.sum() > 0 else p[i]
            return [*draft_tokens[:i], rng.choice(len(law), p=law)]
    return [*draft_tokens, rng.choice(p.shape[1], p=p[-1])]


def correct(target_logits, draft_logits, draft_tokens, temperature=1.0, top_k=None, top_p=1.0):
    """Both models processed alike."""
    p, q = (pmfs(rows, temperature, top_k, top_p) for rows in (target_logits, draft_logits))
    return decided(p, q, draft_tokens)


def in_torch(target_logits, draft_logits, draft_tokens, *, temperature):
    """Torch, temperature alone."""
    p, q = (greedy_or_soft(rows, temperature) for rows in (target_logits, draft_logits))
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) * q[i, token] < p[i, token]:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(torch.clamp(p[i] - q[i], min=0), 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def greedy_or_soft(logits, temperature):
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return torch.softmax(logits / temperature, dim=-1)


def target_only(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p):
    """Wrong: q is left as it is."""
    return decided(pmfs(target_logits, temperature, top_k, top_p), pmfs(draft_logits), draft_tokens)


def draft_only(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p):
    """Wrong: p is left as it is."""
    return decided(pmfs(target_logits), pmfs(draft_logits, temperature, top_k, top_p), draft_tokens)


def temperature_last(target_logits, draft_logits, draft_tokens, temperature, top_p):
    """Wrong: the nucleus is found before the temperature is applied."""

    def rows_of(logits):
        if temperature == 0:
            return pmfs(logits, 0)
        return kept(pmfs(logits, temperature), nucleus(pmfs(logits), top_p))

    return decided(rows_of(target_logits), rows_of(draft_logits), draft_tokens)


def nucleus_of_the_draft(target_logits, draft_logits, draft_tokens, temperature, top_p):
    """Wrong: the tokens kept of p are those in the nucleus of q."""
    p, q = pmfs(target_logits, temperature), pmfs(draft_logits, temperature)
    mask = nucleus(q, top_p)
    lost = ~(p[:-1] * mask).any(-1, keepdims=True)
    p = np.concatenate([kept(p[:-1], mask | lost), kept(p[-1:], nucleus(p[-1:], top_p))])
    return decided(p, kept(q, mask), draft_tokens)


def nucleus_first(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p):
    """Wrong: the nucleus is found before top-k."""
    p, q = (best(pmfs(rows, temperature, top_p=top_p), top_k) for rows in (target_logits, draft_logits))
    return decided(p, q, draft_tokens)


def divided_by_zero(target_logits, draft_logits, draft_tokens, temperature):
    """Wrong: temperature 0 is a division like any other."""
    p, q = (torch.softmax(rows / temperature, dim=-1) for rows in (target_logits, draft_logits))
    for i, token in enumerate(draft_tokens.tolist()):
        if not torch.rand(()) < p[i, token] / q[i, token]:
            return [*draft_tokens[:i].tolist(), int(torch.multinomial(torch.clamp(p[i] - q[i], min=0), 1))]
    return [*draft_tokens.tolist(), int(torch.multinomial(p[-1], 1))]


def nearly_greedy(target_logits, draft_logits, draft_tokens, temperature):
    """Wrong: temperature 0 is replaced by a small one that is not small enough."""
    p, q = (pmfs(rows, max(temperature, 0.1)) for rows in (target_logits, draft_logits))
    return decided(p, q, draft_tokens)


def all_tokens_for_one(target_logits, draft_logits, draft_tokens, temperature, top_k):
    """Wrong: a top-k of 1 is taken for none."""
    p, q = (pmfs(rows, temperature, top_k if top_k > 1 else None) for rows in (target_logits, draft_logits))
    return decided(p, q, draft_tokens)


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("verify", [correct, in_torch], ids=lambda verify: verify.__name__)
@pytest.mark.parametrize("check", ["law_is_target", "tokens_are_supported", "acceptance_is_optimal"])
def test_a_correct_verifier_holds_at_every_setting(verify, check):
    verdict = verdict_of(verifier_subject(verify, verify.__name__, form=LOGITS), check)
    assert verdict.status is Status.HOLDS, verdict.statement
    assert verdict.figures["cases"] >= 20


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    "verify",
    [target_only, draft_only, temperature_last, nucleus_of_the_draft, nucleus_first, nearly_greedy, all_tokens_for_one],
    ids=lambda verify: verify.__name__,
)
def test_a_wrong_verifier_is_refuted(verify):
    verdict = verdict_of(verifier_subject(verify, verify.__name__, (2,), LOGITS), "law_is_target")
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.because


@pytest.mark.parametrize(
    ("verify", "setting"),
    [
        (nearly_greedy, "temperature=0,"),
        (temperature_last, "temperature=1.5 top_p=0.8,"),
        (all_tokens_for_one, "temperature=0.7 top_k=1,"),
    ],
    ids=["nearly_greedy", "temperature_last", "all_tokens_for_one"],
)
def test_what_is_wrong_shows_at_the_setting_that_it_needs(verify, setting):
    verdict = verdict_of(verifier_subject(verify, verify.__name__, form=LOGITS), "law_is_target")
    assert setting in verdict.counterexample.let[0]


def test_a_division_by_temperature_zero_is_not_passed():
    verdict = verdict_of(verifier_subject(divided_by_zero, "divided_by_zero", (2,), LOGITS), "law_is_target")
    assert verdict.status is Status.UNUSABLE
    assert "nan" in verdict.statement


def test_settings_are_reduced_to_the_parameters_there_are():
    assert settings_of(in_torch) == tuple((("temperature", value),) for value in (1.0, 0.7, 1.5, 0.0))
    assert (("temperature", 1.5), ("top_k", 2), ("top_p", 0.8)) in settings_of(correct)
    assert not any("min_p" in dict(setting) for setting in settings_of(correct))
    with_min_p = settings_of(lambda target_logits, draft_logits, draft_tokens, temperature, min_p: [0])
    assert [[value for _, value in setting] for setting in with_min_p] == [[1.0], [0.7], [1.5, 0.4], [0.0]]
    assert settings_of(lambda target_logits, draft_logits, draft_tokens: [0]) == ((),)


def test_logits_are_finite_and_give_the_table_back_but_for_ties():
    table = np.array([0.5, 0.0, 0.25, 0.25])
    logits = logits_of(lambda tokens: table)((0,))
    assert np.isfinite(logits).all()
    assert logits[1] == FORBIDDEN
    assert softmax(logits)[1] == 0
    assert softmax(logits) == pytest.approx(table, abs=0.01)
    assert logits[3] > logits[2]
    assert warped(lambda tokens: logits, temperature=0.7, top_k=2)(()).tolist().count(0.0) == 2


def test_the_form_is_told_by_the_names_of_the_parameters():
    assert "temperature=0.7 top_k=2" in str([variant.label for variant in decode_subject(correct, "m:f").variants])
    assert decode_subject(correct, "m:f").name == "m:f"
    batch = decode_subject(lambda p, q, draft_tokens, lengths, temperature: [], "m:f")
    assert (batch.name, batch.variants[0].label) == ("m:f", "gamma=2 temperature=1.5, alone")


@pytest.mark.thorough
def test_one_line_in_somebodys_test_file():
    with pytest.raises(UnusableSubject, match="it emitted 0 tokens, expected 1 to 3: accepted drafts and one more"):
        check_verifier(lambda target_logits, draft_logits, draft_tokens, temperature: [])
