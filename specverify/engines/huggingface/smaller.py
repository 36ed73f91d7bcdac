"""Smaller settings of an engine, with one option or one token fewer, in which a fault may be easier to see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from specverify.engines.huggingface.generation import GenerateCall
from specverify.engines.huggingface.tiny_models import EngineSetting
from specverify.reference import Tokens
from specverify.subjects.subject import EngineProgram

HOT = 3.0
"""A temperature at which rare tokens are not rare."""


class ProgramSource(NamedTuple):
    """A program and its setting, from which smaller programs and scripts are made.

    ``generation()`` returns the call of ``generate`` at this setting.
    """

    generation: Callable[[], GenerateCall]
    setting: EngineSetting
    program: Callable[[EngineSetting], EngineProgram]
    """``program(setting)`` returns the same program at another setting."""


def smaller_settings(setting: EngineSetting) -> Iterator[tuple[str, EngineSetting]]:
    """Yield (change, setting) for each setting with one option or token fewer; ``change`` is a text such as "no top_k".

    The engine may reject some of the settings.
    """
    listed: list[tuple[bool, str, dict[str, Any]]] = [
        (setting.sample, "greedy", {"sample": False}),
        (setting.horizon > 1, f"horizon {setting.horizon - 1}", {"horizon": setting.horizon - 1}),
        (setting.gamma > 1, f"gamma {setting.gamma - 1}", {"gamma": setting.gamma - 1}),
        *((True, f"no {entry[0]}", {"options": _without(setting.options, entry)}) for entry in setting.options),
        *((True, f"no {entry[0]}", {"assistant": _without(setting.assistant, entry)}) for entry in setting.assistant),
        (setting.sample and bool(setting.top_k), "no top_k", {"top_k": None}),
        (setting.sample and setting.top_p is not None, "no top_p", {"top_p": None}),
        (setting.sample and setting.temperature not in {1, HOT}, "temperature 1", {"temperature": 1.0}),
        (bool(setting.eos), "no end of sequence", {"eos": ()}),
        (
            setting.vocabulary - 1 > max(1, *setting.prompt, *setting.eos),
            f"vocabulary {setting.vocabulary - 1}",
            {"vocabulary": setting.vocabulary - 1},
        ),
        (len(setting.prompt) > 1, f"prompt {setting.prompt[1:]}", {"prompt": setting.prompt[1:]}),
    ]
    for applies, said, change in listed:
        if applies:
            yield said, setting._replace(**change)


def clearer_settings(setting: EngineSetting) -> Iterator[tuple[str, EngineSetting]]:
    """Yield (change, setting) for settings in which fewer sampled calls may suffice to show a fault of ``setting``.

    They have a higher temperature, another prompt, or another prompt and greedy decoding. For a greedy ``setting``
    there are none.
    """
    if setting.sample and setting.temperature < HOT:
        yield f"temperature {HOT:g}", setting._replace(temperature=HOT)
    if setting.sample:
        for sample, how in ((False, "greedy, "), (True, "")):
            for prompt in _other_prompts(setting):
                yield f"{how}prompt {prompt}", setting._replace(sample=sample, prompt=prompt)


def _other_prompts(setting: EngineSetting) -> Iterator[Tokens]:
    """Yield the prompts that differ from the setting's in one token.

    They are tried because some prompts show a fault more clearly than others.
    """
    for place, held in enumerate(setting.prompt):
        for token in range(setting.vocabulary):
            if token != held:
                yield (*setting.prompt[:place], token, *setting.prompt[place + 1 :])


def _without(entries: tuple[tuple[str, Any], ...], entry: tuple[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(item for item in entries if item != entry)


def smaller_programs(source: ProgramSource) -> Iterator[tuple[str, EngineProgram]]:
    """Yield (change, program) for each of the ``smaller_settings`` of the setting of ``source``."""
    for said, smaller in smaller_settings(source.setting):
        yield said, source.program(smaller)


def clearer_programs(source: ProgramSource) -> Iterator[tuple[str, EngineProgram]]:
    """Yield (change, program) for each of the ``clearer_settings`` of the setting of ``source``."""
    for said, clearer in clearer_settings(source.setting):
        yield said, source.program(clearer)
