"""One file per check; ``CHECKS`` lists them in the order they run."""

from collections.abc import Collection

from specverify.checks import (
    acceptance_is_optimal,
    acceptance_law,
    cache_equals_prefill,
    draft_is_honest,
    draws_are_independent,
    eos_is_final,
    greedy_is_argmax,
    horizon_is_respected,
    inputs_unchanged,
    law_is_declared,
    law_is_target,
    merging_is_sound,
    outputs_are_fresh,
    processors_see_their_prefix,
    program_is_its_draws,
    rows_are_independent,
    samples_agree,
    samples_fit_law,
    scores_match,
    stop_law,
    support_at_boundary_draws,
    tokens_are_supported,
)
from specverify.checks.check import Case, Check, Conditions
from specverify.verdict import Evidence

CHECKS: tuple[Check, ...] = (
    program_is_its_draws.CHECK,
    law_is_target.CHECK,
    law_is_declared.CHECK,
    greedy_is_argmax.CHECK,
    tokens_are_supported.CHECK,
    draft_is_honest.CHECK,
    acceptance_is_optimal.CHECK,
    eos_is_final.CHECK,
    horizon_is_respected.CHECK,
    merging_is_sound.CHECK,
    draws_are_independent.CHECK,
    rows_are_independent.CHECK,
    stop_law.CHECK,
    support_at_boundary_draws.CHECK,
    acceptance_law.CHECK,
    processors_see_their_prefix.CHECK,
    cache_equals_prefill.CHECK,
    scores_match.CHECK,
    inputs_unchanged.CHECK,
    outputs_are_fresh.CHECK,
    samples_fit_law.CHECK,
    samples_agree.CHECK,
)

EXACT_CHECKS = tuple(check for check in CHECKS if check.evidence is not Evidence.STATISTICAL)
"""Those that take no sample."""


def check_named(name: str) -> Check:
    """Return the check called ``name``. Raises ``ValueError`` if there is none."""
    return checks_named((name,))[0]


def checks_named(names: Collection[str]) -> tuple[Check, ...]:
    """Return the checks called so, in the order they run. Raises ``ValueError`` if there is none of one name."""
    unknown = set(names) - {check.name for check in CHECKS}
    if unknown:
        raise ValueError(f"no check is called {min(unknown)!r}, expected one of specverify list")
    return tuple(check for check in CHECKS if check.name in names)


__all__ = ["CHECKS", "EXACT_CHECKS", "Case", "Check", "Conditions", "check_named", "checks_named"]
