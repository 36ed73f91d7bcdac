"""The format of a test vector: its inputs, its expected answers, and the conventions on which they depend.

Numbers are strings: ``"3/8"`` is the rational, so that every language reads it exactly. Lists are lists of token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

FORMAT, FORMAT_VERSION = "specverify vectors", 1
RESULTS_FORMAT = "specverify vector results"

Answer: TypeAlias = Mapping[str, Any]
"""A program's answer to one vector, as JSON data: field -> value."""

REFUSED: Answer = {"refused": True}
"""The answer of a program that refuses the input."""


class VectorResult(StrEnum):
    """What a vector requires: the only right answer, one of several right answers, or a refusal of its invalid input.

    The names are those of the Wycheproof project.
    """

    VALID = "valid"
    """One answer is right."""
    ACCEPTABLE = "acceptable"
    """Several answers are right, one for each convention; a program must keep to one convention."""
    INVALID = "invalid"
    """The program must refuse the input, or must at least not give a forbidden answer."""


class Branch(NamedTuple):
    """A right answer, and the flag of the convention under which it is right; "" if the answer needs no convention."""

    flag: str
    answer: Answer


class Vector(NamedTuple):
    """One test: inputs, and the answers that are expected for them."""

    id: str
    """An id that begins with ``kind/``; it stays the same when vectors are added."""
    kind: str
    inputs: Mapping[str, Any]
    expected: tuple[Branch, ...]
    """The right answers: one for a valid vector, two or more for an acceptable one, none for an invalid one."""
    result: VectorResult = VectorResult.VALID
    flags: tuple[str, ...] = ()
    """Flags of the conventions under which the question is asked; the first flag names the vector's group."""
    notes: tuple[str, ...] = ()
    """Keys of ``notes.NOTES``: the classes of bugs that the vector exposes."""
    must_not: tuple[Answer, ...] = ()
    """For an invalid vector: the forbidden answers. If there are none, only a refusal is right."""

    @property
    def group(self) -> str:
        """Return the name of the group in which the answer's grade is counted.

        It is ``kind/flag``, with the first flag of the vector; ``kind`` for a vector without flags.
        """
        return "/".join((self.kind, *self.flags[:1]))


class Outcome(StrEnum):
    """The grade of an answer: passed, failed, undecided or without an answer; only ``PASSED`` is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The answer is too imprecise, or has too few samples, to decide."""
    NOT_ANSWERED = "not answered"


class Judged(NamedTuple):
    """The grade of one answer (``outcome``), with the reason."""

    outcome: Outcome
    reason: str = ""
    flags: tuple[str, ...] = ()
    """Flags of the conventions that the answer fits; empty if the vector does not depend on a convention."""


class Kind(NamedTuple):
    """A kind of test vectors, with its name and a ``summary``.

    ``vectors()`` makes the vectors, and ``judge(vector, answer)`` grades an answer to one of them.
    """

    name: str
    summary: str
    vectors: Callable[[], tuple[Vector, ...]]
    fields: Mapping[str, str]
    """Field of an answer -> description of its value."""
    judge: Callable[[Vector, Answer], Judged]


def text(value: Any) -> str:
    """Return ``value``, a number, as the text of the equal rational, such as ``"3/8"``."""
    return str(Fraction(value))


def texts(row: Any) -> list[str]:
    """Return each number of ``row`` as the text of the equal rational, such as ``"3/8"``."""
    return [text(value) for value in row]


def valid(name: str, kind: str, inputs: Mapping[str, Any], answer: Answer, *flags: str, notes: Any = ()) -> Vector:
    """Return a vector with the one right ``answer``; its id is ``kind/name``.

    ``inputs``, ``flags`` and ``notes`` are those of ``Vector``.
    """
    return Vector(f"{kind}/{name}", kind, inputs, (Branch("", answer),), VectorResult.VALID, flags, tuple(notes))


def by_convention(
    name: str, kind: str, inputs: Mapping[str, Any], answers: Mapping[str, Answer], *flags: str, notes: Any = ()
) -> Vector:
    """Return a vector whose right answer depends on a convention; its id is ``kind/name``.

    ``answers`` maps the flag of each convention to the right answer under it. If all answers are equal, the vector is
    valid with this one answer. ``inputs``, ``flags`` and ``notes`` are those of ``Vector``.
    """
    different = list(answers.values())
    if all(answer == different[0] for answer in different):
        return valid(name, kind, inputs, different[0], *flags, notes=notes)
    branches = tuple(Branch(flag, answer) for flag, answer in answers.items())
    return Vector(f"{kind}/{name}", kind, inputs, branches, VectorResult.ACCEPTABLE, flags, tuple(notes))


def invalid(name: str, kind: str, inputs: Mapping[str, Any], *flags: str, notes: Any, must_not: Any = ()) -> Vector:
    """Return a vector whose input must be refused; its id is ``kind/name``.

    ``must_not`` lists forbidden answers. If it is not empty, a program may also give any other answer instead of
    refusing. ``inputs``, ``flags`` and ``notes`` are those of ``Vector``.
    """
    return Vector(f"{kind}/{name}", kind, inputs, (), VectorResult.INVALID, flags, tuple(notes), tuple(must_not))
