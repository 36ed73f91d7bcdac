"""The releases of papers whose loops take argmaxes, or whose verifiers take trees."""

from __future__ import annotations

from functools import partial

from reference import Claim, argmax, one_hot
from reference.algorithms import lantern_released
from reference.algorithms.rest_released import one_draw_a_row
from reference.algorithms.typical_acceptance import typical_threshold
from reference.drafters.model import greedy_drafter
from reference.lengths.constant import constant
from reference.models import draft_model
from reference.rounds import assembled
from reference.types import Parts, Verified
from reference.verifiers.accept_or_replace import accept_or_replace
from specverify.base.verdict import Status
from specverify.laws.scenarios import SCENARIOS
from specverify.subjects.tree_verifier import drafter_decoder
from test_support.shipped import greedy_loops, trees
from test_support.shipped.beside import LONG, Beside
from test_support.shipped.released import ARGMAX, BOUNDARY, LAW, Released

WRONG = Status.REFUTED
NOTHING: frozenset[Claim] = frozenset()
EVERYTHING = frozenset(Claim)
GREEDY = frozenset({Claim.GREEDY})
ONE_PATH = ((-1,), (-1, 0))
PADDED = ((-1, 0, -1, 2, 3),)
TO_THE_LETTER = tuple(scenario for scenario in SCENARIOS if scenario.greedy)
"""One-hot targets, texts of up to 5 tokens."""
EVEN_TREES = ((-1, -1), (-1, 0), (-1, -1, 0, 1))


def lantern_decoder(neighbours, delta, task, shape):
    return lantern_released.build(task, neighbours=neighbours, delta=delta, gamma=len(shape))


def rest_decoder(task, shape):
    return drafter_decoder(task, "top_k", shape, one_draw_a_row)


def typical_decoder(task, shape):
    """Typical acceptance of the drafter's argmaxes; a round without drafts is one draw from p, as it is examined."""
    rule = accept_or_replace(
        accept=lambda prefix, p, q, token: int(p[token] > typical_threshold(p, 0.4, 0.8)),
        replacement=lambda p, q, token: one_hot(argmax(p), p),
        bonus=lambda p: one_hot(argmax(p), p),
    )

    def verify(draws, target, prefix, draft):
        if draft.tokens:
            return rule(draws, target, prefix, draft)
        return Verified((draws.categorical(target(prefix), ("bonus",)),), 0)

    return assembled(task, Parts(greedy_drafter(draft_model(task)), constant(len(shape)), verify))


ARGMAXES_AND_TREES = (
    Released(
        "BiLD, 2302.07863",
        "bild",
        "BigLittleDecoder",
        "`T5BiLDModel._greedy_search_body`, thresholds 0.5 and 1, 2 small iterations",
        lambda: greedy_loops.bild,
        greedy_loops.bild,
        LONG,
        loop=True,
        claims=NOTHING,
        beside=(
            Beside("bild", {"fallback": 0.5, "rollback": 1.0, "gamma": 2}, parts=True),
            Beside("bild-released", {"fallback": 0.5, "rollback": 1.0, "gamma": 2}),
        ),
        note=(
            "The law is not wrong, but it is the law of another rule than that of Section 3: the first token is "
            "the large model's, a rollback is followed by one more of its tokens, and a text may end with "
            "tokens of the small model that the large model has not verified."
        ),
    ),
    Released(
        "Kangaroo, 2404.18911",
        "kangaroo",
        "Kangaroo",
        "`kangaroo_forward`, threshold 0.5, 2 steps",
        lambda: greedy_loops.kangaroo,
        greedy_loops.kangaroo,
        LONG,
        loop=True,
        claims=NOTHING,
        beside=(Beside("kangaroo", {"threshold": 0.5, "gamma": 2}),),
    ),
    Released(
        "Token Recycling, 2408.08696",
        "token-recycling",
        "TokenRecycling",
        "`recycling_forward`, a tree of three nodes",
        lambda: greedy_loops.token_recycling,
        greedy_loops.token_recycling,
        LONG,
        loop=True,
        claims=NOTHING,
        beside=(Beside("greedy-speculation", {"gamma": 1}),),
        note=("The release has no sampling. Its greedy text is compared with that of the algorithm at temperature 0."),
    ),
    Released(
        "Ouroboros, 2402.13720",
        "ouroboros",
        "Ouroboros",
        "`ouroboros` with its caches and pool, gamma 2, level 3, 2 guesses",
        lambda: greedy_loops.ouroboros,
        greedy_loops.ouroboros,
        LONG,
        loop=True,
        claims=NOTHING,
        beside=(Beside("greedy-speculation", {"gamma": 1}),),
        note=(
            "The release has no sampling. Its greedy text is compared with that of the algorithm at temperature "
            "0. The small model's own lookahead, which also fills the pool, is a plain greedy draft here."
        ),
    ),
    Released(
        "REST, 2311.08252",
        "rest",
        "REST",
        "`evaluate_posterior` and the draw after it, without truncation",
        trees.rest,
        trees.rest,
        EVEN_TREES,
        "top_k",
        expected={LAW: WRONG},
        beside=(Beside("rest-released", decoder=rest_decoder),),
        note=(
            "Paths that share a place draw a token for it each. The token after the longest match is drawn "
            "anew, whatever was drawn there before. So a candidate d that has no siblings is emitted with "
            "probability p(d) (2 - p(d))."
        ),
    ),
    Released(
        "REST, 2311.08252",
        "rest",
        "REST",
        "the same at temperature 0",
        partial(trees.rest, temperature=0),
        trees.rest,
        EVEN_TREES,
        "top_k",
        claims=GREEDY,
        control=True,
    ),
    Released(
        "LANTERN, 2410.03355",
        "lantern-released",
        "LANTERN",
        "`evaluate_posterior`, one path, 1 neighbour within 0.3",
        trees.lantern,
        trees.lantern,
        ONE_PATH,
        "top_k",
        claims=NOTHING,
        beside=(Beside("lantern-released", decoder=partial(lantern_decoder, 1, 0.3)),),
        note=(
            "The paper relaxes the law on purpose. The algorithm compared is that of the release; `reference/` "
            "has none for the rule of the paper's text."
        ),
    ),
    Released(
        "LANTERN, 2410.03355",
        "candidate-set",
        "LANTERN",
        "`evaluate_posterior` with `lantern=False`",
        partial(trees.lantern, lantern=False),
        trees.lantern,
        ((-1, -1), (-1, -1, 0)),
        "top_k",
        claims=EVERYTHING,
        control=True,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "EAGLE-2, 2406.16858",
        "eagle-2",
        "EAGLE",
        "`evaluate_posterior` of `model/utils.py`, sampling",
        trees.eagle,
        trees.eagle,
        ((-1, -1, -1), (-1, 0, -1, 2, 3)),
        "top_k",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "EAGLE, 2401.15077",
        "rsd",
        "EAGLE",
        "`evaluate_posterior` of `modeling_eagle.py`, a batch of one",
        lambda: trees.one_row(trees.eagle_batches()),
        trees.eagle_batches,
        ((-1,), (-1, -1, 0, 0)),
        "without_replacement",
        expected={LAW: WRONG, BOUNDARY: WRONG},
        note=(
            "`candidates.shape[1]` is the number of paths, not the depth. So after a first draft is rejected, "
            "the code draws from p and not from the residual. Larger tables, in `findings/tree-verifiers.md`, "
            "also refute *greedy is argmax*."
        ),
    ),
    Released(
        "EAGLE, 2401.15077",
        "rsd",
        "EAGLE",
        "the same with `shape[2]`",
        lambda: trees.one_row(trees.eagle_batches(mended=True)),
        trees.eagle_batches,
        ((-1,), (-1, -1, 0, 0)),
        "without_replacement",
        control=True,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "Sequoia, 2402.12374",
        "sequoia",
        "Sequoia",
        "`SpecTree.accept_step`, with its `get_residual`",
        trees.sequoia,
        trees.sequoia,
        ((-1, -1), (-1, -1, 0)),
        "without_replacement",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "Medusa, 2401.10774",
        "typical-acceptance",
        "Medusa",
        '`evaluate_posterior`, `sampling="typical"`, `fast=True`, one path, 0.4 and 0.8',
        partial(trees.medusa, trees.greedy, posterior_threshold=0.4, posterior_alpha=0.8, fast=True, temperature=1.0),
        trees.medusa,
        ONE_PATH,
        "top_k",
        claims=NOTHING,
        beside=(Beside("typical-acceptance", decoder=typical_decoder),),
    ),
    Released(
        "Medusa, 2401.10774",
        "medusa",
        "Medusa",
        "`evaluate_posterior`, `temperature=0`, short paths padded with token 0 as by `generate_candidates`",
        partial(trees.medusa, trees.greedy, temperature=0),
        trees.medusa,
        PADDED,
        "top_k",
        TO_THE_LETTER,
        claims=GREEDY,
        expected={ARGMAX: WRONG},
        note=(
            "If the target's token after the leaf of a short path is token 0, padding is accepted as a draft, "
            "and the next token is read at another node. The fault needs texts of 5 tokens. More in "
            "`findings/tree-verifiers.md`."
        ),
    ),
    Released(
        "Medusa, 2401.10774",
        "medusa",
        "Medusa",
        "the same, padded with -1",
        partial(trees.medusa, trees.greedy, padding=-1, temperature=0),
        trees.medusa,
        PADDED,
        "top_k",
        TO_THE_LETTER,
        claims=GREEDY,
        control=True,
    ),
    Released(
        "Medusa, 2401.10774",
        "typical-sampling-released",
        "Medusa",
        '`evaluate_posterior`, `sampling="typical"`, `fast=False`, one path',
        partial(trees.medusa, trees.greedy, fast=False, temperature=1.0),
        trees.medusa,
        ONE_PATH,
        "top_k",
        claims=NOTHING,
        beside=(Beside("typical-sampling-released", {"epsilon": 0.4, "delta": 0.8}, parts=True),),
        note=(
            "`get_typical_posterior_mask` takes five arguments and is called with six, so every call in this "
            "mode raises."
        ),
    ),
)
