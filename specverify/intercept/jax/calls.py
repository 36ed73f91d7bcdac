"""JAX's random calls, answered by ``draws``: unmodified JAX code, under ``jit`` or not, becomes a program to enumerate.

    with answered_by(draws):
        verify(p, q, draft_tokens, key)

Every random number of JAX is made of ``random_bits``, and every primitive comes to the trace that is the current one
inside the block (``evaluation``). Bits of one key are one draw (``keys``). A primitive that draws otherwise raises
``NeedsValue`` naming it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jax._src import core, sharding_impls

from specverify.intercept.boundary import Forced
from specverify.intercept.caller import caller
from specverify.intercept.jax.evaluation import TRACE
from specverify.intercept.jax.draws import JaxDraws
from specverify.intercept.native_types import once, replaced
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import RUNS
from specverify.reference import Draws


@contextmanager
def answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[Callable[[], Any]]:
    """Answer JAX's random calls by ``draws`` inside the block; yields what another thread enters.

    ``forced_uniform`` gives every uniform that value instead: see ``boundary``.
    """
    RUNS.jax.append(JaxDraws(draws, forced_uniform))
    try:
        with meshes_set(), core.set_current_trace(TRACE):
            yield lambda: core.set_current_trace(TRACE)
    except NeedsValue as refusal:
        raise refusal.at(caller(refusal.__traceback__)) from None
    finally:
        RUNS.jax.pop()


def _is_outside_of_jit() -> bool:
    """Return what ``trace_state_clean`` does; who sets a mesh in a block is outside of any function that is traced."""
    asks = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
    ours = core.trace_ctx.trace is TRACE and asks == sharding_impls.__name__
    return ours or bool(_TRACE_STATE_CLEAN())


_TRACE_STATE_CLEAN = core.trace_state_clean


@once
@contextmanager
def meshes_set() -> Iterator[None]:
    """Let ``jax.set_mesh`` be used inside the block."""
    with replaced(core, {"trace_state_clean": _is_outside_of_jit}):
        yield


def fresh_key() -> Any:
    """Return a key for the next call of the run that is answered; None if there is no such run."""
    return RUNS.jax[-1].key() if RUNS.jax else None
