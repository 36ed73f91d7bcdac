"""Conventions: choices that two correct programs may make differently, such as how ties are broken.

A program must make the same choice in all its answers.
"""

from __future__ import annotations

FLAGS: dict[str, str] = {
    "inverse-cdf": "one uniform a coin (accept iff u q(x) < p(x)), one for the token after them: the first whose "
    "cumulative mass exceeds it; token ids in ascending order",
    "exponential-race": "one uniform a coin; the token after them is the argmin of key / mass, which is the argmax of "
    "log mass plus Gumbel noise -log key",
    "point-mass-drafts": "as inverse-cdf; drafts of a deterministic drafter (q null is the point mass on the draft)",
    "block-verification": "Sun et al. 2403.10444: coin i belongs to the first i + 1 drafts; the longest prefix whose "
    "coin falls below its probability is accepted; the token after it by inverse cdf",
    "sample-and-match": "every row of p is drawn from by inverse cdf with its own uniform, until a draw misses",
    "greedy": "temperature 0: drafts are kept while they are the argmax of p, then its argmax",
    "typical-acceptance": "Medusa (2401.10774): keep while p(x) > min(epsilon, delta e^-H(p)), then the argmax of p",
    "recursive-rejection": "a tree of drafts: siblings tried in order, each against the residual that earlier siblings "
    "left of p; coin k of a depth belongs to the k-th sibling tried there; by inverse cdf",
    "layout": "who attends to what in the one pass over a tree",
    "target": "the target's cache",
    "draft": "the drafter's cache",
    "temperature": "log-probabilities divided by the temperature; 0 is the argmax",
    "top-k": "the k most probable tokens",
    "top-p": "the smallest set of most probable tokens that holds the mass",
    "min-p": "tokens at least so many times as probable as the most probable one",
    "top-k and top-p": "both, in one call",
    "end tokens": "a text ends at an end-of-sequence token, or at its length",
    "stop sequences": "a text ends where a sequence of token ids has appeared, wherever the rounds are cut",
    "sampling parameters": "the law of a text under parameters, in this order: banned tokens (bad_words, allowed, "
    "min_new, grammar) get mass 0; masses are multiplied by the presence factor once if the token has occurred in "
    "prompt or text, by the frequency factor for each occurrence, and by the bias factor of the token; then "
    "temperature, top-k, top-p, min-p",
    "any lossless decoder": "the law of the new tokens is the target's own, whatever drafts there are",
}
"""Flag of a group of vectors -> its meaning. A group named after an algorithm of the registry asks for that algorithm.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "a coin at its boundary": {
        "strict-coin": "u q(x) = p(x) rejects",
        "inclusive-coin": "u q(x) = p(x) accepts",
    },
    "a cumulative mass at its boundary": {
        "cdf-open": "u = cumulative mass goes to the next token",
        "cdf-closed": "u = cumulative mass stays with the token",
    },
    "a draft that q cannot have drawn": {
        "ratio-taken-as-one": "q(x) = 0 < p(x) accepts",
        "ratio-taken-as-zero": "q(x) = 0 < p(x) rejects",
        "impossible-draft-refused": "the input is refused",
    },
    "ties at temperature 0": {
        "argmax-lowest-id": "the lowest id among the most probable tokens",
        "argmax-highest-id": "the highest id among them",
        "argmax-shared": "each of them, equally often",
    },
    "ties at the k-th token": {
        "ties-kept": "every token tied with the k-th stays",
        "ties-lowest-id": "exactly k stay, lower ids first",
        "ties-highest-id": "exactly k stay, higher ids first",
    },
    "ties at the end of the nucleus": {
        "nucleus-lowest-id": "among ties lower ids enter first",
        "nucleus-highest-id": "among ties higher ids enter first",
        "nucleus-ties-kept": "ties enter together",
    },
    "a nucleus that holds exactly the mass": {
        "top-p-inclusive": "a set of exactly the mass is enough",
        "top-p-exclusive": "one more token enters",
    },
    "a token at the threshold of min-p": {
        "min-p-inclusive": "it stays",
        "min-p-exclusive": "it goes",
    },
    "top-k and top-p together": {
        "top-p-of-what-top-k-left": "the nucleus is taken of the renormalised k tokens",
        "top-p-of-the-whole-law": "the nucleus is taken of the whole law, and both sets are cut with each other",
    },
    "the end token in the output": {
        "end-kept": "it is the last token of the output",
        "end-dropped": "the output stops before it",
    },
    "a stop sequence in the output": {
        "stop-kept": "it is the end of the output",
        "stop-dropped": "the output stops before it",
    },
    "an end token before the least length": {
        "end-does-not-count": "the text continues after it",
        "end-is-refused": "the target cannot have emitted it: the input is refused",
    },
}
"""The conventions, grouped in families. A family is one choice, and its conventions are the alternatives.
``FAMILIES[family][flag]`` is the meaning of the convention with the flag ``flag``."""


def family_of(flag: str) -> str:
    """Return the family to which the convention ``flag`` belongs: a key of ``FAMILIES``.

    The conventions of a family are the possible answers to one question, such as how ties are broken.
    """
    return next(family for family, flags in FAMILIES.items() if flag in flags)


def said(flag: str) -> str:
    """Return the meaning of the convention ``flag`` as a sentence for users."""
    return FLAGS.get(flag) or next((flags[flag] for flags in FAMILIES.values() if flag in flags), f"the rule {flag}")
