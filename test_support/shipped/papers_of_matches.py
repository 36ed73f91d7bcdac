"""The releases of papers that compare trees of argmaxes with draws, and of loops that work in parallel."""

from __future__ import annotations

from functools import partial

from reference import Claim
from specverify.base.verdict import Status
from specverify.laws.scenarios import Scenario
from test_support.shipped import matched_trees, parallel_loops, trees
from test_support.shipped.beside import Beside
from test_support.shipped.papers_of_trees import GREEDY, NOTHING, ONE_PATH, PADDED, TO_THE_LETTER, typical_decoder
from test_support.shipped.released import BOUNDARY, LAW, Released

WRONG = Status.REFUTED
EVERYTHING = frozenset(Claim)
TREES = ((-1, -1), (-1, -1, 0))
FIVE = tuple(
    Scenario(shape, 2, (0, 1, 0), 5, seed=seed) for shape, seed in (("generic", 0), ("equal", 2), ("point_draft", 2))
)
"""Texts of five tokens: the first is drawn alone, two drafts are verified, and the block behind them is not."""
TYPICAL = dict(temperature=1.0, posterior_threshold=0.4, posterior_alpha=0.8)

MATCHES = (
    Released(
        "Hydra, 2402.05109",
        "candidate-set",
        "Hydra",
        "`evaluate_posterior`, `temperature=0`, short paths padded with token 0 and `max_accepts`",
        partial(matched_trees.hydra, temperature=0, posterior_threshold=0.0, posterior_alpha=0.0),
        matched_trees.hydra,
        PADDED,
        "top_k",
        TO_THE_LETTER,
        claims=GREEDY,
        note=(
            "The code is Medusa's, which accepts padding; here `max_accepts` prevents this, because it stops at "
            "the end of every path."
        ),
    ),
    Released(
        "Hydra, 2402.05109",
        "typical-acceptance",
        "Hydra",
        "`evaluate_posterior`, temperature 1, one path, 0.4 and 0.8",
        partial(matched_trees.hydra, **TYPICAL),
        matched_trees.hydra,
        ONE_PATH,
        "top_k",
        claims=NOTHING,
        beside=(Beside("typical-acceptance", decoder=typical_decoder),),
    ),
    Released(
        "OPT-Tree, 2406.17276",
        "candidate-set",
        "OPT-Tree",
        "`verify` of `opt_classic`, sampling",
        matched_trees.opt_tree,
        matched_trees.opt_tree,
        TREES,
        "top_k",
        claims=EVERYTHING,
    ),
    Released(
        "UMbreLLa, Infini-AI-Lab/UMbreLLa",
        "candidate-set",
        "UMbreLLa",
        "`StaticSpeculationEngine.verify`, temperature 1, without truncation",
        matched_trees.umbrella,
        matched_trees.umbrella,
        TREES,
        "top_k",
        claims=EVERYTHING,
    ),
    Released(
        "Spec-Bench, 2401.07851",
        "rsd",
        "Spec-Bench",
        "`evaluate_posterior` of `model/eagle`, temperature 0.2, padded with -1",
        partial(trees.swift, padding=-1, source=trees.SPEC_BENCH, temperature=0.2),
        trees.swift,
        TREES,
        "without_replacement",
        expected={LAW: WRONG, BOUNDARY: WRONG},
        note=(
            "If all drafts are accepted, the next token is drawn from the softmax of the unscaled logits "
            "(`utils.py`, line 411). All other rows are divided by the temperature."
        ),
    ),
    Released(
        "Spec-Bench, 2401.07851",
        "rsd",
        "Spec-Bench",
        "the same at temperature 1",
        partial(trees.swift, padding=-1, source=trees.SPEC_BENCH),
        trees.swift,
        TREES,
        "without_replacement",
        claims=EVERYTHING,
        control=True,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "nano-PEARL, smart-lty/nano-PEARL",
        "sample-and-match",
        "nano-PEARL",
        "`pearl_step` and `verify` of both runners, gamma 2",
        lambda: parallel_loops.nano_pearl,
        parallel_loops.nano_pearl,
        FIVE,
        loop=True,
        expected={LAW: WRONG},
        note=(
            "After an accepted block the next block is appended, of which only the first token has been "
            "verified, and the text may end there (`pearl_model_runner.py`, line 650). So of five requested "
            "tokens the last may be the small model's argmax. After a rejected block the text may end one token "
            "early: in the first scenario 30 % of the texts have four tokens. (0, 1, 1, 0, 1) is emitted with "
            "probability 0.0915 in place of 0.0558."
        ),
    ),
    Released(
        "nano-PEARL, smart-lty/nano-PEARL",
        "sample-and-match",
        "nano-PEARL",
        "the same with one token more, which is not compared",
        lambda: partial(parallel_loops.nano_pearl, beyond=1),
        parallel_loops.nano_pearl,
        FIVE,
        loop=True,
        control=True,
    ),
)
