"""Thresholds between 1e-4 and 1e-2, and vocabularies that no tile divides: wrong in every form, right beside each."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.laws.deep_scenarios import SCALES_APART
from specverify.run.verify import Checklist, run_check
from specverify.subjects.external import decode_subject
from specverify.subjects.forms import BATCHED, BATCHED_LOGITS, LOGITS, Form
from specverify.subjects.made_engine import made_subject
from specverify.subjects.subject import Variant
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject

pytestmark = pytest.mark.usefixtures("unexplained")


def drawn(weights):
    return random.choices(range(len(weights)), list(weights))[0]


def ratio(p, q, token):
    return p[token] / q[token]


def left(p, q):
    return np.maximum(p - q, 0)


def as_they_are(p, q):
    return p, q


def scaled(rows):
    return rows / rows.sum(-1, keepdims=True)


def verify(p, q, draft_tokens, rows=as_they_are, accept=ratio, owed=left, enough=lambda rest: rest.sum() > 0):
    """Speculative sampling: of processed ``rows``, by ``accept``, and after a rejection from ``owed`` or from p."""
    p, q = rows(p, q)
    for i, token in enumerate(draft_tokens):
        if not random.random() < accept(p[i], q[i], token):
            rest = owed(p[i], q[i])
            return [*draft_tokens[:i], drawn(rest if enough(rest) else p[i])]
    return [*draft_tokens, drawn(p[-1])]


# What is done with a threshold


def cut(tau):
    return {"rows": lambda p, q: (scaled(np.where(p < tau, 0, p)), q)}


def nucleus(tau):
    def rows(p, q):
        order = (-p).argsort(axis=-1)
        ranked = np.take_along_axis(p, order, -1)
        kept = np.zeros_like(p)
        np.put_along_axis(kept, order, ranked * (ranked.cumsum(-1) - ranked < 1 - tau), -1)
        return scaled(kept), q

    return {"rows": rows}


def unlikely(tau):
    return {"rows": lambda p, q: (scaled(np.where(p < tau * p.max(-1, keepdims=True), 0, p)), q)}


def by_q_above(tau):
    return {"accept": lambda p, q, token: p[token] / max(q[token], tau)}


def likely_enough(tau):
    return {"accept": lambda p, q, token: 1.0 if ratio(p, q, token) > 1 - tau else ratio(p, q, token)}


def equal(tau):
    return {"accept": lambda p, q, token: 1.0 if abs(p[token] - q[token]) < tau else ratio(p, q, token)}


def all_equal(tau):
    return {"accept": lambda p, q, token: 1.0 if np.allclose(p, q, rtol=0, atol=tau) else ratio(p, q, token)}


def impossible_draft(tau):
    return {"accept": lambda p, q, token: 1.0 if q[token] < tau else ratio(p, q, token)}


def rounded(tau):
    return {"accept": lambda p, q, token: round(ratio(p, q, token), -int(np.log10(tau)))}


THRESHOLDS = {
    "any of the residual above": lambda tau: {"enough": lambda rest: (rest > tau).any()},
    "the residual sums to more": lambda tau: {"enough": lambda rest: rest.sum() > tau},
    "q clamped": lambda tau: {"rows": lambda p, q: (p, np.maximum(q, tau))},
    "q of the ratio clamped": by_q_above,
    "p cut": cut,
    "the nucleus": nucleus,
    "unlikely beside the likeliest": unlikely,
    "p/q nearly 1": likely_enough,
    "p nearly q at the draft": equal,
    "p nearly q": all_equal,
    "q taken for 0": impossible_draft,
    "q of the residual taken for 0": lambda tau: {"owed": lambda p, q: left(p, np.where(q < tau, 0, q))},
    "the ratio rounded": rounded,
}


def of_one_row(subject):
    """Return the subject in the scenarios in which one row is open, and in nothing else."""
    found = [case for case in subject.deep() if case[1].shape.startswith(("apart", "many"))]
    programs = [program for program in subject.programs if program.name.startswith(("apart", "many"))]
    return subject._replace(deep=lambda: found).with_situations(Variant, ()).with_programs(tuple(programs))


def status_of(subject):
    return run_check(of_one_row(subject), check_named("law_is_target"), Checklist(())).status


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("tau", [1e-2, 1e-3, 1.3e-4])
@pytest.mark.parametrize("guard", THRESHOLDS)
def test_a_threshold_is_refuted(guard, tau):
    wrong = partial(verify, **THRESHOLDS[guard](tau))
    if (guard, tau) == ("the ratio rounded", 1.3e-4):
        wrong = partial(verify, **rounded(1e-3))
    assert status_of(verifier_subject(wrong, "a verifier")) is Status.REFUTED


@pytest.mark.thorough(keep=16)
@pytest.mark.parametrize("tau", [1e-20, 1e-10, 1e-8, 1e-6])
@pytest.mark.parametrize("guard", THRESHOLDS)
def test_a_threshold_that_only_rounding_meets_holds(guard, tau):
    right = partial(verify, **THRESHOLDS[guard](tau))
    between = (guard, tau) == ("q clamped", 1e-6)  # of 257 tokens: more than float64 rounds, and less than float32
    assert status_of(verifier_subject(right, "a verifier")) is (Status.UNKNOWN if between else Status.HOLDS)


@pytest.mark.parametrize("epsilon", [1e-10, 1e-8, 1e-6])
def test_an_epsilon_that_is_added_to_q_is_within_rounding(epsilon):
    right = partial(verify, accept=lambda p, q, token: p[token] / (q[token] + epsilon))
    assert status_of(verifier_subject(right, "a verifier")) is Status.HOLDS


def likeliest(number):
    """Cut p to so many tokens, as a top-k that was left on."""

    def rows(p, q):
        least = np.sort(p, axis=-1)[:, -min(number, p.shape[-1])]
        return scaled(np.where(p < least[:, None], 0, p)), q

    return {"rows": rows}


def rest_lost(tile):
    """Lose what is left of p where it stands behind the last whole tile."""

    def owed(p, q):
        rest = left(p, q)
        if len(p) > tile:
            rest[len(p) // tile * tile :] = 0
        return rest

    return {"owed": owed}


def whole_tile_lost(tile):
    """Lose the last tile where it is a whole one."""

    def owed(p, q):
        rest = left(p, q)
        return rest if len(p) % tile or len(p) < tile else np.append(rest[:-tile], rest[-tile:] * 0)

    return {"owed": owed}


WRONG = {
    **{f"top {number}": likeliest(number) for number in (4, 5, 6, 8, 50)},
    **{f"tiles of {tile}": rest_lost(tile) for tile in (4, 5, 8, 16, 32, 64, 256)},
    **{f"a tile of {tile} that is whole": whole_tile_lost(tile) for tile in (8, 32)},
    "tokens in a byte": {"owed": lambda p, q: np.bincount(np.arange(len(p)).astype(np.uint8), left(p, q))},
    "the residual": {"enough": lambda rest: rest.sum() > 1e-3},
}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("wrong", WRONG)
def test_what_shows_at_five_tokens_or_more_is_refuted(wrong):
    assert status_of(verifier_subject(partial(verify, **WRONG[wrong]), "a verifier")) is Status.REFUTED


def of_rows(**parts):
    def verifier(p, q, draft_tokens, lengths):
        rows = zip(p, q, draft_tokens, lengths, strict=True)
        return [verify(p[: n + 1], q[:n], drafts[:n], **parts) for p, q, drafts, n in rows]

    return verifier_subject(verifier, "a verifier", form=BATCHED)


def softmax(logits, temperature):
    return scaled(np.exp((logits - logits.max(-1, keepdims=True)) / temperature))


def of_logits(**parts):
    def verifier(target_logits, draft_logits, draft_tokens, temperature):
        return verify(softmax(target_logits, temperature), softmax(draft_logits, temperature), draft_tokens, **parts)

    return verifier_subject(verifier, "a verifier", form=LOGITS)


def of_batched_logits(**parts):
    def verifier(target_logits, draft_logits, draft_tokens, temperature):
        p, q = softmax(target_logits, temperature), softmax(draft_logits, temperature)
        return [verify(*row, **parts) for row in zip(p, q, draft_tokens, strict=True)]

    return verifier_subject(verifier, "a verifier", form=BATCHED_LOGITS)


def of_tree(**parts):
    def verifier(p, q, parents, tokens):
        if list(parents) != [-1]:
            raise NotImplementedError("a tree of one draft")
        return verify(p, q, tokens, **parts)

    return tree_subject(verifier, "a verifier", Form(drafts="with_replacement"))


def of_round(**parts):
    def one_round(draws, target, draft, tokens):
        q = draft(tokens)
        token = draws.categorical(q, ("draft",))
        p = target(tokens)
        coin = np.array([min(1, ratio(p, q, token)), max(0, 1 - ratio(p, q, token))])
        if draws.categorical(coin, ("accept",)) == 0:
            return (token,)
        rest = np.maximum(p - q, 0 * p)
        enough = parts.get("enough", lambda rest: rest.sum() > 0)(rest)
        return (draws.categorical(rest / rest.sum() if enough else p, ("residual",)),)

    return decode_subject(one_round, "a round")


def of_engine(**parts):
    def make(scenario):
        def decode():
            text = list(scenario.prompt)
            while len(text) < len(scenario.prompt) + scenario.horizon:
                drafts, q = [], []
                for _ in range(3):
                    q.append(scenario.draft((*text, *drafts)))
                    drafts.append(drawn(q[-1]))
                p = [scenario.target((*text, *drafts[:i])) for i in range(4)]
                text += verify(np.array(p), np.array(q), drafts, **parts)
            return text[len(scenario.prompt) :]

        return decode

    return made_subject(make, "an engine")


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("form", [of_rows, of_logits, of_batched_logits, of_tree, of_round, of_engine])
def test_every_form_is_shown_rows_that_are_a_little_apart(form):
    assert status_of(form()) is Status.HOLDS
    assert status_of(form(**WRONG["the residual"])) is Status.REFUTED


def test_who_puts_all_tokens_in_order_is_looked_at_where_the_orders_are_few():
    """An order of 33 tokens has no end of paths; the rows that have too many are left out, and counted."""

    def in_some_order(weights):
        order = np.random.permutation(len(weights))
        return int(order[drawn(weights[order])])

    def ordered(p, q, draft_tokens):
        [token] = draft_tokens
        kept = random.random() < p[0][token] / q[0][token]
        return [token, in_some_order(p[1])] if kept else [in_some_order(left(p[0], q[0]))]

    subject = verifier_subject(ordered, "ordered", (1,))
    wide = [(variant, scenario) for variant, scenario in subject.deep() if scenario.vocabulary > 6]
    subject = subject._replace(scenarios=subject.scenarios[:2], deep=lambda: wide)
    verdict = run_check(subject, check_named("law_is_target"), Checklist(()))
    assert verdict.status is Status.HOLDS
    assert verdict.figures["skipped"] == len(wide) == 5


def nearly_certain(p, q):
    """Return rows of which those with a token above 0.995 are one-hot."""
    return tuple(np.where(rows.max(-1, keepdims=True) > 0.995, np.round(rows), rows) for rows in (p, q))


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({}, Status.HOLDS),
        ({"accept": lambda p, q, token: ratio(p, q, token) * (ratio(p, q, token) >= 0.01)}, Status.REFUTED),
        ({"accept": lambda p, q, token: ratio(p, q, token) * (ratio(p, q, token) > 0.001)}, Status.REFUTED),
        ({"accept": lambda p, q, token: 1 if ratio(p, q, token) > 0.999 else ratio(p, q, token)}, Status.REFUTED),
        ({"rows": nearly_certain}, Status.REFUTED),
        ({"rows": lambda p, q: (scaled(np.where(p < 1e-4, 0, p)), q)}, Status.REFUTED),
        ({"owed": lambda p, q: np.where(left(p, q) > 0.02 * left(p, q).max(), left(p, q), 0)}, Status.REFUTED),
    ],
)
def test_probabilities_of_very_different_sizes_are_examined(parts, status):
    subject = verifier_subject(partial(verify, **parts), "a verifier", (1,))
    scales = tuple((variant, scenario) for variant, scenario in subject.deep() if scenario in SCALES_APART)
    subject = subject._replace(scenarios=(), deep=lambda: scales)
    verdict = run_check(subject, check_named("law_is_target"), Checklist(()))
    assert verdict.status is status
    assert len(scales) == len(SCALES_APART)
