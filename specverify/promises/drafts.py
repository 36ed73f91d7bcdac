"""Check that every draft is the draft model's choice after the current text, by the recorded model queries.

The output does not show a draft from a stale cache, which only costs acceptance. The models of a made engine are
tables, so their queries are recorded. In the scenarios here p = q is one-hot after every text, and depends on all of
it: a chain whose drafts are those of the draft model has every draft accepted, and queries neither model with any other
text. Do not request this promise of an engine that may query other texts: trees, look-ups, windows, padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.laws.certain_tables import open_after
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import Tokens
from specverify.subjects.made_engine import likeliest_trace
from specverify.subjects.subject import EngineProgram, KernelSetting, Trace

NEVER: Final = 10_000
"""A length above that of any text; only after it would pmfs be random."""
SCENARIOS: Final = tuple(
    Scenario(open_after(NEVER), 4, prompt, 20, seed=240 + seed) for seed, prompt in enumerate(((0, 1, 2), (3,)))
)
_BEYOND: Final = 64
"""Number of tokens after the horizon that a last round may draft."""


class ModelQueries(NamedTuple):
    """The queries of an engine to its models in one run."""

    text: Tokens
    """Prompt, new tokens, and the tokens that the target would add after them."""
    drafts: tuple[Tokens, ...]
    """Texts with which the draft model was queried, in order."""
    strange_drafts: tuple[Tokens, ...]
    """Queried texts of the draft model that are no prefix of the text."""
    strange_targets: tuple[Tokens, ...]
    """Queried texts of the target that are no prefix of the text."""
    ahead: int
    """Number of texts after the prompt with which the draft model was queried before the target."""


def asked_of(trace: Trace, scenario: Scenario) -> ModelQueries:
    """Return the model queries in ``trace``, a run in ``scenario``, compared with its text."""
    ((prompt, new),) = trace.texts
    text, target = prompt + new, handed_task(scenario, rational=False).target
    for _ in range(_BEYOND):
        text += (int(target(text).argmax()),)
    of = {name: tuple(tokens for model, tokens in trace.queries if model == name) for name in ("draft", "target")}
    strange = {name: tuple(t for t in texts if t != text[: len(t)]) for name, texts in of.items()}
    first: dict[Tokens, str] = {}
    for model, tokens in trace.queries:
        first.setdefault(tokens, model)
    ahead = sum(model == "draft" and len(tokens) > len(prompt) for tokens, model in first.items())
    return ModelQueries(text, of["draft"], strange["draft"], strange["target"], ahead)


def examine(make: Callable[..., object], scenario: Scenario, _: Conditions) -> Examination:
    """Search the engine's model queries in ``scenario`` for a text that a right engine would not query.

    ``make`` builds the engine. Only a wrong draft or a wrong context explains such a query.
    """
    result = asked_of(likeliest_trace(make, scenario), scenario)
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
    at = next((i for i, (one, other) in enumerate(zip(first, result.text, strict=False)) if one != other), 0)
    size = len(scenario.prompt)
    who = "the draft model reads" if result.strange_drafts else "the target verifies"
    place = f"new token {at - size + 1}" if at >= size else f"prompt token {at + 1}"
    fault = (
        f"{who} {first[at]} as {place}, where p and q are certain of {result.text[at]}: the draft is made from another "
        "text than the committed one"
    )
    example = Counterexample(
        (
            f"setting {scenario.name}: p = q is one-hot after every text",
            f"the text is {result.text[: at + 3]} ...",
            f"the draft model was called after {', '.join(map(str, result.drafts[:6]))}",
        ),
        fault,
        fault=fault,
    )
    return Examination(f"{scenario.name}: {fault}", failed=True, rational=False, counterexample=example)


def drafts_check(make: Callable[..., object]) -> Check:
    """Return the check that drafts of the engine ``make`` are the draft model's choices."""
    by_name = {scenario.name: scenario for scenario in SCENARIOS}

    def examined(situation: KernelSetting, conditions: Conditions) -> Examination:
        return examine(make, by_name[situation.name], conditions)

    return Check(
        name="drafts_follow_the_text",
        summary="every draft is the draft model's choice after the text as it is",
        claim=None,
        evidence=Evidence.EQUAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), lambda _: map(KernelSetting, by_name)),),
    )
