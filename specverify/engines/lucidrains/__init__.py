"""``speculative_decoding`` of lucidrains with its own networks, tiny: one row at a time, and batches."""

from __future__ import annotations

from specverify.engines import sampled_engine

ENGINE = sampled_engine(
    __name__,
    name="speculative-decoding (lucidrains)",
    requirement="speculative-decoding",
    call="speculative-decoding of lucidrains",
)
