"""Fixes of faults that only vLLM's CPU build has, so that code shared with GPUs can be examined.

A setting whose configuration is ``mended`` is examined with all fixes in place. It tests the code that all platforms
share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NamedTuple

from specverify.engines.vllm.kernel_statements import NOTHING, STATEMENTS


class Mend(NamedTuple):
    """One fault of the CPU build, in words (``cause``), and the code that replaces the faulty code."""

    cause: str
    where: str
    """The name of a kernel in the dispatcher, or of a function as ``module.name``."""
    make: Callable[[Callable[..., Any]], Callable[..., Any]]
    """``make(theirs)`` returns the replacement of the function ``theirs``."""


def _expanded(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that also writes into an output tensor that is not int64; ``theirs`` writes only int64."""
    return STATEMENTS[EXPAND]


def _padding_rejected(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel like ``theirs`` that rejects the padding token -1.

    For this token, ``theirs`` reads a probability outside the row: the entry before it.
    """
    ours = STATEMENTS[RANDOM]

    def launch(*given: Any) -> None:
        drafts = given[2]
        (ours if bool((drafts == NOTHING).any()) else theirs)(*given)

    return launch


def _of_rows(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like ``theirs``, a top-k function, that leaves logits unchanged if they have no rows."""

    @wraps(theirs)
    def apply(logits: Any, k: Any) -> Any:
        return theirs(logits, k) if len(logits) else logits

    return apply


def _states_kept(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like ``theirs``, a sampling step, that does not advance generators for discarded samples."""

    @wraps(theirs)
    def sample(runner: Any, *given: Any, **more: Any) -> Any:
        batch = runner.input_batch
        discarded = runner.discard_request_mask.np[: batch.num_reqs].nonzero()[0].tolist()
        states = {i: batch.generators[i].get_state() for i in discarded if i in batch.generators}
        done = theirs(runner, *given, **more)
        for i, state in states.items():
            batch.generators[i].set_state(state)
        return done

    return sample


def _offsets_left(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function like ``theirs``, a bookkeeping step, that does not rewind generators.

    ``theirs`` rewinds a generator by its offset, which a generator on the CPU does not have.
    """

    @wraps(theirs)
    def bookkeep(runner: Any, *given: Any, **more: Any) -> Any:
        batch, held = runner.input_batch, runner.input_batch.generators
        batch.generators = {}
        try:
            return theirs(runner, *given, **more)
        finally:
            batch.generators = held

    return bookkeep


EXPAND: Final = "vllm.v1.sample.rejection_sampler.expand_kernel"
RANDOM: Final = "vllm.v1.sample.rejection_sampler.rejection_random_sample_kernel"
TOP_K: Final = "vllm.v1.sample.ops.topk_topp_sampler.apply_top_k_only"
SAMPLE: Final = "vllm.v1.worker.gpu_model_runner.GPUModelRunner._sample"
BOOKKEEPING: Final = "vllm.v1.worker.gpu_model_runner.GPUModelRunner._bookkeeping_sync"
OFFSETS: Final = "a request with a seed whose prompt is read in several steps raises"
MENDS: Final = (
    Mend("temperature, top-k and top-p of drafted tokens are memory that nothing was written to", EXPAND, _expanded),
    Mend("top-k raises in a step without drafts", TOP_K, _of_rows),
    Mend("a draft of -1, which is padding, is looked up and may be accepted", RANDOM, _padding_rejected),
    Mend(OFFSETS, SAMPLE, _states_kept),
    Mend(OFFSETS, BOOKKEEPING, _offsets_left),
)


@contextmanager
def mended(mends: tuple[Mend, ...] = MENDS) -> Iterator[None]:
    """In the ``with`` block, replace the faulty code of each of ``mends`` by its fix."""
    restored = [_put(mend.where, mend.make) for mend in mends]
    try:
        yield
    finally:
        for restore in reversed(restored):
            restore()


@contextmanager
def in_place_of(kernels: Mapping[str, Callable[..., None]]) -> Iterator[None]:
    """In the ``with`` block, replace kernels of vLLM; ``kernels`` maps the name of a kernel to its replacement."""
    with around({name: lambda theirs, ours=ours: ours for name, ours in kernels.items()}):  # type: ignore[misc]
        yield


@contextmanager
def around(makes: Mapping[str, Callable[[Callable[..., Any]], Callable[..., Any]]]) -> Iterator[None]:
    """In the ``with`` block, replace kernels of vLLM by functions that may call the original.

    ``makes`` maps the name of a kernel to a function that returns the replacement, given the original.
    """
    restored = [_put(name, make) for name, make in makes.items()]
    try:
        yield
    finally:
        for restore in reversed(restored):
            restore()


def _put(where: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Callable[[], None]:
    """Replace a kernel or a function of vLLM by ``make(theirs)``, where ``theirs`` is the original.

    ``where`` is the name of the kernel in the dispatcher, or ``module.name``. Returns a function that undoes the
    replacement.
    """
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
