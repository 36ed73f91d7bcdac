"""A call of transformers' ``generate`` written as a script that needs torch and transformers alone.

The engine is built, and its two calls are caught at the door of ``generate``: whatever they were given is written as
code. Models are written as their config, by the entries that are not the library's defaults, and the recipe of their
weights, or the weights themselves where no recipe gives them. What cannot be written is refused in a sentence.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerFast

from specverify.engines.huggingface.generation import GenerateCall, as_lists, quiet_and_seeded
from specverify.engines.huggingface.script_models import model_code, settings_code
from specverify.engines.huggingface.script_text import (
    BREAK,
    CHANGED,
    ERROR,
    GREEDY,
    LAW,
    RETURNED,
    UNIFORM,
    UNTESTED,
    WIDTH,
    Written,
    call_code,
    code,
    once,
)
from specverify.subjects.fault import Fault, NoScript

NAMES = ("target", "assistant")

_config: Any = GenerationConfig  # its constructor is not annotated


def script_of(build: Callable[[], GenerateCall], fault: Fault) -> str:
    """Return a script that makes the call of ``build()`` with and without speculation and shows ``fault``.

    It needs torch and transformers alone, and ends with status 1 if the fault is there, 0 if not, 125 if anything else
    is raised, or the call without speculation has another law than when the script was written. Raises ``NoScript`` for
    what cannot be written.
    """
    with quiet_and_seeded(0), torch.no_grad():
        return _script(build, fault)


def _script(build: Callable[[], GenerateCall], fault: Fault) -> str:
    engine = build()
    _writable(engine)
    extra = _asked(fault.returned)
    caught: list[tuple[dict[str, Any], bool]] = []
    real, written = engine.target.generate, Written({"GenerationConfig"}, {"os", "sys"}, [], {}, {})

    def catch(**given: Any) -> Any:
        broken = any(model._forward_pre_hooks for model in engine.models)  # noqa: SLF001 - the library's own table
        caught.append((given, broken))
        return SimpleNamespace(sequences=None)

    models = [model_code(model, name, written) for model, name in zip(engine.models, NAMES, strict=False)]
    engine.target.generate = catch
    engine.generate(False, **extra)
    engine.generate(True, **extra)
    (plain, _), (speculative, _) = caught
    caught.clear()
    engine.before()
    earlier = caught[0] if caught else None
    engine.target.generate = _never
    anew = _is_built_anew(engine, extra)
    if anew and fault.changed:
        raise NoScript("the models are built for the call itself, so no script can look at them before")
    engine.target.generate = real

    settings = [line for model, name in zip(engine.models, NAMES, strict=False) for line in settings_code(model, name)]
    tokenizers = list(_tokenizers(speculative, written))
    objects = [*models[1:], *tokenizers]
    lines = [*(objects if anew else ()), *settings]
    setup = [models[0], *(() if anew else objects)]
    calls = [_function("plain", "The call without speculation.", [], plain, engine, written)]
    if earlier:
        calls.append(_function("earlier", "A call that is made before.", [], earlier[0], engine, written))
        lines.append("broken_off()" if earlier[1] else "earlier()")
    calls.append(_function("speculative", "The same call with speculation.", lines, speculative, engine, written))
    if earlier and earlier[1]:
        layers = engine.target.config.num_hidden_layers
        calls.append(BREAK.format(layers=layers, models=_names(engine)))
    greedy = not plain["generation_config"].do_sample
    return _whole(fault, greedy, engine, [*written.before, *setup], calls, written)


def _whole(
    fault: Fault, greedy: bool, engine: GenerateCall, setup: list[str], calls: list[str], written: Written
) -> str:
    found = f"Found with torch {torch.__version__} and transformers {transformers.__version__}, on the CPU."
    head = "\n".join(textwrap.wrap(fault.said, WIDTH)) + f"\n\n{found}\n"
    head += "Exit status: 1 if it is there, 0 if not, 125 if that cannot be tested here."
    start = len(engine.start)
    parts = [_uniform(fault.uniform)] if fault.uniform is not None else []
    if fault.returned:
        alone = '.set_attn_implementation("eager")  # it alone returns attentions'
        precision = "model.double()" + (alone if engine.inputs["attention_mask"].all() else "")
        name, models = _returned_name(fault.returned, engine), _names(engine)
        end = RETURNED.format(calls=fault.calls, precision=precision, models=models, name=name, start=start)
    elif fault.error:
        end = ERROR.format(start=start, calls=fault.calls, error=fault.error)
    elif fault.changed:
        end = CHANGED.format(names=NAMES, models=_names(engine))
    elif greedy:
        end = GREEDY.format(start=start)
    else:
        wrong = [tuple(new) for new in fault.wrong]
        end = LAW.format(wrong=wrong, expected=fault.expected, got=fault.got, calls=fault.calls, start=start)
    names = ", ".join(sorted(written.imports))
    imports = [f"import {name}" for name in sorted(written.modules)]
    imports += ["from contextlib import contextmanager"] if any("@contextmanager" in piece for piece in setup) else []
    imports += [UNTESTED]
    imports += ["import torch"]
    imports += ["from tokenizers import Tokenizer"] if "PreTrainedTokenizerFast" in names else []
    imports += [f"from transformers import {names}"] if len(names) < WIDTH - 25 else _listed(names)
    imports += ["from transformers.utils import logging"]
    quiet = "logging.set_verbosity_error()\ntorch.set_grad_enabled(False)\ntorch.set_num_threads(1)"
    pieces = [f'"""{head}\n"""', "\n".join(imports), quiet, *setup, *parts, *calls, end]
    return _joined(pieces)


def _listed(names: str) -> list[str]:
    return ["from transformers import (", *(f"    {name}," for name in names.split(", ")), ")"]


def _joined(pieces: list[str]) -> str:
    """Return the pieces one after the other, an empty line about every definition."""
    text, block = "", False
    for piece in (piece.strip("\n") for piece in pieces):
        defines = piece.startswith(("def ", "class ", "@"))
        text += ("\n\n" if defines or block else "\n") + piece if text else piece
        block = defines
    return text + "\n"


def _uniform(value: float) -> str:
    if value == 0:
        return UNIFORM.format(value="0.0", said="exactly 0", often="2**24")
    return UNIFORM.format(value="1 - 2**-24", said="the largest float below 1", often="2**24")


def _names(engine: GenerateCall) -> str:
    return ", ".join(NAMES[: len(engine.models)]) + ("," if len(engine.models) == 1 else "")


def _never(**_: Any) -> Any:
    raise NoScript("the call is made by a model that was not there before, which cannot be written as a script")


def _is_built_anew(engine: GenerateCall, extra: Mapping[str, Any]) -> bool:
    """Return whether the speculative call is made with other objects than the ones that were built first."""
    try:
        engine.generate(True, **extra)
    except NoScript:
        return False
    return True


def _writable(engine: GenerateCall) -> None:
    for model in engine.models:
        kind = type(model)
        if not kind.__module__.startswith("transformers."):
            raise NoScript(f"the model {kind.__name__} is not the library's, so no script can be without it")


def _asked(returned: str) -> dict[str, Any]:
    """Return what the call is given beside, to return the value; processors are the instrument's own there."""
    return {"return_dict_in_generate": True, f"output_{returned}": True, "logits_processor": None} if returned else {}


def _returned_name(returned: str, engine: GenerateCall) -> str:
    kept = returned in {"scores", "logits"} or not engine.target.config.is_encoder_decoder
    return returned if kept else f"decoder_{returned}"


def _function(
    name: str, said: str, lines: list[str], given: Mapping[str, Any], engine: GenerateCall, written: Written
) -> str:
    before = list(lines)
    arguments = {key: _value(key, value, engine, written, before) for key, value in given.items()}
    call = call_code("target.generate", arguments) + (".sequences" if _is_asked_by_the_row(given) else "")
    body = [f'"""{said}"""', *before, f"return {call}"]
    return f"def {name}():\n" + textwrap.indent("\n".join(body), "    ")


def _is_asked_by_the_row(given: Mapping[str, Any]) -> bool:
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


def _generation_config(_: str, config: Any, *__: Any) -> str:
    kept = {name: value for name, value in config.to_diff_dict().items() if name != "transformers_version"}
    if kept.get("use_mtp"):
        raise NoScript("layers for multi-token prediction are read from a checkpoint on the disk, which is no script")
    if _config(**kept).to_dict() != config.to_dict():
        raise NoScript("the generation config cannot be written by the entries that differ from the library's")
    return call_code("GenerationConfig", {name: code(as_lists(value)) for name, value in kept.items()})


def _tensor(key: str, value: Any, engine: GenerateCall, *_: Any) -> str:
    if key == "inputs_embeds":
        table = engine.target.get_input_embeddings().weight
        ids = [[int((table == row).all(-1).nonzero()[0]) for row in rows] for rows in value]
        return f"target.get_input_embeddings()(torch.tensor({ids}))"
    return f"torch.tensor({value.tolist()})"


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
        f"target(torch.tensor({ids.tolist()}), past_key_values=cache, use_cache=True)",
    ]
    return "cache"


_WRITERS: dict[Any, Callable[..., str]] = {
    GenerationConfig: _generation_config,
    torch.Tensor: _tensor,
    DynamicCache: _cache,
    PreTrainedTokenizerFast: lambda key, *_: key,
}


def _tokenizers(given: Mapping[str, Any], written: Written) -> Iterator[str]:
    for key, value in given.items():
        if isinstance(value, PreTrainedTokenizerFast):
            written.imports.add("PreTrainedTokenizerFast")
            text = value.backend_tokenizer.to_str()
            lines = "".join(f"    {text[at : at + WIDTH]!r}\n" for at in range(0, len(text), WIDTH))
            special = "".join(f", {name}={token!r}" for name, token in value.special_tokens_map.items())
            yield f"{key} = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(\n{lines}){special})"
            if "get_vocab" in vars(value):  # its order is arbitrary, and fixed here
                yield f"{key}.get_vocab = lambda: {value.get_vocab()!r}"


def _source(function: Any, written: Written) -> str:
    """Write a function, or the factory that made it, and return the expression that gives it."""
    name, _, inner = getattr(function, "__qualname__", "?").partition(".<locals>.")
    found = getattr(inspect.getmodule(function), name, None)
    if found is None or not inspect.isfunction(found) or (inner and inspect.signature(found).parameters):
        raise NoScript(f"the function {name} that generate is given cannot be written without what is about it")
    once(written.before, _bare(inspect.getsource(found)))
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
