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
"""A 1-D array ``[vocabulary]`` that sums to 1: float64, a float32 tensor, or an object array of ``Fraction``."""

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

    None in place of a pmf stands for the point mass on the token, as of a deterministic drafter. ``parents[i]`` is the
    index of the parent node, -1 for a child of the prefix. A chain has parents -1, 0, 1, ...
    """

    tokens: Tokens
    parents: Tokens
    pmfs: tuple[Pmf | None, ...]


def chain(tokens: Tokens, pmfs: tuple[Pmf | None, ...]) -> Draft:
    """Return a draft without branches: every token is the child of the one before it."""
    return Draft(tokens, tuple(range(-1, len(tokens) - 1)), pmfs)


def never(q: Pmf, token: int) -> bool:
    """Return False: ``stop_after`` of a length rule that ignores the drawn tokens."""
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
    """``init(prompt)``: the state before the first round."""
    propose: Callable[[Draws, Any, Tokens, int, Callable[[Pmf, int], bool]], Draft]
    """``propose(draws, state, prefix, gamma, stop_after)``: at most gamma tokens, none when gamma is 0."""
    observe: Callable[[Any, Tokens, int, LanguageModel], Hashable]
    """``observe(state, tokens, start, target)``: the state once ``tokens[start:]`` are committed."""


class Plan(NamedTuple):
    """The number of tokens that a round may draft, the length rule's next state, and data for diagnostics."""

    gamma: int
    state: Hashable
    trace: tuple[tuple[str, float], ...] = ()


class LengthRule(NamedTuple):
    """A rule for the length of a draft. Every rule of this form is exact, because a drawn token is never removed.

    The condition is Theorem B of the draft-length rules: whether position i is drafted may depend on everything known
    before token i is drawn, but not on token i itself.
    """

    init: Hashable
    plan: Callable[[Any, Tokens], Plan]
    """``plan(state, prefix)`` before the round; the bound by the horizon is applied afterwards."""
    stop_after: Callable[[Pmf, int], bool]
    """``stop_after(q, token)``: draft nothing further. The token itself is kept."""
    update: Callable[[Any, int, int], Hashable]
    """``update(state, drafted, accepted)`` after the round."""


class Round(NamedTuple):
    """The record of one call of the target."""

    tokens: Tokens
    """The tokens it committed, cut at the first end-of-sequence token and at the horizon."""
    draft: Tokens
    accepted: int
    """Committed tokens that were drafted."""
    reached: int
    """Drafted positions at which an accept decision was taken (those behind a rejection or an EOS are not)."""
    trace: tuple[tuple[str, float], ...] = ()


class State(NamedTuple):
    """The state of a decoder between rounds: all data on which the next round depends."""

    tokens: Tokens
    """The prompt and everything committed."""
    remaining: int
    """Tokens that may still be emitted; 0 when the decoder has finished."""
    drafter: Hashable = None
    length: Hashable = None


class Decoder(NamedTuple):
    """A decoder as two pure functions, ``init`` and ``step``.

    ``propose`` is the drafting half of ``step``, for inspection.
    """

    init: Callable[[Tokens], State]
    step: Callable[[Draws, State], tuple[State, Round]]
    propose: Callable[[Draws, State], Draft] | None = None


class Parts(NamedTuple):
    """The parts of a chain algorithm: the drafter, the length rule, and the verifier."""

    drafter: Drafter
    length: LengthRule
    verifier: Verifier
    target: LanguageModel | None = None
    """What drafts are verified against, where that is not the task's target."""
    around: Callable[[Decoder], Decoder] | None = None
    """What the algorithm does around its rounds, such as learning between them."""


class Task(NamedTuple):
    """A decoding task: the models, the end-of-sequence tokens, and the maximal number of new tokens.

    ``draft`` is q, the pmf from which tokens are drafted; ``raw_draft`` is the drafter at temperature 1 before any
    truncation (EGAG uses its entropy), by default q itself.
    """

    target: LanguageModel
    draft: LanguageModel | None = None
    raw_draft: LanguageModel | None = None
    eos: Tokens = ()
    horizon: int = 64


class Claim(StrEnum):
    """A promise of an algorithm. LOSSLESS implies GREEDY and SUPPORTED."""

    SUPPORTED = "supported"
    """No token is emitted that the target gives probability 0."""
    GREEDY = "greedy"
    """On one-hot targets (temperature 0) the output is the target's own."""
    LOSSLESS = "lossless"
    """The joint law of the output is that of sampling from the target alone, for all p and q."""
    OPTIMAL_COUPLING = "optimal coupling"
    """Each drafted token is accepted as often as losslessness allows: with probability sum min(p, q)."""


class Reduction(NamedTuple):
    """A limit in which a registry algorithm decodes in the same way as another one, as data that a test can run."""

    to: str
    """The other row's name."""
    when: str
    """The limit in words, such as ``l = 1``."""
    options: Mapping[str, Any]
    """The row's own options there."""
    of: Mapping[str, Any] = {}
    """The other row's."""
    limit: Callable[[Task], Task] | None = None
    """What becomes of the models, where the limit is one of models."""
    vocabulary: int | None = None
    """The only vocabulary size it holds for."""
    rounds: bool = True
    """Whether the rounds have one law, tokens and accepted drafts of each; else the text alone."""
    shown_by: str = ""
    """A property test of its own, ``file::test``."""


class Algorithm(NamedTuple):
    """A registry row: one named system, its claims, and the options of its examination."""

    name: str
    summary: str
    build: Callable[..., Decoder]
    """``build(task, **options)``; what ``rounds.from_parts`` made of a function that returns ``Parts``, for a chain."""
    claims: frozenset[Claim]
    examples: tuple[Mapping[str, Any], ...]
    paper: str
    declared_law: Callable[..., Mapping[Tokens, Any]] | None = None
    """``declared_law(task, prompt, **options)``: the output law of a method that is not lossless, in closed form."""
    systems: tuple[str, ...] = ()
    """The published systems that decode so, by the names they are known under."""
    needs_training: str = ""
    """What only a trained network can show of it; tables show the rest."""
    reductions: tuple[Reduction, ...] = ()
    batch: Callable[..., Callable[[Draws], tuple[Tokens, ...]]] | None = None
    """``batch(task, prompts, **options)``: the program that decodes requests together; their texts are its outcome."""

    @property
    def parts(self) -> Callable[..., Parts | Decoder] | None:
        """Return the function ``parts(task, **options)`` of a chain algorithm, whose ``build`` assembles them.

        Else None.

        For options that give no chain the function returns a ``Decoder``.
        """
        return getattr(self.build, "parts", None)
