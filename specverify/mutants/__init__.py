"""Planted bugs, one per file, each citing the real one. The suite must refute every one of them.

Every module below here that ends in ``MUTANT`` (or ``CONTROL``: a correct subject that looks wrong) is found by itself.
"""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from specverify.mutants.mutant import CATEGORIES, Control, Mutant


@lru_cache(maxsize=1)
def mutants() -> tuple[Mutant, ...]:
    """Return every planted bug, class by class."""
    found = [module.MUTANT for module in _modules() if hasattr(module, "MUTANT")]
    return tuple(sorted(found, key=lambda mutant: (mutant.category, mutant.name)))


@lru_cache(maxsize=1)
def suspects() -> tuple[Control, ...]:
    """Return every correct subject that looks wrong."""
    found = [module.CONTROL for module in _modules() if hasattr(module, "CONTROL")]
    return tuple(sorted(found, key=lambda control: control.name))


def left_out() -> dict[str, str]:
    """Return the recorded defects that cannot be planted here, each with the reason."""
    return {citation: why for module in _modules() for citation, why in getattr(module, "NOT_EXPRESSED", {}).items()}


def _modules() -> list[ModuleType]:
    return [import_module(item.name) for item in pkgutil.walk_packages(__path__, f"{__name__}.") if not item.ispkg]


__all__ = ["CATEGORIES", "Control", "Mutant", "left_out", "mutants", "suspects"]
