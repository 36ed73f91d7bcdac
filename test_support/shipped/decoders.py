"""Whole decoders, each with networks that return the tables of a scenario."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from specverify.testing import EngineScenario
from test_support.shipped.networks import MOST_POSITIONS, Positions, Tables, logits_of
from test_support.shipped.sources import functions_of


def beside(vocabulary: int, prompt: int) -> tuple[Tables, Tables]:
    """Return the target and draft of the row next to the examined one; the row has two outcomes.

    Its draft is always token 0. The target keeps the first draft with probability 1/2 and has token 1 otherwise, and
    keeps every later draft. So this row is behind or ahead of the examined row until the end.
    """

    def target(tokens: Any) -> Any:
        share = 0.5 if len(tokens) == prompt else 0.0
        return np.array([1 - share, share, *[0.0] * (vocabulary - 2)])

    return target, lambda _: np.eye(vocabulary)[0]


def lucidrains(scenario: EngineScenario, *, batch: int, row: int = 0) -> Any:
    """Return ``speculative_decoding`` of lucidrains, gamma 1; drafts of another row are kept or rejected."""
    from beartype import beartype
    from einops import rearrange

    path = "speculative_decoding/speculative_decoding.py"
    names = ("log", "gumbel_noise", "gumbel_sample", "top_k", "safe_div", "find_first_true_index")
    given = dict(torch=torch, F=torch.nn.functional, math=__import__("math"), rearrange=rearrange, beartype=beartype)
    decode = functions_of("speculative-decoding", path, "speculative_decoding", *names, **given).speculative_decoding

    def network(tables: Tables, of_others: Tables) -> Any:
        def net(out: Any, seq_start_pos: Any, **_: Any) -> Any:
            rows = []
            for place, (ids, start) in enumerate(zip(out, seq_start_pos.tolist(), strict=True)):
                padding = torch.zeros(start, scenario.vocabulary, dtype=torch.float64)
                logits = logits_of(tables if place == row else of_others, ids[None, start:])
                rows.append(torch.cat([padding, logits[0]]))
            return torch.stack(rows), (torch.zeros(len(out), 1, 1, out.shape[-1], 1), None)

        return net

    def speculative() -> Any:
        prompt = torch.tensor([scenario.prompt] * batch)
        length = prompt.shape[1] + scenario.horizon
        target, draft = beside(scenario.vocabulary, len(scenario.prompt))
        nets = network(scenario.target, target), network(scenario.draft, draft)
        return decode(*nets, prompt, length, gamma=1, filter_thres=0.0)[0][row].tolist()

    return speculative


def gpt_fast(scenario: EngineScenario, *, source: str = "gpt-fast", **options: Any) -> Any:
    """Return ``generate`` of gpt-fast with a draft model, gamma 1; its networks store the token of each position."""
    names = (
        "multinomial_sample_one_no_sync",
        "logits_to_probs",
        "sample",
        "prefill",
        "decode_one_token",
        "decode_n_tokens",
        "model_forward",
        "speculative_decode",
        "generate",
    )
    decode = functions_of(source, "generate.py", *names, torch=torch).generate

    class Network:
        config = SimpleNamespace(block_size=MOST_POSITIONS)

        def __init__(self, tables: Tables) -> None:
            self.tables = tables

        def setup_caches(self, max_seq_length: int, **_: int) -> None:
            self.answer = Positions(self.tables, max_seq_length)

        def __call__(self, ids: Any, positions: Any) -> Any:
            return self.answer(ids, positions)

    def speculative() -> Any:
        nets = Network(scenario.target), Network(scenario.draft)
        prompt = torch.tensor(scenario.prompt)
        given = dict(interactive=False, draft_model=nets[1], speculate_k=1, **options)
        made, _ = decode(nets[0], prompt, scenario.horizon, **given)
        return made.view(-1)[len(scenario.prompt) :].tolist()

    return speculative


def shreyansh(scenario: EngineScenario) -> Any:
    """``speculative_sampling`` of shreyansh26, gamma 1, without its printing."""
    own = functions_of(
        "Speculative-Sampling", "utils.py", "get_distribution", "sample", "sample_from_draft_model", torch=torch
    )
    decode = functions_of(
        "Speculative-Sampling", "speculative_sampling.py", "speculative_sampling", **vars(own)
    ).speculative_sampling

    def network(tables: Tables) -> Any:
        return lambda ids: SimpleNamespace(logits=logits_of(tables, ids))

    def speculative() -> Any:
        nets = network(scenario.target), network(scenario.draft)
        prompt = torch.tensor([scenario.prompt])
        made = decode(*nets, prompt, prompt.shape[1] + scenario.horizon, None, lookahead=1, debug=False)
        return made[0, len(scenario.prompt) :].tolist()

    return speculative
