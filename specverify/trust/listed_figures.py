"""Results of an earlier survey of other projects' tests, as data: copied here, not measured.

The survey took the statistics by which five projects test their rejection samplers, each with the vocabulary, the
number of samples and the threshold of that project, and simulated them many times against each bug of
``black_box_mutants``. It also tested texts of two tokens by an e-process of its own. This one mixes three Dirichlet
concentrations around the law, has a false-alarm probability of 1e-6 and is evaluated after every 250 texts; it was run
three times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class TestOfOthers(NamedTuple):
    """The test of a rejection sampler in another project.

    ``samples`` and ``runs`` are the sizes at which an earlier survey ran the test.
    """

    name: str
    samples: int
    runs: int


TESTS: Final = (
    TestOfOthers("vLLM V0", 100_000, 200),
    TestOfOthers("vLLM V1", 100_000, 200),
    TestOfOthers("vLLM V2 wide", 40_960, 20),
    TestOfOthers("vLLM V2 narrow", 200_000, 40),
    TestOfOthers("TensorRT-LLM", 50_000, 100),
    TestOfOthers("transformers", 10_000, 100),
)
ALL: Final = (200, 200, 20, 40, 100, 100)
INEXPRESSIBLE: Final = (None,) * 6
ALARMS: Final[Mapping[str, tuple[int | None, ...]]] = {
    "none: a correct decoder": (1, 0, 0, 0, 0, 0),
    "replacement drawn from p": (200, 200, 20, 40, 100, 0),
    "every draft accepted": ALL,
    "replacement from max(0, q - p)": ALL,
    "ratio inverted": ALL,
    "rejecting coin looks the replacement up": (200, 200, 20, 40, 0, 0),
    "draft's noise used for the replacement": (None, None, None, 40, None, None),
    "match, else a fresh sample": (193, 191, 0, 40, 0, 0),
    "lenience 0.9": (200, 200, 0, 40, 0, 0),
    "lenience 0.5": (200, 200, 20, 40, 0, 0),
    "one coin for all positions of a round": (2, 200, 20, 40, 0, 0),
    "bonus drawn from q (gamma 1)": (None, None, 20, 40, None, None),
    "draft accepted after a rejection": (1, 96, 20, 40, None, None),
    "two rows share a stream": (18, 2, 20, 0, 0, 0),
    "greedy draft, softmax q": INEXPRESSIBLE,
    "truncated draft, raw q": INEXPRESSIBLE,
    "draft at temperature 0.8, q at 1": INEXPRESSIBLE,
    "every round begins its stream again": INEXPRESSIBLE,
}
"""Defect -> number of runs of each test that alarmed, in the order of ``TESTS``. None: the test cannot express the
defect, because it draws the drafts itself, has a single step, or invents the bonus token."""
TEXTS: Final[Mapping[str, tuple[int, int]]] = {
    "replacement drawn from p": (250, 500),
    "every draft accepted": (250, 250),
    "replacement from max(0, q - p)": (250, 250),
    "ratio inverted": (250, 250),
    "rejecting coin looks the replacement up": (750, 750),
    "draft's noise used for the replacement": (2000, 4500),
    "match, else a fresh sample": (1750, 4000),
    "lenience 0.9": (3250, 7250),
    "lenience 0.5": (250, 250),
    "one coin for all positions of a round": (250, 750),
    "bonus drawn from q (gamma 1)": (250, 250),
    "draft accepted after a rejection": (1000, 1500),
    "two rows share a stream": (250, 250),
    "greedy draft, softmax q": (250, 250),
    "truncated draft, raw q": (250, 250),
    "draft at temperature 0.8, q at 1": (17_000, 30_000),
}
"""Defect -> smallest and largest number of texts, over three runs, until the e-process of the survey refuted. For two
defects the unit is a pair of rows. One defect was not tried and has no entry."""
CONCENTRATIONS: Final = (50.0, 500.0, 5000.0)
"""Concentration parameters of the survey's e-process."""


def alarms_table() -> str:
    """Return the Markdown table of the bugs that the tests of other projects detect, with their own sample sizes."""
    heads = " | ".join(f"{test.name}, {test.samples} samples" for test in TESTS)
    lines = [f"| bug | {heads} |", f"|{'---|' * (1 + len(TESTS))}"]
    for name, result in ALARMS.items():
        cells = (
            "cannot" if number is None else f"{number} of {test.runs}"
            for number, test in zip(result, TESTS, strict=True)
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def texts_listed(name: str) -> str:
    """Return how many texts an earlier survey needed to refute the bug ``name`` by its e-process, in words.

    "" if the survey has no such number for the bug.
    """
    if name not in TEXTS:
        return ""
    least, most = TEXTS[name]
    return str(least) if least == most else f"{least} to {most}"
