"""Write the tables of ``docs/black-boxes.md``: ``python -m specverify.trust.black_box_page``."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from specverify.base.verdict import Status
from specverify.run.sequential_samples import SamplingPlan, sampled_verdicts
from specverify.statistics.e_processes import CONCENTRATIONS, Array, log_e_value
from specverify.subjects.sampler import Sampler
from specverify.trust import large_vocabulary, listed_figures
from specverify.trust.black_box_mutants import (
    MUTANTS,
    OF_ACCEPTANCE,
    BlackBoxBug,
    P,
    acceptance,
    counts,
    decode_with_counts,
)
from specverify.trust.calibrate import Calibration
from specverify.trust.existing_tests import flashinfer_cosine, pytorch_two_samples

ALARM: Final = 1e-6
EVERY: Final = 250
MOST: Final = 60_000
RUNS: Final = 21
LARGE: Final = 200_000
"""Number of texts from which the total variation in the table is estimated."""
PAGE: Final = Path("docs/black-boxes.md")
BEGIN, END = "<!-- computed: {} -->", "<!-- end -->"


class BugResult(NamedTuple):
    """The result of the tests for one bug of ``black_box_mutants``.

    ``name`` names the bug, and ``tv`` is the total variation between its law and the right one. The other fields are
    the numbers of texts that the tests needed to refute it.
    """

    name: str
    tv: float
    sequences: tuple[int | None, ...]
    """For each seed, the number of texts until the law was refuted (tested after every 250); None if it never was."""
    listed: tuple[int | None, ...]
    """For each seed, the same number for the e-process of the survey, from ``listed_figures``."""
    check: str
    """The check of ``check_sampler`` that refuted and the number of texts it needed; otherwise its other result."""


def law() -> Mapping[tuple[int, int], float]:
    """Return the target's law of texts of two tokens: the probability of each pair of token ids."""
    return {(a, b): float(P[a] * P[b]) for a in range(len(P)) for b in range(len(P))}


def result_of_bug(name: str, bug: BlackBoxBug) -> BugResult:
    """Return the results for one bug: its total variation, and after how many texts each test refutes it.

    The tests are ``check_sampler``, the e-process of this package, and the same e-process with the Dirichlet
    concentrations of an earlier survey (``listed_figures``). ``name`` is the name of the bug.
    """
    share = counts(bug, 0, LARGE) / LARGE
    tv = float(np.abs(share - np.outer(P, P).ravel()).sum() / 2)
    ours, theirs = (
        tuple(until_refuted(bug, seed, concentrations) for seed in range(1, RUNS + 1))
        for concentrations in (CONCENTRATIONS, listed_figures.CONCENTRATIONS)
    )
    return BugResult(name, tv, ours, theirs, _by_checks(bug))


def until_refuted(bug: BlackBoxBug, seed: int, concentrations: Sequence[float] = CONCENTRATIONS) -> int | None:
    """Return the number of texts after which the e-process refutes ``bug``, at a false-alarm probability of 1e-6.

    None: 60 000 texts do not refute it. ``concentrations`` are the Dirichlet concentrations of the alternatives that
    the e-process mixes.
    """
    total, masses = np.zeros(len(P) ** 2), np.outer(P, P).ravel()
    for batch in range(MOST // EVERY):
        total += counts(bug, seed * 10_000 + batch, EVERY)
        if log_e_value(total, masses, concentrations) >= -math.log(ALARM):
            return (batch + 1) * EVERY
    return None


def _by_checks(bug: BlackBoxBug, acceptance: Array | None = None) -> str:
    plan = SamplingPlan(tv=0.02, alarm=ALARM)
    verdicts = sampled_verdicts(Sampler("it", partial(decode_with_counts, bug)), plan, law=law(), acceptance=acceptance)
    refuted = [verdict.check for verdict in verdicts if verdict.status is Status.REFUTED]
    samples = next(item for item in verdicts if item.check == "samples_fit_law").figures["samples"]
    if refuted:
        return f"`{refuted[0]}`, {samples}"
    held = all(verdict.status is Status.HOLDS for verdict in verdicts)
    return f"{'all hold' if held else 'UNKNOWN'}, {samples}"


def mutant_table() -> str:
    """Return the Markdown table of the bugs in ``MUTANTS``, with the number of texts that refute each."""
    heads = (
        "bug | TV | texts until refuted | by the survey's e-process | the survey's figure | `check_sampler` refutes by"
    )
    lines = [f"| {heads} |", "|---|---|---|---|---|---|"]
    for name, bug in MUTANTS.items():
        item = result_of_bug(name, bug)
        until = " | ".join(_spread(numbers) for numbers in (item.sequences, item.listed))
        listed = listed_figures.texts_listed(name)
        lines.append(f"| {item.name} | {item.tv:.3f} | {until} | {listed} | {item.check} |")
    return "\n".join(lines)


def _spread(numbers: Sequence[int | None]) -> str:
    """Return the median, the minimum and the maximum of ``numbers`` as text, or only one number if all are equal.

    ``numbers`` has the result of each run. If some are None (not refuted), the text states how many.
    """
    if None in numbers:
        return "never" if set(numbers) == {None} else f"not in {numbers.count(None)} of {len(numbers)} runs"
    ordered = sorted(number for number in numbers if number is not None)
    least, middle, most = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    return str(middle) if least == most else f"{middle} ({least} to {most})"


def acceptance_table() -> str:
    """Return the Markdown table of the bugs that only report a wrong number of accepted drafts."""
    lines = ["| bug | TV of texts | TV of accepted | `check_sampler` refutes by |", "|---|---|---|---|"]
    for name, bug in OF_ACCEPTANCE.items():
        said = decode_with_counts(bug, 0, LARGE)
        texts, accepted = (
            np.bincount(result, minlength=len(law)) / LARGE - law
            for result, law in (
                (said["tokens"] @ [len(P), 1], np.outer(P, P).ravel()),
                (said["accepted"], np.pad(acceptance(), (0, 2))),
            )
        )
        distances = " | ".join(f"{np.abs(result).sum() / 2:.3f}" for result in (texts, accepted))
        lines.append(f"| {name} | {distances} | {_by_checks(bug, acceptance())} |")
    return "\n".join(lines)


def calibration_table() -> str:
    """Return the Markdown table of the false-alarm rates and the power of two tests of other projects."""
    rows = [("PyTorch, two samples of 10 000, declared 1e-3", pytorch_two_samples())]
    cosine = "FlashInfer, cosine at 5 000 000 draws"
    rows += [(f"{cosine} (logits {seed})", flashinfer_cosine(seed=seed)) for seed in (0, 1)]
    lines = ["| test | false alarms | passes half too likely, up to TV | passes garbage, up to |", "|---|---|---|---|"]
    return "\n".join([*lines, *(_calibrated(name, item) for name, item in rows)])


def _calibrated(name: str, item: Calibration) -> str:
    half, *more = item.seen
    garbage = f"{more[0].accepted / more[0].largest:.0%} of the draws, TV {more[0].accepted:.2f}" if more else ""
    return f"| {name} | {item.rate:.3f} ({item.low:.3f} to {item.high:.3f}) | {half.accepted:.3f} | {garbage} |"


TABLES: Final = {
    "bugs": mutant_table,
    "survey": listed_figures.alarms_table,
    "acceptance": acceptance_table,
    "large": large_vocabulary.table,
    "calibration": calibration_table,
}


def with_tables(page: str) -> str:
    """Return the page with its tables recomputed.

    Raises ``ValueError`` if the page has no place for one of the tables.
    """
    return "".join(_parts(page))


def _parts(page: str) -> Iterator[str]:
    for name, table in TABLES.items():
        before, begin, rest = page.partition(BEGIN.format(name) + "\n")
        _, end, page = rest.partition(END)
        if not begin or not end:
            raise ValueError(f"the page has no place for the table {name!r}, expected {BEGIN.format(name)} and {END}")
        yield f"{before}{begin}{table()}\n{end}"
    yield page


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    place.write_text(with_tables(place.read_text("utf-8")), "utf-8")
