"""The releases of papers that loosen a rule or decide a block together: Cactus, FLy, SWIFT, SpecTr-GBV."""

from __future__ import annotations

from functools import partial

from reference import Claim, argmax
from reference.algorithms.fly import staying, top_entropy
from reference.drafters.model import greedy_drafter
from reference.lengths.constant import constant
from reference.models import draft_model
from reference.rounds import assembled
from reference.types import Parts, Verified
from specverify.base.verdict import Status
from specverify.laws.scenarios import Scenario
from test_support.shipped import chains, joint_loops, trees
from test_support.shipped.beside import LOOPS, Beside
from test_support.shipped.released import BOUNDARY, LAW, Released

WRONG = Status.REFUTED
NOTHING: frozenset[Claim] = frozenset()
EVERYTHING = frozenset(Claim)
SPINES = ((-1, -1), (-1, 0, 0), (-1, -1, 0))
"""Trees of which the first node of a level alone has children, as SWIFT's have."""
WIDE = tuple(Scenario(shape, 3, (0, 1, 0), 6, seed=seed) for shape in ("generic", "peaked") for seed in range(4))
"""Texts of six tokens; the three largest entries are there, and none is 0."""


def fly_at_zero(window, threshold, gamma, task, _):
    """FLy with argmaxes for the target's draws, and the entropies of its rows as they are."""

    def verify(draws, target, prefix, draft):
        rows = [target(prefix + draft.tokens[:place]) for place in range(len(draft.tokens) + 1)]
        met = tuple(argmax(p) == token for p, token in zip(rows, draft.tokens, strict=False))
        stay = staying(met, tuple(top_entropy(p) >= threshold for p in rows[:-1]), window)
        return Verified((*draft.tokens[:stay], argmax(rows[stay])), stay)

    return assembled(task, Parts(greedy_drafter(draft_model(task)), constant(gamma), verify))


BLOCKS_AND_LOOSE_RULES = (
    Released(
        "Cactus, 2604.04987",
        "cactus",
        "Cactus",
        "`CactusRejectionSampler` in torch, `delta` 0.1, over vLLM 0.8.0's sampler",
        lambda: chains.row(chains.cactus(0.1)),
        chains.cactus,
        (1, 2),
        claims=NOTHING,
        beside=(Beside("cactus", {"delta": 0.1}),),
    ),
    Released(
        "Cactus, 2604.04987",
        "speculative-sampling",
        "Cactus",
        "the same with `delta` 0",
        lambda: chains.row(chains.cactus(0.0)),
        chains.cactus,
        (1, 2),
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
        control=True,
    ),
    Released(
        "FLy, 2511.22972",
        "fly",
        "FLy",
        "`generate_chunks` with `_batch_verification`, temperature 0, `win_len` 2, `entropy_thre` 0.5, 4 drafts",
        lambda: partial(joint_loops.fly, window=2, threshold=0.5, gamma=4, temperature=0),
        joint_loops.fly,
        WIDE,
        loop=True,
        claims=NOTHING,
        beside=(Beside("fly", decoder=partial(fly_at_zero, 2, 0.5, 4), untrimmed=4),),
        note=(
            "The algorithm is compared where both draws of the target are its argmax; entropies are those of p. "
            "A vocabulary of two raises, because there are no three largest entries. If one of the three is 0, "
            "the entropy is NaN, which is below no threshold, and the mismatch is excused; no table here has "
            "such an entry."
        ),
    ),
    Released(
        "SWIFT, 2410.06916",
        "swift",
        "SWIFT",
        "`evaluate_posterior`, sampling, short paths padded with token 0 as by `generate_candidates`",
        trees.swift,
        trees.swift,
        SPINES,
        "without_replacement",
        claims=EVERYTHING,
        expected={LAW: WRONG, BOUNDARY: WRONG},
        note=(
            "If a sibling of the path is accepted above the last level, nothing hangs below it, and padding is "
            "tried: token 0, as if it had been drafted with q = 1. It is accepted with probability p(0). The "
            "token after it is read at the last node of the tree, and after a rejection from the rows of "
            "another place. With padding of -1, which the function skips, the checks hold."
        ),
    ),
    Released(
        "SWIFT, 2410.06916",
        "swift",
        "SWIFT",
        "the same, padded with -1",
        partial(trees.swift, padding=-1),
        trees.swift,
        SPINES,
        "without_replacement",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
        control=True,
    ),
    Released(
        "SpecTr-GBV, 2604.25925",
        "block-verification",
        "SpecTr-GBV",
        "`speculative_decoding` with its `KVCacheModel`, one block of 2 drafts",
        lambda: partial(joint_loops.spectr_gbv, candidates=1, gamma=2),
        joint_loops.spectr_gbv,
        LOOPS[:1],
        loop=True,
        expected={LAW: WRONG},
        beside=(Beside("spectr-gbv-released", {"candidates": 1, "gamma": 2}, untrimmed=2),),
        note=(
            "With one block this is the greedy block verification of 2403.10444: min(p, q) of every prefix is "
            "kept, more than block verification keeps, so later rounds must use another target than p. The code "
            "uses p. With more blocks, which take minutes to enumerate here, the first token is wrong as well: "
            "see `spectr-gbv-released`."
        ),
    ),
)
