"""Check that every draft is the draft model's choice after the current text, by the recorded model queries.

The output does not show a draft from a stale cache, which only costs acceptance. The models of a made engine are
tables, so their queries are recorded. In the scenarios here p = q is one-hot after every text, and depends on all of
it: a chain whose drafts are those of the draft model has every draft accepted, and queries neither model with any other
text. Do not request this promise of an engine that may query other texts: trees, look-ups, windows, padding. If its
calls take a prompt, one engine also serves prompts with a common beginning in turn: a row of the draft model that is
cached for one text and used in another gives a wrong draft.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from specverify.base.prefixes import common_length
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.laws.certain_tables import open_after
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.call_arguments import takes_prompt
from specverify.subjects.made_engine import Make, likeliest_trace, likeliest_traces, made_in, widened
from specverify.subjects.requests import Requests
from specverify.subjects.subject import EngineProgram, KernelSetting, Trace

NEVER: Final = 10_000
"""A length above that of any text; only after it would pmfs be random."""
SCENARIOS: Final = tuple(
    Scenario(open_after(NEVER), 4, prompt, 20, seed=240 + seed) for seed, prompt in enumerate(((0, 1, 2), (3,)))
)
_PROMPT: Final = (0, 1, 2, 3, 2, 1) * 6
_IN_TURN: Final = tuple(
    Requests(Scenario(open_after(NEVER), 4, first, 8, seed=242 + seed), others)
    for seed, (first, others) in enumerate(
        (
            (_PROMPT[:17], ((*_PROMPT[:16], 0), (*_PROMPT[:16], 3, 3), _PROMPT[:17])),
            ((*_PROMPT[:4], 0), ((*_PROMPT[:4], 1), (*_PROMPT[:4], 3), (*_PROMPT[:4], 0, 2))),
            (_PROMPT[:9], ((*_PROMPT[:8], 1), (*_PROMPT[:8], 0), (3, *_PROMPT[1:9]))),
            ((2, 0), ((0, 2), (2, 0, 1), (2, 1))),
        )
    )
)
"""Requests in turn: prompts that differ in the first token after 16, 8, 4 or one common tokens, and longer ones."""
_BEYOND: Final = 64
"""Number of tokens after the horizon that a last round may draft."""


class ModelQueries(NamedTuple):
    """The queries of an engine to its models in one run."""

    texts: tuple[Tokens, ...]
    """For each request: prompt, new tokens, and the tokens that the target would add after them."""
    drafts: tuple[Tokens, ...]
    """Texts with which the draft model was queried, in order."""
    strange_drafts: tuple[Tokens, ...]
    """Queried texts of the draft model that are no prefix of the text of a request."""
    strange_targets: tuple[Tokens, ...]
    """Queried texts of the target that are no prefix of the text of a request."""
    ahead: int
    """Number of texts after the prompt with which the draft model was queried before the target."""


def asked_of(trace: Trace, scenario: Scenario) -> ModelQueries:
    """Return the queries to the models in ``trace``, a run in ``scenario``, compared with the texts of the run."""
    target = handed_task(scenario, rational=False).target
    texts = tuple(_continued(target, prompt + new) for prompt, new in trace.texts)
    of = {name: tuple(tokens for model, tokens in trace.queries if model == name) for name in ("draft", "target")}
    strange = {name: tuple(tokens for tokens in asked if not _begins_one(tokens, texts)) for name, asked in of.items()}
    first: dict[Tokens, str] = {}
    for model, tokens in trace.queries:
        first.setdefault(tokens, model)
    prompts = [prompt for prompt, _ in trace.texts]
    ahead = sum(
        model == "draft" and not any(prompt[: len(tokens)] == tokens for prompt in prompts)
        for tokens, model in first.items()
    )
    return ModelQueries(texts, of["draft"], strange["draft"], strange["target"], ahead)


def _begins_one(tokens: Tokens, texts: tuple[Tokens, ...]) -> bool:
    """Return whether ``tokens`` agree with one of the texts up to the end of the shorter of the two."""
    return any(common_length(tokens, text) == min(len(tokens), len(text)) for text in texts)


def _continued(target: LanguageModel, text: Tokens) -> Tokens:
    """Return ``text`` and the ``_BEYOND`` most probable tokens after it."""
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
    if not strange and result.ahead == 0:
        said = (
            "the draft model is called on every text after the target was: its drafts may be made "
            "for a place that is decided already, from a text that lacks its last token"
        )
        return Examination(said, unknown=True, rational=False)
    if not strange:
        return Examination("every draft is the draft model's choice after the text as it is", rational=False)
    first = strange[0]
    number = max(range(len(result.texts)), key=lambda place: common_length(first, result.texts[place]))
    text, size = result.texts[number], len(requests.each[number].prompt)
    at = common_length(first, text)
    who = "the draft model reads" if result.strange_drafts else "the target verifies"
    place = f"new token {at - size + 1}" if at >= size else f"prompt token {at + 1}"
    fault = (
        f"{who} {first[at]} as {place}, where p and q are certain of {text[at]}: the draft is made from another "
        "text than the committed one"
    )
    which = f"of request {number + 1} " if requests.others else ""
    example = Counterexample(
        (
            f"setting {requests.name}: p = q is one-hot after every text",
            f"the text {which}is {text[: at + 3]} ...",
            f"the draft model was called after {', '.join(map(str, result.drafts[:6]))}",
        ),
        fault,
        fault=fault,
    )
    return Examination(f"{requests.name}: {fault}", failed=True, rational=False, counterexample=example)


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
