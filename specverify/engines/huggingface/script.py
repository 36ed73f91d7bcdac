"""A call of transformers' ``generate`` as a script that needs only torch and transformers.

The engine is built, and ``generate`` is replaced to record the arguments of its two calls. The arguments are written as
code; data that both calls share come first. ``script_models`` writes models and tokenizers. ``NoScript`` is raised,
with a reason, for an argument that cannot be written.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
import transformers
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerFast

from specverify.engines.huggingface.generation import GenerateCall, as_lists, quiet_and_seeded
from specverify.engines.huggingface.script_causes import cause_of
from specverify.engines.huggingface.script_evidence import (
    contents_code,
    end_code,
    interrupt_code,
    is_broken_off,
    note_code,
    precise_code,
    uniform_code,
)
from specverify.engines.huggingface.script_models import (
    fill_code,
    imports_code,
    model_code,
    settings_code,
    tokenizers_code,
)
from specverify.engines.huggingface.script_text import (
    UNTESTED,
    WIDTH,
    Written,
    call_code,
    code,
    function_code,
    indented,
    joined,
    once,
    packed,
)
from specverify.subjects.fault import Fault, NoScript

_config: Any = GenerationConfig  # its constructor is not annotated
CONFIG = "generation_config"
SHARED, OPTIONS = "same", "options"
BROKEN_OFF = '''"""A call that is broken off in the first forward pass that drafts."""
hook = {drafter}.register_forward_pre_hook(interrupt)
with suppress(KeyboardInterrupt):
{call}
hook.remove()'''


class ScriptCall(NamedTuple):
    """One recorded call of ``generate``, and how it is written into the script.

    ``given`` are the arguments by name. If ``function`` is true, the script defines a function that makes the call;
    otherwise it makes the call at top level.
    """

    given: Mapping[str, Any]
    name: str
    """The name of the function that makes the call. Without a function, the name of the result, or "" if it is not
    kept."""
    function: bool = True
    first: tuple[str, ...] = ()
    """Lines of the script before the call."""
    drafter: str = ""
    """The name of the model in whose first drafting pass the call is interrupted; "" if it is not."""


def calls_code(calls: Sequence[ScriptCall], engine: GenerateCall, written: Written) -> list[str]:
    """Return the lines of code that make ``calls``, preceded by the definitions of arguments that all calls share.

    ``engine`` is the recorded call of ``generate``. The imports and functions that the code needs are added to
    ``written``.
    """
    before = [list(call.first) for call in calls]
    given = [
        {key: _value(key, value, engine, written, done) for key, value in call.given.items() if key != CONFIG}
        for call, done in zip(calls, before, strict=True)
    ]
    options = [_options(call.given[CONFIG]) for call in calls]
    alike = {key: value for key, value in _common(given).items() if _is_data(calls[0].given[key])}
    chosen = _common(options) if len(calls) > 1 else {}
    alike = alike if len(calls) > 1 else {}
    parts = [call_code(f"{SHARED} = dict", alike)] if alike else []
    parts += [call_code(f"{OPTIONS} = dict", chosen)] if chosen else []
    for call, done, arguments, entries in zip(calls, before, given, options, strict=True):
        own = {"": f"**{SHARED}"} if alike else {}
        own |= {key: value for key, value in arguments.items() if key not in alike}
        set_here = {"": f"**{OPTIONS}"} if chosen else {}
        set_here |= {key: value for key, value in entries.items() if key not in chosen}
        own[CONFIG] = call_code("GenerationConfig", set_here, WIDTH - 28)
        parts += _written(call, done, own)
    return parts


def _written(call: ScriptCall, done: list[str], arguments: Mapping[str, str]) -> list[str]:
    tokens = ".sequences" if _setting_returns_dictionary(call.given) and call.name else ""
    if call.drafter and not call.function:
        made = call_code("target.generate", arguments, WIDTH - 4)
        return BROKEN_OFF.format(drafter=call.drafter, call=indented(made)).split("\n")[1:]
    if call.drafter:
        made = call_code("target.generate", arguments, WIDTH - 8) + tokens
        return [function_code(call.name, BROKEN_OFF.format(drafter=call.drafter, call=indented(made)).split("\n"))]
    if call.function:
        made = call_code("return target.generate", arguments, WIDTH - 4) + tokens
        return [function_code(call.name, [*done, made])]
    result = f"{call.name} = " if call.name else ""
    return [*done, call_code(f"{result}target.generate", arguments) + tokens]


def _common(calls: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = calls
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _is_data(value: Any) -> bool:
    """Return whether ``value`` is plain data: a number, a string, None or a tensor.

    Two calls in a script can share such an argument, because the first call does not change it.
    """
    return value is None or isinstance(value, (bool, int, float, str, torch.Tensor))


def _setting_returns_dictionary(given: Mapping[str, Any]) -> bool:
    """Return whether the setting itself makes ``generate`` return a dictionary instead of the tokens.

    ``given`` are the recorded arguments by name, including those that were added because the script needs additional
    outputs. These also request a dictionary, but contain an ``output_*`` argument, by which they are recognised.
    """
    return bool(given.get("return_dict_in_generate")) and not any(name.startswith("output_") for name in given)


def _value(key: str, value: Any, engine: GenerateCall, written: Written, before: list[str]) -> str:
    if id(value) in written.names:
        return written.names[id(value)]
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(key, item, engine, written, before) for item in value) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return code(value)
    if isinstance(value, dict):
        items = [f"{code(name)}: {_value(key, item, engine, written, before)}" for name, item in value.items()]
        return "{" + ", ".join(items) + "}"
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(key, value, engine, written, before)
    if callable(value) and not isinstance(value, PreTrainedModel):
        return _source(value, written)
    raise NoScript(f"the argument {key} of generate is a {type(value).__name__}, which cannot be written as code")


def _options(config: Any) -> dict[str, str]:
    """Return the entries of a generation config that differ from the library's defaults: name -> value as code."""
    kept = {name: value for name, value in config.to_diff_dict().items() if name != "transformers_version"}
    if kept.get("use_mtp"):
        raise NoScript("layers for multi-token prediction are read from a checkpoint on the disk, which is no script")
    if _config(**kept).to_dict() != config.to_dict():
        raise NoScript("the generation config cannot be written by the entries that differ from the library's")
    return {name: code(as_lists(value)) for name, value in kept.items()}


def _tensor(key: str, value: Any, engine: GenerateCall, *_: Any) -> str:
    if key == "inputs_embeds":
        table = engine.target.get_input_embeddings().weight
        ids = [[int((table == row).all(-1).nonzero()[0]) for row in rows] for rows in value]
        return f"target.get_input_embeddings()(torch.tensor({ids}))"
    noise = f"torch.randn({', '.join(map(str, value.shape))}, generator=torch.Generator().manual_seed(0))"
    if value.is_floating_point() and torch.equal(torch.randn(value.shape, generator=_seeded()), value):
        return noise
    return f"torch.tensor({value.tolist()})"


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _cache(_: str, cache: Any, engine: GenerateCall, written: Written, before: list[str]) -> str:
    """Return the name of the script's variable for ``cache``, a KV cache that is passed to the call: always "cache".

    ``engine`` is the call. Code that fills the cache by a forward pass of the target is added to ``before``, and its
    import to ``written``. Raises ``NoScript`` if such a pass does not give the entries of ``cache``.
    """
    held = cache.get_seq_length()
    ids = engine.inputs["input_ids"][:, :held]
    again: Any = DynamicCache(config=engine.target.config)
    engine.target.forward(ids, past_key_values=again, use_cache=True)
    for one, other in zip(cache.layers, again.layers, strict=True):
        if not (torch.equal(one.keys, other.keys) and torch.equal(one.values, other.values)):
            raise NoScript("the cache that is passed in holds something else than the prompt")
    written.imports.add("DynamicCache")
    before += [
        "cache = DynamicCache(config=target.config)",
        f"target.forward(torch.tensor({ids.tolist()}), past_key_values=cache, use_cache=True)",
    ]
    return "cache"


_WRITERS: dict[Any, Callable[..., str]] = {
    torch.Tensor: _tensor,
    DynamicCache: _cache,
    PreTrainedTokenizerFast: lambda key, *_: key,
}


def _source(function: Any, written: Written) -> str:
    """Add the source of ``function`` to the definitions in ``written``; return the expression for it in the script.

    If ``function`` was defined inside another function, the source of the outer function is added, and the expression
    calls the outer function. Raises ``NoScript`` if the source cannot be found, or if the outer function needs
    arguments.
    """
    name, _, inner = getattr(function, "__qualname__", "?").partition(".<locals>.")
    outcome = getattr(inspect.getmodule(function), name, None)
    if outcome is None or not inspect.isfunction(outcome) or (inner and inspect.signature(outcome).parameters):
        raise NoScript(f"the function {name} that generate is given cannot be written without what is about it")
    once(written.before, _bare(inspect.getsource(outcome)))
    return f"{name}()" if inner else name


def _bare(source: str) -> str:
    """Return the source of a function without annotations and docstring."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            if ast.get_docstring(node):
                node.body = node.body[1:]
    return ast.unparse(tree)


NAMES = ("target", "assistant")
NO_GRADIENTS = "torch.set_grad_enabled(False)"
"""Line of the script that disables gradients, because torch uses a kernel with other rounding for weights with
``requires_grad``."""
SHOW = object()
"""Placeholder for the script's function that records the inputs of logits processors."""


class Caught(NamedTuple):
    """The arguments of up to three recorded calls of ``generate``, each as name -> value.

    ``plain`` is the call without speculation and ``speculative`` the call with it. ``earlier`` is the call that the
    setting makes before these, or None; ``broken`` states whether that call was interrupted.
    """

    plain: Mapping[str, Any]
    speculative: Mapping[str, Any]
    earlier: Mapping[str, Any] | None
    broken: bool


def script_of(build: Callable[[], GenerateCall], fault: Fault, setting: str = "") -> str:
    """Return a script that makes the call of ``build()`` with and without speculation and shows ``fault``.

    It needs only torch and transformers. Its exit status is 1 if the fault is present and 0 if not. It is 125 after
    another exception, or if ``generate`` without speculation behaves differently than when the script was written.
    ``setting`` is the name of the setting, which identifies a known cause. Raises ``NoScript`` for a call that cannot
    be written.
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
    caught = _caught(engine, extra)
    objects = [*models[1:], *tokenizers_code(caught.speculative, written)]
    early = bool(caught.speculative["generation_config"].assistant_early_exit)
    greedy = not caught.plain["generation_config"].do_sample
    # a call that is made once needs no function, and no copies of what it changes
    several = bool(fault.error) or fault.calls > 1 or not (greedy or fault.changed or fault.cache)
    anew = several and engine.newest is not None
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


def _caught(engine: GenerateCall, extra: Mapping[str, Any]) -> Caught:
    """Return the arguments of the calls of ``generate`` that ``engine`` makes; no model is run.

    The calls are one without speculation, one with speculation, and the call that ``engine.before()`` makes, if any.
    ``extra`` are further arguments of the first two. Meanwhile ``generate`` is replaced by a function that records.
    """
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
    engine.target.generate = real
    return Caught(plain, speculative, earlier, broken)


def _asked(fault: Fault) -> dict[str, Any]:
    """Return the arguments (name -> value) that a call of ``generate`` needs in addition, so that it shows ``fault``.

    * A wrong value returned beside the tokens, such as the scores: arguments that request this value.
    * Wrong inputs of logits processors: a processor that records its inputs.
    * Other faults: none; the result is empty.
    """
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
