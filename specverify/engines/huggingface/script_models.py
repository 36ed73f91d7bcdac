"""Models of transformers as code: the config by what differs from its defaults, the weights by their recipe."""

from __future__ import annotations

import base64
import copy
import io
import textwrap
import zlib
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import torch
import transformers
from transformers import GenerationConfig

from specverify.engines.huggingface.architectures import ARCHITECTURES, WEIGHT_SCALE, fill
from specverify.engines.huggingface.models import ASSISTANT_SEED, TARGET_SEED
from specverify.engines.huggingface.script_text import FILL, REUSE, STORED, Written, call_code, code, once
from specverify.engines.huggingface.speculators import SOFT_SCALE
from specverify.subjects.fault import NoScript

_library: Any = transformers
_config: Any = GenerationConfig  # its constructor is not annotated


def model_code(model: Any, name: str, written: Written) -> str:
    """Return the statement that builds a model, and note what it needs."""
    written.names[id(model)] = name
    kind = type(model)
    written.imports.add(kind.__name__)
    config = _config_code(model.config, written)
    if config in written.configs:
        written.modules.add("copy")
        config = f"copy.deepcopy({written.configs[config]}.config)"
    written.configs.setdefault(config, name)
    built = call_code(kind.__name__, {"": config})
    made = f"{name} = {_weights(model, built, written)}"
    try:
        kind(copy.deepcopy(model.config))
    except ValueError as error:
        if kind.__name__ != "Gemma4AssistantForCausalLM":
            raise NoScript(f"the library does not build a {kind.__name__} from its config: {error}") from error
        written.imports.add("Gemma4TextConfig")
        written.before.append(REUSE.format(version=transformers.__version__))
        return "with all_layers_reuse():\n" + textwrap.indent(made, "    ")
    return made


def _weights(model: Any, built: str, written: Written) -> str:
    """Return the model with its weights as code: by recipe if one gives them, else as they are."""
    found = _recipe(model)
    if found is None:
        buffer = io.BytesIO()
        torch.save(model.state_dict(), buffer)
        text = base64.b64encode(zlib.compress(buffer.getvalue(), 9)).decode()
        written.modules.update({"base64", "io", "zlib"})
        once(written.before, STORED)
        return call_code("stored", {"": built, " ": code(text)})
    seed, scale, fills = found
    ends = (*fills, ("bias", 0.0), ("", 1.0))
    once(written.before, FILL.format(ends=code(ends)))
    return call_code("fill", {"": built, "seed": repr(seed), "scale": repr(scale)})


def _recipe(model: Any) -> tuple[int, float, tuple[tuple[str, float], ...]] | None:
    scales = dict.fromkeys((WEIGHT_SCALE, SOFT_SCALE, *(row.scale for row in ARCHITECTURES.values())))
    ends = dict.fromkeys(((), *(row.fills for row in ARCHITECTURES.values())))
    seeds = dict.fromkeys((TARGET_SEED, ASSISTANT_SEED, *range(10)))
    again, wanted = copy.deepcopy(model), model.state_dict()
    for seed, scale, fills in product(seeds, scales, ends):
        made = fill(again, seed, scale, fills).state_dict()
        if all(torch.equal(made[name], weights) for name, weights in wanted.items()):
            return seed, scale, fills
    return None


def _config_code(config: Any, written: Written) -> str:
    """Return a config as a call of its class with as few entries as give it."""
    kind = type(config)
    written.imports.add(kind.__name__)
    wanted = config.to_dict()
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
    return call_code(kind.__name__, entries | {name: _config_code(value, written) for name, value in nested.items()})


def settings_code(model: Any, name: str) -> Iterator[str]:
    """Yield how the model's own generation config is set: at every call, for some calls write into it."""
    config = getattr(model, "generation_config", None)
    if config is None:
        return
    built = _config.from_model_config(model.config).to_dict()
    changed = {key: value for key, value in config.to_dict().items() if key in built and built[key] != value}
    changed |= {key: value for key, value in config.to_dict().items() if key not in built}
    if changed:
        yield call_code(f"{name}.generation_config.update", {key: code(value) for key, value in changed.items()})
