"""Output laws in closed form, for algorithms that are not lossless. They are computed without running the decoder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from .models import draft_model
from .pmf import argmax
from .rounds import commit
from .types import LanguageModel, Pmf, Task, Tokens
from .validation import check_instance, checked_tokens

Split: TypeAlias = tuple[Sequence[Any], Sequence[Any]]
"""Pair (kept, replaced) at a drafted position: for each token, the probability that it is emitted as an accepted draft,
and as a replacement."""


def greedy_law(task: Task, prompt: Tokens, **_: Any) -> dict[Tokens, Any]:
    """Return the point mass on the target's greedy continuation of ``prompt`` (new tokens only).

    Raises ``ValueError`` for an invalid task or prompt.
    """
    check_instance(task, "task", Task)
    prompt = checked_tokens(prompt, "the prompt")
    new: Tokens = ()
    while len(new) < task.horizon and not (new and new[-1] in task.eos):
        new = (*new, argmax(task.target(prompt + new)))
    return {new: 1}


def autoregressive_law(model: LanguageModel, task: Task, prompt: Tokens) -> dict[Tokens, Any]:
    """Return the law of ``model`` decoding alone after ``prompt``, new tokens -> probability.

    An algorithm that is lossless for ``model``, in place of the task's target, has this law.
    """
    return chain_law(task._replace(target=model, draft=model), prompt, 0, lambda prefix, p, q: None)


def law_of_rounds(
    task: Task, prompt: Tokens, blocks: Callable[[Tokens, int], Iterable[tuple[Tokens, Any]]]
) -> dict[Tokens, Any]:
    """Return the output law after ``prompt`` of an algorithm whose round depends only on the text before it.

    The law maps new tokens to their probability. ``blocks(prefix, remaining)`` yields the tokens that a round may
    commit, at least one, with their probability.
    """
    law: dict[Tokens, Any] = defaultdict(int)
    reached: list[dict[Tokens, Any]] = [defaultdict(int) for _ in range(task.horizon + 1)]
    reached[task.horizon][()] = 1
    for remaining in range(task.horizon, 0, -1):
        for new, weight in reached[remaining].items():
            for block, mass in blocks(prompt + new, remaining):
                if not mass > 0:
                    continue
                committed, left = commit(block, remaining, task.eos)
                (reached[left] if left else law)[new + committed] += weight * mass
    return dict(law) if task.horizon else {(): 1}


def drafted_blocks(draft: LanguageModel, prefix: Tokens, count: int) -> list[tuple[Tokens, Any]]:
    """Return every block of ``count`` tokens that ``draft`` may draw after ``prefix``, with its probability."""
    blocks: list[tuple[Tokens, Any]] = [((), 1)]
    for _ in range(count):
        blocks = [
            ((*block, token), weight * mass)
            for block, weight in blocks
            for token, mass in enumerate(draft(prefix + block).tolist())
            if mass > 0
        ]
    return blocks


def chain_law(
    task: Task,
    prompt: Tokens,
    gamma: int,
    position: Callable[[Tokens, Pmf, Pmf], Split | None],
    bonus: Callable[[Pmf], Pmf] = lambda p: p,
) -> dict[Tokens, Any]:
    """Return the output law of a chain decoder after ``prompt``, new tokens -> probability.

    A round starts with ``min(gamma, remaining - 1)`` drafts. ``position(prefix, p, q)`` returns two arrays ``[V]`` of
    weights, (kept, replaced), whose entries together sum to 1: after a kept token the round continues, after a replaced
    one it ends. If it returns None, or after the last draft, a token drawn from ``bonus(p)`` ends the round.
    """
    draft = draft_model(task)
    law: dict[Tokens, Any] = defaultdict(int)
    reached: dict[tuple[Tokens, int], Any] = {((), min(gamma, task.horizon - 1)): 1}
    for length in range(task.horizon):
        start = min(gamma, task.horizon - length - 2)
        after: dict[tuple[Tokens, int], Any] = defaultdict(int)
        for (new, left), weight in reached.items():
            prefix = prompt + new
            p = task.target(prefix)
            split = position(prefix, p, draft(prefix)) if left > 0 else None
            kept, replaced = ([], bonus(p).tolist()) if split is None else split
            for masses, drafts_left in ((kept, left - 1), (replaced, start)):
                for token, mass in enumerate(masses):
                    if not mass > 0:
                        continue
                    text = (*new, token)
                    if len(text) == task.horizon or token in task.eos:
                        law[text] += weight * mass
                    else:
                        after[text, drafts_left] += weight * mass
        reached = after
    return dict(law) if task.horizon else {(): 1}
