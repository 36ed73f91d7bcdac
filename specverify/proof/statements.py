"""The statements that can be proved: two programs give every outcome the same mass, for all models.

A program runs once for every path and yields pairs (outcome, share). The mass of an outcome is the sum over the paths
of weight times share. The same two programs run on symbolic tables and, to replay a failure, on concrete ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from specverify.laws.enumeration import whole_run
from specverify.proof.proved_subject import ProofSubject
from specverify.proof.sums import NONZERO
from specverify.proof.symbolic import NEGATIVE
from specverify.proof.symbolic_tables import World
from specverify.reference import Draws, Tokens, accept_probability, argmax, one_hot, residual
from specverify.reference.laws import greedy_law
from specverify.reference.models import draft_model
from specverify.reference.types import Task


class RoundStart(NamedTuple):
    """The start of a round: the text so far (``prompt``), and the most tokens that may still follow (``horizon``)."""

    prompt: Tokens
    horizon: int


Shares: TypeAlias = Iterable[tuple[Hashable, Any]]
Program: TypeAlias = Callable[[ProofSubject, World, Draws, RoundStart], Shares]


class Statement(NamedTuple):
    """A statement about the masses that the programs ``left`` and ``right`` give to each outcome.

    For every outcome, its mass under ``left`` minus its mass under ``right`` does not have a sign in ``forbidden``. For
    example, if only the negative sign is forbidden, the mass under ``left`` is at least the mass under ``right``.
    """

    left: Program
    right: Program
    says: str
    """Template of the statement's sentence, with the fields {subject}, {texts}, {vocabulary} and {gamma}."""
    forbidden: frozenset[int] = NONZERO
    one_place: bool = False
    """Whether the statement concerns only the round with the largest number of tokens left."""
    beyond: int = 0
    """Number of tokens that the statement needs beyond the gamma + 1 of one round."""


def _round_then_target(
    subject: ProofSubject, world: World, draws: Draws, place: RoundStart
) -> Iterator[tuple[Any, Any]]:
    task = world.task(place.horizon)
    new = one_round(subject, world, draws, place, task)
    if len(new) > place.horizon:
        yield new, 1
        return
    for rest in product(range(world.vocabulary), repeat=place.horizon - len(new)):
        text = new + rest
        yield text, _probability_of_text(task, place.prompt, text, len(new))


def _target_alone(_: ProofSubject, world: World, __: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    task = world.task(place.horizon)
    for text in product(range(world.vocabulary), repeat=place.horizon):
        yield text, _probability_of_text(task, place.prompt, text, 0)


def _probability_of_text(task: Task, prompt: Tokens, text: Tokens, start: int) -> Any:
    chance: Any = 1
    for position in range(start, len(text)):
        chance = task.target(prompt + text[:position])[text[position]] * chance
    return chance


def one_round(subject: ProofSubject, world: World, draws: Draws, place: RoundStart, task: Task) -> Tokens:
    """Return the tokens that the subject emits in one round, which starts at ``place``.

    The pmfs are those of ``world``, ``draws`` chooses the outcomes, and ``task`` is the decoding task.
    """
    decoder = subject.build(world, task)
    return decoder.step(draws, decoder.init(place.prompt))[1].tokens


def _greedy_round(subject: ProofSubject, world: World, draws: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    task = world.task(place.horizon, greedy=True)
    new = one_round(subject, world, draws, place, task)
    while len(new) < place.horizon:
        new = (*new, argmax(task.target(place.prompt + new)))
    yield new, 1


def _greedy_alone(_: ProofSubject, world: World, __: Draws, place: RoundStart) -> Shares:
    return greedy_law(world.task(place.horizon, greedy=True), place.prompt).items()


def _whole_decode(subject: ProofSubject, world: World, draws: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    yield whole_run(subject.build(world, world.task(place.horizon)), place.prompt)(draws), 1


def _declared(subject: ProofSubject, world: World, __: Draws, place: RoundStart) -> Shares:
    if subject.declared_law is None:
        raise ValueError(f"{subject.name} declares no biased law, expected a row with a declared bias")
    return subject.declared_law(world.task(place.horizon), place.prompt).items()


def _accepted(subject: ProofSubject, world: World, draws: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    decoder = subject.build(world, world.task(place.horizon))
    done = decoder.step(draws, decoder.init(place.prompt))[1]
    for count in range(1, done.accepted + 1):
        yield done.tokens[:count], 1


def _acceptable(subject: ProofSubject, world: World, draws: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    task = world.task(place.horizon)
    decoder = subject.build(world, task)
    if decoder.propose is None:
        raise ValueError(f"{subject.name} cannot draft alone, expected a decoder with propose")
    draft = decoder.propose(draws, decoder.init(place.prompt))
    chance: Any = 1
    for i, token in enumerate(draft.tokens):
        p, pmf = task.target(place.prompt + draft.tokens[:i]), draft.pmfs[i]
        chance = accept_probability(p, one_hot(token, p) if pmf is None else pmf, token) * chance
        yield draft.tokens[: i + 1], chance


def _accepted_number(subject: ProofSubject, world: World, draws: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    decoder = subject.build(world, world.task(place.horizon))
    yield "accepted", decoder.step(draws, decoder.init(place.prompt))[1].accepted


def _acceptable_number(
    subject: ProofSubject, world: World, draws: Draws, place: RoundStart
) -> Iterator[tuple[Any, Any]]:
    for _, chance in _acceptable(subject, world, draws, place):
        yield "accepted", chance


def _mended(_: ProofSubject, world: World, __: Draws, place: RoundStart) -> Iterator[tuple[Any, Any]]:
    task = world.task(place.horizon)
    p, q = task.target(place.prompt), _draft(task, place)
    kept = [q[token] * accept_probability(p, q, token) for token in range(world.vocabulary)]
    rejected = 1 - sum(kept)
    replaced = residual(p, q)
    for token in range(world.vocabulary):
        yield token, kept[token] + rejected * replaced[token]


def _target_row(_: ProofSubject, world: World, __: Draws, place: RoundStart) -> Shares:
    return enumerate(world.task(place.horizon).target(place.prompt).tolist())


def _draft(task: Task, place: RoundStart) -> Any:
    return draft_model(task)(place.prompt)


_EVERY = "for every target and draft over {vocabulary} tokens, rows free in every context, "
_LAW = (
    "the tokens of one round of {subject}, at most {gamma} drafts deep, followed by the target, have the target's law"
)

STATEMENTS: dict[str, Statement] = {
    "law": Statement(_round_then_target, _target_alone, _EVERY + _LAW + " ({texts})"),
    "joint": Statement(
        _whole_decode,
        _target_alone,
        _EVERY + "up to gamma + 3 new tokens decoded by {subject}, rounds of at most {gamma} drafts, have the target's "
        "joint law ({texts})",
        beyond=2,
    ),
    "stopping": Statement(
        _round_then_target,
        _target_alone,
        _EVERY + "and every rule that decides before a token is drawn whether to draft it, " + _LAW + " ({texts})",
    ),
    "dropping": Statement(
        _round_then_target,
        _target_alone,
        _EVERY + "and every rule that may take the last token drawn back, " + _LAW + " ({texts})",
    ),
    "greedy": Statement(
        _greedy_round,
        _greedy_alone,
        "for every target with one-hot rows and every draft over {vocabulary} tokens, one round of {subject}, at most "
        "{gamma} drafts deep, emits the target's argmax at every position ({texts})",
    ),
    "declared": Statement(
        _whole_decode,
        _declared,
        _EVERY + "the new tokens of a whole decode by {subject}, gamma {gamma}, have the law it declares ({texts})",
    ),
    "acceptance": Statement(
        _accepted,
        _acceptable,
        _EVERY + "one round of {subject} accepts the first i drafts x with probability prod min(p, q)(x_j), "
        "q being what they were drawn from, for all i up to {gamma} ({texts})",
    ),
    "longer": Statement(
        _accepted_number,
        _acceptable_number,
        _EVERY + "one round of {subject} accepts at least as many of {gamma} drafts in expectation as deciding token "
        "by token with min(1, p/q) does ({texts})",
        forbidden=frozenset({NEGATIVE}),
        one_place=True,
    ),
    "residual": Statement(
        _mended,
        _target_row,
        "for all p and q over {vocabulary} tokens, q min(1, p/q) + (1 - sum min(p, q)) norm((p - q)+) is p, as "
        "computed by accept_probability and residual of {subject}",
        one_place=True,
    ),
}
"""Name for ``--what`` -> statement."""
