"""Verifiers of a chain or a tree with small adapters: shreyansh26's, MCSD's, specexec's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch

from reference.tree_layouts import child_lists
from test_support.shipped.sources import functions_of

BONUS = (
    "bonus_token = int(torch.argmax(logits[prefix_start + len(draft_ids)], dim=-1).item())",
    "bonus_token = int(torch.multinomial(logits[prefix_start + len(draft_ids)].softmax(-1), 1).item())",
)
"""The token behind drafts that are all accepted, and what it would be drawn from."""


def shreyansh_probabilistic(*, mended: bool = False) -> Any:
    """``probabilistic_verify`` of shreyansh26's Speculative-Decoding."""
    names = ("VerificationResult", "_as_batch_tensor", "probabilistic_verify")
    given = dict(torch=torch, dataclass=dataclass, Sequence=Sequence, mended=BONUS if mended else None)
    own = functions_of("Speculative-Decoding-shreyansh26", "common/verification.py", *names, **given)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        class Model:
            device = torch.device("cpu")

            def __call__(self, _: Any) -> Any:
                return SimpleNamespace(logits=p.log()[None])

        return own.probabilistic_verify(Model(), [0], draft_tokens.tolist(), q).emitted_ids

    return verify


def mcsd(name: str) -> Any:
    """An acceptance check of MCSD, node by node as its ``TreeStrategy.verify`` walks, and the draw behind it."""
    check = functions_of("MCSD", "MCSD/inference/strategies.py", name, torch=torch, Optional=None, Tuple=None)
    accept = getattr(check, name)

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        below, node, taken = child_lists(parents), 0, []
        while below[node]:
            row = q[below[node][0] - 1].clone() if q is not None else None
            kept = accept(p[node], row, tokens[torch.tensor(below[node]) - 1])
            if kept is None:
                break
            node = below[node][kept]
            taken.append(int(tokens[node - 1]))
        return [*taken, torch.multinomial(p[node], 1)[0]]

    return verify


def specinfer() -> Any:
    """``SpecInfer._inference_step`` of specexec, node by node as its ``validate_tree`` walks."""
    given = dict(torch=torch, SpecBase=object, Tuple=tuple)
    step = functions_of("specexec", "specdec/spec_SI.py", "SpecInfer", **given).SpecInfer._inference_step

    def verify(p: Any, q: Any, parents: Any, tokens: Any) -> Any:
        below, node, taken = child_lists(parents), 0, []
        while below[node]:
            nodes = torch.tensor(below[node])
            kept, token = step(p[node], q[nodes[0] - 1], nodes, tokens[nodes - 1])
            taken.append(int(token))
            if kept is None:
                return taken
            node = int(kept)
        return [*taken, torch.multinomial(p[node], 1)[0]]

    return verify
