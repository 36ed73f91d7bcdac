"""The share of scenarios that the tests examine: some by default, all in the thorough profile."""

from __future__ import annotations

from hypothesis import settings


def is_thorough():
    """Return whether the tests run with the profile "thorough"."""
    return settings().max_examples > 100


def share_of(scenarios, place, parts):
    """Return every ``parts``-th scenario, beginning at one that depends on ``place``; all in the thorough profile."""
    return scenarios if is_thorough() else scenarios[place % parts :: parts]
