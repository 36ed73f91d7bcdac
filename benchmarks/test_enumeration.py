"""Merged enumeration against path by path, counted in runs of the program. Timing is printed; the counts are asserted.

The plain way to a law is to run the decoder with full drafts in every round, along every path, and cut the output at
the horizon. Merging equal states after each round is one saving, drafting no further than the horizon another.
"""

from __future__ import annotations

from functools import cache

import pytest

from reference import Decoder, Draws, Round, State, Task, Tokens
from reference.algorithms import speculative_sampling
from specverify.laws.enumeration import decoder_law, program_law, whole_run
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.laws.tables import table_pair

PROMPT: Tokens = (0,)


def task_of(vocabulary: int, horizon: int) -> Task:
    target, draft = table_pair("generic", vocabulary, seed=0)
    return Task(target, draft, horizon=horizon)


def with_full_drafts(task: Task, gamma: int) -> Decoder:
    """Return the decoder that drafts gamma tokens in every round and cuts what is beyond the horizon."""
    inner = speculative_sampling.build(task._replace(horizon=task.horizon + gamma), gamma)
    end = len(PROMPT) + task.horizon

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        return (State(after.tokens[:end], 0) if len(after.tokens) >= end else after), done

    return inner._replace(step=step)


def number_of_paths(decoder: Decoder) -> int:
    """Count the paths of a whole run without following them: paths of a round times paths of what comes after."""

    @cache
    def count(state: State) -> int:
        if not state.remaining:
            return 1
        return sum(count(path.outcome[0]) for path in paths(lambda draws: decoder.step(draws, state)))

    return count(decoder.init(PROMPT))


def test_merged_law_needs_a_thousand_times_fewer_runs(benchmark):
    """V = 3, gamma = 3, five tokens. Path by path is counted, not run: the tests below check the count by running."""
    task = task_of(vocabulary=3, horizon=5)
    full, trimmed = with_full_drafts(task, gamma=3), speculative_sampling.build(task, gamma=3)
    law = benchmark(lambda: decoder_law(trimmed, PROMPT))
    merged_full = decoder_law(full, PROMPT)
    unmerged, unmerged_trimmed = number_of_paths(full), number_of_paths(trimmed)
    print(
        f"\nV=3 gamma=3 horizon=5: full drafts {unmerged} runs path by path, {merged_full.runs} merged;"
        f" drafts trimmed to the horizon {unmerged_trimmed} path by path, {law.runs} merged"
    )
    assert target_law(task, PROMPT) == law.probabilities
    assert target_law(task, PROMPT) == merged_full.probabilities
    assert unmerged >= 100 * merged_full.runs
    assert unmerged >= 1000 * law.runs


@pytest.mark.parametrize(("horizon", "gamma"), [(1, 3), (2, 2), (2, 3), (3, 2)])
def test_path_by_path_gives_the_same_law_in_as_many_runs_as_counted(benchmark, horizon, gamma):
    """Where every path can be followed, the count is the number of runs and the laws are equal as rationals."""
    decoder = with_full_drafts(task_of(vocabulary=3, horizon=horizon), gamma)
    unmerged = benchmark.pedantic(lambda: program_law(whole_run(decoder, PROMPT), budget=10**7), rounds=1)
    merged = decoder_law(decoder, PROMPT)
    print(f"\nV=3 gamma={gamma} horizon={horizon}: {unmerged.runs} runs path by path, {merged.runs} merged")
    assert merged.probabilities == unmerged.probabilities
    assert number_of_paths(decoder) == unmerged.runs
