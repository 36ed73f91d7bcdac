"""torch's random calls, answered by ``draws``: unmodified PyTorch code becomes a program that can be enumerated.

    with answered_by(draws):
        model.generate(...)

Every random function of torch's Python interface is answered; one that is not known here raises ``NeedsValue`` naming
the call, so that no randomness passes unnoticed. Sites name the function and the file and line that called it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from reference import Draws, Site
from specverify import rounding
from specverify.intercept import lazy_operations  # noqa: F401 - teaches LazyTensor its operations
from specverify.intercept.caller import NOWHERE, caller
from specverify.intercept.deferred import Categorical, Continuous, NeedsValue, Uniform, exponential
from specverify.intercept.lazy_tensor import LazyTensor, elements_of, look_at
from specverify.intercept.outcome import final_outcome
from specverify.intercept.torch_operations import drawing_functions
from specverify.intercept.torch_streams import TorchStreams

ONE_BELOW_ONE = {torch.float32: 1 - 2**-24, torch.float64: 1 - 2**-53}
"""The largest uniform of each dtype."""


class _Answers(TorchFunctionMode):
    """Answers random calls; everything else runs as it is."""

    def __init__(self, draws: Draws, forced: float | None) -> None:
        super().__init__()
        self.draws, self.forced = draws, forced
        self.filled: dict[int, tuple[torch.Tensor, LazyTensor]] = {}
        """Ordinary tensors that were filled with random values in place, and the lazy ones that stand for them."""
        self.streams = TorchStreams()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        answer = _ANSWERS.get(func)
        if answer is not None:
            return answer(self, *args, **kwargs)
        if func in drawing_functions():
            return self._looked_after(func, args, kwargs)
        if self.filled:
            args, kwargs = self._substituted(args), {name: self._substituted(item) for name, item in kwargs.items()}
        found = func(*args, **kwargs)
        if isinstance(found, torch.Tensor) and found.dtype.is_floating_point:
            rounding.saw(found.dtype)
        return found

    def _looked_after(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation that may draw, such as dropout, and refuse it if it did."""
        if kwargs.get("generator") is not None:
            raise NeedsValue(f"{_name(func)} at {caller()} draws from a generator, and is not answered")
        found = func(*args, **kwargs)
        self.streams.look(f"{_name(func)} at {caller()}, which is not answered")
        return found

    def _substituted(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.filled[id(value)][1] if id(value) in self.filled else value
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
            return type(value)(self._substituted(item) for item in value)
        return value

    def uniforms(self, like: torch.Tensor, call: str, image: Any, generator: Any) -> Any:
        """Return a lazy tensor of fresh uniforms, mapped by ``image``; an ordinary one where a value is forced."""
        if self.forced is not None:
            return torch.full_like(like, min(self.forced, ONE_BELOW_ONE.get(like.dtype, 1 - 2**-8)))
        site: Site = (call, caller(), *self.streams.name(generator))
        elements = np.empty(tuple(like.shape), dtype=object)
        alike = image is Continuous and like.device.type == "cpu"
        way = ("uniform" if image is Continuous else call, like.dtype)

        def advance() -> None:
            drawn = torch.empty(() if alike else like.shape, dtype=like.dtype, device=like.device)
            (drawn.uniform_ if image is Continuous else drawn.exponential_)(generator=generator)

        state = None if alike else self.streams.state(generator, like.device, advance)
        for place, index in enumerate(np.ndindex(elements.shape)):
            source = (self.streams.state(generator, like.device, advance), 0) if alike else state and (state, place)
            draw = self.streams.draw((*site, *index), source, way)
            elements[index] = image(Uniform(self.draws, (*site, *index), draw))
        return LazyTensor(elements, like.dtype, like.device)

    def outcomes(self, site: Site, generator: Any, device: torch.device, advance: Callable[[], Any]) -> Any:
        """Return what makes the outcomes of one call, one after the other; ``advance`` makes them in fact."""
        state, count = self.streams.state(generator, device, advance), iter(range(2**62))

        def outcome(pmf: Any, index: Site, first: int = 0, way: Site = ()) -> Categorical:
            place = next(count)
            draw = self.streams.draw(site, state and (state, place), (site[0], first, pmf.tobytes(), *way))
            return Categorical(self.draws, pmf, (*site, *index), first, draw)

        return outcome

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
def answered_by(draws: Draws, forced_uniform: float | None = None) -> Iterator[TorchFunctionMode]:
    """Answer torch's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it): the boundary
    draws at which a token of probability 0 gets out. Yields what another thread enters to be answered too.
    """
    mode = _Answers(draws, forced_uniform)
    try:
        with mode.streams.restored(), mode:
            yield mode
    except NeedsValue as refusal:
        place = caller(refusal.__traceback__)
        known = place in str(refusal) or place == NOWHERE
        raise NeedsValue(str(refusal) if known else f"{refusal} ({place})") from None


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
    site = ("torch.multinomial", caller(), *mode.streams.name(generator))
    outcome = mode.outcomes(
        site,
        generator,
        weights.device,
        lambda: torch.multinomial(weights, num_samples, replacement, generator=generator),
    )
    found = np.empty((len(rows), num_samples), dtype=object)
    for row, masses in enumerate(rows):
        left = masses.copy()
        for draw in range(num_samples):
            found[row, draw] = outcome(left / left.sum(), (row, draw), way=(num_samples, replacement))
            if not replacement and num_samples > 1:
                left[found[row, draw].value()] = 0.0
    return LazyTensor(found.reshape((*weights.shape[:-1], num_samples)), torch.int64, weights.device)


def _bernoulli(mode: _Answers, input: Any, p: float | None = None, generator: Any = None, **_: Any) -> Any:
    heads = torch.full_like(look_at(input), p) if p is not None else look_at(input)
    site = ("torch.bernoulli", caller(), *mode.streams.name(generator))
    outcome = mode.outcomes(site, generator, heads.device, lambda: torch.bernoulli(heads, generator=generator))
    elements = np.empty(tuple(heads.shape), dtype=object)
    for index in np.ndindex(elements.shape):
        mass = float(heads[index])
        elements[index] = outcome(np.array([1 - mass, mass]), index)
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
    elements, place, generator = (
        np.empty(tuple(size), dtype=object),
        torch.device(device or "cpu"),
        named.get("generator"),
    )
    outcome = mode.outcomes(
        site, generator, place, lambda: torch.randint(low, high, size, device=place, generator=generator)
    )
    for index in np.ndindex(elements.shape):
        elements[index] = outcome(pmf, index, first=low)
    return LazyTensor(elements, dtype or torch.int64, place)


def _randperm(mode: _Answers, n: int, *, dtype: Any = None, device: Any = None, generator: Any = None, **_: Any) -> Any:
    left, site, place = list(range(n)), ("torch.randperm", caller()), torch.device(device or "cpu")
    outcome = mode.outcomes(site, generator, place, lambda: torch.randperm(n, device=place, generator=generator))
    chosen: list[int] = []
    while left:
        pmf = np.full(len(left), 1 / len(left))
        chosen.append(left.pop(outcome(pmf, (len(chosen),), way=(n,)).value()))
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
