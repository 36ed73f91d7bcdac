"""All random calls of the libraries that are loaded, answered together."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from reference import Draws
from specverify.intercept.boundary import Boundary, boundary_of
from specverify.intercept.numpy_calls import numpy_answered_by
from specverify.intercept.random_calls import random_answered_by


@contextmanager
def answered_everywhere(draws: Draws, forced_uniform: float | Boundary | None = None) -> Iterator[None]:
    """Answer the random calls of ``random``, NumPy and, if it has been imported, torch.

    ``forced_uniform`` gives every uniform that value instead: 0, or 1 for the largest float below it. A ``Boundary``
    tells which.
    """
    forced_uniform = boundary_of(forced_uniform)
    if "torch" in sys.modules:
        import sympy  # noqa: F401, PLC0415 - torch imports it in the middle of a call, and it calls random as it loads
    with ExitStack() as stack:
        stack.enter_context(random_answered_by(draws, forced_uniform))
        stack.enter_context(numpy_answered_by(draws, forced_uniform))
        if "torch" in sys.modules:
            from specverify.intercept.torch_calls import answered_by  # noqa: PLC0415 - torch is there already

            stack.enter_context(answered_by(draws, forced_uniform))
        yield
