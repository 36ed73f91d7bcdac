"""Ordinary tensors that were filled with random numbers in place, and the lazy ones that stand for them.

A storage is what is filled: whoever shares it, by a view made before or after, by ``detach`` or ``.data``, with or
without gradients or in inference mode, sees the numbers. What reads the memory itself, such as a scripted function, is
not seen. It finds noise there that is another one in every run, so that a replay tells.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import torch
from numpy import array, broadcast_to  # by name: inside a block NumPy has others

from specverify.intercept.caller import caller
from specverify.intercept.run import PROCESS
from specverify.intercept.torch.lazy_tensor import (
    LazyTensor,
    View,
    elements_of,
    in_all,
    look_at,
    overwrite,
    view_of,
)
from specverify.intercept.torch.streams import nobody_answers
from specverify.intercept.unknowns.deferred import is_open, known
from specverify.intercept.unknowns.many import Many, as_many
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.intercept.unknowns.wide import MANY, large

_NO_TENSORS = frozenset({int, float, bool, str, slice, type(None), type(...), torch.dtype})
_CONTAINERS = frozenset({list, tuple})


class Filled:
    """The storages that were filled in one run."""

    def __init__(self) -> None:
        """Nothing was filled."""
        self._whole: dict[int, tuple[torch.Tensor, LazyTensor]] = {}
        """By storage: a tensor that keeps it, and the lazy tensor of all its elements."""
        self._standing: dict[int, tuple[torch.Tensor, LazyTensor]] = {}

    @property
    def anything(self) -> bool:
        """Whether something was filled."""
        return bool(self._whole)

    def fill(self, tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Let ``values`` stand in ``tensor``, which was filled in place, and return what stands for it.

        Raises ``NeedsValue`` for values of another shape, and for what has become an ordinary tensor since.
        """
        lazy = isinstance(tensor, LazyTensor)
        if not lazy and not isinstance(values, LazyTensor):
            return tensor.copy_(values)
        if tensor.shape != values.shape:
            raise NeedsValue(
                "write-not-followed", f"numbers of the shape {tuple(values.shape)} are drawn into {tuple(tensor.shape)}"
            )
        if not lazy:
            self._stand_for(tensor)
            _make_noise(tensor)
        standing: LazyTensor = self.standing_for(tensor)
        content = values.content if isinstance(values, LazyTensor) else None
        overwrite(standing, content if isinstance(content, Many) else elements_of(values))
        return standing

    def put(self, tensor: torch.Tensor, index: Any, values: Any) -> torch.Tensor:
        """Let outcomes that nobody has looked at, or what is beside them, stand in a tensor where ``index`` says."""
        if not isinstance(tensor, LazyTensor):
            self._stand_for(tensor)
        standing: LazyTensor = self.standing_for(tensor)
        places = torch.arange(tensor.numel()).reshape(tensor.shape)[in_all(look_at, index)].numpy()
        here = View(standing, lambda base: base[index], places)
        overwrite(view_of(here), spread(elements_of(torch.as_tensor(values).to(tensor.dtype)), places.shape))
        return standing

    def _stand_for(self, tensor: torch.Tensor) -> None:
        """Let a lazy tensor stand for the storage of an ordinary one from now on."""
        if (key := _storage(tensor)) not in self._whole:
            whole = tensor.detach().as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
            together = large(whole.numel(), MANY) and whole.dtype.is_floating_point
            content = as_many(whole.double().cpu().numpy()) if together else elements_of(whole)
            self._whole[key] = (whole, LazyTensor(content, whole.dtype, whole.device))

    def forget(self) -> None:
        """Let go of them at the end of a run: arrays of random numbers hide from Python what holds whom in a ring."""
        self._whole.clear()
        self._standing.clear()

    def settle(self) -> None:
        """Write what was looked at into the memory itself: it is read there when the calls are no longer answered.

        Who overwrites it then is seen by all who hold it.
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
        """Return what stands for a value: for a filled tensor, also inside containers, the lazy one."""
        kind = type(value)
        if kind in _NO_TENSORS or not self._whole:
            return value
        if kind in _CONTAINERS:
            found = [item if type(item) in _NO_TENSORS else self.standing_for(item) for item in value]
            return found if kind is list else tuple(found)
        if isinstance(value, torch.Tensor):
            return self._lazy(value)
        if kind is dict:
            return {name: self.standing_for(item) for name, item in value.items()} if value else value
        return value

    def reshaped(self, func: Any, tensor: torch.Tensor, *args: Any) -> bool:
        """Change the shape of a tensor that was filled and of what stands for it; return whether it was filled."""
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
        found = None if isinstance(tensor, LazyTensor) else self._whole.get(_storage(tensor))
        if found is None:
            return tensor
        _, whole = found
        if tensor.dtype != whole.dtype:
            raise NeedsValue("few-bits", f"random numbers of {whole.dtype} are read as {tensor.dtype} at {caller()}")
        shape, strides, offset = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        places = torch.arange(whole.numel()).as_strided(shape, strides, offset).numpy()
        made = view_of(View(whole, lambda base: base.as_strided(shape, strides, offset), places))
        self._standing[id(tensor)] = (tensor, made)
        return made


def spread(elements: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return elements in the shape that they are written to; torch leaves out leading dimensions of one."""
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
    """Return what two tensors have in common that share their storage; 0 for one that has none."""
    try:
        return int(tensor.untyped_storage()._cdata)  # noqa: SLF001 - torch compares storages by it
    except (NotImplementedError, RuntimeError):
        return 0
