"""SpecDec: greedy drafts accepted by the target's top-beta and a tolerance (Xia et al. 2203.16487). Deterministic.

Draft d is accepted iff it is among the beta most probable tokens and ``log p(top 1) - log p(d) <= tau``. The target's
argmax is emitted at the first rejection, and after a block whose drafts are all accepted, as in the released code. beta
= 1 or tau = 0 is greedy decoding of the target (tau = 0: except for ties). Ties go to lower ids. On one-hot targets the
output is the target's own text. In general it is a point mass, and its total variation from the target's law is 1 minus
the target's probability of the text.

The paper's drafter fills the block in one pass. The rule depends only on its tokens, which here are the drafter's
greedy text. The log ratio is one float64, computed from p alone, by the decoder and by ``declared_law`` alike.
"""

from __future__ import annotations

import math
from typing import Any

from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..pmf import argmax, point_on_argmax, top_tokens
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


def passes(p: Pmf, token: int, beta: int, tau: float) -> bool:
    """Return whether ``token`` is among the ``beta`` most probable of p and within ``tau`` nats of the best.

    Raises ``ValueError`` unless beta >= 1 and tau >= 0.
    """
    if beta < 1 or not tau >= 0:
        raise ValueError(f"beta is {beta} and tau is {tau}, expected beta >= 1 and tau >= 0")
    return token in top_tokens(p, beta) and math.log(float(p.max() / p[token])) <= tau


@from_parts
def build(task: Task, beta: int = 5, tau: float = 3.0, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q, verified by SpecDec's rule.

    A draft is accepted if it is among the ``beta`` most probable tokens of p and within ``tau`` nats of the best one.
    """
    draft = draft_model(task)
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: int(passes(p, token, beta, tau)),
        replacement=lambda p, q, token: point_on_argmax(p),
        bonus=point_on_argmax,
    )
    return Parts(model_drafter(lambda tokens: point_on_argmax(draft(tokens))), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, beta: int = 5, tau: float = 3.0, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises: a point mass, because decoding is deterministic.

    The options are those of ``build``.
    """

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        guess = argmax(q)
        return (point_on_argmax(q).tolist(), []) if passes(p, guess, beta, tau) else ([], point_on_argmax(p).tolist())

    return chain_law(task, prompt, gamma, position, bonus=point_on_argmax)


ALGORITHM = Algorithm(
    name="specdec",
    summary="accept d among the top beta tokens of p, within tau of the best, else emit the argmax (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"beta": 2, "tau": 0.7, "gamma": 2}, {"beta": 3, "tau": 3.0, "gamma": 3}),
    paper="arXiv 2203.16487, Section 3.2; beta and tau as in the released inference code",
    declared_law=declared_law,
    systems=("SpecDec",),
    needs_training="its drafter, which drafts a block in one pass",
    reductions=(
        Reduction(
            "greedy-speculation",
            "beta = 1",
            {"beta": 1, "tau": 3.0, "gamma": 2},
            {"gamma": 2},
            rounds=False,
            shown_by="test_limits_of_declared_biases.py::test_deterministic_rules_at_their_strict_end_are_greedy_decoding",
        ),
    ),
)
