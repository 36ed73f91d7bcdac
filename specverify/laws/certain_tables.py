"""Tables with one-hot rows except at a few positions: a decode of many tokens then has few paths.

If every row has several possible tokens, paths multiply, and faults at the fourth draft, in the sixth round or after
the sixteenth token are out of reach. Here most rows of p and q are one-hot and every row depends on the whole text, so
a wrong position, a stale cache entry or a row of another position changes the token with certainty. A row that is not
one-hot is called open. The module makes several kinds of tables. A kind has a name such as ``open_after_1_5``, in which
the numbers are the lengths, in tokens, of the texts after which a row of p may be open.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import numpy as np

from specverify.laws.tables import numbers_of_row, rational_pmf
from specverify.reference import LanguageModel, Pmf, Tokens

CERTAIN = "certain"
"""Shape with one-hot rows only. After about a quarter of all texts p and q have different tokens."""
OPEN = "open_after"
"""``open_after_1_5``: after texts of 1 and 5 tokens every token has positive probability under p and q; all other rows
have p = q one-hot."""
PERIODIC = "periodic_after"
"""``periodic_after_9_10``: like ``open_after``, but the tokens of the one-hot rows count 0, 1, 2, ... cyclically,
whatever the text. After the open rows the text therefore returns to its period. Drafts that are looked up in the text
are sometimes right and sometimes wrong, and equal blocks of a text can follow different prefixes."""
APART = "apart_after"
"""``apart_after_2``: after texts of 2 tokens p and q differ by 2^-seed, and some tokens have that probability. A
threshold in the program then confuses such tokens with impossible ones, the residual with 0, or p with q: see
``_apart``."""
FAR = "far_after"
"""``far_after_1``: like ``apart_after``, but p and q differ much at the two likely tokens."""
FEW = "few_after"
"""``few_after_1_2_3``: like ``open_after``, but the later rows are open only if all tokens since the first open row are
0, and the entries of a row have different sizes. So a program has few paths, and wrong rules different laws."""
MANY = "many_after"
"""``many_after_1``: after texts of 1 token every token has a different positive probability under p, and q is one-hot.
"""
SCALES = "scales_after"
"""``scales_after_1``: after texts of 1 token the probabilities and the ratios p/q are of very different sizes, from
2^-14 to nearly 1; the seed selects one of the rows of ``_SCALES``. A threshold in the program shows there."""
PLANNED = "planned"
"""``planned_ad_.ae``: texts that begin with the token k follow the k-th plan, here ``ad`` or ``.ae``. Its i-th letter
states the rows after i tokens:

* ``a``, also after the end of the plan, and ``.``, a token of the prompt: p and q are one-hot with the same token;
* ``d``: their tokens differ, so a draft is rejected;
* ``e``: both have the token ``END``; ``r``: p has it and q has another token;
* ``o``: two tokens have positive probabilities, which differ between p and q; ``x``: one of the two is ``END``;
* ``w``: three tokens have positive probabilities, which differ between p and q;
* ``s``: q has two tokens, and p only the less probable of them; ``t``: q has three, and p only the least probable.

The token ``END`` is impossible under p at all other letters."""
END = 0
"""The end-of-sequence token of the tables of ``planned``."""


def is_certain(shape: str) -> bool:
    """Return whether ``shape`` is the name of a kind of tables that this module makes."""
    return shape == CERTAIN or shape.startswith((OPEN, PERIODIC, APART, FAR, FEW, MANY, SCALES, PLANNED))


def open_after(*lengths: int) -> str:
    """Return the name of the kind of tables whose rows are all one-hot, except after texts of these lengths, in tokens.

    After such texts every token has positive probability under p and q. The name is, for example, "open_after_1_5".
    """
    return "_".join([OPEN, *map(str, lengths)])


def periodic_after(*lengths: int) -> str:
    """Return the name of the kind of tables whose rows are random after texts of these lengths, in tokens.

    All other rows are one-hot. Their tokens depend only on the length of the text and count 0, 1, 2, ... cyclically.
    """
    return "_".join([PERIODIC, *map(str, lengths)])


def apart_after(length: int) -> str:
    """Return the name of the kind of tables in which p and q differ slightly after every text of ``length`` tokens.

    All other rows are one-hot, with p = q.
    """
    return f"{APART}_{length}"


def far_after(length: int) -> str:
    """Return the name of the kind of tables in which p and q differ only after texts of ``length`` tokens.

    After such a text they differ strongly at two likely tokens and slightly at two unlikely ones. All other rows are
    one-hot, with p = q.
    """
    return f"{FAR}_{length}"


def few_after(*lengths: int) -> str:
    """Return the name of the kind of tables whose rows are random after some texts of these lengths, in tokens.

    The row is random after every text of the shortest length. After a text of another of the lengths it is random only
    if all tokens after the shortest length are 0. All other rows are one-hot, with p = q. For the lengths 1 and 2 the
    name is "few_after_1_2".
    """
    return "_".join([FEW, *map(str, lengths)])


def many_after(length: int) -> str:
    """Return the name of the kind of tables in which p can draw every token after texts of ``length`` tokens.

    q is one-hot everywhere. All other rows of p equal those of q.
    """
    return f"{MANY}_{length}"


def scales_after(length: int) -> str:
    """Return the name of the kind of tables with very different probabilities after texts of ``length`` tokens.

    All other rows are one-hot, with p = q. The seed of a table selects one of three pairs of rows: with ratios p/q from
    2^-12 to nearly 1 (0), with a token of which p is nearly 1 (1), or of which q is nearly 1 (2).
    """
    return f"{SCALES}_{length}"


def planned(plans: Iterable[str]) -> str:
    """Return the name of the kind of tables in which texts that begin with the token k follow the k-th of ``plans``.

    A plan has one letter for each position of the text: with ``d``, for example, p and q have different tokens, so a
    draft is rejected (see ``PLANNED``). The name is, for example, "planned_ad_.ae".
    """
    return "_".join([PLANNED, *plans])


def certain_pair(shape: str, vocabulary: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) over ``vocabulary`` tokens as tables of ``Fraction``.

    ``shape`` is the name of a kind of tables of this module, and ``seed`` selects the rows. In the kinds of
    ``apart_after`` and ``far_after``, a larger seed also brings p and q closer: their slight differences are 2^-seed.
    """
    kind, *words = shape.split("_")
    plans = words if kind == PLANNED else []
    lengths = frozenset(map(int, filter(str.isdecimal, words)))

    @cache
    def pair(tokens: Tokens) -> tuple[Pmf, Pmf]:
        rng = numbers_of_row(CERTAIN, vocabulary, seed, tokens)
        if plans:
            p, q = _planned(rng, vocabulary, _letter(plans, tokens))
        elif len(tokens) in lengths and shape.startswith((APART, FAR)):
            p, q = _apart(vocabulary, seed, far=shape.startswith(FAR))
        elif len(tokens) in lengths and shape.startswith(SCALES):
            p, q = ([0] * (vocabulary - len(row)) + list(row) for row in _SCALES[seed % len(_SCALES)])
        elif len(tokens) in lengths and shape.startswith(MANY):
            p = rng.sample(range(1, vocabulary + 1), vocabulary)
            q = _point(vocabulary, rng.randrange(vocabulary))
        elif len(tokens) in lengths and shape.startswith(FEW) and not any(tokens[min(lengths) :]):
            p, q = (rng.sample(_SIZES, vocabulary) for _ in range(2))
        elif len(tokens) in lengths and not shape.startswith(FEW):
            p, q = ([rng.randint(1, 5) for _ in range(vocabulary)] for _ in range(2))
        elif shape.startswith(PERIODIC):
            p = q = _point(vocabulary, len(tokens) % vocabulary)
        else:
            wanted, other = rng.sample(range(vocabulary), 2)
            p = q = _point(vocabulary, wanted)
            if shape == CERTAIN and rng.random() < 0.25:
                q = _point(vocabulary, other)
        return rational_pmf(tuple(p)), rational_pmf(tuple(q))

    return (lambda tokens: pair(tokens)[0]), (lambda tokens: pair(tokens)[1])


def large_pair(vocabulary: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) with one-hot rows in float64, for a vocabulary of any size.

    The rows have the same tokens as those of ``certain_pair(CERTAIN, vocabulary, seed)``: q and p differ in a quarter
    of them.
    """

    @cache
    def row(token: int) -> Pmf:
        result = np.zeros(vocabulary)
        result[token] = 1
        return result

    def pair(tokens: Tokens) -> tuple[int, int]:
        rng = numbers_of_row(CERTAIN, vocabulary, seed, tokens)
        wanted, other = rng.sample(range(vocabulary), 2)
        return wanted, other if rng.random() < 0.25 else wanted

    return (lambda tokens: row(pair(tokens)[0])), (lambda tokens: row(pair(tokens)[1]))


_SIZES = (1, 2, 3, 5, 7, 11, 13, 17)
"""Weights of the open rows of ``few_after``."""


_SCALES: Sequence[tuple[Sequence[int], Sequence[int]]] = (
    ((914432, 1024, 64, 130944, 2048, 64), (393088, 262144, 262144, 131072, 128, 0)),
    ((1048512, 32, 16, 16), (524288, 262144, 131072, 131072)),
    ((983040, 32768, 16384, 16384), (1048512, 32, 32, 0)),
)
"""Weights of p and q of ``scales_after``, each of sum 2^20. What a threshold changes there has a mass of at least
2^-14, which is more than rounding changes."""


_RANKED: Mapping[str, Sequence[int]] = {"s": (5, 3), "t": (9, 5, 2)}
"""Weights of q for the letters ``s`` and ``t`` of ``planned``; p has the token of the last weight."""


def _point(vocabulary: int, token: int) -> list[int]:
    return [int(other == token) for other in range(vocabulary)]


def _letter(plans: Sequence[str], tokens: Tokens) -> str:
    """Return the letter that states how p and q differ after ``tokens`` (see ``PLANNED``), for example ``d``.

    Each of ``plans`` is a string with one letter for each length of the text. Texts that begin with the token k follow
    the k-th plan. After the end of the plan, and for another first token, the letter is ``a``.
    """
    plan = plans[tokens[0] - 1] if tokens and 0 < tokens[0] <= len(plans) else ""
    return plan[len(tokens) - 1] if 0 < len(tokens) <= len(plan) else "a"


def _planned(rng: random.Random, vocabulary: int, letter: str) -> tuple[list[int], list[int]]:
    """Return weights of p and q over ``vocabulary`` tokens for one ``letter`` of a plan (see ``PLANNED``).

    ``rng`` draws the weights.
    """
    tokens = [token for token in range(vocabulary) if token != END]
    if letter in _RANKED:
        q = [0] * vocabulary
        for token, weight in zip(rng.sample(tokens, len(_RANKED[letter])), _RANKED[letter], strict=True):
            p, q[token] = _point(vocabulary, token), weight
        return p, q
    if letter == "w":
        three, p, q = rng.sample(tokens, 3), [0] * vocabulary, [0] * vocabulary
        for token, weight, other in zip(three, (4, 2, 1), (1, 3, 2), strict=True):
            p[token], q[token] = weight, other
        return p, q
    wanted, other = rng.sample(tokens, 2)
    if letter in "ox":
        other = END if letter == "x" else other
        p, q = [0] * vocabulary, [0] * vocabulary
        p[wanted], p[other] = q[other], q[wanted] = rng.sample(range(1, 6), 2)
        return p, q
    if letter == "d":  # the rejected draft may be the end
        return _point(vocabulary, wanted), _point(vocabulary, rng.choice([other, END]))
    p = _point(vocabulary, END if letter in "er" else wanted)
    return p, (_point(vocabulary, wanted) if letter == "r" else p)


def _apart(vocabulary: int, exponent: int, *, far: bool) -> tuple[list[int], list[int]]:
    """Return integer weights of p and q over ``vocabulary`` tokens, each summing to ``2 << exponent``.

    p and q differ only at the last four tokens, of which two are likely and two unlikely. To obtain p from q, move a
    weight of 2 from the first unlikely token to the second, and another weight from the first likely token to the
    second. This other weight is 2, or with ``far`` an eighth of the total. Of the tokens before the last four, at most
    five have positive weights. If ``exponent`` is at least 6, the positive weights of p differ from each other, and so
    do those of q.
    """
    whole = 2 << exponent
    before = [whole * odd // 128 for odd in (3, 5, 7, 9, 11)[: vocabulary - 4]]
    likely = whole // 2 - sum(before)
    q = [*before, likely, whole // 2 - 6, 4, 2]
    moved = whole // 8 if far else 2
    p = [*before, likely - moved, whole // 2 - 6 + moved, 2, 4]
    none = [0] * (vocabulary - len(q))
    return none + p, none + q
