"""transformers' ``generate`` as a program of draws: its exact law, by enumerating its random calls.

The library runs unmodified; ``specverify.intercept`` chooses the outcomes of its ``torch.multinomial`` and
``torch.rand_like``. Forward passes are cached across runs by the content of inputs and cache, so a run costs little
more than the library's Python code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

from specverify.engines.huggingface.generation import (
    Build,
    GenerateCall,
    assisted_engine,
    prompt_lookup_engine,
    quiet_and_seeded,
)
from specverify.engines.huggingface.objects import ready
from specverify.engines.huggingface.real_generate import exact_law
from specverify.engines.huggingface.smaller import ProgramSource
from specverify.engines.huggingface.tiny_models import EngineSetting
from specverify.engines.huggingface.watch import watched_call
from specverify.intercept.distributions import Forced
from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.torch.calls import outcome_of
from specverify.laws.enumeration import complete_law
from specverify.reference import Draws, Tokens
from specverify.subjects.subject import EngineProgram, SettingRefused

PROGRAMS: tuple[EngineSetting, ...] = tuple(
    EngineSetting(
        f"{architecture} V=4 gamma=2 horizon=3 {name}",
        architecture,
        horizon=3,
        vocabulary=4,
        prompt=(0, 1, 2, 0, 1),
        **options,
    )
    for architecture in ("llama", "gpt2")
    for name, options in (
        ("T=1", {}),
        ("T=0.7 top_k=3", {"temperature": 0.7, "top_k": 3}),
        ("T=1.3 top_p=0.9 eos=0", {"temperature": 1.3, "top_p": 0.9, "eos": (0,)}),
    )
)
"""Settings of three new tokens, whose exact law takes a second or two each."""

REPLAYS = 20
"""Replays per setting; a run takes ten milliseconds, and torch's own draws are watched in every run."""
FIVE_TOKENS = EngineSetting("llama V=3 gamma=2 horizon=5 T=1", "llama", horizon=5, vocabulary=3, prompt=(0, 1, 2, 0, 1))
"""A setting with several rounds of full drafts. Its law takes 499 runs with a draft model, and would take 2720 with
four tokens in the vocabulary."""


def assisted_programs() -> tuple[EngineProgram, ...]:
    """Return one program for each setting of assisted generation whose law is enumerated.

    The forward passes and caches of the program are also observed, except at the longest setting, of five new tokens.
    """
    return (
        *(engine_program(setting, assisted_engine) for setting in PROGRAMS),
        engine_program(FIVE_TOKENS, assisted_engine)._replace(watch=None),
    )


def prompt_lookup_programs() -> tuple[EngineProgram, ...]:
    """Return one program for each setting of prompt-lookup generation whose law is enumerated."""
    return tuple(engine_program(setting, prompt_lookup_engine) for setting in (*PROGRAMS, FIVE_TOKENS))


def engine_program(setting: EngineSetting, build: Build) -> EngineProgram:
    """Return the call of ``generate`` that ``build(setting)`` returns as a program, whose random draws can be chosen.

    The program's expected law is computed from forward passes of the target, without ``generate``.
    """
    return EngineProgram(
        name=setting.name,
        open=partial(opened, partial(build, setting)),
        law=partial(exact_law, setting),
        replays=REPLAYS,
        watch=partial(watched_call, partial(build, setting)),
        source=ProgramSource(partial(build, setting), setting, partial(engine_program, build=build)),
    )


@lru_cache(maxsize=4)
def plain_law(build: Callable[[], GenerateCall]) -> dict[Tokens, float]:
    """Return the law of the call ``build()`` without speculation, which is the law expected with speculation.

    It is computed by enumerating the random calls of the library.
    """
    with opened(build, speculative=False) as program:
        return complete_law(program)


@contextmanager
def opened(
    build: Callable[[], GenerateCall], forced_uniform: Forced = None, speculative: bool = True, refusal: str = ""
) -> Iterator[Callable[[Draws], Any]]:
    """Build the models, and yield a function that makes one call of ``generate`` with given draws.

    ``build`` returns the call, ``speculative`` states whether it speculates. The function returns the new tokens.
    ``forced_uniform`` is the value of all uniforms; with None they are draws. If ``refusal`` is not empty, an error of
    the library whose message contains ``refusal`` is raised as ``SettingRefused``: the library rejects the setting.
    """
    with quiet_and_seeded(0):
        engine = build()

    def program(draws: Draws) -> Any:
        engine.restore()
        if speculative:
            engine.before()
        try:
            with answered_everywhere(draws, forced_uniform):
                return outcome_of(engine.new_tokens(speculative))
        except Exception as error:
            if refusal and refusal in str(error):
                raise SettingRefused(str(error)) from error
            raise

    with ready(engine.models):
        yield program
