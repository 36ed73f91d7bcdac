"""Validators of options that import their modules only when an option has a value, which keeps ``--help`` fast."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Validator = Callable[..., None]


def _late(name: str, module: str = "arguments") -> Validator:
    """Return a validator that imports the function ``name`` from ``specverify.base.<module>`` when it is called."""

    def validate(*given: Any) -> None:
        getattr(import_module(f"specverify.base.{module}"), name)(*given)

    return validate


check_choice, check_count, check_number = _late("check_choice"), _late("check_count"), _late("check_number")
check_positive, check_probability = _late("check_positive"), _late("check_probability")
check_edge = _late("check_edge", "edges")
check_rounding, check_seconds, check_seed = _late("check_rounding"), _late("check_seconds"), _late("check_seed")
