"""Verifiers of trees of argmaxes that compare each node with a draw, or an argmax, after its parent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from reference.kv_cache import tree_depths
from reference.tree_layouts import path_candidates, path_indices
from test_support.shipped.sources import functions_of


def hydra(**options: Any) -> Any:
    """``evaluate_posterior`` of Hydra, which pads short paths with token 0; the next token is an argmax."""
    own = functions_of("Hydra", "hydra/model/utils.py", "evaluate_posterior", torch=torch)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        indices = path_indices(parents)
        candidates, logits = path_candidates(tokens, indices, padding=0), p[indices].log()
        best, length = own.evaluate_posterior(logits, candidates, max_accepts=(indices > 0).sum(1), **options)
        return [*candidates[best, 1 : 1 + length], logits[best, length].argmax()]

    return verify


def opt_tree(*, sampling: bool = True) -> Any:
    """``verify`` of OPT-Tree; a node below the root names itself as its parent, and its next tree is not looked at."""
    own = functions_of("OPT-Tree", "opt_classic/utils.py", "verify", torch=torch)
    nothing = torch.zeros(1, 0, dtype=torch.long), torch.ones(1, dtype=torch.long), torch.zeros(0, 0), None
    processor = (lambda _, logits: logits) if sampling else None

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        depths = torch.tensor([0, *(1 + depth for depth in tree_depths(parents.tolist()))])
        of_each = torch.where(parents == -1, torch.arange(len(tokens)), parents)
        draft = torch.cat([torch.zeros(1, dtype=torch.long), tokens])[None]
        model, cache = SimpleNamespace(draft=lambda *_: nothing), torch.zeros(1, len(p), 1)
        held = torch.tensor([len(p)])
        given = torch.zeros(1, 1, dtype=torch.long), p.log()[None], draft, depths, None, [cache], held, of_each, model
        _, kept, _, following, *_ = own.verify(*given, len(tokens), 0.0, 1, processor)
        return torch.cat([torch.tensor(kept[1:], dtype=torch.long), following[0, :1]])

    return verify


def umbrella(*, temperature: float = 1.0) -> Any:
    """``StaticSpeculationEngine.verify`` of UMbreLLa; a draw of torch stands for the kernel it samples with."""

    def draw(logits: Any, *_: Any) -> Any:
        return torch.multinomial(logits.softmax(-1), 1)[:, 0], None

    utils = "umbrella/speculation/speculation_utils.py"
    first = functions_of("UMbreLLa", utils, "find_first_element_position", torch=torch).find_first_element_position
    given = dict(torch=torch, BaseEngine=object, find_first_element_position=first)
    kernel = SimpleNamespace(sampling=SimpleNamespace(top_k_top_p_sampling_from_logits=draw))
    path = "umbrella/speculation/static_speculation_engine.py"
    engine = functions_of("UMbreLLa", path, "StaticSpeculationEngine", flashinfer=kernel, **given)
    cache = SimpleNamespace(kv_cache=SimpleNamespace(gather_kv_incremental=lambda *_: None))

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        size, above = len(p), [0, *(1 + parent for parent in parents.tolist())]
        mask = torch.eye(size, dtype=torch.bool)
        for node in range(1, size):
            mask[node] |= mask[above[node]]
        room = 4 * size
        text = torch.cat([torch.zeros(1, dtype=torch.long), tokens, torch.zeros(room - size, dtype=torch.long)])
        target = SimpleNamespace(inference=lambda **_: (p.log() * temperature,), kv_cache=cache.kv_cache)
        itself = SimpleNamespace(
            tokens=text[None],
            position_ids=torch.zeros(1, room, dtype=torch.long),
            storage_ids=torch.arange(room),
            attn_mask=torch.zeros(room, 2 * room, dtype=torch.bool),
            attn_mask_this_iter=torch.zeros(size, room, dtype=torch.bool),
            num_nodes=0,
            num_draft_tokens_this_iter=size,
            tree_size=size,
            tree_mask=mask,
            node_in_path=mask.int().sum(-1),
            depth=mask.sum(-1) - 1,
            parents=torch.tensor(above),
            max_length=room,
            eos_tokens=[-1],
            repetition_penalty=1.0,
            temperature=temperature,
            uniform_samples=None,
            topk=p.shape[1],
            topp=1.0,
            draft_model=cache,
            target_model=target,
        )
        engine.StaticSpeculationEngine.verify(itself)
        return itself.tokens[0, 1 : 1 + itself.num_nodes]

    return verify
