"""Tokenizers as code: by the parts that they are made of, or as the library's own text of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import tokenizers
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from specverify.engines.huggingface.script_text import WIDTH, Written, code, once

LETTERS = 'pre_tokenizers.Split("", "isolated")'
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"letters = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), {LETTERS}])", ()),
    (f"letters = {LETTERS}", ("decoder = decoders.Fuse()",)),
)
"""What the tokenizers of the settings are made of beside their words."""
_fast: Any = PreTrainedTokenizerFast  # its constructor is not annotated


def tokenizers_code(given: Mapping[str, Any], written: Written) -> Iterator[str]:
    """Yield the statements that build the tokenizers among the arguments, and note what they need."""
    for key, value in given.items():
        if isinstance(value, PreTrainedTokenizerFast):
            written.imports.add("PreTrainedTokenizerFast")
            special = "".join(f", {name}={token!r}" for name, token in value.special_tokens_map.items())
            yield from _of_parts(key, value, written) or _as_text(key, value)
            yield f"{key} = PreTrainedTokenizerFast(tokenizer_object={key}{special})"
            if "get_vocab" in vars(value):  # its order is arbitrary, and fixed here
                yield f"{key}.get_vocab = lambda: {code(value.get_vocab())}"


def imports_code(pieces: str) -> list[str]:
    """Return the import of what ``pieces`` use of the library of tokenizers."""
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
    """Return as few entries of a tokenizer as give it."""
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
