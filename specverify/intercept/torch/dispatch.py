"""What is known of an operation of torch: its handler, and what it does to the storage of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload

from specverify.intercept.run import PROCESS


class Known(NamedTuple):
    """What is known of an operation."""

    operation: OpOverload
    handler: Callable[..., Any] | None
    """What answers it on lazy tensors."""
    shares: bool
    """Whether it writes to an argument, or returns a view of one."""
    writes: bool
    """Whether it writes to an argument: in place, or into ``out``."""
    reshapes: bool
    """Whether it changes the shape of its argument."""


HANDLERS: dict[Any, Callable[..., Any]] = {}
"""What answers operations of torch on lazy tensors. ``handlers`` fills it in as the package is imported.

Each is called with the arguments of the operation, and returns ``Declined`` for what it does not answer.
"""


def known_operation(operation: OpOverload) -> Known:
    """Return what is known of an operation, by its schema and by ``HANDLERS``."""
    result: Known | None = PROCESS.operations.get(id(operation))  # its hash is made in Python
    if result is None:
        schema = operation._schema  # noqa: SLF001
        written = [item.alias_info for item in schema.arguments]
        shares = any(item.alias_info is not None for item in (*schema.arguments, *schema.returns))
        writes = any(alias is not None and alias.is_write for alias in written)
        reshapes = torch.Tag.inplace_view in operation.tags
        result = Known(operation, HANDLERS.get(operation.overloadpacket), shares, writes, reshapes)
        PROCESS.operations[id(operation)] = result
    return result
