"""A round: plan a length, draft, verify, commit. Every chain algorithm is built from these parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, Protocol, cast

from .pmf import checked_model
from .types import (
    Decoder,
    Draft,
    Drafter,
    Draws,
    LengthRule,
    Parts,
    Plan,
    Round,
    State,
    Task,
    Tokens,
    Verifier,
)
from .validation import as_tuple, check_callable, check_instance, check_integer, checked_tokens


def chain_decoder(task: Task, drafter: Drafter, length: LengthRule, verify: Verifier) -> Decoder:
    """Return the decoder built from ``drafter``, ``length`` (the length rule) and ``verify`` (the verifier).

    A round drafts at most ``remaining - 1`` tokens, a bound that does not change the state of the length rule. ``init``
    raises ``ValueError`` for an empty prompt, ``step`` if the decoder has finished. Raises ``ValueError`` for an
    argument of another type.
    """
    for value, name, kind in ((task, "task", Task), (drafter, "drafter", Drafter), (length, "length", LengthRule)):
        check_instance(value, name, kind)
    check_callable(verify, "verify", "a verifier")
    target = checked_model(task.target, "target")

    def plan_and_propose(draws: Draws, state: State) -> tuple[Plan, Draft]:
        plan = length.plan(state.length, state.tokens)
        gamma = min(plan.gamma, state.remaining - 1)
        return plan, drafter.propose(draws, state.drafter, state.tokens, gamma, length.stop_after)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        plan, draft = plan_and_propose(draws, state)
        verified = verify(draws, target, state.tokens, draft)
        new, remaining = commit(verified.tokens, state.remaining, task.eos)
        accepted = min(verified.accepted, len(new))
        reached = min(verified.accepted + 1, len(draft.tokens), len(new))
        tokens = state.tokens + new
        after = State(
            tokens,
            remaining,
            drafter.observe(state.drafter, tokens, len(state.tokens), target),
            length.update(plan.state, len(draft.tokens), accepted),
        )
        return after, Round(new, draft.tokens, accepted, reached, plan.trace)

    def init(prompt: Tokens) -> State:
        state = initial_state(prompt, task)
        return state._replace(drafter=drafter.init(state.tokens), length=length.init)

    return Decoder(
        init=init,
        step=step,
        propose=lambda draws, state: plan_and_propose(draws, state)[1],
    )


def assembled(task: Task, parts: Parts) -> Decoder:
    """Return the decoder that the drafter, the length rule and the verifier in ``parts`` form for ``task``."""
    check_instance(task, "task", Task)
    check_instance(parts, "parts", Parts)
    verified = task if parts.target is None else task._replace(target=parts.target)
    decoder = chain_decoder(verified, parts.drafter, parts.length, parts.verifier)
    return decoder if parts.around is None else parts.around(decoder)


Signature = ParamSpec("Signature")


def without_proposal(decoder: Decoder) -> Decoder:
    """Return the decoder without its function ``propose``.

    This is for algorithms whose drafts are not distributed as the pmfs in ``Draft.pmfs``: a check that compares the two
    would fail.
    """
    return decoder._replace(propose=None)


class BuildFromParts(Protocol[Signature]):
    """The build function of a chain algorithm: a call returns the decoder, and ``parts`` returns its parts."""

    parts: Callable[Signature, Parts | Decoder]

    def __call__(self, *args: Signature.args, **options: Signature.kwargs) -> Decoder:
        """Return the decoder of the task, which is the first argument."""
        ...


def from_parts(parts: Callable[Signature, Parts | Decoder]) -> BuildFromParts[Signature]:
    """Return the build function of an algorithm given as ``parts(task, **options)``; used as a decorator.

    The parts stay accessible, so that one of them can be replaced. If an option has a value for which the algorithm is
    no chain, ``parts`` may return a ``Decoder`` instead of ``Parts``.
    """
    check_callable(parts, "parts", "a function of a task that returns its parts")
    take_apart: Callable[..., Parts | Decoder] = parts

    @wraps(parts)
    def build(task: Task, *args: Any, **options: Any) -> Decoder:
        made = take_apart(task, *args, **options)
        return assembled(task, made) if isinstance(made, Parts) else made

    shown: Any = build
    shown.parts, shown.__signature__ = parts, inspect.signature(parts).replace(return_annotation=Decoder)
    return cast("BuildFromParts[Signature]", build)


def initial_state(prompt: Tokens, task: Task) -> State:
    """Return the state before the first round of ``task``, with the prompt as its text.

    Raises ``ValueError`` for a prompt that is empty or contains anything but integers >= 0, and for a negative horizon.
    """
    tokens = checked_tokens(prompt, "the prompt")
    if not tokens:
        raise ValueError("the prompt is empty, expected at least one token id")
    if task.horizon < 0:
        raise ValueError(f"horizon is {task.horizon}, expected a number of new tokens >= 0")
    return State(tokens, task.horizon)


def check_unfinished(state: State) -> None:
    """Raise ``ValueError`` if a decoder with this ``state`` has finished: there is no next round."""
    if state.remaining == 0:
        raise ValueError("the decoder has finished, expected a state with tokens remaining")


def commit(new: Tokens, remaining: int, eos: Tokens) -> tuple[Tokens, int]:
    """Return the committed part of ``new``, and how many tokens may follow it.

    ``new`` is cut after its first token in ``eos``, the end-of-sequence tokens, and at ``remaining`` tokens. Raises
    ``ValueError`` for a negative ``remaining``.
    """
    if type(remaining) is not int or remaining < 0:
        check_integer(remaining, "remaining", least=0)
    end = next((index + 1 for index, token in enumerate(new) if token in eos), None)
    if end is not None and end <= remaining:
        return new[:end], 0
    return new[:remaining], remaining - len(new[:remaining])


class AcceptanceStatistics(NamedTuple):
    """Totals over rounds, and two rates that are often confused: accepted per drafted, and accepted per tested draft.

    ``reached`` is the number of drafts that were tested; drafts after a rejection are not. A rate is None if its
    denominator is 0.
    """

    rounds: int
    tokens: int
    drafted: int
    reached: int
    accepted: int

    @property
    def accepted_per_drafted(self) -> float | None:
        """Return accepted over drafted tokens, where drafts after a rejection count as drafted; None without drafts.

        For an acceptance rate of .8 and gamma 5 the expected value is .538.
        """
        return self.accepted / self.drafted if self.drafted else None

    @property
    def acceptance_rate(self) -> float | None:
        """Return accepted over tested drafts, which estimates alpha = E sum min(p, q); None without tested drafts.

        Drafts after a rejection are not tested.
        """
        return self.accepted / self.reached if self.reached else None

    @property
    def tokens_per_round(self) -> float | None:
        """Return the number of committed tokens per call of the target; None without rounds."""
        return self.tokens / self.rounds if self.rounds else None


def acceptance_statistics(rounds: Iterable[Round]) -> AcceptanceStatistics:
    """Return the totals over ``rounds``: rounds, committed tokens, drafted tokens, tested and accepted drafts.

    Raises ``ValueError`` for an element that is no ``Round``.
    """
    rounds = as_tuple(rounds, "rounds", "the rounds of a generation")
    for item in rounds:
        check_instance(item, "an element of the rounds", Round)
    return AcceptanceStatistics(
        rounds=len(rounds),
        tokens=sum(len(item.tokens) for item in rounds),
        drafted=sum(len(item.draft) for item in rounds),
        reached=sum(item.reached for item in rounds),
        accepted=sum(item.accepted for item in rounds),
    )
