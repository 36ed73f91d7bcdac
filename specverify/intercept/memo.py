"""Forward passes remembered across replays: a model is a function of what it is fed and of what its cache holds.

The key is the content of every input and of the whole cache, bit for bit, so a wrong cache gives a wrong key and is not
hidden. A remembered pass leaves the cache as the real one did.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from specverify.intercept.lazy_tensor import look_at


class _Pass(NamedTuple):
    kind: Any
    output: dict[str, Any]
    cache: Any
    """The attributes of the cache that was passed in, or the cache that was made."""
    caches: bool
    """Whether the output holds the cache."""


class Memory(NamedTuple):
    """What was remembered, and how often it served."""

    passes: dict[bytes, _Pass]
    used: list[int]
    """``used[0]`` counts the passes that were not computed again."""


@contextmanager
def remembered(model: Any, memory: Memory) -> Iterator[None]:
    """Answer ``model``'s forward passes from ``memory`` inside the block.

    The number of layers is part of the key: early exit lowers it in the config for the length of a draft.
    """
    forward = model.forward

    @functools.wraps(forward)  # the library reads the signature to know what it may pass
    def recall(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(look_at, args)), {name: look_at(value) for name, value in kwargs.items()}
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - a model in eval mode draws nothing
            return pass_through(args, kwargs)

    def pass_through(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        cache = kwargs.get("past_key_values")
        key = digest((args, kwargs, getattr(model.config, "num_hidden_layers", None)))
        if key not in memory.passes:
            output = forward(*args, **kwargs)
            kept = {name: value for name, value in output.items() if name != "past_key_values"}
            left = output.get("past_key_values") if cache is None else _state(cache)
            caches = "past_key_values" in output
            memory.passes[key] = _Pass(type(output), _copied(kept), _copied(left), caches)
            return output
        memory.used[0] += 1
        passed = memory.passes[key]
        if cache is None:
            cache = _copied(passed.cache)
        else:
            cache.__dict__.update(_copied(passed.cache))
        return passed.kind(**_copied(passed.output), **({"past_key_values": cache} if passed.caches else {}))

    recall.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]  # worked out once, not at every look
    model.forward = recall
    try:
        yield
    finally:
        del model.forward


def _state(cache: Any) -> Any:
    return None if cache is None else dict(cache.__dict__)


def _copied(value: Any) -> Any:
    """Return a copy that shares no tensor: whoever gets it may write into it."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(item) for item in value)
    if hasattr(value, "__dict__") and not callable(value):
        made = copy.copy(value)
        made.__dict__.update(_copied(value.__dict__))
        return made
    return value


def digest(value: Any) -> bytes:
    """Return a digest of the content of a value: tensors, containers and the attributes of objects."""
    found = hashlib.blake2b(digest_size=16)
    _feed(found, value)
    return found.digest()


def _feed(found: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        found.update(f"{value.dtype}{tuple(value.shape)}".encode())
        found.update(value.detach().cpu().numpy().tobytes())
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
