"""Ordinary tensors that foreign code fills with random numbers, and the symbolic tensors that represent them.

Numbers are kept by storage: every tensor that shares it, by a view made before or after, by ``detach`` or ``.data``,
with or without gradients or in inference mode, has the numbers. Code that reads the memory itself, such as a scripted
function, is not intercepted. It reads values there that differ in every run, so that a replay detects the use.

Operations that write random numbers in place, into ``out`` or at an index are computed by the variant of the function
that returns a new tensor; the written tensor then represents the result. In-place changes of shape (``t.transpose_(0,
1)``, ``t.squeeze_()``) apply to the tensor and not to its views; the tensor in the foreign code gets the new shape,
because torch reads it to expand indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import compress
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch.utils._mode_utils import no_dispatch

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import array, broadcast_to
from specverify.intercept.refusals import Declined, NeedsValue
from specverify.intercept.run import PROCESS
from specverify.intercept.symbolic.arrays import SymbolicArray
from specverify.intercept.symbolic.buffers import contents_of, holds_lazy
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, is_whole
from specverify.intercept.symbolic.deferred import Deferred, is_open, known, single
from specverify.intercept.symbolic.large import MANY, large
from specverify.intercept.symbolic.numbers import SymbolicFloat, SymbolicInt, opened
from specverify.intercept.symbolic.primitives import OF_PYTHON, OF_TORCH, Family, names_of
from specverify.intercept.symbolic.vectors import Many, as_many
from specverify.intercept.torch.elementwise import NAMES as OF_WHOLE_NUMBERS
from specverify.intercept.torch.generators import nobody_answers
from specverify.intercept.torch.tensors import (
    HANDLERS,
    SymbolicTensor,
    View,
    elements_of,
    holds,
    in_all,
    is_stored,
    look_at,
    overwrite,
    picked,
    stored,
    view_of,
)
from specverify.intercept.torch.views import places_at

# Filled


_NO_TENSORS = frozenset({int, float, bool, str, slice, type(None), type(...), torch.dtype})
_CONTAINERS = frozenset({list, tuple})


class Filled:
    """The memory (storages) of ordinary tensors into which the program wrote symbolic numbers in one run.

    An ordinary tensor cannot hold them, so each such storage has a symbolic tensor that represents it.
    """

    def __init__(self) -> None:
        """Start without filled storages."""
        self._whole: dict[int, tuple[torch.Tensor, SymbolicTensor]] = {}
        """Identity of a storage -> a tensor that keeps it alive, and the symbolic tensor of all its elements."""
        self._standing: dict[int, tuple[torch.Tensor, SymbolicTensor]] = {}

    @property
    def anything(self) -> bool:
        """Return whether a storage was filled with symbolic numbers."""
        return bool(self._whole)

    def fill(self, tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Record that ``tensor`` was filled in place with ``values``; return the symbolic tensor that represents it.

        If neither is symbolic, the values are copied, and ``tensor`` is returned. Raises ``NeedsValue`` for values of
        another shape, and for a tensor whose elements were drawn since it was first filled, so that it is an ordinary
        tensor again.
        """
        lazy = isinstance(tensor, SymbolicTensor)
        if not lazy and not isinstance(values, SymbolicTensor):
            return tensor.copy_(values)
        if tensor.shape != values.shape:
            raise NeedsValue(
                "write-not-followed", f"numbers of the shape {tuple(values.shape)} are drawn into {tuple(tensor.shape)}"
            )
        if not lazy:
            self._stand_for(tensor)
            _make_noise(tensor)
        standing: SymbolicTensor = self.standing_for(tensor)
        content = values.content if isinstance(values, SymbolicTensor) else None
        overwrite(standing, content if isinstance(content, Many) else elements_of(values))
        return standing

    def put(self, tensor: torch.Tensor, index: Any, values: Any) -> torch.Tensor:
        """Write ``values``, some of them symbolic, into ``tensor`` at ``index``.

        Returns the symbolic tensor that represents ``tensor``.
        """
        if not isinstance(tensor, SymbolicTensor):
            self._stand_for(tensor)
        standing: SymbolicTensor = self.standing_for(tensor)
        places = torch.arange(tensor.numel()).reshape(tensor.shape)[in_all(look_at, index)].numpy()
        here = View(standing, lambda base: base[index], places)
        overwrite(view_of(here), spread(elements_of(torch.as_tensor(values).to(tensor.dtype)), places.shape))
        return standing

    def _stand_for(self, tensor: torch.Tensor) -> None:
        """Create the symbolic tensor that represents the storage of ``tensor`` from now on."""
        if (key := _storage(tensor)) not in self._whole:
            whole = tensor.detach().as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
            together = large(whole.numel(), MANY) and whole.dtype.is_floating_point
            content = as_many(whole.double().cpu().numpy()) if together else elements_of(whole)
            self._whole[key] = (whole, SymbolicTensor(content, whole.dtype, whole.device))

    def forget(self) -> None:
        """Release all storages at the end of a run: Python does not collect object arrays in reference cycles."""
        self._whole.clear()
        self._standing.clear()

    def settle(self) -> None:
        """Write the values that the program has read into the memory of the filled tensors, at the end of a run.

        If all elements of a tensor were read, its memory replaces the symbolic tensor from then on.
        """
        for whole, standing in self._whole.values():
            if standing.settled is not None:  # somebody wrote to what had been looked at
                with nobody_answers(), torch.inference_mode():
                    whole.copy_(standing.settled)
                standing.settled = whole
                continue
            content = standing.content
            if not isinstance(content, np.ndarray):
                continue
            told = [not is_open(element) for element in content.flat]
            if not any(told):
                continue
            decided, numbers = array(told), [known(element) for element in compress(content.flat, told)]
            with nobody_answers(), torch.inference_mode():  # there it may also be written to what was made there
                whole[torch.from_numpy(decided)] = torch.tensor(numbers, dtype=whole.dtype, device=whole.device)
            if decided.all():
                standing.settled = whole

    def standing_for(self, value: Any) -> Any:
        """Return ``value`` with each tensor that was filled with symbolic numbers replaced by its symbolic tensor.

        Tensors inside containers are replaced too; any other value is unchanged.
        """
        kind = type(value)
        if kind in _NO_TENSORS or not self._whole:
            return value
        if kind in _CONTAINERS:
            result = [item if type(item) in _NO_TENSORS else self.standing_for(item) for item in value]
            return result if kind is list else tuple(result)
        if isinstance(value, torch.Tensor):
            return self._lazy(value)
        if kind is dict:
            return {name: self.standing_for(item) for name, item in value.items()} if value else value
        return value

    def reshaped(self, func: Any, tensor: torch.Tensor, *args: Any) -> bool:
        """Apply ``func``, which changes a shape in place, to a filled tensor and to its symbolic representation.

        Returns whether ``tensor`` was filled with symbolic numbers.
        """
        self.standing_for(tensor)
        pairs = [pair for pair in self._standing.values() if tensor is pair[0] or tensor is pair[1]]
        for plain, standing in pairs:
            func(plain, *args)
            func(standing, *args)
        return bool(pairs)

    def _lazy(self, tensor: torch.Tensor) -> torch.Tensor:
        standing = self._standing.get(id(tensor))
        if standing is not None:
            return standing[1]
        result = None if isinstance(tensor, SymbolicTensor) else self._whole.get(_storage(tensor))
        if result is None:
            return tensor
        _, whole = result
        if tensor.dtype != whole.dtype:
            raise NeedsValue("few-bits", f"random numbers of {whole.dtype} are read as {tensor.dtype} at {caller()}")
        shape, strides, offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        places = torch.arange(whole.numel()).as_strided(shape, strides, offset).numpy()
        made = view_of(View(whole, lambda base: base.as_strided(shape, strides, offset), places))
        self._standing[id(tensor)] = (tensor, made)
        return made


def spread(elements: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return ``elements`` broadcast to ``shape``, the shape of the tensor to which they are written.

    If ``elements`` has more dimensions than ``shape``, its leading dimensions of length 1 are dropped.
    """
    while elements.ndim > len(shape) and elements.shape[0] == 1:
        elements = elements.reshape(elements.shape[1:])
    return broadcast_to(elements, shape)


def _make_noise(tensor: torch.Tensor) -> None:
    noise = PROCESS.noise.setdefault(tensor.device, torch.Generator(tensor.device))
    with nobody_answers():
        if tensor.dtype.is_floating_point:
            tensor.uniform_(-1, 1, generator=noise)
        else:
            tensor.random_(0, 2, generator=noise)


def _storage(tensor: torch.Tensor) -> int:
    """Return the identity of a tensor's storage; 0 if it has none."""
    try:
        return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - torch compares storages by it
    except (NotImplementedError, RuntimeError):
        return 0


# Written


_WRITES_NOTHING = Declined("the call writes no random numbers")
_MAKES_NOTHING = Declined("the call makes no tensor of random numbers")
_OPERATORS = {
    f"__i{operator}__": row.torch[0]
    for operator, row in OF_PYTHON.items()
    if row.family is Family.ARITHMETIC and hasattr(torch.Tensor, f"__i{operator}__")
}
_MOVES = {"copy_", *(f"{name}_" for name in names_of(OF_TORCH, Family.INSERTION))}
"""Operations that write elements into a tensor unchanged."""


_RESHAPING = ("t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_", "resize_",
              "resize_as_", "set_")  # fmt: skip
RESHAPING = frozenset(getattr(torch.Tensor, name) for name in _RESHAPING)
"""Functions that change a shape in place without writing elements: see ``filled``."""


@cache
def _without_writing(func: Any) -> Callable[..., Any] | None:
    """Return the function that computes what the in-place tensor method ``func`` writes, such as ``add`` for ``add_``.

    Returns None for any other ``func``.
    """
    name = _name(func)
    if getattr(torch.Tensor, name, None) is not func or func in RESHAPING:
        return None
    if name == "copy_":
        return lambda tensor, src, non_blocking=False: src.to(tensor.dtype).expand(tensor.shape)
    if name in {"fill_", "zero_"}:
        return lambda tensor, value=0: torch.full(tuple(tensor.shape), value, dtype=tensor.dtype, device=tensor.device)
    if name in _OPERATORS:
        return getattr(torch.Tensor, _OPERATORS[name], None)
    result = getattr(torch.Tensor, name[:-1], None) if name.endswith("_") and not name.endswith("__") else None
    return result if callable(result) else None


def writes_itself(func: Any) -> bool:
    """Return whether ``func`` writes into its first argument (an in-place method or an assignment to an index)."""
    return func is torch.Tensor.__setitem__ or _without_writing(func) is not None


def _name(func: Any) -> str:
    return getattr(func, "__name__", "")


def written(filled: Filled, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of ``func(*args, **kwargs)``, a call that writes into a tensor, if random values take part.

    The call writes in place, into ``out`` or at an index. Random values are symbolic numbers, and outcomes of draws
    that the program has not read. If the result is symbolic, ``filled`` records that it represents the written tensor.

    Returns ``Declined`` in these cases:

    * The call writes into no tensor.
    * No random value is written, and the tensor that is written to has none.
    * An outcome would have to be read, for example to add it in place to an ordinary float tensor.
    """
    if func is torch.Tensor.__setitem__ and _keeps_open(*args):
        return _set(filled, *args)
    compute, out = _without_writing(func), kwargs.get("out")
    if compute is None and out is None:
        return _WRITES_NOTHING
    if not (
        holds(SYMBOLIC, *args, *kwargs.values())
        or (_stays_open(_name(func), *args) if compute is not None else _undecided(*args, *kwargs.values()))
        or _may_be_drawn_into(args[0] if compute is not None else out)
    ):
        return _WRITES_NOTHING
    if compute is not None and isinstance(args[0], torch.Tensor):
        result = compute(*args, **kwargs)
        return filled.fill(args[0], result if result.dtype == args[0].dtype else result.to(args[0].dtype))
    if not isinstance(out, torch.Tensor):
        return Declined("out is no tensor")
    result = func(*args, **{name: value for name, value in kwargs.items() if name != "out"})
    follows = isinstance(result, SymbolicTensor) or _may_be_drawn_into(out)
    return filled.fill(out, result.to(out.dtype)) if follows else Declined("every outcome was read")


def _keeps_open(tensor: Any, index: Any, value: Any) -> bool:
    """Return whether ``tensor[index] = value`` can be done without reading any element of ``value``.

    True if ``value`` has symbolic numbers or unread outcomes. Also true if ``tensor`` holds symbolic numbers and
    ``value`` is a number or a tensor.
    """
    written_to = _may_be_drawn_into(tensor) and isinstance(value, (Number, torch.Tensor))
    return holds(SYMBOLIC, value) or written_to or _undecided(value)


def _may_be_drawn_into(tensor: Any) -> bool:
    """Return whether ``tensor`` holds symbolic numbers and has not become an ordinary tensor."""
    return isinstance(tensor, SymbolicTensor) and not is_stored(tensor)


def _stays_open(name: str, tensor: Any = None, *operands: Any) -> bool:
    """Return whether the in-place method ``name`` of ``tensor`` is done without reading outcomes.

    * A method that moves elements: if one of ``operands``, its arguments, has an unread outcome.
    * A method that computes with integers: if ``tensor`` is not of floats, and ``tensor`` or an operand has an unread
      outcome.
    * Any other method: False.
    """
    if name in _MOVES:
        return _undecided(*operands)
    if _OPERATORS.get(name, name[:-1]) not in {*OF_WHOLE_NUMBERS, "masked_fill"} or tensor.dtype.is_floating_point:
        return False
    return not (isinstance(tensor, SymbolicTensor) and is_stored(tensor)) and _undecided(tensor, *operands)


def _undecided(*values: Any) -> bool:
    """Return whether one of ``values`` is a symbolic tensor with an outcome that was not read."""
    return any(
        holds(Deferred, value) and not is_stored(value) and any(map(is_open, value.elements.flat))
        for value in values
        if isinstance(value, SymbolicTensor)
    )


def _set(filled: Filled, tensor: Any, index: Any, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(value, dtype=tensor.dtype)
    if isinstance(index, torch.Tensor) and index.dtype is torch.bool and value.numel() == 1 and _undecided(index):
        mask = index.reshape(index.shape + (1,) * (tensor.ndim - index.ndim))
        filled.fill(tensor, torch.where(mask, value.to(tensor.dtype).reshape(()), tensor))
        return
    index = tuple(look_at(each) for each in index) if isinstance(index, tuple) else in_all(look_at, index)
    places = places_at(tuple(tensor.shape), index)
    elements = elements_of(tensor).flatten()
    values = spread(elements_of(value.to(tensor.dtype)), places.shape)
    elements[places.ravel()] = values.ravel()
    filled.fill(tensor, SymbolicTensor(elements.reshape(tuple(tensor.shape)), tensor.dtype, tensor.device))


# Tensors that are made of numbers

_FULL = {torch.full, torch.full_like, torch.Tensor.new_full}


def made(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the tensor that a constructor ``func``, such as ``torch.tensor``, makes if it is given symbolic numbers.

    ``args`` and ``kwargs`` are its arguments. Returns ``Declined`` for any other call.
    """
    if func in _FULL:
        like = func(args[0], *(_zeros(value) for value in args[1:]), **{name: _zeros(kwargs[name]) for name in kwargs})
        value = next(value for value in (*args, *kwargs.values()) if holds_lazy(value))
        elements = np.empty(tuple(like.shape), dtype=object)
        elements[...] = single(opened(value))
        return _of_dtype(elements, like)
    if func in _OF_NUMBERS:
        data = next(value for value in (*args, *kwargs.values()) if holds_lazy(value))
        like = func(*(_zeros(value) for value in args), **{name: _zeros(value) for name, value in kwargs.items()})
        elements = np.empty(like.numel(), dtype=object)
        elements[:] = [opened(value) for value in _flat(data)]
        return _of_dtype(elements.reshape(tuple(like.shape)), like)
    return _MAKES_NOTHING


def _of_dtype(elements: Any, like: torch.Tensor) -> Any:
    """Return a tensor of ``elements`` with the dtype and device of ``like``; a 16-bit dtype rounds them."""
    whole = like.dtype is not torch.bool and all(
        isinstance(each, int) or (isinstance(each, Continuous) and is_whole(each)) for each in elements.flat
    )
    if whole or like.dtype in {torch.float32, torch.float64}:
        return SymbolicTensor(elements, like.dtype, like.device)
    return SymbolicTensor(elements, torch.float64, like.device).to(like.dtype)


_OF_NUMBERS = {torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor}


def from_numpy(array: Any) -> Any:
    """Replace ``torch.from_numpy``: return the tensor of a NumPy array, which may hold symbolic numbers."""
    array = contents_of(array)
    return made(torch.as_tensor, (array,), {}) if type(array) is SymbolicArray else _FROM_NUMPY(array)


_FROM_NUMPY = torch.from_numpy


def _flat(data: Any) -> list[Any]:
    if isinstance(data, np.ndarray):
        return list(data.flat)
    return [each for item in data for each in _flat(item)] if isinstance(data, list | tuple) else [data]


def _zeros(value: Any) -> Any:
    """Return ``value`` with zeros in place of symbolic numbers, of the same type."""
    if type(value) is SymbolicArray:
        whole = all(type(each) is SymbolicInt or isinstance(each, int) for each in value.flat)
        return np.zeros(value.shape, dtype=np.int64 if whole else np.float64)
    if type(value) in (list, tuple):
        return type(value)(map(_zeros, value))
    return 0 if type(value) is SymbolicInt else 0.0 if type(value) is SymbolicFloat else value


# Reshaped


aten = torch.ops.aten
_PLAIN = {
    aten.transpose_: aten.transpose,
    aten.t_: aten.t,
    aten.squeeze_: aten.squeeze,
    aten.unsqueeze_: aten.unsqueeze,
}
_OTHERS = (aten.as_strided_, aten.resize_, aten.resize_as_, aten.set_)


def _reshaping(in_place: Any, function: Any) -> Callable[..., Any]:
    """Return the handler (implementation for filled tensors) of ``in_place``, an in-place change of shape.

    ``function`` is the function that returns a view with the new shape, such as ``transpose``.
    """

    def handler(tensor: Any, *args: Any) -> Any:
        for result in tensor.views:
            if (view := result()) is not None:
                stored(view)  # a view stays what it is
        places = function(torch.arange(tensor.numel()).reshape(tensor.shape), *args).numpy()
        if is_stored(tensor):
            tensor.settled = function(stored(tensor), *args)
        elif tensor.viewed is None:
            tensor.put_in_shape(picked(tensor, places))
        else:
            base, again, before = tensor.viewed
            tensor.viewed = View(base, partial(_after, again, function, args), before.ravel()[places])
            tensor.put_in_shape(picked(base, tensor.viewed.places))
        with no_dispatch():
            in_place(tensor, *args)
        return tensor

    return handler


def _after(again: Callable[..., torch.Tensor], function: Any, args: Any, base: torch.Tensor) -> Any:
    return function(again(base), *args)


def _refused(*_: Any) -> Any:
    raise NeedsValue("write-not-followed", "the shape of a tensor that holds random numbers is changed in place")


HANDLERS.update({in_place: _reshaping(in_place, function) for in_place, function in _PLAIN.items()})
HANDLERS.update(dict.fromkeys(_OTHERS, _refused))
