"""Loops whose drafts are made in stages, by blocks or in pairs, each with networks that return tables."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import torch

from specverify.testing import EngineScenario
from test_support.shipped.networks import Cached, cropped, logits_of
from test_support.shipped.sources import functions_of


class _Held:
    """A cache of the tokens themselves."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def get_seq_length(self) -> int:
        return len(self.tokens)

    def crop(self, length: int) -> None:
        del self.tokens[length:]


def dflash(scenario: EngineScenario, *, block: int = 3) -> Any:
    """``dflash_generate``; hidden states are tokens, and place i is drafted after i masks, which are token 0."""
    names = ("extract_context_feature", "sample", "dflash_generate")
    given = dict(torch=torch, DynamicCache=_Held, SimpleNamespace=SimpleNamespace, Optional=dict, nn=torch.nn)
    decode = functions_of("dflash", "dflash/model.py", *names, **given).dflash_generate

    class Target:
        device = torch.device("cpu")
        model = SimpleNamespace(embed_tokens=lambda ids: ids.double()[..., None])

        def lm_head(self, logits: Any) -> Any:
            return logits

        def __call__(self, ids: Any, past_key_values: Any, logits_to_keep: int = 0, **_: Any) -> Any:
            before, states = len(past_key_values.tokens), ids.double()[..., None]
            past_key_values.tokens += ids[0].tolist()
            logits = logits_of(scenario.target, [past_key_values.tokens])[:, before:]
            return SimpleNamespace(logits=logits[:, -logits_to_keep:], hidden_states=(states, states))

    def drafted(target_hidden: Any, noise_embedding: Any, past_key_values: Any, **_: Any) -> Any:
        past_key_values.tokens += [int(token) for token in target_hidden.flatten()]
        text = [*past_key_values.tokens, int(noise_embedding.flatten()[0])]
        past_key_values.tokens += [0] * noise_embedding.shape[1]
        return logits_of(scenario.draft, [text + [0] * (block - 1)])[:, len(text) - 1 :]

    class Draft:
        target_layer_ids, block_size, mask_token_id = (0,), block, 0

        def __call__(self, **given: Any) -> Any:
            return drafted(**given)

    def speculative() -> Any:
        prompt = torch.tensor([scenario.prompt])
        made = decode(Draft(), Target(), prompt, scenario.horizon, None, 1.0)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


def specdec_pp(scenario: EngineScenario, *, threshold: float = 0.5, most: int = 2) -> Any:
    """``my_assisted_decoding`` of SpecDec++; the head answers q of the token that was fed last, as in the row."""
    path, name = "specdec_pp/hf_generation.py", "my_assisted_decoding"
    code = dict(torch=torch, _crop_past_key_values=cropped, StoppingCriteriaList=list, LogitsProcessorList=list)
    names: Any = __import__("typing")
    decode = functions_of("SpecDec_pp", path, name, **vars(names), **code).my_assisted_decoding

    class Network(Cached):
        config = SimpleNamespace(is_encoder_decoder=False, architectures=None)
        generation_config = SimpleNamespace(
            **dict.fromkeys(("pad_token_id", "eos_token_id", "output_scores", "output_attentions")),
            output_hidden_states=False,
            return_dict_in_generate=False,
            num_assistant_tokens_schedule="ada",
        )
        max_assistant_tokens = most

        def __call__(self, ids: Any, past_key_values: Any = None, **_: Any) -> Any:
            found = super().__call__(ids, past_key_values)
            text = [int(token) for token in found.past_key_values[0][0].flatten()]
            q = float(self.tables(tuple(text[:-1]))[text[-1]]) if len(text) > 1 else 1.0
            states = torch.tensor([[[1 - q, q]]], dtype=torch.float64).log()
            return _Output(vars(found) | {"hidden_states": (states,)})

        def _update_model_kwargs_for_generation(self, outputs: Any, kwargs: Any, **_: Any) -> Any:
            kwargs["past_key_values"] = outputs.past_key_values
            return kwargs

    class Criteria(list[Any]):
        def __call__(self, ids: Any, _: Any) -> bool:
            return bool(ids.shape[-1] >= self[0].max_length)

    def speculative() -> Any:
        prompt = torch.tensor([scenario.prompt])
        made, *_ = decode(
            Network(scenario.target),
            prompt,
            assistant_model=Network(scenario.draft),
            do_sample=True,
            logits_processor=[],
            logits_warper=[],
            stopping_criteria=Criteria([SimpleNamespace(max_length=prompt.shape[1] + scenario.horizon)]),
            num_assistant_tokens_schedule="ada",
            assist_acc_head=lambda states: states,
            stop_threshold=threshold,
            bound=(0, most),
        )
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


class _Output(SimpleNamespace):
    def __init__(self, given: Any) -> None:
        super().__init__(**given)

    def get(self, name: str) -> Any:
        return getattr(self, name)


def spechub(scenario: EngineScenario) -> Any:
    """``sample`` and ``evaluate_posterior`` of SpecHub, one pair a round; the loop around them is this one."""
    folder = "EAGLE/eagle/model"
    draw = functions_of("Speculative_decoding_OT", f"{folder}/cnets.py", "Model", torch=torch, nn=torch.nn).Model.sample
    decide = functions_of(
        "Speculative_decoding_OT", f"{folder}/utils.py", "evaluate_posterior", torch=torch, random=random
    ).evaluate_posterior

    def speculative() -> Any:
        text = list(scenario.prompt)
        while len(text) < len(scenario.prompt) + scenario.horizon:
            logits = logits_of(scenario.draft, [text])[:, -1]
            pair, chances, rows = draw(None, logits, _as_they_are, k=2, mode="spechub")
            first, second = pair[0].tolist()
            given = [[*text, first], [*text, second]]
            p = torch.stack([logits_of(scenario.target, [each])[0, -2:] for each in given])
            candidates = torch.tensor([[text[-1], first], [text[-1], second]])
            mass = torch.cat([torch.ones(2, 1), chances[0][:, None]], 1)
            places = [[0, 0], [0, 0]], [[[], []], [[], []]]
            best, length, row = decide(
                p, candidates, _as_they_are, mass, [rows], places[0], candidates[:1], places[1], mode="spechub"
            )
            text += [*candidates[best, 1 : 1 + int(length)].tolist(), int(torch.multinomial(row, 1))]
        return text[len(scenario.prompt) :]

    return speculative


def _as_they_are(_: Any, logits: Any) -> Any:
    return logits
