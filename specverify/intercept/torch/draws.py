"""What one run draws from torch: uniforms and outcomes as lazy tensors, by the states of its generators."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy import empty  # by name: inside a block NumPy has another

from specverify.intercept.boundary import SMALLEST, Boundary, Forced, boundary_of
from specverify.intercept.caller import caller
from specverify.intercept.torch.filled import Filled
from specverify.intercept.torch.lazy_tensor import LazyTensor
from specverify.intercept.torch.streams import TorchStreams
from specverify.intercept.unknowns.algebra import check_not_equal
from specverify.intercept.unknowns.continuous import Continuous, exponential, whole_number
from specverify.intercept.unknowns.deferred import Categorical
from specverify.intercept.unknowns.many import NoiseBlock, uniforms
from specverify.intercept.unknowns.many_steps import LOGS, Steps
from specverify.intercept.unknowns.sizes import check_numbers
from specverify.intercept.unknowns.steps import times
from specverify.intercept.unknowns.uniform import NeedsValue, Uniform
from specverify.intercept.unknowns.wide import MANY, Drawn, Wide, at_large_now, continuous_in_16_bits, large
from specverify.laws import rounding
from specverify.reference import Draws, Site

FEW = 11
"""So many bits of a uniform, or less, are so few numbers that a law shows it."""
BITS = {torch.bfloat16: 8, torch.float16: 11, torch.float32: 24, torch.float64: 53}
"""Bits of the significand of each dtype: its largest uniform is 1 - 2**-bits."""


class Noise(NamedTuple):
    """A continuous law that torch draws from."""

    image: Callable[[Uniform], Continuous]
    """What a number is of a uniform one."""
    fill: Callable[..., Any]
    """What draws in fact: ``fill(tensor, generator=generator)``."""
    exponential: bool = True
    """Whether values at the ends are those of an exponential, else of a uniform."""
    alone: bool = False
    """Whether each number of a tensor in host memory is drawn as one that is drawn alone."""
    way: tuple[Hashable, ...] = ()
    """What tells it from other laws that one call draws from."""


UNIFORM = Noise(Continuous, torch.Tensor.uniform_, exponential=False, alone=True)
EXPONENTIAL = Noise(exponential, torch.Tensor.exponential_)


class TorchDraws:
    """Answers the draws of one run."""

    def __init__(self, draws: Draws, forced: Forced) -> None:
        """``forced`` gives uniforms their values, if anything does."""
        self.draws, self.boundary = draws, boundary_of(forced)
        self.filled, self.streams = Filled(), TorchStreams()

    def noise(self, noise: Noise, like: torch.Tensor, call: str, generator: Any) -> Any:
        """Return a lazy tensor of fresh random numbers; an ordinary one where a value is forced."""
        check_numbers(call, like.shape)
        if self.boundary is not None:
            return _forced(self.boundary, like, call, exponentials=noise.exponential)
        site: Site = (call, caller(), *self.streams.name(generator))
        if large(like.numel(), MANY):
            return self._many(like, site, noise, generator)
        elements = empty(tuple(like.shape), dtype=object)
        values = _values(noise, call, like.dtype)
        alike = noise.alone and like.device.type == "cpu"
        way = ("uniform" if noise.alone else call, like.dtype, *noise.way)

        drawn = torch.empty(() if alike else like.shape, dtype=like.dtype, device=like.device)
        advance = partial(noise.fill, drawn, generator=generator)

        states = self.streams.states(generator, like.device, advance, elements.size if alike else 1)
        state = None if alike else next(states)
        for place, index in enumerate(product(*map(range, elements.shape))):
            source = (next(states), 0) if alike else state and (state, place)
            own = (*site, *index)
            elements[index] = values(Uniform(self.draws, own, self.streams.draw(own, source, way)))
        return LazyTensor(elements, like.dtype, like.device)

    def _many(self, like: torch.Tensor, site: Site, noise: Noise, generator: Any) -> LazyTensor:
        """Return very many random numbers of one call."""
        check_not_equal(str(like.dtype).removeprefix("torch."))
        drawn = torch.empty(like.shape, dtype=like.dtype, device=like.device)
        state = self.streams.state(generator, like.device, partial(noise.fill, drawn, generator=generator))
        way = ("many", site[0], tuple(like.shape), like.dtype, *noise.way)
        draw = self.streams.draw(site, state and (state, 0), way)
        found = uniforms(NoiseBlock(self.draws, site, draw, like.numel()), tuple(like.shape))
        many = found.then(LOGS).then(Steps("times", -1.0)) if noise.exponential else found
        return LazyTensor(many, like.dtype, like.device)

    def whole_numbers(
        self, like: torch.Tensor, call: str, low: int, number: int, generator: Any, advance: Callable[[], Any]
    ) -> Any:
        """Return a tensor of whole numbers, each one of so many from ``low`` on: more than are followed."""
        check_numbers(call, like.shape)
        if self.boundary is not None:
            boundary = self.boundary
            found = boundary.several(like.numel(), lambda: boundary.whole(call, low, number))
            return torch.tensor(found, dtype=like.dtype, device=like.device).reshape(like.shape)
        site: Site = (call, caller(), *self.streams.name(generator))
        state = self.streams.state(generator, like.device, advance)
        elements = empty(tuple(like.shape), dtype=object)
        for place, index in enumerate(np.ndindex(elements.shape)):
            draw = self.streams.draw((*site, *index), state and (state, place), (call, number))
            elements[index] = whole_number(Uniform(self.draws, (*site, *index), draw), low, number)
        return LazyTensor(elements, like.dtype, like.device)

    def outcomes(self, call: str, generator: Any, device: torch.device, advance: Callable[[], Any]) -> Any:
        """Return what makes the outcomes of one call, one after the other; ``advance`` makes them in fact."""
        site: Site = (call, caller(), *self.streams.name(generator))
        state, count = self.streams.state(generator, device, advance), iter(range(2**62))

        def outcome(pmf: Any, index: Site, first: int = 0, way: tuple[Hashable, ...] = ()) -> Any:
            place = next(count)
            draw = self.streams.draw(site, state and (state, place), (call, first, pmf.tobytes(), *way))
            if at_large_now() and large(int(np.count_nonzero(pmf))):
                drawn = draw.shared(lambda: Drawn(self.draws, (*site, *index), draw, lambda: pmf))
                return Wide(drawn, np.arange(first, first + len(pmf)))
            return Categorical(self.draws, pmf, (*site, *index), first, draw)

        return outcome


def _values(noise: Noise, call: str, dtype: torch.dtype) -> Callable[[Uniform], Continuous]:
    """Return what a uniform is an image of: in 16 bits one of few numbers, which may be equal.

    Noise is taken to be continuous in 16 bits as well where the rows of a single call have no more: its rule is that.
    """
    bits = BITS.get(dtype, 53)
    if bits > FEW or (noise.exponential and continuous_in_16_bits()):
        return noise.image
    if noise.exponential:
        raise NeedsValue(
            "few-bits", f"{call} at {caller()} draws noise of {dtype}, which is often equal: draw it in float32"
        )
    rounding.saw(dtype)
    return lambda uniform: whole_number(uniform, 0, 2**bits).then(times(2.0**-bits))


def _forced(boundary: Boundary, like: torch.Tensor, call: str, *, exponentials: bool) -> torch.Tensor:
    """Return an ordinary tensor of uniforms, or of exponentials, that have the values ``boundary`` gives them."""
    if exponentials:
        least = max(SMALLEST, torch.finfo(like.dtype).smallest_normal * torch.finfo(like.dtype).eps)
        often = 2.0 ** -BITS[like.dtype]  # on a GPU; on a CPU some are rarer
        numbers = boundary.several(like.numel(), lambda: boundary.exponential(call, least, least=often))
    else:
        largest = 1 - 2.0 ** -BITS[like.dtype]
        numbers = boundary.several(like.numel(), lambda: boundary.uniform(call, largest))
    return torch.tensor(numbers, dtype=like.dtype, device=like.device).reshape(like.shape)
