"""Record the draws of torch in a plain run (one in which torch draws its own numbers), at its dispatcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from specverify.intercept.caller import caller
from specverify.intercept.recorded_numbers import ROWS
from specverify.intercept.recorder import Record, Recorder


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]  # as torch has it
    """A torch dispatch mode that runs every operation unchanged and records those that draw."""

    def __init__(self, recorder: Recorder) -> None:
        """Record into ``recorder``."""
        super().__init__()  # type: ignore[no-untyped-call]  # likewise
        self._recorder = recorder

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: torch would otherwise load the compiler at the first operation."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the result of the operation, after recording it if it draws."""
        named = dict(kwargs or {})
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **named)
        given, name = tuple(_kept(item) for item in args), func.overloadpacket.__name__
        before = None if ("torch", name) in ROWS else torch.get_rng_state()
        result = func(*args, **named)
        if before is not None and torch.equal(before, torch.get_rng_state()):  # attention without dropout, say
            return result
        if isinstance(result, torch.Tensor) and result.is_meta:  # it has a shape and no numbers
            return result
        record = Record("torch", name, given, named, _kept(result), caller())
        values = self._recorder.given_for(record)
        if values is not None:
            result.copy_(torch.as_tensor(values).reshape(result.shape))
            record = record._replace(result=_kept(result))
        self._recorder.keep(record)
        return result


def _kept(item: Any) -> Any:
    return item.detach().clone() if isinstance(item, torch.Tensor) else item
