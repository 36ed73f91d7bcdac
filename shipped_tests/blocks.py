"""Verifiers of one draft that papers released with their own rule, each called by the lines that its arguments ask."""

from __future__ import annotations

from typing import Any

import torch
from sources import functions_of

HIERARCHICAL = "transformers/generation/utils.py"


def hierarchical(source: str, *, untabbed: bool = False, capped: bool = False) -> Any:
    """``_speculative_sampling`` with ``backward``; ``untabbed`` its tabs are spaces, ``capped`` its last coin too."""
    coin = "r_i <= probability_ratio"

    def mended(text: str) -> str:
        text = text.expandtabs(4) if untabbed else text
        return text.replace(coin, f"{coin} / largest_before(probability_ratio)", 1) if capped else text

    def largest_before(ratio: Any) -> Any:
        return torch.cummax(ratio.clamp(min=1), dim=1)[0]

    taken = functions_of(
        source, HIERARCHICAL, "_speculative_sampling", mended=mended, torch=torch, largest_before=largest_before
    )

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        text = torch.cat([torch.zeros(1, dtype=torch.long), draft_tokens])[None]
        done = torch.zeros(1, dtype=torch.bool)
        tokens, *_ = taken._speculative_sampling(
            text, q.log()[None], len(draft_tokens), p.log()[None], done, backward=True, stop=_never
        )
        return tokens[0]

    return verify


def _never(*_: Any, **__: Any) -> bool:
    return False
