"""A call of transformers' ``generate`` written as a script that needs torch and transformers alone.

The engine is built, and its two calls are caught at the door of ``generate``: whatever they were given is written as
code. Models are written as their config, by the entries that are not the library's defaults, and the recipe of their
weights, or the weights themselves where no recipe gives them. What cannot be written is refused in a sentence.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import transformers

from specverify.engines.huggingface.generation import GenerateCall, quiet_and_seeded
from specverify.engines.huggingface.script_calls import ScriptCall, calls_code
from specverify.engines.huggingface.script_causes import cause_of
from specverify.engines.huggingface.script_ends import (
    contents_code,
    end_code,
    interrupt_code,
    is_broken_off,
    note_code,
    precise_code,
    uniform_code,
)
from specverify.engines.huggingface.script_models import fill_code, model_code, settings_code
from specverify.engines.huggingface.script_text import UNTESTED, WIDTH, Written, indented, joined, packed
from specverify.engines.huggingface.script_tokenizers import imports_code, tokenizers_code
from specverify.subjects.fault import Fault, NoScript

NAMES = ("target", "assistant")
NO_GRADIENTS = "torch.set_grad_enabled(False)"
"""Weights that ask for none are multiplied by another kernel, which rounds otherwise than in most calls."""
SHOW = object()
"""Stands for the function of a script that notes what processors are shown."""


class Caught(NamedTuple):
    """What ``generate`` was given, and whether its models were set to break it off."""

    plain: Mapping[str, Any]
    speculative: Mapping[str, Any]
    earlier: Mapping[str, Any] | None
    broken: bool


def script_of(build: Callable[[], GenerateCall], fault: Fault, setting: str = "") -> str:
    """Return a script that makes the call of ``build()`` with and without speculation and shows ``fault``.

    It needs torch and transformers alone, and ends with status 1 if the fault is there, 0 if not, 125 if anything else
    is raised, or the call without speculation has another law than when the script was written. Raises ``NoScript`` for
    what cannot be written.
    """
    with quiet_and_seeded(0), torch.no_grad():
        return _script(build, fault, cause_of(setting, fault))


def _script(build: Callable[[], GenerateCall], fault: Fault, cause: str) -> str:
    engine = build()
    for model in engine.models:
        if not type(model).__module__.startswith("transformers."):
            raise NoScript(f"the model {type(model).__name__} is not the library's, so no script can be without it")
    extra = _asked(fault)
    written, names = Written({"GenerationConfig"}, set(), [], {id(SHOW): "show"}, {}), NAMES[: len(engine.models)]
    written.imports.update({"DynamicCache"} if fault.cache == "held" else ())
    named = list(zip(engine.models, names, strict=True))
    models = [model_code(model, name, engine.target, written) for model, name in named]
    settings = [line for model, name in named for line in settings_code(model, name)]
    caught, anew = _caught(engine, extra)
    objects = [*models[1:], *tokenizers_code(caught.speculative, written)]
    early = bool(caught.speculative["generation_config"].assistant_early_exit)
    greedy = not caught.plain["generation_config"].do_sample
    # a call that is made once needs no function, and nothing anew
    several = bool(fault.error) or fault.calls > 1 or not (greedy or fault.changed or fault.cache)
    anew = anew and several
    first = () if fault.changed else settings
    calls = _calls(caught, fault, [*(objects if anew else ()), *first], several, names[-1])
    made = calls_code(calls, engine, written)
    setup = [*written.before, models[0], *(() if anew else objects), *(settings if fault.changed else ())]
    setup += [note_code(fault, engine, early)] if fault.cache or fault.drafted else []
    setup += [precise_code(fault, engine, names)] if fault.returned or fault.cache == "held" else []
    setup += [uniform_code(fault.uniform)] if fault.uniform is not None else []
    setup += [interrupt_code(engine)] if any(call.drafter for call in calls) else []
    setup += [contents_code(fault)] if fault.changed else []
    if any("fill(" in piece for piece in models):
        setup.insert(0, fill_code(written))
    pieces = [*setup, *made, end_code(fault, greedy, engine)]
    return joined([_head(fault, cause), *_imports(written, pieces), *pieces])


def _calls(caught: Caught, fault: Fault, first: Sequence[str], several: bool, drafter: str) -> list[ScriptCall]:
    if is_broken_off(fault):
        return [ScriptCall(caught.speculative, "", function=False, drafter=drafter)]
    calls = []
    if not (fault.changed or fault.cache):
        calls.append(ScriptCall(caught.plain, "plain" if several else "expected", several))
    if caught.earlier:
        name = "broken_off" if caught.broken else "earlier"
        calls.append(ScriptCall(caught.earlier, name, drafter=drafter if caught.broken else ""))
        first = [*first, f"{name}()"]
    name = "speculative" if several else "" if fault.changed else "got"
    return [*calls, ScriptCall(caught.speculative, name, several, tuple(first))]


def _caught(engine: GenerateCall, extra: Mapping[str, Any]) -> tuple[Caught, bool]:
    """Return what the two calls give ``generate``, and whether the second is made with other objects each time."""
    caught: list[tuple[dict[str, Any], bool]] = []
    real = engine.target.generate

    def catch(**given: Any) -> Any:
        broken = any(model._forward_pre_hooks for model in engine.models)  # noqa: SLF001 - the library's own table
        caught.append((given, broken))
        return SimpleNamespace(sequences=None)

    engine.target.generate = catch
    engine.generate(False, **extra)
    engine.generate(True, **extra)
    (plain, _), (speculative, _) = caught
    caught.clear()
    engine.before()
    earlier, broken = caught[0] if caught else (None, False)
    engine.target.generate = _never
    anew = _is_built_anew(engine, extra)
    engine.target.generate = real
    return Caught(plain, speculative, earlier, broken), anew


def _never(**_: Any) -> Any:
    raise NoScript("the call is made by a model that was not there before, which cannot be written as a script")


def _is_built_anew(engine: GenerateCall, extra: Mapping[str, Any]) -> bool:
    """Return whether the speculative call is made with other objects than the ones that were built first."""
    try:
        engine.generate(True, **extra)
    except NoScript:
        return False
    return True


def _asked(fault: Fault) -> dict[str, Any]:
    """Return what the call is given beside, to return the value, or to be told what processors are shown."""
    if fault.cache == "shown":
        return {"logits_processor": [SHOW]}
    returned = {"return_dict_in_generate": True, f"output_{fault.returned}": True, "logits_processor": None}
    return returned if fault.returned else {}


def _head(fault: Fault, cause: str) -> str:
    said = "\n".join(textwrap.wrap(textwrap.shorten(f'"""{fault.said}', 2 * WIDTH - 10, placeholder=" ..."), WIDTH))
    cause = "\n".join(textwrap.wrap(f"Cause: {cause}", WIDTH)) + "\n" if cause else ""
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}, on the CPU."
    status = "Status 0 fixed, 1 present, 125 cannot be tested."
    seed = " Argument: a seed." if fault.calls > 1 else ""
    return f'{said}\n\n{cause}{versions} {status}{seed}\n"""'


def _imports(written: Written, pieces: list[str]) -> list[str]:
    modules = [f"import {name}" for name in sorted({"sys", *written.modules})]
    used = [name for name in ("contextmanager", "suppress") if any(name in piece for piece in pieces)]
    modules += [f"from contextlib import {', '.join(used)}"] if used else []
    names = sorted(written.imports)
    listed = f"from transformers import {', '.join(names)}"
    if len(listed) > WIDTH:
        listed = "from transformers import (\n" + indented(",\n".join(packed(names, WIDTH - 4))) + ",\n)"
    return ["\n".join(modules), UNTESTED, "import torch", *imports_code("\n".join(pieces)), listed, NO_GRADIENTS]
