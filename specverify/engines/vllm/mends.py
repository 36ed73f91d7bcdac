"""Faults of the CPU build alone, each with its mend: code that GPUs do not run stands in the way of code that they do.

A row whose name says ``mended`` is examined with all of them in place, and so judges what all platforms share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NamedTuple

from specverify.engines.vllm.kernels import NOTHING, STATEMENTS


class Mend(NamedTuple):
    """One fault of the CPU build, and what takes the place of the code that has it."""

    cause: str
    where: str
    """A kernel as the dispatcher names it, or a function as ``module.name``."""
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    """``make(theirs)`` -> ours."""


def _expanded(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that writes into the tensor it is given, also if that is no int64."""
    return STATEMENTS[EXPAND]


def _padding_rejected(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that rejects drafts of -1, which pad; the stand-in reads what is before the row instead."""
    ours = STATEMENTS[RANDOM]

    def launch(*given: Any) -> None:
        drafts = given[2]
        (ours if bool((drafts == NOTHING).any()) else theirs)(*given)

    return launch


def _of_rows(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return top-k that takes a step without any draft, such as one of prompts alone."""

    @wraps(theirs)
    def apply(logits: Any, k: Any) -> Any:
        return theirs(logits, k) if len(logits) else logits

    return apply


EXPAND: Final = "vllm.v1.sample.rejection_sampler.expand_kernel"
RANDOM: Final = "vllm.v1.sample.rejection_sampler.rejection_random_sample_kernel"
TOP_K: Final = "vllm.v1.sample.ops.topk_topp_sampler.apply_top_k_only"
MENDS: Final = (
    Mend("temperature, top-k and top-p of drafted tokens are memory that nothing was written to", EXPAND, _expanded),
    Mend("top-k raises in a step without drafts", TOP_K, _of_rows),
    Mend("a draft of -1, which pads, is looked up and may be accepted", RANDOM, _padding_rejected),
)


@contextmanager
def mended(mends: tuple[Mend, ...] = MENDS) -> Iterator[None]:
    """Have these in place while the block lasts."""
    restored = [_put(mend.where, mend.make) for mend in mends]
    try:
        yield
    finally:
        for restore in reversed(restored):
            restore()


@contextmanager
def in_place_of(kernels: Mapping[str, Callable[..., None]]) -> Iterator[None]:
    """Have these kernels launched while the block lasts."""
    restored = [_put(name, lambda theirs, ours=ours: ours) for name, ours in kernels.items()]  # type: ignore[misc]
    try:
        yield
    finally:
        for restore in reversed(restored):
            restore()


def _put(where: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    """Put ``make(theirs)`` in the place of a function or of a stand-in, whoever holds it; return what undoes it."""
    from vllm.triton_utils.dispatcher import KernelOverride, _resolve_kernel  # noqa: PLC0415 - after its environment

    owner, name = _resolve_kernel(where)
    held = getattr(owner, name)
    if isinstance(held, KernelOverride):
        theirs, by_name = held._impl, held._forward_by_name  # noqa: SLF001 - the wrapper is held in several modules
        held._impl, held._forward_by_name = make(theirs), False  # noqa: SLF001

        def restore() -> None:
            held._impl, held._forward_by_name = theirs, by_name  # noqa: SLF001

        return restore
    setattr(owner, name, make(held))
    return lambda: setattr(owner, name, held)
