"""The law that ``assistant_ensemble_weight`` has by its documentation: a declared bias (DIVERSE, 2604.07622).

Drafts are verified against v = w p + (1 - w) q instead of p: draft x is accepted with probability min(1, v(x)/q(x)),
and a rejected one is replaced from [p - q]+, which has the shape of [v - q]+. The bonus, and a token without a draft,
follow p. So where rounds begin and end decides which positions are biased, and the law is a recursion over rounds.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np

from reference import Tokens
from specverify.subjects.huggingface import next_token_pmfs
from specverify.subjects.huggingface_engines import Engine, drafts_as, engine_of
from specverify.subjects.huggingface_models import EngineSetting, build_assistant, build_target

WEIGHT = 0.7


def ensemble_engine(setting: EngineSetting) -> Engine:
    """Return assisted generation that is verified against the mixture, with weight ``WEIGHT`` on the target."""
    assistant = build_assistant(setting)
    drafts_as(assistant, setting)
    drafting, call = {"assistant_ensemble_weight": WEIGHT}, {"assistant_model": assistant}
    return engine_of(setting, build_target(setting), (assistant,), drafting=drafting, call=call)


def ensemble_law(setting: EngineSetting) -> dict[Tokens, float]:
    """Return the declared law at temperature 1 without truncation or end-of-sequence tokens, or of greedy decoding."""
    target, assistant = build_target(setting), build_assistant(setting)
    law: dict[Tokens, float] = defaultdict(float)

    @cache
    def rows(new: Tokens) -> tuple[Any, Any]:
        p, q = (np.array(next_token_pmfs(model, setting, [new])[0]) for model in (target, assistant))
        return p, q

    def drafts(new: Tokens) -> int:
        return min(setting.gamma, setting.horizon - len(new) - 1)

    def extend(new: Tokens, left: int, weight: float) -> None:
        if len(new) == setting.horizon:
            law[new] += weight
            return
        p, q = rows(new)
        accepted, other = _round_step(p, q, setting.sample) if left > 0 else (np.zeros(len(p)), _chosen(p, setting))
        for token in range(len(p)):
            longer = (*new, token)
            if accepted[token] > 0:
                extend(longer, left - 1, weight * accepted[token])
            if other[token] > 0:
                extend(longer, drafts(longer), weight * other[token])

    extend((), drafts(()), 1.0)
    return dict(law)


def _round_step(p: Any, q: Any, sample: bool) -> tuple[Any, Any]:
    """Return the mass of each token as an accepted draft, and as the token that replaces a rejected one."""
    mixture = WEIGHT * p + (1 - WEIGHT) * q
    if not sample:
        chosen = _one_hot(mixture)
        agrees = chosen * _one_hot(q)
        return agrees, chosen - agrees
    accepted = np.minimum(mixture, q)
    residual = np.maximum(p - q, 0.0)
    return accepted, (1 - accepted.sum()) * residual / residual.sum()


def _chosen(p: Any, setting: EngineSetting) -> Any:
    return p if setting.sample else _one_hot(p)


def _one_hot(pmf: Any) -> Any:
    return (np.arange(len(pmf)) == pmf.argmax()).astype(float)
