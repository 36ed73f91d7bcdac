"""torch as a library under test: the names that expressions may use, and the calls that draw.

Three lists are combined, all read from the installed torch: the operations that torch itself marks as drawing (the tag
``nondeterministic_seeded``), each by its first Python name; the functions and classes written in Python whose code
names one of them, directly or through functions that they call; and all distributions and generators.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
import torch.nn.utils.parametrizations
import torch.quasirandom
import torch.testing
from torch import distributions, nn
from torch.nn import functional, init
from torch.utils import data

from specverify.intercept.torch import generators
from test_support.intercept.drawing_calls import Library

PLACES = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": functional, "torch._C._nn": torch._C._nn}
"""Where an operation has a Python name."""
MODULES = {"torch": torch, "torch.nn.functional": functional, "torch.nn.init": init, "torch.nn": nn,
           "torch.distributions": distributions, "torch.utils.data": data, "torch.quasirandom": torch.quasirandom,
           "torch.testing": torch.testing, "torch.autograd": torch.autograd, "torch.linalg": torch.linalg,
           "torch.nn.utils": nn.utils, "torch.nn.utils.parametrizations": nn.utils.parametrizations,
           "torch.random": torch.random}  # fmt: skip
"""Public modules whose functions and classes are looked through."""
STATES = ("get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state")
CONSTRUCTION = {"__init__", "reset_parameters", "_reset_parameters"}
"""Parameters are initialised by ``torch.nn.init``, which has lines of its own."""


def names_of_torch() -> set[str]:
    """Return the names of all calls of torch that draw, or may draw."""
    states = {f"torch.{name}" for name in STATES} | {f"torch.random.{name}" for name in ("fork_rng", *STATES)}
    generators = {f"torch.Generator.{name}" for name in vars(torch._C.Generator) if not name.startswith("_")}
    drawing = set(_operations()) | set(_functions()) | set(_classes())
    return {name for name in drawing | states | generators if name not in ALIASES}


ALIASES = {f"torch.random.{name}" for name in STATES}
"""The same functions under another name."""


def _operations() -> Iterator[str]:
    for name in generators.drawing_names():
        owners = {getattr(owner, name, None): place for place, owner in reversed(PLACES.items())}
        found = [f"{place}.{name}" for function, place in owners.items() if callable(function)]
        yield from found or [f"torch.ops.aten.{name}"]


def _public() -> Iterator[tuple[str, Any]]:
    for place, module in MODULES.items():
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith("torch"):
                yield f"{place}.{name}", value


def _functions() -> Iterator[str]:
    seen = set()
    for name, value in _public():
        if isinstance(value, FunctionType) and value not in seen and draws_through(value):
            seen.add(value)
            yield name


def _classes() -> Iterator[str]:
    for name, value in _public():
        if inspect.isclass(value) and (
            issubclass(value, distributions.Distribution) or any(map(draws_through, _methods(value)))
        ):
            yield name


def _methods(kind: type) -> Iterator[FunctionType]:
    for base in kind.__mro__:
        for name, value in vars(base).items() if base.__module__.startswith("torch") else ():
            method = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if isinstance(method, FunctionType) and name not in CONSTRUCTION:
                yield method


def draws_through(function: FunctionType) -> set[str]:
    """Return the drawing operations named in the code of a function and of the functions that it names."""
    waiting, seen, found = [function], set(), set()
    while waiting:
        current = waiting.pop()
        if current in seen or not str(current.__module__).startswith("torch"):
            continue
        seen.add(current)
        named = _names(current.__code__)
        found |= named & generators.drawing_names()
        owners = [owner for name in named if isinstance(owner := current.__globals__.get(name), ModuleType)]
        reached = [current.__globals__.get(name) for name in named]
        reached += [vars(owner).get(name) for owner in owners for name in named]
        reached += [cell.cell_contents for cell in current.__closure__ or () if _is_set(cell)]
        waiting += [value for value in reached if isinstance(value, FunctionType)]
    return found


def _names(code: CodeType) -> set[str]:
    inner = [_names(part) for part in code.co_consts if isinstance(part, CodeType)]
    return set(code.co_names).union(*inner)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _alike(module: nn.Module) -> nn.Module:
    """Set all parameters of a module to one value, so that only draws make a difference; return the module."""
    for parameter in module.parameters():
        nn.init.constant_(parameter, 0.25)
    return module


GENERATOR = torch.Generator()
P = torch.tensor([0.5, 0.125, 0.375])
LAYERS = {"num_layers": 2, "dropout": 0.5}
NAMES = {
    "torch": torch,
    "F": functional,
    "init": init,
    "nn": nn,
    "D": distributions,
    "data": data,
    "generator": GENERATOR,
    "P": P,
    "CDF": P.cumsum(0),
    "STATE": torch.Generator().manual_seed(3).get_state(),
    "ONES": torch.ones(4, 4),
    "HEADS": torch.ones(1, 1, 4, 4),
    "SQUARE": torch.arange(49.0).reshape(1, 7, 7) * 7 % 11,
    "CUBE": torch.arange(343.0).reshape(1, 7, 7, 7) * 7 % 11,
    "SYMMETRIC": torch.diag(torch.tensor([1.0, 2.0, 5.0, 9.0])),
    "DOUBLE": torch.ones(2, dtype=torch.float64, requires_grad=True),
    "LSTM": _alike(nn.LSTM(4, 4, **LAYERS)),
    "QUIET": _alike(nn.LSTM(4, 4, **LAYERS)).eval(),
    "GRU": _alike(nn.GRU(4, 4, **LAYERS)),
    "RNN": _alike(nn.RNN(4, 4, **LAYERS)),
    "RELU": _alike(nn.RNN(4, 4, **LAYERS, nonlinearity="relu")),
    "ATTENTION": _alike(nn.MultiheadAttention(4, 1, dropout=0.5)),
    "ENCODER": _alike(nn.TransformerEncoderLayer(4, 1, 4, 0.5)),
    "DECODER": _alike(nn.TransformerDecoderLayer(4, 1, 4, 0.5)),
}


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Context manager that seeds torch's generators, and restores their states."""
    before = GENERATOR.get_state()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of calls that are on their way out
        torch.manual_seed(2 * seed)
        GENERATOR.manual_seed(2 * seed + 1)
        yield
    GENERATOR.set_state(before)


def states() -> Any:
    """Return the states of torch's generators."""
    return [generator.get_state().numpy().tobytes() for generator in (torch.default_generator, GENERATOR)]


TORCH = Library(Path(__file__).parent / "calls_of_torch.txt", {}, NAMES, seeded, states, names_of_torch)
