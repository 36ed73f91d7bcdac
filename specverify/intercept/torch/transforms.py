"""What torch makes of a function, run as the function is written: compiled, scripted, mapped over rows.

Machine code draws where nobody answers. The Python it was made of is kept by torch, and is what is examined: that the
compiler keeps what it means is not looked at. A trace is another thing: it is one path of the function, and is left as
it is. ``vmap`` is a loop over the rows; ``randomness="same"`` begins each row where the first one began.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch._functorch import apis as _apis
from torch._functorch import vmap as functorch
from torch.utils import _pytree

from specverify.intercept.run import RUNS

apis: Any = _apis
_SCRIPTED: Any = torch.jit.ScriptFunction
_REAL_CALL = _SCRIPTED.__call__
_REAL_VMAP = apis.vmap_impl


@contextmanager
def as_written() -> Iterator[None]:
    """Run the functions that others were made of inside the block."""
    compiled = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
    apis.vmap_impl, _SCRIPTED.__call__ = _rows, _original
    try:
        with compiled:
            yield
    finally:
        apis.vmap_impl, _SCRIPTED.__call__ = _REAL_VMAP, _REAL_CALL


def _original(scripted: Any, *args: Any, **kwargs: Any) -> Any:
    of_source = getattr(scripted, "__name__", "") == "ScriptFunction"
    function = getattr(scripted, "_torchdynamo_inline", None) if of_source else None
    return (_REAL_CALL.__get__(scripted) if function is None else function)(*args, **kwargs)


def refuse_if_none_allowed() -> None:
    """Raise what torch does where a function is mapped that must not draw."""
    if RUNS.mapped_without_draws:
        raise RuntimeError("vmap: called random operation while in randomness error mode")


def _rows(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return what ``vmap`` does, row by row."""
    number, dims, flat, spec = functorch._process_batched_inputs(in_dims, args, func)  # noqa: SLF001 - as vmap has it
    begin, found = torch.get_rng_state(), []
    for row in range(number):
        if randomness == "same" and row:
            torch.set_rng_state(begin)
        mine = [each if dim is None else each.select(dim, row) for each, dim in zip(flat, dims, strict=True)]
        with _drawing(allowed=randomness != "error"):
            found.append(func(*_pytree.tree_unflatten(mine, spec), **kwargs))
    leaves = [_pytree.tree_flatten(each)[0] for each in found]
    shape = _pytree.tree_flatten(found[0])[1]
    outs = _pytree._broadcast_to_and_flatten(out_dims, shape)  # noqa: SLF001 - as vmap has it
    joined = [torch.stack(each, dim) for each, dim in zip(zip(*leaves, strict=True), outs or (), strict=True)]
    return _pytree.tree_unflatten(joined, shape)


@contextmanager
def _drawing(*, allowed: bool) -> Iterator[None]:
    if allowed:
        yield
        return
    RUNS.mapped_without_draws += 1
    try:
        yield
    finally:
        RUNS.mapped_without_draws -= 1
