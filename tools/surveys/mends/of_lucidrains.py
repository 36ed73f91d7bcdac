"""The change that corrects the cause in lucidrains' speculative-decoding."""

from __future__ import annotations

from mends.mending import Change, Edit

OF_CAUSE: dict[str, tuple[Change, ...]] = {
    "rows of a batch read padding": (
        Edit(
            "speculative_decoding.speculative_decoding:Decoder.forward",
            " attn(x, rotary_emb",
            " attn(x, context_mask = self_attn_kv_mask, rotary_emb",
        ),
    ),
}
