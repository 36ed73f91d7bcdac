"""States of torch's generators: what a draw is made from, whoever seeded, copied or restored it.

Before each draw the real state is read, and the real generator is moved on by really drawing. So seeding again,
``set_state``, ``set_rng_state``, ``fork_rng`` and two generators of one seed all come back to a state that was drawn
from before. On the CPU uniforms are told apart one by one: ``rand(2)`` and two ``rand(())`` after the same seed are the
same numbers, as they are in torch. Other draws are known by the state before the call and their place in it.

A run always begins with the same state, and every generator is given back as it was, so runs can be repeated and the
state that a program is started in does not matter. A generator made by the program keeps what the program does to it.
Devices without a generator that can be read are taken to give fresh numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from reference import Site
from specverify.intercept.streams import Streams

_START = torch.Generator().manual_seed(0x5BEC7E11F1ED).get_state()
"""The state of the global generator when a run begins: of a seed that nobody else would choose."""


class TorchStreams(Streams):
    """The states that torch's generators were drawn from in one run."""

    def __init__(self) -> None:
        """Nothing has been drawn."""
        super().__init__()
        self._named: list[Any] = []
        self._before: dict[int, tuple[Any, torch.Tensor]] = {}
        """Generators that were drawn from, and their states before that."""

    def name(self, generator: Any) -> Site:
        """Return what tells the draws of a generator apart from those of others, in the order they first drew."""
        if generator is None:
            return ()
        if not any(generator is known for known in self._named):
            self._named.append(generator)
        return (f"generator {self._named.index(generator)}",)

    def state(self, generator: Any, device: torch.device, advance: Callable[[], Any]) -> bytes | None:
        """Return the state of ``generator``, or of the device's own, and move it on by what ``advance`` draws."""
        real = generator if generator is not None else _own(device)
        if real is None:
            return None
        state = real.get_state()
        self._before.setdefault(id(real), (real, state))
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - or a block around this one would answer it
            advance()
        return hashlib.blake2b(state.numpy().tobytes(), digest_size=16).digest()

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Begin with one state, and leave every generator as it was."""
        own = torch.default_generator
        self._before[id(own)] = (own, own.get_state())
        own.set_state(_START)
        try:
            yield
        finally:
            for generator, state in self._before.values():
                generator.set_state(state)


def _own(device: torch.device) -> Any:
    """Return the generator that a device draws from when none is named."""
    if device.type == "cpu":
        return torch.default_generator
    if device.type == "cuda":
        return torch.cuda.default_generators[torch.cuda.current_device() if device.index is None else device.index]
    return None
