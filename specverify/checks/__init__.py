"""One file per check; ``CHECKS`` lists them in the order they run."""

from specverify.checks import (
    acceptance_is_optimal,
    draft_is_honest,
    eos_is_final,
    greedy_is_argmax,
    horizon_is_respected,
    law_is_declared,
    law_is_target,
    merging_is_sound,
    program_is_its_draws,
    samples_fit_law,
    tokens_are_supported,
)
from specverify.checks.check import Check, Conditions

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
    samples_fit_law.CHECK,
)

__all__ = ["CHECKS", "Check", "Conditions"]
