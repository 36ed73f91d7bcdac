"""One file per check; ``CHECKS`` lists them in the order they run."""

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
    draws_are_independent.CHECK,
    rows_are_independent.CHECK,
    stop_law.CHECK,
    support_at_boundary_draws.CHECK,
    acceptance_law.CHECK,
    processors_see_their_prefix.CHECK,
    cache_equals_prefill.CHECK,
    scores_match.CHECK,
    inputs_unchanged.CHECK,
    samples_fit_law.CHECK,
    samples_agree.CHECK,
)

__all__ = ["CHECKS", "Check", "Conditions"]
