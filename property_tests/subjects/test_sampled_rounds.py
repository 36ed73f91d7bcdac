"""A sample of a verifier reaches rounds with all of its drafts: what goes wrong with many alone is seen there too."""

from __future__ import annotations

import pytest

from specverify.subjects.forms import BATCHED, LOGITS, ROW, Form
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject

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
