"""The type of a subject, through which checks use the algorithms of ``reference`` and users' code alike."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias, TypeVar

from specverify.laws.call_paths import Ending
from specverify.laws.call_rule import Rows
from specverify.laws.near_ties import Logits
from specverify.laws.rounding import FLOAT64
from specverify.laws.scenarios import SCENARIOS, Scenario, handed_task
from specverify.reference import Claim, Decoder, Draws, LanguageModel, Pmf, Task, Tokens


class UnusableSubject(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if a subject cannot be loaded or does not have an accepted form; the message is the reason."""


Context = Callable[[Draws], AbstractContextManager[None]]
"""``context(draws)`` returns a context manager in which random calls are intercepted, or left unchanged."""


class Intercepted(NamedTuple):
    """Functions that build a verifier's decoder and make its calls, so that specverify chooses their random numbers."""

    build: Callable[[Task, Context], Decoder]
    """``build(task, context)`` returns the decoder; each call of the verifier runs in a context of its own."""
    answered: Callable[..., AbstractContextManager[None]]
    """``answered(draws, forced_uniform)`` returns the context in which ``draws`` answers the random calls of a call.

    Uniforms get the forced value, if given.
    """


class Variant(NamedTuple):
    """A subject with fixed options, such as gamma, which ``label`` lists; its law can be enumerated.

    ``build(task)`` returns its decoder. ``declared_law(task, prompt)`` returns the law that the subject declares in
    place of the target's law; None if it declares none.
    """

    label: str
    build: Callable[[Task], Decoder]
    declared_law: Callable[[Task, Tokens], Mapping[Tokens, Any]] | None = None
    joint: Callable[[Task, Tokens], EngineProgram] | None = None
    """For a verifier of batches: decides the row after the prompt and other rows in one call.

    The outcome is their texts.
    """
    alone: Callable[[Task], Decoder] | None = None
    """For a verifier of batches: the same decoder, with one row in each batch."""
    batches: Callable[[], tuple[EngineProgram, ...]] | None = None
    """For a verifier of batches: calls whose rows all have certain outcomes, in all combinations of two rows."""
    intercepted: Intercepted | None = None
    """For a verifier: how its random calls are intercepted."""
    remembered: Callable[[Task], Decoder] | None = None
    """For a verifier: the same decoder, which computes the law of each call once and then samples from it."""
    process: Callable[[Task], Task] | None = None
    """Applies the sampling parameters to the models; the expected law is that of the processed target."""
    best: Callable[[Task], Decoder] | None = None
    """For a verifier of trees: decides the same drafts by the best known rule, whose acceptance is the reference."""
    drafts: int | None = None
    """The largest number of drafts of a round, if the variants of the subject differ only in this number; else None."""


class Method(StrEnum):
    """How samples of a subject are drawn: in which runs, and with whose random numbers."""

    DIVIDED = "divided"
    """The counts of many runs are divided at every draw: see ``specverify.laws.divided``."""
    PLAIN = "run by run"
    """Every run makes all its draws, which specverify answers."""
    OWN = "own numbers"
    """Run by run, with the subject's own random numbers."""


class Cost(NamedTuple):
    """The estimated cost of samples, in seconds of one processor."""

    once: float = 0.3
    """The cost that does not depend on the number of runs."""
    each: float = 0.0
    """The cost of one run."""


FIRST_LOOK = 0.25
"""The larger total variation that the first of two samples detects, for settings of foreign code."""


class SampledSetting(NamedTuple):
    """A subject at one setting that can only be sampled; its expected law is computed independently.

    ``name`` describes the setting in reports.
    """

    name: str
    sample: Callable[[int, int], Mapping[Tokens, int]]
    """``sample(number, seed)`` -> counts of outcomes, independent draws."""
    law: Callable[[], Mapping[Tokens, float]]
    """The law the samples must fit: the target's, or the declared one."""
    detect: float
    """The total variation to detect."""
    target: Callable[[], Mapping[Tokens, float]] | None = None
    """For a declared bias: the target's law, which the samples must *not* fit."""
    activity: Callable[[], str] | None = None
    """Returns how much was drafted and accepted; samples without drafts are no evidence."""
    method: Method = Method.OWN
    """How ``sample`` draws samples: see ``Method``."""
    divided: Callable[[int, int], Mapping[Tokens, int]] | None = None
    """If ``sample`` uses the subject's own random numbers: samples with intercepted draws, divided among paths."""
    cost: Cost = Cost()
    """The estimated cost of a sample; ``specverify stats`` samples the cheapest settings first."""
    first_look: float | None = None
    """A larger total variation to detect first with fewer samples, so that gross errors are found early; None: no first
    look."""
    confirmation_factor: int = 4
    """The confirmation of a suspicious result uses this many times as many fresh samples."""


class SampledPair(NamedTuple):
    """A speculative call and the same call without speculation; both can only be sampled, and neither law is known.

    ``sample`` is the speculative call, ``plain`` the other, with the same parameters. ``detect`` is the total variation
    between the two that must be detected, and ``name`` describes the setting in reports.
    """

    name: str
    sample: Callable[[int, int], Mapping[Tokens, int]]
    """``sample(number, seed)`` -> counts of outcomes, independent draws."""
    plain: Callable[[int, int], Mapping[Tokens, int]]
    detect: float
    logits: Logits | None = None
    """The target's next-token logits, if known."""


class NothingAllowed(Exception):  # noqa: N818 - it is no error of the engine's
    """Raised if a constraint forbids every possible token after some text.

    If the text is one of the target, the engine has no expected law. Otherwise it is one of a draft, and the engine
    raised an error. Real models give every token a positive probability, so this error is not held against the engine.
    """


class SettingRefused(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if an engine rejects a setting; the message is the engine's."""


class Forward(NamedTuple):
    """One forward pass of the target.

    ``fed`` are its input tokens, and ``entries`` is the content of its cache before the pass.
    """

    held: int
    """Number of cache entries before the pass."""
    fed: Tokens
    entries: tuple[Any, ...] = ()
    """The cache before the pass, one array ``[..., entries, width]`` for each layer and kind (keys, values)."""
    spacing: float = FLOAT64
    """Spacing at 1 of the floats in which the entries were computed."""
    again: int = 0
    """The first ``again`` + 1 tokens of the input are committed: those that an earlier pass had at the same position,
    and the next one, unless that is a draft (``observed_runs.with_drafts_told``)."""
    is_behind_all: bool = False
    """Whether the pass is fed tokens again up to the last one that an earlier pass processed: the next token, which no
    pass had, may be a bonus or a draft."""


def committed_before(forward: Forward, prompt: Tokens) -> int:
    """Return the number of committed tokens before a forward pass: the prompt and the tokens emitted so far.

    It follows from the length of the cache in ``forward``, and from the tokens that are fed again. Both are committed,
    and so is the next token; before the first pass, only ``prompt`` is committed.
    """
    return max(len(prompt), forward.held + forward.again + 1)


def drafts_of(forward: Forward, prompt: Tokens) -> Tokens:
    """Return the drafts in the input of the forward pass ``forward``: its tokens after the committed ones.

    Committed are the tokens of ``prompt``, the prompt of the run, and the tokens emitted so far.
    """
    return forward.fed[committed_before(forward, prompt) - forward.held :]


class Observed(NamedTuple):
    """The record of one run of an engine: its tokens, forward passes, other returned values, changed objects."""

    new: Any
    """The new tokens; ``Undecided`` if the last of them was never read."""
    forwards: tuple[Forward, ...]
    rows: tuple[tuple[Tokens, ...], ...] = ()
    """For each forward pass, the token ids that a logits processor received after it, call by call."""
    returned: Mapping[str, tuple[Any, ...]] = {}
    """Name -> further returned values, one array per new token: scores, logits, hidden states ..."""
    changed: tuple[str, ...] = ()
    """Names of the caller's objects that the run changed."""


EVERYTHING = frozenset({"forwards", "rows", "returned", "changed"})
"""The fields of ``Observed`` that an observed engine may record."""


class Watched(NamedTuple):
    """An engine with an observer: functions that make a call, and return its record.

    ``run(draws)`` makes the call with speculation.
    """

    run: Callable[[Draws], Observed]
    plain: Callable[[Draws], Observed]
    """Runs the same call without speculation."""
    prompt: Tokens
    """The prompt before the new tokens."""


Watch: TypeAlias = Callable[[], AbstractContextManager[Watched]]
"""Returns a context manager that builds the models once and yields the observed engine."""


class Trace(NamedTuple):
    """The tokens of one run of an engine, and the rows that it asked of the scenario's models, in order.

    ``draft`` and ``target`` are these models; None if they are not known.
    """

    texts: tuple[tuple[Tokens, Tokens], ...]
    """The prompt and the new tokens of each request."""
    queries: tuple[tuple[str, Tokens], ...]
    """``("target", tokens)`` or ``("draft", tokens)``, in their order."""
    draft: LanguageModel | None = None
    target: LanguageModel | None = None
    moments: tuple[int, ...] = ()
    """For each query, the number of draws made before it."""
    eos: int | None = None
    """The end-of-sequence token; None if there is none."""
    batches: tuple[int, ...] = ()
    """The number of requests of each batch; () if requests are served one by one."""
    calls: tuple[tuple[int, int], ...] = ()
    """For each call of the engine: the index of its first request, and the number of queries before it."""
    of_plain: Callable[[], Iterable[Tokens]] = tuple
    """Returns the texts with which the engine's call without speculation queries the target, if every draw has its most
    probable outcome; none if there is no such call."""

    def call_of(self, request: int) -> range:
        """Return the indices of the requests that the call serves which serves ``request``; all if it is not known."""
        begins = [first for first, _ in self.calls] or [0]
        at = bisect_right(begins, request)
        return range(begins[at - 1], begins[at] if at < len(begins) else len(self.texts))

    def of_call(self, request: int) -> Trace:
        """Return this trace with the queries of the call alone that serves ``request``; with all if it is not known."""
        if not self.calls:
            return self
        at = bisect_right([first for first, _ in self.calls], request)
        end = self.calls[at][1] if at < len(self.calls) else len(self.queries)
        part = slice(self.calls[at - 1][1], end)
        return self._replace(queries=self.queries[part], moments=self.moments[part], calls=())

    def asked(self, model: str) -> list[Tokens]:
        """Return the texts with which ``model``, "target" or "draft", was queried, in order."""
        return [tokens for name, tokens in self.queries if name == model]


class EngineProgram(NamedTuple):
    """A user's engine at one setting as a function of draws: one run is one whole decode with these draws.

    ``name`` describes the setting in reports.
    """

    name: str
    open: Callable[..., AbstractContextManager[Callable[[Draws], Any]]]
    """Builds the models once; in the ``with`` block the program can be run repeatedly. ``open(forced_uniform=u)`` gives
    every uniform the value u."""
    law: Callable[[], Mapping[Tokens, float]]
    """Returns the expected law of the new tokens, computed without speculation."""
    plain: Callable[[], AbstractContextManager[Callable[[Draws], Any]]] | None = None
    """Opens the same call without speculation as a program of draws, if ``law`` is enumerated from it."""
    replays: int = 140
    """The number of replays with other generator states, clocks and system bytes, which search for hidden draws."""
    observed_calls: bool = True
    """Whether its calls into C are observed too, in further runs. Not in a planned batch, one of many."""
    target: Callable[[], Mapping[Tokens, float]] | None = None
    """For a declared bias: the target's law, from which ``law`` differs."""
    watch: Watch | None = None
    """Opens the same engine with an observer; None if it has none."""
    tells: frozenset[str] = EVERYTHING
    """The fields of ``Observed`` that its observer records."""
    draft: LanguageModel | None = None
    """The model that drafts should be drawn from, given all tokens before them; None if unknown."""
    rows: Callable[[Tokens], Mapping[Tokens, Mapping[str, Pmf]]] = lambda new: {}
    """``rows(new)`` returns text -> {"p": row, "q": row} for the texts up to each new token, for messages."""
    documented: tuple[str, ...] = ()
    """Names in ``Observed.changed`` that the engine's documentation says it changes."""
    logits: Logits | None = None
    """The target's next-token logits, if known; they distinguish near-ties of greedy texts from defects."""
    split: Callable[[Any], tuple[Tokens, ...]] | None = None
    """Separates an outcome into the texts of its requests, if it has several."""
    each: str = "request"
    """The word for one of several texts."""
    in_batches: bool = False
    """Whether the texts are rows of one or of several batches."""
    alone: Callable[..., EngineProgram] | None = None
    """``alone(index)`` returns the program that serves one request alone; ``alone(index, other)``, that with the
    sampling parameters of request ``other``."""
    trace: Callable[[tuple[int, ...]], Trace] | None = None
    """``trace(choices)`` repeats a path; returns its tokens and model queries, if specverify made the models."""
    most_paths: float = math.inf
    """The case is skipped if the program has about this many paths or more; other cases take its place."""
    tokens: int = 0
    """The number of new tokens of one run, of all its requests together; 0 if it is not known."""
    in_quick: bool = False
    """Whether the quick plan always compares its law: it has an unusual size or a planned batch, and few paths."""
    probe: Callable[[], EngineProgram] | None = None
    """Returns the same engine in a setting whose law tells wrong rules apart; it explains a refutation. None: none."""
    is_probe: bool = False
    """Whether this is such a setting."""
    not_examined: tuple[str, ...] = ()
    """Sentences about what no program of this engine shows; they are notes of the verdict on its law."""
    also_not_examined: Callable[[], tuple[str, ...]] = tuple
    """Returns further such sentences, for which laws of the subject are compared."""
    source: Any = None
    """The data from which the engine's ``Reproducer`` writes a script of the call; used by nothing else."""


class LongDecode(NamedTuple):
    """A decode of many tokens, all of which are random: single paths of it are followed, because it has too many.

    ``name`` describes the decode in reports. ``tokens`` is the number of new tokens.
    """

    name: str
    open: Callable[[], AbstractContextManager[Callable[[Draws], Any]]]
    """As of an ``EngineProgram``."""
    short: EngineProgram
    """The same engine in a scenario of few tokens."""
    tokens: int


class FewPaths(NamedTuple):
    """An engine in one of many random tables, which is examined if the engine has few paths in such tables.

    A greedy engine or a beam search has one path in each table. An engine whose drafts are the most probable tokens
    draws for their tests alone. Of an engine that also draws its drafts, each table would have many paths.
    """

    program: EngineProgram
    first: EngineProgram
    """The engine in the first of these tables, which shows how many paths it has."""
    most: int
    """The largest number of paths there."""

    @property
    def name(self) -> str:
        """Return the name of the program, for reports."""
        return self.program.name


class OpenedCall(NamedTuple):
    """A call of a verifier, prepared so that it can be run many times, and its rows of p, q and drafts."""

    run: Callable[..., Ending]
    """``run(draws)``; or ``run(draws, boundary)``, in which random numbers have given values."""
    rows: Rows
    """The rows of p, q and drafts; of a batch, those of the examined row."""
    dtype: str
    """Name of the dtype of the rows."""
    alike: Callable[[Any, Any, Tokens], OpenedCall]
    """``alike(p, q, drafts)`` returns a call of the same verifier and form on other rows, given in float64."""


class GivenCall(NamedTuple):
    """One call of a verifier with the vocabulary, the batch and the number of drafts that its user chose.

    ``name`` is its name in reports. ``open`` prepares the arguments; it is called only when a check needs them.
    """

    name: str
    open: Callable[[], OpenedCall]


class KeptObjects(NamedTuple):
    """What an engine changed of the objects of its caller, in words: prompts, and answers after a later call."""

    prompts: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    calls: int = 0
    """The number of calls that were made."""


class KeptRequests(NamedTuple):
    """Requests to an engine by a caller who keeps all prompts that it passed and all answers that it received.

    ``name`` is their name in reports. ``serve()`` calls the engine, which draws its own random numbers.
    """

    name: str
    serve: Callable[[], KeptObjects]


def emitted_by(call: OpenedCall, draws: Draws) -> Tokens:
    """Return the tokens of a call; a last token that was never read is drawn with ``draws``."""
    ending = call.run(draws)
    if ending.values is None:
        return ending.tokens
    return (*ending.tokens, ending.values[draws.categorical(ending.masses, ("last token",))].item())


SubjectSituation: TypeAlias = (
    Variant | EngineProgram | LongDecode | FewPaths | SampledSetting | SampledPair | GivenCall | KeptRequests
)
"""One situation of a subject."""
Kind = TypeVar(
    "Kind", Variant, EngineProgram, LongDecode, FewPaths, SampledSetting, SampledPair, GivenCall, KeptRequests
)


class Subject(NamedTuple):
    """A decoder, verifier or engine under test: its situations, and what checks must know about all of them.

    A *situation* is a setting in which the subject can be examined: a variant, a program, a setting or a pair to
    sample, or a single call. ``name`` is the name on the command line, ``summary`` describes the subject in a sentence,
    and ``paper`` is the publication of its algorithm, or "". ``claims`` are the promises that checks test, such as
    losslessness.
    """

    name: str
    summary: str
    claims: frozenset[Claim]
    situations: tuple[SubjectSituation, ...] = ()
    """All situations of the subject: variants, programs, settings and pairs to sample, and single calls. A variant is
    examined in every scenario of ``scenarios``; each check selects the kinds of situations that it examines."""
    rational: bool = True
    """Whether it computes with exact rationals; if not, its laws are float64 with a rounding bound."""
    probe: Callable[[], bool] | None = None
    """Determines ``rational`` by running the subject, if it is not known beforehand."""
    warm: Callable[[], None] | None = None
    """Runs the subject once before the checks, so that lazy initialisation does not affect them."""
    stops_at_eos: bool = True  # whether it is told the end-of-sequence tokens
    whole: bool = False
    """Whether one round is the whole decode, so that states cannot merge and only small cases are enumerated."""
    paper: str = ""
    intercepted: bool = False
    """Whether the random calls of the variants are intercepted; if not, variants use the argument ``draws``. Those of
    programs are always intercepted."""
    scenarios: tuple[Scenario, ...] = SCENARIOS
    """The scenarios in which its variants are examined."""
    most_runs: float = math.inf
    """A scenario that needs about this many runs or more is skipped; other scenarios take its place."""
    deep: Callable[[], tuple[tuple[Variant, Scenario], ...]] = tuple
    """Returns further (variant, scenario) pairs, such as more drafts; it may run the subject to find them."""
    kind: str = ""
    """The form of the subject, such as "row" or "engine"; subjects of one kind have the same quick plan."""
    notes: tuple[str, ...] = ()
    """Phrases about how the subject is called, for a note of its first verdict, such as "takes a as q, ..."."""
    doubt: str = ""
    """Why a law that is wrong with constants refutes nothing alone: they may belong to what is sampled, not to p or q.
    "" if there is no such doubt."""
    doubtful: tuple[str, ...] = ()
    """The lines that draw these constants."""

    def of(self, kind: type[Kind]) -> tuple[Kind, ...]:
        """Return the situations of the class ``kind``, such as ``Variant``, in the order of ``situations``.

        A situation is the input of one examination, for example one call of a verifier.
        """
        return tuple(situation for situation in self.situations if isinstance(situation, kind))

    def with_programs(self, programs: Iterable[EngineProgram]) -> Subject:
        """Return the subject with ``programs`` as its only engine programs, and without further tables."""
        return self.with_situations(EngineProgram, tuple(programs)).with_situations(FewPaths, ())

    def with_situations(self, kind: type[SubjectSituation], situations: Iterable[SubjectSituation]) -> Subject:
        """Return the subject with ``situations`` in place of all its own situations of the class ``kind``.

        A situation is the input of one examination, for example one call of a verifier.
        """
        others = (situation for situation in self.situations if not isinstance(situation, kind))
        return self._replace(situations=(*others, *situations))

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The situations of the class ``Variant``: the subject with fixed options, enumerated in every scenario."""
        return self.of(Variant)

    @property
    def programs(self) -> tuple[EngineProgram, ...]:
        """The situations of the class ``EngineProgram``: whole decodes of an engine."""
        return self.of(EngineProgram)

    @property
    def settings(self) -> tuple[SampledSetting, ...]:
        """The situations of the class ``SampledSetting``: they are sampled and have a known law."""
        return self.of(SampledSetting)

    @property
    def pairs(self) -> tuple[SampledPair, ...]:
        """The situations of the class ``SampledPair``: calls that are sampled with and without speculation."""
        return self.of(SampledPair)

    @property
    def calls(self) -> tuple[GivenCall, ...]:
        """The situations of the class ``GivenCall``: single calls of a verifier, with the sizes that its user chose."""
        return self.of(GivenCall)


class InScenario(NamedTuple):
    """A variant in a scenario: together they determine the draws of a decode and its law."""

    variant: Variant
    scenario: Scenario
    rational: bool
    """Whether the models are exact rationals."""

    @property
    def task(self) -> Task:
        """Return the decoding task, in rationals or floats, with the variant's sampling parameters applied."""
        task = handed_task(self.scenario, self.rational)
        return task if self.variant.process is None else self.variant.process(task)

    @property
    def decoder(self) -> Decoder:
        """Return the decoder of the variant in this scenario."""
        return self.variant.build(self.task)

    @property
    def remembering(self) -> Decoder:
        """Return a decoder with the same law as ``decoder``, for computing this law faster.

        Where the variant supports this, the law of a verifier's call is computed once and sampled afterwards. Such a
        call is then a single draw: the draws inside it and the lines of the verifier's code are not recorded.
        """
        return (self.variant.remembered or self.variant.build)(self.task)

    @property
    def prompt(self) -> Tokens:
        """Return the prompt, which precedes the new tokens."""
        return self.scenario.prompt


class KernelSetting(NamedTuple):
    """A situation that consists of a name alone: one examination of a kernel, or of a promise of an engine.

    A promise is, for example, that equal seeds give equal texts. The check that makes the examination finds its data by
    the name.
    """

    name: str
    in_quick: bool = False
    """Whether every quick run has it."""


Situation: TypeAlias = (
    InScenario
    | EngineProgram
    | LongDecode
    | FewPaths
    | SampledSetting
    | SampledPair
    | KernelSetting
    | GivenCall
    | KeptRequests
)
"""The argument of a check's examination: a situation of a subject, a variant together with a scenario."""
