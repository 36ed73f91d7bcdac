"""What one run draws from torch: uniforms and outcomes as lazy tensors, by the states of its generators."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import torch

from reference import Draws, Site
from specverify.intercept.caller import caller
from specverify.intercept.deferred import Categorical, Continuous, Uniform
from specverify.intercept.lazy_tensor import LazyTensor
from specverify.intercept.torch_filled import Filled
from specverify.intercept.torch_streams import TorchStreams

ONE_BELOW_ONE = {torch.float32: 1 - 2**-24, torch.float64: 1 - 2**-53}
"""The largest uniform of each dtype."""


class TorchDraws:
    """Answers the draws of one run."""

    def __init__(self, draws: Draws, forced: float | None) -> None:
        """``forced`` is the value of every uniform, if any."""
        self.draws, self.forced = draws, forced
        self.filled, self.streams = Filled(), TorchStreams()

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

    def outcomes(self, call: str, generator: Any, device: torch.device, advance: Callable[[], Any]) -> Any:
        """Return what makes the outcomes of one call, one after the other; ``advance`` makes them in fact."""
        site: Site = (call, caller(), *self.streams.name(generator))
        state, count = self.streams.state(generator, device, advance), iter(range(2**62))

        def outcome(pmf: Any, index: Site, first: int = 0, way: tuple[Hashable, ...] = ()) -> Categorical:
            place = next(count)
            draw = self.streams.draw(site, state and (state, place), (call, first, pmf.tobytes(), *way))
            return Categorical(self.draws, pmf, (*site, *index), first, draw)

        return outcome
