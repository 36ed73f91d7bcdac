"""Interpreters of ``reference.types.Draws``: objects that answer the random decisions of a program.

``Sampled`` (from reference) samples; ``specverify.laws.enumeration`` answers with every outcome in turn. The
interpreters here replay one path, couple two implementations, let Hypothesis choose, or record the draws.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from specverify.reference import Draws, Pmf, Sampled, Site, as_pmf, check_pmf, inverse_cdf
from specverify.reference.pmf import is_plainly_pmf

if TYPE_CHECKING:
    from hypothesis.strategies import DataObject

__all__ = [
    "Decision",
    "FromHypothesis",
    "Narrated",
    "NotAFunctionOfItsDraws",
    "Question",
    "Replayed",
    "Sampled",
    "Tape",
]

MOST_DECISIONS = 10_000
MOST_OF_SITE = 100_000
"""Largest number of draws by one line in a run of a tape; more are taken for an endless loop."""


class NotAFunctionOfItsDraws(Exception):  # noqa: N818 - named for what it says of the subject
    """Raised if the program made other draws in a second run, although its earlier draws had the same outcomes."""


class Question:
    """The pmf and site (name of the decision) of one draw, kept to recognise the draw in another run."""

    def __init__(self, pmf: Pmf, site: Site, depth: int) -> None:
        """Store a draw from ``pmf`` at ``site``; ``depth`` is the number of earlier draws on its path.

        Raises ``ValueError`` if ``pmf`` is not a probability vector, and ``NotAFunctionOfItsDraws`` if the path has
        more than ``MOST_DECISIONS`` draws.
        """
        if depth == MOST_DECISIONS:
            raise NotAFunctionOfItsDraws(f"more than {MOST_DECISIONS} draws on one path, the last at {site}")
        if not is_plainly_pmf(pmf):
            pmf = check_pmf(pmf, f"the pmf at {site}")
        self.site, self.depth = site, depth
        self._content = pmf.copy() if isinstance(pmf, np.ndarray) else np.array(pmf.tolist())
        self._bytes, self._dtype = self._content.tobytes(), self._content.dtype
        self._weights: tuple[Any, ...] | None = None
        self._possible: tuple[int, ...] | None = None

    @property
    def weights(self) -> tuple[Any, ...]:
        """Return the probability of each outcome of the draw, in the number type of the pmf."""
        if self._weights is None:
            self._weights = tuple(self._content.tolist())
        return self._weights

    @property
    def possible(self) -> tuple[int, ...]:
        """Return the outcomes of the draw that have positive probability."""
        if self._possible is None:
            self._possible = support(self._content)
        return self._possible

    @property
    def masses(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the probability of each outcome of the draw in float64."""
        return np.asarray(self._content, dtype=np.float64)

    def check_repeated(self, pmf: Pmf, site: Site) -> None:
        """Raise ``NotAFunctionOfItsDraws`` unless ``pmf`` and ``site`` are those of this draw."""
        if site == self.site and self._has_content(as_pmf(pmf)):
            return
        weights = tuple(check_pmf(pmf, f"the pmf at {site}").tolist())  # what was asked before was checked then
        raise NotAFunctionOfItsDraws(
            f"draw {self.depth} was at {self.site} with pmf {_shown(self.weights)} and is at {site} with "
            f"pmf {_shown(weights)} on replay, although all draws before it were answered alike"
        )

    def _has_content(self, pmf: Pmf) -> bool:
        """Return whether the stored pmf equals ``pmf`` entry by entry; equal bytes are tried first."""
        if isinstance(pmf, np.ndarray) and pmf.dtype == self._dtype and pmf.tobytes() == self._bytes:
            return True
        values = pmf.tolist()
        if len(values) != len(self.weights):
            return False
        sides = self.weights, values
        identities = zip(*(map(id, side) for side in sides), strict=True)
        pairs = dict(zip(identities, zip(*sides, strict=True), strict=True))  # most entries are one object, say zero
        return all(_equal(one, other) for one, other in pairs.values())

    def check_made(self, draws: int) -> None:
        """Raise ``NotAFunctionOfItsDraws`` if a replay ended after ``draws`` draws, before it made this draw."""
        if draws <= self.depth:
            raise NotAFunctionOfItsDraws(
                f"draw {draws} at {self.site} was not made on replay, although all draws before it were answered alike"
            )


def _equal(one: Any, other: Any) -> bool:
    """Return ``one == other``; fractions in lowest terms are compared by their integers, which is faster."""
    if one is other:
        return True
    if type(one) is Fraction is type(other):
        return one.as_integer_ratio() == other.as_integer_ratio()
    return bool(one == other)


BELOW, AMONG, TOGETHER = "below", "between", "together"
"""Kinds of constraints on a uniform, the last but one entry of a site: below a bound; between two of several bounds; a
joint constraint with other uniforms."""


class Decision(NamedTuple):
    """One draw of a program: its ``site``, which is the name of the decision, its pmf (``weights``) and its outcome."""

    site: Site
    weights: tuple[Any, ...]
    outcome: int


class Replayed:
    """Answer the draws with given outcomes in order, to repeat one path."""

    def __init__(self, choices: Sequence[int]) -> None:
        """Store the outcomes: that of draw i is ``choices[i]``."""
        self._choices = tuple(choices)
        self.used = 0

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the next of the given outcomes, for the draw at ``site`` from ``pmf``.

        Raises ``NotAFunctionOfItsDraws`` if none is left, or if ``pmf`` gives the outcome probability 0.
        """
        pmf = check_pmf(pmf, f"the pmf at {site}")
        if self.used == len(self._choices):
            raise NotAFunctionOfItsDraws(f"a draw at {site} after the {self.used} recorded ones, expected no more")
        choice = self._choices[self.used]
        if not 0 <= choice < len(pmf) or not pmf[choice] > 0:
            raise NotAFunctionOfItsDraws(f"draw {self.used} at {site} cannot be {choice}: it has probability 0 there")
        self.used += 1
        return choice


class Tape:
    """An interpreter that couples two programs: each draw gets a uniform that depends only on the name of the decision.

    The name is the draw's site, and the count of earlier draws at the same site. Two programs with the same sites get
    the same uniforms, so programs with equal pmfs emit the same tokens.
    """

    def __init__(self, seed: int, uniforms: dict[tuple[Site, int], float] | None = None) -> None:
        """Start without draws; the uniforms are derived from ``seed``.

        ``uniforms`` maps (site, occurrence), with occurrences counted from 0, to a uniform in [0, 1) that is used
        instead.
        """
        self._seed = seed
        self._uniforms = dict(uniforms or {})
        self._seen: dict[Site, int] = {}

    @property
    def used(self) -> int:
        """Return the number of draws answered so far."""
        return sum(self._seen.values())

    def uniform(self, site: Site) -> float:
        """Return the uniform of the next draw at ``site``, which is the next occurrence of the site.

        Raises ``NotAFunctionOfItsDraws`` after ``MOST_OF_SITE`` draws at the site.
        """
        occurrence = self._seen.get(site, 0)
        if occurrence == MOST_OF_SITE:
            raise NotAFunctionOfItsDraws(f"more than {MOST_OF_SITE} draws in one run at {site}: it draws without end")
        self._seen[site] = occurrence + 1
        key = (site, occurrence)
        if key not in self._uniforms:
            digest = hashlib.blake2b(f"{self._seed}/{key!r}".encode(), digest_size=8).digest()
            self._uniforms[key] = (int.from_bytes(digest, "big") >> 11) / 2**53
        return self._uniforms[key]

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome whose interval of the cumulative ``pmf`` contains the uniform of this draw at ``site``."""
        return inverse_cdf(check_pmf(pmf, f"the pmf at {site}"), self.uniform(site))


class FromHypothesis:
    """Let Hypothesis choose and shrink the outcomes, among those of positive probability."""

    def __init__(self, data: DataObject) -> None:
        """Store ``data``, the value of ``hypothesis.strategies.data()`` in the test."""
        self._data = data

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return an outcome of positive probability under ``pmf``, chosen by Hypothesis; ``site`` is its label."""
        from hypothesis.strategies import sampled_from  # noqa: PLC0415 - an extra, needed here alone

        return self._data.draw(sampled_from(support(check_pmf(pmf, f"the pmf at {site}"))), label=str(site))


class Narrated:
    """Pass every draw on to the interpreter ``inner`` and record the decisions in order."""

    def __init__(self, inner: Draws) -> None:
        """Pass draws on to ``inner``, and record them in attributes that change as the program runs.

        ``decisions`` lists the draws with their outcomes, ``asked`` is the site of the last draw, also if it failed,
        and ``threads`` has the names of the threads that drew.
        """
        self._inner = inner
        self.decisions: list[Decision] = []
        self.asked: Site = ()
        self.threads: set[str] = set()

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw at ``site`` from ``pmf``, which ``inner`` chooses, and record it."""
        pmf, self.asked = check_pmf(pmf, f"the pmf at {site}"), site
        self.threads.add(threading.current_thread().name)
        outcome = self._inner.categorical(pmf, site)
        self.decisions.append(Decision(site, tuple(pmf.tolist()), outcome))
        return outcome


def support(pmf: Pmf) -> tuple[int, ...]:
    """Return the outcomes of positive probability in a pmf."""
    if isinstance(pmf, np.ndarray) and pmf.dtype != object:
        return tuple(np.flatnonzero(pmf > 0).tolist())
    return tuple(outcome for outcome, mass in enumerate(pmf.tolist()) if mass > 0)


def _shown(weights: tuple[Any, ...]) -> str:
    return "(" + ", ".join(str(weight) for weight in weights) + ")"
