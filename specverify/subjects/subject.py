"""The shape of a subject: the interface through which checks use our algorithms and users' code alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from specverify.laws.call_paths import Ending
from specverify.laws.call_rule import Rows
from specverify.laws.near_ties import Logits
from specverify.laws.rounding import FLOAT64
from specverify.laws.scenarios import SCENARIOS, Scenario, handed_task
from specverify.reference import Claim, Decoder, Draws, LanguageModel, Pmf, Task, Tokens


class UnusableSubject(Exception):  # noqa: N818 - reads as the sentence it is
    """The subject cannot be loaded, or does not have an accepted form; the message is the reason."""


Context = Callable[[Draws], AbstractContextManager[None]]
"""A block in which random calls are answered, or left alone."""


class Intercepted(NamedTuple):
    """The interception of a verifier's random calls."""

    build: Callable[[Task, Context], Decoder]
    """The decoder that the verifier is in; each call of it is made in a context of its own."""
    answered: Callable[..., AbstractContextManager[None]]
    """``answered(draws, forced_uniform)``: the context it is usually called in, uniforms given values if told so."""


class Variant(NamedTuple):
    """A subject with fixed options, such as gamma, which its label names; its law can be enumerated."""

    label: str
    build: Callable[[Task], Decoder]
    declared_law: Callable[[Task, Tokens], Mapping[Tokens, Any]] | None = None
    joint: Callable[[Task, Tokens], EngineProgram] | None = None
    """For a verifier of batches: its row after the prompt and a different row in one call, their texts the outcome."""
    intercepted: Intercepted | None = None
    """For a verifier: how its random calls are answered."""
    remembered: Callable[[Task], Decoder] | None = None
    """For a verifier: the same decoder, which works out once what a call emits for the same arguments."""
    process: Callable[[Task], Task] | None = None
    """What its sampling parameters make of the models: the target of the processed task is the law to follow."""
    best: Callable[[Task], Decoder] | None = None
    """For a verifier of trees: the same drafts decided by the best rule known, whose acceptance is the yardstick."""
    drafts: int | None = None
    """The largest number of drafts of a round, where the variants of a subject differ in nothing else."""


class Method(StrEnum):
    """The method by which samples are drawn."""

    DIVIDED = "divided"
    """The counts of many runs are divided at every draw: see ``specverify.laws.divided``."""
    PLAIN = "run by run"
    """Every run makes all its draws, which a generator of ours answers."""
    OWN = "own numbers"
    """Run by run, with the subject's own random numbers."""


class Cost(NamedTuple):
    """The estimated cost, in seconds of one processor."""

    once: float = 0.3
    """However many runs there are: all of a divided sample."""
    each: float = 0.0
    """What one more run adds."""


class SampledSetting(NamedTuple):
    """A subject at one setting that can only be sampled; its expected law is computed independently."""

    name: str
    sample: Callable[[int, int], Mapping[Tokens, int]]
    """``sample(number, seed)`` -> counts of outcomes, independent draws."""
    law: Callable[[], Mapping[Tokens, float]]
    """The law the samples must fit: the target's, or the declared one."""
    detect: float
    """The total variation to be seen."""
    target: Callable[[], Mapping[Tokens, float]] | None = None
    """For a declared bias: the target's law, which the samples must *not* fit."""
    activity: Callable[[], str] | None = None
    """Says how much was drafted and accepted: a subject that never drafts proves nothing."""
    method: Method = Method.OWN
    """How ``sample`` draws."""
    divided: Callable[[int, int], Mapping[Tokens, int]] | None = None
    """Where ``sample`` uses the subject's own numbers: its random calls answered by a divided sample instead."""
    cost: Cost = Cost()
    """What a sample takes: it orders a long run, and tells what remains."""
    first_look: float | None = None
    """A larger total variation, to be seen before: what is as wrong as that is told soon, where runs take long."""
    confirmation_factor: int = 4
    """What is suspicious is confirmed on so many times as many fresh samples."""


class SampledPair(NamedTuple):
    """A speculative call and the same call without speculation; both can only be sampled, and neither law is known."""

    name: str
    sample: Callable[[int, int], Mapping[Tokens, int]]
    """``sample(number, seed)`` -> counts of outcomes, independent draws."""
    plain: Callable[[int, int], Mapping[Tokens, int]]
    detect: float
    logits: Logits | None = None
    """What the target says of next tokens, where that is known."""


class SettingRefused(Exception):  # noqa: N818 - reads as the sentence it is
    """An engine rejects a setting with an error; the message is the engine's."""


class Forward(NamedTuple):
    """One forward pass of the target: the content of its cache before it, and its input tokens."""

    held: int
    """Cache entries before the pass."""
    fed: Tokens
    entries: tuple[Any, ...] = ()
    """The cache before the pass, one array a layer and kind: ``[..., entries, width]``."""
    spacing: float = FLOAT64
    """Spacing at 1 of the floats in which the entries were computed."""


def committed_before(forward: Forward, prompt: Tokens) -> int:
    """Return the number of committed tokens at ``forward``: the cache lacks the last of them, if it holds any."""
    return max(len(prompt), forward.held + 1)


def drafts_of(forward: Forward, prompt: Tokens) -> Tokens:
    """Return the drafts in the input of a forward pass, after the committed tokens."""
    return forward.fed[committed_before(forward, prompt) - forward.held :]


class Observed(NamedTuple):
    """The observer's record of one run of an engine."""

    new: Any
    """The new tokens; ``Undecided`` where the last of them was never looked at."""
    forwards: tuple[Forward, ...]
    rows: tuple[tuple[Tokens, ...], ...] = ()
    """For each forward pass, the token ids that a logits processor was shown after it, call by call."""
    returned: Mapping[str, tuple[Any, ...]] = {}
    """What else the engine returned, one array a new token: scores, logits, hidden states ..."""
    changed: tuple[str, ...] = ()
    """The caller's objects that are not what they were before the run."""


EVERYTHING = frozenset({"forwards", "rows", "returned", "changed"})
"""What can be told of an engine that is looked into."""


class Watched(NamedTuple):
    """An engine that can be observed: its runs, and their expected properties."""

    run: Callable[[Draws], Observed]
    plain: Callable[[Draws], Observed]
    """The same call without speculation."""
    prompt: Tokens
    """What the new tokens follow."""


Watch: TypeAlias = Callable[[], AbstractContextManager[Watched]]
"""Builds the models once; inside the block the engine is looked into while it runs."""


class Trace(NamedTuple):
    """The tokens of one run of an engine, and its queries of the scenario's models."""

    texts: tuple[tuple[Tokens, Tokens], ...]
    """The prompt and the new tokens of each request."""
    queries: tuple[tuple[str, Tokens], ...]
    """``("target", tokens)`` or ``("draft", tokens)``, in their order."""
    draft: LanguageModel | None = None
    target: LanguageModel | None = None
    moments: tuple[int, ...] = ()
    """How many draws were answered before each query."""
    eos: int | None = None
    """The token that ends a text, if one does."""


class EngineProgram(NamedTuple):
    """A user's engine at one setting, its random calls answered by draws: one run is one whole decode."""

    name: str
    open: Callable[..., AbstractContextManager[Callable[[Draws], Any]]]
    """Builds the models once; inside the block the program may be run again and again. ``open(forced_uniform=u)`` gives
    every uniform that value instead."""
    law: Callable[[], Mapping[Tokens, float]]
    """The law of the new tokens that the engine promises, computed without its speculation."""
    plain: Callable[[], AbstractContextManager[Callable[[Draws], Any]]] | None = None
    """The same call without speculation as a program of draws, where ``law`` is enumerated from it."""
    replays: int = 140
    """How often it is run again in another state of the world, to notice draws that nobody answers."""
    target: Callable[[], Mapping[Tokens, float]] | None = None
    """For a declared bias: the target's law, from which ``law`` differs."""
    watch: Watch | None = None
    """The same engine, looked into while it runs."""
    tells: frozenset[str] = EVERYTHING
    """Which fields of ``Observed`` are told of it."""
    draft: LanguageModel | None = None
    """The pmf that a draft should be drawn from, given all tokens before it, where that is known."""
    rows: Callable[[Tokens], Mapping[Tokens, Mapping[str, Pmf]]] = lambda new: {}
    """For a reader: tokens -> p and q after them, on the way to these new tokens, where they are known."""
    documented: tuple[str, ...] = ()
    """Names in ``Observed.changed`` that the engine's documentation says it changes."""
    logits: Logits | None = None
    """What the target says of next tokens, where that is known: where greedy texts part, near-ties are no bugs."""
    split: Callable[[Any], tuple[Tokens, ...]] | None = None
    """Separates an outcome into the texts of its requests, where it has several."""
    each: str = "request"
    """What one of them is called."""
    alone: Callable[[int], EngineProgram] | None = None
    """The program that serves one of them alone."""
    trace: Callable[[tuple[int, ...]], Trace] | None = None
    """Runs the path of these choices once more and returns what it decoded, where the models are tables of ours."""
    most_paths: float = math.inf
    """It is left out where it has more paths than about this: others are looked at in its place."""
    of_size: bool = False
    """Whether it has a size that others do not have, and few paths: the quick plan compares its law too."""
    source: Any = None
    """What the engine's own ``Reproducer`` writes the call from, as a script; nobody else looks into it."""


class OpenedCall(NamedTuple):
    """A call of a verifier that is prepared and can be run repeatedly."""

    run: Callable[..., Ending]
    """``run(draws)``, or ``run(draws, boundary)`` where random numbers are given values."""
    rows: Rows
    """What it is about: of a batch, the row that is examined."""
    dtype: str
    """Of the rows that are given, by its name."""
    alike: Callable[[Any, Any, Tokens], OpenedCall]
    """``alike(p, q, drafts)``: the same verifier on another row, in float64, made into a call of the same form."""


class GivenCall(NamedTuple):
    """One call of a verifier that is prepared on demand."""

    name: str
    open: Callable[[], OpenedCall]


def emitted_by(call: OpenedCall, draws: Draws) -> Tokens:
    """Return the tokens of a call; a last token that was never read is drawn by ``draws``."""
    ending = call.run(draws)
    if ending.values is None:
        return ending.tokens
    return (*ending.tokens, ending.values[draws.categorical(ending.masses, ("last token",))].item())


class Subject(NamedTuple):
    """A decoder under test.

    ``variants`` and ``programs`` are input of exact checks, ``settings`` of the statistical one.
    """

    name: str
    summary: str
    claims: frozenset[Claim]
    variants: tuple[Variant, ...] = ()
    settings: tuple[SampledSetting, ...] = ()
    programs: tuple[EngineProgram, ...] = ()
    pairs: tuple[SampledPair, ...] = ()
    rational: bool = True
    """Whether it computes with exact rationals; else its laws are float64 with a rounding bound."""
    probe: Callable[[], bool] | None = None
    """Finds out ``rational`` by running the subject, where that is not known beforehand."""
    warm: Callable[[], None] | None = None
    """Runs it once for itself, so that what it loads, makes or starts at its first call is there when it counts."""
    stops_at_eos: bool = True  # whether it is told the end-of-sequence tokens
    whole: bool = False
    """Whether its only round is the whole decode, so that nothing can be merged and only small cases are in reach."""
    paper: str = ""
    intercepted: bool = False
    """Whether its random calls are answered; else it asks for its draws by name. Those of ``programs`` always are."""
    scenarios: tuple[Scenario, ...] = SCENARIOS
    """The situations that its variants go through."""
    calls: tuple[GivenCall, ...] = ()
    """For a verifier: single calls at the caller's own size."""
    most_runs: float = math.inf
    """Of a scenario round by round: where more are to be expected it is left out, others are looked at in its place."""
    deep: Callable[[], tuple[tuple[Variant, Scenario], ...]] = tuple
    """What else its law is looked at in, such as more drafts; it may run the subject to find out."""
    kind: str = ""
    """The form of the subject, such as "row" or "engine": subjects of one kind have one quick plan."""


class InScenario(NamedTuple):
    """A variant in a scenario: everything that its draws and its law depend on."""

    variant: Variant
    scenario: Scenario
    rational: bool
    """Whether it is handed exact rationals."""

    @property
    def task(self) -> Task:
        """The decoding task, in the arithmetic of the subject."""
        task = handed_task(self.scenario, self.rational)
        return task if self.variant.process is None else self.variant.process(task)

    @property
    def decoder(self) -> Decoder:
        """The decoder of that task."""
        return self.variant.build(self.task)

    @property
    def remembering(self) -> Decoder:
        """The decoder for laws: it may reuse laws computed before, and then reports less detail about a path."""
        return (self.variant.remembered or self.variant.build)(self.task)

    @property
    def prompt(self) -> Tokens:
        """The prompt, which precedes the new tokens."""
        return self.scenario.prompt


class KernelSetting(NamedTuple):
    """A setting of a kernel, interpreted by the kernel checks alone."""

    name: str


Situation: TypeAlias = InScenario | EngineProgram | SampledSetting | SampledPair | KernelSetting | GivenCall
"""What a check looks at in a subject, one at a time."""
