"""Samples reach rounds with all drafts of a verifier, and several rounds of an engine."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.base.verdict import Status
from specverify.statistics.goodness_of_fit import goodness_of_fit
from specverify.subjects.forms import BATCHED, LOGITS, ROW, Form
from specverify.subjects.made_engine import sampled_over_rounds
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import check_engine

SHAPES = {"a chain": (-1, 0, 1), "a bush": (-1, -1, -1, -1, 0, 0, 4, 6)}


def verifier_noting(seen):
    def verify(p, q, draft_tokens):
        seen.append(draft_tokens.shape[-1])
        return draft_tokens

    return verify


def logits_verifier_noting(seen):
    def verify(target_logits, draft_logits, draft_tokens, temperature):
        seen.append(len(draft_tokens))
        return draft_tokens

    return verify


@pytest.mark.parametrize("gamma", [1, 3, 5, 16])
@pytest.mark.parametrize(
    ("noting", "form"),
    [(verifier_noting, ROW), (verifier_noting, BATCHED), (logits_verifier_noting, LOGITS)],
)
def test_a_sampled_round_of_a_chain_has_all_drafts(noting, form, gamma):
    seen = []
    verifier_subject(noting(seen), "verify", (1, gamma), form).settings[0].sample(3, 1)
    assert max(seen) == gamma


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_deepest_tree_is_sampled_whole(shape):
    seen = []

    def verify(p, q, parents, tokens):
        seen.append(len(tokens))
        return [0]

    tree_subject(verify, "verify", Form(drafts="without_replacement"), (shape, (-1,))).settings[0].sample(3, 1)
    assert max(seen) == len(shape)


FALSE_ALARM = 1e-6


def decoding(coins_per_round):
    """Return a factory of engines that accept drafts by coins in a buffer, which is refilled in each round or never."""

    def make(scenario):
        generator = np.random.default_rng()
        pick = generator.choice

        def a_round(text, drafts, coins):
            tokens = ()
            for coin in coins[:drafts]:
                p, q = scenario.target(text + tokens), scenario.draft(text + tokens)
                tokens += (token := int(pick(len(q), p=q)),)
                if coin * q[token] >= p[token]:
                    left = np.maximum(p - q, 0)
                    return (*tokens[:-1], int(pick(len(q), p=left / left.sum())))
            return (*tokens, int(pick(scenario.vocabulary, p=scenario.target(text + tokens))))

        def speculative():
            text, new, coins = scenario.prompt, (), np.empty(2)
            generator.random(out=coins)
            while (missing := scenario.horizon - len(new)) > 0:
                if new and coins_per_round:
                    generator.random(out=coins)
                new += a_round(text + new, min(2, missing - 1), coins)
            return list(new)

        return speculative

    return make


@pytest.mark.parametrize(("coins_per_round", "fits"), [(True, True), (False, False)])
def test_an_engine_is_sampled_over_several_rounds(coins_per_round, fits):
    """Coins that are kept for the next round leave the law of the first round right."""
    setting = sampled_over_rounds(decoding(coins_per_round))
    assert (goodness_of_fit(setting.sample(2400, 1), setting.law()).p_value > FALSE_ALARM) is fits


def test_check_engine_samples_texts_of_one_round_and_of_several():
    (verdict,) = check_engine(decoding(coins_per_round=False), sampled=True, checks=["samples_fit_law"], on_fail=None)
    assert verdict.status is Status.REFUTED
    assert [row["setting"][:13] for row in verdict.figures["rows"]] == ["generic-v4-p3", "generic-v2-p0"]
