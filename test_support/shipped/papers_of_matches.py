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
        note="The code is Medusa's, which accepts padding; `max_accepts` ends every path where it ends.",
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
        "`StaticSpeculationEngine.verify`, temperature 1, top-k and top-p whole",
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
            "The token behind drafts that are all accepted is drawn from the softmax of the logits themselves "
            "(`utils.py`, line 411), without the temperature that every other row has gone through."
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
            "A block that is accepted appends the next one, of which its first token alone has been verified, and the "
            "text may end there (`pearl_model_runner.py`, line 650): of five tokens asked for the last is then the "
            "small model's argmax. Where a block is rejected the text may end a token early: in the first scenario "
            "30 % of the texts have four tokens, and (0, 1, 1, 0, 1) comes out with 0.0915 for 0.0558."
        ),
    ),
    Released(
        "nano-PEARL, smart-lty/nano-PEARL",
        "sample-and-match",
        "nano-PEARL",
        "the same, asked for one token more, which is not looked at",
        lambda: partial(parallel_loops.nano_pearl, beyond=1),
        parallel_loops.nano_pearl,
        FIVE,
        loop=True,
        control=True,
    ),
)
