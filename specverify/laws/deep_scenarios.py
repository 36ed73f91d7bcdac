"""Scenarios of many drafts and many tokens. All but a few rows are one-hot, so a decode has few paths."""

from __future__ import annotations

from itertools import product
from typing import Final

from specverify.laws.certain_tables import (
    CERTAIN,
    apart_after,
    far_after,
    few_after,
    many_after,
    open_after,
    periodic_after,
    planned,
    scales_after,
)
from specverify.laws.scenarios import CONFIDENT, Scenario

DEEP_GAMMA: Final = 8
"""Default number of drafts in the long rounds in which verifiers are examined."""
_SIDE, _SEED, _OF_TREES = 3, 30, 32


def deep_scenarios(gamma: int) -> tuple[Scenario, ...]:
    """Return at most twelve scenarios whose first round has ``gamma`` drafts; in each, three rows are not one-hot.

    These three are among nine positions of the round, the one of the bonus token included. For every two of the nine
    there is a scenario in which both rows are not one-hot.
    """
    shapes = (open_after(*sorted({1 + round(point * gamma / 8) for point in line})) for line in _lines())
    return tuple(Scenario(shape, 3, (0,), gamma + 1, seed=_SEED) for shape in dict.fromkeys(shapes))


def last_rows_open(gamma: int) -> Scenario:
    """Return a scenario whose first round has ``gamma`` drafts; the last draft and the bonus token are random."""
    return Scenario(open_after(gamma, gamma + 1), 3, (0,), gamma + 1, seed=_SEED)


def has_last_rows_open(scenario: Scenario) -> bool:
    """Return whether ``scenario`` is one of those whose last draft and bonus token are random.

    They are the last of ``deep_scenarios``, and ``last_rows_open``.
    """
    gamma = scenario.horizon - 1
    return scenario.seed == _SEED and scenario in {deep_scenarios(gamma)[-1], last_rows_open(gamma)}


def whole_tree(siblings: int, levels: int) -> tuple[Scenario, ...]:
    """Return scenarios in which trees with ``siblings`` children of a node and this number of ``levels`` are whole.

    Every token is possible under q, and p is one-hot, so a verifier has few paths after the drafts. The first token of
    the text differs between the scenarios.
    """
    return tuple(Scenario("point_target", siblings + 1, (token,), levels + 1, seed=_OF_TREES) for token in range(2))


def is_of_whole_trees(scenario: Scenario) -> bool:
    """Return whether ``scenario`` is one of ``whole_tree``."""
    return scenario.shape == "point_target" and scenario.seed == _OF_TREES


def _lines() -> list[list[int]]:
    """Return the twelve lines of the affine plane of order three, each as the list of its three points.

    The point (x, y) is the number ``3 x + y``. Every two points are on one line.
    """
    sloped = [
        [_SIDE * x + (slope * x + start) % _SIDE for x in range(_SIDE)]
        for slope, start in product(range(_SIDE), repeat=2)
    ]
    return sloped + [[_SIDE * x + y for y in range(_SIDE)] for x in range(_SIDE)]


NEARLY_EQUAL: Final = Scenario(apart_after(1), 4, (0,), 2, seed=15)
"""A scenario whose residual sums to 2^-14, which a program may take for an empty one."""
ONE_ROW_SCENARIOS: Final = (
    NEARLY_EQUAL,
    *(
        Scenario(after(1), vocabulary, (0,), horizon, seed=exponent)
        for after, vocabulary, exponent, horizon in (
            (far_after, 5, 15, 3),
            (apart_after, 6, 11, 3),
            (apart_after, 7, 9, 4),
            (apart_after, 9, 7, 4),
            (apart_after, 33, 6, 4),
        )
    ),
    Scenario(apart_after(2), 4, (0,), 2, seed=15),
    Scenario(many_after(1), 64, (0,), 2, seed=39),
    Scenario(apart_after(1), 257, (0,), 4, seed=6),
)
"""Scenarios in which one row is open and all others are one-hot. In all but one p and q differ there by 2^-15 to 2^-6;
in one of those there is no draft. The vocabulary sizes cover tiling errors: for each tile of 2, 4, ..., 256 tokens one
vocabulary has a remainder of one token, and 64 tokens, all possible, have none for tiles up to 64. At 64 tokens a top-k
of 4 to 63 removes a possible token. In the last scenario of this tuple, the last token of the vocabulary does not
fit in a byte. The more tokens have mass, the more coins follow the row, which raises the rounding bound above an error
of 1e-6 in q."""
SCALES_APART: Final = (
    *(Scenario(scales_after(1), 6, (0,), 2, seed=row) for row in range(3)),
    Scenario(scales_after(2), 6, (0,), 2, seed=0),
)
"""Scenarios of one open row with probabilities and ratios from 2^-14 to nearly 1; in the last it is the row of a bonus
token. A program that rejects a small ratio at once, takes a nearly certain row for a certain one, clamps its random
numbers, or leaves out small probabilities is wrong there."""
SMALL_Q: Final = Scenario(apart_after(1), 6, (0,), 3, seed=11)
"""A scenario with drafts of which q is below 1/1000; a program that divides by at least 0.01 rejects them too often."""
LEFT_OVER: Final = Scenario(apart_after(1), 9, (0,), 4, seed=7)
"""One of these: the ninth token, which tiles of 2, 4 or 8 tokens leave over, has mass under p and in the residual."""
MANY_LEFT: Final = Scenario(few_after(1), 6, (0,), 2, seed=186)
"""Rows of which four tokens are left in the residual, with different probabilities. Many wrong draws, such as the one
that keeps the two most probable tokens, are right with two tokens."""
MANY_LATER: Final = tuple(Scenario(few_after(3), 6, (0,), horizon, seed=306) for horizon in (3, 4))
"""The same behind two certain drafts: the row of the bonus token, with six tokens, or that of the third draft."""
CARRIED: Final = tuple(Scenario(few_after(1, 2, 3), 5, (0,), 4, seed=seed) for seed in (326, 525))
"""Scenarios of three open drafts among five tokens, after earlier drafts that q overrates (326) or underrates (525). A
rule that carries a product of ratios from draft to draft, such as block verification, multiplies the later rows by
another number than 1, and a wrong number changes the residual at each of the drafts."""
WRITTEN_OUT: Final = (
    *(scenario for scenario in ONE_ROW_SCENARIOS if scenario.vocabulary <= 64),
    MANY_LEFT,
    *SCALES_APART,
)
"""The scenarios for engines, which may store a row for every text."""
DEEP_TREE: Final = (-1, -1, 0, 0, 2, 2, 4, 4)
"""Parents of a tree with four levels of two nodes; the second node of each level is a leaf."""
TREE_SCENARIOS: Final = tuple(Scenario(open_after(level + 1), 3, (0,), 5, seed=30) for level in range(5))
"""Scenarios with one open row: at one level of ``DEEP_TREE``, or at the token after the tree."""
LATE_TREE: Final = (-1, -1, 1, 1, 3, 3)
"""Parents of a tree with three levels of two nodes; the first node of each level is a leaf, so every longer path begins
with a rejection at each level."""
LATE_SCENARIOS: Final = (
    Scenario(open_after(1, 2), 3, (0,), 5, seed=30),
    Scenario(open_after(1, 2, 3), 3, (0,), 4, seed=30),
)
"""Scenarios with open rows at two or three levels of ``LATE_TREE``. They have more paths than those of one open row,
but only they show what a rejection at one level changes at the next."""
WIDE_TREE: Final = (-1,) * 4
"""Parents of a tree with one level of four nodes: the fourth is tested on the residual of p after three rejections."""
WIDE: Final = Scenario(open_after(1), 4, (0,), 2, seed=38)
"""Rows whose residual of p is positive after three rejections."""
SIBLINGS_TREE: Final = (-1, -1, -1, 0, 0, 0, 3, 3, 3)
"""Parents of a tree with three levels of three nodes; the first node of each level has the next level below it."""
SIBLING_SCENARIOS: Final = tuple(Scenario(few_after(level + 1), 5, (0,), 4, seed=39) for level in range(3))
"""Scenarios with one open row, of five tokens, at one level of ``SIBLINGS_TREE``. After two rejected siblings p and q
still have several possible tokens, so a fault in the test of one sibling at one level, or in the row that it leaves to
the next sibling, changes the law."""
THREE_SIBLINGS: Final = (-1, -1, -1)
"""Parents of a tree with one level of three nodes."""
ALL_UNCERTAIN: Final = Scenario(few_after(1), 5, (0,), 2, seed=30)
"""Rows of five tokens for ``THREE_SIBLINGS``: in a sixth of the draws the test of each sibling may end either way, so a
number that two of the tests share changes the law."""
FOUR_SIBLINGS: Final = Scenario(few_after(1), 5, (0,), 2, seed=183)
"""Rows of five tokens for ``WIDE_TREE``: if they differ, the fourth sibling is tested with a q of two tokens, and is
rejected in some draws."""
ONE_CHILD: Final = (-1, -1, 1)
"""Parents of a tree whose second sibling has one child."""
ONE_CHILD_SCENARIO: Final = Scenario(few_after(1, 2), 4, (0,), 3, seed=39)
"""A scenario in which both levels of ``ONE_CHILD`` are open. The q of the child is its own row, whatever was left
of the row of its parent."""
TWIN_CHAINS: Final = (-1, -1, 0, 1, 2, 3, 4, 5)
"""Parents of a tree with two chains of four nodes."""
ALIKE_CHAINS: Final = tuple(Scenario(planned(("saaaaaaa",)), 3, (1,), 7, seed=seed) for seed in (20, 1))
"""Scenarios in which p accepts the second chain of ``TWIN_CHAINS``, and its tokens are those of the first chain: at the
next two levels (20), or at all other levels (1). A verifier or an engine that finds a node by the last tokens of its
path takes one of the other chain."""
TWO_BRANCHES: Final = (-1, -1, 0, 0, 1, 1)
"""Parents of a tree with two nodes at the first level, which have two children each."""
LATE_BRANCHES: Final = (-1, -1, 0, 1, 2, 2, 3, 3)
"""The same one level deeper: two chains of two nodes, which end in two children each."""
BRANCH_SCENARIOS: Final = tuple(Scenario(planned((plan,)), 4, (1,), len(plan) + 1, seed=4) for plan in ("so", "sao"))
"""Scenarios for ``TWO_BRANCHES`` and ``LATE_BRANCHES``: p accepts one of the two branches, not always the first, and
its two children are random. A verifier that takes the q of the other branch is wrong there."""
APART_CHAINS: Final = Scenario(planned(("saw",)), 4, (1,), 4, seed=4)
"""A scenario in which p accepts a path of ``TWIN_CHAINS`` that is not always the first, with three possible tokens at
the third level. There p and q differ between the two chains."""
CROWDED: Final = Scenario(open_after(5), 2, (0,) * 5, 2, seed=30)
"""A scenario with an open draft and a one-hot last token. It has few paths although one call draws from five rows."""
CROWDED_LATER: Final = Scenario(open_after(6), 2, (0,) * 5, 2, seed=30)
"""A scenario with a certain first draft and an open row after it: that of the second draft or of the bonus token."""
PAIRED: Final = Scenario(open_after(2, 3, 4), 2, (0, 0), 3, seed=388)
"""A scenario with two open drafts and an open last token, for two rows of which none is certain: both may accept all
drafts, or reject the same one. The residual of the second draft is neither its row of p nor that of the first draft."""
FIRST_REJECTIONS: Final = tuple(Scenario(planned(("a" * many + "d",)), 4, (1,), 9, seed=4) for many in range(8))
"""Scenarios for greedy verifiers of up to eight drafts: in each another draft is the first one that p rejects."""
TRUNCATED: Final = Scenario(many_after(1), 8, (0,), 2, seed=39)
"""A scenario with an open draft among many tokens, of which truncations keep different ones."""
AFTER_A_BONUS: Final = tuple(
    Scenario(few_after(1 + gamma, 2 + gamma), 3, (2,), 8, seed=seed) for gamma, seed in ((3, 480), (4, 3656), (5, 60))
)
"""Scenarios in which the first round accepts ``gamma`` drafts, and the bonus token and, after the bonus token 0, the
next draft are random. In both rows the least probable token of p has p < 0.09 and q > 0.3. An engine fails there if it
drafts after a guess of the bonus token and takes another q for these drafts, or if it drafts again in a later round
because p of the first draft is small."""
RANKED: Final = tuple(Scenario(planned((plan,)), 5, (1,), 8, seed=4) for plan in ("dsadaaaa", "dsaadaaa", "dtadaaaa"))
"""Scenarios in which, in the second round, the target takes the second or the third of the most probable drafts, one or
two drafts after it and then none. So an engine that drafts a tree accepts a path that is not the first one, and several
tokens follow it: they are wrong if the engine has kept another path in its cache."""
AFTER_REJECTIONS: Final = Scenario(planned(("ddddoaa",)), 4, (1,), 7, seed=4)
"""A scenario in which the first draft of four rounds is rejected, and the next draft is random. It shows what an engine
does wrong after it has lowered its number of drafts, or its measure of acceptance, round by round."""
HISTORIES: Final = (
    Scenario(planned(("...ssssooa",)), 3, (1, 2, 1, 2), 7, seed=4),
    Scenario(planned(("sssssssooa",)), 4, (1,), 10, seed=4),
)
"""Scenarios with a certain text whose first drafts are random, before two open rows: so all sequences of accepted and
rejected drafts come before these. They show what an engine does wrong that changes its way of drafting, or stops to
draft, after some sequence. The first prompt repeats itself, so drafts can be looked up in the text as well."""
_LONG_PROMPT: Final = tuple(place * place * place // 7 % 2 for place in range(66))
BEHIND_A_WINDOW: Final = Scenario(open_after(66, 67, 68), 2, _LONG_PROMPT, 3, seed=36)
"""A scenario with random drafts after a prompt longer than most windows, such as the last 64 tokens that a penalty
counts. A window that is rolled back after a rejection, but does not get its oldest tokens back, shows there."""
LATE_ROWS: Final = Scenario(open_after(18, 20), 3, (2,), 21, seed=36)
"""A scenario with random rows after 17 and 19 new tokens, for parameters that change with the number of tokens. In
rounds of 1 to 5 drafts, if all are accepted, one of the two rows is that of a bonus token."""
AFTER_MANY_REJECTIONS: Final = Scenario(planned(("d" * 26 + "oaa",)), 4, (1,), 29, seed=4)
"""A scenario in which the first draft of 26 rounds is rejected, for an engine that averages its acceptance."""
AFTER_MANY_DRAFTS: Final = tuple(
    Scenario(planned(("a" * many + "oaaoaaoaa",)), 4, (1,), many + 9, seed=4) for many in (44, 45, 46)
)
"""Scenarios in which many drafts are accepted and some of the next are random. They show what an engine does wrong
after it has raised its number of drafts round by round. In one of the three the first draft of a round is random, for
3 to 8 drafts per round."""
ONE_TOKEN: Final = Scenario("generic", 3, (0, 1), 1, seed=41)
"""A scenario with one new token, which an engine may take from the prefill, without a round."""
NEW_TOKENS: Final = Scenario("generic", 2, (0,), 3, seed=5)
"""A text of several open rows whose prompt lacks a token, so a penalty has to count a token of the round."""
SIX_TOKENS: Final = Scenario("point_draft", 2, (0, 1), 6, seed=3)
"""A text of six open rows, so of two rounds or more, for rows that are made of several, as in classifier-free guidance.
Certain drafts give few paths. In longer texts all but a few rows are one-hot, and made rows are then hardly random."""
OF_CONSTRAINTS: Final = (
    Scenario("generic", 3, (0, 1, 0), 3, seed=2),
    Scenario("generic", 3, (0, 1, 0), 4, seed=2),
    Scenario("point_draft", 3, (0, 1), 5, seed=3),
)
"""Texts of open rows over three tokens, of which a constraint that forbids one leaves two. The longer ones have rounds
behind drafts that the constraint refused, in which a matcher may have a wrong state; certain drafts give few paths."""
LARGE_TOKENS: Final = Scenario(CERTAIN, 300, (0,), 8, seed=2)
"""A scenario with tokens that do not fit in a byte."""
QUICK_SCENARIOS: Final = frozenset(
    (
        *SCALES_APART,
        NEARLY_EQUAL,
        SMALL_Q,
        LEFT_OVER,
        MANY_LEFT,
        *CARRIED,
        TRUNCATED,
        *AFTER_A_BONUS,
        AFTER_REJECTIONS,
        RANKED[0],
        *ALIKE_CHAINS,
        APART_CHAINS,
        *BRANCH_SCENARIOS,
        FOUR_SIBLINGS,
        *FIRST_REJECTIONS,
        ALL_UNCERTAIN,
        ONE_CHILD_SCENARIO,
        CONFIDENT,
    )
)
"""Scenarios in which every quick run compares the laws. Each shows faults that no other small scenario shows."""
QUICK_OF_ENGINES: Final = frozenset(
    (
        HISTORIES[0],
        BEHIND_A_WINDOW,
        LATE_ROWS,
        AFTER_MANY_REJECTIONS,
        AFTER_MANY_DRAFTS[0],
        LARGE_TOKENS,
        ONE_TOKEN,
        NEW_TOKENS,
        SIX_TOKENS,
    )
)
"""Further scenarios in which every quick run compares the laws of an engine."""
LONG_SCENARIOS: Final = (
    *(Scenario(CERTAIN, 4, prompt, 16, seed=31 + seed) for prompt in ((0,), (1, 1, 1, 1)) for seed in range(3)),
    *(Scenario(CERTAIN, 4, (0, 1, 2, 0, 1, 2, 0, 1), 16, seed=seed) for seed in (34, 35)),
    *(
        Scenario(open_after(first, first + apart), 3, prompt, 12, seed=36)
        for prompt in ((2,), (1, 1, 1, 1))
        for first, apart in ((len(prompt) + 2, 1), (len(prompt) + 3, 4), (len(prompt) + 6, 3))
    ),
    *AFTER_A_BONUS,
    AFTER_REJECTIONS,
    *HISTORIES,
    *RANKED,
    BEHIND_A_WINDOW,
    LATE_ROWS,
    AFTER_MANY_REJECTIONS,
    *AFTER_MANY_DRAFTS,
    *ALIKE_CHAINS,
    LARGE_TOKENS,
    *(
        Scenario(periodic_after(*lengths), 3, (0, 1, 2, 0, 1, 2, 0, 1), 12, seed=37)
        for lengths in ((9, 10), (8, 13), (9, 17), (11, 16))
    ),
)
"""Long decodes for engines: many rounds, more tokens than one cache block, prompts of one token and of repeated tokens.
In the last scenarios the text is periodic except after the open rows, so that drafts looked up in the text are
accepted."""
