"""Verifiers of one draft that papers released with a rule of their own, each called with its arguments."""

from __future__ import annotations

from typing import Any

import torch

from test_support.shipped.sources import functions_of

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


def jacobi() -> Any:
    """``SpeculativeSampler`` of speculative Jacobi decoding, one sweep: drafts and the rows they were drawn from."""
    path = "scheduler/jacobi_iteration_lumina_mgpt.py"
    taken = functions_of("SJD", path, "SpeculativeSampler", torch=torch, F=torch.nn.functional)

    def verify(p: Any, q: Any, draft_tokens: Any) -> Any:
        sampler = taken.SpeculativeSampler(
            reject_sampling_relative_ids=torch.zeros(1, dtype=torch.long),
            reject_sampling_draft_token_logits=torch.zeros(1, p.shape[1], dtype=p.dtype),
            sampling_last_draft_token=torch.zeros(1, dtype=torch.long),
        )
        before = torch.zeros(1, 1, dtype=torch.long)
        drafts = torch.cat([before, draft_tokens[None]], 1)
        swept = torch.cat([draft_tokens, torch.multinomial(p[-1], 1)])[None]
        ends, tokens, _ = sampler(drafts, swept, torch.cat([q[:1], q])[None], p[None], all_collected_input_ids=before)
        return tokens[0, : ends[0]]

    return verify


def _never(*_: Any, **__: Any) -> bool:
    return False
