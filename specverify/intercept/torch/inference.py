"""Tensors that are made inside ``torch.inference_mode()`` and outlive it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

_NOTHING = nullcontext()


def outliving_inference() -> AbstractContextManager[Any]:
    """Return a block in which tensors are made as outside of inference mode: views of them may be made anywhere."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else _NOTHING
