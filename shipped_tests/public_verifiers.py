"""Verifiers of public repositories: of one draft, of trees, of the candidates of beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from sources import functions_of

from reference.tree_layouts import child_lists


def shreyansh_probabilistic() -> Any:
    """``probabilistic_verify`` of shreyansh26's Speculative-Decoding."""
    names = ("VerificationResult", "_as_batch_tensor", "probabilistic_verify")
    given = dict(torch=torch, dataclass=dataclass, Sequence=Sequence)
    own = functions_of("Speculative-Decoding-shreyansh26", "common/verification.py", *names, **given)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        class Model:
            device = torch.device("cpu")

            def __call__(self, _: Any) -> Any:
                return SimpleNamespace(logits=p.log()[None])

        return own.probabilistic_verify(Model(), [0], draft_tokens.tolist(), q).emitted_ids

    return verify


V2 = "speculative_decoding/algorithms/optimized_speculative_decoding_v2.py"


def optimized(method: str) -> Any:
    """A method of ``OptimizedSpeculativeDecoderV2`` of txxnrd."""
    given = dict(torch=torch, F=torch.nn.functional, Any=Any)
    own = functions_of("Speculative_Decoding", V2, "OptimizedSpeculativeDecoderV2", **given)
    return getattr(own.OptimizedSpeculativeDecoderV2, method)


def txxnrd() -> Any:
    """``_verify_and_accept_tokens`` of txxnrd, with its logits of the target behind the last draft left out."""
    decide = optimized("_verify_and_accept_tokens")

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        if len(draft_tokens) == 0:
            return torch.multinomial(p[-1], 1)
        made, *_ = decide(None, draft_tokens[None], q.log()[None], p[:-1].log()[None])
        return made[0]

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
