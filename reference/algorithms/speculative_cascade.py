"""Speculative cascades: exact speculative sampling of a mixture pi of p and q (Narasimhan et al. 2405.19261).

At every position a deferral rule chooses between the small and the large model; the output law is exactly that of the
mixed model pi, and a draft is accepted with probability ``1 - TV(pi, q)``. The rules, with parameter alpha:

    chow       pi = q  where  max q >= 1 - alpha                      (equation 2), else p
    diff       pi = q  where  max q >= max p - alpha                  (equation 5), else p
    opt        pi = q  where  max q >= max p - alpha TV(p, q)         (equation 10), else p
    token-v1   pi = q 1[T] + q(not T) p,  T = {v: q(v) >= max p - alpha}   (equation 13)
    token-v2   the same with              T = {v: p(v) >= max p - alpha}   (equation 14)

Equation numbers are those of the authors' colab. The rule that only keeps tokens of positive target probability is
``token_cascade``. Under none of these rules is the output always supported by p, or greedy on one-hot targets, so
neither is claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..coupling import total_variation
from ..drafters.model import model_drafter
from ..laws import autoregressive_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, LanguageModel, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


def keep_tokens(p: Pmf, q: Pmf, good: Any) -> Pmf:
    """Return ``q 1[T] + q(not T) p``: the law if a draft outside T is replaced by a draw from p.

    ``good`` is the mask of T.
    """
    kept = q * good
    return kept + (1 - kept.sum()) * p


RULES: dict[str, Callable[[Pmf, Pmf, Any], Pmf]] = {
    "chow": lambda p, q, alpha: q if q.max() >= 1 - alpha else p,
    "diff": lambda p, q, alpha: q if q.max() >= p.max() - alpha else p,
    "opt": lambda p, q, alpha: q if q.max() >= p.max() - alpha * total_variation(p, q) else p,
    "token-v1": lambda p, q, alpha: keep_tokens(p, q, q >= p.max() - alpha),
    "token-v2": lambda p, q, alpha: keep_tokens(p, q, p >= p.max() - alpha),
}


def cascade(task: Task, rule: str, alpha: Any) -> LanguageModel:
    """Return the language model pi that mixes the rows of the target and the draft model of ``task``.

    ``rule``, a name such as "chow", and its parameter ``alpha`` decide whether and where a row of q is used. Raises
    ``ValueError`` for an unknown rule or a task without a draft model.
    """
    if rule not in RULES:
        raise ValueError(f"the rule is {rule!r}, expected one of {', '.join(RULES)}")
    target, draft = checked_model(task.target, "target"), draft_model(task)

    @lru_cache(maxsize=4096)
    def mixed(tokens: Tokens) -> Pmf:
        p = target(tokens)
        return RULES[rule](p, draft(tokens), parameter(alpha, p))

    return mixed


@from_parts
def build(task: Task, rule: str = "opt", alpha: Any = Fraction(1, 2), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them against pi by speculative sampling.

    pi is the mixture of p and q by ``rule`` with the parameter ``alpha`` (see ``cascade``).
    """
    pi = cascade(task, rule, alpha)
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling, target=pi)


def declared_law(
    task: Task, prompt: Tokens, rule: str = "opt", alpha: Any = Fraction(1, 2), gamma: int = 4
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability: that of plain decoding from ``cascade``.

    It is the same for every gamma. The options are those of ``build``.
    """
    return autoregressive_law(cascade(task, rule, alpha), task, prompt)


ALGORITHM = Algorithm(
    name="speculative-cascade",
    summary="pi = q where q is good enough, else p; speculative sampling of pi (declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"rule": "token-v1", "alpha": Fraction(1, 4), "gamma": 1},
        {"rule": "opt", "alpha": Fraction(1, 2), "gamma": 2},
    ),
    paper="arXiv 2405.19261, equations 2, 5, 10, 13, 14",
    declared_law=declared_law,
    systems=("speculative cascades",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "speculative-sampling",
            "alpha = -1",
            {"rule": "diff", "alpha": -1, "gamma": 2},
            {"gamma": 2},
            shown_by="test_limits_of_declared_biases.py::test_a_rule_that_is_strict_is_speculative_sampling",
        ),
    ),
)
