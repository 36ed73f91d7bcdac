"""A planned sample fits the law: for subjects that cannot be enumerated, and for sizes beyond enumeration.

The number of samples follows from the detectable total variation, the share of the alarm budget and the miss rate. A
suspicious result is confirmed on a fresh, larger sample before it refutes. Samples of a wrong law, the negative
control, must be rejected, or the result is unknown. A subject with a declared bias must fit its own law, and must be
rejected against the target's.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart
from specverify.checks.explaining.sampled_difference import sampled_difference
from specverify.reference import Tokens
from specverify.statistics import FitVerdict, confirmed_fit, samples_for, stage_level
from specverify.subjects.subject import SampledSetting


class FitRow(NamedTuple):
    """One line of the statistics table: a sampled setting tested against one law.

    ``against`` names the law. ``cells`` is the number of cells of the test; one of them holds ``pooled`` rare outcomes.
    ``statistic`` is the value of the test, ``tv_observed`` the total variation in the sample, and ``tv_detectable`` the
    one that the test detects. ``as_expected``: the verdict is FITS, or, for a declared bias against the target's law,
    REFUTED.
    """

    subject: str
    setting: str
    against: str
    samples: int
    cells: int
    pooled: int
    statistic: float
    p_value: float
    tv_observed: float
    tv_detectable: float
    verdict: str
    as_expected: bool
    confirmed_on: int
    """Number of samples of the confirmation; 0 if the first sample was not suspicious."""
    method: str = ""
    """The way of sampling, a value of ``Method``."""
    example: str = ""
    """A sentence about an impossible outcome that was sampled, or about the token whose share differs most; "" if none
    differs."""


def fit_row(
    subject: str,
    setting: SampledSetting,
    law: Mapping[Tokens, float],
    against: str,
    conditions: Conditions,
) -> FitRow:
    """Sample ``setting`` and return the result of its test against ``law``.

    A setting is a subject with its options and models. A suspicious result is confirmed on fresh samples. ``subject``
    and ``against`` name the subject and the law. ``conditions`` has the error probabilities and the seed.
    """
    seed = crc32(f"{conditions.seed}/{subject}/{setting.name}/{setting.method}/{against}".encode())
    samples = samples_for(law, setting.detect, stage_level(conditions.false_alarm), conditions.miss / 2)
    counts: Mapping[Tokens, int] = {}

    def sample(number: int, seed: int) -> Mapping[Tokens, int]:
        nonlocal counts
        counts = setting.sample(number, seed)
        return counts

    fit = confirmed_fit(
        sample,
        law,
        samples=samples,
        false_alarm=conditions.false_alarm,
        miss=conditions.miss,
        seed=seed,
        confirmation_factor=setting.confirmation_factor,
    )
    shown = fit.first if fit.second is None else fit.second
    example = sampled_difference(counts, law) if fit.verdict is FitVerdict.REFUTED else ""
    if shown.unsupported:
        example = f"the impossible {shown.unsupported[0]} was sampled"
    return FitRow(
        subject,
        setting.name,
        against,
        fit.first.samples,
        fit.first.cells,
        fit.first.pooled_cells,
        shown.statistic,
        shown.p_value,
        shown.tv_observed,
        fit.detectable_tv,
        fit.verdict.value,
        fit.verdict is FitVerdict.FITS,
        0 if fit.second is None else fit.second.samples,
        setting.method.value,
        example,
    )


def fit_rows(subject: str, setting: SampledSetting, conditions: Conditions) -> list[FitRow]:
    """Return the results of the tests of ``setting``: one against its own law, and maybe one against the target's law.

    A setting is a subject with its options and models. The second test is made if the setting declares another law than
    the target's, and both differ by more than the detectable total variation. It is expected to refute. ``subject``
    names the subject. ``conditions`` has the error probabilities and the seed.
    """
    law = setting.law()
    rows = [fit_row(subject, setting, law, "declared" if setting.target else "target", conditions)]
    if setting.target:
        target = setting.target()
        bias = sum(max(law.get(key, 0.0) - target.get(key, 0.0), 0.0) for key in law)
        if bias > setting.detect:
            row = fit_row(subject, setting._replace(confirmation_factor=1), target, "target", conditions)
            rows.append(row._replace(as_expected=row.verdict == FitVerdict.REFUTED.value))
    return rows


def tests_of(setting: SampledSetting) -> int:
    """Return the number of tests of a setting: 2 if it declares another law than the target's, else 1.

    A setting is a subject with its options and models. The number is needed to divide the alarm budget of a run among
    all its tests.
    """
    return 2 if setting.target else 1


def examine(subject: str, setting: SampledSetting, conditions: Conditions) -> Examination:
    """Test samples of one setting, a subject with its options and models, against its law.

    If ``setting.first_look`` is set, a smaller test for this larger total variation comes first, with half of the
    false-alarm rate. If the first test refutes, the second is not made. ``subject`` names the subject. ``conditions``
    has the error probabilities and the seed.
    """
    if setting.first_look is None:
        return _examined(subject, setting, conditions)
    half = conditions._replace(false_alarm=conditions.false_alarm / 2)
    first = _examined(subject, setting._replace(detect=setting.first_look), half)
    return first if first.failed else _examined(subject, setting, half)


def _examined(subject: str, setting: SampledSetting, conditions: Conditions) -> Examination:
    rows = fit_rows(subject, setting, conditions)
    figures: dict[str, Any] = {
        "tv_detectable": max(row.tv_detectable for row in rows),
        "tv_observed": rows[0].tv_observed,
        "samples": sum(row.samples + row.confirmed_on for row in rows),
        "rows": [row._asdict() for row in rows],
    }
    if setting.activity is not None:
        figures["activity"] = [f"{setting.name}: {setting.activity()}"]
    wrong = next((row for row in rows if not row.as_expected), None)
    if wrong is None:
        return Examination("the samples fit the law", rational=False, figures=figures)
    if wrong.verdict == FitVerdict.UNKNOWN.value:
        return Examination(f"{setting.name}: the negative control was not rejected", unknown=True, figures=figures)
    statement = (
        f"p = {wrong.p_value:.2g} against the {wrong.against} law, TV observed {wrong.tv_observed:.4f}"
        if wrong.verdict == FitVerdict.REFUTED.value
        else "the declared bias was not found: the samples fit the target's law"
    )
    return Examination(
        f"{setting.name}: {statement}",
        failed=True,
        rational=False,
        counterexample=Counterexample(
            let=(f"setting {setting.name}", f"{wrong.samples} samples, then {wrong.confirmed_on} fresh ones"),
            then=statement,
            fault=f"{wrong.example}: {setting.name}, {statement}" if wrong.example else "",
        ),
        figures=figures,
    )


CHECK = Check(
    name="samples_fit_law",
    summary="a planned sample fits the exact law, with a declared alarm rate and the TV it could have seen",
    claim=None,
    evidence=Evidence.STATISTICAL,
    examines=(
        ExaminedPart(SampledSetting, lambda subject: partial(examine, subject.name), "it has no setting to sample"),
    ),
)
