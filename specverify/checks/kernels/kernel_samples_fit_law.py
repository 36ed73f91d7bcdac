"""Planned samples of a kernel with an internal generator fit the target's law.

The target completes the texts that a kernel emits. All samples with the same text are completed at once: a multinomial
draw divides their number among the continuations, with the same law as one draw for each sample. The number of accepted
drafts must fit the rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.kernels.row_texts import kernel_check
from specverify.laws.grid import drafted, grid_tables
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.reference import Claim, Task, Tokens
from specverify.statistics import ConfirmedFit, FitVerdict, confirmed_fit, samples_for, stage_level
from specverify.subjects.kernel import Kernel
from specverify.subjects.kernel_designs import Design, design_of, drafts_of, sampled_situation
from specverify.subjects.kernel_rounds import verified
from specverify.subjects.kernel_samples import Calls, counted, text_of
from specverify.subjects.kernel_tables import (
    OFTEN_THREE_LEFT,
    PROMPT,
    SIZE,
    Situation,
    certain_but,
    three_left_situation,
)

COARSER = 5
"""The detectable total variation of the number of accepted drafts, as a multiple of that of the law."""


class SampledKernel(NamedTuple):
    """A kernel in one situation (target, draft model and number of drafts), whose samples are compared with the rule.

    ``tv`` is the total variation to detect, and ``vocabulary`` the vocabulary size. ``calls`` states how the sampled
    rows are divided among calls of the kernel.
    """

    kernel: Kernel
    situation: Situation
    vocabulary: int
    tv: float
    calls: Calls

    @property
    def design(self) -> Design:
        """Return the rows of a sampled batch: one kind of row for each sequence of drafts that q can draw."""
        kinds, shares = drafts_of(self.situation)
        return design_of(kinds, shares, self.vocabulary, self.kernel.convention.draft_padding)

    @property
    def name(self) -> str:
        """Return the vocabulary size and the situation (target, draft model, number of drafts) in words."""
        return f"vocabulary {self.vocabulary}, {self.situation.name}"


def texts(sampled: SampledKernel, samples: int, seed: int) -> Counter[Tokens]:
    """Return emitted text -> its count in ``samples`` rows of the kernel ``sampled``, with the seed ``seed``."""
    result: Counter[Tokens] = Counter()
    design = sampled.design
    table = counted(sampled.kernel, design, samples, seed, sampled.calls)
    for key in np.flatnonzero(table.sum(axis=0)):
        result[text_of(int(key), design)] += int(table[:, key].sum())
    return result


def completed(sampled: SampledKernel, samples: int, seed: int) -> Counter[Tokens]:
    """Return completed text -> its count in ``samples`` rows of the kernel ``sampled``, with the seed ``seed``.

    The target continues each text to one token more than there are drafts. Outcomes that are no texts stay unchanged.
    """
    here, rng, whole = sampled.situation, np.random.default_rng([seed, 1]), Counter[Tokens]()
    for tokens, count in sorted(texts(sampled, samples, seed).items()):
        rest = here.length + 1 - len(tokens)
        if not tokens or rest < 0 or not all(0 <= token < here.size for token in tokens):
            whole[tokens] += count
            continue
        law = target_law(Task(here.target, horizon=rest), PROMPT + tokens)
        shares = np.array([float(mass) for mass in law.values()])
        for more, part in zip(law, rng.multinomial(count, shares / shares.sum()), strict=True):
            whole[tokens + more] += int(part)
    return whole


def accepted(sampled: SampledKernel, samples: int, seed: int) -> Counter[int]:
    """Return number of accepted drafts -> its count in ``samples`` rows of ``sampled``, with the seed ``seed``."""
    result: Counter[int] = Counter()
    for tokens, count in texts(sampled, samples, seed).items():
        result[len(tokens) - 1] += count
    return result


def acceptance_law(sampled: SampledKernel) -> dict[int, float]:
    """Return the law of the number of accepted drafts under the rule, in the situation of ``sampled``."""
    here, law = sampled.situation, Counter[int]()
    for draft, p, q, weight in drafted((here.target, here.draft), PROMPT, here.length):
        for path in paths(partial(verified, sampled.kernel, draft, p, q)):
            law[path.outcome.accepted] += weight * path.weight
    return {number: float(mass) for number, mass in law.items()}


def examine_law(sampled: SampledKernel, alarm: float, conditions: Conditions) -> Examination:
    """Test the completed texts of samples against the target's law, at the false-alarm rate ``alarm``.

    ``conditions`` has the miss rate and the seed. ``sampled`` is the kernel in a situation.
    """
    here = sampled.situation
    law = {text: float(mass) for text, mass in target_law(Task(here.target, horizon=here.length + 1), PROMPT).items()}
    fit = _fit(partial(completed, sampled), law, sampled.tv, alarm, conditions)
    return _examination(sampled, fit, "the samples fit the target's law", "the target's law")


def examine_acceptance(sampled: SampledKernel, alarm: float, conditions: Conditions) -> Examination:
    """Test the numbers of accepted drafts against the rule, at the false-alarm rate ``alarm``.

    If more drafts are accepted than by the rule, the result is unknown, because another lossless rule may do so.
    ``conditions`` has the miss rate and the seed. ``sampled`` is the kernel in a situation.
    """
    law = acceptance_law(sampled)
    fit = _fit(partial(accepted, sampled), law, COARSER * sampled.tv, alarm, conditions)
    result = _examination(sampled, fit, "drafts are accepted as often as by the rule", "the rule's acceptance")
    if result.failed:
        seen = accepted(sampled, fit.first.samples, conditions.seed + 1)
        mean = sum(number * count for number, count in seen.items()) / fit.first.samples
        wanted = sum(number * mass for number, mass in law.items())
        if mean > wanted:
            statement = f"it accepts {mean:.4f} drafts a round, its rule {wanted:.4f}: is its rule another?"
            return Examination(statement, unknown=True, figures=result.figures)
    return result


def _fit(sampler: Any, law: Any, tv: float, alarm: float, conditions: Conditions) -> ConfirmedFit:
    samples = samples_for(law, tv, stage_level(alarm), conditions.miss / 2)
    return confirmed_fit(sampler, law, samples=samples, false_alarm=alarm, miss=conditions.miss, seed=conditions.seed)


def _examination(sampled: SampledKernel, fit: ConfirmedFit, holds: str, law: str) -> Examination:
    shown = fit.first if fit.second is None else fit.second
    figures = {
        "samples": fit.first.samples + (fit.second.samples if fit.second else 0),
        "tv_detectable": fit.detectable_tv,
        "tv_observed": shown.tv_observed,
        "miss": fit.miss,
    }
    if fit.verdict is FitVerdict.FITS:
        return Examination(holds, rational=False, figures=figures)
    if fit.verdict is FitVerdict.UNKNOWN:
        return Examination(f"{sampled.name}: the negative control was not rejected", unknown=True, figures=figures)
    seen = f"; {shown.unsupported[0]} came, which cannot" if shown.unsupported else ""
    then = f"p = {shown.p_value:.2g} against {law}, TV observed {shown.tv_observed:.4f}{seen}"
    let = (sampled.name, f"{fit.first.samples} rows, then {fit.second.samples if fit.second else 0} fresh ones")
    example = Counterexample(let, then)
    return Examination(f"{sampled.name}: {then}", failed=True, rational=False, counterexample=example, figures=figures)


def situations_to_sample(
    kernel: Kernel, gammas: Sequence[int], vocabularies: Sequence[int], tv: float, large_tv: float, calls: Calls
) -> list[SampledKernel]:
    """Return the situations to sample: one for each of ``gammas``, and several for each of ``vocabularies``.

    In some of those of a larger vocabulary, the first or the last draft may be replaced by one of three tokens. A
    situation is a target, a draft model and a number of drafts.

    Args:
        kernel: The kernel.
        gammas: Numbers of drafts, each with the vocabulary size ``SIZE``.
        vocabularies: Larger vocabulary sizes, each with the largest gamma.
        tv: The total variation to detect for ``gammas``.
        large_tv: The total variation to detect for ``vocabularies``.
        calls: How the sampled rows are divided among calls of the kernel.
    """
    result = [
        SampledKernel(kernel, sampled_situation(gamma, seed), SIZE, tv, calls) for seed, gamma in enumerate(gammas)
    ]
    gamma = max(gammas)
    three_left = [three_left_situation(gamma, place, 0, OFTEN_THREE_LEFT) for place in sorted({0, gamma - 1})]
    larger = [sampled_situation(gamma, len(gammas)), *three_left]
    return [
        *result,
        *(SampledKernel(kernel, here, size, large_tv, calls) for size in vocabularies for here in larger),
    ]


def deep_situations_to_sample(kernel: Kernel, tv: float, calls: Calls) -> list[SampledKernel]:
    """Return situations with more drafts than the usual ones; [] if the kernel cannot run them.

    A situation is a target, a draft model and a number of drafts. The pmfs are one-hot except at two positions. ``tv``
    is the total variation to detect. ``calls`` states how the rows are divided among calls of the kernel.
    """
    result = [
        SampledKernel(kernel, certain_but(places, seed, grid_tables(SIZE, 16, seed)), SIZE, tv, calls)
        for seed, places in enumerate(((0, 3), (1, 4), (2, 3)))
    ]
    try:
        texts(result[0], 4, 0)
    except Exception:  # noqa: BLE001 - it may refuse this number of drafts in any way
        return []
    return result


def checks_of(all_sampled: Sequence[SampledKernel], alarm: float) -> tuple[Check, ...]:
    """Return the checks of samples of a kernel: of the law of the output, and of the number of accepted drafts.

    Situations with a large vocabulary get a check of the law of their own. ``all_sampled`` are the situations, and
    ``alarm`` is the false-alarm rate of each check.
    """
    small = [sampled for sampled in all_sampled if sampled.vocabulary == SIZE]
    large = [sampled for sampled in all_sampled if sampled.vocabulary != SIZE]
    fits = {
        "samples_fit_law": ("planned samples, completed by the target, fit the target's law", small),
        "samples_fit_law_of_many_tokens": ("the same, in larger vocabularies and at a coarser total variation", large),
    }
    return (
        *(
            kernel_check(
                name,
                summary,
                Claim.LOSSLESS,
                Evidence.STATISTICAL,
                {sampled.name: partial(examine_law, sampled, alarm / len(chosen)) for sampled in chosen},
            )
            for name, (summary, chosen) in fits.items()
            if chosen
        ),
        kernel_check(
            "acceptance_is_optimal",
            "planned samples are accepted as often as by the rule",
            Claim.OPTIMAL_COUPLING,
            Evidence.STATISTICAL,
            {sampled.name: partial(examine_acceptance, sampled, alarm / len(small)) for sampled in small},
        ),
    )
