"""A bare verifier: the shape in which most projects ship their rejection sampler.

    verify(p, q, draft_tokens) -> emitted tokens

``p`` is ``[gamma + 1, vocabulary]`` and ``q`` ``[gamma, vocabulary]``, float64 probabilities; ``draft_tokens`` is
``[gamma]``. They are NumPy arrays, or torch tensors if NumPy arrays do not do. Its random calls (torch, NumPy, random)
are intercepted, so it is enumerated as it is. The drafts are drawn here, honestly, from q; a round without drafts is
one draw from p and does not reach the verifier. Emitted tokens end at the first negative placeholder.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from typing import Any

import numpy as np

from reference import (
    Claim,
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
from reference.models import draft_model
from reference.rounds import initial_state
from specverify.draws import Tape
from specverify.intercept.deferred import known
from specverify.intercept.everywhere import answered_everywhere
from specverify.law import target_law
from specverify.subjects.algorithm import PROMPT, float_task
from specverify.subjects.subject import SampledSetting, Subject, UnusableSubject, Variant

Verify = Callable[[Any, Any, Any], Any]
Context = Callable[[Draws], AbstractContextManager[None]]
FLOAT32 = 2.0**-23
"""Such code usually computes in float32 somewhere, so its laws are compared within float32 rounding."""


def verifier_subject(verify: Verify, name: str, gammas: tuple[int, ...] = (1, 2, 3)) -> Subject:
    """Return the subject of a bare verifier at several gammas; it claims to be lossless and optimal."""
    return Subject(
        name=name,
        summary=(verify.__doc__ or "a bare verifier").strip().partition("\n")[0],
        claims=frozenset(Claim),
        variants=tuple(Variant(f"gamma={gamma}", partial(build, verify, gamma)) for gamma in gammas),
        settings=(_sampled_setting(verify, max(gammas)),),
        rational=False,
        stops_at_eos=False,
        epsilon=FLOAT32,
    )


def _sampled_setting(verify: Verify, gamma: int) -> SampledSetting:
    """Return the verifier with its own randomness, for what cannot be enumerated."""
    task = partial(float_task, vocabulary=8, temperature=1.0, horizon=3)
    return SampledSetting(
        name=f"V=8 T=1 horizon=3 gamma={gamma}, its own random numbers",
        sample=partial(_sample, verify, gamma, task),
        law=lambda: target_law(task(), PROMPT),
        detect=0.05,
    )


def _sample(verify: Verify, gamma: int, task: Callable[[], Task], number: int, seed: int) -> Counter[Tokens]:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the verifier may use the legacy generator
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    decoder, draws = build(verify, gamma, task(), _not_answered), Sampled(seed)
    return Counter(generate(decoder, PROMPT, draws).tokens for _ in range(number))


def _not_answered(_: Draws) -> AbstractContextManager[None]:
    return nullcontext()


def build(verify: Verify, gamma: int, task: Task, answered: Context = answered_everywhere) -> Decoder:
    """Return the decoder that drafts gamma tokens from q and lets ``verify`` decide, round by round.

    ``answered(draws)`` is the context it runs in: its random calls are intercepted unless told otherwise.
    """
    q_of = draft_model(task)
    drafter, length = model_drafter(q_of), constant(gamma)

    def propose(draws: Draws, state: State) -> Draft:
        count = min(gamma, state.remaining - 1)
        return drafter.propose(draws, None, state.tokens, count, length.stop_after) if count else chain((), ())

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        draft = propose(draws, state)
        rows = [np.asarray(task.target(state.tokens + draft.tokens[:i])) for i in range(len(draft.tokens) + 1)]
        if draft.tokens:
            q = np.stack([np.asarray(pmf) for pmf in draft.pmfs])
            given = (np.stack(rows), q, np.array(draft.tokens))
            with answered(draws):
                emitted = _tokens(verify(*_arrays(verify)(given)))
        else:
            emitted = (draws.categorical(rows[0], ("bonus",)),)
        if not emitted:
            raise UnusableSubject(f"it emitted no token for drafts {draft.tokens}, expected at least one")
        new, remaining = commit(emitted, state.remaining, task.eos)
        return State(state.tokens + new, remaining), Round(
            new, draft.tokens, len(new) - 1, min(len(new), len(draft.tokens))
        )

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step, propose=propose)


def _tokens(answer: Any) -> Tokens:
    """Return what was emitted as integers; a tensor looks at tokens that are still open as it becomes a list."""
    tokens = [
        int(known(element)) for element in (answer.reshape(-1).tolist() if hasattr(answer, "reshape") else answer)
    ]
    end = next((index for index, token in enumerate(tokens) if token < 0), len(tokens))
    return tuple(tokens[:end])


@lru_cache(maxsize=256)
def _arrays(verify: Verify) -> Callable[[Any], Any]:
    """Return what turns NumPy arrays into the arrays that ``verify`` computes with, found out by calling it once."""
    given = (np.full((2, 2), 0.5), np.full((1, 2), 0.5), np.array([0]))
    try:
        with answered_everywhere(Tape(0)):
            _tokens(verify(*given))
    except Exception:  # noqa: BLE001 - it may refuse NumPy arrays in any way; the checks will name what remains
        return _as_tensors if "torch" in sys.modules else tuple
    return tuple


def _as_tensors(given: Any) -> Any:
    return tuple(sys.modules["torch"].from_numpy(array.copy()) for array in given)
