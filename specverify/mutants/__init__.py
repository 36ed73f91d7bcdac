"""Planted bugs, one module for each class of bugs. The suite must refute all of them.

Each bug cites the real defect that it copies, or is marked "plausible" if no real defect of this kind is recorded.
A decorator makes a function a ``Mutant``. Every ``Mutant`` of a module is registered, and every ``Control``: a correct
subject that looks wrong.
"""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TypeVar

from specverify.mutants.mutant import CATEGORIES, Control, Mutant

Planted = TypeVar("Planted", Mutant, Control)


@lru_cache(maxsize=1)
def mutants() -> tuple[Mutant, ...]:
    """Return every planted bug, sorted by class and then by name."""
    return tuple(sorted(_all_of(Mutant), key=lambda mutant: (mutant.category, mutant.name)))


@lru_cache(maxsize=1)
def suspects() -> tuple[Control, ...]:
    """Return every correct subject that looks wrong (``Control``), sorted by name."""
    return tuple(sorted(_all_of(Control), key=lambda control: control.name))


def left_out() -> dict[str, str]:
    """Return the recorded defects that cannot be planted here: citation of the defect -> the reason."""
    return {citation: why for module in _modules() for citation, why in getattr(module, "NOT_EXPRESSED", {}).items()}


def _all_of(kind: type[Planted]) -> list[Planted]:
    return [value for module in _modules() for value in vars(module).values() if isinstance(value, kind)]


def _modules() -> list[ModuleType]:
    return [import_module(item.name) for item in pkgutil.walk_packages(__path__, f"{__name__}.") if not item.ispkg]


__all__ = ["CATEGORIES", "Control", "Mutant", "left_out", "mutants", "suspects"]
