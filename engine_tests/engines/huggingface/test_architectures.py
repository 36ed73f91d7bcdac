"""Tiny models of every architecture and every drafting model: what they are, and which of them ``generate`` accepts."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import GenerationConfig

from specverify.engines.huggingface.architectures import ARCHITECTURES, build_model, next_logits
from specverify.engines.huggingface.real_generate import quiet_and_seeded
from specverify.engines.huggingface.speculators import dflash_assistant, gemma4_pair, mtp_target, two_tokenizers
from specverify.engines.huggingface.watch import in_float64

VOCABULARY = 4
PROMPT = (0, 1, 2, 0, 1)
OTHER = (3, 1, 2, 0, 1)
NEW = [new for length in range(3) for new in product(range(VOCABULARY), repeat=length)]
STATEFUL = "assisted generation is not supported with stateful models, such as "
REFUSALS = {
    "mamba2": STATEFUL + "Mamba2ForCausalLM",
    "falcon_h1": STATEFUL + "FalconH1ForCausalLM",
}
"""The library's words for the architectures that it does not speculate with, with a draft model or prompt lookup."""


def built(architecture, seed=2):
    with quiet_and_seeded(0):
        return build_model(architecture, VOCABULARY, seed)


def drafting(model):
    model.generation_config.num_assistant_tokens = 2
    model.generation_config.num_assistant_tokens_schedule = "constant"
    model.generation_config.assistant_confidence_threshold = 0.0
    return model


def generated(target, *, sample, tokens=3, config=None, **options):
    """The new tokens of one call."""
    sampling = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0} if sample else {"do_sample": False}
    ids = torch.tensor([PROMPT])
    with quiet_and_seeded(0):
        row = target.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            generation_config=GenerationConfig(max_new_tokens=tokens, **sampling, **(config or {})),
            **options,
        )[0].tolist()
    return row[1:] if target.config.is_encoder_decoder else row[len(PROMPT) :]


def pmfs(model, prompt):
    with quiet_and_seeded(0):
        return torch.stack([next_logits(model, prompt, new).softmax(-1) for new in NEW])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_equal_arguments_give_equal_weights(architecture):
    first, second, other = built(architecture), built(architecture), built(architecture, seed=3)
    weights, again = first.state_dict(), second.state_dict()
    assert weights.keys() == again.keys()
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert any(not torch.equal(weights[name], value) for name, value in other.state_dict().items())
    assert first.dtype == torch.float32
    assert not first.training


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pmfs_are_neither_uniform_nor_one_hot(architecture):
    largest = pmfs(built(architecture), PROMPT).max(-1).values
    assert largest.min() > 1.1 / VOCABULARY
    assert ((largest > 0.3) & (largest < 0.95)).float().mean() > 0.5


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pmfs_depend_on_the_first_token_of_the_prompt(architecture):
    """Two layers that see four positions each reach back six: Mistral's pmf after two new tokens barely knows it."""
    distances = (pmfs(built(architecture), PROMPT) - pmfs(built(architecture), OTHER)).abs().sum(-1) / 2
    seen = distances[:5] if architecture == "mistral" else distances
    assert seen.min() > 1e-4
    assert seen.median() > 5e-3


def test_no_two_architectures_are_the_same_function():
    rows = [pmfs(built(architecture), PROMPT) for architecture in ARCHITECTURES]
    for number, row in enumerate(rows):
        assert all((row - other).abs().max() > 1e-2 for other in rows[:number])


@pytest.mark.parametrize("sample", [True, False], ids=["sampled", "greedy"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_generates(architecture, sample):
    assert len(generated(built(architecture), sample=sample)) == 3


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("sample", [True, False], ids=["sampled", "greedy"])
@pytest.mark.parametrize("way", ["draft model", "prompt lookup"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_speculates_or_is_refused(architecture, way, sample):
    """A greedy text is the plain one; a sampled text is judged elsewhere, by its law."""
    target = built(architecture)
    options = {"assistant_model": drafting(built(architecture, seed=3))} if way == "draft model" else {}
    config = {"prompt_lookup_num_tokens": 2, "max_matching_ngram_size": 2} if way == "prompt lookup" else {}
    if architecture in REFUSALS:
        with pytest.raises(ValueError, match=f"^{REFUSALS[architecture]}$"):
            generated(target, sample=sample, config=config, **options)
        return
    new = generated(target, sample=sample, tokens=6, config=config, **options)
    assert len(new) == 6
    assert sample or new == generated(target, sample=False, tokens=6)


def multi_token(layers):
    return mtp_target(VOCABULARY, 2, layers), {"use_mtp": True}, {}


def block_draft():
    target = built("llama")
    return target, {"speculation_type": "dflash"}, {"assistant_model": dflash_assistant(target, 3)}


def shared_keys():
    target, assistant = gemma4_pair(VOCABULARY, 2)
    return target, {}, {"assistant_model": assistant}


def universal():
    made = two_tokenizers(2, order="xdcbya")
    tokenizers = {"tokenizer": made.target_tokenizer, "assistant_tokenizer": made.assistant_tokenizer}
    return made.target, {}, {"assistant_model": drafting(made.assistant), **tokenizers}


def early_exit():
    return drafting(built("llama")), {"assistant_early_exit": 1}, {}


SPECULATORS = {
    "one layer predicts": lambda: multi_token(1),
    "two layers predict": lambda: multi_token(2),
    "block draft": block_draft,
    "shared keys": shared_keys,
    "two tokenizers": universal,
    "early exit": early_exit,
}


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("sample", [True, False], ids=["sampled", "greedy"])
@pytest.mark.parametrize("build", SPECULATORS.values(), ids=SPECULATORS)
def test_every_drafting_model_drafts(build, sample):
    """The target is fed drafts, several tokens at once behind the prompt; a greedy text is the plain one."""
    with quiet_and_seeded(0):
        target, config, options = build()
        plain, _, _ = build()
    widths = []

    def record(_, __, named):
        if named["past_key_values"].get_seq_length():
            widths.append(named["input_ids"].shape[1])

    target.register_forward_pre_hook(record, with_kwargs=True)
    new = generated(target, sample=sample, tokens=8, config=config, **options)
    assert len(new) == 8
    assert max(widths) > 1
    assert sample or new == generated(plain, sample=False, tokens=8)


class Dtypes(TorchDispatchMode):
    """The floating dtypes of whatever is computed inside; whole numbers, such as a mask of ones, are so in any."""

    def __init__(self):
        """Nothing has been computed."""
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        floating = [
            item for item in tree_leaves(found) if isinstance(item, torch.Tensor) and item.dtype.is_floating_point
        ]
        self.seen |= {item.dtype for item in floating if not bool((item == item.round()).all())}
        return found


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name not in REFUSALS])
def test_a_model_that_is_looked_into_computes_nothing_in_float32(architecture):
    """Whoever sums in float32 gets one number or its neighbour, by the processor and by what is fed beside it."""

    def computed(forward):
        decoder = {"decoder_input_ids": torch.tensor([[0, 1]])} if model.config.is_encoder_decoder else {}
        with torch.no_grad(), Dtypes() as dtypes:
            forward(input_ids=torch.tensor([PROMPT]), **decoder)
        return dtypes.seen

    model = built(architecture).double()
    model.set_attn_implementation("eager")
    assert (torch.float32 in computed(model.forward)) == (architecture not in {"gpt2", "bart"})
    assert computed(in_float64(model.forward)) == {torch.float64}
