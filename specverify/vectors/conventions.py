"""Conventions: choices that two correct programs may make differently, such as how ties are broken.

A program must make the same choice in all its answers.
"""

from __future__ import annotations

FLAGS: dict[str, str] = {
    "inverse-cdf": "A draft x is accepted if its coin u satisfies u q(x) < p(x). The final uniform draws the token "
    "after the accepted drafts: the first token, in ascending order of ids, whose cumulative mass exceeds the uniform.",
    "exponential-race": "Drafts are accepted as in inverse-cdf. The token after them is the argmin of key / mass "
    "(equal to the argmax of log mass plus the Gumbel noise -log key).",
    "point-mass-drafts": "As inverse-cdf, with drafts of a deterministic drafter. Its q is null, which means the "
    "point mass on the draft.",
    "block-verification": "Sun et al. 2403.10444. Coin i decides whether the prefix of i + 1 drafts may be accepted: "
    "it must be below the probability of this prefix. The longest such prefix is accepted. The final uniform draws "
    "the token after it as in inverse-cdf.",
    "sample-and-match": "For each position a token is drawn from p as in inverse-cdf, with a uniform of its own. "
    "Drafts are accepted as long as they equal the drawn tokens. The first drawn token that differs is emitted.",
    "greedy": "Temperature 0. Drafts are accepted as long as they are the argmax of p. The token after them is the "
    "argmax of p.",
    "typical-acceptance": "Medusa (2401.10774). Drafts are accepted as long as p(x) > min(epsilon, delta e^-H(p)), "
    "with the entropy H. The token after them is the argmax of p.",
    "recursive-rejection": "A tree of drafts. Siblings are tried in order. After each rejection p is replaced by the "
    "residual, and the next sibling is tested against it. Coin k of a level decides the k-th sibling tried there. The "
    "final uniform draws the last token as in inverse-cdf.",
    "layout": "Which rows of the one pass over a tree attend to which other rows.",
    "target": "The cache is the target's.",
    "draft": "The cache is the drafter's.",
    "temperature": "Log-probabilities are divided by the temperature. Temperature 0 is the argmax.",
    "top-k": "Only the k most probable tokens are kept.",
    "top-p": "Only the smallest set of most probable tokens is kept whose sum reaches top_p (the *nucleus*).",
    "min-p": "Only tokens are kept whose probability is at least min_p times the largest probability.",
    "top-k and top-p": "Both, in one call.",
    "end tokens": "A text ends at an end-of-sequence token, or at its maximum length.",
    "stop sequences": "A text ends where a given sequence of token ids has appeared, also if it spans two rounds.",
    "sampling parameters": "The law of a text with sampling parameters, applied in this order. First, banned tokens "
    "(bad_words, allowed, min_new, grammar) get mass 0. Then the mass of a token is multiplied by the presence factor "
    "if the token has occurred in prompt or text, by the frequency factor once for each occurrence, and by the bias "
    "factor of the token. Then follow temperature, top-k, top-p and min-p.",
    "any lossless decoder": "The law of the new tokens must be the target's, with any drafts.",
}
"""Flag of a group of vectors -> its meaning. A group named after an algorithm of the registry asks for that algorithm.
"""

FAMILIES: dict[str, dict[str, str]] = {
    "a coin at its boundary": {
        "strict-coin": "if u q(x) = p(x), the draft is rejected",
        "inclusive-coin": "if u q(x) = p(x), the draft is accepted",
    },
    "a cumulative mass at its boundary": {
        "cdf-open": "if u equals the cumulative mass up to a token, the next token is drawn",
        "cdf-closed": "if u equals the cumulative mass up to a token, this token is drawn",
    },
    "a draft that q cannot have drawn": {
        "ratio-taken-as-one": "if q(x) = 0 < p(x), the draft is accepted",
        "ratio-taken-as-zero": "if q(x) = 0 < p(x), the draft is rejected",
        "impossible-draft-refused": "the input is refused",
    },
    "ties at temperature 0": {
        "argmax-lowest-id": "the most probable token with the lowest id is emitted",
        "argmax-highest-id": "the most probable token with the highest id is emitted",
        "argmax-shared": "each of the most probable tokens is emitted, with equal probabilities",
    },
    "ties at the k-th token": {
        "ties-kept": "every token as probable as the k-th is kept, so more than k tokens may be kept",
        "ties-lowest-id": "exactly k tokens are kept, among equal ones those with lower ids",
        "ties-highest-id": "exactly k tokens are kept, among equal ones those with higher ids",
    },
    "ties at the end of the nucleus": {
        "nucleus-lowest-id": "among equally probable tokens, lower ids enter first",
        "nucleus-highest-id": "among equally probable tokens, higher ids enter first",
        "nucleus-ties-kept": "equally probable tokens enter together",
    },
    "a nucleus that holds exactly the mass": {
        "top-p-inclusive": "the set of tokens is complete if its sum equals top_p",
        "top-p-exclusive": "if the sum equals top_p, one more token enters",
    },
    "a token at the threshold of min-p": {
        "min-p-inclusive": "the token is kept",
        "min-p-exclusive": "the token is removed",
    },
    "top-k and top-p together": {
        "top-p-of-what-top-k-left": "first top-k, then top-p of the k tokens, renormalised",
        "top-p-of-the-whole-law": "top-k and top-p are both taken of the whole pmf; tokens in both sets are kept",
    },
    "the end token in the output": {
        "end-kept": "the end token is the last token of the output",
        "end-dropped": "the output does not contain the end token",
    },
    "a stop sequence in the output": {
        "stop-kept": "the output ends with the stop sequence",
        "stop-dropped": "the output does not contain the stop sequence",
    },
    "an end token before the least length": {
        "end-does-not-count": "the text continues after the end token",
        "end-is-refused": "the input is refused, because the target cannot have emitted the end token",
    },
}
"""The conventions, grouped in families. A family is one choice, and its conventions are the alternatives.
``FAMILIES[family][flag]`` is the meaning of the convention with the flag ``flag``."""


def family_of(flag: str) -> str:
    """Return the family to which the convention ``flag`` belongs: a key of ``FAMILIES``.

    The conventions of a family are the possible answers to one question, such as how ties are broken.
    """
    return next(family for family, flags in FAMILIES.items() if flag in flags)


def meaning_of(flag: str) -> str:
    """Return the meaning of the convention ``flag`` as a sentence for users."""
    return FLAGS.get(flag) or next((flags[flag] for flags in FAMILIES.values() if flag in flags), f"the rule {flag}")
