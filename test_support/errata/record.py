"""A claim of a document as data and as a test: the test computes the numbers that the corrected text contains."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import cache, wraps
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

import numpy as np

DOCUMENTS = {
    "TH": "the theory of speculative decoding",
    "IM": "an implementation, with the entropy-adaptive draft length EGAG",
    "NA": "n-gram assisted decoding (NASD)",
    "EC": "a guide for a drafter on the edge and a target in the cloud",
    "SV": "a survey of methods",
}


class Verdict(StrEnum):
    """The verdict on a claim: true, true under a condition, false, inconsistent, or a defect."""

    TRUE = "true"
    CONDITION = "true under a condition"
    FALSE = "false"
    INCONSISTENT = "inconsistent"
    DEFECT = "defect"


class Erratum(NamedTuple):
    """One claim of one document."""

    document: str
    section: str
    quoted: tuple[str, ...]
    """The document's sentences, as printed there."""
    stated: str
    """The same in English."""
    verdict: Verdict
    """Of what is printed."""
    meant: Verdict
    """Of the reading that its author most plausibly meant."""
    correct: str
    """A format string over the numbers that ``show`` returns; it holds no decimal number of its own."""
    show: Callable[[], Mapping[str, Any]]
    """Computes the numbers and asserts the verdict with them."""
    test: str
    """The pytest node id."""

    def corrected(self) -> str:
        """Return ``correct`` with its numbers. Raises ``ValueError`` if a number is not used."""
        return _WithNumbers().format(self.correct, **self.show())


QUOTES: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("quotes.toml").read_text("utf-8"))
"""The quoted sentences by the name of the test."""

ERRATA: list[Erratum] = []
"""Every claim whose module was imported, in the order of the source."""


def erratum(
    document: str, section: str, *, stated: str, verdict: Verdict, correct: str, meant: Verdict | None = None
) -> Callable[[Callable[[], Mapping[str, Any]]], Callable[[], None]]:
    """Decorator that makes a function, which computes numbers and asserts a claim, a row of ``ERRATA`` and a test.

    Args:
        document: The document that contains the claim.
        section: Its section.
        stated: The claim in English.
        verdict: Verdict on the printed claim.
        correct: The corrected text, a format string over the numbers that the function returns.
        meant: Verdict on the reading that its author most plausibly meant; None if there is one reading.
    """

    def register(show: Callable[[], Mapping[str, Any]]) -> Callable[[], None]:
        file = f"{show.__module__.replace('.', '/')}.py"
        node = f"{file}::{show.__name__}"
        quoted = tuple(QUOTES[show.__name__])
        row = Erratum(document, section, quoted, stated, verdict, meant or verdict, correct, cache(show), node)
        ERRATA.append(row)

        @wraps(show)
        def test() -> None:
            assert row.corrected()

        return test

    return register


class _WithNumbers(Formatter):
    """Formatter that writes fractions exactly, or as decimals if a format such as ``.3f`` is given.

    Sequences by element.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (tuple, list, np.ndarray)):
            return "(" + ", ".join(self.format_field(item, format_spec) for item in value) + ")"
        if isinstance(value, Fraction):
            return format(float(value), format_spec) if format_spec else _exact(value)
        return format(value, format_spec)

    def check_unused_args(self, used_args: set[int | str], args: Any, kwargs: Mapping[str, Any]) -> None:  # noqa: ARG002 - the base class has it
        if unused := set(kwargs) - used_args:
            raise ValueError(f"{sorted(unused)} were computed and are not in the text")


def _exact(value: Fraction) -> str:
    scaled = value * 10**6
    if scaled.denominator > 1:
        return f"{value.numerator}/{value.denominator}"
    return f"{float(value):.6f}".rstrip("0").rstrip(".")
