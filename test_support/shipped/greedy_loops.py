"""Greedy loops, each with networks that return the tables of a scenario."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, Optional
from unittest.mock import patch

import numpy as np
import torch

from specverify.testing import EngineScenario
from test_support.shipped.chains import torch_of_a_host
from test_support.shipped.networks import logits_of
from test_support.shipped.sources import functions_of


class _Generation:
    """The methods of the mixin of transformers 4.23 that the loop of BiLD uses."""

    def _update_model_kwargs_for_generation(self, outputs: Any, kwargs: Any, **_: Any) -> Any:
        kwargs["past"] = outputs.past_key_values
        return kwargs


def bild(scenario: EngineScenario, *, fallback: float = 0.5, rollback: float = 1.0, gamma: int = 2) -> Any:
    """Run ``T5BiLDModel`` with its ``_greedy_search_body``; the prompt is the input of the encoder."""
    path = "src/transformers/models/t5/modeling_t5.py"
    given = dict(torch=torch, nn=torch.nn, copy=copy, GenerationMixin=_Generation, Optional=Optional, Tuple=tuple)
    own = functions_of("BigLittleDecoder", path, "T5BiLDModel", **given)

    class Network:
        encoder = decoder = main_input_name = None
        config = SimpleNamespace(is_encoder_decoder=True)

        def __init__(self, tables: Any) -> None:
            self.tables = tables

        def __call__(self, *given: Any) -> Any:
            fed, past = given[2][0].tolist(), given[8]
            before = past[0][0].flatten().tolist() if past is not None else []
            text = [*map(int, before), *fed]
            prompt = list(scenario.prompt)
            logits = logits_of(self.tables, [prompt + text[1:]])[:, len(prompt) - 1 + len(before) :]
            entries = torch.tensor(text, dtype=torch.float64).reshape(1, 1, -1, 1)
            return SimpleNamespace(logits=logits, past_key_values=((entries, entries.clone(), None, None),))

    def speculative() -> Any:
        model = own.T5BiLDModel(Network(scenario.target), Network(scenario.draft), gamma, fallback, rollback)
        model.eval()
        made = model._greedy_search_body(
            torch.zeros(1, 1, dtype=torch.long),
            {"encoder_outputs": None, "encoder_outputs_small": None, "past": None},
            output_attentions=None,
            output_hidden_states=None,
            stopping_criteria=lambda ids, _: ids.shape[-1] > scenario.horizon,
            logits_processor=lambda _, logits: logits,
            pad_token_id=0,
            eos_token_id=None,
            synced_gpus=False,
            unfinished_sequences=torch.ones(1, dtype=torch.long),
        )
        return made[0, 1:].tolist()

    return speculative


def kangaroo(scenario: EngineScenario, *, threshold: float = 0.5, gamma: int = 2) -> Any:
    """``kangaroo_forward``; hidden states of the early layer are tokens, those of the last layers are logits."""
    decode = functions_of(
        "Kangaroo", "evaluation/inference_kangaroo.py", "kangaroo_forward", torch=torch
    ).kangaroo_forward

    def entry(tokens: list[int]) -> Any:
        held = torch.tensor(tokens, dtype=torch.float64).reshape(1, 1, -1, 1)
        return held, held.clone()

    def tokens_in(past: Any) -> list[int]:
        return [int(token) for token in past[0].flatten()]

    def grown(tables: Any, past: Any, states: Any) -> Any:
        text = tokens_in(past) + [int(token) for token in states.flatten()]
        return logits_of(tables, [text])[:, len(tokens_in(past)) :], entry(text)

    class Base:
        past_key_values: Any = None

        def __call__(self, ids: Any, **_: Any) -> Any:
            text, states = ids[0].tolist(), ids.double()[..., None]
            logits = logits_of(scenario.target, ids)
            return SimpleNamespace(
                past_key_values=(entry(text), entry(text)), hidden_states=(states, states, logits), logits=logits
            )

        def forward_draft_or_large_model(
            self, in_tokens_small: Any = None, in_features_large: Any = None, **_: Any
        ) -> Any:
            past = list(self.past_key_values)
            if in_features_large is not None:
                logits, past[1] = grown(scenario.target, past[1], in_features_large)
                self.past_key_values = past
                return logits, logits
            past[0] = entry(tokens_in(past[0]) + in_tokens_small[0].tolist())
            self.past_key_values = past
            return in_tokens_small.double()[..., None]

    class Adapter:
        def forward_early_stop(self, inputs_embeds: Any, past_key_values: Any = None, **_: Any) -> Any:
            before = entry([]) if past_key_values is None else past_key_values[0]
            logits, after = grown(scenario.draft, before, inputs_embeds)
            return logits, (after,)

    def speculative() -> Any:
        model = SimpleNamespace(base_model=Base(), adapter_model=Adapter(), head_model=lambda states: states)
        made, *_ = decode(
            SimpleNamespace(input_ids=torch.tensor([scenario.prompt])),
            model,
            SimpleNamespace(eos_token_id=-1),
            max_new_tokens=scenario.horizon + gamma + 2,
            EARLY_STOP_LAYER=1,
            SPECULATIVE_DECODING_STEPS=gamma,
            threshold=threshold,
        )
        return made[0][len(scenario.prompt) :]

    return speculative


def token_recycling(scenario: EngineScenario, *, template: tuple[Any, ...] = ([0], [1], [0, 0])) -> Any:
    """``recycling_forward`` on a host; the vocabulary is filled up to the 8 tokens that it asks to rank."""
    width = 8

    def padded(tokens: Any) -> Any:
        return np.concatenate([scenario.target(tokens), np.zeros(width - scenario.vocabulary)])

    class Network:
        def __init__(self) -> None:
            self.held = torch.zeros(1, 1, 64, 1, dtype=torch.float64)
            self.length = torch.zeros(1, dtype=torch.long)

        def __call__(self, input_ids: Any, attention_mask: Any = None, **_: Any) -> Any:
            before, fed = int(self.length[0]), input_ids.shape[1]
            self.held[0, 0, before : before + fed, 0] = input_ids[0].double()
            self.length += fed
            seen = torch.ones(fed, before + fed).tril(before) if attention_mask is None else attention_mask[0, 0]
            everything = self.held[0, 0, : before + fed, 0].long()
            texts = [tuple(everything[row.bool()].tolist()) for row in seen]
            return SimpleNamespace(logits=torch.log(torch.tensor(np.array([[padded(text) for text in texts]]))))

    host = torch_of_a_host()
    host.device = lambda *_: torch.device("cpu")

    def speculative() -> Any:
        model = Network()
        decode = functions_of(
            "TokenRecycling",
            "evaluation/inference_recycling.py",
            "recycling_forward",
            torch=host,
            initialize_past_key_values=lambda model: (None, model.held, model.length),
            choose_tree_template=lambda _: [list(path) for path in template],
            adj_matrix=torch.zeros(width, width, dtype=torch.long),
        ).recycling_forward
        inputs = SimpleNamespace(input_ids=torch.tensor([scenario.prompt]))
        with patch.object(torch.Tensor, "cuda", lambda tensor: tensor):
            made, *_ = decode(inputs, model, SimpleNamespace(eos_token_id=-1), scenario.horizon + 1)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


def ouroboros(scenario: EngineScenario, *, gamma: int = 2, level: int = 3, guesses: int = 2) -> Any:
    """``ouroboros`` with its two caches and its pool of phrases; the small model drafts ``gamma`` argmaxes."""
    caches = functions_of("Ouroboros", "ouroboros/kv_cache_model.py", *_CACHES, torch=torch)
    pool = functions_of("Ouroboros", "ouroboros/cache_engine/cache_engine.py", "CacheEngine", torch=torch).CacheEngine
    given = dict(torch=torch, CacheEngine=pool, **{name: getattr(caches, name) for name in _CACHES})
    decode = functions_of("Ouroboros", "ouroboros/ouroboros.py", "ouroboros", **given).ouroboros

    class Small:
        device = torch.device("cpu")
        ctx: Any = None

        def lade_generate(self, inputs: Any, max_new_tokens: int, ngram_cache: Any, **_: Any) -> Any:
            text = inputs[0].tolist()
            for _token in range(max_new_tokens):
                text.append(int(logits_of(scenario.draft, [text])[0, -1].argmax()))
            self.ctx = {"past_key_values": [], "ngram_cache": ngram_cache}
            return torch.tensor([text])

    class Large:
        device = torch.device("cpu")

        def forward_with_guess(
            self, ids: Any, guess_len: int, guess_size: int, past_key_values: Any = None, **_: Any
        ) -> Any:
            before = [] if past_key_values is None else past_key_values[0][0].flatten().long().tolist()
            fed = ids[0].tolist()
            written = fed[: len(fed) - guess_len]
            phrases = fed[len(written) :]
            text = before + written
            rows = [logits_of(scenario.target, [text])[:, len(before) :]]
            for start in range(0, guess_len, guess_size):
                phrase = phrases[start : start + guess_size]
                rows.append(logits_of(scenario.target, [text + phrase])[:, len(text) :])
            entries = torch.tensor(text + phrases, dtype=torch.float64).reshape(1, 1, -1, 1)
            return SimpleNamespace(logits=torch.cat(rows, 1), past_key_values=[(entries, entries.clone())])

    def speculative() -> Any:
        made = decode(
            torch.tensor([scenario.prompt]),
            Small(),
            Large(),
            max_len=scenario.horizon,
            gamma=gamma,
            window_size=guesses,
            guess_set_size=guesses,
            lookahead_level=level,
            eos_token_id=-1,
        )
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


_CACHES = ("KVCacheModelLade", "KVCacheModelSimpleWithGuess")
