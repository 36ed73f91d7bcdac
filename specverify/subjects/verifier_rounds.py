"""The decoder of a verifier: in each round it drafts tokens from q and passes them to the verifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.law import target_law
from specverify.laws.paths import Undecided
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    Round,
    Sampled,
    State,
    Task,
    Tokens,
    chain,
    commit,
    constant,
    generate,
    model_drafter,
)
from specverify.reference.models import draft_model
from specverify.reference.rounds import initial_state
from specverify.subjects.algorithm import float_task
from specverify.subjects.remembered_calls import remembered
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import FIRST_LOOK, Context, Intercepted, SampledSetting, Variant

Decide = Callable[[Draws, State, Draft], Any]
"""``decide(draws, state, draft)`` returns the tokens of a round, or ``Undecided`` if the last one may stay symbolic."""
START: Tokens = (0, 1)
MOST_TEXTS = 512
"""The most texts of a sampled law, unless the least vocabulary has more."""


def variant_of(label: str, make: Callable[..., Decoder], **more: Any) -> Variant:
    """Return the variant called ``label`` of a verifier; ``make(task)`` returns its decoder.

    ``make`` also takes a second argument ``answered``: ``answered(draws)`` is the context manager in which the verifier
    is called. ``more`` are further fields of ``Variant``.
    """
    intercepted = Intercepted(make, answered_everywhere)
    return Variant(label, make, intercepted=intercepted, remembered=partial(make, answered=remembered), **more)


def setting_of_decoder(
    make: Callable[[Task, Context], Decoder],
    label: str,
    drafts: int,
    process: Callable[[Task], Task] | None = None,
    least: int = 2,
) -> SampledSetting:
    """Return the decoder ``make(task, answered)`` as a setting that is sampled with its own random numbers.

    * ``label``: A part of the name of the setting.
    * ``drafts``: The largest number of drafts per round. The horizon is one more, and at least 3.
    * ``process``: Applies sampling parameters to the models of a task; None: there are none. The expected law is that
      of the processed target.
    * ``least``: The smallest vocabulary.
    """
    horizon = max(3, drafts + 1)
    vocabulary = max(least, *(size for size in range(1, 9) if size**horizon <= MOST_TEXTS))
    task = partial(_sampled_task, vocabulary, horizon, process)
    return SampledSetting(
        name=f"V={vocabulary} horizon={horizon} {label}, its own random numbers",
        sample=partial(_sample, make, task),
        law=partial(_law, task),
        detect=0.05,
        first_look=FIRST_LOOK,
    )


def _sampled_task(vocabulary: int, horizon: int, process: Callable[[Task], Task] | None) -> Task:
    task = float_task(vocabulary, 1.0, horizon)
    return task if process is None else process(task)


def _law(task: Callable[[], Task]) -> Mapping[Tokens, float]:
    return target_law(task(), START)


def _sample(
    make: Callable[[Task, Context], Decoder], task: Callable[[], Task], number: int, seed: int
) -> Mapping[Tokens, int]:
    decoder = make(task(), _not_answered)
    with seeded(seed):  # what it finds out at its first call, with a draw or two, is no part of the sample
        generate(decoder, START, Sampled(seed))
    draws = Sampled(seed)
    with seeded(seed):
        return Counter(generate(decoder, START, draws).tokens for _ in range(number))


def _not_answered(_: Draws) -> AbstractContextManager[None]:
    return nullcontext()


def rounds(task: Task, gamma: int, decide: Decide) -> Decoder:
    """Return the decoder of ``task`` that drafts at most gamma tokens from q and emits the result of ``decide``.

    ``decide(draws, state, draft)`` returns the emitted tokens. It may return several possible results with their
    probabilities (``Undecided``); then a step of the decoder returns the states and rounds that follow, also with their
    probabilities.
    """
    q_of = draft_model(task)
    drafter, length = model_drafter(q_of), constant(gamma)

    def propose(draws: Draws, state: State) -> Draft:
        count = min(gamma, state.remaining - 1)
        return drafter.propose(draws, None, state.tokens, count, length.stop_after) if count else chain((), ())

    def after(state: State, draft: Draft, emitted: Tokens) -> tuple[State, Round]:
        new, remaining = commit(emitted, state.remaining, task.eos)
        accepted = len(new) - (new != draft.tokens)  # all drafts and nothing more: it has no bonus
        return State(state.tokens + new, remaining), Round(
            new, draft.tokens, accepted, min(len(new), len(draft.tokens))
        )

    def step(draws: Draws, state: State) -> Any:
        draft = propose(draws, state)
        emitted = decide(draws, state, draft)
        if not isinstance(emitted, Undecided):
            return after(state, draft, emitted)
        return Undecided(tuple((after(state, draft, tokens), mass) for tokens, mass in emitted.outcomes))

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step, propose=propose)


def pmf_rows(task: Task, prefix: Tokens, draft: Draft) -> tuple[Any, Any]:
    """Return the pmfs p ``[drafts + 1, vocabulary]`` and q ``[drafts, vocabulary]`` with which ``draft`` is verified.

    Row i of p is the target's pmf after the text ``prefix`` and the first i drafts. q has the pmfs stored in ``draft``.
    """
    p = np.array([np.asarray(task.target(prefix + draft.tokens[:i])) for i in range(len(draft.tokens) + 1)])
    return p, np.array([np.asarray(pmf) for pmf in draft.pmfs]).reshape(len(draft.pmfs), p.shape[1])
