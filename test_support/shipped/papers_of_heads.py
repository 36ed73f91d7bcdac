"""The releases of papers whose drafts are the target's own or a head's, and verifiers of trees beside them."""

from __future__ import annotations

from functools import partial

from reference import Claim
from specverify.base.verdict import Status
from test_support.shipped import paper_loops, public_verifiers
from test_support.shipped.released import BOUNDARY, LAW, Released

WRONG = Status.REFUTED
EVERYTHING = frozenset(Claim)
TREES = ((-1, -1), (-1, -1, 0))

HEADS_AND_MORE = (
    Released(
        "ReDrafter, 2403.09919",
        "redrafter",
        "ml-recurrent-drafter",
        "`beam_search_candidates` (2 beams of one token), `_choose_from_candidates`, `_prepare_next_input`",
        lambda: partial(paper_loops.redrafter, width=2),
        paper_loops.redrafter,
        loop=True,
        expected={LAW: WRONG},
        note=(
            "Beams are searched, not drawn, but each token of a beam is accepted with min(1, p/q) as if it had "
            "been drawn from q; a rejected token leaves norm((p - q)+). Of several beams the one with most "
            "accepted tokens is kept."
        ),
    ),
    Released(
        "ReDrafter, 2403.09919",
        "redrafter",
        "ml-recurrent-drafter",
        "the same with one beam, drawn from q",
        lambda: partial(paper_loops.redrafter, drawn=True),
        paper_loops.redrafter,
        loop=True,
        control=True,
    ),
    Released(
        "LayerSkip, 2404.16710",
        "layerskip",
        "LayerSkip",
        "`SelfSpeculativeGenerationStrategy`, `sample`, at most 2 drafts",
        lambda: paper_loops.layerskip,
        paper_loops.layerskip,
        loop=True,
    ),
    Released(
        "Lookahead decoding, 2402.02057",
        "lookahead",
        "LookaheadDecoding",
        "`jacobi_sample_multilevel`, level 3, window 2, 2 guesses, the pool filled from the prompt",
        lambda: paper_loops.lookahead,
        paper_loops.lookahead,
        loop=True,
    ),
    Released(
        "MCSD, 2401.06706",
        "rsd",
        "MCSD",
        "`_MCSSwoReplacement`",
        partial(public_verifiers.mcsd, "_MCSSwoReplacement"),
        public_verifiers.mcsd,
        TREES,
        "without_replacement",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "MCSD, 2401.06706",
        "specinfer",
        "MCSD",
        "`_MCSSwReplacement`",
        partial(public_verifiers.mcsd, "_MCSSwReplacement"),
        public_verifiers.mcsd,
        TREES,
        "with_replacement",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "SpecExec, 2406.02532",
        "rsd",
        "specexec",
        "`SpecInfer._inference_step`, the paper's baseline",
        public_verifiers.specinfer,
        public_verifiers.specinfer,
        TREES,
        "without_replacement",
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "Speculative decoding, 2211.17192 (shreyansh26)",
        "speculative-sampling",
        "Speculative-Decoding-shreyansh26",
        "`probabilistic_verify`",
        public_verifiers.shreyansh_probabilistic,
        public_verifiers.shreyansh_probabilistic,
        (1, 2),
        expected={LAW: WRONG, BOUNDARY: WRONG},
        note=(
            "If all drafts are accepted, the next token is the argmax of p (`common/verification.py`, line "
            "482). All other tokens are drawn."
        ),
    ),
    Released(
        "Speculative decoding, 2211.17192 (shreyansh26)",
        "speculative-sampling",
        "Speculative-Decoding-shreyansh26",
        "the same with the last token drawn",
        partial(public_verifiers.shreyansh_probabilistic, mended=True),
        public_verifiers.shreyansh_probabilistic,
        (1, 2),
        control=True,
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
    ),
)
