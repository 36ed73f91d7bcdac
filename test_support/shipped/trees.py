"""Verifiers of trees of drafts: EAGLE's, Medusa's and Sequoia's, with their arguments."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from reference.algorithms.lantern_released import nearest
from reference.kv_cache import tree_depths
from reference.tree_layouts import child_lists, conditional_pmfs, path_candidates, path_indices
from test_support.shipped.sources import Mend, functions_of, module_of, replaced_once


def eagle(*, sampling: bool = True, mended: tuple[str, str] | None = None) -> Any:
    """``evaluate_posterior`` of EAGLE's ``model/utils.py``."""
    own = module_of("EAGLE", "eagle/model/utils.py", mended)
    processor = own.prepare_logits_processor(temperature=1.0) if sampling else None

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        indices = path_indices(parents)
        candidates = path_candidates(tokens, indices)
        best, length, row = own.evaluate_posterior(p[indices].log(), candidates, processor)
        accepted = candidates[best, 1 : 1 + length]
        return (accepted, row) if sampling else [*accepted, row.argmax()]

    return verify


def eagle_batches(*, mended: bool = False) -> Any:
    """``evaluate_posterior`` of EAGLE's ``modeling_eagle.py``, in batches; ``mended`` it looks at the depth."""
    words = ("accept_length != candidates.shape[1]", "accept_length != candidates.shape[2]") if mended else None
    own = functions_of(
        "EAGLE", "eagle/modeling_eagle.py", "evaluate_posterior", torch=torch, random=random, mended=words
    )

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        rows, shape = len(p), parents[0].tolist()
        indices, depths = path_indices(parents[0]), tree_depths(shape)
        candidates = torch.stack([path_candidates(row, indices) for row in tokens])
        earlier = [[1 + m for m in range(n) if shape[m] == shape[n]] for n in range(len(shape))]
        nodes = [node for node, depth in enumerate(depths)]
        levels = [
            list(dict.fromkeys(shape[node] for node in nodes if depths[node] == depth))
            for depth in range(max(depths) + 1)
        ]
        drafted = [torch.stack([q[:, shape.index(parent)] for parent in level], 1) for level in levels]
        paths = indices.tolist()
        place = [[-1 if n <= 0 else levels[depths[n - 1]].index(shape[n - 1]) for n in path] for path in paths]
        before = [[[] if n <= 0 else torch.tensor(earlier[n - 1], dtype=torch.long) for n in path] for path in paths]
        one = torch.ones(1, dtype=q.dtype)
        own_mass = [
            conditional_pmfs(*row).gather(1, row[2][:, None])[:, 0] for row in zip(q, parents, tokens, strict=True)
        ]
        mass = torch.stack([torch.cat([one, row, one])[indices] for row in own_mass])
        roots = torch.cat([torch.zeros(rows, 1, dtype=torch.long), tokens], 1)
        best, length, left = own.evaluate_posterior(
            p[:, indices].log(), candidates, _as_they_are, mass, drafted, place, roots, before, [False] * rows
        )
        return [(candidates[row, best[row], 1 : 1 + length[row]], left[row]) for row in range(rows)]

    return verify


SWIFT, SPEC_BENCH = ("SWIFT", "model/swift/utils.py"), ("Spec-Bench", "model/eagle/utils.py")


def swift(*, padding: int = 0, source: tuple[str, str] = SWIFT, temperature: float = 1.0) -> Any:
    """``evaluate_posterior`` of SWIFT; ``generate_candidates`` pads short paths with token 0, of q = 1.

    Spec-Bench's copy of EAGLE has the same arguments. The target's logits are such that p is theirs at ``temperature``.
    """
    own = functions_of(*source, "evaluate_posterior", torch=torch, random=random, Tuple=tuple)

    def warped(_: Any, logits: Any) -> Any:
        return logits / temperature

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        shape, indices = parents.tolist(), path_indices(parents)
        paths, depths = indices.tolist(), tree_depths(shape)
        candidates = path_candidates(tokens, indices, padding=padding)
        mass = conditional_pmfs(q, parents, tokens).gather(1, tokens[:, None])[:, 0]
        earlier = [[1 + m for m in range(n) if shape[m] == shape[n]] for n in range(len(shape))]
        before = [[[] if n <= 0 else earlier[n - 1] for n in path] for path in paths]
        drafted = [q[depths.index(depth)][None] for depth in range(1 + max(depths))]
        one = torch.ones(1, dtype=q.dtype)
        best, length, row = own.evaluate_posterior(
            p[indices].log() * temperature,
            candidates,
            warped,
            torch.cat([one, mass, one])[indices],
            drafted,
            [[0] * len(path) for path in paths],
            torch.cat([torch.zeros(1, dtype=torch.long), tokens])[None],
            before,
        )
        return candidates[best, 1 : 1 + length], row

    return verify


def one_row(verify: Any) -> Any:
    """Return the verifier of one tree, made from a verifier of batches."""

    def one(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        return verify(p[None], q[None], parents[None], tokens[None])[0]

    return one


def medusa(last: Callable[..., Any], *, padding: int = 0, mended: Mend | None = None, **options: Any) -> Any:
    """``evaluate_posterior`` of Medusa's ``model/utils.py``; it pads short paths with token 0."""
    own = module_of("Medusa", "medusa/model/utils.py", mended)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        indices = path_indices(parents)
        candidates = path_candidates(tokens, indices, padding=padding)
        logits = torch.log(p[indices])
        best, length = own.evaluate_posterior(logits, candidates, **options)
        return [*candidates[best, 1 : 1 + length], last(own, logits, best, length)]

    return verify


def greedy(_: Any, logits: Any, best: Any, length: Any) -> Any:
    """Medusa's next token at temperature 0, and with ``fast=True``."""
    return logits[best, length].argmax()


def nucleus(own: Any, logits: Any, best: Any, length: Any) -> Any:
    """Return Medusa's next token by nucleus sampling with a nucleus of all tokens."""
    return own.get_nucleus_one_token(logits[best, length][None].clone(), 1.0, 1.0)[0, 0]


def one_draw_a_node(text: str) -> str:
    """Give Medusa's paths with a common beginning one draw at each common node: that of the first path."""
    drawn = "        sampled_tokens = sampled_tokens.view(n_samples, n_tokens)\n"
    alike = "(candidates[:, None, :-1] == candidates[None, :, :-1]).int().cumprod(-1).argmax(1)"
    return replaced_once(
        drawn,
        f"{drawn}        global drawn\n        drawn = sampled_tokens.gather(0, {alike})\n"
        "        sampled_tokens = drawn\n",
        text,
    )


def drawn_already(own: Any, logits: Any, best: Any, length: Any) -> Any:
    """Return what was drawn where the path ends; behind a whole path nothing was drawn yet."""
    whole = length == own.drawn.shape[1]
    return nucleus(own, logits, best, length) if whole else own.drawn[best, length]


def sequoia(*, mended: tuple[str, str] | None = None) -> Any:
    """``SpecTree.accept_step`` of Sequoia with its ``get_residual``."""
    softmax = torch.nn.functional.softmax
    residual = functions_of("Sequoia", "utils.py", "get_residual", mended=mended, torch=torch).get_residual
    step = functions_of("Sequoia", "Tree/SpecTree.py", "SpecTree", torch=torch, softmax=softmax, Tree=object)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        lists = child_lists(parents)
        rows = torch.stack([q[below[0] - 1] if below else q[0] for below in lists])
        tree = SimpleNamespace(
            ground_truth_len=1,
            temperature=1.0,
            dtype=p.dtype,
            Successors=lists,
            target_logits=p,
            residual_graph=residual,
            draft_logits=torch.log(rows),
            tokens=torch.cat([tokens[:1], tokens]),
            r=torch.rand(len(p), dtype=p.dtype),
        )
        path = [0]
        while True:
            place, weights = step.SpecTree.accept_step(tree, path[-1])
            if place == -1:
                return tree.tokens[path[1:]], weights.clone()
            path.append(place)

    return verify


def rest(*, temperature: float = 1.0) -> Any:
    """``evaluate_posterior`` of REST with the nucleus whole, and its draw of what follows."""
    names = ("evaluate_posterior", "get_nucleus_posterior_mask", "top_p_filtering")
    own = functions_of("REST", "rest/model/utils.py", *names, torch=torch, F=torch.nn.functional)
    whole = 1 - 1e-12

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        indices = path_indices(parents)
        candidates = path_candidates(tokens, indices)
        best, length = own.evaluate_posterior(p[indices].log(), candidates, temperature, top_p=whole)
        if temperature == 0:
            return [*candidates[best, 1 : 1 + length], p[indices][best, length].argmax()]
        filtered = own.top_p_filtering(p[indices][best, length][None].log(), top_p=whole)
        return [*candidates[best, 1 : 1 + length], torch.multinomial(filtered.softmax(-1), 1)[0, 0]]

    return verify


def lantern(*, neighbours: int = 1, delta: float = 0.3, lantern: bool = True) -> Any:
    """``evaluate_posterior`` of LANTERN; codes are near each other as their numbers are, the lower one first."""
    own = functions_of("LANTERN", "models/ea_model_anole.py", "evaluate_posterior", torch=torch, random=random, np=np)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        size, indices = p.shape[1], path_indices(parents)
        codes = torch.tensor([nearest(token, size) for token in range(size)])
        candidates = path_candidates(tokens, indices)
        best, length, row = own.evaluate_posterior(
            SimpleNamespace(nearest_latents=codes, image_token_offset=0),
            p[indices].log(),
            candidates,
            _as_they_are,
            lantern=lantern,
            lantern_k=neighbours,
            lantern_delta=delta,
        )
        return candidates[best, 1 : 1 + length], row

    return verify


def _as_they_are(_: Any, logits: Any) -> Any:
    return logits
