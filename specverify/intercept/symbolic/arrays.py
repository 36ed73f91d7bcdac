"""NumPy arrays with symbolic random numbers as elements, and arrays that stand for very long noise vectors.

Element-wise operations apply the rules of ``primitives`` to each element. Sorting, argmax and lookups take and return
object arrays of numbers and symbolic numbers. In an array of very many random numbers, every element of the memory is
one object that refuses all operations. So code that reads the memory without a rule is refused, and never computes with
wrong values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import asarray, methods_replaced
from specverify.intercept.refusals import Declined, NeedsValue, RuleDeclined
from specverify.intercept.symbolic import rows
from specverify.intercept.symbolic.algebra import check_not_equal, narrowed
from specverify.intercept.symbolic.continuous import Continuous, Symbolic
from specverify.intercept.symbolic.deferred import known, number
from specverify.intercept.symbolic.large import MANY, at_large_now, goes_in_arrays, large, lookup
from specverify.intercept.symbolic.numbers import (
    SymbolicFloat,
    meets,
    of_operands,
    opened,
    refusing,
    with_foreign_line,
    wrapped,
)
from specverify.intercept.symbolic.primitives import (
    COMPARISONS,
    ELEMENTWISE,
    PRIMITIVES,
    ROWS,
    Family,
    Result,
    applied_to_many,
    with_rule,
)
from specverify.intercept.symbolic.rows import Ask
from specverify.intercept.symbolic.uniform import refusal
from specverify.intercept.symbolic.vectors import Many
from specverify.laws import rounding

# Orders and lookups


def plain(value: Any) -> Any:
    """Return a NumPy subclass as a plain array; any other ``value`` unchanged."""
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value


def as_objects(value: Any) -> Any:
    """Return ``value`` as an object array."""
    return np.asarray(plain(value), dtype=object)


_ASK = Ask()


def _reduced(name: str, array: Any, axis: Any, keepdims: Any) -> Any:
    """Return the reduction ``name`` (a row of the table of primitives) of the elements of ``array`` along ``axis``.

    With ``axis`` None all elements are reduced to one. ``keepdims`` keeps the reduced axis, with length 1.
    """
    axes = axis if axis is None or isinstance(axis, tuple) else (axis,)
    rule: Any = PRIMITIVES[name].scalar
    result = rows.reduced(lambda row: _forced(rule, row, _ASK), _elements_of(array), axes, keepdims=keepdims is True)
    return (result.astype(np.int64) if PRIMITIVES[name].result is Result.PLACES else result)[()]


def _elements_of(array: Any) -> Any:
    """Return the elements of an array as an object array of symbolic numbers and floats."""
    return rows.each(lambda each: opened(each) if isinstance(each, SymbolicFloat) else float(each), as_objects(array))


def _forced(rule: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Return the result of ``rule(*args, **named)`` as an object that foreign code can use as a Python number.

    If the result is the outcome of a draw that was not made yet, the draw is made now. If the result is a symbolic
    number, it is wrapped in a ``SymbolicFloat``.
    """
    return wrapped(with_foreign_line(lambda: number(rule(*args, **named))))


def place_of_extreme(name: str, array: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """Return the indices of the largest or smallest elements of ``array`` along ``axis``.

    ``name`` is ``argmax`` or ``argmin`` of NumPy; the other parameters are those of that function.
    """
    result = plain(np.asanyarray(array))
    if result.dtype != object or out is not None:
        return getattr(np, name)(result, axis, out, keepdims=keepdims is True)
    return _reduced(name, result, axis, keepdims)


def best(name: str, array: Any, axis: Any, keepdims: Any, **more: Any) -> Any:
    """Return the largest (``name`` "max") or smallest ("min") elements of ``array`` along ``axis``, still symbolic.

    ``keepdims`` keeps the axis, with length 1. ``more`` are further arguments of the NumPy call; raises ``NeedsValue``
    if there are any.
    """
    more = {name: value for name, value in more.items() if value not in (None, np._NoValue)}  # noqa: SLF001
    if more:
        raise refusal("arrays-not-followed", f"the maximum of random numbers is requested with {', '.join(more)}")
    return _reduced(name, array, axis, keepdims)


def running(name: str, array: Any, axis: Any) -> Any:
    """Return the cumulative maximum (``name`` "max") or minimum ("min") of ``array`` along ``axis``."""
    rule: Any = PRIMITIVES[name].scalar
    return rows.scanned(lambda row: _forced(rule, row, _ASK), _elements_of(array), axis)


def argsorted(array: Any, axis: Any = -1, *, first: int | None = None) -> Any:
    """Return the indices that sort the array along an axis.

    Only the indices of the ``first`` smallest elements are drawn (None: of all); the others follow in any order.
    """

    def order(row: list[Any]) -> list[list[int]]:
        length = len(row) if first is None else min(first, len(row))
        _, ranked = with_foreign_line(rows.ordered, row, _ASK, range(length), largest=False)
        places = [int(with_foreign_line(known, place)) for place in ranked]
        return [[*places, *(at for at in range(len(row)) if at not in places)]]

    return _along(order, array, axis).astype(np.int64)


def in_order(array: Any, axis: Any = -1, *_: Any, **__: Any) -> Any:
    """Return the elements of ``array`` sorted along an axis, as symbolic numbers, without drawing anything."""

    def values(row: list[Any]) -> list[list[Any]]:
        ranked, _ = with_foreign_line(rows.ordered, row, _ASK, range(len(row)), largest=False)
        return [[_forced(lambda each: each, value) for value in ranked]]

    return _along(values, array, axis)


def _along(rule: Callable[..., Any], array: Any, axis: Any) -> Any:
    elements = _elements_of(array)
    return rows.along(rule, elements.reshape(-1) if axis is None else elements, -1 if axis is None else axis)[0]


def partitioned(a: Any, kth: Any, axis: Any = -1, **_: Any) -> Any:
    """Return indices that sort the array along ``axis`` up to rank ``kth``: a valid result of ``np.argpartition``."""
    places = [place % np.shape(a)[axis] for place in np.atleast_1d(kth).tolist()]
    return argsorted(a, axis, first=max(places) + 1)


def searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return the insertion indices of the values ``v`` in the sorted array ``a``, as ``np.searchsorted`` does.

    ``side`` and ``sorter`` are the parameters of that function.
    """
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [_looked_up(bounds, value, side) for value in as_objects(v).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


def digitized(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the index of the bin of each number in ``x``, as ``np.digitize`` does; ``bins`` may decrease.

    ``right`` is the parameter of that function: whether a bin contains its right end.
    """
    edges = np.asarray(bins).tolist()
    if len(edges) > 1 and edges[0] > edges[-1]:
        return len(edges) - searched(edges[::-1], x, "left" if right else "right")
    return searched(edges, x, "left" if right else "right")


def _looked_up(bounds: Sequence[Any], value: Any, side: str) -> int:
    """Return the insertion index of ``value``, plain or symbolic, in the sorted plain ``bounds``.

    ``side`` is "left" or "right", as in ``np.searchsorted``.
    """
    if any(isinstance(bound, SymbolicFloat) for bound in bounds):
        raise refusal("arrays-not-followed", "a number is looked up among random ones")
    if isinstance(value, SymbolicFloat) and large(len(bounds)) and goes_in_arrays(value.unknown):
        return int(with_foreign_line(lookup, value.unknown, bounds).value())
    return int(with_foreign_line(lambda: known(rows.looked_up(bounds, opened(value), _ASK, right=side == "right"))))


# Arrays of symbolic numbers


class SymbolicArray(np.ndarray[Any, Any]):
    """A NumPy object array of plain and symbolic numbers; results without symbolic numbers are ordinary arrays.

    The methods have the parameters of NumPy's methods.
    """

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply ``ufunc`` to every element of ``inputs``; ``method`` is the method of the ufunc, such as ``__call__``.

        Returns ``NotImplemented`` if the result is to be written into an array of another class (``out``), so that
        NumPy calls that class.
        """
        if any(type(target) not in {np.ndarray, SymbolicArray} for target in kwargs.get("out", ())):
            return Declined("an array of another kind is written to").for_python
        return on_elements(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the NumPy function ``func``: by a rule if it compares elements (sort, argmax), else NumPy's own.

        The parameters are those that NumPy passes.
        """
        try:
            if func in _FUNCTIONS:
                return _FUNCTIONS[func](*args, **kwargs)
            return _lazy(super().__array_function__(func, types, args, kwargs))
        except NeedsValue as refused:
            raise refused.during(f"np.{func.__name__}", caller()) from None

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the largest element along ``axis`` (None: of all). It is random: drawn by its law."""
        return place_of_extreme("argmax", self, axis, out, keepdims=keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the smallest element along ``axis`` (None: of all). It is random: drawn by its law."""
        return place_of_extreme("argmin", self, axis, out, keepdims=keepdims)

    def max(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the largest element along an axis as a symbolic number."""
        return _lazy(best("max", self, axis, keepdims, out=out, **more))

    def min(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the smallest element along an axis as a symbolic number."""
        return _lazy(best("min", self, axis, keepdims, out=out, **more))

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """Return the indices that sort the array along ``axis``. They are random: drawn by their joint law."""
        return argsorted(self, axis)

    def sort(self, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Sort the elements along ``axis`` in place, as symbolic numbers; nothing is drawn."""
        self[...] = in_order(self, axis)

    def partition(self, _kth: Any, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Sort the elements along ``axis`` in place, which is a valid partition."""
        self.sort(axis)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the array in another dtype.

        For float16 symbolic numbers are rounded. Wider float dtypes leave them unchanged. For an integer dtype the
        integer parts are drawn.
        """
        if np.issubdtype(dtype, np.floating):
            return narrowed_elements(self, np.dtype(dtype))
        if np.issubdtype(dtype, np.integer):
            parts = [each.__int__() if isinstance(each, SymbolicFloat) else each for each in self.flat]
            of_whole = all(isinstance(each, Integral) for each in self.flat)
            with np.errstate(invalid="ignore"):  # what is too large for the type becomes what NumPy makes of it
                return np.array(parts, dtype=np.int64 if of_whole else np.float64).astype(dtype).reshape(self.shape)
        return super().astype(dtype, *args, **kwargs)


ANSWERED = frozenset(name for name in vars(SymbolicArray) if not name.startswith("_")) - {"sort", "partition"}
"""Methods of NumPy arrays that have a symbolic rule and write nothing."""
for _method in (
    "tobytes",
    "tofile",
    "dump",
    "dumps",
    "getfield",
    "byteswap",
    "__bytes__",
    "__reduce__",
    "__reduce_ex__",
):
    setattr(SymbolicArray, _method, refusing(_method))
for _attribute in ("data", "ctypes", "__array_interface__"):
    setattr(SymbolicArray, _attribute, property(refusing(_attribute)))


def _of_float(self: SymbolicFloat, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a ufunc to a symbolic number and the elements of the other operands; NumPy calls this method.

    The parameters are those of ``__array_ufunc__``. Returns ``NotImplemented`` if an operand, or an array in ``out``,
    is of a subclass of ``np.ndarray``.
    """
    if any(
        isinstance(value, np.ndarray) and type(value) is not np.ndarray for value in (*inputs, *kwargs.get("out", ()))
    ):
        return Declined("an array of another kind is an operand").for_python
    meets(*inputs)
    return on_elements(ufunc, method, inputs, kwargs)


SymbolicFloat.__array_ufunc__ = _of_float  # type: ignore[attr-defined]  # arrays are made of numbers, not numbers of arrays

_NAMES = {name: getattr(np, name) for name in (*ELEMENTWISE, *COMPARISONS) if hasattr(np, name)}
KNOWN = {ufunc: name for name, ufunc in _NAMES.items()} | {vars(np)["_core"].umath.clip: "clip"}  # what np.clip calls
_TOWARDS_ZERO = KNOWN[np.trunc]
_OF_SCIPY = {"expit": "sigmoid", "logit": "logit"}
_REDUCED = {np.maximum: "max", np.minimum: "min", np.fmax: "max", np.fmin: "min"}


MASK = "where"
"""Keyword of a ufunc that selects the elements to compute."""


def on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a ufunc to the elements of ``inputs``, by the rule in the table of primitives.

    ``method`` is the method of the ufunc, such as ``__call__`` or ``reduce``, and ``kwargs`` are its keyword arguments.
    A refusal gets the name and the line of the ufunc.
    """
    try:
        return _on_elements(ufunc, method, inputs, kwargs)
    except NeedsValue as refused:
        raise refused.during(f"np.{ufunc.__name__}", caller()) from None


def _on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    for value in inputs:
        rounding.saw(getattr(value, "dtype", None))
    if method == "__call__" and ufunc.__name__ in _CROSSES and not kwargs and large(max(map(np.size, inputs))):
        return _crossed(ufunc.__name__, *inputs)
    places = {"reduceat": 1, "at": 1}.get(method)
    arrays = [value if number == places else as_objects(value) for number, value in enumerate(inputs)]
    if method == "at" and not isinstance(inputs[0], SymbolicArray):
        raise refusal(
            "write-not-followed",
            f"np.{ufunc.__name__}.at writes random numbers into an array that was made without any",
        )
    out = tuple(map(plain, kwargs.pop("out", ())))
    if kwargs.get("dtype") is not None and np.issubdtype(kwargs["dtype"], np.floating):
        _check_digits(ufunc, kwargs.pop("dtype"))
    if method in _ORDERED and ufunc in _REDUCED:
        return _lazy(_ORDERED[method](_REDUCED[ufunc], arrays[0], kwargs))
    if method == "__call__" and ufunc in _PAIRS and not (out or kwargs):
        return tuple(_number_or_lazy(result) for result in _PAIRS[ufunc](*arrays))
    name = KNOWN.get(ufunc) or _OF_SCIPY.get(ufunc.__name__)
    if method == "__call__" and name and kwargs.keys() <= ({MASK} if out else set()):
        result = _computed(name, arrays, kwargs.get(MASK, True))
        if out:
            np.copyto(out[0], result, **kwargs, casting="unsafe")
        return _lazy(out[0]) if out else _number_or_lazy(result)
    try:
        return _lazy(getattr(ufunc, method)(*arrays, **kwargs, **({"out": out} if out else {})))
    except (TypeError, AttributeError):  # an element has no method of that name
        raise refusal("value-needed", "it needs the value of a random number") from None


def _check_digits(ufunc: Any, dtype: Any) -> None:
    if np.dtype(dtype) == np.float16:
        raise refusal(
            "few-bits", f"np.{ufunc.__name__} rounds random numbers to float16 on the way: convert what it gives"
        )


_ORDERED: dict[str, Callable[..., Any]] = {
    "reduce": lambda name, array, more: best(name, array, more.get("axis", 0), more.get("keepdims")),
    "accumulate": lambda name, array, more: running(name, array, more.get("axis", 0)),
}
_CROSSES: dict[str, Any] = with_rule(COMPARISONS, "vector")
"""Comparisons of one number with very many bounds."""


def _crossed(name: str, left: Any, right: Any) -> Any:
    """Return the comparison ``name`` of ``left`` and ``right`` as an array of bools.

    One of the two is a symbolic number, the other a 1-D array of very many bounds. One draw determines all bools. Other
    operands are refused.
    """
    on_the_left = isinstance(left, SymbolicFloat)
    value, bounds = (left, right) if on_the_left else (right, left)
    together = isinstance(value, SymbolicFloat) and goes_in_arrays(value.unknown)
    if not together or np.asarray(bounds).dtype.kind == "O" or np.ndim(bounds) != 1:
        raise refusal("arrays-not-followed", "very many random numbers are compared one by one")
    result = with_foreign_line(
        _CROSSES[name].vector, [value.unknown], bounds[None], bounds.shape, on_the_left=on_the_left
    )
    return result.elements().astype(bool)


def _computed(name: str, arrays: Sequence[Any], where: Any = True) -> Any:
    """Return the elements of the operation ``name`` on ``arrays``; ``where`` is the mask of that name in NumPy.

    Where the mask is False the operation is not applied, and the element of the result is None.
    """
    elements = map(asarray, arrays)
    if where is True:
        result = rows.each(partial(of_operands, name), *elements)
    else:
        result = rows.each(lambda on, *each: of_operands(name, *each) if on else None, asarray(where), *elements)
    return result.astype(bool) if name in COMPARISONS else result


def narrowed_elements(elements: Any, dtype: np.dtype[Any]) -> Any:
    """Return a copy of ``elements``, converted to ``dtype``: float16 rounds symbolic numbers, wider floats do not."""
    result = np.array(elements, dtype=object, copy=True)
    if dtype == np.float16:
        result = rows.each(lambda each: wrapped(with_foreign_line(narrowed, opened(each), dtype.name)), result)
    rounding.saw(dtype)
    return result.view(type(elements)) if isinstance(elements, np.ndarray) else result


def _parts(value: Any) -> tuple[Any, Any]:
    whole = _computed(_TOWARDS_ZERO, [value])
    return _computed("subtract", [value, whole]), whole


_PAIRS: dict[Any, Callable[..., tuple[Any, Any]]] = {
    np.divmod: lambda *pair: (_computed("floor_divide", pair), _computed("remainder", pair)),
    np.modf: _parts,
}
"""Rules of the functions that return two arrays."""


def _number_or_lazy(found: Any) -> Any:
    if found.ndim:
        return _lazy(found)
    number = found[()]
    return np.float64(number) if type(number) is float else number  # 1 / it is inf at 0, and no error


def _lazy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(SymbolicArray if value.dtype == object else np.ndarray)
    return type(value)(map(_lazy, value)) if type(value) in {list, tuple} else value


_SEARCHSORTED: Any = np.ndarray.searchsorted


def _searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Replace ``ndarray.searchsorted`` in large-vocabulary mode; the parameters are those of NumPy's method.

    If the array has very many bounds (``large``), the index of a symbolic value ``v`` is drawn from its law: one draw
    in place of one for each comparison. NumPy's own method handles all other calls; with fewer bounds it bisects them,
    and each comparison with a symbolic ``v`` may draw.
    """
    random = isinstance(v, SymbolicFloat) or (isinstance(v, np.ndarray) and v.dtype.kind == "O")
    return (searched if random and large(self.size) else _SEARCHSORTED)(self, v, side, sorter)


def _without_nan(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace NumPy's ``nan_to_num``: plain elements are converted as usual; symbolic ones are never NaN."""
    return _lazy(
        rows.each(
            lambda each: each if isinstance(each, SymbolicFloat) else np.nan_to_num(float(each), *args, **kwargs),
            plain(x),
        )
    )


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **{
        getattr(np, row.name): partial(place_of_extreme, row.name)
        for row in ROWS.values()
        if row.family is Family.EXTREME and row.result is Result.PLACES
    },
    np.sort: lambda a, *args, **kwargs: _lazy(in_order(a, *args, **kwargs)),
    np.partition: lambda a, kth, axis=-1, *args, **kwargs: _lazy(in_order(a, axis)),
    np.argsort: lambda a, axis=-1, *args, **kwargs: argsorted(a, axis),
    np.argpartition: partitioned,
    np.searchsorted: searched,
    np.digitize: digitized,
    np.nan_to_num: _without_nan,
}


_NOTHING = nullcontext()


def lookups_at_large() -> AbstractContextManager[None]:
    """Return a context manager in which ``searchsorted`` finds a symbolic number among very many bounds by one draw.

    NumPy itself would bisect the bounds, with one draw for each step. Outside large-vocabulary mode nothing is changed.
    """
    return methods_replaced(np.ndarray, {"searchsorted": _searchsorted}) if at_large_now() else _NOTHING


# Very many numbers


class _Unreachable(SymbolicFloat):
    """The object in every element of the memory of an array that stands for very many symbolic numbers.

    It has no number: every operation on it is refused.
    """

    __slots__ = ()

    @property
    def unknown(self) -> Symbolic:  # type: ignore[override]  # it has none
        raise refusal("arrays-not-followed", "many random numbers are taken out of an array in a way that is not known")


_MEMORY = np.empty((), dtype=object)
_MEMORY[()] = _Unreachable.__new__(_Unreachable)


class VectorArray(SymbolicArray):
    """A NumPy array that stands for ``many``, a noise vector (an array of symbolic random numbers).

    Its own memory holds no numbers. The methods have the parameters of NumPy's methods.
    """

    many: Many | None = None
    shared = False
    """Whether another array shares the memory and would see a write to this one."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply ``ufunc`` to the noise vector; if there is no vector rule, to each element.

        The parameters are those that NumPy passes.
        """
        for value in inputs:
            rounding.saw(getattr(value, "dtype", None))
        single = any(isinstance(value, SymbolicFloat) for value in inputs)
        out = kwargs.pop("out", (None,))
        if method == "__call__" and ufunc in KNOWN and not kwargs and not single:
            with suppress(RuleDeclined, TypeError):
                result = applied_to_many(KNOWN[ufunc], *(getattr(value, "many", value) for value in inputs))
                return as_array(result) if out[0] is None else _written(out[0], result)
        if out[0] is not None:
            raise refusal("arrays-not-followed", "many random numbers are changed in place in a way that is not known")
        return SymbolicArray.__array_ufunc__(self, ufunc, method, *map(taken_out, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the NumPy function ``func``: as a method of this class if there is one, else on an object array.

        The parameters are those that NumPy passes.
        """
        if func in _METHODS and args and isinstance(args[0], VectorArray):
            return _METHODS[func](*args, **kwargs)
        given = tuple(taken_out(value) for value in args)
        return getattr(SymbolicArray, "__array_function__")(given[0], func, types, given, kwargs)  # noqa: B009 - not of self

    def __getitem__(self, index: Any) -> Any:
        return self._taken(lambda array: array[index])

    def _taken(self, take: Callable[[Any], Any]) -> Any:
        """Return the elements that ``take``, an indexing function, selects.

        From then on, in-place writes to this array and to the returned array are refused: the two may share elements.
        """
        result = as_array(_of(self).taken(take))
        self.shared = True
        if isinstance(result, VectorArray):
            result.shared = True
        return result

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy calls it
        """Return the transposed array."""
        return self.transpose()

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Return the same elements in another shape."""
        return self._taken(lambda array: array.reshape(*shape, **kwargs))

    def ravel(self, *_: Any, **__: Any) -> Any:
        """Return the elements as a 1-D array."""
        return self._taken(lambda array: array.ravel())

    flatten = ravel

    def transpose(self, *axes: Any) -> Any:
        """Return the elements with permuted axes."""
        return self._taken(lambda array: array.transpose(*axes))

    def copy(self, *_: Any, **__: Any) -> Any:
        """Return another array of the same random numbers; a later write to one of them does not change the other."""
        return as_array(_of(self))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """Return the elements in another float dtype.

        Raises ``NeedsValue`` for a dtype that is no float, and for 16 bits, unless 16-bit numbers are treated as
        continuous.
        """
        if np.issubdtype(dtype, np.floating):
            with_foreign_line(check_not_equal, np.dtype(dtype).name)
            return as_array(_of(self))
        raise refusal("arrays-not-followed", "random numbers are converted to something that is no float")

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the largest element along an axis. It is random: drawn by its law."""
        return self._extreme("argmax", axis, out, keepdims)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the smallest element along an axis. It is random: drawn by its law."""
        return self._extreme("argmin", axis, out, keepdims)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Return the largest element along an axis as a symbolic number."""
        return taken_out(self).max(*args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Return the smallest element along an axis as a symbolic number."""
        return taken_out(self).min(*args, **kwargs)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """Return the indices that sort the elements. They are random: drawn by their joint law."""
        return taken_out(self).argsort(*args, **kwargs)

    def _extreme(self, name: str, axis: Any, out: Any, keepdims: Any) -> Any:
        if out is not None:
            raise refusal(
                "arrays-not-followed", "the place of the largest of many random numbers is written into an array"
            )
        many = _of(self)
        turned = many.taken(lambda array: array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, -1))
        contests: Any = PRIMITIVES[name].vector
        result = np.array([known(race.winner()) for race in contests(turned)], dtype=np.int64)
        result = result.reshape(turned.shape[:-1])
        if keepdims is True:
            return result.reshape((1,) * self.ndim) if axis is None else np.expand_dims(result, axis)
        return result[0] if axis is None else result[()]


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Any, *_: Any, **__: Any) -> Any:
        raise refusal("arrays-not-followed", f"many random numbers are changed in place by {name}")

    return method


for _name in ("__setitem__", "sort", "partition", "fill", "put", "resize"):
    setattr(VectorArray, _name, _refusing(_name))

_METHODS: dict[Any, Callable[..., Any]] = {
    np.argmax: VectorArray.argmax,
    np.argmin: VectorArray.argmin,
    np.reshape: VectorArray.reshape,
    np.ravel: VectorArray.ravel,
    np.transpose: VectorArray.transpose,
    np.copy: VectorArray.copy,
}


def as_array(many: Many) -> Any:
    """Return a noise vector, an array of symbolic random numbers, as a NumPy value.

    A vector of many elements becomes a ``VectorArray``, one of few elements a ``SymbolicArray``, and one without
    dimensions a single number.
    """
    if not many.shape:
        result = many.element(0)
        return SymbolicFloat(result) if isinstance(result, Continuous) else np.float64(result)
    if many.ids.size <= MANY:
        return _elements(many)
    made: Any = np.broadcast_to(_MEMORY, many.shape).view(VectorArray)
    made.many = many
    return made


def taken_out(value: Any) -> Any:
    """Return the elements of a ``VectorArray`` (a noise vector as an array) one by one, in an object array.

    Any other ``value`` is returned unchanged.
    """
    return _elements(_of(value)) if isinstance(value, VectorArray) else value


def _elements(many: Many) -> SymbolicArray:
    result = many.elements()
    made = np.empty(result.shape, dtype=object)
    made.reshape(-1)[:] = [SymbolicFloat(each) if isinstance(each, Continuous) else each for each in result.flat]
    return made.view(SymbolicArray)


def _written(out: Any, many: Many) -> Any:
    """Replace the content of the array ``out`` by ``many``, as an in-place operation does, and return ``out``.

    Raises ``NeedsValue`` if ``out`` is no ``VectorArray``, may share elements with another array, or has another shape.
    """
    if not isinstance(out, VectorArray) or out.shared or out.shape != many.shape:
        raise refusal("arrays-not-followed", "many random numbers are written into an array that others see")
    out.many = many
    return out


def _of(array: VectorArray) -> Many:
    if array.many is None:
        raise refusal("arrays-not-followed", "many random numbers are taken out of an array in a way that is not known")
    return array.many
