"""Loops over chains of drafts that papers released, each with networks that return the tables of a scenario."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from reference.drafters.sequences import forgetful
from specverify.testing import EngineScenario
from test_support.shipped.networks import MOST_POSITIONS, Cached, Tables, Uncached, cropped, logits_of
from test_support.shipped.sources import functions_of, module_of

NAMESAKE = SimpleNamespace
"""Stands for what a function asks for and does not need to be anything."""


def silent(*_: Any, **__: Any) -> Any:
    """Replaces a progress bar or a printing function."""
    return NAMESAKE(update=silent, close=silent, print_status=silent, __enter__=silent)


def up_by_one(tables: Tables) -> Tables:
    """Return the same tables with token ids increased by one; token 0 is never drawn."""
    return lambda tokens: np.concatenate([np.zeros(1), np.asarray(tables(tuple(token - 1 for token in tokens)))])


def feifeibear(scenario: EngineScenario, *, first: int = 1, gamma: int = 2) -> Any:
    """``speculative_sampling`` of feifeibear with its cache; ``first`` is the lowest token that is drawn."""
    utils = "sampling/utils.py"
    names = ("norm_logits", "sample", "max_fn", "top_k_top_p_filter")
    functional = torch.nn.functional
    own = functions_of("LLMSpeculativeSampling", utils, *names, torch=torch, F=functional)
    given = dict(torch=torch, norm_logits=own.norm_logits, sample=own.sample, max_fn=own.max_fn)
    cache = functions_of(
        "LLMSpeculativeSampling", "sampling/kvcache_model.py", "KVCacheModel", BloomForCausalLM=NAMESAKE, **given
    )
    decode = functions_of(
        "LLMSpeculativeSampling",
        "sampling/speculative_sampling.py",
        "speculative_sampling",
        KVCacheModel=cache.KVCacheModel,
        **given,
    ).speculative_sampling
    moved = up_by_one if first else lambda tables: tables

    def speculative() -> Any:
        nets = Cached(moved(scenario.draft)), Cached(moved(scenario.target))
        prompt = torch.tensor([scenario.prompt]) + first
        made = decode(prompt, *nets, max_len=scenario.horizon, gamma=gamma)
        return (made[0, len(scenario.prompt) :] - first).tolist()

    return speculative


def svip(scenario: EngineScenario, *, threshold: float = 0.28, beyond: int = 0) -> Any:
    """``assisted_decoding`` of SVIP with its entropies; asked for ``beyond`` tokens more than are looked at."""
    given = dict(
        torch=torch,
        F=torch.nn.functional,
        time=time,
        tqdm=silent,
        device="cpu",
        tokenizer=NAMESAKE(eos_token_id=-1),
        args=NAMESAKE(length_policy="svip", sample=True, entropy_threshold=threshold),
        _crop_past_key_values=cropped,
    )
    names = ("calc_entropy", "AssistantModel", "assisted_decoding")
    decode = functions_of("SVIP", "vanilla-sd/eval_specbench.py", *names, **given).assisted_decoding

    def speculative() -> Any:
        nets = Cached(scenario.target), Cached(scenario.draft)
        made, *_ = decode(*nets, torch.tensor([scenario.prompt]), max_new_tokens=scenario.horizon + beyond)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


def nasd(scenario: EngineScenario, *, order: int = 3, gamma: int = 2, filler_top_k: int = 2) -> Any:
    """``ngram_assisted_speculative_generate`` of romsto with its ``NGramStorage``, no cache."""
    processors = module_of("Speculative-Decoding", "utils/logits_processor.py")
    storage = module_of("Speculative-Decoding", "ngram_assisted/ngram_storage.py")
    given = dict(torch=torch, INgramStorage=object, LogitsProcessor=object, Module=object, List=list)
    name = "ngram_assisted_speculative_generate"
    decode = functions_of(
        "Speculative-Decoding",
        "ngram_assisted/ngram_assisted.py",
        name,
        GreedyProcessor=processors.GreedyProcessor,
        **given,
    ).ngram_assisted_speculative_generate

    def speculative() -> Any:
        made, _ = decode(
            list(scenario.prompt),
            storage.NGramStorage(order, scenario.vocabulary),
            Uncached(scenario.target, config=NAMESAKE(max_position_embeddings=MOST_POSITIONS)),
            gamma=gamma,
            filler_top_k=filler_top_k,
            logits_processor=processors.MultinomialProcessor(1.0),
            max_gen_len=scenario.horizon,
            eos_tokens_id=-1,
            first_target=False,
        )
        return made

    return speculative


def triforce(scenario: EngineScenario, *, gamma: int = 1, mended: bool = False) -> Any:
    """``TriForce`` with ``Middle_Spec``; q' is the target without the first token, as in the row."""
    path, emitted = "utils/decoding.py", []
    own = module_of("TriForce", "utils/sampling.py")

    def with_residual(text: str) -> str:
        before, accepted, rejected, *rest = text.split("sample(verify_prob[n])")
        return f"{before}sample(verify_prob[n]){accepted}sample(max_fn(verify_prob[n] - speculation_prob))" + (
            "sample(verify_prob[n])".join((rejected, *rest))
        )

    decode = functions_of(
        "TriForce",
        path,
        "Middle_Spec",
        "TriForce",
        mended=with_residual if mended else None,
        torch=torch,
        time=time,
        np=np,
        print=silent,
        sample=own.sample,
        norm_logits=own.norm_logits,
        max_fn=own.max_fn,
        spec_stream=lambda token, *_: emitted.append(int(token)),
    ).TriForce
    partial_cache = forgetful(scenario.target, 1)

    class Graph:
        def __init__(self) -> None:
            self.text: list[int] = []
            cache = NAMESAKE(reset=silent, print_status=silent, seq_len=0)
            draft = NAMESAKE(reset=silent, print_status=silent, start_size=0, recent_size=0, evict_for_spec=silent)
            self.engine = NAMESAKE(
                model=NAMESAKE(device="cpu"), kv_cache=cache, graph_cache=cache_of(), draft_cache=draft
            )
            self.graph_draft_prefill = self.update_graph_cache = silent

        def after(self, tables: Tables, ids: Any) -> Any:
            before = self.text[: self.engine.kv_cache.seq_len]
            fed = [int(token) for token in ids.flatten()]
            return before + fed, logits_of(tables, [before + fed])[:, len(before) :]

        def inference(self, input_ids: Any) -> Any:
            self.text, logits = self.after(scenario.target, input_ids)
            self.engine.kv_cache.seq_len = len(self.text)
            return logits

        def graph_verify(self, input_ids: Any, **_: Any) -> Any:
            return self.after(known_alone(partial_cache, scenario.vocabulary), input_ids)[1][0].exp()

        def graph_draft_inference(self, input_ids: Any, **_: Any) -> Any:
            return self.after(known_alone(scenario.draft, scenario.vocabulary), input_ids)[1][0, -1].exp()

    def speculative() -> Any:
        emitted.clear()
        prompt = torch.tensor([scenario.prompt])
        decode(NAMESAKE(eos_token_id=-1), Graph(), prompt, gamma, scenario.horizon, -1, 0.0, 1.0, verbose=True)
        return list(emitted)

    return speculative


def cache_of() -> Any:
    """Replaces a cache of which nothing is used."""
    return NAMESAKE(reset=silent, print_status=silent)


def known_alone(tables: Tables, size: int) -> Tables:
    """Return the tables, with a uniform row after a text that contains a placeholder."""
    return lambda tokens: tables(tokens) if max(tokens) < size else np.full(size, 1 / size)
