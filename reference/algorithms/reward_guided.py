"""Reward-guided speculative decoding: a step of the draft model is kept if its reward is high enough (2501.19324).

The rule is that of the released code, BaohaoLiao/RSD at 933d8e5, ``main_online.py``, ``get_responses``. Every step is
drafted; it is kept if the process reward model gives it at least ``prm_threshold``, and otherwise written anew by the
target. There is no bonus step. A step is one token here, and the reward is a table: the (last token, drafted token)
pairs that reach the threshold. With w(d) = 1 for those and 0 for others, every token has the law

    q w + (1 - sum q w) p

which is neither p nor q. The reward may prefer tokens with p = 0, so the algorithm has no claims.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..laws import autoregressive_law
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Decoder, Draws, LanguageModel, Pmf, Reduction, Round, State, Task, Tokens

Pairs = tuple[tuple[int, int], ...]
"""(last token of the prefix, drafted token) pairs whose reward reaches the threshold."""


def build(task: Task, rewarded: Pairs = ()) -> Decoder:
    """Return the decoder that drafts one token d from q in every round.

    d is kept if the pair (last token, d) is in ``rewarded``; otherwise a token is drawn from p instead.
    """
    target, draft = checked_model(task.target, "target"), draft_model(task)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafted = draws.categorical(draft(state.tokens), ("draft", 0))
        stays = (state.tokens[-1], drafted) in rewarded
        token = drafted if stays else draws.categorical(target(state.tokens), ("target", 0))
        new, remaining = commit((token,), state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(new, (drafted,), int(stays), 1)

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step)


def mixed(task: Task, rewarded: Pairs) -> LanguageModel:
    """Return the language model with the law of a decoded step: ``q w + (1 - sum q w) p``.

    w is 1 for the pairs in ``rewarded``.
    """
    target, draft = checked_model(task.target, "target"), draft_model(task)

    @lru_cache(maxsize=4096)
    def mixture(tokens: Tokens) -> Pmf:
        p, q = target(tokens), draft(tokens)
        kept = q * np.array([int((tokens[-1], token) in rewarded) for token in range(len(q))])
        return kept + (1 - kept.sum()) * p

    return mixture


def declared_law(task: Task, prompt: Tokens, rewarded: Pairs = ()) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""
    return autoregressive_law(mixed(task, rewarded), task, prompt)


ALGORITHM = Algorithm(
    name="reward-guided",
    summary="accept a step d ~ q whose reward reaches a threshold, else sample p (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"rewarded": ((2, 0), (0, 1), (1, 1))}, {"rewarded": ((0, 0), (1, 0), (2, 1))}),
    paper="arXiv 2501.19324; code: BaohaoLiao/RSD 933d8e5, main_online.py",
    declared_law=declared_law,
    systems=("reward-guided speculative decoding",),
    needs_training="the process reward model",
    reductions=(Reduction("autoregressive", "no step is rewarded", {"rewarded": ()}, rounds=False),),
)
