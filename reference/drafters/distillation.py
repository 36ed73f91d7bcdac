"""Distillation of a drafter from its target: divergences of pmfs, their gradients in the logits, the acceptance alpha.

DistillSpec (Zhou et al. 2310.08461) and online speculative decoding (Liu et al. 2310.07177) minimise, over the contexts
of some text, forward KL(p | q), reverse KL(q | p), the beta-weighted Jensen-Shannon divergence or TV(p, q). With q =
softmax(z) every gradient has one form: if g(v) is the derivative in q(v), the derivative in z is ``q (g - <q, g>)``.
The goal is alpha, the mean of sum min(p, q) = 1 - TV(p, q) over the contexts of text that the target emits, because
rounds begin there.

The student here is a table of logits ``[V, V]`` with one row for each last token. It can agree with a target of longer
memory only on average, as a small model does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..coupling import overlap
from ..types import LanguageModel, Pmf, Tokens
from ..warpers import softmax


class Divergence(NamedTuple):
    """A divergence of float64 pmfs ``[V]``, and its partial derivatives in the entries of q.

    ``value(p, q)`` returns the divergence, ``slope(p, q)`` the derivatives ``[V]``.
    """

    value: Callable[[Pmf, Pmf], float]
    slope: Callable[[Pmf, Pmf], Any]


def kl(p: Pmf, q: Pmf) -> float:
    """Return ``sum p ln(p/q)`` in nats; infinite where q is 0 and p is not."""
    possible = p > 0
    with np.errstate(divide="ignore"):
        return float((p[possible] * (np.log(p[possible]) - np.log(q[possible]))).sum())


def jensen_shannon(beta: float) -> Divergence:
    """Return the divergence ``beta KL(p | m) + (1 - beta) KL(q | m)`` with m = beta p + (1 - beta) q.

    Raises ``ValueError`` unless 0 < beta < 1.
    """
    if not 0 < beta < 1:
        raise ValueError(f"beta is {beta}, expected a number strictly between 0 and 1")

    def value(p: Pmf, q: Pmf) -> float:
        middle = beta * p + (1 - beta) * q
        return beta * kl(p, middle) + (1 - beta) * kl(q, middle)

    return Divergence(value, lambda p, q: (1 - beta) * np.log(q / (beta * p + (1 - beta) * q)))


def _slope_of_reverse_kl(p: Pmf, q: Pmf) -> Any:
    if not (p > 0).all():
        raise ValueError("the target has a token of probability 0, expected none: reverse KL is infinite there")
    return np.log(q / p) + 1


FORWARD_KL = Divergence(kl, lambda p, q: -p / q)
REVERSE_KL = Divergence(lambda p, q: kl(q, p), _slope_of_reverse_kl)
"""KL(q || p). The target must have no zero: otherwise it is infinite for every softmax, and its slope raises
``ValueError``."""
TOTAL_VARIATION = Divergence(lambda p, q: float(abs(p - q).sum() / 2), lambda p, q: np.sign(q - p) / 2)
"""TV(p, q) = 1 - alpha, so its gradient is minus that of the acceptance rate alpha. Where p(v) = q(v) one of several
subgradients is returned."""


def gradient(divergence: Divergence, p: Pmf, logits: Any) -> Any:
    """Return the gradient ``[V]`` of ``divergence(p, softmax(logits))`` in the logits; its entries sum to 0."""
    q = softmax(logits)
    slope = divergence.slope(p, q)
    return q * (slope - (q * slope).sum())


def visits(model: LanguageModel, prompt: Tokens, length: int) -> dict[Tokens, Any]:
    """Return context -> probability that the text that ``model`` emits after ``prompt`` begins with this context.

    A context is ``prompt`` followed by fewer than ``length`` new tokens. The probabilities of the contexts of one
    length sum to 1, so all values sum to ``length``.
    """
    result: dict[Tokens, Any] = {}
    level: dict[Tokens, Any] = {prompt: 1}
    for _ in range(length):
        result |= level
        level = {
            (*context, token): weight * mass
            for context, weight in level.items()
            for token, mass in enumerate(model(context).tolist())
            if mass > 0
        }
    return result


def expected_acceptance(target: LanguageModel, draft: LanguageModel, prompt: Tokens, length: int) -> Any:
    """Return alpha: the mean of ``sum min(p, q)`` over the contexts of ``length`` tokens that the target emits.

    The result has the number type of the pmfs. Raises ``ValueError`` for a length below 1.
    """
    if length < 1:
        raise ValueError(f"length is {length}, expected at least 1 emitted token")
    passed = visits(target, prompt, length)
    return sum(weight * overlap(target(context), draft(context)) for context, weight in passed.items()) / length


def last_token_model(logits: Any) -> LanguageModel:
    """Return the student model with these logits ``[V, V]``; its row depends on the last token alone."""
    return lambda tokens: softmax(logits[tokens[-1]])


def distilled(
    target: LanguageModel,
    logits: Any,
    divergence: Divergence,
    prompt: Tokens,
    length: int,
    *,
    rate: float,
    steps: int,
    own_text: bool = False,
) -> Any:
    """Return the student's logits after ``steps`` full gradient steps on the mean divergence over emitted text.

    Contexts are weighted by their probability in text of ``length`` tokens after ``prompt``, emitted by the target or,
    with ``own_text``, by the student. Nothing is sampled. ``logits`` are those before training, unchanged, and ``rate``
    is the step size.
    """
    logits = np.array(logits, dtype=np.float64)
    for _ in range(steps):
        total = np.zeros_like(logits)
        source = last_token_model(logits) if own_text else target
        for context, weight in visits(source, prompt, length).items():
            total[context[-1]] += weight / length * gradient(divergence, target(context), logits[context[-1]])
        logits = logits - rate * total
    return logits
