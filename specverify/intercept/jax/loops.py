"""Loops and conditions of JAX, followed as Python would: a condition is looked at where the program branches on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy import empty  # by name: inside a block NumPy has another

from specverify.intercept.jax.lazy import Lazy, collapsed, concrete, elements_of, is_settled
from specverify.intercept.unknowns.deferred import known, single


class Follow(NamedTuple):
    """How a traced function is followed, and how an open array is made."""

    called: Callable[[Any, Sequence[Any]], list[Any]]
    made: Callable[[Any, Any], Lazy]


def _conditional(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    branches = parameters["branches"]
    which = min(max(int(_looked_at(operands[0])), 0), len(branches) - 1)
    return follow.called(branches[which], operands[1:])


def _looked_at(operand: Any) -> Any:
    return known(operand.elements.item()) if isinstance(operand, Lazy) else np.asarray(operand).item()


def _while(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    of_condition, of_body = operands[:first], operands[first : first + second]
    carried = operands[first + second :]
    while bool(_looked_at(follow.called(parameters["cond_jaxpr"], [*of_condition, *carried])[0])):
        carried = follow.called(parameters["body_jaxpr"], [*of_body, *carried])
    return carried


def _scan(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    consts, carry, length = parameters["num_consts"], parameters["num_carry"], parameters["length"]
    fixed, carried, rows = operands[:consts], operands[consts : consts + carry], operands[consts + carry :]
    order = range(length)[::-1] if parameters["reverse"] else range(length)
    made: dict[int, list[Any]] = {}
    for step in order:
        found = follow.called(parameters["jaxpr"], [*fixed, *carried, *(_row(follow, each, step) for each in rows)])
        carried, made[step] = found[:carry], found[carry:]
    columns = [
        [made[step][place] for step in range(length)] for place in range(len(parameters["jaxpr"].out_avals) - carry)
    ]
    avals = parameters["jaxpr"].out_avals[carry:]
    return [*carried, *(_stacked(follow, column, aval) for column, aval in zip(columns, avals, strict=True))]


def _row(follow: Follow, operand: Any, step: int) -> Any:
    if isinstance(operand, Lazy):
        row = operand.elements[step]
        return collapsed([follow.made(row if operand.ndim > 1 else single(row), operand.aval)])[0]
    return jax.lax.index_in_dim(operand, step, keepdims=False)


def _stacked(follow: Follow, column: list[Any], aval: Any) -> Any:
    if not column:
        return jax.numpy.zeros((0, *aval.shape), aval.dtype)
    if all(map(is_settled, column)):
        return jax.numpy.stack([concrete(each) for each in column])
    found = empty((len(column), *aval.shape), dtype=object)
    for place, each in enumerate(column):
        found[place] = elements_of(each) if aval.shape else elements_of(each).item()
    return follow.made(found, aval)


LOOPS: dict[str, Callable[[Follow, list[Any], dict[str, Any]], list[Any]]] = {
    "cond": _conditional,
    "while": _while,
    "scan": _scan,
}
