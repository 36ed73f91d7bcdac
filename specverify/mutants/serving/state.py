"""The state of the serving engine; it is immutable, so that two runs can be compared and equal states merged."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from specverify.mutants.serving.cache import CacheMemory
from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.output import Top
from specverify.mutants.serving.processors import Matcher
from specverify.mutants.serving.request import ExactPmf, Request
from specverify.reference import Tokens

NO_STATE: tuple[Tokens, Tokens] = ((), ())


class Report(NamedTuple):
    """The values returned with one new token: its probability and the most probable tokens of its row."""

    probability: Fraction
    top: Top


class Running(NamedTuple):
    """One request that was admitted, and its current state.

    * ``number``: its index among the request bodies of the situation.
    * ``matcher``: the state of its grammar.
    * ``pages``: its pages of the target's cache; ``draft``: the drafter's cache.
    * ``rounds``: the number of rounds so far; ``chunks``: that of passes that fed a part of the prompt.
    * ``reports``: the values returned beside the new tokens, such as log-probabilities; ``of_prompt``: those of the
      prompt tokens.
    * ``stream``: the text sent so far.
    """

    number: int
    request: Request
    tokens: Tokens
    """The earlier conversation, the prompt and all committed tokens."""
    start: int
    """Number of entries of ``tokens`` before the first new token."""
    history: Tokens
    """Tokens passed to logits processors as committed."""
    corpus: Tokens = ()
    """The text that the lookup drafter searches."""
    matcher: Matcher | None = None
    held: int = 0
    """Number of valid entries of the target's cache."""
    pages: tuple[int, ...] = ()
    states: tuple[Tokens, ...] = NO_STATE
    """Slots for the state of a recurrent target; the first slot is the current state."""
    draft: DraftCache = DraftCache()
    pending: Tokens = ()
    """Drafts of the last round."""
    accepted: int = 0
    """Number of accepted drafts of the last round."""
    rounds: int = 0
    chunks: int = 0
    reports: tuple[Report, ...] = ()
    of_prompt: tuple[Fraction, ...] = ()
    stream: str = ""
    finished: bool = False
    aborted: bool = False


class Kept(NamedTuple):
    """The caches and counts that a finished request leaves in its slot for the next one.

    ``tokens`` is its text, ``held`` the number of valid entries of the target's cache, ``pages`` their pages, ``state``
    the recurrent state, ``draft`` the drafter's cache, and ``rejected`` the number of drafts rejected last.
    """

    tokens: Tokens
    held: int
    pages: tuple[int, ...] = ()
    state: Tokens = ()
    draft: DraftCache = DraftCache()
    rejected: int = 0


class EngineState(NamedTuple):
    """The state of the whole engine between two steps.

    ``memory`` has the entry in each slot of the target's cache, ``free`` the free pages, ``running`` the admitted
    requests, finished ones included, and ``kept`` the caches of the last finished one. ``steps`` counts the steps.
    """

    memory: CacheMemory
    free: tuple[int, ...]
    running: tuple[Running, ...]
    waiting: tuple[int, ...]
    """Indices of the requests that are not admitted yet."""
    kept: Kept | None = None
    steps: int = 0

    def of(self, number: int) -> Running:
        """Return the admitted request with this number."""
        return next(running for running in self.running if running.number == number)

    def replaced(self, changed: Running) -> EngineState:
        """Return the engine with ``changed`` in place of the request with the same number."""
        result = tuple(changed if running.number == changed.number else running for running in self.running)
        return self._replace(running=result)


class Work(NamedTuple):
    """The input of one request in a step: the tokens that it is fed, of which the last are its new drafts.

    ``held`` is the number of valid entries of the target's cache before the step. If ``prefill``, the tokens are a part
    of the prompt, and no token is drawn after them.
    """

    number: int
    held: int
    fed: Tokens
    drafts: Tokens
    """The uncommitted tokens at the end of ``fed``."""
    pmfs: tuple[ExactPmf, ...]
    """The pmf from which each draft was drawn."""
    cache: DraftCache
    """The draft model's cache after drafting."""
    known: int
    """Number of committed tokens."""
    prefill: bool


class Passed(NamedTuple):
    """The result of the target's pass for one request: a row, and a recurrent state, after each token it was fed."""

    rows: list[ExactPmf]
    """The pmf after each input token."""
    states: tuple[Tokens, ...] = ()
    start: int = 0
    """Index of its first row in the flat array of the pass."""
