"""Find the planted bugs that test vectors refute.

Of each kind of vector, vectors are tried in order until the bug answers one wrongly. A vector counts against a bug only
if the control (the same program without the bug) answers it correctly. So a vector made for another form of program
refutes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from specverify.base.parallel import in_parallel
from specverify.mutants import Mutant, mutants
from specverify.trust.vector_answers import UNABLE, QuestionedSide, questions, sides
from specverify.vectors.all_vectors import kind_of
from specverify.vectors.vector import Answer, Outcome, Vector

ENOUGH = 3
"""If the control fails this many vectors of a group, the rest of the group is skipped."""


class VectorRow(NamedTuple):
    """The test vectors that refute one planted bug, and the number of vectors that the bug answered."""

    name: str
    summary: str
    category: str
    citation: str
    killed_by: str
    """The check that kills the bug."""
    killers: tuple[str, ...]
    """The first vector of each kind that the bug answers wrongly and its control correctly."""
    asked: int
    """Number of vectors that the bug answered."""
    shape: str
    """Kind of the subject, which determines the vectors that apply."""


def vector_row(name: str) -> VectorRow:
    """Return the results of the test vectors on the mutant ``name``: which refute it, and how many it answered."""
    mutant = next(item for item in mutants() if item.name == name)
    bug, control = sides(mutant)
    killers: dict[str, str] = {}
    asked = 0
    tired: dict[str, int] = {}
    for vector, answer in questions(bug):
        if vector.kind in killers or tired.get(vector.group, 0) >= ENOUGH:
            continue
        said = _outcome(vector, answer, bug)
        if said is None:
            continue
        if said is Outcome.FAILED and _outcome(vector, answer, control) is not Outcome.PASSED:
            tired[vector.group] = tired.get(vector.group, 0) + 1
            continue
        asked += 1
        if said is Outcome.FAILED:
            killers[vector.kind] = vector.id
    return VectorRow(
        mutant.name,
        mutant.summary,
        mutant.category,
        mutant.citation,
        mutant.killed_by,
        tuple(killers.values()),
        asked,
        shape_of(mutant, bug),
    )


def _outcome(vector: Vector, answer: Callable[[QuestionedSide], Answer], side: QuestionedSide) -> Outcome | None:
    """Return the grade of the answer ``answer(side)`` to a vector; None if the vector does not apply to ``side``.

    ``side`` is a bug or its control. An error while answering is a failure.
    """
    try:
        said = answer(side)
    except UNABLE:
        return None
    except Exception:  # noqa: BLE001 - whatever a bug raises is an answer that is not right
        return Outcome.FAILED
    return kind_of(vector).judge(vector, said).outcome


def shape_of(mutant: Mutant, bug: QuestionedSide) -> str:
    """Return in words what kind of program contains the bug, such as "a decoder" or "an engine with its own models"."""
    subject = bug.subject
    if subject.calls:
        return "a verifier with its own vocabulary"
    if subject.programs:
        return "an engine" if mutant.texts else "an engine with its own models"
    return "a verifier" if subject.intercepted else "a decoder"


def vector_rows(jobs: int, progress: Callable[[str], None] = lambda name: None) -> Iterator[VectorRow]:
    """Yield the results of all mutants, from ``jobs`` processes; ``progress`` is called with each mutant's name."""
    names = [mutant.name for mutant in mutants()]
    works = [partial(vector_row, name) for name in names]
    yield from in_parallel(works, jobs, lambda index: progress(names[index]))
