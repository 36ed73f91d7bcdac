"""Tests of explanations compare the laws of programs that are functions of their draws, and read the message."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _laws_alone(named_checks_alone: None) -> None:
    """Run the checks that the tests name, and no replays before them."""
