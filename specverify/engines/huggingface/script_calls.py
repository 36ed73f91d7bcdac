"""Two calls of ``generate`` as functions without arguments, and what they share as data before them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerFast

from specverify.engines.huggingface.generation import GenerateCall, as_lists
from specverify.engines.huggingface.script_text import WIDTH, Written, call_code, code, function_code, indented, once
from specverify.subjects.fault import NoScript

_config: Any = GenerationConfig  # its constructor is not annotated
CONFIG = "generation_config"
SHARED, OPTIONS = "same", "options"
BROKEN_OFF = '''"""A call that is broken off in the first forward pass that drafts."""
hook = {drafter}.register_forward_pre_hook(interrupt)
with suppress(KeyboardInterrupt):
{call}
hook.remove()'''


class ScriptCall(NamedTuple):
    """One call of ``generate``, and where it stands in a script."""

    given: Mapping[str, Any]
    name: str
    """Of the function that makes it; with ``function`` false of what it returns, or empty."""
    function: bool = True
    first: tuple[str, ...] = ()
    """What is done before it."""
    drafter: str = ""
    """The name of the model in whose first drafting pass it is broken off, if it is."""


def calls_code(calls: Sequence[ScriptCall], engine: GenerateCall, written: Written) -> list[str]:
    """Return what all of the calls are given, and then each."""
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
    tokens = ".sequences" if _asked_by_the_row(call.given) and call.name else ""
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
    """Return whether a call cannot be another one by being handed the value of the call before."""
    return value is None or isinstance(value, (bool, int, float, str, torch.Tensor))


def _asked_by_the_row(given: Mapping[str, Any]) -> bool:
    """Return whether a dictionary is asked for, and not to look at what is returned beside the tokens."""
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
    """Return the entries of a generation config that differ from the library's, as code."""
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
    """Return a cache that holds the beginning of the prompt as code: a forward pass of the target."""
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
    """Write a function, or the factory that made it, and return the expression that gives it."""
    name, _, inner = getattr(function, "__qualname__", "?").partition(".<locals>.")
    outcome = getattr(inspect.getmodule(function), name, None)
    if outcome is None or not inspect.isfunction(outcome) or (inner and inspect.signature(outcome).parameters):
        raise NoScript(f"the function {name} that generate is given cannot be written without what is about it")
    once(written.before, _bare(inspect.getsource(outcome)))
    return f"{name}()" if inner else name


def _bare(source: str) -> str:
    """Return a function without its annotations and docstrings, which speak of another place."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
            if ast.get_docstring(node):
                node.body = node.body[1:]
    return ast.unparse(tree)
