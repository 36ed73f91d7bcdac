"""Check that every draft is the draft model's choice after the current text, by the recorded model queries.

A draft from a stale cache does not change the output: it is rejected more often. So the queries to the models are
examined. The engine is made for models that are tables, which record their queries. p and q are one-hot after every
text and depend on the whole text, so a scenario has one run. An engine that drafts a chain queries its models with the
decided text, alone or followed by drafts. Each of these drafts must be the token to which q gives probability 1. Any
other query is a fault.

In some scenarios p = q and every draft is accepted. In others a quarter of the drafts is rejected, because some draft
caches are wrong only after a rejection. One text is long, because a draft model can have fewer positions than the
target. If the calls of an engine take a prompt, one engine also serves several prompts with a common beginning, one
after the other: a row of the draft model that is cached for one text and used for another gives a wrong draft.

Do not request this promise for an engine that may query other texts: one with trees, look-ups, windows or padding.
"""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

from specverify.base.prefixes import common_length
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.laws.certain_tables import CERTAIN, open_after
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.call_arguments import takes_prompt
from specverify.subjects.engine_factories import widened
from specverify.subjects.engine_making import Make, made_in
from specverify.subjects.engine_traces import likeliest_trace, likeliest_traces
from specverify.subjects.request_lists import conversation
from specverify.subjects.requests import Requests
from specverify.subjects.subject import EngineProgram, KernelSetting, Trace

NEVER: Final = 10_000
"""A length above that of any text; only after it would pmfs be random."""
SCENARIOS: Final = (
    *(Scenario(open_after(NEVER), 4, prompt, 20, seed=240 + seed) for seed, prompt in enumerate(((0, 1, 2), (3,)))),
    Scenario(open_after(NEVER), 4, (0, 1, 2), 180, seed=250),
    *(Scenario(CERTAIN, 4, prompt, 32, seed=251 + seed) for seed, prompt in enumerate(((0, 1, 2), (3, 1)))),
)
_PROMPT: Final = (0, 1, 2, 3, 2, 1) * 6
_IN_TURN: Final = (
    *(
        Requests(Scenario(open_after(NEVER), 4, first, 8, seed=242 + seed), others)
        for seed, (first, others) in enumerate(
            (
                (_PROMPT[:17], ((*_PROMPT[:16], 0), (*_PROMPT[:16], 3, 3), _PROMPT[:17])),
                ((*_PROMPT[:4], 0), ((*_PROMPT[:4], 1), (*_PROMPT[:4], 3), (*_PROMPT[:4], 0, 2))),
                (_PROMPT[:9], ((*_PROMPT[:8], 1), (*_PROMPT[:8], 0), (3, *_PROMPT[1:9]))),
                ((2, 0), ((0, 2), (2, 0, 1), (2, 1))),
            )
        )
    ),
    *(conversation(Scenario(open_after(NEVER), 4, _PROMPT[:length], 8, seed=246)) for length in (2, 3, 5, 8, 9)),
)
"""Requests in turn: prompts that differ in the first token after 16, 8, 4 or one common tokens, and longer ones; and
conversations, whose next turns begin with a text of which the draft model has read one token less than the target."""
_BEYOND: Final = 64
"""Number of tokens after the horizon that a last round may draft."""
_LONGEST_ROUND: Final = 40
"""Number of new tokens within which an engine that drafts is expected to query the draft model with the newest text."""


class ModelQueries(NamedTuple):
    """The texts with which an engine queries its models in one run, and those that a right engine would not query."""

    texts: tuple[Tokens, ...]
    """For each request: prompt, new tokens, and the tokens that the target would add after them."""
    drafts: tuple[Tokens, ...]
    """Texts with which the draft model was queried, in order."""
    strange_drafts: tuple[Tokens, ...]
    """Texts with which the draft model was queried, and that neither begin the text of a request nor consist of such a
    beginning and drafts after it."""
    strange_targets: tuple[Tokens, ...]
    """The same for the target."""
    ahead: tuple[int, ...]
    """Lengths of the texts after the prompt with which the draft model was queried before the target, ascending."""


def asked_of(trace: Trace, scenario: Scenario) -> ModelQueries:
    """Return the queries to the models in ``trace``, a run in ``scenario``, compared with the texts of the run."""
    task = handed_task(scenario, rational=False)
    assert task.draft is not None
    texts = tuple(_continued(task.target, prompt + new) for prompt, new in trace.texts)
    prompts = tuple(prompt for prompt, _ in trace.texts)
    of = {name: tuple(trace.asked(name)) for name in ("draft", "target")}
    strange = {
        name: tuple(tokens for tokens in asked if _wrong_token(tokens, texts, prompts, task.draft) is not None)
        for name, asked in of.items()
    }
    first: dict[Tokens, str] = {}
    for model, tokens in trace.queries:
        first.setdefault(tokens, model)
    ahead = sorted(
        len(tokens)
        for tokens, model in first.items()
        if model == "draft" and not any(prompt[: len(tokens)] == tokens for prompt in prompts)
    )
    return ModelQueries(texts, of["draft"], strange["draft"], strange["target"], tuple(ahead))


def _wrong_token(
    tokens: Tokens, texts: tuple[Tokens, ...], prompts: tuple[Tokens, ...], draft: LanguageModel
) -> int | None:
    """Return the index of the first wrong token in ``tokens``, a text with which a model was queried; None if all fit.

    ``texts`` are the texts of the requests, prompts included, and ``prompts`` their prompts.

    * If ``tokens`` begins one of ``texts``, or begins with one of them, all tokens fit.
    * If ``tokens`` begins with the prompt of a request, the tokens after the longest common beginning with such a text
      must be drafts: each the most probable token of the model ``draft``. The first that is no draft is wrong.
    * Otherwise the token after the longest common beginning with one of ``texts`` is wrong.
    """
    shared = [common_length(tokens, text) for text in texts]
    if any(common == min(len(tokens), len(text)) for common, text in zip(shared, texts, strict=True)):
        return None
    begun = [common for common, prompt in zip(shared, prompts, strict=True) if common >= len(prompt)]
    if not begun:
        return max(shared)
    return next((at for at in range(max(begun), len(tokens)) if draft(tokens[:at]).argmax() != tokens[at]), None)


def _continued(target: LanguageModel, text: Tokens) -> Tokens:
    """Return ``text`` continued by ``_BEYOND`` tokens, each the argmax of ``target`` after all tokens before it."""
    for _ in range(_BEYOND):
        text += (int(target(text).argmax()),)
    return text


def examine(make: Make, requests: Requests, _: Conditions) -> Examination:
    """Search the engine's model queries for a text that a right engine would not query.

    ``make`` builds the engine, which serves ``requests``. Only a wrong draft or a wrong context explains such a query.
    """
    scenario = requests.scenario
    trace = likeliest_traces(make, requests) if requests.others else likeliest_trace(make, scenario)
    result = asked_of(trace, scenario)
    if not result.drafts:
        said = "the scenario's draft model was never called, so no draft was examined"
        return Examination(said, unknown=True, rational=False)
    strange = result.strange_drafts or result.strange_targets
    if not strange and not result.ahead:
        said = (
            "the draft model is called on every text after the target was: its drafts may be made "
            "for a place that is decided already, from a text that lacks its last token"
        )
        return Examination(said, unknown=True, rational=False)
    if not strange and (since := _last_before_gap(result, requests)) is not None:
        said = (
            f"{requests.name}: after {since} tokens the draft model is not called with the newest text: drafts may be "
            "made from a text that lacks its last tokens. Let the engine draft in all rounds, or leave this promise out"
        )
        return Examination(said, unknown=True, rational=False)
    if not strange:
        return Examination("every draft is the draft model's choice after the text as it is", rational=False)
    first = strange[0]
    draft = handed_task(scenario, rational=False).draft
    assert draft is not None
    prompts = tuple(each.prompt for each in requests.each)
    at = _wrong_token(first, result.texts, prompts, draft)
    assert at is not None
    number = max(range(len(result.texts)), key=lambda place: common_length(first, result.texts[place]))
    text, size = result.texts[number], len(requests.each[number].prompt)
    certain = int(draft(first[:at]).argmax())
    who = "the draft model reads" if result.strange_drafts else "the target verifies"
    place = f"new token {at - size + 1}" if at >= size else f"prompt token {at + 1}"
    if common_length(first, text) < at:
        wanted = f"q is certain of {certain} after the drafts before it"
    else:
        same = certain == text[at]
        wanted = f"p and q are certain of {certain}" if same else f"the text has {text[at]}, and drafts {certain}"
    fault = f"{who} {first[at]} as {place}, where {wanted}: the draft is made from another text than the committed one"
    which = f"of request {number + 1} " if requests.others else ""
    example = Counterexample(
        (
            f"setting {requests.name}: p and q are one-hot after every text",
            f"the text {which}is {text[: at + 3]} ...",
            f"the draft model was called after {', '.join(map(str, result.drafts[:6]))}",
        ),
        fault,
        fault=fault,
    )
    return Examination(f"{requests.name}: {fault}", failed=True, rational=False, counterexample=example)


def _last_before_gap(queries: ModelQueries, requests: Requests) -> int | None:
    """Return the length of the text with the last query to the draft model before a gap; None if there is no gap.

    In a gap the draft model is not queried for more than ``_LONGEST_ROUND`` tokens of the text. Only texts that the
    draft model got before the target count; ``queries.ahead`` has their lengths. The prompt and the end of the
    requested text bound a gap like queries. The result is None also if there are several requests.
    """
    if requests.others:
        return None
    size = len(requests.scenario.prompt)
    lengths = [size, *queries.ahead, size + requests.scenario.horizon]
    return next((one for one, other in itertools.pairwise(lengths) if other - one > _LONGEST_ROUND), None)


def drafts_check(make: Make) -> Check:
    """Return the check that drafts of the engine ``make`` are the draft model's choices."""
    first = made_in(make, widened(make, SCENARIOS[0]))
    in_turn = _IN_TURN if takes_prompt(first.speculative) else ()
    by_name = {requests.name: requests for requests in (*(Requests(one, ()) for one in SCENARIOS), *in_turn)}

    def examined(situation: KernelSetting, conditions: Conditions) -> Examination:
        return examine(make, by_name[situation.name], conditions)

    return Check(
        name="drafts_follow_the_text",
        summary="every draft is the draft model's choice after the text as it is",
        claim=None,
        evidence=Evidence.EQUAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), lambda _: map(KernelSetting, by_name)),),
    )
