"""The scenarios of every exact check, smallest first, so that the first failure is a small one; ``CONFIDENT`` is last.

A scenario is plain data, which can be rebuilt from its name. Together the scenarios cover the inputs that many tests
omit: rows that depend on the whole context, token 0 likely, several rounds with gamma >= 2, a rejection at every
position, p = q and p nearly q, disjoint supports, point masses, ties, prompts of one token, and end-of-sequence tokens
inside accepted blocks.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from specverify.laws.certain_tables import CERTAIN, certain_pair, is_certain, large_pair
from specverify.laws.rounded_tables import ROUNDED, rounded_pair
from specverify.laws.tables import SHAPES, as_dtype, one_hot_rows, table_pair, unchangeable
from specverify.reference import LanguageModel, Task, Tokens

LARGE = 1024
"""Vocabulary size from which one-hot rows are created as floats directly."""


class Scenario(NamedTuple):
    """One decode to examine: a pair of table models, a prompt, and the limits of the text.

    ``shape`` is the kind of the tables, ``vocabulary`` their number of tokens, ``seed`` selects their rows; ``horizon``
    is the number of new tokens, ``eos`` are the end-of-sequence tokens.
    """

    shape: str
    vocabulary: int
    prompt: Tokens
    horizon: int
    eos: Tokens = ()
    seed: int = 0
    greedy: bool = False
    """Whether the target rows are made one-hot (temperature 0)."""
    float32: bool = False
    """Whether rows are float32. False: rationals, or float64 if the subject or the shape needs floats."""
    order: int = 0
    """Number of last tokens on which a row depends; 0: on the whole text."""

    @property
    def name(self) -> str:
        """Return the name of the scenario, a word that contains all its fields; ``scenario_named`` converts it back."""
        prompt, eos = "".join(map(str, self.prompt)), "".join(map(str, self.eos))
        word = f"{self.shape}-v{self.vocabulary}-p{prompt}-h{self.horizon}-s{self.seed}"
        word += (f"-e{eos}" if eos else "") + "-greedy" * self.greedy + "-float32" * self.float32
        return word + (f"-o{self.order}" if self.order else "")


@cache
def scenario_task(scenario: Scenario, rational: bool = True) -> Task:
    """Return the task of a scenario; its models are tables of ``Fraction`` if ``rational``, else of floats."""
    return _task(scenario, *_models(scenario, rational))


@cache
def handed_task(scenario: Scenario, rational: bool = True) -> Task:
    """Return the task of a scenario for a subject under test: the rows of its models are read-only.

    The models are tables of ``Fraction`` if ``rational``, else of floats.
    """
    return _task(scenario, *map(unchangeable, _models(scenario, rational)))


def _task(scenario: Scenario, target: LanguageModel, draft: LanguageModel) -> Task:
    if scenario.order:
        target, draft = _of_order(scenario.order, target), _of_order(scenario.order, draft)
    return Task(target, draft, eos=scenario.eos, horizon=scenario.horizon)


@cache
def _models(scenario: Scenario, rational: bool) -> tuple[LanguageModel, LanguageModel]:
    """Return the target and the draft model of ``scenario``: tables of ``Fraction`` if ``rational``, else of floats."""
    dtype = np.float32 if scenario.float32 else np.float64
    if scenario.shape == CERTAIN and scenario.vocabulary >= LARGE and not rational:
        return large_pair(scenario.vocabulary, scenario.seed)
    if scenario.shape in ROUNDED:
        return rounded_pair(scenario.shape, scenario.vocabulary, scenario.seed, dtype)
    pair = certain_pair if is_certain(scenario.shape) else table_pair
    target, draft = pair(scenario.shape, scenario.vocabulary, scenario.seed)
    if scenario.greedy:
        target = one_hot_rows(target)
    if scenario.float32 or not rational:
        target, draft = as_dtype(target, dtype), as_dtype(draft, dtype)
    return target, draft


def _of_order(order: int, model: LanguageModel) -> LanguageModel:
    """Return a model that reads only the last ``order`` tokens."""
    return lambda tokens: model(tokens[-order:])


CONFIDENT = Scenario("confident", 2, (0, 1), 3, seed=46)
"""Rows of q with probabilities 0.94 and 0.98, whose drafts are mostly rejected, and a row of p with such a one."""


def _all_scenarios() -> tuple[Scenario, ...]:
    small = [
        Scenario(shape, 2, prompt, horizon, seed=seed)
        for horizon in (1, 2, 3)
        for shape in SHAPES
        for prompt in ((0,), (0, 1, 0))
        for seed in (0, 1)
    ]
    several_rounds = [Scenario(shape, 3, (0, 1, 0), horizon, seed=2) for horizon in (3, 5) for shape in SHAPES]
    wide = [Scenario(shape, 4, (0, 3, 1, 0), 4, seed=3) for shape in ("generic", "zeros")]
    long = [Scenario(shape, 2, (0, 0), 7, seed=4) for shape in ("generic", "peaked")]
    ending = [
        Scenario(shape, 3, prompt, horizon, eos, seed=5)
        for horizon in (2, 4)
        for shape in ("generic", "peaked", "equal")
        for prompt, eos in (((0,), (2,)), ((0, 1, 0), (1, 2)), ((2, 0), (0,)))
    ]
    greedy = [
        Scenario(shape, vocabulary, (0, 1, 0), horizon, seed=6, greedy=True)
        for vocabulary, horizon in ((2, 2), (2, 4), (3, 5))
        for shape in ("generic", "ties", "equal")
    ]
    nearly = [Scenario("nearly_equal", vocabulary, (0, 1), 3, seed=7) for vocabulary in (2, 3)]
    everything = (*small, *several_rounds, *wide, *long, *ending, *greedy, *nearly)
    ordered = sorted(everything, key=lambda item: (item.vocabulary, item.horizon, len(item.prompt)))
    return (*ordered, CONFIDENT)


SCENARIOS = _all_scenarios()
ROUNDING_SCENARIOS = tuple(
    Scenario(shape, 4, (0, 1, 0), 3, seed=8, float32=float32)
    for shape, float32 in (
        *((shape, False) for shape in ROUNDED),
        *((shape, True) for shape in ("generic", "zeros", "just_below", "two_softmaxes")),
    )
)
"""Scenarios that need floats: p and q differ by rounding only, or rows are float32. Errors of this size are below the
bound of a law comparison."""

LONG_SCENARIOS = (
    Scenario("generic", 2, (0, 1), 48, seed=9, order=2),
    Scenario("generic", 2, (0, 0), 16, (1,), seed=9, order=1),
)
"""Long texts of models with a fixed order, and long texts with an end: see ``long_texts``."""


def scenario_named(name: str) -> Scenario:
    """Return the scenario with this name. Raises ``ValueError`` if there is none."""
    for scenario in (*SCENARIOS, *ROUNDING_SCENARIOS, *LONG_SCENARIOS):
        if scenario.name == name:
            return scenario
    raise ValueError(f"no scenario is called {name!r}")
