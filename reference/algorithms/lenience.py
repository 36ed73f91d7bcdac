"""Lenience: accept d with probability ``min(1, p/(l q))``, for a lenience l in (0, 1] (2211.17192, A.5).

The residual is still ``norm((p - q)+)``, as in the authors' colab of speculative cascades. The law of a drafted token
is

    m + (1 - sum m) norm((p - q)+),   m = min(q, p/l)

which never exceeds p/l. l = 1 is speculative sampling; l -> 0 accepts every draft. At temperature 0 the paper relaxes
the logits instead; with one-hot targets the rule of this module stays greedy.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..coupling import excess_law, positive_part, residual
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


def lenient_probability(p: Pmf, q: Pmf, token: int, lenience: Any) -> Any:
    """Return ``min(1, p(d)/(l q(d)))`` for d = ``token`` and l = ``lenience``, without a division by zero."""
    mass, bar = p[token], parameter(lenience, p) * q[token]
    return mass / bar if mass < bar else mass * 0 + (mass > 0)


@from_parts
def build(task: Task, lenience: Any = Fraction(1, 2), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and accepts each with probability ``min(1, p/(l q))``.

    l is ``lenience``. Raises ``ValueError`` for a lenience outside (0, 1].
    """
    if not 0 < lenience <= 1:
        raise ValueError(f"lenience is {lenience}, expected a number in (0, 1] (1 is lossless)")
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: lenient_probability(p, q, token, lenience),
        replacement=lambda p, q, token: residual(p, q),
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, lenience: Any = Fraction(1, 2), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        raised = p / parameter(lenience, p)
        m = raised - positive_part(raised - q)
        return m.tolist(), ((1 - m.sum()) * excess_law(p, m)).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="lenience",
    summary="accept with min(1, p/(l q)), else emit from norm((p - q)+) (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"lenience": Fraction(4, 5), "gamma": 1}, {"lenience": Fraction(1, 2), "gamma": 2}),
    paper="arXiv 2211.17192, Appendix A.5",
    declared_law=declared_law,
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "speculative-sampling",
            "l = 1",
            {"lenience": 1, "gamma": 2},
            {"gamma": 2},
            shown_by="test_limits_of_declared_biases.py::test_a_rule_that_is_strict_is_speculative_sampling",
        ),
    ),
)
