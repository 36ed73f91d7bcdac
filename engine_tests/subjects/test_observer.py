"""Somebody's own call of ``generate``, looked into through an observer of its target: no line of the engine changes."""

from __future__ import annotations

import pytest
import torch

from reference import Claim
from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.engines.huggingface import ENGINE
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED, build_model
from specverify.run.verify import Checklist, run_check
from specverify.subjects.engine import engine_subject
from specverify.subjects.observer import Observer

PROMPT = (0, 1, 2, 0, 1)
LIMITS = {"do_sample": True, "max_new_tokens": 3, "min_new_tokens": 3, "top_k": 0}


def models():
    target, assistant = (build_model("llama", 3, seed).eval() for seed in (TARGET_SEED, ASSISTANT_SEED))
    assistant.generation_config.num_assistant_tokens = 2
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    assistant.generation_config.assistant_confidence_threshold = 0.0
    return target, assistant


def pmf_of(model):
    """Return the pmf that a draft is drawn from: the model's own, in the float32 that the library samples in."""

    def pmf(tokens):
        with torch.no_grad():
            return model(torch.tensor([tokens])).logits[0, -1].float().softmax(-1).double().numpy()

    return pmf


def looked_into(drafts_of, sees=lambda ids: ids):
    """Return the subject of assisted generation whose drafts are said to be those of a model that ``sees`` the ids."""
    target, assistant = models()
    ids = torch.tensor([PROMPT])
    law = pmf_of(drafts_of(target, assistant))
    observer = Observer(PROMPT, draft=lambda tokens: law(sees(tokens)), target=target, read=ENGINE.reads(target))

    def call(**extra):
        with torch.no_grad():
            return target.generate(ids, **LIMITS, **extra)[0, len(PROMPT) :]

    subject = engine_subject(lambda: call(assistant_model=assistant), call, "generate", observer=observer)
    return subject._replace(claims=frozenset(Claim))


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("check", ["acceptance_law", "draft_is_honest", "cache_equals_prefill"])
def test_a_call_of_the_library_holds(check):
    found = run_check(looked_into(lambda target, assistant: assistant), check_named(check), Checklist(()))
    assert found.status is Status.HOLDS, found.statement
    assert found.figures["runs"] > 1


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: looked_into(lambda target, assistant: target),
        lambda: looked_into(lambda target, assistant: assistant, sees=lambda tokens: tokens[:-1]),
    ],
    ids=["another model", "a token short"],
)
def test_drafts_of_another_pmf_than_is_said_are_refuted(wrong):
    assert run_check(wrong(), check_named("draft_is_honest"), Checklist(())).status is Status.REFUTED
