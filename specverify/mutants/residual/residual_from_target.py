"""After a rejection the token is drawn from p instead of norm((p - q)+): the output is min(p, q) + TV(p, q) p."""

from __future__ import annotations

from specverify.mutants.mutant import planted, replacing_from

MUTANT = planted(
    "speculative-sampling",
    "residual-from-target",
    "a rejection draws from p, not the residual",
    replacing_from(lambda p, q: p),
    category="C",
    citation="rtp-llm commit 2d9860463; romsto/Speculative-Decoding commits 53922df, 0b1fa52 (skip_sample_adjustment)",
    killed_by="law_is_target",
    examples=({"gamma": 1}, {"gamma": 2}),
)
