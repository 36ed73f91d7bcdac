"""torch's random calls, answered by ``draws``: unmodified PyTorch code becomes a program that can be enumerated.

    with answered_by(draws):
        model.generate(...)

Every random function of torch's Python interface is answered; one that is not known here raises ``NeedsValue`` naming
the call, so that no randomness passes unnoticed. Sites name the function and the file and line that called it.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from reference import Draws, Site
from specverify.intercept import lazy_operations  # noqa: F401 - teaches LazyTensor its operations
from specverify.intercept.deferred import Categorical, Continuous, NeedsValue, Uniform, exponential, final_outcome
from specverify.intercept.lazy_tensor import LazyTensor, elements_of, look_at

ONE_BELOW_ONE = {torch.float32: 1 - 2**-24, torch.float64: 1 - 2**-53}
"""The largest uniform of each dtype."""


class _Answers(TorchFunctionMode):
    """Answers random calls; everything else runs as it is."""

    def __init__(self, draws: Draws, forced: float | None) -> None:
        super().__init__()
        self.draws, self.forced = draws, forced
        self.filled: dict[int, tuple[torch.Tensor, LazyTensor]] = {}
        """Ordinary tensors that were filled with random values in place, and the lazy ones that stand for them."""
        self.generators: list[Any] = []
        self.seed: int | None = None
        self.drawn: dict[int | None, list[Uniform]] = {}
        self.replayed: list[Uniform] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(self, *args, **kwargs)
        if self.filled:
            args, kwargs = self._substituted(args), {name: self._substituted(item) for name, item in kwargs.items()}
        return func(*args, **kwargs)

    def _substituted(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.filled[id(value)][1] if id(value) in self.filled else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self._substituted(item) for item in value)
        return value

    def stream(self, generator: Any) -> Site:
        """Return what tells the draws of a generator apart from those of others, in the order they first drew."""
        if generator is None:
            return ()
        if not any(generator is known for known in self.generators):
            self.generators.append(generator)
        return (f"generator {self.generators.index(generator)}",)

    def reseed(self, seed: int) -> None:
        """Start a stream over: the uniforms drawn after the same seed are the same uniforms again."""
        self.replayed = list(self.drawn.get(seed, []))
        self.seed = seed

    def uniforms(self, like: torch.Tensor, call: str, image: Any, generator: Any) -> Any:
        """Return a lazy tensor of fresh uniforms, mapped by ``image``; an ordinary one where a value is forced."""
        if self.forced is not None:
            return torch.full_like(like, min(self.forced, ONE_BELOW_ONE.get(like.dtype, 1 - 2**-8)))
        site: Site = (call, caller(), *self.stream(generator))
        elements = np.empty(tuple(like.shape), dtype=object)
        for index in np.ndindex(elements.shape):
            uniform = self.replayed.pop(0) if self.replayed else Uniform(self.draws, (*site, *index))
            self.drawn.setdefault(self.seed, []).append(uniform)
            elements[index] = image(uniform)
        return LazyTensor(elements, like.dtype, like.device)

    def fill(self, tensor: torch.Tensor, values: Any) -> Any:
        """Let ``values`` stand for ``tensor``, which was filled in place; a view fills its part of the base."""
        if not isinstance(values, LazyTensor):
            tensor.copy_(values)
            return tensor
        base = tensor if tensor._base is None else tensor._base  # noqa: SLF001
        if base is tensor:
            self.filled[id(base)] = (base, values)
            return values
        if id(base) not in self.filled:
            whole = np.empty(tuple(base.shape), dtype=object)
            whole[...] = np.array(base.tolist(), dtype=object).reshape(whole.shape)
            self.filled[id(base)] = (base, LazyTensor(whole, base.dtype, base.device))
        places = torch.arange(base.numel()).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        flat = self.filled[id(base)][1].elements.reshape(-1)
        for index in np.ndindex(tuple(tensor.shape)):
            flat[int(places[index])] = values.elements[index]
        return values


@contextmanager
def answered_by(draws: Draws, forced_uniform: float | None = None) -> Iterator[None]:
    """Answer torch's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it): the boundary
    draws at which a token of probability 0 gets out.
    """
    mode, manual_seed = _Answers(draws, forced_uniform), torch.manual_seed
    torch.manual_seed = mode.reseed  # type: ignore[assignment]
    try:
        with mode:
            yield
    except NeedsValue as refusal:
        raise NeedsValue(f"{refusal} ({caller(refusal.__traceback__)})") from None
    finally:
        torch.manual_seed = manual_seed


def caller(trace: Any = None) -> str:
    """Return file and line of the innermost frame that belongs neither to torch nor to this package."""
    stack = traceback.walk_stack(sys._getframe(1)) if trace is None else reversed(list(traceback.walk_tb(trace)))  # noqa: SLF001
    for frame, line in stack:
        name = _foreign_name(frame.f_code.co_filename)
        if name:
            return f"{name}:{line}"
    return "unknown place"


@cache
def _foreign_name(filename: str) -> str:
    """Return the name of a file that belongs neither to torch nor to this package, or nothing."""
    path = Path(filename)
    return "" if {"torch", "intercept"} & set(path.parts) else path.name


def _multinomial(
    mode: _Answers,
    input: Any,
    num_samples: int = 1,
    replacement: bool = False,
    generator: Any = None,
    **_: Any,
) -> Any:
    """Answer each row by categorical draws; without replacement the row is renormalised after each."""
    weights = look_at(input)
    rows = weights.reshape(-1, weights.shape[-1]).double().cpu().numpy()
    if not np.isfinite(rows).all() or (rows < 0).any() or (rows.sum(-1) <= 0).any():
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0, or sums to 0")
    site = ("torch.multinomial", caller(), *mode.stream(generator))
    found = np.empty((len(rows), num_samples), dtype=object)
    for row, masses in enumerate(rows):
        left = masses.copy()
        for draw in range(num_samples):
            found[row, draw] = Categorical(mode.draws, left / left.sum(), (*site, row, draw))
            if not replacement and num_samples > 1:
                left[found[row, draw].value()] = 0.0
    return LazyTensor(found.reshape((*weights.shape[:-1], num_samples)), torch.int64, weights.device)


def _bernoulli(mode: _Answers, input: Any, p: float | None = None, generator: Any = None, **_: Any) -> Any:
    heads = torch.full_like(look_at(input), p) if p is not None else look_at(input)
    site = ("torch.bernoulli", caller(), *mode.stream(generator))
    elements = np.empty(tuple(heads.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        mass = float(heads[index])
        elements[index] = Categorical(mode.draws, np.array([1 - mass, mass]), (*site, *index))
    return LazyTensor(elements, heads.dtype, heads.device)


def _rand(
    mode: _Answers,
    *numbers: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    generator: Any = None,
    **_: Any,
) -> Any:
    shape = size if size is not None else numbers[0] if numbers and not isinstance(numbers[0], int) else numbers
    like = torch.empty(tuple(shape), dtype=dtype, device=device)
    return mode.uniforms(like, "torch.rand", Continuous, generator)


def _rand_like(
    mode: _Answers, input: Any, *, dtype: Any = None, device: Any = None, generator: Any = None, **_: Any
) -> Any:
    like = torch.empty(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)
    return mode.uniforms(like, "torch.rand_like", Continuous, generator)


def _uniform_(mode: _Answers, tensor: Any, *bounds: float, generator: Any = None, **named: Any) -> Any:
    given = [*bounds, named.get("from", 0.0), named.get("to", 1.0)]
    low, high = given[0], given[1] if len(bounds) != 1 else given[2]
    if (low, high) != (0, 1):
        raise NeedsValue(f"uniform_({low}, {high}) at {caller()}: only the unit interval is answered")
    return mode.fill(tensor, mode.uniforms(tensor, "uniform_", Continuous, generator))


def _exponential_(mode: _Answers, tensor: Any, lambd: float = 1.0, *, generator: Any = None) -> Any:
    if lambd != 1:
        raise NeedsValue(f"exponential_({lambd}) at {caller()}: only rate 1 is answered")
    if mode.forced is not None:
        value = -math.log(min(max(mode.forced, 2**-24), 1 - 2**-24))
        return mode.fill(tensor, torch.full_like(tensor, value))
    return mode.fill(tensor, mode.uniforms(tensor, "exponential_", exponential, generator))


def _randint(mode: _Answers, *args: Any, dtype: Any = None, device: Any = None, **named: Any) -> Any:
    size = named.pop("size", None)
    numbers = list(args)
    if size is None:
        size = numbers.pop()
    low = int(named.get("low", numbers[0] if len(numbers) > 1 else 0))
    high = int(named.get("high", numbers[-1] if numbers else 0))
    pmf, site = np.full(high - low, 1 / (high - low)), ("torch.randint", caller())
    elements = np.empty(tuple(size), dtype=object)
    for index in np.ndindex(elements.shape):
        elements[index] = Categorical(mode.draws, pmf, (*site, *index), first=low)
    return LazyTensor(elements, dtype or torch.int64, device or "cpu")


def _randperm(mode: _Answers, n: int, *, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    left, site = list(range(n)), ("torch.randperm", caller())
    chosen: list[int] = []
    while left:
        pmf = np.full(len(left), 1 / len(left))
        chosen.append(left.pop(mode.draws.categorical(pmf, (*site, len(chosen)))))
    return torch.tensor(chosen, dtype=dtype or torch.int64, device=device)


def _name(func: Any) -> str:
    return getattr(func, "__name__", str(func))


_ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.multinomial: _multinomial,
    torch.Tensor.multinomial: _multinomial,
    torch.bernoulli: _bernoulli,
    torch.Tensor.bernoulli: _bernoulli,
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.Tensor.uniform_: _uniform_,
    torch.Tensor.exponential_: _exponential_,
    torch.randint: _randint,
    torch.randperm: _randperm,
}
_REFUSED = (
    torch.randn,
    torch.randn_like,
    torch.normal,
    torch.poisson,
    torch.randint_like,
    torch.Tensor.normal_,
    torch.Tensor.random_,
    torch.Tensor.cauchy_,
    torch.Tensor.geometric_,
    torch.Tensor.log_normal_,
    torch.Tensor.bernoulli_,
)


def _refusal(func: Any) -> Callable[..., Any]:
    def refuse(mode: _Answers, *_: Any, **__: Any) -> Any:
        raise NeedsValue(f"{_name(func)} at {caller()} draws from a continuous law, which cannot be enumerated")

    return refuse


_ANSWERS.update({func: _refusal(func) for func in _REFUSED})


def outcome_of(tokens: torch.Tensor) -> Any:
    """Return the tokens of a 1-D tensor as the outcome of a run, those nobody looked at with their law."""
    return final_outcome(list(elements_of(tokens)))


__all__ = ["NeedsValue", "answered_by", "caller", "outcome_of"]
