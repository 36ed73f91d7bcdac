"""The law that ``assistant_ensemble_weight`` has by its documentation: a declared bias (DIVERSE, 2604.07622).

Drafts are verified against v = w p + (1 - w) q instead of p: draft x is accepted with probability min(1, v(x)/q(x)). A
rejected draft is replaced by a draw from [p - q]+, which has the shape of [v - q]+. The bonus token, and a token
without a draft, follow p. So the biased positions depend on where rounds begin and end, and the law is computed round
by round.

The parameter ``setting`` of the functions here is the configuration of the call: models, sampling parameters, draft
length, stopping and prompt.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from specverify.engines.huggingface.generation import GenerateCall, call_of, drafts_as
from specverify.engines.huggingface.real_generate import next_token_pmfs
from specverify.engines.huggingface.tiny_models import EngineSetting, build_assistant, build_target
from specverify.reference import Task, Tokens, point_on_argmax, residual
from specverify.reference.laws import chain_law

WEIGHT = 0.7


def ensemble_engine(setting: EngineSetting) -> GenerateCall:
    """Return a call of assisted generation for ``setting`` that verifies drafts against the mixture of p and q.

    The weight of p is ``WEIGHT``.
    """
    assistant = build_assistant(setting)
    drafts_as(assistant, setting)
    drafting, call = {"assistant_ensemble_weight": WEIGHT}, {"assistant_model": assistant}
    return call_of(setting, build_target(setting), (assistant,), drafting=drafting, call=call)


def ensemble_law(setting: EngineSetting) -> dict[Tokens, float]:
    """Return the declared law of ``ensemble_engine``, new tokens -> probability.

    ``setting`` must be greedy, or have temperature 1 and no truncation.
    """
    new_at = len(setting.prompt)

    def rows_of(model: Any) -> Any:
        return cache(lambda tokens: np.array(next_token_pmfs(model, setting, [tokens[new_at:]])[0]))

    task = Task(rows_of(build_target(setting)), rows_of(build_assistant(setting)), horizon=setting.horizon)

    def position(_: Tokens, p: Any, q: Any) -> Any:
        return _round_step(p, q, setting.sample)

    def undrafted(p: Any) -> Any:
        return p if setting.sample else point_on_argmax(p)

    return chain_law(task, setting.prompt, setting.gamma, position, undrafted)


def _round_step(p: Any, q: Any, sample: bool) -> tuple[Any, Any]:
    """Return two arrays ``[V]`` for one position: P(x is drafted and accepted) and P(x replaces a rejected draft).

    ``p`` and ``q`` are the pmfs of target and assistant. If ``sample`` is false, decoding is greedy.
    """
    mixture = WEIGHT * p + (1 - WEIGHT) * q
    if not sample:
        chosen = point_on_argmax(mixture)
        agrees = chosen * point_on_argmax(q)
        return agrees, chosen - agrees
    accepted = np.minimum(mixture, q)
    return accepted, (1 - accepted.sum()) * residual(p, q)
