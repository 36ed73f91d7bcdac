"""The hint for an engine that fails because the vocabulary of the smallest scenarios has too few tokens."""

from __future__ import annotations

from itertools import product
from typing import Any

from specverify.laws.engine_scenarios import SCENARIOS
from specverify.subjects.call_arguments import run_seeds
from specverify.subjects.engine import tokens_of
from specverify.subjects.engine_decodes import decodes_in
from specverify.subjects.engine_factories import WithVocabulary
from specverify.subjects.engine_making import Make
from specverify.subjects.seeded import seeded

MOST_TOKENS = 8
"""Largest vocabulary that is tried for an engine that fails because it needs more tokens (``alphabet_hint``)."""
_SEEDS, _MORE_SEEDS = 4, 16
"""Numbers of seeds in the smallest scenarios, and with each larger vocabulary, where no seed may fail."""


def alphabet_hint(make: Make | WithVocabulary) -> str:
    """Return a hint for an engine of ``make`` that fails because the vocabulary is too small; "" for any other engine.

    Such an engine emits a token outside the vocabulary, or raises ``IndexError`` or ``KeyError``, in the smallest
    scenarios, but not with any larger vocabulary from some number of tokens on.
    """
    given = make if isinstance(make, WithVocabulary) else WithVocabulary(make, SCENARIOS[0].vocabulary)
    wrong = _outside(given)
    larger = range(given.vocabulary + 1, MOST_TOKENS + 1) if wrong else ()
    failing = [vocabulary for vocabulary in larger if _outside(given._replace(vocabulary=vocabulary), _MORE_SEEDS)]
    least = max(failing, default=given.vocabulary) + 1
    if not wrong or least > MOST_TOKENS:
        return ""
    return (
        f"The smallest of its scenarios have the vocabulary {set(range(given.vocabulary))}, and there {wrong}. "
        "If it needs more tokens (an end of its own, ids with a meaning), write check_engine(make, "
        f"sizes=Sizes(least_vocabulary={least})): then every scenario has at least that many"
    )


def _outside(make: WithVocabulary, seeds: int = _SEEDS) -> str:
    """Describe an engine's failure in the smallest scenarios: a token outside the vocabulary, or a look-up error.

    Returns "" if there is none with the first ``seeds`` seeds. ``make`` creates the engine.
    """
    called: Any = make
    for scenario, seed in product(map(make.widen, SCENARIOS[:2]), range(seeds)):
        with seeded(seed), run_seeds():
            try:
                tokens = tokens_of(decodes_in(called, scenario).speculative())
            except (IndexError, KeyError) as error:
                return f"it raises {type(error).__name__}: {error}"
            except Exception:  # noqa: BLE001, S112 - it says nothing of tokens
                continue
        if (token := max(tokens[: scenario.horizon])) >= scenario.vocabulary:
            return f"it emits token {token}"
    return ""
