"""The form of a test vector: its inputs, the expected answers, and the conventions they depend on.

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
"""JSON-able: what a program says to one vector."""

REFUSED: Answer = {"refused": True}
"""The answer of a program that does not take the input, and says so."""


class VectorResult(StrEnum):
    """The requirement of a vector, in the words of Wycheproof."""

    VALID = "valid"
    """One answer is right."""
    ACCEPTABLE = "acceptable"
    """Several are, one for each convention; a program must keep to one of them."""
    INVALID = "invalid"
    """The input must be refused, or else an answer must not come out."""


class Branch(NamedTuple):
    """A right answer and the convention under which it is right; "" if there is no choice."""

    flag: str
    answer: Answer


class Vector(NamedTuple):
    """One question to a program: inputs and expected answers."""

    id: str
    """``kind/...``; it stays the same when vectors are added."""
    kind: str
    inputs: Mapping[str, Any]
    expected: tuple[Branch, ...]
    """One for a valid vector, two or more for an acceptable one, none for an invalid one."""
    result: VectorResult = VectorResult.VALID
    flags: tuple[str, ...] = ()
    """Conventions under which it is asked; the first one names its group."""
    notes: tuple[str, ...] = ()
    """Keys of ``notes.NOTES``: the classes of bugs that it exposes."""
    must_not: tuple[Answer, ...] = ()
    """For an invalid vector: answers that must not come out. Without any, only a refusal is right."""

    @property
    def group(self) -> str:
        """The name under which grades are counted: the kind, and the first flag."""
        return "/".join((self.kind, *self.flags[:1]))


class Outcome(StrEnum):
    """The grade of an answer. Only one value is a pass."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """Too coarse or too few to tell."""
    NOT_ANSWERED = "not answered"


class Judged(NamedTuple):
    """The grade of one answer, and the reason."""

    outcome: Outcome
    reason: str = ""
    flags: tuple[str, ...] = ()
    """The conventions that the answer fits, where there is a choice."""


class Kind(NamedTuple):
    """One kind of vectors: how they are made and how answers to them are graded."""

    name: str
    summary: str
    vectors: Callable[[], tuple[Vector, ...]]
    fields: Mapping[str, str]
    """Field of an answer -> what stands there."""
    judge: Callable[[Vector, Answer], Judged]


def text(value: Any) -> str:
    """Return a rational or a float, which is a rational too, as a string."""
    return str(Fraction(value))


def texts(row: Any) -> list[str]:
    """Return a list of rationals as strings."""
    return [text(value) for value in row]


def valid(name: str, kind: str, inputs: Mapping[str, Any], answer: Answer, *flags: str, notes: Any = ()) -> Vector:
    """Return a vector with one right answer."""
    return Vector(f"{kind}/{name}", kind, inputs, (Branch("", answer),), VectorResult.VALID, flags, tuple(notes))


def by_convention(
    name: str, kind: str, inputs: Mapping[str, Any], answers: Mapping[str, Answer], *flags: str, notes: Any = ()
) -> Vector:
    """Return a vector whose answer depends on a convention; ``answers`` maps flags to answers.

    It is valid, with one answer, if all of them agree.
    """
    different = list(answers.values())
    if all(answer == different[0] for answer in different):
        return valid(name, kind, inputs, different[0], *flags, notes=notes)
    branches = tuple(Branch(flag, answer) for flag, answer in answers.items())
    return Vector(f"{kind}/{name}", kind, inputs, branches, VectorResult.ACCEPTABLE, flags, tuple(notes))


def invalid(name: str, kind: str, inputs: Mapping[str, Any], *flags: str, notes: Any, must_not: Any = ()) -> Vector:
    """Return a vector whose input must be refused; ``must_not`` lists answers that are forbidden."""
    return Vector(f"{kind}/{name}", kind, inputs, (), VectorResult.INVALID, flags, tuple(notes), tuple(must_not))
