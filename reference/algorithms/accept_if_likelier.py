"""Accept d iff p(d) >= q(d), else draw from p: the acceptance ratio used as a condition.

Not lossless: ``declared_law`` returns the law of the output. A drafted position emits token v with probability ``q(v)
1[p(v) >= q(v)] + c p(v)``. Here c is the probability that the draft is rejected: the mass under q of the tokens with p
< q. A draft with q(d) > p(d) is never accepted. With p = q every draft is accepted. If p and q are equal except for
rounding by two kernels, about a third of the drafts is rejected.
"""

from __future__ import annotations

from typing import Any

from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import perfect_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and accepts a draft d iff p(d) >= q(d)."""
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: int(p[token] >= q[token]),
        replacement=lambda p, q, token: p,
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        kept = q * (p >= q)
        return kept.tolist(), ((q - kept).sum() * p).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="accept-if-likelier",
    summary="accept iff p(d) >= q(d), else sample p (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="edge-cloud guide, Section 6.2 (its code)",
    declared_law=declared_law,
    reductions=(
        Reduction(
            "speculative-sampling",
            "q = p",
            {"gamma": 2},
            {"gamma": 2},
            limit=perfect_draft,
            shown_by="test_limits_of_declared_biases.py::test_a_target_that_is_its_own_draft_hides_the_bias",
        ),
    ),
)
