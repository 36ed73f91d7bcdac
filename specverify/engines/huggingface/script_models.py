"""Code that rebuilds models and tokenizers of transformers in a script.

A config is written as its entries that differ from the defaults. Weights are written as a seed and a scale if possible,
otherwise as bytes. A tokenizer is written as calls of its parts if possible, otherwise as its JSON text.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import Tokenizer
from transformers import GenerationConfig, PreTrainedTokenizerFast

from specverify.engines.huggingface.architectures import ARCHITECTURES, WEIGHT_SCALE, fill
from specverify.engines.huggingface.modalities import SCALE
from specverify.engines.huggingface.script_text import WIDTH, Written, call_code, code, indented, once
from specverify.engines.huggingface.speculators import SOFT_SCALE
from specverify.engines.huggingface.tiny_models import ASSISTANT_SEED, TARGET_SEED
from specverify.subjects.fault import NoScript

_library: Any = transformers
_config: Any = GenerationConfig  # its constructor is not annotated
TARGET = "target"

FILL = """
def fill(model, seed, scale):
    seeded = torch.Generator().manual_seed(seed)
    for name, each in sorted(model.named_parameters()):
        each.normal_(0, scale, generator=seeded) if each.ndim > 1 else each.fill_({vectors})
    return model.eval()
"""

STORED = '''
def stored(model, text):
    """Give the model the weights in ``text``."""
    model.load_state_dict(torch.load(io.BytesIO(zlib.decompress(base64.b64decode(text)))))
    return model.eval()
'''

REUSE = '''
@contextmanager
def all_layers_reuse():
    """transformers {version} builds no such assistant: its config demands what its layers refuse."""
    asked = Gemma4TextConfig.kv_sharing_modes
    Gemma4TextConfig.kv_sharing_modes = property(lambda config: ["reuse"] * config.num_hidden_layers)
    yield
    Gemma4TextConfig.kv_sharing_modes = asked
'''


def model_code(model: Any, name: str, target: Any, written: Written) -> str:
    """Return the statement that builds ``model`` as variable ``name``; add the definitions it needs to ``written``.

    ``target`` is the target model, which the script builds first.
    """
    written.names[id(model)] = name
    kind = type(model)
    written.imports.add(kind.__name__)
    config = _config_code(model.config, None if model is target else target.config, written)
    made = f"{name} = {_weights(model, f'{kind.__name__}({config})', written)}"
    if "\n" in config or len(made) > WIDTH - 4:
        made = f"config = {config}\n{name} = {_weights(model, f'{kind.__name__}(config)', written)}"
    try:
        kind(copy.deepcopy(model.config))
    except ValueError as error:
        if kind.__name__ != "Gemma4AssistantForCausalLM":
            raise NoScript(f"the library does not build a {kind.__name__} from its config: {error}") from error
        written.imports.add("Gemma4TextConfig")
        written.before.append(REUSE.format(version=transformers.__version__))
        return "with all_layers_reuse():\n" + indented(made)
    return made


def fill_code(written: Written) -> str:
    """Return the source of a function that fills a model's weights by the rule of ``architectures.fill``.

    ``written.vectors`` has the values of one-dimensional weights by name; the function selects them by the ends of the
    names. Raises ``NoScript`` if the ends of the names do not suffice to select them.
    """
    rule, left = "", dict(written.vectors)
    for end, value in _ends():
        named = {name for name in left if name.endswith(end)}
        if {left[name] for name in named} == {value} and any(left[name] != value for name in left):
            rule += f"{value} if name.endswith({code(end)}) else "
            left = {name: left[name] for name in left if name not in named}
    if len(set(left.values())) > 1:
        raise NoScript("the one-dimensional weights are filled by more rules than a script can write")
    return FILL.format(vectors=f"{rule}{next(iter(left.values()), 1.0)}")


def _ends() -> tuple[tuple[str, float], ...]:
    return (*dict.fromkeys(end for row in ARCHITECTURES.values() for end in row.fills), ("bias", 0.0))


def _weights(model: Any, built: str, written: Written) -> str:
    """Return code that builds a model by the code ``built`` and gives it the weights of ``model``.

    The weights are written as a seed and a scale if possible, else as bytes.
    """
    result = _recipe(model)
    vectors = {name: float(weights[0]) for name, weights in model.named_parameters() if weights.ndim == 1}
    if result is None or any(written.vectors.get(name, value) != value for name, value in vectors.items()):
        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        text = base64.b64encode(zlib.compress(buffer.getvalue(), 9)).decode()
        lines = [text[at : at + WIDTH - 6] for at in range(0, len(text), WIDTH - 6)]
        written.modules.update({"base64", "io", "zlib"})
        once(written.before, STORED)
        return call_code("stored", {"": built, " ": "\n".join(map(repr, lines))})
    seed, scale = result
    written.vectors.update(vectors)
    return call_code("fill", {"": built, " ": repr(seed), "  ": repr(scale)})


def _recipe(model: Any) -> tuple[int, float] | None:
    scales = dict.fromkeys((WEIGHT_SCALE, SOFT_SCALE, SCALE, *(row.scale for row in ARCHITECTURES.values())))
    ends = dict.fromkeys(((), *(row.fills for row in ARCHITECTURES.values())))
    seeds = dict.fromkeys((TARGET_SEED, ASSISTANT_SEED, *range(10)))
    again, wanted = copy.deepcopy(model), model.state_dict()
    for seed, scale, fills in product(seeds, scales, ends):
        made = fill(again, seed, scale, fills).state_dict()
        if all(torch.equal(made[name], weights) for name, weights in wanted.items()):
            return seed, scale
    return None


def _config_code(config: Any, like: Any, written: Written) -> str:
    """Return the code of ``config``: a call of its class, or a copy of the config ``like`` with changes.

    The copy requires the same class and few changes. ``written`` collects the imports. Raises ``NoScript`` if the
    entries of the config do not reproduce it.
    """
    kind = type(config)
    written.imports.add(kind.__name__)
    wanted = config.to_dict()
    if type(like) is kind:
        held = like.to_dict()
        changed = {name: value for name, value in wanted.items() if held.get(name) != value}
        with_changes = f" | {code(changed)}" if changed else ""
        if kind.from_dict(held | copy.deepcopy(changed)).to_dict() == wanted and len(with_changes) < WIDTH:
            return f"{kind.__name__}.from_dict({TARGET}.config.to_dict(){with_changes})"
    kept = {name: value for name, value in wanted.items() if name not in {"transformers_version", "model_type"}}
    nested = {
        name: getattr(config, name)
        for name in kept
        if isinstance(getattr(config, name, None), _library.PreTrainedConfig)
    }

    def gives(entries: Mapping[str, Any]) -> bool:
        try:
            return bool(kind(**copy.deepcopy({**entries, **nested})).to_dict() == wanted)
        except Exception:  # noqa: BLE001 - a config may refuse what it needs in any way
            return False

    kept = {name: value for name, value in kept.items() if name not in nested}
    if not gives(kept):
        raise NoScript(f"the config {kind.__name__} cannot be written by its entries")
    for name in list(kept):
        fewer = {key: value for key, value in kept.items() if key != name}
        kept = fewer if gives(fewer) else kept
    entries = {name: code(value) for name, value in kept.items()}
    inner = {name: _config_code(value, like, written) for name, value in nested.items()}
    return call_code(kind.__name__, entries | inner, WIDTH - 9)


def settings_code(model: Any, name: str) -> Iterator[str]:
    """Yield the statement that sets the generation config of ``model``; nothing is yielded if it has only defaults.

    ``name`` is the model's name in the script.
    """
    config = getattr(model, "generation_config", None)
    if config is None:
        return
    built = _config.from_model_config(model.config).to_dict()
    changed = {key: value for key, value in config.to_dict().items() if key in built and built[key] != value}
    changed |= {key: value for key, value in config.to_dict().items() if key not in built}
    if changed:
        yield call_code(
            f"{name}.generation_config.update", {key: code(value) for key, value in changed.items()}, WIDTH - 4
        )


LETTERS = 'pre_tokenizers.Split("", "isolated")'
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"letters = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), {LETTERS}])", ()),
    (f"letters = {LETTERS}", ("decoder = decoders.Fuse()",)),
)
"""For each kind of tokenizer in the settings: the line that defines its pre-tokenizer, and lines for its other
parts."""
_fast: Any = PreTrainedTokenizerFast  # its constructor is not annotated


def tokenizers_code(given: Mapping[str, Any], written: Written) -> Iterator[str]:
    """Yield the statements that build the tokenizers among the arguments of a call.

    ``given`` maps the names of arguments to values; a tokenizer gets the name of its argument. Imports and definitions
    are added to ``written``.
    """
    for key, value in given.items():
        if isinstance(value, PreTrainedTokenizerFast):
            written.imports.add("PreTrainedTokenizerFast")
            special = "".join(f", {name}={token!r}" for name, token in value.special_tokens_map.items())
            yield from _of_parts(key, value, written) or _as_text(key, value)
            yield f"{key} = PreTrainedTokenizerFast(tokenizer_object={key}{special})"
            if "get_vocab" in vars(value):  # its order is arbitrary, and fixed here
                yield f"{key}.get_vocab = lambda: {code(value.get_vocab())}"


def imports_code(pieces: str) -> list[str]:
    """Return import statements for the names of the library ``tokenizers`` that occur in ``pieces``, which is code."""
    names = [
        name for name in ("Tokenizer", "decoders", "models", "pre_tokenizers") if re.search(rf"\b{name}[.(]", pieces)
    ]
    return [f"from tokenizers import {', '.join(names)}"] if "Tokenizer" in names else []


def _of_parts(key: str, value: Any, written: Written) -> list[str]:
    model = json.loads(value.backend_tokenizer.to_str())["model"]
    if model["type"] != "WordLevel":
        return []
    first = f"{key} = Tokenizer(models.WordLevel({code(model['vocab'])}, {code(model['unk_token'])}))"
    for letters, parts in PARTS:
        lines = [first, f"{key}.pre_tokenizer = letters", *(f"{key}.{part}" for part in parts)]
        names = dict(vars(tokenizers))
        exec("\n".join([letters, *lines]), names)  # noqa: S102 - lines of our own, to see that they give the same tokenizer
        if _text(names[key], value) == value.backend_tokenizer.to_str():
            once(written.before, letters)
            return lines
    return []


def _as_text(key: str, value: Any) -> list[str]:
    text = json.dumps(_fewest(value), separators=(",", ":"))
    lines = [f"    {text[at : at + WIDTH - 10]!r}" for at in range(0, len(text), WIDTH - 10)]
    return [f"{key} = Tokenizer.from_str(", *lines, ")"]


def _fewest(tokenizer: Any) -> dict[str, Any]:
    """Return the JSON of ``tokenizer``, as a dictionary, without the entries that its library adds by default.

    An entry is left out if the library builds the same tokenizer without it; ``model`` is always kept.
    """
    wanted: str = tokenizer.backend_tokenizer.to_str()
    kept: dict[str, Any] = json.loads(wanted)
    for name in list(kept):
        fewer = {key: value for key, value in kept.items() if key != name}
        kept = fewer if name != "model" and _text_or_nothing(fewer, tokenizer) == wanted else kept
    return kept


def _text_or_nothing(entries: Mapping[str, Any], tokenizer: Any) -> str:
    try:
        return _text(Tokenizer.from_str(json.dumps(entries)), tokenizer)
    except Exception:  # noqa: BLE001 - the library raises a plain Exception for what it cannot read
        return ""


def _text(made: Any, like: Any) -> str:
    return str(_fast(tokenizer_object=made, **like.special_tokens_map).backend_tokenizer.to_str())
