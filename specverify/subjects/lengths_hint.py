"""A hint for engines that decode batches, but only of prompts of one length."""

from __future__ import annotations

from typing import Any

from specverify.laws.engine_scenarios import SCENARIOS
from specverify.reference import Tokens
from specverify.subjects.call_arguments import run_seeds
from specverify.subjects.engine_decodes import form_in
from specverify.subjects.engine_making import Make, made_in
from specverify.subjects.requests import texts_of
from specverify.subjects.seeded import seeded

WAY_OUT = (
    "It decodes a batch of prompts of one length, and raises {error} for prompts of different lengths, as servers have "
    "them: pad them in the call, or examine the decoding of one prompt, Made(lambda prompt: decode([prompt])[0])"
)


SEEDS = range(8)
"""The seeds with which each batch is decoded: an error in some of the decodes has another cause than the lengths."""


def lengths_hint(make: Make) -> str:
    """Return a hint for a batched engine of ``make`` that fails for prompts of different lengths alone; else ""."""
    scenario = SCENARIOS[0]
    if not made_in(make, scenario).batched:
        return ""
    alike, apart = [scenario.prompt] * 2, [scenario.prompt, scenario.prompt[:1]]
    if any(_error_of(make, alike, seed) for seed in SEEDS):
        return ""
    errors = [_error_of(make, apart, seed) for seed in SEEDS]
    return WAY_OUT.format(error=errors[0]) if all(errors) else ""


def _error_of(make: Make, prompts: list[Tokens], seed: int) -> str:
    """Return the type of the error that an engine raises for a batch of ``prompts``, and its text; "" if none.

    ``seed`` determines the random numbers of the decode.
    """
    call: Any = made_in(make, SCENARIOS[0]).speculative
    form, scenario = form_in(make, "speculative"), SCENARIOS[0]
    try:
        with seeded(seed), run_seeds():
            texts_of(call, prompts, batched=True, form=form, horizon=scenario.horizon, eos=scenario.eos)
    except Exception as error:  # noqa: BLE001 - of the user's code
        return f"{type(error).__name__} ({error})"
    return ""
