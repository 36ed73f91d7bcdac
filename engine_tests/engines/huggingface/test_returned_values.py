"""What ``generate`` returns beside its tokens, examined by ``returns=`` as its user would."""

from types import SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specverify.testing import check_engine

CONFIG = {
    "vocab_size": 3,
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": 0,
}
PROMPT = torch.tensor([[0, 1, 2]])


@pytest.fixture(scope="module")
def models():
    torch.manual_seed(0)
    return tuple(LlamaForCausalLM(LlamaConfig(**CONFIG)).double().eval() for _ in range(2))


def keeper(pieces, ends):
    """Return a streamer that appends what it gets to ``pieces`` and ``ends``; the prompt comes first."""
    return SimpleNamespace(
        put=lambda value: pieces.append(tuple(value.reshape(-1).tolist())), end=lambda: ends.append(1)
    )


def streamed(models, lose=0):
    """Return the new tokens of assisted generation and what its streamer got, without the last ``lose`` pieces."""
    pieces, ends = [], []
    with torch.no_grad():
        out = models[0].generate(
            PROMPT,
            attention_mask=torch.ones_like(PROMPT),
            do_sample=True,
            temperature=0.7,
            top_k=0,
            max_new_tokens=2,
            min_new_tokens=2,
            assistant_model=models[1],
            num_assistant_tokens=1,
            streamer=keeper(pieces, ends),
        )
    kept = [token for piece in pieces[1 : len(pieces) - lose] for token in piece]
    return {"tokens": out[0, 3:], "pieces": kept, "ends": len(ends)}


@pytest.mark.thorough
@pytest.mark.parametrize(("lose", "status"), [(0, "holds"), (1, "refuted")])
def test_a_streamer_of_assisted_generation_gets_every_token_once(models, lose, status):
    found = check_engine(
        lambda: streamed(models, lose),
        lambda: called(models)["tokens"],
        models=models,
        returns={"pieces": tuple, "ends": lambda new: 1},
        checks=["values_match"],
        on_fail=None,
    )
    assert {v.check: v.status for v in found}["values_match"] == status


@pytest.mark.thorough
@pytest.mark.parametrize(("promise", "status"), [("seed", "holds"), ("seed-as-plain", "refuted")])
def test_a_seed_decides_the_text_of_assisted_generation_and_not_that_of_plain_decoding(models, promise, status):
    def seeded(seed, **options):
        torch.manual_seed(seed)
        return called(models, **options)["tokens"]

    assisted = {"assistant_model": models[1], "num_assistant_tokens": 1}
    check = {"seed": "seed_repeats", "seed-as-plain": "seed_as_plain"}[promise]
    found = check_engine(
        lambda seed: seeded(seed, **assisted), seeded, promises={promise}, checks=[check], on_fail=None
    )
    assert {v.check: v.status for v in found}[check] == status


def called(models, change=lambda scores: scores, **options):
    target, _ = models
    with torch.no_grad():
        out = target.generate(
            PROMPT,
            attention_mask=torch.ones_like(PROMPT),
            do_sample=True,
            temperature=0.7,
            top_k=0,
            max_new_tokens=2,
            min_new_tokens=2,
            return_dict_in_generate=True,
            output_scores=True,
            output_logits=True,
            **options,
        )
    return {"tokens": out.sequences[0, 3:], "scores": change(out.scores), "logits": out.logits}


@pytest.mark.thorough(keep=3)
@pytest.mark.usefixtures("named_checks_alone")
@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda scores: scores, "holds"),
        (lambda scores: scores[::-1], "refuted"),
        (lambda scores: scores[:1] * 2, "refuted"),
    ],
)
def test_scores_and_logits_of_assisted_generation(models, change, status):
    assisted = {"assistant_model": models[1], "num_assistant_tokens": 1}
    found = check_engine(
        lambda: called(models, change, **assisted),
        lambda: called(models),
        models=models,
        returns=("scores", "logits"),
        checks=["values_match"],
        on_fail=None,
    )
    assert {v.check: v.status for v in found}["values_match"] == status
