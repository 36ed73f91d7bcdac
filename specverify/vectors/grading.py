"""Grade a program's answers to test vectors, and check that the program follows one convention in all answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specverify.vectors.all_vectors import kind_of
from specverify.vectors.conventions import family_of
from specverify.vectors.vector import Answer, Judged, Outcome, Vector

UNANSWERED = Judged(Outcome.NOT_ANSWERED, "there is no answer to it")


class Graded(NamedTuple):
    """A vector, the program's answer (None if there is none), and the grade of the answer (``judged``)."""

    vector: Vector
    answer: Answer | None
    judged: Judged


class FreeChoice(NamedTuple):
    """Which convention a program follows in one family, as its answers show.

    A family is a question that correct programs may answer differently, and a convention is one of the possible
    answers. For example: whether a draft is accepted or rejected if the uniform equals the accept ratio.
    """

    family: str
    flags: tuple[str, ...]
    """The flags of the conventions that fit all its answers; empty if no convention does."""
    examples: Mapping[str, str]
    """For inconsistent answers: flag -> id of a vector whose answer fits this flag; empty for consistent ones."""
    vectors: int
    """Number of answers that show which convention the program uses."""


class Grades(NamedTuple):
    """The grades of all answers of a program, and its conventions.

    ``graded`` has one item for each vector. ``conventions`` has one for each family of conventions (see ``FreeChoice``)
    for which some answer shows a convention.
    """

    program: str
    graded: tuple[Graded, ...]
    conventions: tuple[FreeChoice, ...]

    def counted(self, group: str | None = None) -> Counter[Outcome]:
        """Return grade -> number of answers with it, in one group; in all groups if ``group`` is None."""
        return Counter(item.judged.outcome for item in self.graded if group is None or item.vector.group == group)

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the graded groups, in order."""
        return tuple(dict.fromkeys(item.vector.group for item in self.graded))

    @property
    def failures(self) -> tuple[Graded, ...]:
        """Return all wrong answers, in order."""
        return tuple(item for item in self.graded if item.judged.outcome is Outcome.FAILED)

    @property
    def mixed(self) -> tuple[FreeChoice, ...]:
        """Return the entries of ``conventions`` for the families in which no single convention fits all answers."""
        return tuple(item for item in self.conventions if not item.flags)


def grade(program: str, vectors: Sequence[Vector], answers: Mapping[str, Answer]) -> Grades:
    """Grade the ``answers`` (vector id -> answer) of a program to ``vectors``; a missing answer never passes."""
    graded = tuple(_graded(vector, answers.get(vector.id)) for vector in vectors)
    return Grades(program, graded, _conventions(graded))


def _graded(vector: Vector, answer: Answer | None) -> Graded:
    return Graded(vector, answer, UNANSWERED if answer is None else kind_of(vector).judge(vector, answer))


def _conventions(graded: Sequence[Graded]) -> tuple[FreeChoice, ...]:
    taken: dict[str, list[Graded]] = {}
    for item in graded:
        if item.judged.flags:
            taken.setdefault(family_of(item.judged.flags[0]), []).append(item)
    return tuple(_convention(family, items) for family, items in taken.items())


def _convention(family: str, items: Sequence[Graded]) -> FreeChoice:
    """Return which conventions of ``family`` fit the graded answers ``items``.

    A convention fits if every answer is right under it. If none fits, the result names, for each convention that some
    answer follows, one vector with such an answer.
    """
    fitting = Counter(flag for item in items for flag in item.judged.flags)
    flags = tuple(flag for flag, number in fitting.items() if number == len(items))
    if flags:
        return FreeChoice(family, flags, {}, len(items))
    examples = {item.judged.flags[0]: item.vector.id for item in reversed(items)}
    return FreeChoice(family, (), dict(sorted(examples.items())), len(items))
