"""Which of torch's operations draw, by its own account: those with the tag ``nondeterministic_seeded``.

The list is read off the torch that is installed, so an operation that a later version brings is on it without being
named here. It serves twice: a Python function of that name is looked after when it is called (``calls``), and
``drawing_operations`` tells, at the level of the dispatcher and in whatever way it was reached, which of them ran. What
an operation does to the storage of its arguments stands in its schema as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._python_dispatch import TorchDispatchMode

from specverify.intercept.caller import caller
from specverify.intercept.run import is_aside
from specverify.intercept.torch.streams import advancing, own_generators


@cache
def drawing_names() -> frozenset[str]:
    """Return the names of the operations of torch itself that draw, without their overloads."""
    result = set()
    for full in torch._C._dispatch_get_all_op_names():  # noqa: SLF001 - there is no public list
        library, _, name = full.partition("::")
        base, _, overload = name.partition(".")
        if library == "aten" and torch.Tag.nondeterministic_seeded in _operation(base, overload).tags:
            result.add(base)
    return frozenset(result)


def _operation(base: str, overload: str) -> Any:
    return getattr(getattr(torch.ops.aten, base), overload or "default")


@cache
def drawing_functions() -> frozenset[Any]:
    """Return the Python functions of those names: of torch, its tensors and ``torch.nn.functional``."""
    places = (torch, torch.Tensor, torch.nn.functional, torch._VF, torch._C._nn)  # noqa: SLF001
    result = {getattr(place, name, None) for place in places for name in drawing_names()}
    return frozenset(function for function in result if callable(function))


def draws(function: Any) -> bool:
    """Return whether a function may draw: one of those, or an operation called by itself, as ``torch.ops.aten.rand``.

    Functions written in Python may as well. Torch tells of them by name, and of nothing that they call.
    """
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return _operation_draws(function)
    return (isinstance(function, FunctionType) and function not in _DRAW_NOTHING) or function in drawing_functions()


_DRAW_NOTHING: set[Any] = {
    torch.Tensor.__len__,
    torch.Tensor.__iter__,
    torch.Tensor.__reversed__,
    torch.Tensor.__contains__,
}
"""Functions of torch itself that are written in Python and make no random number."""


@cache
def _operation_draws(operation: Any) -> bool:
    if isinstance(operation, OpOverload):
        return torch.Tag.nondeterministic_seeded in operation.tags
    return any(_operation_draws(getattr(operation, name)) for name in operation.overloads())


class _Told(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[tuple[str, str]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here: keeping the compiler away would begin with loading it, for seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or advancing() or is_aside():
            return func(*args, **kwargs)
        drawn_from = [*own_generators(), *filter(_is_generator, (*args, *kwargs.values()))]
        before = [generator.get_state() for generator in drawn_from]
        result = func(*args, **kwargs)
        if any(not generator.get_state().equal(state) for generator, state in zip(drawn_from, before, strict=True)):
            self.seen.append((str(func), caller()))
        return result


def _is_generator(value: Any) -> bool:
    return isinstance(value, torch.Generator)


@contextmanager
def drawing_operations() -> Iterator[list[tuple[str, str]]]:
    """Yield a list that grows by (operation, file and line) for every one that runs inside the block unanswered."""
    told = _Told()
    with told:
        yield told.seen
