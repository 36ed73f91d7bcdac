"""The main subjects of transformers: each kind of speculation, and generation without speculation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version

from specverify.engines.huggingface.generation import Build, assisted_engine, prompt_lookup_engine
from specverify.engines.huggingface.programs import assisted_programs, engine_program, prompt_lookup_programs
from specverify.engines.huggingface.real_generate import (
    assisted_activity,
    assisted_counts,
    exact_law,
    plain_counts,
    prompt_lookup_activity,
    prompt_lookup_counts,
)
from specverify.engines.huggingface.tiny_models import SETTINGS, EngineSetting
from specverify.laws.divided import program_counts
from specverify.reference import AcceptanceStatistics, Claim, Tokens
from specverify.subjects.subject import Cost, EngineProgram, SampledSetting, Subject

DETECT = 0.2
"""Total variation to detect in samples with an engine's own random numbers; half of it takes four times as long."""
DETECT_PLAIN = 0.03
"""Total variation to detect in samples of batched generation without speculation."""
OF_A_CALL, OF_A_BATCHED_CALL = Cost(0.5, 7e-3), Cost(0.5, 2e-5)
ACTIVITY_CALLS = 100


def assisted() -> Subject:
    """Return the subject of assisted generation with a draft model."""
    settings = _speculative(assisted_counts, assisted_activity, assisted_engine)
    return _subject("hf:assisted", "assisted generation with a draft model", settings, assisted_programs())


def prompt_lookup() -> Subject:
    """Return the subject of generation with drafts copied from the prompt."""
    settings = _speculative(prompt_lookup_counts, prompt_lookup_activity, prompt_lookup_engine)
    return _subject("hf:prompt-lookup", "prompt-lookup generation", settings, prompt_lookup_programs())


def plain() -> Subject:
    """Return the subject of generation by the target alone, which must have the same law as with speculation."""
    settings = tuple(
        SampledSetting(
            name=setting.name,
            sample=partial(plain_counts, setting),
            law=partial(exact_law, setting),
            detect=DETECT_PLAIN,
            cost=OF_A_BATCHED_CALL,
        )
        for setting in SETTINGS
    )
    return _subject("hf:plain", "generation without speculation", settings, ())


SUBJECTS: dict[str, Callable[[], Subject]] = {"assisted": assisted, "prompt-lookup": prompt_lookup, "plain": plain}

CountsOf = Callable[[EngineSetting, int, int], dict[tuple[int, ...], int]]
Activity = Callable[[EngineSetting, int, int], AcceptanceStatistics]


def _speculative(counts: CountsOf, activity: Activity, build: Build) -> tuple[SampledSetting, ...]:
    return tuple(
        SampledSetting(
            name=setting.name,
            sample=partial(counts, setting),
            law=partial(exact_law, setting),
            detect=DETECT,
            activity=partial(_activity, activity, setting),
            divided=partial(_divided, build, setting),
            cost=OF_A_CALL,
        )
        for setting in SETTINGS
    )


def _subject(
    name: str, what: str, settings: tuple[SampledSetting, ...], programs: tuple[EngineProgram, ...]
) -> Subject:
    return Subject(
        name=name,
        summary=f"{what}: generate() of transformers {version('transformers')}, unmodified, on tiny Llama and GPT-2",
        claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
        paper="Hugging Face transformers, src/transformers/generation",
        situations=(*programs, *settings),
    )


def _divided(build: Build, setting: EngineSetting, number: int, seed: int) -> Mapping[Tokens, int]:
    with engine_program(setting, build).open() as program:
        return program_counts(program, number, seed)


def _activity(activity: Activity, setting: EngineSetting) -> str:
    seen = activity(setting, ACTIVITY_CALLS, 0)
    return (
        f"{seen.tokens} tokens in {seen.rounds} target forwards, {seen.accepted} of {seen.reached} "
        f"reached drafts accepted, over {ACTIVITY_CALLS} calls"
    )
