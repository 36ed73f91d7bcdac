"""How much the tests go through: a share by default, everything when thorough."""

from __future__ import annotations

from hypothesis import settings


def is_thorough():
    """Return whether this is a run with the profile "thorough"."""
    return settings().max_examples > 100


def share_of(scenarios, place, parts):
    """Return every ``parts``-th scenario, others for the next ``place``; all of them when thorough."""
    return scenarios if is_thorough() else scenarios[place % parts :: parts]
