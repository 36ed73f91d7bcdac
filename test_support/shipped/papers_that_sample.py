"""The releases of papers whose loops sample, or whose verifiers take one draft."""

from __future__ import annotations

from functools import partial

from reference import Claim
from specverify.base.verdict import Status
from specverify.laws.scenarios import Scenario
from test_support.shipped import blocks, chains, loops, staged_loops
from test_support.shipped.beside import SOFT, Beside
from test_support.shipped.released import BOUNDARY, LAW, Released

WRONG, RAISES = Status.REFUTED, Status.UNUSABLE
EVERYTHING = frozenset(Claim)
THREE = tuple(Scenario("generic", 2, (0, 1, 0), 3, seed=seed) for seed in (5, 6, 1, 7))
"""Texts of three tokens: the pool of n-grams must have been written to before a guess is known."""
HSD = "Hierarchical-Speculative-Decoding"


def hierarchical(what, source=HSD, *, note="", control=False, **mends):
    """One entry of the three about hierarchical speculative decoding."""
    apart = Beside("hierarchical-released", parts=control)
    return Released(
        "Hierarchical SD, 2601.05724",
        "hierarchical",
        source,
        f"`_speculative_sampling`, `backward`, one draft; {what}",
        partial(blocks.hierarchical, source, **mends),
        blocks.hierarchical,
        (1, 2, 3),
        expected={BOUNDARY: WRONG} if control else {LAW: WRONG, BOUNDARY: WRONG},
        beside=(apart,),
        control=control,
        note=note,
    )


SAMPLING = (
    hierarchical(
        "tabs replaced by four spaces",
        untabbed=True,
        note=(
            "The released file cannot be imported: line 5366 has tabs among spaces, and Python raises a "
            "TabError. It is examined with tabs of four spaces. Its fault: the block is kept with min(1, r), "
            "where r is the plain product of p/q, while all other coins use the largest product of the prefixes "
            "before them. The fault needs two drafts."
        ),
    ),
    hierarchical("the last commit that can be imported", f"{HSD}-compiles"),
    hierarchical(
        "with the cap also on the test of the whole block",
        untabbed=True,
        capped=True,
        control=True,
        note=(
            "The fix: `r_i <= probability_ratio` is divided by the running maximum of the ratio, at least 1. "
            "Nothing else is changed, and the law is p."
        ),
    ),
    Released(
        "SVIP, 2411.18462",
        "svip",
        "SVIP",
        '`assisted_decoding`, `length_policy="svip"`, `sample`, with the requested length',
        lambda: loops.svip,
        loops.svip,
        loop=True,
        expected={LAW: WRONG},
        note=(
            "If one token is left to generate, nothing may be drafted. Then `candidate_length > 0` is false, "
            "and the branch for greedy decoding is taken (`eval_specbench.py`, line 226) although `args.sample` "
            "is set: the last token is the argmax of p. This concerns at most one token of a text."
        ),
    ),
    Released(
        "SVIP, 2411.18462",
        "svip",
        "SVIP",
        "the same with one token more, which is not compared",
        lambda: partial(loops.svip, beyond=1),
        loops.svip,
        loop=True,
        control=True,
    ),
    Released(
        "SpecDec++, 2405.19715",
        "specdec-pp",
        "SpecDec_pp",
        "`my_assisted_decoding`, schedule `ada`, at most 2 drafts",
        lambda: staged_loops.specdec_pp,
        staged_loops.specdec_pp,
        loop=True,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "Speculative decoding, 2211.17192 (feifeibear)",
        "speculative-sampling",
        "LLMSpeculativeSampling",
        "`speculative_sampling` with its cache, gamma 1",
        lambda: partial(loops.feifeibear, first=0, gamma=1),
        loops.feifeibear,
        loop=True,
        expected=dict.fromkeys(("program_is_its_draws", LAW, BOUNDARY), RAISES),
        note=(
            "`sample` raises a RuntimeError whenever token 0 is drawn (`sampling/utils.py`, line 53), from p "
            "and from q. So the code has no law for a vocabulary with a token 0."
        ),
    ),
    Released(
        "Speculative decoding, 2211.17192 (feifeibear)",
        "speculative-sampling",
        "LLMSpeculativeSampling",
        "the same with all token ids shifted up by one",
        lambda: partial(loops.feifeibear, gamma=1),
        loops.feifeibear,
        loop=True,
        control=True,
        expected={BOUNDARY: WRONG},
    ),
    Released(
        "NASD, romsto/Speculative-Decoding",
        "nasd",
        "Speculative-Decoding",
        "`ngram_assisted_speculative_generate` with `NGramStorage(3)`, gamma 2, `filler_top_k` 2",
        lambda: loops.nasd,
        loops.nasd,
        THREE,
        loop=True,
        expected={LAW: WRONG},
        beside=(Beside("nasd-released", {"order": 3, "gamma": 2, "filler_top_k": 2}),),
        note=(
            "A draw from p is compared with the guess, and after a mismatch another draw is emitted. So a guess "
            "is emitted with probability p (2 - p). A prompt of two tokens raises a KeyError "
            "(`ngram_storage.py`, line 174), so all prompts here have three."
        ),
    ),
    Released(
        "NASD, romsto/Speculative-Decoding",
        "nasd",
        "Speculative-Decoding",
        "the same with gamma 0",
        lambda: partial(loops.nasd, gamma=0),
        loops.nasd,
        THREE,
        loop=True,
        control=True,
    ),
    Released(
        "TriForce, 2404.11912",
        "triforce",
        "TriForce",
        "`TriForce` with `Middle_Spec`, gamma 1, `top_p` 0, temperature 1",
        lambda: loops.triforce,
        loops.triforce,
        loop=True,
        expected={LAW: WRONG},
        beside=(Beside("triforce-released", {"gamma": 1, "forget": 1}, first=True, untrimmed=2),),
        note=(
            "After an inner rejection `Middle_Spec` draws from q' and not from norm((q' - q'')+), so its drafts "
            "do not have the law q' that the outer round divides by. The first token of a text is the target's."
        ),
    ),
    Released(
        "TriForce, 2404.11912",
        "triforce",
        "TriForce",
        "the same, with inner replacements drawn by its own `max_fn`",
        lambda: partial(loops.triforce, mended=True),
        loops.triforce,
        loop=True,
        control=True,
    ),
    Released(
        "SpecHub, 2411.05289",
        "spechub",
        "Speculative_decoding_OT",
        "`sample` and `evaluate_posterior`, one pair per round; q is never 1",
        lambda: staged_loops.spechub,
        staged_loops.spechub,
        SOFT,
        loop=True,
        expected={BOUNDARY: RAISES},
        note=(
            "If q is 1 at a token, the second token of the pair has no law and `torch.multinomial` raises "
            "(`cnets.py`, line 746). If p of the hub is above 0.999, the hub is taken without a draw; no table "
            "here has a p between 0.999 and 1. If a uniform is next to 1, a pair that must be accepted is "
            "rejected, and the rest is NaN."
        ),
    ),
    Released(
        "DFlash, 2602.06036",
        "dflash",
        "dflash",
        "`dflash_generate`, blocks of 3, temperature 1",
        lambda: staged_loops.dflash,
        staged_loops.dflash,
        loop=True,
    ),
    Released(
        "DSpark, deepseek-ai/DeepSpec",
        "speculative-sampling",
        "DeepSpec",
        "`verify_draft_tokens`",
        chains.deepspec,
        chains.deepspec,
        (1, 2),
        claims=EVERYTHING,
    ),
    Released(
        "Speculative Jacobi decoding, 2410.01699",
        "speculative-jacobi",
        "SJD",
        "`SpeculativeSampler` of `jacobi_iteration_lumina_mgpt.py`, one sweep",
        blocks.jacobi,
        blocks.jacobi,
        (1, 2),
        claims=EVERYTHING,
        expected={BOUNDARY: WRONG},
        note=(
            "Only the decision of one sweep is examined, given drafts and the rows from which they were drawn. "
            "Tokens that are drawn anew after a rejection are not examined. If p = q up to rounding, a uniform "
            "next to 1 rejects, nothing is left to draw from, and the code raises."
        ),
    ),
)
