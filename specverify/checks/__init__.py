"""One file per check; ``CHECKS`` lists them in the order they run."""

from collections.abc import Collection
from importlib import import_module

from specverify.base.verdict import Evidence
from specverify.checks.check import Case, Check, Conditions

FILES = (
    "program_is_its_draws",
    "law_is_target",
    "long_law_is_target",
    "call_law",
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

EXACT_CHECKS = tuple(check for check in CHECKS if check.evidence is not Evidence.STATISTICAL)
"""The checks that do not take samples."""


def check_named(name: str) -> Check:
    """Return the check called ``name``. Raises ``ValueError`` if there is none."""
    return checks_named((name,))[0]


def checks_named(names: Collection[str]) -> tuple[Check, ...]:
    """Return the checks with these names, in the order they run. Raises ``ValueError`` for an unknown name."""
    unknown = set(names) - {check.name for check in CHECKS}
    if unknown:
        raise ValueError(f"no check is called {min(unknown)!r}, expected one of specverify list")
    return tuple(check for check in CHECKS if check.name in names)


__all__ = ["CHECKS", "EXACT_CHECKS", "Case", "Check", "Conditions", "check_named", "checks_named"]
