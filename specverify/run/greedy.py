"""Greedy black boxes: the first difference of a text from the expected one, and whether logits are nearly tied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.base.verdict import Counterexample, Status, Verdict
from specverify.laws.known_law import OTHERS, known_law
from specverify.laws.near_ties import RESIDUE, Logits, Parting, greedy_parting
from specverify.reference import Tokens
from specverify.run.sequential_samples import SamplingPlan, sampled_verdicts
from specverify.subjects.sampler import Sampler, answered
from specverify.subjects.subject import UnusableSubject

OF_TEXTS: Final = ("samples_fit_law", "samples_fit_reference", "samples_are_supported")
"""Checks that a wrong text refutes; the first ones have figures of the law."""


class Heard(NamedTuple):
    """A sampler that records its texts: the first text, and the first one that differs from it.

    A greedy sampler returns the same text in every call, so usually there is only one text.
    """

    sampler: Sampler
    texts: list[Tokens]


def judged_greedily(
    sampler: Sampler,
    plan: SamplingPlan,
    logits: Logits | None,
    *,
    law: Any = None,
    reference: Sampler | None = None,
    draft: Any = None,
    acceptance: Any = None,
    progress: Callable[[int, int], None] = lambda done, most: None,
) -> Sequence[Verdict]:
    """Return the verdicts on a greedy black box, with the first difference between its text and the expected one added.

    ``logits`` are the target's logits; if they are None, differences are not examined. A difference between nearly tied
    tokens refutes nothing. The samples are compared with ``law`` or ``reference``; these and the other arguments, and
    the errors, are those of ``sampled_verdicts``. ``UnusableSubject`` is also raised for invalid logits.
    """
    if logits is None:
        more = {"law": law, "reference": reference, "draft": draft, "acceptance": acceptance, "progress": progress}
        return sampled_verdicts(sampler, plan, **more)
    ours, theirs = heard(sampler), None if reference is None else heard(reference)
    verdicts = sampled_verdicts(
        ours.sampler,
        plan,
        law=law,
        reference=None if theirs is None else theirs.sampler,
        draft=draft,
        acceptance=acceptance,
        progress=progress,
    )
    plain = _likely(law) if theirs is None else theirs.texts
    parted = _parted(sampler.name, plain, ours.texts, logits)
    return verdicts if parted is None else with_parting(verdicts, parted)


def heard(sampler: Sampler) -> Heard:
    """Return ``sampler`` together with a recorder of its first two different texts."""
    texts: list[Tokens] = []

    def sample(seed: int, number: int) -> Any:
        answer = answered(sampler, seed, number)
        for tokens in answer.tokens if len(texts) < 2 else ():
            if tokens not in texts and len(texts) < 2:
                texts.append(tokens)
        return answer.tokens if answer.accepted is None else answer._asdict()

    return Heard(Sampler(sampler.name, sample), texts)


def _likely(law: Any) -> list[Tokens]:
    """Return the outcomes of ``law`` with a probability above ``RESIDUE``, except ``OTHERS``, the unlisted ones."""
    known = known_law(law)
    outcomes = (known.outcome(int(place)) for place in np.flatnonzero(known.masses > RESIDUE))
    return [outcome for outcome in outcomes if outcome != OTHERS]  # type: ignore[misc]  # OTHERS alone is a string


def _parted(name: str, plain: list[Tokens], texts: list[Tokens], logits: Logits) -> Parting | None:
    """Return the first difference between ``texts`` and the expected text; None if there is none.

    ``plain`` lists the expected texts. Greedy decoding has exactly one; if ``plain`` has several, the result is None.
    ``logits`` are the target's, and ``name`` is the subject's name for messages. Raises ``UnusableSubject`` if the
    logits cannot be computed.
    """
    try:
        return greedy_parting(name, logits, dict.fromkeys(texts, 1.0), dict.fromkeys(plain, 1.0))
    except Exception as error:
        raise UnusableSubject(f"the logits cannot be had: {type(error).__name__}: {error}") from error


def with_parting(verdicts: Sequence[Verdict], parted: Parting) -> Sequence[Verdict]:
    """Return the verdicts on a greedy black box, with the first difference between two texts added to those on texts.

    ``parted`` is this difference. If its two tokens are nearly tied, rounding explains the difference, and a verdict
    REFUTED on texts becomes UNKNOWN. Verdicts on independence and on the number of accepted drafts are unchanged.
    """
    return [_with_parting(verdict, parted) if verdict.check in OF_TEXTS else verdict for verdict in verdicts]


def _with_parting(verdict: Verdict, parted: Parting) -> Verdict:
    shown = verdict.check != "samples_are_supported"
    figures = {**verdict.figures, **({"partings": [parted._asdict()]} if shown else {})}
    if verdict.status is not Status.REFUTED or not parted.near_tie:
        return verdict._replace(figures=figures, counterexample=_explained(verdict.counterexample, parted))
    return verdict._replace(status=Status.UNKNOWN, statement=parted.undecided, counterexample=None, figures=figures)


def _explained(example: Counterexample | None, parted: Parting) -> Counterexample | None:
    return None if example is None else example._replace(because=(*example.because, str(parted)))
