"""Interception of all loaded libraries together, and detection of draws that are not intercepted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from threading import get_ident
from typing import Any

from specverify.intercept.caller import called_by_foreign, caller
from specverify.intercept.cpython.aliases import aliases_answered
from specverify.intercept.cpython.patches import threads_enter, threads_replaced
from specverify.intercept.distributions import Boundary, Forced, boundary_of
from specverify.intercept.interpreters import Coupled, Gathered
from specverify.intercept.numpy import numpy_answered_by, numpy_replaced
from specverify.intercept.python import math_answers, random_answered_by, random_replaced
from specverify.intercept.recorder import Recorder, records_in
from specverify.intercept.refusals import NeedsValue, open_block
from specverify.intercept.run import Block, mode_with, nobody_answers
from specverify.intercept.symbolic.arrays import lookups_at_large
from specverify.intercept.symbolic.buffers import arrays_answer
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.reference import Draws, Pmf, Site

AT_ONCE = "several threads draw, in an order that differs from run to run: let one end before another begins"
_WANTS = ("SymbolicFloat", "SymbolicInt", "OutcomeNumber", "SeedSequence expects int", "dtype('O')", "holds references",
          "array of references",
          "format O not supported", "Object of type float is not", "Object of type int is not",
          "could not convert string to float: '?'", "its data is not allocated yet")  # fmt: skip
"""Parts of error messages of functions that accept only a float, an int, or an array of them."""


@contextmanager
def answered_everywhere(draws: Draws, forced_uniform: Forced = None) -> Iterator[None]:
    """Context manager: ``draws`` chooses the results of the random calls of all imported libraries, in all threads.

    The libraries are ``random``, NumPy, torch and JAX. ``forced_uniform`` 0 or 1 gives every uniform the value 0 or the
    largest float below 1; a ``Boundary`` chooses values. If ``draws`` is a ``Recorder``, the libraries draw their own
    numbers, which are recorded. Raises ``NeedsValue`` at the end if a draw was not intercepted, if torch or JAX was
    imported in the block, or if the program caught a refusal.
    """
    if isinstance(draws, Recorder):
        with _recorded(draws):
            yield
        return
    boundary = boundary_of(forced_uniform)
    torch, jax = ("torch" in sys.modules, "jax" in sys.modules)
    if torch:
        import sympy  # noqa: F401, PLC0415 - torch imports it in the middle of a call, and it calls random as it loads
    with (
        open_block() as block,
        mode_with(coupled=draws) if isinstance(draws, Coupled | Gathered) else nullcontext(),
        nullcontext(Unanswered(draws, block)) as asked,
        random_answered_by(asked, boundary),
        numpy_answered_by(asked, boundary),
        aliases_answered(),
        _torch_answered_by(asked, boundary) if torch else nullcontext(nullcontext()) as mode,
        _jax_answered_by(asked, boundary) if jax else nullcontext(nullcontext) as trace,
        threads_enter(block, lambda: _both(mode, trace())),
        math_answers(),
        lookups_at_large(),
        arrays_answer(),
    ):
        try:
            yield
        except Exception as error:
            if any(word in str(error) for word in _WANTS) and not isinstance(error, NeedsValue):
                operation, place = called_by_foreign(error.__traceback__), caller(error.__traceback__)
                reason = str(error) if operation else f"{error}: compare the random number itself ({place})"
                raise NeedsValue("float-needed", reason, operation, place) from error
            raise
        for library, answered in (("torch", torch), ("jax", jax)):
            if not answered and library in sys.modules:
                raise NeedsValue(
                    "imported-late",
                    f"{library} was imported in the middle of a run, after it had begun unanswered: import it before",
                )


@contextmanager
def libraries_replaced() -> Iterator[None]:
    """Context manager that installs the patches of ``answered_everywhere`` once for all its uses in the ``with`` block.

    This saves a quarter of the time of a short call. Between the uses, the libraries draw their own numbers.
    """
    with (
        random_replaced(),
        numpy_replaced(),
        aliases_answered(),
        math_answers(),
        threads_replaced(),
        import_module("specverify.intercept.torch.calls").torch_replaced() if "torch" in sys.modules else nullcontext(),
    ):
        yield


class Unanswered:
    """A wrapper around a source of draws that suspends interception while the source chooses an outcome.

    So random calls that the source itself makes are not intercepted.
    """

    def __init__(self, draws: Draws, block: Block | None = None) -> None:
        """Wrap ``draws``, which chooses the outcome of every draw.

        ``block`` is the record of one intercepted run of the program. A draw after the end of this run is refused. With
        None no draw is refused.
        """
        self._draws, self._block = draws, block
        self._threads: set[int] = set()
        """The threads that have drawn."""

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw from ``pmf``, chosen by the wrapped ``draws`` with interception suspended.

        ``site`` names the call in the record of draws. Raises ``NotAFunctionOfItsDraws`` if the intercepted run of the
        program is already over: then the program has kept a random number of this run, and uses the number in a later
        run.
        """
        if self._block is not None and self._block.over:
            drawn = " at ".join(map(str, site[:2]))
            raise NotAFunctionOfItsDraws(f"a random number that an earlier call drew ({drawn}) decides in a later one")
        self._threads.add(get_ident())
        with nobody_answers():
            try:
                return self._draws.categorical(pmf, site)
            except NotAFunctionOfItsDraws as fault:
                raise NotAFunctionOfItsDraws(f"{fault}: {AT_ONCE}") if len(self._threads) > 1 else fault from None


@contextmanager
def _recorded(recorder: Recorder) -> Iterator[None]:
    """Context manager in which the program draws its own random numbers, which ``recorder`` records."""
    if "jax" in sys.modules:
        with suppress(ImportError, AttributeError):  # another version
            import_module("specverify.intercept.jax.calls")
    recording: Any = nullcontext()
    written: Any = nullcontext()
    if "torch" in sys.modules:
        recording = import_module("specverify.intercept.torch.generators").Recording(recorder)
        written = import_module("specverify.intercept.torch.calls").as_written()
    with (
        open_block() as block,
        records_in(recorder),
        random_replaced(),
        numpy_replaced(),
        aliases_answered(),
        threads_enter(block, lambda: recording),
        written,
        recording,
    ):
        yield


@contextmanager
def _both(one: AbstractContextManager[Any], other: AbstractContextManager[Any]) -> Iterator[None]:
    with one, other:
        yield


def _jax_answered_by(
    draws: Draws, forced_uniform: Boundary | None
) -> AbstractContextManager[Callable[[], AbstractContextManager[Any]]]:
    """Context manager in which ``draws`` or ``forced_uniform`` chooses the results of JAX's random calls.

    Yields a function; each other thread must enter the context manager that this function returns, so that its calls
    are intercepted too. Does nothing in a version of JAX that is not supported.
    """
    try:
        answered_by = import_module("specverify.intercept.jax.calls").answered_by
    except (ImportError, AttributeError):  # another version, whose draws are not answered: the probe tells of them
        return nullcontext(nullcontext)
    answered: AbstractContextManager[Callable[[], AbstractContextManager[Any]]] = answered_by(draws, forced_uniform)
    return answered


@contextmanager
def _torch_answered_by(draws: Draws, forced_uniform: Boundary | None) -> Iterator[AbstractContextManager[Any]]:
    """Context manager in which ``draws`` or ``forced_uniform`` chooses the results of torch's random calls.

    Yields the context manager that each other thread must enter, so that its calls are intercepted too. Meanwhile torch
    computes with a single thread.
    """
    answered_by = import_module("specverify.intercept.torch.calls").answered_by
    library = sys.modules["torch"]
    threads = library.get_num_threads()
    if threads > 1:
        library.set_num_threads(1)
    try:
        with answered_by(draws, forced_uniform) as mode:
            yield mode
    finally:
        if threads > 1:
            library.set_num_threads(threads)
