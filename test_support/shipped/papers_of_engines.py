"""Rules that engines ship and trainers use, with their rows; the page lists them after the papers."""

from __future__ import annotations

from functools import partial

from specverify.base.verdict import Status
from specverify.laws.scenarios import Scenario
from test_support.shipped import aligned, drafted_ahead, swept
from test_support.shipped.beside import SMALL, SOFT, Beside
from test_support.shipped.papers_of_trees import NOTHING
from test_support.shipped.released import BOUNDARY, LAW, SUPPORT, Released

APART = tuple(scenario for scenario in SMALL if scenario.shape == "generic")
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
        "`spec_cut`, with uniforms that are not seeded",
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
        note=(
            "As released, a sweep continues after a rejection. Drafts that are kept there are verified again in "
            "the next sweep against the row of this sweep, and the law is p."
        ),
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
        note=(
            "If every draft of a window is kept, the next token of the text is drawn from the uniform rows that "
            "pad the residuals (lines 201 to 208), and p after the last draft is not read. In a window of 64 "
            "this is rare."
        ),
    ),
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "`SJDPACSpeculativeSampler` with two siblings at the first position",
        lambda: partial(swept.sjd_pac, nodes=4, depth=2),
        swept.sjd_pac,
        SHORT,
        loop=True,
        expected={LAW: Status.REFUTED},
        note=(
            "The siblings of the first sweep are drawn independently (`get_multi_token_for_preparation`) and "
            "verified as if they were drawn without replacement. If both siblings are the same token, the "
            "residual is empty, and the token is drawn uniformly. With 8 192 image tokens equal siblings are "
            "rare."
        ),
    ),
    Released(
        "SJD-PAC, 2603.18599",
        "sjd-pac",
        "SJD-PAC",
        "the same, with two different tokens as siblings of the first sweep",
        lambda: partial(swept.sjd_pac, nodes=4, depth=2, apart=True),
        swept.sjd_pac,
        SHORT,
        loop=True,
        control=True,
    ),
    Released(
        "TokenTiming, 2510.15545",
        "token-timing",
        "TokenTiming",
        "`get_target_logits_with_dtw` and `_speculative_sampling`, with words of two draft tokens",
        aligned.token_timing,
        aligned.token_timing,
        (1, 2),
        note=(
            "Each row that the alignment returns has one finite logit, at the drafted token, so its softmax is "
            "1 there, whatever the drafter's probability was. A draft is kept with probability p(t); the "
            "comparison is `<=`, so a uniform of 0 keeps a draft with p(t) = 0."
        ),
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
        note=(
            "The fork divides p(d) by the largest entry of q and not by q(d) (`q_i_values, _ = q.max(dim=-1)`); "
            "with its own one-hot rows both are equal. Assisted generation with one vocabulary uses the same "
            "code. If p = q, it rejects, nothing is left of p - q, and `torch.multinomial` raises."
        ),
        scenarios=APART,
        expected={LAW: Status.REFUTED, SUPPORT: Status.UNKNOWN, BOUNDARY: Status.UNUSABLE},
    ),
)
