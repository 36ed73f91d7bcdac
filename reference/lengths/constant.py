"""A fixed number of drafted tokens (Leviathan et al. 2211.17192, Algorithm 1)."""

from __future__ import annotations

from ..types import LengthRule, Plan, never


def constant(gamma: int) -> LengthRule:
    """Return the rule: draft ``gamma`` tokens every round. Raises ``ValueError`` for a negative ``gamma``."""
    check_gamma(gamma, "gamma")
    return LengthRule(
        init=None,
        plan=lambda state, prefix: Plan(gamma, state),
        stop_after=never,
        update=lambda state, drafted, accepted: state,
    )


def check_gamma(gamma: int, name: str) -> None:
    """Raise ``ValueError`` unless ``gamma`` is an integer >= 0.

    ``name`` is its name in the message.
    """
    if isinstance(gamma, bool) or not isinstance(gamma, int) or gamma < 0:
        raise ValueError(f"{name} is {gamma!r}, expected an integer >= 0 (the number of drafted tokens)")
