"""Forward passes remembered across replays: a model is a function of what it is fed and of what its cache holds.

The key is the content of every input and of the whole cache, bit for bit, so a wrong cache gives a wrong key and is not
hidden. A remembered pass leaves the cache as the real one did.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from specverify.intercept.lazy_tensor import look_at


class _Pass(NamedTuple):
    kind: Any
    output: dict[str, Any]
    cache: Any


class Memory(NamedTuple):
    """What was remembered, and how often it served."""

    passes: dict[bytes, _Pass]
    used: list[int]
    """``used[0]`` counts the passes that were not computed again."""


@contextmanager
def remembered(model: Any, memory: Memory) -> Iterator[None]:
    """Answer ``model``'s forward passes from ``memory`` inside the block."""
    forward = model.forward

    def recall(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(look_at, args)), {name: look_at(value) for name, value in kwargs.items()}
        cache = kwargs.get("past_key_values")
        key = _digest((args, kwargs))
        if key not in memory.passes:
            with torch._C.DisableTorchFunction():  # noqa: SLF001 - a model in eval mode draws nothing
                output = forward(*args, **kwargs)
            kept = {name: value for name, value in output.items() if name != "past_key_values"}
            memory.passes[key] = copy.deepcopy(_Pass(type(output), kept, _state(cache)))
            return output
        memory.used[0] += 1
        passed = copy.deepcopy(memory.passes[key])  # the caller may write into what it gets
        if cache is not None:
            cache.__dict__.update(passed.cache)
        return passed.kind(**passed.output, past_key_values=cache)

    model.forward = recall
    try:
        yield
    finally:
        del model.forward


def _state(cache: Any) -> Any:
    return None if cache is None else dict(cache.__dict__)


def _digest(value: Any) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    _feed(found, value)
    return found.digest()


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        found.update(f"{value.dtype}{tuple(value.shape)}".encode())
        found.update(value.detach().cpu().contiguous().numpy().tobytes())
    elif isinstance(value, dict):
        for name in sorted(value, key=str):
            found.update(str(name).encode())
            _feed(found, value[name])
    elif isinstance(value, (list, tuple)):
        found.update(f"[{len(value)}".encode())
        for item in value:
            _feed(found, item)
    elif hasattr(value, "__dict__"):
        found.update(type(value).__name__.encode())
        _feed(found, value.__dict__)
    else:
        found.update(repr(value).encode())
