"""Calls of torch functions whose rule is applied directly, without torch's dispatcher.

The dispatcher would pass such a call to ``SymbolicTensor.__torch_dispatch__`` with the same arguments. Its first call
with a tensor subclass imports ``torch.distributed.tensor``, which takes longer than a quick check of a verifier.

A rule is applied directly if the call determines one overload of the ``aten`` operation of that name, and torch would
compute the overload without decomposing it. The overload returns one new tensor and writes to no argument. Conversions
such as ``tensor.int()`` are included. All other calls go to the dispatcher.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from specverify.intercept.refusals import Declined
from specverify.intercept.torch.generators import only_drawing_operations
from specverify.intercept.torch.tensors import HANDLERS, SymbolicTensor, in_all, is_settled, look_at

_NOT_SYMBOLIC = Declined("no argument is a symbolic tensor")
_NOT_DIRECT = Declined("the call is left to torch's dispatcher")
_TENSORS = frozenset({torch.Tensor, SymbolicTensor})
_LISTS = frozenset({list, tuple})
_CONVERSIONS = {
    torch.Tensor.int: torch.int32,
    torch.Tensor.long: torch.int64,
    torch.Tensor.bool: torch.bool,
    torch.Tensor.float: torch.float32,
    torch.Tensor.double: torch.float64,
}
"""Tensor method without arguments -> dtype of its result."""
_ACCEPTED = {
    torch.Tensor: {"Tensor"},
    SymbolicTensor: {"Tensor"},
    list: {"List[Tensor]"},
    int: {"int", "number"},
    float: {"float", "number"},
    bool: {"bool"},
}
"""Type of an argument -> types of the parameters of ``aten`` operations that accept it; ``list`` is one of tensors."""


def applied_directly(func: Any, args: tuple[Any, ...]) -> Any:
    """Return the result of the call ``func(*args)`` of a torch function with symbolic tensors, by the rule of ``func``.

    Returns ``Declined`` in these cases: no argument is a symbolic tensor; the call needs the dispatcher; or the rule
    does not apply.
    """
    kinds = tuple(map(type, args))
    if not _LISTS.isdisjoint(kinds):
        kinds = tuple(map(_kind, args))
        if not any(type(value) in _LISTS and SymbolicTensor in map(type, value) for value in args):
            return _NOT_SYMBOLIC
    elif SymbolicTensor not in kinds:
        return _NOT_SYMBOLIC
    rule = _rule(func, kinds)
    if rule is None or _dispatcher_has_more_to_do(args):
        return _NOT_DIRECT
    if func in _CONVERSIONS and args[0].dtype is _CONVERSIONS[func]:  # torch returns the tensor itself
        return _NOT_DIRECT
    if all(is_settled(value, shares=False) for value in args):
        return func(*in_all(look_at, args))
    return rule(*args)


def _kind(value: Any) -> type:
    """Return the type of an argument: ``list`` for a list or tuple of tensors, ``object`` for any other container."""
    if type(value) not in _LISTS:
        return type(value)
    return list if value and _TENSORS.issuperset(map(type, value)) else object


@cache
def _rule(func: Any, kinds: tuple[type, ...]) -> Callable[..., Any] | None:
    """Return the rule to apply directly to a call of ``func`` with positional arguments of types ``kinds``, or None."""
    if func in _CONVERSIONS:
        convert = HANDLERS[torch.ops.aten._to_copy]  # noqa: SLF001 - the operation by which torch converts
        return partial(convert, dtype=_CONVERSIONS[func]) if len(kinds) == 1 else None
    name = getattr(func, "__name__", "")
    if func is not getattr(torch.Tensor, name, None) and func is not getattr(torch, name, None):
        return None
    packet = getattr(torch.ops.aten, name, None)
    handler = None if packet is None else HANDLERS.get(packet)
    if packet is None or handler is None:
        return None
    fitting = [schema for schema in packet._schemas.values() if _fits(schema, kinds)]  # noqa: SLF001 - nothing public
    return handler if fitting and all(map(_makes_one_tensor, fitting)) else None


def _fits(schema: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether positional arguments of types ``kinds`` fit the parameters of ``schema``."""
    positional = [item for item in schema.arguments if not item.kwarg_only]
    rest = [*positional[len(kinds) :], *(item for item in schema.arguments if item.kwarg_only)]
    if len(kinds) > len(positional) or not all(item.has_default_value() for item in rest):
        return False
    given = (str(item.type).removeprefix("Optional[").removesuffix("]") if str(item.type).startswith("Optional[")
             else str(item.type) for item in positional)  # fmt: skip
    return all(name in _ACCEPTED.get(kind, ()) for kind, name in zip(kinds, given, strict=False))


def _makes_one_tensor(schema: Any) -> bool:
    """Return whether an operation returns one new tensor, writes to no argument and is not composed of others."""
    full = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
    if any(item.alias_info is not None for item in (*schema.arguments, *schema.returns)):
        return False
    if [str(item.type) for item in schema.returns] != ["Tensor"]:  # torch names the parts of several results
        return False
    known = torch._C._dispatch_has_kernel(full)  # noqa: SLF001 - nothing public
    composite = "CompositeImplicitAutograd"
    return known and not torch._C._dispatch_has_kernel_for_dispatch_key(full, composite)  # noqa: SLF001 - likewise


def _dispatcher_has_more_to_do(args: Any) -> bool:
    """Return whether torch would do more with a call than pass it to ``__torch_dispatch__``.

    This is so for gradients, in a dispatch mode, in a transform of ``torch.func``, in autocast, and in a trace.
    """
    library = torch._C  # noqa: SLF001 - nothing public
    if (
        (library._len_torch_dispatch_stack() and not only_drawing_operations())  # noqa: SLF001 - likewise
        or library._functorch.peek_interpreter_stack() is not None  # noqa: SLF001 - likewise
        or library._is_any_autocast_enabled()  # noqa: SLF001 - likewise
        or library._get_tracing_state() is not None  # noqa: SLF001 - likewise
    ):
        return True
    return torch.is_grad_enabled() and _needs_gradient(args)


def _needs_gradient(value: Any) -> bool:
    if type(value) in _LISTS:
        return any(map(_needs_gradient, value))
    return isinstance(value, torch.Tensor) and value.requires_grad
