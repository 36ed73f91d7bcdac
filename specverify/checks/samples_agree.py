"""Samples with and without speculation agree: the check for engines whose draws cannot be intercepted.

Both calls run with their own random numbers. The number of samples is planned for the detectable total variation, and a
suspicious result is confirmed on fresh samples before it refutes. Samples of a wrong law (the negative control) must be
rejected too; otherwise the test has no power, and the result is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from zlib import crc32

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart
from specverify.laws.near_ties import greedy_parting
from specverify.reference import Claim, Tokens
from specverify.statistics import FitVerdict, agreement
from specverify.subjects.subject import SampledPair

Sample = Callable[[int, int], Mapping[Tokens, int]]


def examine(subject: str, pair: SampledPair, conditions: Conditions) -> Examination:
    """Compare samples of the two calls of ``pair``, with and without speculation; a difference refutes.

    The result is unknown if greedy texts of both calls first differ where logits are nearly tied, or if the negative
    control (samples of a wrong law) is not rejected. ``subject`` names the engine. ``conditions`` has the error
    probabilities and the seed.
    """
    ours, theirs = Counter[Tokens](), Counter[Tokens]()
    result = agreement(
        partial(_counted, ours, pair.sample),
        partial(_counted, theirs, pair.plain),
        detect=pair.detect,
        false_alarm=conditions.false_alarm,
        miss=conditions.miss,
        seed=crc32(f"{conditions.seed}/{subject}/{pair.name}".encode()),
    )
    shown = result.second or result.first
    figures: dict[str, Any] = {
        "tv_detectable": result.detectable_tv,
        "tv_observed": shown.tv_observed,
        "samples": result.first.samples + (result.second.samples if result.second else 0),
    }
    if result.verdict is FitVerdict.FITS:
        return Examination("samples with and without speculation agree", rational=False, figures=figures)
    if result.verdict is FitVerdict.UNKNOWN:
        return Examination("the samples did not refute the control", unknown=True, rational=False, figures=figures)
    parted = greedy_parting(pair.name, pair.logits, ours, theirs)
    if parted is not None:
        figures["partings"] = [parted._asdict()]
    if parted is not None and parted.near_tie:
        return Examination(parted.undecided, unknown=True, rational=False, figures=figures)
    statement = f"with and without speculation differ by TV {shown.tv_observed:.4f}, p = {shown.p_value:.2g}"
    let = (f"setting {pair.name}", f"{result.first.samples} samples of each, then {shown.samples} fresh ones")
    example = Counterexample(let=let, then=statement)
    return Examination(statement, failed=True, rational=False, counterexample=example, figures=figures)


def _counted(total: Counter[Tokens], sample: Sample, number: int, seed: int) -> Mapping[Tokens, int]:
    """Return the counts of the texts in ``number`` samples, and add them to ``total``.

    ``sample(number, seed)`` draws the samples.
    """
    result = sample(number, seed)
    total.update(result)
    return result


CHECK = Check(
    name="samples_agree",
    summary="planned samples with and without speculation agree, where no law is known",
    claim=Claim.LOSSLESS,
    evidence=Evidence.STATISTICAL,
    examines=(
        ExaminedPart(
            SampledPair,
            lambda subject: partial(examine, subject.name),
            "there is no call without speculation to compare with",
        ),
    ),
)
