"""NumPy's random calls, answered by ``draws``: unmodified NumPy code becomes a program that can be enumerated.

    with numpy_answered_by(draws):
        sample(rng=np.random.default_rng(0))

Answered are the functions of ``np.random`` and the methods of every ``Generator`` and ``RandomState``, whenever and
wherever it was made: their types are given other methods inside the block (``native_types``). A method not known here
raises ``NeedsValue`` naming it. A method that was bound before the block is exchanged where it is kept: see
``aliases``. The real generators are moved on and given back, so two of one state are one stream: see ``answers``. Sites
name the generator and function, and the file and line that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from specverify.intercept.answers import Answers, answering, answers_of
from specverify.intercept.boundary import Forced
from specverify.intercept.native_types import methods_replaced, once, own_methods, replaced
from specverify.intercept.numpy.generator import LAWS, REAL, NumpyGenerator
from specverify.intercept.recorder import Recorder
from specverify.intercept.refusals import in_housekeeping
from specverify.intercept.symbolic.finite import seed_name
from specverify.intercept.symbolic.numbers import settled
from specverify.intercept.symbolic.uniform import refusal
from specverify.reference import Draws

LIBRARY = "numpy"
OWNER: Any = np.random.mtrand._rand  # noqa: SLF001 - np.random's functions draw from it
BIT_GENERATORS = (np.random.BitGenerator, np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox,
                  np.random.SFC64)  # fmt: skip
HARMLESS = {"bit_generator", "spawn", "_bit_generator", "_poisson_lam_max"}
"""What draws nothing."""
SETS_STATE = {"seed", "set_state", "get_state"}
"""What sets where a stream stands, or tells it: then it stands where it is taken to begin."""


def _answered(kind: type, function: str) -> Callable[..., Any]:
    real = REAL[kind][function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = answering(LIBRARY)
        if answers is None:
            return real(self, *args, **kwargs)
        if in_housekeeping():
            return answers.set_by_program(self, lambda: real(self, *args, **kwargs))
        if isinstance(answers, Recorder):
            return answers.call(LIBRARY, function, real, self, args, kwargs)
        generator = NumpyGenerator(answers, self)
        law = LAWS.get(function)
        answer = getattr(generator, function, None) if law is None else partial(law, generator)
        return generator.refused(function) if answer is None else answer(*args, **kwargs)

    return method


def _sets_state(kind: type, function: str) -> Callable[..., Any]:
    real = REAL[kind][function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        answers = answering(LIBRARY)
        if answers is None:
            return real(self, *args, **kwargs)
        if function == "seed":
            name = answers.name(self, "np.random.RandomState").split(" ")[0]
            answers.call_it(self, f"{name} seed({seed_name(args[0] if args else kwargs.get('seed'))})")
        return answers.set_by_program(self, lambda: real(self, *args, **kwargs))

    return method


def _methods(kind: type) -> dict[str, Callable[..., Any]]:
    drawing = [name for name in REAL[kind] if not name.startswith("_") and name not in HARMLESS | SETS_STATE]
    return {name: _answered(kind, name) for name in drawing} | {
        name: _sets_state(kind, name) for name in REAL[kind] if name in SETS_STATE
    }


METHODS: dict[type, dict[str, Callable[..., Any]]] = {kind: _methods(kind) for kind in REAL}
"""What stands for the methods of the library inside a block."""


def _raw(kind: type, function: str) -> Callable[..., Any]:
    real = own_methods(kind)[function]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if answering(LIBRARY) is not None:
            raise refusal(
                "bits-of-generator",
                f"{kind.__name__}.{function} gives the bits of a generator, which cannot be enumerated",
            )
        return real(self, *args, **kwargs)

    return method


def _moves(kind: type, function: str) -> Any:
    real = own_methods(kind)[function]

    def moving(self: Any, change: Callable[[], Any]) -> Any:
        answers = answering(LIBRARY)
        return change() if answers is None else answers.set_by_program(self, change)

    if not callable(real):  # the state as an attribute
        return property(real.__get__, lambda self, value: moving(self, lambda: real.__set__(self, value)))
    return lambda self, *args, **kwargs: moving(self, lambda: real(self, *args, **kwargs))


def _native(kind: type, attribute: str) -> Any:
    """Return an attribute by which native code draws: nobody would see it."""
    real = own_methods(kind)[attribute]

    def look(self: Any) -> Any:
        if answering(LIBRARY) is not None:
            raise refusal(
                "bits-of-generator", f"{kind.__name__}.{attribute} lets native code draw, which cannot be answered"
            )
        return real.__get__(self)

    return property(look)


_WAYS = {"random_raw": _raw, "ctypes": _native, "cffi": _native, "state": _moves, "advance": _moves, "jumped": _moves}
_BITS = {
    kind: {name: way(kind, name) for name, way in _WAYS.items() if name in own_methods(kind)} for kind in BIT_GENERATORS
}


def _module() -> dict[str, Any]:
    names = [name for name in METHODS[np.random.RandomState] if hasattr(np.random, name)]
    result = {name: MethodType(METHODS[np.random.RandomState][name], OWNER) for name in names}
    more = {"ranf": result["random_sample"], "sample": result["random_sample"], "set_bit_generator": _exchanged}
    return result | {name: method for name, method in more.items() if hasattr(np.random, name)}


def _exchanged(bits: Any) -> None:
    raise refusal(
        "bits-of-generator", "np.random.set_bit_generator exchanges the generator that all others draw from as well"
    )


MODULE = _module()


@once
@contextmanager
def numpy_replaced() -> Iterator[None]:
    """Let the methods ask who answers them inside the block; while nobody does, the library's own are called."""
    library_default_rng = np.random.default_rng

    def default_rng(seed: Any = None) -> Any:
        seed = settled(seed)
        made = library_default_rng(seed)
        answers = answering(LIBRARY)
        if answers is not None and made is not seed:
            answers.call_it(made, f"np.random.default_rng({seed_name(seed)})")
        return made

    with ExitStack() as stack:
        for kind, methods in (METHODS | _BITS).items():
            stack.enter_context(methods_replaced(kind, methods))
        stack.enter_context(replaced(np.random, MODULE | {"default_rng": default_rng}))
        stack.enter_context(replaced(np.random.mtrand, MODULE))
        yield


@contextmanager
def numpy_answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[None]:
    """Answer NumPy's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it).
    """
    with answers_of(LIBRARY, Answers(draws, forced_uniform, OWNER, "np.random")), numpy_replaced():
        yield
