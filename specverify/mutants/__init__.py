"""Planted bugs, one per file, each citing the real one. The suite must refute every one of them."""

from specverify.mutants import (
    accepts_after_rejection,
    always_reject,
    dropped_confidence_token,
    eos_ignored_in_block,
    hidden_randomness,
    inverted_ratio,
    match_then_fresh_sample,
    one_token_too_many,
    raw_draft_declared,
    residual_floor,
    residual_from_target,
    row_off_by_one,
    seed_rule_top_two,
    state_forgets_its_round,
)
from specverify.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    residual_from_target.MUTANT,
    inverted_ratio.MUTANT,
    row_off_by_one.MUTANT,
    dropped_confidence_token.MUTANT,
    raw_draft_declared.MUTANT,
    always_reject.MUTANT,
    eos_ignored_in_block.MUTANT,
    one_token_too_many.MUTANT,
    accepts_after_rejection.MUTANT,
    residual_floor.MUTANT,
    hidden_randomness.MUTANT,
    state_forgets_its_round.MUTANT,
    match_then_fresh_sample.MUTANT,
    seed_rule_top_two.MUTANT,
)

__all__ = ["MUTANTS", "Mutant"]
