"""A JAX array whose elements may be symbolic.

To JAX it is a tracer: it has a shape and a dtype, and ``calls`` evaluates every primitive applied to it. It holds an
object array of elements. An element is a number, a symbolic number, or the outcome of a categorical draw that is made
when the outcome is read. Converting the array (``bool``, ``int``, ``np.asarray``) draws these outcomes; a continuous
symbolic number becomes a symbolic float.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax._src import core
from jax._src.interpreters import pxla
from jax.sharding import SingleDeviceSharding

from specverify.intercept.cpython import patches
from specverify.intercept.cpython.patches import array, asarray, empty
from specverify.intercept.run import PROCESS
from specverify.intercept.symbolic.arrays import SymbolicArray
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, is_whole
from specverify.intercept.symbolic.deferred import is_open, known
from specverify.intercept.symbolic.numbers import wrapped
from specverify.intercept.symbolic.uniform import refusal


class SymbolicTracer(core.Tracer):  # type: ignore[misc]  # the types of JAX are not checked
    """A JAX tracer that holds symbolic elements.

    ``elements`` is an object array in the shape of the array. An element is a number, a symbolic number (``Symbolic``),
    or an outcome that is drawn when it is read (``Deferred``).
    """

    def __init__(self, trace: Any, aval: Any, elements: np.ndarray[Any, Any]) -> None:
        """Wrap ``elements`` as a tracer of ``trace``; ``aval`` is JAX's description of the shape and the dtype."""
        super().__init__(trace, aval)
        self.elements = elements

    def to_concrete_value(self) -> Any:
        """Return None, so that JAX does not read values; ``bool``, ``int`` and similar conversions draw them."""
        return None

    def held(self) -> np.ndarray[Any, Any]:
        """Return the object array of the elements."""
        return self.elements

    def item(self, *place: Any) -> Any:
        """Return the element at the index ``place``: a number or a symbolic float.

        An outcome not yet drawn is drawn.
        """
        element = self.elements.item(*place)
        return wrapped(element) if isinstance(element, SYMBOLIC) else _number(known(element), self.dtype)

    def tolist(self) -> Any:
        """Return nested lists of numbers and symbolic floats; outcomes not yet drawn are drawn now."""
        return self._looked_at().tolist()

    def reshape(self, *shape: Any, **named: Any) -> Any:
        """Return the elements in another shape without drawing any; this also works after interception has ended."""
        if named:
            return jax.numpy.reshape(self, *shape, **named)
        result = self.elements.reshape(*shape)
        return SymbolicTracer(self._trace, core.ShapedArray(result.shape, self.dtype, self.aval.weak_type), result)

    def _looked_at(self) -> np.ndarray[Any, Any]:
        result = empty(self.elements.shape, dtype=object)
        for index in np.ndindex(result.shape):
            element = self.elements[index]
            result[index] = wrapped(element) if isinstance(element, SYMBOLIC) else _number(known(element), self.dtype)
        return result

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if holds_unknown(self):
            return self._looked_at().view(SymbolicArray)
        return asarray(concrete(self), dtype=dtype)

    def __bool__(self) -> bool:
        core.check_bool_conversion(self)
        return bool(self.item())

    def __int__(self) -> int:
        core.check_scalar_conversion(self)
        return int(self.item())

    def __index__(self) -> int:
        core.check_integer_conversion(self)
        return int(self.item())

    def __float__(self) -> float:
        core.check_scalar_conversion(self)
        if isinstance(self.elements.item(), SYMBOLIC):
            patches.met()
            raise refusal(
                "value-needed", "__float__ needs the value of a random number, which has none: call float as float(u)"
            )
        return float(self.item())

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.item(), digits)

    def __repr__(self) -> str:
        return f"SymbolicTracer(shape={tuple(self.shape)}, dtype={self.dtype})"

    __str__ = __repr__

    def __format__(self, shape: str) -> str:
        return format(self.item(), shape) if not self.elements.ndim and not holds_unknown(self) else repr(self)

    def block_until_ready(self) -> SymbolicTracer:
        """Return the array itself; there is no computation to wait for."""
        return self


def _number(value: Any, dtype: Any) -> Any:
    return bool(value) if dtype == np.bool_ else value


def elements_of(value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of ``value``, an array or a number, as an object array."""
    if isinstance(value, SymbolicTracer):
        return value.elements
    result = asarray(value)
    if result.dtype.kind not in "bif" and result.dtype != np.dtype("uint32"):
        result = result.astype(np.float64) if result.dtype.kind == "V" else result
    objects = empty(result.shape, dtype=object)
    objects[...] = array(result.tolist(), dtype=object).reshape(result.shape)
    return objects


def is_settled(value: Any) -> bool:
    """Return whether all elements of ``value`` are plain numbers: none is symbolic or an outcome not yet drawn."""
    return not isinstance(value, SymbolicTracer) or not any(map(is_open, value.elements.flat))


def holds_unknown(*operands: Any) -> bool:
    """Return whether one of ``operands`` contains a symbolic number."""
    return any(
        isinstance(element, SYMBOLIC)
        for operand in operands
        if isinstance(operand, SymbolicTracer)
        for element in operand.elements.flat
    )


def has_no_value(*operands: Any) -> bool:
    """Return whether one of ``operands`` contains a symbolic number that is no integer.

    Interception cannot turn such a number into a plain number; it can draw a symbolic integer.
    """
    return any(
        isinstance(element, SYMBOLIC) and not (isinstance(element, Continuous) and is_whole(element))
        for operand in operands
        if isinstance(operand, SymbolicTracer)
        for element in operand.elements.flat
    )


def concrete(value: Any) -> Any:
    """Return ``value``, an operand, as a JAX array of plain numbers, drawing outcomes if needed.

    Symbolic integers are drawn too. Other symbolic numbers are refused.
    """
    if not isinstance(value, SymbolicTracer):
        return value
    numbers = array([known(element) for element in value.elements.flat], dtype=value.dtype)
    return constant(numbers.reshape(value.elements.shape), weak_type=value.aval.weak_type)


def key_data(array: Any) -> Any:
    """Return the words of ``array``, a JAX array of keys, as a JAX array; an array of numbers is returned itself."""
    return getattr(array, "_base_array", array)


LARGE = 4096
"""An array with more elements is not kept."""
_MOST_CONSTANTS = 20_000


def constant(numbers: np.ndarray[Any, Any], *, weak_type: bool = False) -> Any:
    """Return the JAX array of ``numbers``, in the dtype of ``numbers``; with ``weak_type`` this dtype is weak.

    Arrays of JAX are immutable, so the same array is returned again for the same numbers, unless there are many.
    """
    settings = jax.config.jax_enable_x64, jax.config.jax_default_device
    content = None if numbers.size > LARGE else (settings, numbers.dtype, weak_type, numbers.shape, numbers.tobytes())
    result = PROCESS.jax.constants.get(content)
    if result is not None and not result.is_deleted():
        return result
    result = made_array(numbers, weak_type=weak_type)
    if content is not None:
        if len(PROCESS.jax.constants) >= _MOST_CONSTANTS:
            PROCESS.jax.constants.clear()
        PROCESS.jax.constants[content] = result
    return result


def made_array(numbers: np.ndarray[Any, Any], *, weak_type: bool) -> Any:
    """Return a new JAX array of ``numbers``, in the dtype of ``numbers``; with ``weak_type`` this dtype is weak."""
    aval = core.ShapedArray(numbers.shape, numbers.dtype, weak_type=weak_type)
    device = pxla.get_default_device()
    return _put(numbers, aval, _sharding(device), committed=False)


def copied(array: Any) -> Any:
    """Return a copy of ``array``, a JAX array of numbers; one on several devices is returned itself.

    JAX shares memory with the array of NumPy from which an array was made, so that a program may change an array of JAX
    although it is immutable. What is kept beyond a call must be a copy.
    """
    if len(array.sharding.device_set) > 1:
        return array
    return _put(asarray(array), array.aval, array.sharding, committed=array.committed)


def _put(numbers: np.ndarray[Any, Any], aval: Any, sharding: Any, *, committed: bool) -> Any:
    """Return a JAX array of a copy of ``numbers``, described by ``aval``, on the one device of ``sharding``."""
    (device,) = sharding.device_set
    own = array(numbers, copy=True, order="C").reshape(numbers.shape)
    return pxla.batched_device_put(aval, sharding, [own], [device], committed=committed)


_sharding = cache(SingleDeviceSharding)


def collapsed(values: Sequence[Any]) -> list[Any]:
    """Return ``values``, with each array that has no symbolic element converted to an ordinary JAX array."""
    return [concrete(value) if isinstance(value, SymbolicTracer) and is_settled(value) else value for value in values]
