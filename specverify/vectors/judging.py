"""Compare a program's answer with the expected answers of a vector: equality, pmfs, laws, forbidden answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from specverify.base.arguments import is_number
from specverify.laws.rounding import FLOAT32, FLOAT64, Rounding, allowed
from specverify.reference import Tokens
from specverify.reference.validation import shown
from specverify.vectors.vector import REFUSED, Answer, Judged, Outcome, Vector, VectorResult

RATIONAL = re.compile(r"[0-9]+(/0*[1-9][0-9]*)?")
"""Pattern of a rational in an answer, such as ``3/8`` or ``2``."""
LONGEST, MOST = 1000, 1e9
"""Most characters of a rational in an answer, and the largest floating-point number that is read."""
Same = Callable[[Answer, Answer], Judged]
"""A function ``same(expected, answer)`` that compares two answers and returns the grade."""


def judged_by(same: Same, vector: Vector, answer: Answer) -> Judged:
    """Grade ``answer`` by comparing it with each right answer of ``vector``; the best of these grades counts.

    ``same(expected, answer)`` grades one comparison. A refusal passes if the vector is invalid, or if a refusal is one
    of its right answers. To an invalid vector with forbidden answers, every other answer passes too.
    """
    refused = answer == REFUSED
    if vector.result is VectorResult.INVALID:
        return _judged_invalid(vector, answer, refused=refused)
    if refused:
        taken = tuple(branch.flag for branch in vector.expected if branch.answer == REFUSED)
        return _passed(*taken) if taken else Judged(Outcome.FAILED, "it refuses an input that is right")
    result = [(branch.flag, same(branch.answer, answer)) for branch in vector.expected if branch.answer != REFUSED]
    fits = tuple(flag for flag, judged in result if judged.outcome is Outcome.PASSED)
    return _passed(*filter(None, fits)) if fits else min((judged for _, judged in result), key=_rank)


def _rank(judged: Judged) -> int:
    return _RANK[judged.outcome]


def judged_exactly(vector: Vector, answer: Answer) -> Judged:
    """Grade an answer that must be equal to one of the vector's right answers in every field."""
    return judged_by(equal_fields, vector, answer)


def judged_as_row(vector: Vector, answer: Answer) -> Judged:
    """Grade an answer whose field ``pmf`` is a list, by comparing it with the right answers of ``vector``.

    Entries that are strings are rationals and must be equal; numbers may be rounded.
    """
    return judged_by(equal_rows, vector, answer)


def equal_fields(expected: Answer, answer: Answer) -> Judged:
    """Return the grade of ``answer``, which must have every field of ``expected`` with an equal value.

    The first field that is missing or differs gives the grade: "not answered" or "failed". Without such a field the
    grade is "passed".
    """
    for field, value in expected.items():
        if field not in answer:
            return Judged(Outcome.NOT_ANSWERED, f"the answer has no {field}")
        if type(answer[field]) is not type(value) or answer[field] != value:
            return Judged(Outcome.FAILED, f"{field} is {shown(answer[field])}, expected {shown(value)}")
    return _passed()


def equal_rows(expected: Answer, answer: Answer) -> Judged:
    """Return the grade of ``answer``, a pmf, against the pmf ``expected``.

    If the entries of ``answer`` are strings, they are rationals and must be equal; numbers may differ by rounding.
    """
    row, wanted = answer.get("pmf"), expected["pmf"]
    if not isinstance(row, list):
        return Judged(Outcome.NOT_ANSWERED, "the answer has no pmf, a list")
    if len(row) != len(wanted):
        return Judged(Outcome.FAILED, f"the pmf has {len(row)} entries, expected {len(wanted)}")
    return equal_laws(dict(enumerate(wanted)), dict(enumerate(row)), decisions=1)


def equal_laws(expected: dict[Any, str], found: dict[Any, Any], decisions: int) -> Judged:
    """Return the grade of the law ``found`` (outcome -> probability) against the law ``expected``.

    If all probabilities are strings, the laws must be equal as rationals. Otherwise a total variation within the
    rounding of float64 passes, one beyond the rounding of float32 fails, and one between them is undecided.
    ``decisions`` is the number of random decisions that lead to an outcome; their rounding errors add up.
    """
    values: dict[Any, Fraction] = {}
    for outcome, mass in found.items():
        value = rational(mass)
        if value is None:
            return Judged(Outcome.FAILED, f"the probability of {_said(outcome)} is {shown(mass)}, no probability")
        values[outcome] = value
    wanted = {outcome: Fraction(mass) for outcome, mass in expected.items()}
    none = Fraction(0)
    apart = {key: values.get(key, none) - wanted.get(key, none) for key in values.keys() | wanted.keys()}
    distance = sum((abs(value) for value in apart.values()), start=none) / 2
    if distance == 0:
        return _passed()
    coarse, fine = (_bound(epsilon, decisions, len(wanted)) for epsilon in (FLOAT32, FLOAT64))
    exact = all(isinstance(mass, str) for mass in found.values())
    if not exact and distance <= fine:
        return _passed()
    if not exact and distance <= coarse:
        said = f"a distance of {float(distance):.1g} may be rounding: answer in rationals or float64"
        return Judged(Outcome.UNDECIDED, said)
    worst = max(apart, key=lambda outcome: (abs(apart[outcome]), repr(outcome)))
    shown_value = found.get(worst, 0)
    return Judged(
        Outcome.FAILED,
        f"{_said(worst)} has probability {shown_value}, expected {expected.get(worst, '0')}; "
        f"total variation {float(distance):.3g}",
    )


def rational(value: Any) -> Fraction | None:
    """Return ``value``, a probability as a string such as ``"3/8"`` or as a number, as a ``Fraction``.

    Returns None for anything else.
    """
    if isinstance(value, str):
        return Fraction(value) if len(value) <= LONGEST and RATIONAL.fullmatch(value) else None
    fine = is_number(value) and 0 <= value <= MOST
    return Fraction(value) if fine else None


def rows_by_tokens(rows: Any, value: str) -> dict[Tokens, Any] | None:
    """Return the rows of an answer as a dictionary from their ``tokens`` to their value.

    A row is an object with two entries, ``tokens`` and the one called ``value``, such as ``"probability"``. Returns
    None if ``rows`` is no list of such objects, or if two rows have the same tokens.
    """
    if not isinstance(rows, list):
        return None
    result: dict[Tokens, Any] = {}
    for row in rows:
        if not isinstance(row, Mapping) or set(row) != {"tokens", value} or not isinstance(row["tokens"], list):
            return None
        tokens = tuple(row["tokens"])
        if not all(type(token) is int for token in tokens) or tokens in result:
            return None
        result[tokens] = row[value]
    return result


def _bound(epsilon: float, decisions: int, support: int) -> Fraction:
    return Fraction(allowed(Rounding(epsilon, decisions, decisions * support, decisions, support), epsilon))


def _judged_invalid(vector: Vector, answer: Answer, *, refused: bool) -> Judged:
    if refused:
        return _passed()
    if not vector.must_not:
        return Judged(Outcome.FAILED, f"it answers {shown(answer)}, expected a refusal")
    for forbidden in vector.must_not:
        missing = [field for field in forbidden if field not in answer]
        if missing:
            return Judged(Outcome.NOT_ANSWERED, f"the answer has no {missing[0]}")
        if all(answer[field] == value for field, value in forbidden.items()):
            return Judged(Outcome.FAILED, f"it answers {shown(dict(forbidden))}, which must not come out")
    return _passed()


def _passed(*flags: str) -> Judged:
    return Judged(Outcome.PASSED, flags=flags)


def _said(outcome: Any) -> str:
    return f"token {outcome}" if isinstance(outcome, int) else f"the text {list(outcome)}"


_RANK = {Outcome.PASSED: 0, Outcome.UNDECIDED: 1, Outcome.FAILED: 2, Outcome.NOT_ANSWERED: 3}
