"""The arguments of an engine's call: its prompt, the number of new tokens, and a seed for each argument for one.

  decode(prompt, seed)            decode(prompt, *, seed)             decode(seed, prompt)
  decode(prompts, seeds)          a list, one seed for each prompt
  decode(prompt, max_new_tokens)  the horizon, if the engine was made for a scenario
  decode(prompt, params: SamplingParams)      an object that is made with ``seed=``, or has an attribute ``seed``
  decode(prompt, params: dict)                {"seed": 7}; without an annotation the same, with attributes as well

An argument requires a seed if it has no default and its name contains ``seed``. Each request of a run gets its own
seed, the same in every run. A call that is sampled with its own random numbers gets another seed each time.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain, count
from typing import Any

from specverify.base.callables import POSITIONAL, signature_of, with_parameters
from specverify.subjects.fresh_generators import maker_of
from specverify.subjects.subject import UnusableSubject

FIRST_SEED = 1
"""The first seed; 0 is not used because some code treats it as "no seed"."""
_SEEDS: ContextVar[Iterator[int] | None] = ContextVar("seeds", default=None)
_FIRST_OF_RUN: ContextVar[int] = ContextVar("first_of_run", default=FIRST_SEED)
LENGTH_NAMES = frozenset(
    {"max_new_tokens", "num_new_tokens", "n_new_tokens", "new_tokens", "max_new", "num_new", "n_new", "horizon"}
)
"""Names of arguments for the number of new tokens. ``max_tokens`` and ``max_length`` may include the prompt."""
_OBJECT_WORDS = {"params", "parameters", "options", "config", "settings", "sampling"}
"""Words in the name of an argument that takes an object with sampling parameters."""
_PROMPT_WORDS = {"prompt", "prompts", "input", "inputs", "ids", "tokens", "text", "texts", "context"}
_GENERATOR_WORDS = {"rng", "generator", "gen", "key", "random", "state"}
_MARK = "takes_seeds_of_specverify"
_Parameter = inspect.Parameter
VARIADIC = {_Parameter.VAR_POSITIONAL, _Parameter.VAR_KEYWORD}
WAY_OUT = "lambda prompt: decode(prompt, {name}=...)"


@contextmanager
def run_seeds() -> Iterator[None]:
    """Pass the seeds ``FIRST_SEED``, ``FIRST_SEED + 1``, ... to the seed arguments of calls inside the ``with`` block.

    So each run of a program gets the same seeds, unless ``runs_begin_at`` gives it others.
    """
    with _seeds_from(_FIRST_OF_RUN.get()):
        yield


@contextmanager
def runs_begin_at(first: int) -> Iterator[None]:
    """Let the runs inside the ``with`` block get the seeds ``first``, ``first + 1``, ... (``run_seeds``)."""
    token = _FIRST_OF_RUN.set(first)
    try:
        yield
    finally:
        _FIRST_OF_RUN.reset(token)


@contextmanager
def sample_seeds(seed: int) -> Iterator[None]:
    """Pass consecutive integers to the seed arguments of calls inside the ``with`` block.

    The first is computed from ``seed``, the seed of a sample, so that a sample can be repeated.
    """
    with _seeds_from(random.Random(seed).getrandbits(30) + FIRST_SEED):  # noqa: S311 - a sample is repeatable
        yield


@contextmanager
def given_seeds(seeds: Sequence[int]) -> Iterator[None]:
    """Pass ``seeds`` in order to the seed arguments of calls inside the ``with`` block.

    After the last seed in ``seeds``, consecutive integers are passed.
    """
    token = _SEEDS.set(chain(seeds, count(max(seeds, default=0) + 1)))
    try:
        yield
    finally:
        _SEEDS.reset(token)


def with_seed_named(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``function`` with seeds for its optional seed arguments, such as ``seed=None``.

    Returns ``function`` itself if it has no such argument.
    """
    signature = signature_of(function)
    if signature is None:
        return function
    named = [
        item.name
        for item in signature.parameters.values()
        if not _is_required(item) and item.kind not in VARIADIC | {_Parameter.POSITIONAL_ONLY} and names_seed(item.name)
    ]
    if not named:
        return function

    @functools.wraps(function)
    def seeded_call(*given: Any, **others: Any) -> Any:
        size = len(given[0]) if given and hasattr(given[0], "__len__") else 1
        seeds = {
            name: [_next_seed() for _ in range(size)] if name.lower().endswith("seeds") else _next_seed()
            for name in named
        }
        return function(*given, **{**seeds, **others})

    return seeded_call


def seeds_each_row(function: Callable[..., Any]) -> bool:
    """Return whether the call ``function`` takes a list of seeds, one for each prompt."""
    signature = inspect.signature(inspect.unwrap(function))
    return any(item.name.lower().endswith("seeds") for item in signature.parameters.values())


@contextmanager
def _seeds_from(first: int) -> Iterator[None]:
    token = _SEEDS.set(count(first))
    try:
        yield
    finally:
        _SEEDS.reset(token)


def _next_seed() -> int:
    seeds = _SEEDS.get()
    return FIRST_SEED if seeds is None else next(seeds)


def with_seeds(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``function`` with the next seeds for its required seed arguments.

    The returned function does not take these arguments. Returns ``function`` itself if it has none. Raises
    ``UnusableSubject`` if a parameter object cannot be made from a seed alone.
    """
    signature = signature_of(function)
    if signature is None:
        return function
    required = [item for item in signature.parameters.values() if _is_required(item)]
    prompt = _prompt_of(required, function)
    makers = {item.name: maker for item in required if item is not prompt and (maker := _seed_maker(item, function))}
    if not makers:
        return function
    places = _places(signature, prompt, makers)

    @functools.wraps(function)
    def seeded_call(*given: Any, **named: Any) -> Any:
        size = len(given[0]) if given and hasattr(given[0], "__len__") else 1
        made = {name: maker(size) for name, maker in makers.items()}
        return function(*(made[name] if name else given[0] for name in places if name or given),
                        *given[1 if None in places else 0:],
                        **{name: value for name, value in made.items() if name not in places}, **named)  # fmt: skip

    kept = [item for item in signature.parameters.values() if item.name not in makers]
    seeded_call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # inspect reads it
    setattr(seeded_call, _MARK, True)
    return seeded_call


def with_length(function: Callable[..., Any], horizon: int) -> Callable[..., Any]:
    """Return a function that calls ``function`` with ``horizon`` for its required arguments for the number of tokens.

    These are the arguments with one of the names ``LENGTH_NAMES``. The returned function does not take them. Returns
    ``function`` itself if it has none.
    """
    signature = signature_of(function)
    items = [] if signature is None else list(signature.parameters.values())
    names = [item.name for item in items if _is_required(item) and item.name.lower() in LENGTH_NAMES]
    if signature is None or not names:
        return function
    kept = signature.replace(parameters=[item for item in items if item.name not in names])

    @functools.wraps(function)
    def limited_call(*given: Any, **named: Any) -> Any:
        bound = kept.bind(*given, **named)
        every = inspect.BoundArguments(signature, {**bound.arguments, **dict.fromkeys(names, horizon)})
        return function(*every.args, **every.kwargs)

    return with_parameters(limited_call, signature, list(kept.parameters.values()))


def with_parameters_of_rows(
    function: Callable[..., Any], of_rows: Callable[[int], Sequence[Any]]
) -> Callable[..., Any]:
    """Return a function that calls ``function`` with a list of parameters, one for each prompt of its first argument.

    ``of_rows(number)`` returns the list. It is passed to the first required argument that is neither the prompts nor a
    seed nor the number of new tokens, which the returned function does not take; without one, as the second argument.
    """
    signature = signature_of(function)
    items = [] if signature is None else list(signature.parameters.values())
    others = (item for item in items[1:] if _is_required(item) and not names_seed(item.name))
    taken = next((item for item in others if item.name.lower() not in LENGTH_NAMES), None)
    if signature is None or taken is None:
        return lambda prompts: function(prompts, of_rows(len(prompts)))
    kept = signature.replace(parameters=[item for item in items if item is not taken])

    @functools.wraps(function)
    def call(prompts: Sequence[Any], *given: Any, **named: Any) -> Any:
        bound = kept.bind(prompts, *given, **named)
        every = inspect.BoundArguments(signature, {**bound.arguments, taken.name: of_rows(len(prompts))})
        return function(*every.args, **every.kwargs)

    return with_parameters(call, signature, list(kept.parameters.values()))


def takes_seed(function: Callable[..., Any]) -> bool:
    """Return whether a caller of ``function`` can choose the seed.

    This requires an argument whose name contains ``seed``, or whose default value contains a seed.
    """
    signature = signature_of(function)
    if getattr(function, _MARK, False) or signature is None:
        return signature is not None
    return any(names_seed(item.name) or _holds_seed(item.default) for item in signature.parameters.values())


def takes_prompt(function: Callable[..., Any]) -> bool:
    """Return whether ``function`` requires exactly one argument besides seeds: the prompt or a list of prompts.

    If it requires further arguments, raise ``UnusableSubject`` with the name of the first.
    """
    signature = signature_of(function)
    if signature is None:
        return False
    required = [item for item in signature.parameters.values() if _is_required(item)]
    prompt = _prompt_of(required, function)
    unknown = [item for item in required if item is not prompt and _seed_maker(item, function) is None]
    if unknown or (prompt is not None and prompt.kind not in POSITIONAL):
        raise UnusableSubject(
            f"the call that was made takes {signature}, expected one without arguments, or with the prompt as its one "
            f"argument: {missing(unknown[0] if unknown else required[0], prompt)}"
        )
    return prompt is not None


def missing(argument: inspect.Parameter, prompt: inspect.Parameter | None) -> str:
    """Return the error message for an ``argument`` without a value, with a suggestion.

    ``prompt`` is the argument that gets the prompt, or None.
    """
    passed = f"the prompt to {prompt.name!r} and " if prompt is not None and prompt is not argument else ""
    told = f"specverify passes {passed}a number to each argument with seed in its name, but nothing to "
    if set(argument.name.lower().split("_")) & _GENERATOR_WORDS:
        return f"{told}{argument.name!r}: take a seed instead and make the generator from it inside the call"
    return f"{told}{argument.name!r}: give it a default, or bind it, as in {WAY_OUT.format(name=argument.name)}"


def missing_without_prompt(function: Callable[..., Any]) -> str:
    """Return the error message for a required argument of ``function`` that gets no value in a call without a prompt.

    Returns "" if all required arguments get a value.
    """
    signature = signature_of(function)
    required = [] if signature is None else [item for item in signature.parameters.values() if _is_required(item)]
    unknown = [item for item in required if _seed_maker(item, function) is None]
    return missing(unknown[0], None).replace("lambda prompt: decode(prompt, ", "lambda: decode(") if unknown else ""


class SeedParameters(dict[str, int]):
    """Sampling parameters that contain only a seed, read by key or by attribute."""

    def __missing__(self, name: str) -> Any:
        raise KeyError(_NO_PARAMETER.format(name=name))

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(_NO_PARAMETER.format(name=name))


_NO_PARAMETER = (
    "specverify passes sampling parameters with a seed only, without {name!r}: give the argument a complete default, "
    "as functools.partial(decode, params=...) does"
)


def _is_required(item: inspect.Parameter) -> bool:
    return item.default is item.empty and item.kind not in VARIADIC


def names_seed(name: str) -> bool:
    """Return whether the name of an argument says that it takes a seed."""
    return "seed" in name.lower()


def _prompt_of(required: list[inspect.Parameter], function: Callable[..., Any]) -> inspect.Parameter | None:
    """Return the argument for the prompt among ``required``, the required arguments of ``function``; None without one.

    It is the one with a name such as ``prompt``, else the first that needs no seed.
    """
    free = [item for item in required if not names_seed(item.name)]
    named = [item for item in free if set(item.name.lower().split("_")) & _PROMPT_WORDS]
    others = [item for item in free if _seed_maker(item, function) is None]
    return next(iter([*named, *others]), None)


def _seed_maker(item: inspect.Parameter, function: Callable[..., Any]) -> Callable[[int], Any] | None:
    """Return a function that makes the value of the argument ``item`` from new seeds; None if ``item`` needs no seed.

    The returned function takes the number of prompts of the call: an argument for several seeds gets one for each
    prompt. An argument of ``function`` that takes a generator gets one that is made from a seed.
    """
    if names_seed(item.name):
        several = item.name.lower().endswith("seeds")
        return lambda size: [_next_seed() for _ in range(size)] if several else _next_seed()
    if (make := maker_of(item, function)) is not None:
        return lambda _: make(_next_seed())
    kind = item.annotation
    if kind is item.empty:
        words = set(item.name.lower().split("_"))
        return (lambda _: SeedParameters(seed=_next_seed())) if words & _OBJECT_WORDS else None
    kind = getattr(kind, "__origin__", kind)
    if not inspect.isclass(kind):
        return None
    if issubclass(kind, dict) or kind is Mapping or getattr(kind, "__module__", "") == "collections.abc":
        keys = [name for name in getattr(kind, "__annotations__", ()) if names_seed(name)] or ["seed"]
        words = set(item.name.lower().split("_"))
        known = words & _OBJECT_WORDS or getattr(kind, "__annotations__", None)
        return (lambda _: {name: _next_seed() for name in keys}) if known else None
    return _class_maker(kind)


def _class_maker(kind: Any) -> Callable[[int], Any] | None:
    """Return a function that makes an object of class ``kind`` from a seed; None if it requires other arguments."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return None
    names = tuple(item.name for item in parameters if names_seed(item.name))
    if any(_is_required(item) and item.name not in names for item in parameters):
        return None
    if names:
        return lambda _: kind(**{name: _next_seed() for name in names})
    return (lambda _: _with_attribute(kind())) if hasattr(kind, "seed") else None


def _with_attribute(made: Any) -> Any:
    made.seed = _next_seed()
    return made


def _holds_seed(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(names_seed(str(name)) for name in value)
    names = [*getattr(value, "_fields", ()), *getattr(value, "__dict__", ()), *getattr(value, "__slots__", ())]
    return not callable(value) and any(names_seed(str(name)) for name in names)


def _places(
    signature: inspect.Signature, prompt: inspect.Parameter | None, makers: Mapping[str, Any]
) -> list[str | None]:
    """Return the leading positional arguments in order: the name of each seed argument, and None for the prompt.

    The call passes these by position and the others by name. The list ends before the first argument of ``signature``
    that is neither. ``makers`` has the names of the seed arguments.
    """
    places: list[str | None] = []
    for item in signature.parameters.values():
        if item.kind not in POSITIONAL or not (item is prompt or item.name in makers):
            break
        places.append(None if item is prompt else item.name)
    return places
