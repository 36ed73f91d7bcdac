"""Functions that take a random generator or a JAX key: each call gets a new one.

An argument takes a generator if it is required and either its annotation is a class of generators, or its name has the
word ``rng``, ``generator`` or ``gen``. The library of an argument without annotation follows from the code: torch if a
call passes ``generator=``, else NumPy if the function or its module uses it, else ``random``. A required argument
``key``, ``rng_key`` or ``prng_key`` of a function whose module imports jax, or ``rng`` of a function whose code names
jax, takes a key: another one in every call and every run, as in an engine that splits its key before each round.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, get_args

import numpy as np

from specverify.base.callables import signature_of, with_first, with_parameters
from specverify.subjects.libraries import imported_beside, names_library, passes_keyword

KEYS = ("key", "rng", "rng_key", "prng_key")
WORDS = frozenset({"rng", "generator", "gen"})
SEEDS = 2**31
Maker = Callable[[int | None], Any]
"""``make(seed)`` returns a new generator; with None, its seed is random."""


def with_generator(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``verify`` with a new random generator or key each time.

    Returns ``verify`` unchanged if it takes none.
    """
    signature = signature_of(verify)
    if signature is None:
        return verify
    taken = signature.parameters.values()
    makers = {item.name: make for item in taken if (make := maker_of(item, verify)) is not None}
    if len(makers) != 1:
        return verify
    ((name, make),) = makers.items()
    moved = with_first(verify, name)

    @wraps(verify)
    def generating(*args: Any, **named: Any) -> Any:
        return moved(make(None), *args, **named)

    return with_parameters(generating, signature, [item for item in taken if item.name != name])


def maker_of(item: inspect.Parameter, function: Callable[..., Any]) -> Maker | None:
    """Return a function that makes the value of the argument ``item`` of ``function``; None if it takes no generator.

    An argument with a default takes none.
    """
    if item.default is not item.empty or item.kind in {item.VAR_POSITIONAL, item.VAR_KEYWORD}:
        return None
    if (make := _of_annotation(item.annotation)) is not None:
        return make
    if item.name in KEYS and _takes_key(item.name, function):
        return _key
    return _of_code(function) if WORDS & set(item.name.lower().split("_")) else None


def _of_annotation(annotation: Any) -> Maker | None:
    """Return the function that makes a generator of the class ``annotation``, or of one in a union of classes.

    Returns None if the annotation has no class of generators.
    """
    names = (
        f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"
        for kind in (annotation, *get_args(annotation))
    )
    return next((_OF_CLASS[name] for name in names if name in _OF_CLASS), None)


def _of_code(function: Callable[..., Any]) -> Maker:
    """Return the function that makes a generator of torch, NumPy or ``random``.

    The library is the one from which the code of ``function`` draws, see the module.
    """
    if "torch" in sys.modules and passes_keyword(function, "generator"):
        return _of_torch
    of_numpy = names_library(function, "numpy") or imported_beside(function, "numpy")
    return _of_numpy if of_numpy else _of_python


def _takes_key(name: str, function: Callable[..., Any]) -> bool:
    """Return whether the argument ``name`` of ``function``, such as ``key``, is a JAX key.

    It is one if the code of the function names jax, or its module imports jax. For the name ``rng`` the import alone
    does not suffice, because such an argument may be a generator of NumPy.
    """
    if "jax" not in sys.modules:
        return False
    return names_library(function, "jax") or (name != "rng" and imported_beside(function, "jax"))


def _key(seed: int | None) -> Any:
    """Return a new JAX key: in an intercepted run from its draws, otherwise from NumPy's legacy generator.

    ``seed`` is the seed of the key; None: a random one.
    """
    answers = sys.modules.get("specverify.intercept.jax.calls")
    if seed is None and answers is not None and (result := answers.fresh_key()) is not None:
        return result
    return sys.modules["jax"].random.PRNGKey(_seed(seed))


def _seed(seed: int | None) -> int:
    """Return ``seed``; a random one if it is None."""
    return int(np.random.randint(SEEDS)) if seed is None else seed  # noqa: NPY002 - it is what ``seeded`` seeds


def _of_torch(seed: int | None) -> Any:
    return sys.modules["torch"].Generator().manual_seed(_seed(seed))


def _of_numpy(seed: int | None) -> Any:
    return np.random.default_rng(seed)


def _of_legacy_numpy(seed: int | None) -> Any:
    return np.random.RandomState(_seed(seed))


def _of_python(seed: int | None) -> Any:
    return random.Random(_seed(seed))  # noqa: S311 - the function takes one


_OF_CLASS: Mapping[str, Maker] = {
    "torch._C.Generator": _of_torch,
    "torch.Generator": _of_torch,
    "numpy.random._generator.Generator": _of_numpy,
    "numpy.random.mtrand.RandomState": _of_legacy_numpy,
    "random.Random": _of_python,
}
"""Full name of a class of generators -> how a new one is made."""
