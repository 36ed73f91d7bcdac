"""BiLD: a small model decodes greedily; the large model takes over and rolls back (Kim et al. 2302.07863).

Both models decode greedily, so the output is deterministic.

Fallback: the small model stops before a token with ``max q < fallback``, or after gamma tokens; then the large model is
called once. Rollback: the first small-model token with ``-log p(d) > rollback`` that is not the argmax of p is replaced
by that argmax, and everything after it is discarded. If there is none, the argmax of p is appended.

A token that is the argmax of p is kept even if it is unlikely, because a rollback would replace it by itself. The
output is the greedy text of the large model if rollback = 0, or if fallback > 1 (no drafts). With rollback = infinity
all small-model tokens are kept. A rational p(d) is compared exactly with ``exp(-rollback)``, which is one float64.
``bild_released`` has the loop of the published code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..drafters.model import stateless
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import argmax, point_on_argmax
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    chain,
)
from ..verifiers.accept_or_replace import accept_or_replace


def confident_drafter(draft: LanguageModel, fallback: Any) -> Drafter:
    """Return a drafter that proposes argmaxes of ``draft`` and stops before one with a probability below ``fallback``.

    Each drafted token has the pmf None, the point mass on this token.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted = confident(draft, prefix, fallback, gamma)
        return chain(drafted, (None,) * len(drafted))

    return Drafter(init=stateless, propose=propose, observe=stateless)


def confident(draft: LanguageModel, prefix: Tokens, fallback: Any, most: int, eos: Tokens = ()) -> Tokens:
    """Return at most ``most`` greedy tokens of ``draft`` after ``prefix``.

    They end after the first token in ``eos``, or before the first token whose row of q has ``max q < fallback``.
    """
    drafted: Tokens = ()
    while len(drafted) < most and not (drafted and drafted[-1] in eos):
        q = draft(prefix + drafted)
        if is_unsure(q, fallback):
            break
        drafted = (*drafted, argmax(q))
    return drafted


def is_unsure(q: Pmf, fallback: Any) -> bool:
    """Return whether ``max q < fallback``: the small model then stops, and the large model is called."""
    return bool(q.max() < parameter(fallback, q))


def is_unlikely(p: Pmf, token: int, rollback: float) -> bool:
    """Return whether ``-log p(token) > rollback``. Raises ``ValueError`` for a negative ``rollback``."""
    if not rollback >= 0:
        raise ValueError(f"rollback is {rollback}, expected a cross-entropy >= 0 in nats")
    return bool(p[token] < math.exp(-rollback))


def rolls_back(p: Pmf, token: int, rollback: float) -> bool:
    """Return whether the large model replaces ``token``: it is not the argmax of p, and its surprise is too large.

    The limit of the surprise is ``rollback``, see ``is_unlikely``.
    """
    return is_unlikely(p, token, rollback) and token != argmax(p)


@from_parts
def build(task: Task, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10) -> Parts:
    """Return the decoder whose small model drafts at most ``gamma`` tokens greedily; the large model verifies.

    The small model stops before a token with ``max q < fallback``. The large model replaces the first draft with ``-log
    p > rollback`` that is not the argmax of p.
    """
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: int(not rolls_back(p, token, rollback)),
        replacement=lambda p, q, token: point_on_argmax(p),
        bonus=point_on_argmax,
    )
    return Parts(confident_drafter(draft_model(task), fallback), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises: a point mass, because decoding is deterministic.

    The options are those of ``build``.
    """

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split | None:
        if is_unsure(q, fallback):
            return None
        if rolls_back(p, argmax(q), rollback):
            return [], point_on_argmax(p).tolist()
        return point_on_argmax(q).tolist(), []

    return chain_law(task, prompt, gamma, position, bonus=point_on_argmax)


ALGORITHM = Algorithm(
    name="bild",
    summary="the small model decodes greedily until it is unsure; the large model corrects improbable tokens "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"fallback": Fraction(1, 2), "rollback": 1.0, "gamma": 2},
        {"fallback": Fraction(1, 4), "rollback": 2.0, "gamma": 3},
    ),
    paper="arXiv 2302.07863, Section 3",
    declared_law=declared_law,
    systems=("BiLD",),
    needs_training="small and large models aligned by fine-tuning, and the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "greedy-speculation",
            "rollback = 0",
            {"fallback": 0, "rollback": 0.0, "gamma": 2},
            {"gamma": 2},
            rounds=False,
            shown_by="test_limits_of_declared_biases.py::test_deterministic_rules_at_their_strict_end_are_greedy_decoding",
        ),
    ),
)
