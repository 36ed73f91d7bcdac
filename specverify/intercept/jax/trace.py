"""The JAX trace that is current while code is intercepted: it receives every primitive that the code applies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import core, dtypes

from specverify.intercept.cpython.patches import asarray
from specverify.intercept.jax.arrays import SymbolicTracer, constant


class AnsweringTrace(core.Trace):  # type: ignore[misc]  # the types of JAX are not checked
    """A JAX trace that gets every primitive, from ``jax.numpy`` line by line, from ``vmap``, and from ``jit``."""

    def __init__(self, compute: Callable[[Any, list[Any], dict[str, Any]], list[Any]]) -> None:
        """``compute(primitive, operands, parameters)`` returns the results of a primitive."""
        super().__init__()
        self.compute = compute

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any], /) -> Any:
        """Return the result of ``primitive`` on the operands ``tracers``: an array, or a list of several.

        ``params`` are the parameters of the primitive.
        """
        result = self.compute(primitive, list(tracers), params)
        return result if primitive.multiple_results else result[0]

    def process_custom_jvp_call(self, _primitive: Any, fun: Any, _jvp: Any, tracers: Sequence[Any], /, **_: Any) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace; derivatives are not needed."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self, _primitive: Any, fun: Any, _fwd: Any, _bwd: Any, tracers: Sequence[Any], /, **_: Any
    ) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace; derivatives are not needed."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_call(self, _primitive: Any, fun: Any, tracers: Sequence[Any], _params: Any, /) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def stage_value(self, val: Any) -> Any:
        """Return ``val`` unchanged if it is an array; return a number as a JAX array."""
        if isinstance(val, (SymbolicTracer, jax.Array)):
            return val
        if isinstance(val, np.ndarray) and dtypes.canonicalize_dtype(val.dtype) == val.dtype:
            return constant(asarray(val), weak_type=getattr(val, "weak_type", False))
        return jax.numpy.asarray(val)
