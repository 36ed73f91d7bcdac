"""Rules that engines ship and trainers run, beside their rows; the page lists them behind the papers."""

from __future__ import annotations

from functools import partial

from test_support.shipped import drafted_ahead
from test_support.shipped.beside import SOFT, Beside
from test_support.shipped.papers_of_trees import NOTHING
from test_support.shipped.released import Released

SHIPPED_RULES = (
    Released(
        "entropy verification, vllm-ascend",
        "entropy-verification",
        "vllm-ascend",
        "`rejection_sample` with `enable_entropy_verify`, 0.95 and 0.4",
        drafted_ahead.ascend_entropy,
        drafted_ahead.ascend_entropy,
        (1, 2),
        claims=NOTHING,
        beside=(
            Beside("entropy-verification", {"threshold": 0.95, "alpha": 0.4}),
            Beside("lenience", {"lenience": 0.95}, parts=True),
        ),
    ),
    Released(
        "SPEC-RL, 2509.23232",
        "spec-rl",
        "Spec-RL",
        "`spec_cut`, its uniforms not seeded",
        lambda: drafted_ahead.spec_rl,
        drafted_ahead.spec_rl,
        SOFT,
        loop=True,
        claims=NOTHING,
        beside=(Beside("spec-rl", {"lenience": 1}), Beside("speculative-sampling", parts=True)),
    ),
    Released(
        "DSpark, 2607.05147",
        "dspark",
        "DeepSpec",
        "`VanillaMarkov.sample_block_tokens` and `verify_draft_tokens`, a block of one",
        lambda: partial(drafted_ahead.dspark, block=1),
        drafted_ahead.dspark,
        SOFT,
        loop=True,
    ),
)
