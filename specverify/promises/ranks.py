"""Check that all ranks of an engine emit the same tokens, also if logits are nearly tied.

Each rank computes the outputs of its models itself, so they differ by rounding. In the greedy scenarios here the best
two tokens of some texts are a near tie, and ranks disagree about the better one; in the other scenarios the pmfs of a
rank are off by ``ROUNDING``. The generators of ``random``, NumPy and torch are in another state on each rank, as in
separate processes; a call that takes a seed gets one seed on all ranks. Ranks agree if one of them decides, if they
exchange their pmfs, or if they share one seed and exchange everything that rounding may change.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.laws.scenarios import Scenario
from specverify.promises.pairs import MISS, share_seen
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.call_arguments import given_seeds, takes_seed, with_seed_named
from specverify.subjects.engine import tokens_of
from specverify.subjects.engine_decodes import form_in
from specverify.subjects.engine_factories import widened
from specverify.subjects.engine_making import EngineScenario, Make, made_in
from specverify.subjects.rank_groups import Group, Job, Silent, Unlike, ranks_of
from specverify.subjects.requests import texts_of
from specverify.subjects.seeded import seeded
from specverify.subjects.subject import EngineProgram, KernelSetting

PROMISES: Final = {"ranks": False, "ranks-gloo": True}
"""Name of a promise -> whether the ranks communicate by ``torch.distributed`` with gloo."""
ROUNDING: Final = 1e-6
"""Relative difference between the pmfs of two ranks."""
SEEDS: Final = 12
NEAR_TIES = tuple(Scenario(("generic", "ties")[seed % 2], 3, (1, 0), 8, seed=seed, greedy=True) for seed in range(8))
OPEN = tuple(Scenario("generic", 3, (0, 1, 0), 5, seed=seed) for seed in (30, 31))
SCENARIOS: Final = {"near ties": (NEAR_TIES, 1), "random tokens": (OPEN, SEEDS)}
"""Case -> (its scenarios, number of seeds per scenario)."""
_ONE_OF: Final = 3
"""One in this many texts of a greedy scenario has a near tie for the next token."""


def models_of_rank(models: EngineScenario, group: Group, *, greedy: bool) -> EngineScenario:
    """Return the scenario ``models`` as one rank computes it: with its own rounding of the pmfs.

    ``group`` has the number of the rank. If ``greedy``, this number determines which of two nearly tied tokens is more
    probable; otherwise it determines small errors of the probabilities.
    """
    rounded = _decided_on if greedy else _rounded_on
    return models._replace(
        target=rounded(models.target, group.rank), draft=rounded(models.draft, group.rank), group=group
    )


def _number(*given: Any) -> int:
    return zlib.crc32(repr(given).encode())


def _decided_on(model: LanguageModel, rank: int) -> LanguageModel:
    def decided(tokens: Tokens) -> Any:
        row, text = np.array(model(tokens), dtype=np.float64), tuple(map(int, tokens))
        if row.max() < 1 or _number(text) % _ONE_OF or not (rank + _number(text, "side")) % 2:
            return row
        return np.roll(row, 1)  # the second of two tokens that are equal up to rounding

    return decided


def _rounded_on(model: LanguageModel, rank: int) -> LanguageModel:
    def rounded(tokens: Tokens) -> Any:
        row = np.array(model(tokens), dtype=np.float64)
        noise = np.random.default_rng(_number(rank, tuple(map(int, tokens)))).uniform(-1, 1, len(row))
        row = row * (1 + ROUNDING * noise)
        return row / row.sum()

    return rounded


def _job(make: Make, form: Any, given: tuple[Scenario, int]) -> Job:
    """Return the function that a rank runs: it builds the engine ``make`` and decodes the prompt of a scenario.

    ``given`` is (scenario, seed), and ``form`` the form in which the engine takes prompts.
    """
    scenario, seed = given

    def job(rank: int, group: Group) -> Tokens:
        with seeded(seed + 7919 * (rank + 1)), given_seeds((seed,)):
            made = made_in(lambda models: make(models_of_rank(models, group, greedy=scenario.greedy)), scenario)
            call = with_seed_named(made.speculative)
            (row,) = texts_of(
                call, [scenario.prompt], batched=made.batched, form=form, horizon=scenario.horizon, eos=scenario.eos
            )
            return tuple(map(int, tokens_of(row)[: scenario.horizon]))

    return job


def examine(make: Make, size: int, gloo: bool, case: str, conditions: Conditions) -> Examination:
    """Compare the texts of all ``size`` ranks of the engine ``make``; a difference refutes.

    ``case`` is a key of ``SCENARIOS``. ``gloo`` states whether the ranks communicate by ``torch.distributed``. The seed
    in ``conditions`` selects the seeds of the calls. The result is unknown if the ranks do not finish in time.
    """
    scenarios, seeds = SCENARIOS[case]
    form, compared = form_in(make, "speculative"), 0
    seeded_call = takes_seed(made_in(make, widened(make, scenarios[0])).speculative)
    with ranks_of(size, partial(_job, make, form), gloo=gloo) as run:
        for scenario in (widened(make, each) for each in scenarios):
            for seed in range(1 + 7919 * conditions.seed, 1 + 7919 * conditions.seed + seeds):
                texts = run((scenario, seed))
                compared += 1
                if isinstance(texts, Silent):
                    said = f"{texts.said}: either the ranks wait for each other or the engine is slow"
                    return Examination(said, unknown=True, rational=False, figures={"pairs": compared})
                if isinstance(texts, Unlike):
                    return _refuted(scenario, seed, seeded_call, texts.said, (), compared)
                if len(set(texts)) > 1:
                    return _refuted(scenario, seed, seeded_call, _parted(texts), texts, compared)
    if case == "near ties":
        return Examination(
            f"all {size} ranks emit the same tokens at near ties", rational=False, figures={"pairs": compared}
        )
    seen = f"a difference in {share_seen(compared):.0%} of the texts would have been seen"
    said = f"all {size} ranks emit the same tokens: {seen}, with error probability {MISS:g}"
    return Examination(said, rational=False, figures={"pairs": compared})


def _parted(texts: Sequence[Tokens]) -> str:
    other = next(rank for rank, text in enumerate(texts) if text != texts[0])
    one, two = texts[0], texts[other]
    at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
    return f"rank 0 emits {one} and rank {other} emits {two}, from new token {at + 1} on"


def _refuted(
    scenario: Scenario,
    seed: int,
    seeded_call: bool,
    said: str,
    texts: Sequence[Tokens],
    compared: int,
) -> Examination:
    fault = f"ranks of one engine do not emit the same tokens: {said}"
    rows = "the best two tokens of some rows are a near tie, which each rank decides by its own rounding"
    if not scenario.greedy:
        rows = f"the rows of a rank are off by {ROUNDING:g}, relatively"
    state = "passed to every rank" if seeded_call else "the generators of each rank are in a state of their own"
    let = (f"setting {scenario.name}, prompt {scenario.prompt}", rows, f"seed {seed}, {state}")
    because = tuple(f"rank {rank}: {text}" for rank, text in enumerate(texts))
    example = Counterexample(let, fault, because, fault=fault)
    return Examination(
        f"{scenario.name}: {fault}", failed=True, rational=False, counterexample=example, figures={"pairs": compared}
    )


def ranks_check(make: Make, size: int, promise: str) -> Check:
    """Return the check that ``size`` ranks of the engine ``make`` emit the same tokens.

    ``promise`` is a key of ``PROMISES``, which states whether the ranks communicate by ``torch.distributed``.
    """
    gloo = PROMISES[promise]

    def examined(situation: KernelSetting, conditions: Conditions) -> Examination:
        return examine(make, size, gloo, situation.name, conditions)

    return Check(
        name="ranks_agree_by_gloo" if gloo else "ranks_agree",
        summary="all ranks emit the same tokens, also at near ties",
        claim=None,
        evidence=Evidence.STATISTICAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), lambda _: map(KernelSetting, SCENARIOS)),),
    )
