"""Loops that decide a whole block at once: FLy's and SpecTr-GBV's, over networks with the caches that they need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from specverify.testing import EngineScenario
from test_support.shipped.loops import NAMESAKE, silent
from test_support.shipped.networks import Uncached, logits_of
from test_support.shipped.sources import functions_of, module_of, stub


class Texts:
    """A cache of several rows with the interface of transformers' ``DynamicCache``; its entries are the tokens."""

    def __init__(self, rows: list[list[int]]) -> None:
        """Store ``rows``, the tokens that were fed to each row."""
        self.rows = rows

    def get_seq_length(self) -> int:
        """Return the number of entries."""
        return len(self.rows[0])

    def crop(self, length: int) -> None:
        """Keep the first ``length`` tokens only."""
        self.rows = [row[:length] for row in self.rows]

    def batch_select_indices(self, indices: Any) -> None:
        """Keep these rows."""
        self.rows = [self.rows[index] for index in indices.tolist()]

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every row this many times."""
        self.rows = [list(row) for row in self.rows for _ in range(repeats)]


class Batched(Uncached):
    """A network of several rows with a cache that is changed in place."""

    dtype = torch.float64

    def eval(self) -> Any:
        """Return itself, as a module does."""
        return self

    def __call__(self, input_ids: Any, past_key_values: Any = None, **_: Any) -> Any:
        """Return the logits after every token that is fed, and the cache that holds those too."""
        fed = [[int(token) for token in row] for row in input_ids]
        held = Texts([[] for _ in fed]) if past_key_values is None else past_key_values
        before = held.get_seq_length()
        held.rows = [[*row, *more] for row, more in zip(held.rows, fed, strict=True)]
        return SimpleNamespace(logits=logits_of(self.tables, held.rows)[:, before:], past_key_values=held)


def fly(scenario: EngineScenario, *, window: int, threshold: float, gamma: int, temperature: float = 1.0) -> Any:
    """``SPDGenerate.generate_chunks`` of FLy, drafts of a network, ``win_len`` and ``entropy_thre``."""
    own = module_of("FLy", "fly/models/FLy.py")
    options = dict(k=gamma, total_gen_tok=scenario.horizon, enable_fly=True, win_len=window, entropy_thre=threshold)

    def speculative() -> Any:
        nets = Batched(scenario.draft), Batched(scenario.target)
        decoder = own.SPDGenerate(*nets, NAMESAKE(eos_token_id=-1), NAMESAKE(info=silent), options)
        made = decoder.generate_chunks(torch.tensor([scenario.prompt]), temperature)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative


def spectr_gbv(scenario: EngineScenario, *, candidates: int, gamma: int) -> Any:
    """``Decoding.speculative_decoding`` of SpecTr-GBV with its ``KVCacheModel``, temperature 1."""
    util = module_of("SpecTr-GBV", "src/util.py")
    given = dict(torch=torch, sample=util.sample, norm_logits=util.norm_logits)
    cache = functions_of("SpecTr-GBV", "src/kvcache.py", "KVCacheModel", **given).KVCacheModel
    clock = stub(perf_counter=lambda: 1.0)
    wanted = dict(time=clock, ABC=object, abstractmethod=lambda made: made, KVCacheModel=cache)
    decode = functions_of("SpecTr-GBV", "src/engine.py", "Decoding", **given, **wanted).Decoding.speculative_decoding

    def speculative() -> Any:
        decoder = SimpleNamespace(
            args=SimpleNamespace(gamma=gamma, max_tokens=scenario.horizon, temp=1.0, top_k=0, top_p=1.0),
            draft_model=Batched(scenario.draft),
            target_model=Batched(scenario.target),
            vocab_size=scenario.vocabulary,
        )
        made, _ = decode(decoder, torch.tensor([scenario.prompt]), candidates)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative
