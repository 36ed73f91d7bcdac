"""Test contingency tables of a kernel's samples for independence; all tables are counted from one sample."""

from __future__ import annotations

from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import Conditions
from specverify.statistics import FitVerdict
from specverify.statistics.independence import Tables, independences


def examine_tables(tables: Tables, samples: int, alarm: float, holds: str, conditions: Conditions) -> Examination:
    """Test all tables for independence, and report the worst one.

    Args:
        tables: ``tables(samples, seed)`` returns the tables by name, counted from fresh samples.
        samples: The number of samples of each table.
        alarm: The false-alarm rate of each table.
        holds: The sentence if no table is refuted.
        conditions: Has the miss rate and the seed.
    """
    result = independences(tables, samples=samples, false_alarm=alarm, miss=conditions.miss, seed=conditions.seed)
    shown = {name: item.first if item.second is None else item.second for name, item in result.items()}
    figures = {
        "samples": sum(item.first.samples + (item.second.samples if item.second else 0) for item in result.values()),
        "tv_detectable": max(item.detectable_tv for item in result.values()),
        "tv_observed": max(item.tv_observed for item in shown.values()),
        "miss": conditions.miss,
    }
    refuted = [name for name, item in result.items() if item.verdict is FitVerdict.REFUTED]
    if refuted:
        worst = max(refuted, key=lambda name: shown[name].tv_observed)
        told = shown[worst]
        then = f"{worst}: p = {told.p_value:.2g}, TV {told.tv_observed:.4f} from independence in {told.samples} rows"
        others = tuple(f"{name}: TV {shown[name].tv_observed:.4f}" for name in refuted if name != worst)
        example = Counterexample(
            (f"{result[worst].first.samples} rows, then {told.samples} fresh ones",), then, others[:8]
        )
        return Examination(then, failed=True, rational=False, counterexample=example, figures=figures)
    unknown = [name for name, item in result.items() if item.verdict is FitVerdict.UNKNOWN]
    if unknown:
        reason = "never varies, or too seldom" if not result[unknown[0]].first.freedom else "shows too little"
        return Examination(f"{unknown[0]}: what it depends on {reason}", unknown=True, figures=figures)
    return Examination(holds, rational=False, figures=figures)
