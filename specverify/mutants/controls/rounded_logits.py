"""Logits are computed in float32: they differ from others in the last bits, which flips near ties and nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Control
from specverify.mutants.numpy_verifiers import decided, logits_at, softmax_rows

SETTINGS = (("temperature", 0.7),)


def verify(target_logits: Any, draft_logits: Any, draft_tokens: Any, temperature: float) -> list[int]:
    """Speculative sampling of rounded logits."""
    rounded = [rows.astype(np.float32) for rows in (target_logits, draft_logits)]
    p, q = (softmax_rows(rows, temperature).astype(np.float64) for rows in rounded)
    return decided(np.random.default_rng(), p / p.sum(-1, keepdims=True), q, draft_tokens.tolist())


CONTROL = Control(
    "rounded-logits",
    "computes logits in float32",
    "transformers issue #39421; Medusa issue #56; MLC-LLM PR #2184; mlx-lm PR #1109",
    partial(logits_at, SETTINGS, verify, "control:rounded-logits", (1,)),
)
