"""Corrected copies of an engine's file: the controls of its refuted kernels, through the same adapters."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

VLLM = (
    ("target_prob / draft_prob >= uniform_prob", "target_prob / draft_prob > uniform_prob"),
    (
        "prob = tl.maximum(target_prob - draft_prob, 0.0)",
        "prob = tl.maximum(target_prob - draft_prob, target_prob * 1e-20)",
    ),
)
"""A uniform of 0 accepts nothing that p forbids; where nothing is left of p, the race is that of p."""
POSSIBLE = "final_token = tl.maximum(final_token, tl.max(tl.where(val > 0.0, v_offsets, 0), axis=0))"
SGLANG = (
    ("val = tl.where(diff > 0.0, diff, 0.0)", "val = tl.maximum(diff, p_val * 1e-20)"),
    ("    final_token = VOCAB_SIZE - 1\n", "    final_token = 0\n"),
    ("            if has_match:\n", f"            {POSSIBLE}\n            if has_match:\n"),
)
"""Where nothing is left of p it is p that is drawn from; where sums round apart, the last possible token comes out."""


def mended(file: str, changes: tuple[tuple[str, str], ...], folder: Path) -> Any:
    """Return the module of a file in which pieces of source are replaced, at every place; each must exist.

    ``changes`` are pairs (old, new); the copy is written into ``folder``.
    """
    source = Path(file).read_text("utf-8")
    for there, instead in changes:
        if there not in source:
            raise ValueError(f"{file} has no {there!r}, expected it to be mended there")
        source = source.replace(there, instead)
    copy = folder / Path(file).name
    copy.write_text(source, "utf-8")
    return module_of(copy)


def module_of(file: Path) -> Any:
    """Return the module of one file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
