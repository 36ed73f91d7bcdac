"""SGLang's two acceptance thresholds: a draft is accepted by a scaled p(d), or because p(d) is large enough.

The rule is that of sgl-project/sglang, ``sgl-kernel/csrc/speculative/speculative_sampling.cuh``, the kernel
``TreeSpeculativeSamplingTargetOnly``; here drafts form a chain instead of a tree. With
``speculative_accept_threshold_single`` (``single``) and ``speculative_accept_threshold_acc`` (``acc``) a uniform u
accepts the draft d if

    u <= p(d)/acc   or   p(d) >= single

and the first rejected draft is replaced by a draw from p without d. If both thresholds have their default of 1, a draft
is accepted with probability p(d), which is lossless. The kernel does not read q: it treats every draft as a point mass.
In a tree, p is added up over the siblings tried so far before it is compared; a chain has no siblings.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..coupling import residual
from ..drafters.model import greedy_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..models import draft_model
from ..parameters import parameter
from ..pmf import argmax, one_hot
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


def kept_probability(p: Pmf, token: int, single: Any, acc: Any) -> Any:
    """Return the probability that the draft d = ``token`` is accepted.

    It is 1 if p(d) >= ``single``, else ``min(1, p(d)/acc)``. Raises ``ValueError`` for thresholds outside (0, 1].
    """
    if not (0 < single <= 1 and 0 < acc <= 1):
        raise ValueError(f"single is {single} and acc {acc}, expected numbers in (0, 1] (1 and 1 are lossless)")
    mass, one = p[token], p.sum() * 0 + 1
    return one if mass >= parameter(single, p) else min(mass / parameter(acc, p), one)


@from_parts
def build(task: Task, single: Any = 1, acc: Any = 1, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q.

    A draft d is accepted if p(d) >= ``single``, and otherwise with probability ``min(1, p(d)/acc)``.
    """
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: kept_probability(p, token, single, acc),
        replacement=lambda p, q, token: residual(p, one_hot(token, p)),
    )
    return Parts(greedy_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, single: Any = 1, acc: Any = 1, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    A token is the argmax d of q if d is accepted, else a draw from p without d. The options are those of ``build``.
    """

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        point = one_hot(argmax(q), p)
        kept = kept_probability(p, argmax(q), single, acc)
        return (point * kept).tolist(), (residual(p, point) * (1 - kept)).tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="accept-thresholds",
    summary="accept d = argmax q with min(1, p/acc), or if p(d) >= single, else emit from p without d (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"single": 1, "acc": Fraction(1, 2), "gamma": 2},
        {"single": Fraction(1, 4), "acc": 1, "gamma": 2},
    ),
    paper="code: sgl-project/sglang, sgl-kernel/csrc/speculative/speculative_sampling.cuh",
    declared_law=declared_law,
    systems=("SGLang's acceptance thresholds",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction("sample-and-match", "both options are 1, q one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_draft),
    ),
)
