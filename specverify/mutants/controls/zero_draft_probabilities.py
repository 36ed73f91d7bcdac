"""A tree kernel with draft probabilities of 0: one coin against the sum of p over the candidates tried so far."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import Control, correct
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import Draws, Pmf, Tokens, flip
from specverify.reference.drafters.tree import excluding, most_likely
from specverify.reference.tree_rounds import Step
from specverify.subjects.algorithm import algorithm_subject


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Keep the candidate in whose part of [0, sum p) the coin falls, else emit from p without them."""
    below = p[0] * 0
    for k, token in enumerate(tokens):
        if below < 1 and flip(draws, p[token] / (1 - below), ("accept", depth, k)):
            return Step(token, accepted=True)
        below = below + p[token]
    rest = excluding(p, tokens)
    return Step(draws.categorical(p if rest is None else rest, ("residual", depth)), accepted=False)


ROW = correct("candidate-set")._replace(
    name="zero-draft-probabilities", build=with_tree(by_siblings(rule), most_likely), examples=PAIR
)

CONTROL = Control(
    "zero-draft-probabilities",
    "a tree kernel that is told q = 0",
    "SGLang issues #9877, #10308",
    partial(algorithm_subject, ROW, "control"),
)
