"""A batched verification kernel: its arguments and its result.

  kernel(p, q, drafts, accept_uniforms, final_uniforms) -> tokens      its uniforms are arguments
  kernel(p, q, drafts, accept_uniforms, noise) -> tokens               the last draw is a race
  kernel(p, q, drafts, seed, offset) -> tokens                         its generator is inside, keyed
  kernel(p, q, drafts) -> tokens                                       its generator is inside

For B rows of gamma drafts, from a vocabulary of V, ``p`` is ``[B, gamma + 1, V]`` and ``q`` ``[B, gamma, V]``, floats,
and ``drafts`` ``[B, gamma]``, int64. ``accept_uniforms`` ``[B, gamma]`` decide on drafts; ``final_uniforms`` ``[B]``
decide the token after the accepted ones, by inverse CDF. With ``noise`` ``[B, V]`` that token is the one with the
largest weight / noise (exponential) or log weight + noise (Gumbel). ``tokens`` is ``[B, gamma + 1]``: the accepted
drafts, one more token, padding. ``seed`` and ``offset`` are integers; calls with one seed and different offsets must be
independent.

``p``, ``q`` and ``drafts`` may have another order if the names show it (``subjects.parameter_order``), as in
``kernel(draft_token_ids, draft_probs, target_probs, ...)``. Parameters with these names, at any position, have a fixed
meaning:

* ``lengths`` ``[B]``: rows have 0 to gamma drafts. The padding of p, q and drafts must not affect the result.
* ``cu_num_draft_tokens`` ``[B]``: the same in flat arrays. Rows are concatenated: ``drafts`` and ``accept_uniforms``
  ``[N]``, ``q`` ``[N, V]``, ``p`` ``[N + B, V]``; entry b is the number of drafts of rows 0 to b.
* ``out`` ``[B, gamma + 1]``, int64: the output of tokens, filled with padding before the call.
* ``out_lengths`` ``[B]``, int64: the output of their numbers, if padding does not mark the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

from specverify.base.arguments import argument_error, check_callable, check_choice
from specverify.base.callables import POSITIONAL, signature_of, with_parameters
from specverify.subjects.parameter_order import ORDER, in_named_order

Uniforms = Literal["[0, 1)", "(0, 1]", "seed", "own"]
"""Source of a kernel's random numbers: arguments in one of two intervals, a seed and an offset, or the kernel itself.
"""
Recovery = Literal["inverse cdf", "exponential", "gumbel"]
"""How the last token is drawn where the random numbers are arguments."""
Rule = Literal["token", "block"]
"""What a coin decides: one draft (2211.17192), or that the block up to it is accepted (2403.10444)."""
Ends = Literal["padding", "emitted", "accepted"]
"""What marks the end of a row of the result: padding, or a returned number of emitted tokens or accepted drafts."""
Library = Literal["numpy", "torch", "jax", "cupy"]

MODULES = {"numpy": "array_api_compat.numpy", "torch": "array_api_compat.torch", "cupy": "array_api_compat.cupy"}
FLOATS = ("float64", "float32", "bfloat16", "float16")
NAMED = ("lengths", "cu_num_draft_tokens", "out", "out_lengths")


class KernelConvention(NamedTuple):
    """The conventions of a kernel that its parameters do not show, such as the source of its uniforms and its padding.

    Examples:
        >>> KernelConvention(uniforms="seed", library="torch", dtype="bfloat16").padding
        -1
    """

    uniforms: Uniforms = "[0, 1)"
    """Source of the random numbers: arguments in one of two intervals, a seed and an offset, or the kernel itself."""
    recovery: Recovery = "inverse cdf"
    """How the last token is drawn if the random numbers are arguments."""
    rule: Rule = "token"
    """What one uniform decides: one draft (2211.17192), or that the block up to it is accepted (2403.10444)."""
    ends: Ends = "padding"
    """What marks the end of a row of the result: padding, or a number of tokens or of accepted drafts per row."""
    padding: int = -1
    """The token id after the last token of a row of the result."""
    draft_padding: int = -1
    """The token id after the drafts of a row, if rows have different numbers of drafts."""
    offset_step: int = 1
    """The difference of the offsets of consecutive calls, with ``uniforms="seed"``."""
    library: Library | None = None
    """The library of the kernel's arrays. None: torch if the kernel's code names torch, or if its module imports torch
    and its code does not name NumPy; otherwise NumPy."""
    dtype: str = "float32"
    """The dtype of p and q, and of the uniforms unless it has 16 bits."""
    device: Any = None
    """The device of its arrays; None is the default device of the library."""


class Kernel(NamedTuple):
    """A kernel as a function, with the convention of its arguments and its result.

    ``call`` is the function, and ``name`` its name for reports.
    """

    call: Callable[..., Any]
    name: str
    convention: KernelConvention
    named: frozenset[str]
    """The parameters of the kernel that have a name in ``NAMED``."""
    places: tuple[str, ...] = ()
    """The order of its positional arguments: the name of each parameter in ``NAMED``, and "" for every other one."""

    @property
    def inside(self) -> bool:
        """Return whether the kernel draws its random numbers itself."""
        return self.convention.uniforms in {"seed", "own"}

    @property
    def ragged(self) -> bool:
        """Return whether rows may have different numbers of drafts."""
        return bool(self.named & {"lengths", "cu_num_draft_tokens"})

    @property
    def race(self) -> bool:
        """Return whether the last token is drawn by a race, such as the Gumbel trick, whose noise is an argument."""
        return not self.inside and self.convention.recovery != "inverse cdf"

    @property
    def short(self) -> bool:
        """Return whether the pmfs have a 16-bit dtype."""
        return self.convention.dtype in {"float16", "bfloat16"}

    @property
    def of_uniforms(self) -> str:
        """Return the name of the dtype of the uniforms and the noise."""
        return "float32" if self.short else self.convention.dtype

    @property
    def xp(self) -> Any:
        """Return the array namespace of the kernel's library, such as the module ``numpy``."""
        return import_module(MODULES.get(self.convention.library or "numpy", "jax.numpy"))


def kernel_of(call: Any, name: str, given: KernelConvention) -> Kernel:
    """Return the kernel ``call`` with the convention ``given``, called ``name`` in messages.

    Raises ``ValueError`` for an invalid convention, or for parameters that do not fit it.
    """
    check_callable(call, "the kernel")
    if not isinstance(given, KernelConvention):
        raise argument_error("convention", given, "a KernelConvention, such as KernelConvention(uniforms='seed')")
    given = given._replace(library=given.library or "numpy")
    kinds = {"uniforms": Uniforms, "recovery": Recovery, "rule": Rule, "ends": Ends, "library": Library}
    for option, choices in kinds.items():
        check_choice(getattr(given, option), option, get_args(choices))
    for option in ("padding", "draft_padding", "offset_step"):
        if not isinstance(getattr(given, option), int):
            raise argument_error(option, getattr(given, option), "an integer")
    try:
        xp = import_module(MODULES.get(given.library or "numpy", "jax.numpy"))
    except ImportError as error:
        hint = " (pip install -c constraints.txt torch)" if given.library == "torch" else ""
        raise ValueError(f"library is {given.library!r}, expected one that is installed: {error}{hint}") from None
    if given.dtype not in FLOATS or not hasattr(xp, given.dtype):
        raise argument_error("dtype", given.dtype, f"the name of a float dtype of {given.library}")
    return _with_parameters(Kernel(in_named_order(_with_named_last(call)), name, given, frozenset()))


def _with_named_last(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel ``call`` with its parameters in ``NAMED`` as keywords; ``call`` if none stands among the first.

    So p, q and drafts are its first three parameters, in whatever order. A kernel with a positional-only parameter, or
    without a readable signature, is returned unchanged.
    """
    signature = signature_of(call)
    items = [] if signature is None else list(signature.parameters.values())
    first = [item for item in items[: len(ORDER)] if item.name in NAMED]
    if signature is None or not first or any(item.kind is not item.POSITIONAL_OR_KEYWORD for item in items):
        return call
    others = [item for item in items if item.name not in NAMED]
    names = [item.name for item in others]

    @wraps(call)
    def with_keywords(*given: Any, **named: Any) -> Any:
        return call(**dict(zip(names, given, strict=False)), **named)

    last = [item.replace(kind=item.KEYWORD_ONLY) for item in items if item.name in NAMED]
    return with_parameters(with_keywords, signature, [*others, *last])


def positional(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of the kernel's positional arguments, without those in ``NAMED``."""
    if kernel.convention.uniforms == "seed":
        return ("p", "q", "drafts", "seed", "offset")
    last = "noise" if kernel.race else "final_uniforms"
    return ("p", "q", "drafts", *(() if kernel.inside else ("accept_uniforms", last)))


def _with_parameters(kernel: Kernel) -> Kernel:
    """Return the kernel with the fields ``named`` and ``places`` set from its parameters.

    Raises ``ValueError`` if the parameters do not fit the convention of the kernel, or exclude each other.
    """
    try:
        signature = inspect.signature(kernel.call)
    except (TypeError, ValueError):
        return kernel
    named, wanted = frozenset(signature.parameters) & frozenset(NAMED), positional(kernel)
    parameters = [item.name for item in signature.parameters.values() if item.kind in POSITIONAL]
    others = [name for name in parameters if name not in named][: len(wanted)]
    until = parameters.index(others[-1]) + 1 if others else 0
    kernel = kernel._replace(named=named, places=tuple(name if name in named else "" for name in parameters[:until]))
    try:
        signature.bind(*in_places(kernel, wanted, dict.fromkeys(named)), **by_keyword(kernel, dict.fromkeys(named)))
    except TypeError as error:
        raise ValueError(
            f"the kernel takes {signature}, expected ({', '.join(wanted)}) and beside these lengths, "
            f"cu_num_draft_tokens, out or out_lengths, by these names: {error}"
        ) from None
    if {"lengths", "cu_num_draft_tokens"} <= named:
        raise ValueError("the kernel takes both lengths and cu_num_draft_tokens, expected one: are its rows padded?")
    if "out_lengths" in named and kernel.convention.ends == "padding":
        raise ValueError("the kernel takes out_lengths and ends is 'padding', expected ends='emitted' or 'accepted'")
    return kernel


def in_places(kernel: Kernel, by_place: Sequence[Any], by_name: Mapping[str, Any]) -> list[Any]:
    """Return the positional arguments of a call of the kernel, in the order of its parameters.

    A parameter with a name in ``NAMED`` gets its value from ``by_name``. The other parameters get the values
    ``by_place``, in order.
    """
    rest = list(by_place)
    return [*(by_name[name] if name else rest.pop(0) for name in kernel.places), *rest]


def by_keyword(kernel: Kernel, by_name: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in ``by_name`` that the kernel takes by keyword."""
    return {name: value for name, value in by_name.items() if name not in kernel.places}
