"""A digest of the content of a value: two values have one digest only if they hold the same.

Every part is led by its type and its length, so that no two ways of cutting a sequence into parts agree. What has no
content that can be read, such as a function with what it closes over, an open file or an object of an extension, has
no digest.
"""

from __future__ import annotations

import enum
import hashlib
import types
from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import torch

_PLAIN = {
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    type(None),
    type(Ellipsis),
    torch.dtype,
    torch.device,
    torch.Size,
    range,
}
_OF_NUMPY = {torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool}
"""Types of entries that NumPy has as well, without conjugates."""


_READ = {object, dict, list, tuple, set, frozenset, OrderedDict}
"""Types of which nothing is left when their items have been read."""


class NoContent(TypeError):  # noqa: N818 - reads as the sentence it is
    """A value holds something whose content cannot be read; the message names its type."""


def digest(value: Any) -> bytes:
    """Return 16 bytes that stand for the content of a value. Raises ``NoContent`` where it cannot be read."""
    found = hashlib.blake2b(digest_size=16)
    try:
        _feed(found, value, ())
    except RecursionError:
        raise NoContent("a value contains itself in a set, or is too deep to be read") from None
    return found.digest()


def _feed(found: Any, value: Any, inside: tuple[Any, ...]) -> None:
    of: type = type(value)
    kind = _name_of(of)
    if of in _PLAIN:
        _part(found, kind, value if isinstance(value, bytes) else repr(value).encode())
        return
    for place, around in enumerate(inside):
        if around is value:
            _part(found, "again", str(place).encode())
            return
    inside = (*inside, value)
    if isinstance(value, torch.Tensor):
        _part(found, kind, f"{value.dtype}{tuple(value.shape)}{value.device}".encode())
        _part(found, "bytes", _bytes_of(value, kind))
    elif isinstance(value, (np.ndarray, np.generic)):
        if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
            raise NoContent(f"the content of a {kind} cannot be read")
        _part(found, kind, f"{value.dtype.descr}{value.shape}".encode())
        if value.dtype.hasobject:
            _several(found, "objects", value.ravel().tolist(), inside)
        else:
            _part(found, "bytes", value.tobytes())
    elif isinstance(value, type):
        _part(found, "class", f"{value.__module__}.{value.__qualname__} {id(value)}".encode())
    elif isinstance(value, enum.Enum):
        _part(found, kind, value.name.encode())
    else:
        _feed_parts(found, kind, value, inside)


@lru_cache(maxsize=4096)
def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _bytes_of(tensor: torch.Tensor, kind: str) -> bytes:
    readable = tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    if not readable or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or vars(tensor):
        raise NoContent(f"the content of a {kind} cannot be read")
    if tensor.dtype in _OF_NUMPY and tensor.device.type == "cpu" and not tensor.is_neg():
        return tensor.detach().numpy().tobytes()
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1).contiguous()
    return plain.view(torch.uint8).numpy().tobytes()


def _feed_parts(found: Any, kind: str, value: Any, inside: tuple[Any, ...]) -> None:
    attributes = getattr(value, "__dict__", None)
    of: type = type(value)
    if isinstance(value, OrderedDict):
        _several(found, kind, [item for pair in value.items() for item in pair], inside)
    elif isinstance(value, dict):
        names = sorted(value, key=lambda name: (type(name).__qualname__, repr(name)))
        _several(found, kind, [item for name in names for item in (name, value[name])], inside)
    elif isinstance(value, (list, tuple)):
        _several(found, kind, value, inside)
    elif isinstance(value, (set, frozenset)):
        _several(found, kind, sorted(digest(item) for item in value), inside)
    elif attributes is None:
        raise NoContent(f"the content of a {kind} cannot be read")
    if callable(value) or _holds_more(of):
        raise NoContent(f"the content of a {kind} cannot be read")
    if attributes:
        _several(found, f"attributes of {kind}", [item for name in sorted(attributes) for item in
                                                  (name, attributes[name])], inside)  # fmt: skip


@lru_cache(maxsize=4096)
def _holds_more(kind: type) -> bool:
    """Return whether objects have a state beside attributes and items: of a type that is written in C, or slots."""
    return any(vars(base).get("__slots__") or not _in_python(base) for base in set(kind.__mro__) - _READ)


def _in_python(kind: type) -> bool:
    """Return whether a type was made by a class statement: a heap type, without methods that are written in C."""
    names = vars(kind).items()
    return bool(kind.__flags__ & (1 << 9)) and not any(
        isinstance(item, _IN_C) and name not in {"__dict__", "__weakref__"} for name, item in names
    )


_IN_C = (
    types.BuiltinMethodType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def _several(found: Any, kind: str, parts: Iterable[Any], inside: tuple[Any, ...]) -> None:
    listed = list(parts)
    _part(found, kind, str(len(listed)).encode())
    for part in listed:
        _feed(found, part, inside)


def _part(found: Any, kind: str, content: bytes) -> None:
    found.update(f"{len(kind)} {kind} {len(content)} ".encode())
    found.update(content)
