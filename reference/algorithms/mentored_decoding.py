"""Mentored decoding: accept as often as a bound on the divergence from p allows (V. Tran-Thien 2023; arXiv 2609.30474).

Among all pi with KL(p || pi) <= D, the one nearest to q in total variation has the form

    pi(v) = min(max(q(v), a p(v)), b p(v)),   a <= 1 <= b,   sum pi = 1

and exact speculative sampling of pi is used: acceptance ``sum min(pi, q)``, law pi. The same family is optimal for
KL(pi || p). The parameter here is b, the ``clip``, because it determines a as a ratio of sums, exactly in rationals;
``clip_within`` finds the b of a budget D in floats. b = 1 (D = 0) is speculative sampling; b -> infinity accepts every
draft with p > 0. The family was derived from the optimisation problem; the formulas of blog and paper were not
available.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..drafters.model import model_drafter
from ..laws import autoregressive_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import as_pmf, checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, LanguageModel, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


def floor_of(p: Pmf, q: Pmf, clip: Any) -> Any:
    """Return a in [0, 1] such that the pmf pi = min(max(q, a p), b p) sums to 1; b is ``clip``."""
    tokens = sorted((proposed / mass, mass, proposed) for mass, proposed in _pairs(p, q) if mass > 0)
    raised, others = 0, sum(min(proposed, clip * mass) for _, mass, proposed in tokens)
    for ratio, mass, proposed in tokens:
        if raised > 0 and raised * ratio + others >= 1:
            break
        raised, others = raised + mass, others - min(proposed, clip * mass)
    return (1 - others) / raised


def clipped(p: Pmf, q: Pmf, clip: Any) -> Pmf:
    """Return pi, the pmf ``[V]`` nearest to q of all between a p and b p, with b = ``clip`` and a from ``floor_of``.

    Raises ``ValueError`` for a clip below 1.
    """
    if not clip >= 1:
        raise ValueError(f"clip is {clip}, expected a number >= 1 (1 is lossless)")
    clip = parameter(clip, p)
    low = floor_of(p, q, clip)
    return as_pmf([min(max(proposed, low * mass), clip * mass) for mass, proposed in _pairs(p, q)])


def divergence(p: Pmf, pi: Pmf) -> float:
    """Return KL(p || pi) in nats; infinite if pi is 0 where p is positive."""
    pairs = [(float(mass), float(other)) for mass, other in _pairs(p, pi) if mass > 0]
    return math.fsum(mass * math.log(mass / other) if other > 0 else math.inf for mass, other in pairs)


def clip_within(p: Pmf, q: Pmf, budget: float) -> float:
    """Return the largest clip with KL(p || pi) <= ``budget``, by bisection.

    If every clip meets the budget, the result is a clip so large that it has no effect.
    """
    low, high = 1.0, max(float(other / mass) for mass, other in _pairs(p, q) if mass > 0)
    if high <= low or divergence(p, clipped(p, q, high)) <= budget:
        return max(low, high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(p, clipped(p, q, middle)) <= budget else (low, middle)
    return low


def _pairs(p: Pmf, q: Pmf) -> list[tuple[Any, Any]]:
    return list(zip(p.tolist(), q.tolist(), strict=True))


def mentored(task: Task, clip: Any) -> LanguageModel:
    """Return the language model whose rows are q, clipped to stay near p (``clipped``).

    q and p are the draft model and the target of ``task``; ``clip`` is the largest factor of p.
    """
    target, draft = checked_model(task.target, "target"), draft_model(task)
    return lru_cache(maxsize=4096)(lambda tokens: clipped(target(tokens), draft(tokens), clip))


@from_parts
def build(task: Task, clip: Any = 2, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them against pi by speculative sampling.

    pi is q, clipped to at most ``clip`` times p (``clipped``).
    """
    pi = mentored(task, clip)
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling, target=pi)


def declared_law(task: Task, prompt: Tokens, clip: Any = 2, gamma: int = 4) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability: that of plain decoding from ``mentored``.

    It is the same for every gamma. The options are those of ``build``.
    """
    return autoregressive_law(mentored(task, clip), task, prompt)


ALGORITHM = Algorithm(
    name="mentored-decoding",
    summary="pi = q clipped to [a p, b p]; speculative sampling of pi (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"clip": Fraction(3, 2), "gamma": 1}, {"clip": 2, "gamma": 2}),
    paper="arXiv 2609.30474; V. Tran-Thien, An optimal lossy variant of speculative decoding (Hugging Face blog, 2023)",
    declared_law=declared_law,
    systems=("mentored decoding",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "clip = 1",
            {"clip": 1, "gamma": 2},
            {"gamma": 2},
            shown_by="test_limits_of_declared_biases.py::test_a_rule_that_is_strict_is_speculative_sampling",
        ),
    ),
)
