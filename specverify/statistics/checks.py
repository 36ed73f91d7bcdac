"""The validation shared by the planned statistics: every refusal is one sentence naming what, where and the remedy."""

from __future__ import annotations


def check_probability(value: float, name: str) -> None:
    """Raise ``ValueError`` unless ``0 < value < 1``; ``name`` is how the message calls it."""
    if not 0 < value < 1:
        raise ValueError(f"{name} is {value}, expected a probability strictly between 0 and 1")


def check_count(value: float, name: str, least: int = 1) -> None:
    """Raise ``ValueError`` unless ``value`` is a whole number and at least ``least``."""
    if not value >= least or value != int(value):
        raise ValueError(f"{name} is {value}, expected a whole number of at least {least}")


def check_minimum_expected(value: float) -> None:
    """Raise ``ValueError`` unless ``value``, the least expected count of a cell, is positive and finite."""
    if not 0 < value < float("inf"):
        raise ValueError(f"minimum_expected is {value}, expected a positive number of samples")
