"""Tensors with symbolic elements, their views, and computations for every outcome of one unread draw.

A symbolic tensor has a shape, a dtype and a device like any tensor, and an object array of elements. Views and
comparisons stay symbolic. An operation without a rule draws every element and then runs as usual, so its result is
right; only a tensor with a continuous random number is refused.

A write of plain numbers to a view is a write to its base: the elements of the base are drawn, the base becomes an
ordinary tensor, and its views become views of that tensor. A write of random numbers draws nothing: they replace
elements, in the base and in all its views (``overwrite``). Tensors made inside ``torch.inference_mode()`` may outlive
it.

One unread draw can be carried through a computation, with a result for each of its outcomes. For example, a draft token
whose predecessor is rejected is fed to the target and discarded; a run for each of its outcomes would repeat the same
run with different unused numbers. So if all symbolic arguments depend on one categorical draw, the computation is done
once for each outcome. A number on which all outcomes agree, bit for bit, is concrete; any other number is ``Chosen``:
the draw selects it when it is read.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from typing import Any, NamedTuple, Self
from weakref import ReferenceType, ref

import numpy as np
import torch
from torch._ops import OpOverload

from specverify.intercept.cpython.patches import array, asarray, empty
from specverify.intercept.refusals import Declined, NeedsValue, RuleDeclined, is_declined, tried
from specverify.intercept.run import PROCESS
from specverify.intercept.symbolic import deferred
from specverify.intercept.symbolic.arrays import SymbolicArray
from specverify.intercept.symbolic.continuous import SYMBOLIC
from specverify.intercept.symbolic.deferred import Categorical, Chosen, is_open, known, single
from specverify.intercept.symbolic.large import MANY, Crossing, at_large_now
from specverify.intercept.symbolic.numbers import wrapped
from specverify.intercept.symbolic.vectors import Many, joined

# Operations


class KnownOperation(NamedTuple):
    """A torch operation: its handler for symbolic tensors, and its effects on memory and shape of its arguments.

    For example, an operation may write to an argument, or return a view of one.
    """

    operation: OpOverload
    handler: Callable[..., Any] | None
    """Handler on symbolic tensors; None if there is none."""
    shares: bool
    """Whether the operation writes to an argument or returns a view of one."""
    writes: bool
    """Whether the operation writes to an argument, in place or through ``out``."""
    reshapes: bool
    """Whether the operation changes the shape of its argument."""


HANDLERS: dict[Any, Callable[..., Any]] = {}
"""torch operation -> handler on symbolic tensors, filled when ``handlers`` is imported. A handler gets the arguments of
the operation and returns ``Declined`` if it has no rule for them."""


def known_operation(operation: OpOverload) -> KnownOperation:
    """Return the handler and the effects on storage of a torch operation, from ``HANDLERS`` and its schema."""
    result: KnownOperation | None = PROCESS.operations.get(id(operation))  # its hash is made in Python
    if result is None:
        schema = operation._schema  # noqa: SLF001
        written = [item.alias_info for item in schema.arguments]
        shares = any(item.alias_info is not None for item in (*schema.arguments, *schema.returns))
        writes = any(alias is not None and alias.is_write for alias in written)
        reshapes = torch.Tag.inplace_view in operation.tags
        handler = HANDLERS.get(operation.overloadpacket)
        result = KnownOperation(operation, handler or _in_place(operation), shares, writes, reshapes)
        PROCESS.operations[id(operation)] = result
    return result


def _in_place(operation: OpOverload) -> Callable[..., Any] | None:
    """Return a handler of ``operation``, an in-place operation such as ``lerp_``; None if there is none.

    The handler overwrites the elements of the tensor with the result of the handler of ``lerp``. It declines for a
    tensor without symbolic numbers, and if that result is declined or has another dtype or shape.
    """
    name = operation.overloadpacket.__name__
    handler = HANDLERS.get(getattr(torch.ops.aten, name[:-1], None)) if name.endswith("_") else None
    if handler is None:
        return None

    def answer(tensor: Any, *args: Any, **named: Any) -> Any:
        if not holds(SYMBOLIC, tensor) or is_stored(tensor):
            return Declined(f"aten.{name} writes to a tensor without random numbers")
        result = handler(tensor, *args, **named)
        if is_declined(result) or result.dtype != tensor.dtype or result.shape != tensor.shape:
            return result if is_declined(result) else Declined(f"aten.{name} writes numbers of another dtype or shape")
        content = result.content if isinstance(result, SymbolicTensor) else elements_of(result)
        overwrite(tensor, content.elements() if isinstance(content, Crossing) else content)
        return tensor

    return answer


@cache
def names_of_arguments(packet: Any) -> list[list[str]]:
    """Return the names of the arguments of each overload of ``packet``, an operation of ``torch.ops``.

    Overloads with an ``out`` argument are left out.
    """
    taken = [getattr(packet, name)._schema.arguments for name in packet.overloads()]  # noqa: SLF001 - nothing public
    return [[item.name for item in each] for each in taken if not any(item.is_out for item in each)]


def arguments_of(packet: Any, *args: Any, **named: Any) -> dict[str, Any]:
    """Return the arguments of a call of ``packet`` by their names in its schema; None for omitted arguments."""
    names = next(
        each for each in names_of_arguments(packet) if len(args) <= len(each) and {*named} <= {*each[len(args) :]}
    )
    return dict.fromkeys(names) | dict(zip(names, args, strict=False)) | named


def bounds_and_values(packet: Any, *args: Any, **named: Any) -> tuple[Any, Any]:
    """Return (bounds, values) from the arguments of ``packet``, which is ``searchsorted`` or ``bucketize``.

    The two operations take these arguments in opposite orders.
    """
    given = arguments_of(packet, *args, **named)
    return given.get("sorted_sequence", given.get("boundaries")), given["self"]


@cache
def gives_pairs(packet: Any) -> bool:
    """Return whether ``packet``, an operation such as ``max``, has an overload that returns values and indices."""
    return max(len(getattr(packet, name)._schema.returns) for name in packet.overloads()) == 2  # noqa: SLF001


# Tensors

# Inference


_NOTHING = nullcontext()


def outliving_inference() -> AbstractContextManager[Any]:
    """Return a context manager that leaves inference mode: tensors made inside can be used and viewed after its end."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else _NOTHING


# Lazy tensor


class View(NamedTuple):
    """A view of a symbolic tensor: its ``base``, and how to find its elements there.

    ``places`` has the index of each element in the flattened base. ``again`` makes the same view of an ordinary tensor.
    """

    base: SymbolicTensor
    again: Callable[[torch.Tensor], torch.Tensor]
    """Returns the same view of an ordinary tensor."""
    places: np.ndarray[Any, Any]
    """Index of each element in the base."""


class SymbolicTensor(torch.Tensor):
    """A tensor with symbolic elements.

    ``elements`` is an object array of numbers, ``Symbolic`` and ``Deferred``. ``viewed`` states of which tensor it is a
    view, and how, or is None. ``views`` lists the views of this tensor, as weak references.
    """

    viewed: View | None
    views: list[ReferenceType[SymbolicTensor]]
    settled: torch.Tensor | None
    """The ordinary tensor that replaces this one once storage was needed, and receives all later writes; None before.
    """
    read: torch.Tensor | None
    """A copy with all elements forced, for callers that only read; None if none was made."""
    kinds: tuple[int, frozenset[type]]
    """Cache: (number of changes, types of the elements at that time)."""
    changes: list[int]
    """``[count]``: number of writes to the elements; a tensor and its views share the list."""
    _elements: np.ndarray[Any, Any] | Many | Crossing
    _seen: int

    def __new__(cls, elements: np.ndarray[Any, Any] | Many | Crossing, dtype: torch.dtype, device: Any) -> Self:
        """Return a tensor of ``elements`` without storage, with the given ``dtype`` and ``device``.

        It may outlive the inference mode in which it is made.
        """
        wrapper: Any = torch.Tensor._make_wrapper_subclass  # noqa: SLF001
        with outliving_inference():
            made: Self = wrapper(cls, elements.shape, dtype=dtype, device=device)
        made._elements, made._seen, made.changes, made.kinds, made.views = elements, 0, [0], (-1, frozenset()), []
        made.viewed = made.settled = made.read = None
        return made

    def __init__(self, *_: Any) -> None:
        """Do nothing; see ``__new__``."""

    @property
    def elements(self) -> np.ndarray[Any, Any]:
        """Return the array of elements.

        The elements of a view are read again from its base if the base was overwritten since.
        """
        content = self.content
        if not isinstance(content, np.ndarray):
            self._elements = content = content.elements()
        return content

    @property
    def content(self) -> np.ndarray[Any, Any] | Many | Crossing:
        """Return the elements as they are stored: an object array, a noise vector, or a ``Crossing``.

        The elements of a view are read again from its base if the base was overwritten since.
        """
        if self._seen != self.changes[0]:
            self._seen, self.read = self.changes[0], None
            if self.viewed is not None:
                self._elements = picked(self.viewed.base, self.viewed.places)
        return self._elements

    def put_in_shape(self, elements: Any) -> None:
        """Replace the elements by ``elements``: the same numbers in another order or shape."""
        self._elements, self.read = elements, None

    def held(self) -> np.ndarray[Any, Any]:
        """Return the array of elements, also if ``stored`` has replaced this tensor by an ordinary one."""
        return elements_of(self)

    def item(self) -> Any:
        """Return the only element: a plain number, drawn if needed, or a symbolic float for a symbolic number."""
        if self.numel() != 1 or is_stored(self):
            return super().item()
        element = self.elements.item()
        if isinstance(element, SYMBOLIC):
            return wrapped(element)
        cast = bool if self.dtype is torch.bool else int
        return super().item() if self.dtype.is_floating_point else cast(known(element))

    def tolist(self) -> Any:
        """Return the elements as nested lists of plain numbers, drawn if needed, and of symbolic floats."""
        return self._lazily().tolist() if self._open() else look_at(self).tolist()

    def _open(self) -> bool:
        return not is_stored(self) and holds(SYMBOLIC, self)

    def _lazily(self) -> np.ndarray[Any, Any]:
        result = empty(self.elements.shape, dtype=object)
        for index, element in np.ndenumerate(self.elements):
            result[index] = wrapped(element) if isinstance(element, SYMBOLIC) else known(element)
        return result

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Return the elements as a NumPy array of plain numbers, drawn if needed, and of symbolic floats."""
        return self._lazily().view(SymbolicArray) if self._open() else stored(self).numpy(*args, **kwargs)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return stored(self).__dlpack__(*args, **kwargs)

    def __repr__(self, **_: Any) -> Any:  # type: ignore[override]
        """Return a description of the tensor without drawing its elements."""
        return f"SymbolicTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch leaves ``args`` and ``kwargs`` out at times
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[Any, Any] | None = None
    ) -> Any:
        """Apply the rule of the operation ``func``; without a rule, draw every element and run the operation."""
        kwargs = kwargs or {}
        _, handler, shares, writes, reshapes = known_operation(func)
        reshapes = reshapes and isinstance(args[0], SymbolicTensor)
        handler = None if writes and not reshapes and func.overloadpacket in HANDLERS else handler
        declined = None
        settled = not reshapes and all(is_settled(value, shares) for value in (*args, *kwargs.values()))
        composite = torch.is_inference_mode_enabled() and func._can_decompose()  # noqa: SLF001 - torch has no public name
        if composite and handler is None and not writes and not settled:
            return func.decompose(*args, **kwargs)
        if handler and not settled:
            try:
                answer = handler(*args, **kwargs)
            except (IndexError, ValueError):  # of NumPy, with whose arrays the rules compute
                of_torch = _error_of_torch(func, args, kwargs)
                if of_torch is None:
                    raise
                raise of_torch from None
            if not is_declined(answer):
                return answer
            declined = answer
        ordinary = stored if shares else look_at
        try:
            args = in_all(ordinary, args)
            kwargs = {name: in_all(ordinary, value) for name, value in kwargs.items()}
        except NeedsValue as refused:
            raise refused.because(declined or _no_rule(func, writes=writes)) from None
        return func(*args, **kwargs)


def _error_of_torch(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """Return the error that torch raises for the call ``func(*args, **kwargs)``, such as one about shapes, or None.

    A program may catch it, and NumPy raises another one. The operation is run with zeros in place of symbolic numbers.
    """
    try:
        func(*in_all(_with_zeros, args), **{name: in_all(_with_zeros, value) for name, value in kwargs.items()})
    except (IndexError, RuntimeError, ValueError) as error:
        return error.with_traceback(None)
    return None


def _with_zeros(value: Any) -> Any:
    if isinstance(value, SymbolicTensor):
        return torch.zeros(value.shape, dtype=value.dtype, device=value.device)
    return value.clone() if isinstance(value, torch.Tensor) else value


def _no_rule(func: Any, *, writes: bool) -> Declined:
    name = str(func.overloadpacket)
    return Declined(f"{name} writes to a tensor" if writes else f"there is no rule for {name} of random numbers")


def look_at(tensor: Any) -> Any:
    """Return ``tensor`` as an ordinary tensor with the values of all elements; any other value unchanged.

    Raises ``NeedsValue`` for a continuous symbolic number.
    """
    if not isinstance(tensor, SymbolicTensor):
        return tensor
    return stored(tensor) if is_stored(tensor) else _read(tensor)


def _read(tensor: SymbolicTensor) -> torch.Tensor:
    numbers = tensor.elements
    if tensor.read is None:
        tensor.read = of_numbers(tensor, [known(element) for element in numbers.flat])
    return tensor.read


def stored(tensor: Any) -> Any:
    """Return the ordinary tensor that replaces ``tensor``, a symbolic tensor, from now on; any other value unchanged.

    The elements are drawn. A view becomes a view of its base, whose elements are drawn too.
    """
    if not isinstance(tensor, SymbolicTensor):
        return tensor
    if tensor.settled is None:
        tensor.settled = tensor.viewed.again(stored(tensor.viewed.base)) if tensor.viewed else _read(tensor)
    return tensor.settled


def overwrite(tensor: SymbolicTensor, values: np.ndarray[Any, Any] | Many) -> None:
    """Replace the elements of a tensor by ``values``, in its base and in all views of the base.

    Raises ``NeedsValue`` for a tensor that has become ordinary, because code that uses it would not see the change.
    """
    if is_stored(tensor):
        raise NeedsValue(
            "write-not-followed", "random numbers are drawn into a tensor that was written to after it held others"
        )
    while (viewed := tensor.viewed) is not None:
        tensor, values = viewed.base, _written(viewed, values)
    if isinstance(values, Many):
        tensor._elements = values  # noqa: SLF001 - of this module
    else:
        tensor.elements[...] = values
    tensor.changes[0] += 1


def _written(viewed: View, values: np.ndarray[Any, Any] | Many) -> Any:
    """Return the new elements of a tensor after ``values`` are written to one of its views, ``viewed``."""
    base, _, places = viewed

    def put(arrays: list[Any]) -> Any:
        whole = array(arrays[0]).ravel()
        whole[places.ravel()] = arrays[1].ravel()
        return whole.reshape(tuple(base.shape))

    if isinstance(values, Many):
        with suppress(RuleDeclined, TypeError):
            return joined([base.content if isinstance(base.content, Many) else np.float64(base.elements), values], put)
        values = values.elements()
    return put([base.elements, values])


def of_numbers(tensor: SymbolicTensor, numbers: list[Any]) -> torch.Tensor:
    """Return the ordinary tensor with ``numbers`` as its elements, otherwise like ``tensor``."""
    with outliving_inference():
        return torch.tensor(numbers, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)


def is_stored(tensor: SymbolicTensor) -> bool:
    """Return whether the tensor, or its base, has become an ordinary tensor."""
    return tensor.settled is not None or (tensor.viewed is not None and is_stored(tensor.viewed.base))


def is_settled(value: Any, shares: bool) -> bool:
    """Return whether ``value``, an argument of an operation, has no symbolic element, also inside lists and tuples.

    ``shares`` states that the operation writes to an argument or returns a view of one: the result is then False for
    every symbolic tensor. A symbolic tensor that has become an ordinary tensor counts as ordinary in both cases.
    """
    if isinstance(value, (list, tuple)):
        return all(is_settled(item, shares) for item in value)
    if not isinstance(value, SymbolicTensor) or is_stored(value):
        return True
    if shares or not isinstance(value.content, np.ndarray) or _holds(SYMBOLIC, value):
        return False
    return not _holds(deferred.Deferred, value) or not any(map(deferred.is_open, value.elements.flat))


def in_all(change: Callable[[Any], Any], value: Any) -> Any:
    """Return ``change(value)``; for a list or tuple, the container with ``change`` applied to every item."""
    if type(value) in (list, tuple):
        return type(value)(in_all(change, item) for item in value)
    return change(value)


def elements_of(value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of ``value``, a tensor or a number, as an object array."""
    if isinstance(value, SymbolicTensor):
        return elements_of(stored(value)) if is_stored(value) else value.elements
    if isinstance(value, torch.Tensor) and value.ndim:
        result = empty(tuple(value.shape), dtype=object)
        result[...] = array(value.tolist(), dtype=object).reshape(result.shape)
        return result
    return single(value.item() if isinstance(value, torch.Tensor) else value)


def holds(kind: Any, *operands: Any) -> bool:
    """Return whether one of ``operands`` is a symbolic tensor with an element of type ``kind``."""
    return any(_holds(kind, operand) for operand in operands if isinstance(operand, SymbolicTensor))


def _holds(kind: Any, tensor: SymbolicTensor) -> bool:
    """Return whether a tensor has an element of type ``kind``; cached until the tensor is overwritten."""
    if tensor.kinds[0] != tensor.changes[0]:
        tensor.kinds = tensor.changes[0], frozenset(map(type, _samples(tensor.content)))
    return _are_among(kind, tensor.kinds[1])


@cache
def _are_among(kind: Any, types: frozenset[type]) -> bool:
    return any(issubclass(each, kind) for each in types)


def _samples(content: Any) -> Any:
    """Return elements of ``content`` that show which types of elements it has.

    These are all elements of an array, the first symbolic element of a noise vector, and none of a ``Crossing``.
    """
    if isinstance(content, np.ndarray):
        return content.flat
    return [content.element(int(content.random.argmax()))] if isinstance(content, Many) else []


def lazy_like(tensor: Any, elements: Any, dtype: torch.dtype | None = None) -> SymbolicTensor:
    """Return a symbolic tensor of ``elements`` on the device of ``tensor``.

    Its dtype is ``dtype``, or that of ``tensor`` if ``dtype`` is None.
    """
    given = elements if isinstance(elements, (Many, Crossing)) else asarray(elements, dtype=object)
    return SymbolicTensor(given, dtype or tensor.dtype, tensor.device)


def view_of(viewed: View) -> SymbolicTensor:
    """Return the symbolic tensor of the view ``viewed``, and add it to the views of its base."""
    made = lazy_like(viewed.base, picked(viewed.base, viewed.places))
    made.viewed, made.changes, made._seen = viewed, viewed.base.changes, viewed.base.changes[0]  # noqa: SLF001
    viewed.base.views.append(ref(made))
    return made


def picked(tensor: SymbolicTensor, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | Many | Crossing:
    """Return the elements of ``tensor`` at the flat indices ``places``, in the shape of ``places``."""

    def take(array: Any) -> Any:
        return array.ravel()[places.ravel()].reshape(places.shape)

    content = tensor.content
    if isinstance(content, Many):
        return content.taken(take) if places.size > MANY else content.few(places)
    whole = isinstance(content, Crossing) and places.size == math.prod(content.shape)
    if isinstance(content, Crossing) and whole and (np.diff(places.ravel()) == 1).all():
        return content._replace(shape=places.shape)
    return take(tensor.elements)  # type: ignore[no-any-return]


# Alternatives

MOST_CARRIED = 8
"""Limit of outcomes for which a computation is carried out on all outcomes at once; with more, that costs more than it
saves."""
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def only_source(values: Any) -> Categorical | None:
    """Return the single categorical draw on which all symbolic elements of ``values`` depend.

    Returns None in two cases: there is no such draw, or it has more than ``MOST_CARRIED`` outcomes of positive
    probability.
    """
    sources = list(_sources(values))
    if not sources or any(source is not sources[0] for source in sources):
        return None
    few = isinstance(sources[0], Categorical) and np.count_nonzero(sources[0].pmf) <= MOST_CARRIED
    return sources[0] if few else None


def _sources(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _sources(item)
    elif isinstance(value, SymbolicTensor) and not is_stored(value):
        for element in value.elements.flat:
            if is_open(element):
                yield element.source if isinstance(element, Chosen) else element


def for_each_outcome(
    source: Categorical, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Return ``function(*args, **kwargs)`` for all outcomes of ``source`` at once; numbers that differ stay symbolic.

    ``function`` must not write to its arguments. Raises ``RuleDeclined`` if the outcomes give different shapes, dtypes,
    containers or plain values, or if one of them raises an error.
    """
    result = {}
    for outcome, _ in source.outcomes():

        def given(value: Any, outcome: int = outcome) -> Any:
            return _with_outcome(value, source, outcome)

        try:
            with tried():
                result[outcome] = function(
                    *in_all(given, args), **{name: in_all(given, kwargs[name]) for name in kwargs}
                )
        except Exception as error:  # in the run in which this outcome is drawn it is raised again
            raise RuleDeclined(f"an outcome raises {type(error).__name__}") from error
    return merged_outcomes(source, result)


def _with_outcome(value: Any, source: Categorical, outcome: int) -> Any:
    if not isinstance(value, SymbolicTensor) or is_stored(value):
        return look_at(value)
    numbers = [
        outcome
        if element is source
        else element.values[outcome]
        if isinstance(element, Chosen) and element.source is source
        else known(element)
        for element in value.elements.flat
    ]
    return of_numbers(value, numbers)


def numbers_by_outcome(source: Categorical, outcomes: list[int], value: Any) -> Any:
    """Return the content of ``value``, an argument of ``for_each_outcome``, for all ``outcomes`` of ``source``.

    A symbolic tensor becomes a tuple of its dtype, device, shape and elements. An element that depends on the draw is a
    list with its number for each outcome. Any other value is unchanged.
    """
    if not isinstance(value, SymbolicTensor) or is_stored(value):
        return look_at(value)
    elements = [
        outcomes
        if element is source
        else [element.values[outcome] for outcome in outcomes]
        if isinstance(element, Chosen) and element.source is source
        else known(element)
        for element in value.elements.flat
    ]
    return value.dtype, value.device, value.shape, elements


def bound_to(source: Any, tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of ``tensor``, a result of ``for_each_outcome``, in which ``source`` takes the place of the draw.

    None stands for no draw, in a result that is kept.
    """
    if not isinstance(tensor, SymbolicTensor):
        return tensor.clone()
    elements = tensor.elements.copy()
    for place, element in np.ndenumerate(elements):
        if isinstance(element, Chosen):
            elements[place] = Chosen(source, element.values)
    return SymbolicTensor(elements, tensor.dtype, tensor.device)


def merged_outcomes(source: Categorical, by_outcome: Mapping[int, Any]) -> Any:
    """Return one value that combines ``by_outcome``: the result of a computation for each outcome of ``source``.

    A number that differs between the outcomes becomes a symbolic element of its tensor. Raises ``RuleDeclined`` if
    anything else differs, such as a shape or a plain value.
    """
    values = list(by_outcome.values())
    first = values[0]
    if any(type(value) is not type(first) for value in values):
        raise RuleDeclined("outcomes give values of different types")
    if isinstance(first, torch.Tensor):
        return _merged_tensors(source, by_outcome)
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values):
            raise RuleDeclined("outcomes give dictionaries with different keys")
        return type(first)(
            (name, merged_outcomes(source, {outcome: by_outcome[outcome][name] for outcome in by_outcome}))
            for name in first
        )
    if type(first) in (list, tuple):
        if any(len(value) != len(first) for value in values):
            raise RuleDeclined("outcomes give sequences of different lengths")
        return type(first)(
            merged_outcomes(source, {outcome: by_outcome[outcome][item] for outcome in by_outcome})
            for item in range(len(first))
        )
    if hasattr(first, "__dict__") and not callable(first):
        made = copy.copy(first)
        made.__dict__.update(
            merged_outcomes(source, {outcome: dict(by_outcome[outcome].__dict__) for outcome in by_outcome})
        )
        return made
    if any(value is not first and value != first for value in values):
        raise RuleDeclined("outcomes give different plain values")
    return first


def _merged_tensors(source: Categorical, found: Mapping[int, torch.Tensor]) -> torch.Tensor:
    tensors = list(found.values())
    first = tensors[0]
    if any((item.shape, item.dtype, item.device) != (first.shape, first.dtype, first.device) for item in tensors):
        raise RuleDeclined("outcomes give tensors of different shapes or dtypes")
    if first.element_size() not in _BITS:
        raise RuleDeclined("the bits of the dtype are not compared")
    bits = torch.stack([item.contiguous().view(_BITS[first.element_size()]) for item in tensors])
    agree = (bits == bits[0]).all(0)
    if bool(agree.all()):
        return first
    lists = {outcome: item.reshape(-1).tolist() for outcome, item in found.items()}
    elements = np.empty(first.numel(), dtype=object)
    elements[:] = lists[next(iter(lists))]
    for place in (~agree).reshape(-1).nonzero().reshape(-1).tolist():
        elements[place] = Chosen(source, {outcome: numbers[place] for outcome, numbers in lists.items()})
    return SymbolicTensor(elements.reshape(tuple(first.shape)), first.dtype, first.device)


def at_large_first(
    rules: Sequence[Callable[..., Any]], name: str, function: Any, handler: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Return a handler that in large-vocabulary mode tries ``rules`` in order, and ``handler`` if all of them decline.

    In any other mode it calls ``handler``; None stands for one that always declines. ``rule(function, *args,
    **kwargs)`` gets the operation and the arguments. ``name`` is the name of the operation.
    """

    def answer(*args: Any, **kwargs: Any) -> Any:
        for rule in rules if at_large_now() else ():
            try:
                result = rule(function, *args, **kwargs)
            except RuleDeclined:
                continue
            if not is_declined(result):
                return result
        return handler(*args, **kwargs) if handler else Declined(f"there is no rule for {name} of random numbers")

    return answer


def on_alternatives(function: Any, handler: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a handler that tries ``handler`` and, if that declines, computes ``function`` for every outcome.

    The outcomes are those of the one unread draw on which all symbolic arguments depend. The returned handler declines
    without such a draw, and if the results cannot be combined (see ``for_each_outcome``). ``handler`` None always
    declines.
    """
    no_rule = Declined(f"there is no rule for {function} of random numbers")

    def answer(*args: Any, **kwargs: Any) -> Any:
        result = handler(*args, **kwargs) if handler else no_rule
        source = only_source((args, tuple(kwargs.values()))) if is_declined(result) else None
        if source is None:
            return result
        try:
            return for_each_outcome(source, function, args, kwargs)
        except RuleDeclined as differs:
            return differs.declined

    return answer
