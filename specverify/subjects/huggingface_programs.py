"""transformers' ``generate`` as a program of draws: its exact law, by enumerating its own random calls.

The library runs unmodified; ``intercept`` answers its ``torch.multinomial`` and ``torch.rand_like``. Forward passes are
remembered across runs by the content of inputs and cache, so a run costs the library's Python and little else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch

from reference import Draws
from specverify.intercept.memo import Memory, remembered
from specverify.intercept.torch_calls import answered_by, outcome_of
from specverify.subjects.huggingface import Engine, assisted_engine, exact_law, prompt_lookup_engine, quiet_and_seeded
from specverify.subjects.huggingface_models import EngineSetting
from specverify.subjects.subject import EngineProgram

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
"""The settings whose exact law is computed in a second or two each: three tokens."""

FIVE_TOKENS = EngineSetting("llama V=4 gamma=2 horizon=5 T=1", "llama", horizon=5, vocabulary=4, prompt=(0, 1, 2, 0, 1))
"""Several rounds with full drafts: about 35 000 runs with a draft model."""


def assisted_programs() -> tuple[EngineProgram, ...]:
    """Return assisted generation at every enumerated setting."""
    return tuple(engine_program(setting, assisted_engine) for setting in (*PROGRAMS, FIVE_TOKENS))


def prompt_lookup_programs() -> tuple[EngineProgram, ...]:
    """Return prompt-lookup generation at every enumerated setting."""
    return tuple(engine_program(setting, prompt_lookup_engine) for setting in (*PROGRAMS, FIVE_TOKENS))


def engine_program(setting: EngineSetting, build: Callable[[EngineSetting], Engine]) -> EngineProgram:
    """Return one way of calling ``generate`` at one setting."""
    return EngineProgram(
        name=setting.name,
        open=partial(_opened, setting, build),
        law=partial(exact_law, setting),
        vocabulary=setting.vocabulary,
    )


@contextmanager
def _opened(setting: EngineSetting, build: Callable[[EngineSetting], Engine]) -> Iterator[Callable[[Draws], Any]]:
    engine = build(setting)

    def program(draws: Draws) -> Any:
        with answered_by(draws):
            return outcome_of(engine.new_tokens())

    with ExitStack() as stack:
        stack.enter_context(quiet_and_seeded(0))
        stack.enter_context(torch.no_grad())
        for model in engine.models:
            stack.enter_context(remembered(model, Memory({}, [0])))
        yield program
