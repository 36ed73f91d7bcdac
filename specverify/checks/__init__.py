"""One file per check; ``CHECKS`` lists them in the order they run."""

from importlib import import_module

from specverify.checks.check import Check, Conditions

FILES = (
    "program_is_its_draws",
    "law_is_target",
    "law_is_declared",
    "greedy_is_argmax",
    "tokens_are_supported",
    "draft_is_honest",
    "acceptance_is_optimal",
    "eos_is_final",
    "horizon_is_respected",
    "merging_is_sound",
    "draws_are_independent",
    "rows_are_independent",
    "stop_law",
    "support_at_boundary_draws",
    "acceptance_law",
    "processors_see_their_prefix",
    "cache_equals_prefill",
    "scores_match",
    "inputs_unchanged",
    "outputs_are_fresh",
    "samples_fit_law",
    "samples_agree",
)
"""The modules whose ``CHECK`` is run, in this order."""

CHECKS: tuple[Check, ...] = tuple(import_module(f"{__name__}.{file}").CHECK for file in FILES)

__all__ = ["CHECKS", "Check", "Conditions"]
