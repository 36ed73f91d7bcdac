"""Forward passes cached across replays: the output of a model is a function of its inputs and of its cache's content.

The key is the content of every input and of the whole cache, bit for bit, so a wrong cache gives another key and is not
hidden. A cached pass leaves the model's cache as the real pass did. A pass with an input whose content cannot be read
is computed every time.

An unread drawn token, such as the last draft, is fed with all its outcomes at once: see ``tensors``. The program
has to be run for each outcome only if the token's row, or its entry in the cache, is used.

A digest represents the content of a value: two values have equal digests only if they have the same content. Every part
is preceded by its type and its length, so that two divisions of a sequence into parts differ. Values without readable
content (a function with its closure, an open file, an object of an extension) have no digest.
"""

from __future__ import annotations

import copy
import enum
import functools
import hashlib
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import torch

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.symbolic.deferred import Categorical
from specverify.intercept.torch.tensors import (
    SymbolicTensor,
    bound_to,
    for_each_outcome,
    in_all,
    look_at,
    numbers_by_outcome,
    only_source,
)

# Content


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
"""Real dtypes that NumPy has as well, so that the content of a tensor is read as a NumPy array."""


_READ = {object, dict, list, tuple, set, frozenset, OrderedDict}
"""Types that are completely described by their items."""


class NoContent(TypeError):  # noqa: N818 - reads as the sentence it is
    """Raised for a value that contains an object whose content cannot be read; the message names its type."""


def digest(value: Any) -> bytes:
    """Return a 16-byte digest of the content of a value. Raises ``NoContent`` if the content cannot be read."""
    parts = list[bytes]()
    try:
        _feed(parts, value, ())
    except RecursionError:
        raise NoContent("a value contains itself in a set, or is too deep to be read") from None
    return hashlib.blake2b(b"".join(parts), digest_size=16).digest()


def _feed(parts: list[bytes], value: Any, inside: tuple[Any, ...]) -> None:
    of: type = type(value)
    kind = _name_of(of)
    if of in _PLAIN:
        _part(parts, kind, value if isinstance(value, bytes) else repr(value).encode())
        return
    if isinstance(value, torch.Tensor):
        _part(parts, kind, _form_of(value.dtype, value.shape, value.device))
        _part(parts, b"bytes", _bytes_of(value))
        return
    for place, around in enumerate(inside):
        if around is value:
            _part(parts, b"again", str(place).encode())
            return
    inside = (*inside, value)
    if isinstance(value, (np.ndarray, np.generic)):
        if isinstance(value, np.ndarray) and type(value) is not np.ndarray:
            raise _no_content(of)
        _part(parts, kind, f"{value.dtype.descr}{value.shape}".encode())
        if value.dtype.hasobject:
            _several(parts, b"objects", value.ravel().tolist(), inside)
        else:
            _part(parts, b"bytes", value.tobytes())
    elif isinstance(value, type):
        _part(parts, b"class", f"{value.__module__}.{value.__qualname__} {id(value)}".encode())
    elif isinstance(value, enum.Enum):
        _part(parts, kind, value.name.encode())
    else:
        _feed_parts(parts, kind, value, inside)


@lru_cache(maxsize=4096)
def _name_of(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


@lru_cache(maxsize=4096)
def _form_of(dtype: torch.dtype, shape: torch.Size, device: torch.device) -> bytes:
    return f"{dtype}{tuple(shape)}{device}".encode()


def _no_content(kind: type) -> NoContent:
    return NoContent(f"the content of a {_name_of(kind).decode()} cannot be read")


def _bytes_of(tensor: torch.Tensor) -> bytes:
    readable = tensor.layout is torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    if not readable or type(tensor) not in (torch.Tensor, torch.nn.Parameter) or vars(tensor):
        raise _no_content(type(tensor))
    if tensor.dtype in _OF_NUMPY and tensor.device.type == "cpu" and not tensor.is_neg():
        return (tensor.detach() if tensor.requires_grad else tensor).numpy().tobytes()
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1).contiguous()
    return plain.view(torch.uint8).numpy().tobytes()


def _feed_parts(parts: list[bytes], kind: bytes, value: Any, inside: tuple[Any, ...]) -> None:
    attributes = getattr(value, "__dict__", None)
    of: type = type(value)
    if isinstance(value, OrderedDict):
        _several(parts, kind, [item for pair in value.items() for item in pair], inside)
    elif isinstance(value, dict):
        names = sorted(value, key=lambda name: (type(name).__qualname__, repr(name)))
        _several(parts, kind, [item for name in names for item in (name, value[name])], inside)
    elif isinstance(value, (list, tuple)):
        _several(parts, kind, [*value], inside)
    elif isinstance(value, (set, frozenset)):
        _several(parts, kind, sorted(digest(item) for item in value), inside)
    elif attributes is None:
        raise _no_content(of)
    if callable(value) or _holds_more(of):
        raise _no_content(of)
    if attributes:
        items = [item for name in sorted(attributes) for item in (name, attributes[name])]
        _several(parts, b"attributes of " + kind, items, inside)


@lru_cache(maxsize=4096)
def _holds_more(kind: type) -> bool:
    """Return whether objects of the type ``kind`` have state besides attributes and items.

    That is so for a C type, and for a type with slots.
    """
    return any(vars(base).get("__slots__") or not _in_python(base) for base in set(kind.__mro__) - _READ)


def _in_python(kind: type) -> bool:
    """Return whether the type ``kind`` was made by a class statement: it has no methods written in C."""
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


def _several(parts: list[bytes], kind: bytes, items: list[Any], inside: tuple[Any, ...]) -> None:
    _part(parts, kind, b"%d" % len(items))
    for item in items:
        _feed(parts, item, inside)


def _part(parts: list[bytes], kind: bytes, content: bytes) -> None:
    parts.append(b"%d %b %d " % (len(kind), kind, len(content)))
    parts.append(content)


# Memo


class _Pass(NamedTuple):
    kind: Any
    output: dict[str, Any]
    cache: Any
    """The attributes of the input cache, or the cache that the pass created."""
    caches: bool
    """Whether the cache is to be added to ``output``."""


class Passes(NamedTuple):
    """A declaration by an engine of what the forward pass of its model depends on, besides the inputs.

    ``cache`` is the name of the argument that is the cache. ``beside(model)`` returns further state of the model.
    """

    cache: str
    """Name of the cache argument, to which the pass writes, and of the cache in its output."""
    beside: Callable[[Any], Any] = lambda model: None
    """``beside(model)``: other mutable state of the model on which its passes depend, such as the number of layers run.
    """


class Memory(NamedTuple):
    """The cached forward passes.

    ``passes`` maps the digest of all inputs to the result of the pass. ``used[0]`` is how often a cached pass was used.
    A pass for all outcomes of an unread draw is cached too; its inputs are those of every outcome.
    """

    passes: dict[bytes, _Pass]
    used: list[int]
    """``used[0]``: number of passes that were answered from the cache."""


@contextmanager
def remembered(model: Any, memory: Memory, passes: Passes) -> Iterator[None]:
    """Context manager: while it is open, forward passes of ``model`` that are in ``memory`` are not computed again.

    Other passes are computed, and added to ``memory`` where possible. ``passes`` declares the values on which a pass
    depends.
    """
    forward = model.forward
    signature = inspect.signature(forward)

    def passed(*args: Any, **kwargs: Any) -> Any:
        return _passed(forward, memory, passes.cache, passes.beside(model), args, kwargs)

    def passed_for_each(source: Categorical, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _passed_for_each(source, passed, memory, passes.cache, passes.beside(model), args, kwargs)

    @functools.wraps(forward)  # the library reads the signature to know what it may pass
    def recall(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _by_name(signature, args, kwargs)
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - a model in eval mode draws nothing
            if passes.cache in kwargs:
                kwargs[passes.cache] = _settled(kwargs[passes.cache])
            given = (*args, *kwargs.values())
            source = only_source(given) if _several_positions(given) else None
            if source is not None:
                with suppress(RuleDeclined):
                    return passed_for_each(source, args, kwargs)
            return passed(*map(look_at, args), **{name: look_at(value) for name, value in kwargs.items()})

    recall.__signature__ = signature  # type: ignore[attr-defined]  # worked out once, not at every look
    model.forward = recall
    try:
        yield
    finally:
        del model.forward


def _by_name(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return ``args`` and ``kwargs`` in which as many arguments as possible are passed by name.

    ``signature`` is that of the forward pass. The argument that is the cache is then found however the program passes
    it.
    """
    kinds = takewhile(lambda one: one.kind is one.POSITIONAL_OR_KEYWORD, signature.parameters.values())
    named = dict(zip((one.name for one in kinds), args, strict=False))
    return (args, kwargs) if named.keys() & kwargs.keys() else (args[len(named) :], {**named, **kwargs})


def _passed(
    forward: Callable[..., Any],
    memory: Memory,
    name: str,
    beside: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return the output of a forward pass, from ``memory`` if the same pass was computed before.

    ``args`` and ``kwargs`` are the arguments of the pass. The model's cache, the argument called ``name``, is updated
    in either case. ``beside`` is further state of the model on which the pass depends.
    """
    cache = kwargs.get(name)
    try:
        key = digest((args, kwargs, beside))
    except NoContent:
        return forward(*args, **kwargs)
    if key not in memory.passes:
        output = forward(*args, **kwargs)
        if _elsewhere(output, name, cache):
            return output
        also = {field: value for field, value in output.items() if field != name}
        left = output.get(name) if cache is None else _state(cache)
        memory.passes[key] = _Pass(type(output), _copied(also), _copied(left), name in output)
        return output
    memory.used[0] += 1
    kept = memory.passes[key]
    if cache is None:
        cache = _copied(kept.cache)
    else:
        cache.__dict__.update(_copied(kept.cache))
    return kept.kind(**_copied(kept.output), **({name: cache} if kept.caches else {}))


def _passed_for_each(
    source: Categorical,
    passed: Callable[..., Any],
    memory: Memory,
    name: str,
    beside: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Return one output of a forward pass for all outcomes of ``source``, an unread draw, and update the cache.

    Numbers that differ between outcomes are symbolic. ``passed`` computes the pass for one outcome, with the arguments
    ``args`` and ``kwargs``; the result for all outcomes is taken from ``memory`` if it was computed before. ``name`` is
    the name of the argument that is the cache, and ``beside`` further state of the model.
    """
    cache = kwargs.get(name)

    def one(*args: Any, **kwargs: Any) -> Any:
        if cache is None:
            output = passed(*args, **kwargs)
            return type(output), dict(output), None
        own = _copied(cache)
        output = passed(*args, **kwargs, **{name: own})
        if _elsewhere(output, name, own):
            raise RuleDeclined("the output holds another cache than the one that was passed in")
        return type(output), {field: None if value is own else value for field, value in output.items()}, _state(own)

    others = {field: value for field, value in kwargs.items() if cache is None or field != name}
    outcomes = [outcome for outcome, _ in source.outcomes()]
    given = in_all(partial(numbers_by_outcome, source, outcomes), [args, [*others.values()]])
    try:
        key = digest((outcomes, given, [*others], cache, beside))
    except NoContent:
        key = None
    if key in memory.passes:
        memory.used[0] += 1
        kept, copied = memory.passes[key], partial(_copied, tensor=partial(bound_to, source))
        kind, output, state = kept.kind, copied(kept.output), copied(kept.cache)
    else:
        kind, output, state = for_each_outcome(source, one, args, others)
        if key is not None:
            copied = partial(_copied, tensor=partial(bound_to, None))
            memory.passes[key] = _Pass(kind, copied(output), copied(state), caches=False)
    if cache is not None:
        cache.__dict__.update(state)
        output.update({field: cache for field in output if field == name})
    return kind(**output)


def _elsewhere(output: Any, name: str, cache: Any) -> bool:
    """Return whether the ``output`` of a pass contains another cache object than the one that the pass received.

    ``cache`` is the received cache, or None: the result is then False. ``name`` is the name of the cache in the output.
    """
    return cache is not None and output.get(name, cache) is not cache


def _state(cache: Any) -> dict[str, Any]:
    return dict(cache.__dict__)


def _several_positions(given: Sequence[Any]) -> bool:
    """Return whether one of the arguments ``given`` is a symbolic tensor with several elements.

    Only then can some elements depend on an unread draw while others do not.
    """
    return any(isinstance(value, SymbolicTensor) and value.numel() > 1 for value in given)


def _settled(value: Any) -> Any:
    """Draw every symbolic element inside ``value``, a cache; return it with ordinary tensors, in place if possible."""
    if isinstance(value, torch.Tensor):
        return look_at(value)
    if isinstance(value, dict):
        value.update({name: _settled(item) for name, item in value.items()})
    elif type(value) is list:
        value[:] = map(_settled, value)
    elif type(value) is tuple:
        return tuple(map(_settled, value))
    elif hasattr(value, "__dict__") and not callable(value):
        _settled(value.__dict__)
    return value


def _copied(value: Any, tensor: Callable[[torch.Tensor], torch.Tensor] = torch.Tensor.clone) -> Any:
    """Return a copy of ``value`` that shares no tensor with it, so that the caller may write into the copy.

    ``tensor`` copies a tensor.
    """
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, dict):
        return {name: _copied(item, tensor) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_copied(item, tensor) for item in value)
    if hasattr(value, "__dict__") and not callable(value):
        made = copy.copy(value)
        made.__dict__.update(_copied(value.__dict__, tensor))
        return made
    return value
