"""Rules that engines ship and trainers run, beside their rows; the page lists them behind the papers."""

from __future__ import annotations

from functools import partial

import aligned
import drafted_ahead
import swept
from beside import SMALL, SOFT, Beside
from papers_of_trees import NOTHING
from released import BOUNDARY, LAW, Released

from specverify.base.verdict import Status
from specverify.laws.scenarios import Scenario

APART = tuple(scenario for scenario in SMALL if scenario.shape == "generic" and not scenario.greedy)
"""Scenarios in which p and q differ in every row."""
SHORT = tuple(Scenario("generic", 2, (0, 1, 0), 2, seed=seed) for seed in (0, 1))
"""Texts of two tokens: a window of SJD-PAC draws at every place of every sweep."""

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
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "`SJDPACSpeculativeSampler` without siblings, a window of 3 drafts",
        lambda: partial(swept.sjd_pac, nodes=4),
        swept.sjd_pac,
        SHORT,
        loop=True,
    ),
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "the same with one draft",
        lambda: partial(swept.sjd_pac, nodes=2),
        swept.sjd_pac,
        SHORT,
        loop=True,
        expected={LAW: Status.REFUTED},
    ),
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "`SJDPACSpeculativeSampler` with two siblings at the first place",
        lambda: partial(swept.sjd_pac, nodes=4, depth=2),
        swept.sjd_pac,
        SHORT,
        loop=True,
        expected={LAW: Status.REFUTED},
    ),
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "the same, the siblings of the first sweep two tokens",
        lambda: partial(swept.sjd_pac, nodes=4, depth=2, apart=True),
        swept.sjd_pac,
        SHORT,
        loop=True,
        expected={LAW: Status.REFUTED},
    ),
    Released(
        "TokenTiming, 2510.15545",
        "token-timing",
        "TokenTiming",
        "`get_target_logits_with_dtw` and `_speculative_sampling`, the drafter's words two tokens long",
        aligned.token_timing,
        aligned.token_timing,
        (1, 2),
        expected={BOUNDARY: Status.REFUTED},
    ),
    Released(
        "TokenTiming, 2510.15545",
        "speculative-sampling",
        "TokenTiming",
        "`_speculative_sampling` of its fork on the drafter's own rows",
        aligned.sampled_rows,
        aligned.sampled_rows,
        (1, 2),
        scenarios=APART,
        expected={LAW: Status.REFUTED, BOUNDARY: Status.REFUTED},
    ),
)
