"""Judge decoding: accept d if speculative sampling does, or if a judge calls it correct (Bachmann et al. 2501.19309).

The paper's judge is a linear head on the target's embedding of d; here it is a table of (last token, d) pairs. With
J(d) the judge's verdict, 0 or 1, ``a(d) = max(min(1, p/q), J(d))``, and the law of a drafted token is

    q a + (1 - sum q a) norm((p - q)+)

An empty table is speculative sampling, a full one accepts every draft. Nothing bounds the bias, and a judge may approve
a token with p = 0, so neither support nor greedy decoding is claimed. The residual after a rejection is that of
speculative sampling; the paper's own replacement rule could not be confirmed.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, positive_part, residual
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace

Pairs = tuple[tuple[int, int], ...]
"""(last token of the prefix, drafted token) pairs that the judge calls correct."""


@from_parts
def build(task: Task, correct: Pairs = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q, each accepted by the judge or else with min(1, p/q).

    ``correct`` are the pairs (last token, d) that the judge accepts. A rejected draft is replaced by a draw from the
    residual.
    """

    def accept(prefix: Tokens, p: Pmf, q: Pmf, token: int) -> Any:
        return 1 if (prefix[-1], token) in correct else accept_probability(p, q, token)

    verify = accept_or_replace(accept, replacement=lambda p, q, token: residual(p, q))
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, correct: Pairs = (), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        minima = (p - positive_part(p - q)).tolist()
        kept = [q[token] if (prefix[-1], token) in correct else mass for token, mass in enumerate(minima)]
        return kept, ((1 - sum(kept)) * residual(p, q)).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="judge-decoding",
    summary="accept with min(1, p/q) or if a judge approves, else emit from norm((p - q)+) (declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"correct": ((0, 1), (1, 1)), "gamma": 1},
        {"correct": ((0, 0), (1, 0), (2, 1)), "gamma": 2},
    ),
    paper="arXiv 2501.19309, Section 4",
    declared_law=declared_law,
    systems=("judge decoding",),
    needs_training="the judge, a linear head on the target's embeddings",
    reductions=(
        Reduction(
            "speculative-sampling",
            "the judge approves no token",
            {"correct": (), "gamma": 2},
            {"gamma": 2},
            shown_by="test_limits_of_declared_biases.py::test_a_rule_that_is_strict_is_speculative_sampling",
        ),
    ),
)
