"""Classes of bugs that test vectors expose, each with references; all kinds of vectors share this list."""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """A class of bugs that a vector exposes.

    ``text`` describes the bugs, and ``citations`` lists real occurrences, such as issues and commits of projects.
    """

    bug_class: str
    """The letter of the bug class, as in ``specverify mutants --class``."""
    text: str
    citations: tuple[str, ...]


NOTES: dict[str, Note] = {
    "coin": Note(
        "A",
        "the accept decision: p/q inverted, taken at another row or token, or with coins that are not uniform",
        ("romsto/Speculative-Decoding commit 41668c8", "transformers PR #28166", "vllm-ascend issue #13730"),
    ),
    "after-a-rejection": Note(
        "A",
        "drafts are counted wherever they are accepted, not as the leading run",
        ("plausible, no record found", "lucidrains/speculative-decoding commit a536030"),
    ),
    "zero-coin": Note(
        "A",
        "an inclusive comparison accepts a token of probability 0 when the uniform is 0",
        ("SGLang issue #35771", "Sequoia commits 12844ff, 530d1bf, b8f7b10, df58fc0"),
    ),
    "block": Note(
        "A",
        "block verification with the coins or the residual of token verification",
        ("vllm-ascend issue #7807, PR #7808",),
    ),
    "argmax": Note(
        "A",
        "a sampled request is verified against the argmax, or an argmax is emitted for a draw",
        ("ROCm/ATOM PR #2318", "mlxcel issue #902", "mistral.rs issue #2329, PR #2424"),
    ),
    "proposal": Note(
        "B",
        "the declared q is not the law that the draft was drawn from",
        ("jaymody/speculative-sampling issue #3", "transformers issue #32867", "openvino.genai PR #2331"),
    ),
    "residual-row": Note(
        "C",
        "the residual of another row: the first, the last, or the one before",
        ("FlashInfer PR #425", "romsto/Speculative-Decoding commit 53922df"),
    ),
    "residual": Note(
        "C",
        "a rejected draft is replaced from p, or from another difference than (p - q)+",
        ("rtp-llm commit 2d9860463", "EAGLE issue #20", "romsto/Speculative-Decoding commits 53922df, 0b1fa52"),
    ),
    "residual-floor": Note(
        "C",
        "a residual clamped above 0 lets tokens come back that have none",
        ("ScaleLLM PR #202",),
    ),
    "bonus": Note(
        "C",
        "the token after a whole accepted block comes from another row, or from q",
        ("FlashInfer PR #425", "vLLM PR #9730"),
    ),
    "reused-uniform": Note(
        "D",
        "one random number decides two things, such as the coin and the recovery",
        ("feifeibear/LLMSpeculativeSampling commit ec08458", "vLLM PR #54282"),
    ),
    "largest-uniform": Note(
        "D",
        "a uniform rounded up to 1, or one just below it, runs past the end of the cumulative mass",
        ("SGLang PR #30822",),
    ),
    "not-a-number": Note(
        "E",
        "NaN in a row becomes a likely token, a token outside the vocabulary, or the rejected draft",
        ("vLLM PR #45060, issue #53029", "vLLM PR #41834", "vllm-ascend PRs #14116, #14098"),
    ),
    "empty-row": Note(
        "E",
        "a row or residual without mass is divided by 0, or ends in no token at all",
        ("vllm-ascend commit 9247a2fb9f",),
    ),
    "low-precision": Note(
        "E",
        "masses or noise in 16 bits: small ones underflow, close ones become equal",
        ("xLLM commit 2460314d0", "DeepSpec issue #31"),
    ),
    "padded-vocabulary": Note(
        "E",
        "lanes after the vocabulary take part, or its last block is left out",
        ("vLLM PR #45060, issue #53029", "transformers issue #45307"),
    ),
    "placeholder": Note(
        "M",
        "a draft id of -1, a placeholder, is looked up as the last entry of the vocabulary",
        ("vllm-ascend issue #10045, PR #10043", "vllm-ascend PR #8531"),
    ),
    "parameters": Note(
        "F",
        "sampling parameters applied in another order, at another row, or not at all",
        ("vLLM issue #9834, PR #10198", "SGLang PR #36173", "vLLM PR #42802", "lattice issue #388"),
    ),
    "ties": Note(
        "F",
        "tokens tied at a threshold are cut differently for target and draft",
        ("plausible, no record found",),
    ),
    "small-temperature": Note(
        "E",
        "a temperature near 0 overflows, or is 0 in one place and not in another",
        ("NeMo Automodel PR #3627",),
    ),
    "rollback": Note(
        "H",
        "entries of rejected drafts stay in the cache, or accepted ones are lost",
        (
            "MLC-LLM issue #2167, PR #2184",
            "feifeibear/LLMSpeculativeSampling commit 8043c01",
            "paiml/aprender PR #2014",
        ),
    ),
    "cache-length": Note(
        "H",
        "the length does not count the accepted tokens, so that positions are off from the next round on",
        ("text-generation-inference commit b4ebfa52", "lucidrains/speculative-decoding commit 2ac580e"),
    ),
    "draft-cache": Note(
        "Q",
        "the drafter's cache lacks the last accepted draft, or keeps rejected ones: the output stays right",
        ("vLLM PR #9730", "exllamav2 commit 05807d1", "mlx-lm commit e6ae82d3"),
    ),
    "tree-position": Note(
        "J",
        "a node of a tree stands at its index, not at its depth, or sees its siblings",
        ("mlxcel PR #1214", "TensorRT-LLM PR #15098"),
    ),
    "tree-path": Note(
        "J",
        "the accepted path of a tree is kept as a count: what is gathered is another branch",
        ("TensorRT-LLM issue #10343", "FlexFlow PR #714", "MLC-LLM PR #2824"),
    ),
    "siblings": Note(
        "J",
        "siblings share a residual or a coin, are tried in another order, or twice",
        ("EAGLE issue #20; commit 2f982e2", "EAGLE issues #221, #110"),
    ),
    "end-in-a-block": Note(
        "K",
        "an end token inside an accepted block is not seen, or what follows it is emitted",
        ("transformers issue #47912, PR #47931", "transformers PR #31301", "koboldcpp issue #1276"),
    ),
    "end-of-the-target": Note(
        "K",
        "only drafts are searched for the end: the target's own token ends nothing",
        ("romsto/Speculative-Decoding commits 97b82fb, 9b64b44",),
    ),
    "end-and-length": Note(
        "K",
        "an end and the length limit fall into one block, and the limit is tested first",
        ("SGLang issue #31599, PRs #31569, #33758", "vLLM issue #42533"),
    ),
    "stop-across-rounds": Note(
        "K",
        "a stop sequence is only looked for where one new token ends it",
        ("openvino.genai PR #1719", "openvino.genai commit 54f3029b1"),
    ),
    "grammar": Note(
        "G",
        "masks of a grammar follow other tokens than the drafts before a row, or stop after the first one",
        ("exllamav3 commit fd5b65b", "LMDeploy commit 616d56cfa", "vLLM PR #46272, issue #44006"),
    ),
    "least-length": Note("F", "the least length counts rounds, not tokens", ("SGLang PR #33643",)),
    "round": Note(
        "A",
        "what a whole round emits: drafts, coins, recovery and bonus together",
        ("romsto/Speculative-Decoding commit 41668c8", "FlashInfer PR #425", "transformers issue #47932"),
    ),
    "several-rounds": Note(
        "A",
        "what only shows from the second round on: offsets, caches, states, seeds",
        ("romsto/Speculative-Decoding commit 41668c8", "FlexFlow PR #714", "vLLM PR #54282"),
    ),
}
"""Key, which vectors list in their ``notes`` -> the class of bugs."""
