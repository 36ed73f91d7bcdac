"""NASD exactly as its theory document states it: accept iff the guess is argmax p, else draw from p.

Not lossless: ``declared_law`` returns the law of the output. Acceptance is not random, so a round is a fixed prefix of
guesses followed by one draw. The probability of a text is the product of the target's probabilities at the last tokens
of its rounds.
"""

from __future__ import annotations

from typing import Any

from ..drafters.ngram import NgramTable, ngram_drafter, ngram_table
from ..lengths.constant import constant
from ..pmf import argmax
from ..rounds import commit, from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task, Tokens
from ..verifiers.match_argmax_then_sample import match_argmax_then_sample


@from_parts
def build(task: Task, order: int = 3, gamma: int = 4) -> Parts:
    """Return the decoder that drafts up to ``gamma`` tokens from n-grams up to ``order``.

    A draft is accepted if it is the argmax of p.
    """
    return Parts(ngram_drafter(ngram_table(order)), constant(gamma), match_argmax_then_sample)


def declared_law(task: Task, prompt: Tokens, order: int = 3, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    In each round the guesses that equal the argmax of p are kept with probability 1, and the next token is drawn from
    p. The options are those of ``build``.
    """
    law: dict[Tokens, Any] = {}

    def extend(tokens: Tokens, remaining: int, table: NgramTable, weight: Any) -> None:
        if remaining == 0:
            law[tokens[len(prompt) :]] = law.get(tokens[len(prompt) :], 0) + weight
            return
        kept: Tokens = ()
        while len(kept) < min(gamma, remaining - 1):
            guess = table.predict(tokens + kept)
            if guess is None or guess != argmax(task.target(tokens + kept)):
                break
            kept = (*kept, guess)
        if any(token in task.eos for token in kept):
            ends = [(kept, 1)]
        else:
            p = task.target(tokens + kept).tolist()
            ends = [((*kept, token), mass) for token, mass in enumerate(p) if mass > 0]
        for block, mass in ends:
            new, left = commit(block, remaining, task.eos)
            extend(tokens + new, left, table.observe(tokens + new, len(tokens)), weight * mass)

    extend(prompt, task.horizon, ngram_table(order).observe(prompt), 1)
    return law


ALGORITHM = Algorithm(
    name="nasd-seed-rule",
    summary="accept d if d = argmax p, else sample p (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"order": 2, "gamma": 1}, {"order": 2, "gamma": 2}, {"order": 3, "gamma": 3}),
    paper="NASD theory document, Sections 3.1 and 3.2",
    declared_law=declared_law,
    systems=("NASD",),
    reductions=(Reduction("autoregressive", "gamma = 0", {"order": 2, "gamma": 0}),),
)
