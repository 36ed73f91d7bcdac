"""The common types of the package: pmfs, draws, drafts, rounds, decoders, algorithms.

Letters as in Leviathan et al. (arXiv 2211.17192): p is the target, q the draft, gamma the number of drafted tokens.
Everything here is data or a protocol. An algorithm uses no random number generator: it calls ``draws`` for a
categorical outcome and names the decision. So one program can be sampled, enumerated, replayed or narrated.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias

Pmf: TypeAlias = Any
"""Probability mass function, a 1-D array ``[vocabulary]`` that sums to 1: float64, a float32 tensor, or an object array
of ``Fraction``."""

Tokens: TypeAlias = tuple[int, ...]
Site: TypeAlias = tuple[Hashable, ...]
"""The name of a random decision within a round, such as ``("accept", 2)``."""


class Draws(Protocol):
    """The only source of randomness an algorithm may use."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return an index ``j`` with probability ``pmf[j]``; ``site`` names the decision."""
        ...


class LanguageModel(Protocol):
    """Any callable from all tokens so far to the pmf ``[vocabulary]`` of the next one."""

    def __call__(self, tokens: Tokens, /) -> Pmf:
        """Return p(. | tokens)."""
        ...


class Draft(NamedTuple):
    """Drafted tokens as a tree; ``pmfs[i]`` is the pmf from which ``tokens[i]`` was drawn.

    None stands for the point mass on the token. ``parents[i]`` is the index of the parent node, -1 for a child of the
    prefix. A chain has parents -1, 0, 1, ...
    """

    tokens: Tokens
    parents: Tokens
    pmfs: tuple[Pmf | None, ...]


def chain(tokens: Tokens, pmfs: tuple[Pmf | None, ...]) -> Draft:
    """Return a draft without branches: every token is the child of the one before it.

    Raises ``ValueError`` unless there is one pmf, or None, for each token.
    """
    if len(tokens) != len(pmfs):
        raise ValueError(f"the draft has {len(tokens)} tokens and {len(pmfs)} pmfs, expected one, or None, for each")
    return Draft(tokens, tuple(range(-1, len(tokens) - 1)), pmfs)


def never(q: Pmf, token: int) -> bool:
    """Return False: the stopping condition of a length rule that ignores ``q`` and the drawn ``token``."""
    return False


class Verified(NamedTuple):
    """The result of a verifier: the accepted drafts, then at most one more token."""

    tokens: Tokens
    accepted: int


class Verifier(Protocol):
    """Decides which drafted tokens are accepted and which token follows them."""

    def __call__(self, draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        """Return the tokens to emit after ``prefix``."""
        ...


class Drafter(NamedTuple):
    """The source of drafts. Its state is hashable, so that equal states of two runs can be merged."""

    init: Callable[[Tokens], Hashable]
    """``init(prompt)``: the drafter's state before the first round."""
    propose: Callable[[Draws, Any, Tokens, int, Callable[[Pmf, int], bool]], Draft]
    """``propose(draws, state, prefix, gamma, stop_after)``: draft at most gamma tokens after ``prefix``; none if gamma
    is 0."""
    observe: Callable[[Any, Tokens, int, LanguageModel], Hashable]
    """``observe(state, tokens, start, target)``: the drafter's state after ``tokens[start:]`` were committed."""


class Plan(NamedTuple):
    """The result of a length rule for one round: ``gamma``, the number of tokens that the round may draft.

    ``state`` is the rule's next state, and ``trace`` has data for diagnostics as (name, value).
    """

    gamma: int
    state: Hashable
    trace: tuple[tuple[str, float], ...] = ()


class LengthRule(NamedTuple):
    """A rule for the length of a draft, with a state that begins as ``init``.

    Every rule of this form is exact, because a drawn token is never removed: whether position i is drafted may depend
    on everything known before token i is drawn, but not on token i.
    """

    init: Hashable
    plan: Callable[[Any, Tokens], Plan]
    """``plan(state, prefix)``: the draft length of the next round; the decoder then bounds it by the horizon."""
    stop_after: Callable[[Pmf, int], bool]
    """``stop_after(q, token)``: whether drafting stops after ``token``; that token is still part of the draft."""
    update: Callable[[Any, int, int], Hashable]
    """``update(state, drafted, accepted)``: the rule's state after a round with these counts."""


class Round(NamedTuple):
    """The record of one call of the target.

    ``draft`` are the drafted tokens, and ``trace`` has pairs of a name and a number for diagnostics.
    """

    tokens: Tokens
    """Tokens committed by the round, cut after the first end-of-sequence token and at the horizon."""
    draft: Tokens
    accepted: int
    """Number of committed tokens that are accepted drafts."""
    reached: int
    """Number of drafted positions at which an accept decision was made. Positions after a rejection or an end of
    sequence do not count."""
    trace: tuple[tuple[str, float], ...] = ()


class State(NamedTuple):
    """The state of a decoder between rounds: all data on which the next round depends.

    ``drafter`` is the state of the drafter, or what else an algorithm needs from the last round. ``length`` is the
    state of the length rule.
    """

    tokens: Tokens
    """The prompt and all committed tokens."""
    remaining: int
    """Number of tokens that may still be emitted; 0 when the decoder has finished."""
    drafter: Hashable = None
    length: Hashable = None


class Decoder(NamedTuple):
    """A decoder as two pure functions, ``init`` and ``step``.

    ``propose`` is the part of ``step`` that drafts; callers use it to examine drafts.
    """

    init: Callable[[Tokens], State]
    step: Callable[[Draws, State], tuple[State, Round]]
    propose: Callable[[Draws, State], Draft] | None = None


class Parts(NamedTuple):
    """The parts of a chain algorithm: the drafter, the length rule (how many tokens to draft), and the verifier."""

    drafter: Drafter
    length: LengthRule
    verifier: Verifier
    target: LanguageModel | None = None
    """The model against which drafts are verified; None for the task's target."""
    around: Callable[[Decoder], Decoder] | None = None
    """Wraps the decoder, for example to train the drafter between rounds; None for no wrapper."""


class Task(NamedTuple):
    """A decoding task: the models, the end-of-sequence tokens (``eos``), and the most new tokens (``horizon``).

    ``target`` is p. ``draft`` is q, the pmf from which tokens are drafted; ``raw_draft`` is the drafter at temperature
    1 before any truncation (EGAG uses its entropy), by default q itself.
    """

    target: LanguageModel
    draft: LanguageModel | None = None
    raw_draft: LanguageModel | None = None
    eos: Tokens = ()
    horizon: int = 64


class Claim(StrEnum):
    """A promise of an algorithm about its output, such as LOSSLESS, which implies GREEDY and SUPPORTED.

    LOSSLESS: the output has the target's law. GREEDY: for a one-hot target the output is the greedy text. SUPPORTED:
    every emitted token has a positive target probability. OPTIMAL_COUPLING: a draft is accepted with probability sum
    min(p, q).
    """

    SUPPORTED = "supported"
    """Every emitted token has positive target probability."""
    GREEDY = "greedy"
    """If the target is one-hot (temperature 0), the output is the target's greedy output."""
    LOSSLESS = "lossless"
    """The joint law of the output tokens equals that of sampling from the target alone, for all p and q."""
    OPTIMAL_COUPLING = "optimal coupling"
    """Each drafted token is accepted with probability sum(min(p, q)), the largest that a lossless method can have."""


class Reduction(NamedTuple):
    """A condition under which one registry algorithm decodes exactly like another, for example lenience = 1."""

    to: str
    """Name of the row to which this row reduces."""
    when: str
    """The condition of the reduction in words, such as ``l = 1``."""
    options: Mapping[str, Any]
    """Options of this row under which it equals the other one."""
    of: Mapping[str, Any] = {}
    """Options of the other row."""
    limit: Callable[[Task], Task] | None = None
    """Transforms the task if the condition concerns the models; None if it does not."""
    vocabulary: int | None = None
    """The only vocabulary size for which the reduction holds; None for every size."""
    rounds: bool = True
    """True: the joint law of tokens and accepted drafts agrees round by round. False: only the law of the text agrees.
    """
    shown_by: str = ""
    """The property test that shows the reduction, as ``file::test``; '' if the common test covers it."""


class Algorithm(NamedTuple):
    """A registry row: one named system, its claims, and the options of its examination.

    ``examples`` are the options with which it is examined: for each example, keyword arguments of ``build``.
    """

    name: str
    summary: str
    build: Callable[..., Decoder]
    """``build(task, **options)`` returns the decoder. For a chain it is the result of ``rounds.from_parts`` on a
    function that returns ``Parts``."""
    claims: frozenset[Claim]
    examples: tuple[Mapping[str, Any], ...]
    paper: str
    declared_law: Callable[..., Mapping[Tokens, Any]] | None = None
    """``declared_law(task, prompt, **options)``: the closed form of the output law of a method that is not lossless;
    None for lossless methods."""
    systems: tuple[str, ...] = ()
    """Names of published systems that use this algorithm."""
    needs_training: str = ""
    """The property that only a trained network can show; '' if table models show everything."""
    reductions: tuple[Reduction, ...] = ()
    batch: Callable[..., Callable[[Draws], tuple[Tokens, ...]]] | None = None
    """``batch(task, prompts, **options)``: a program that decodes the requests together and returns their texts; None
    if the algorithm has no batched form."""

    @property
    def parts(self) -> Callable[..., Parts | Decoder] | None:
        """Return the function ``parts(task, **options)`` of a chain algorithm, whose ``build`` assembles them.

        The result is None if the algorithm is not built from parts. For options that give no chain the function returns
        a ``Decoder``.
        """
        return getattr(self.build, "parts", None)
