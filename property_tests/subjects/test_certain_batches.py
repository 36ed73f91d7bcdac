"""Batches of a verifier whose rows have certain outcomes, alone and beside random rows."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.run.verify import Checklist, run_check
from specverify.subjects.batch_call import certain_row
from specverify.subjects.forms import BATCHED
from specverify.subjects.verifier import verifier_subject

pytestmark = pytest.mark.usefixtures("unexplained")


def drawn(weights, uniform):
    """Return the token that a uniform selects."""
    return int(np.searchsorted(np.cumsum(weights) / np.sum(weights), uniform, side="right"))


def verifier(changed=lambda p, lengths, accepted, texts: None):
    """Return a verifier of ragged batches; ``changed`` may change the texts in place."""
    rng = np.random.default_rng()

    def row(p, q, drafts):
        for place, token in enumerate(drafts):
            if not rng.random() < p[place, token] / q[place, token]:
                left = np.maximum(p[place] - q[place], 0)
                return [*drafts[:place], drawn(left if left.any() else p[place], rng.random())]
        return [*drafts, drawn(p[len(drafts)], rng.random())]

    def verify(p, q, draft_tokens, lengths):
        texts = [row(p[b], q[b], [int(token) for token in draft_tokens[b, : lengths[b]]]) for b in range(len(p))]
        changed(p, lengths, [len(text) - 1 for text in texts], texts)
        return texts

    return verify


def other_if(condition):
    """Return a change of the last token of the first row where ``condition(p, lengths, accepted)``."""

    def change(p, lengths, accepted, texts):
        if len(texts) > 1 and condition(p, lengths, accepted):
            texts[0][-1] = (texts[0][-1] + 1) % p.shape[2]

    return change


WRONG = {
    "no drafts in any row": lambda p, lengths, accepted: not any(lengths),
    "beside an open row": lambda p, lengths, accepted: lengths[0] and not accepted[0] and (p[-1, 0] > 0).sum() > 1,
    "one of two beside none": lambda p, lengths, accepted: (lengths[0], accepted[0], lengths[1]) == (2, 1, 0),
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", ["", *WRONG])
def test_a_verifier_that_is_wrong_in_one_constellation_is_refuted(name):
    verify = verifier(other_if(WRONG[name])) if name else verifier()
    subject = verifier_subject(verify, "it", (2,), BATCHED)
    verdict = run_check(subject, check_named("rows_are_independent"), Checklist((), quick=True))
    assert verdict.status is (Status.REFUTED if name else Status.HOLDS)


def verifier_with(coins_of, lasts_of):
    """Return a verifier of equal rows: ``coins_of(B, K)`` are its coins, and ``lasts_of(B)`` the last uniforms."""

    def verify(p, q, draft_tokens):
        texts, coins, lasts = [], coins_of(*draft_tokens.shape), lasts_of(len(p))
        for row, drafts in enumerate(draft_tokens.tolist()):
            ratio = [p[row, i, token] / q[row, i, token] for i, token in enumerate(drafts)]
            kept = next((i for i in range(len(drafts)) if not coins[row, i] < ratio[i]), len(drafts))
            weights = p[row, kept] - (q[row, kept] if kept < len(drafts) else 0)
            texts.append([*drafts[:kept], drawn(np.maximum(weights, 0), lasts[row])])
        return texts

    return verify


RNG = np.random.default_rng()


def uniforms(*shape):
    return RNG.random(shape)


@pytest.mark.parametrize(
    ("coins_of", "lasts_of", "status"),
    [
        (uniforms, uniforms, Status.HOLDS),
        (uniforms, lambda rows: np.resize(RNG.random(3), rows), Status.REFUTED),
        (lambda *shape: np.resize(RNG.random(sum(shape)), shape), uniforms, Status.REFUTED),
    ],
    ids=["right", "last uniforms of every third row", "coins of too few numbers"],
)
def test_no_row_uses_numbers_of_a_distant_row(coins_of, lasts_of, status):
    subject = verifier_subject(verifier_with(coins_of, lasts_of), "it", (2,), BATCHED)
    verdict = run_check(subject, check_named("rows_are_independent"), Checklist((), quick=True))
    assert verdict.status is status


@pytest.mark.parametrize(("count", "accepted"), [(0, 0), (1, 0), (2, 1), (3, 3)])
def test_a_certain_row_accepts_as_many_drafts_as_stated(count, accepted):
    row, emitted = certain_row(count, accepted, 5, first=2)
    ratios = [row.p[place, token] / row.q[place, token] for place, token in enumerate(row.drafts)]
    assert [*ratios[:accepted], *ratios[accepted : accepted + 1]] == [2.0] * accepted + [0.0] * (accepted < count)
    assert len(emitted) == accepted + 1
    assert emitted[:-1] == row.drafts[:accepted]
    assert row.p[accepted, emitted[-1]] == 1


def without_bonus(p, q, draft_tokens):
    """Verify a batch of equal lengths; a row that is accepted whole gets no further token."""
    rng, result = np.random.default_rng(), np.full(draft_tokens.shape, -1)
    for b, drafts in enumerate(draft_tokens):
        for place, token in enumerate(drafts):
            result[b, place] = token
            if not rng.random() < p[b, place, token] / q[b, place, token]:
                left = np.maximum(p[b, place] - q[b, place], 0)
                result[b, place] = drawn(left if left.any() else p[b, place], rng.random())
                break
    return result


def test_a_batch_without_bonus_tokens_is_right():
    subject = verifier_subject(without_bonus, "it", (2,), BATCHED)
    verdict = run_check(subject, check_named("rows_are_independent"), Checklist((), quick=True))
    assert verdict.status is Status.HOLDS, verdict.statement


@pytest.mark.parametrize("text", [(), (3,), (0, 1), (0, 1, 3)])
def test_only_the_bonus_token_of_a_certain_row_may_be_left_out(text):
    whole = certain_row(2, 2, 5, first=0)
    assert whole.with_bonus(text) == (whole.emitted if text == whole.row.drafts else text)
    rejected = certain_row(2, 1, 5, first=0)
    assert rejected.with_bonus(rejected.row.drafts[:1]) == rejected.row.drafts[:1]
