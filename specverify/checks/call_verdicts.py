"""The verdict on the law of one call: whether each probability is that of the rule, up to rounding.

*The rule* is speculative sampling (2211.17192, Algorithm 1). The verdict on a law has three cases:

* It holds if every probability is within the rounding error of float32 and the total variation from the rule is small.
  It also holds if the law equals the rule evaluated step by step in the dtype of the rows.
* It is refuted if probabilities differ from the rule by more than the rounding error of the coarsest observed floats
  with sequential sums. A small total beyond this error is tolerated. It is also refuted if the total variation from the
  rule is above ``MOST_ROUNDING``, even if rounding explains it: such a program computes too coarsely.
* Otherwise it is UNKNOWN, because rounding may explain the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.counterexample_parts import readable
from specverify.laws.call_evaluations import evaluated_behind, evaluated_kept
from specverify.laws.call_rule import EXACT, Between, Floats, Rows, added_up, behind, kept, one_by_one
from specverify.laws.law_of_call import Behind, CallLaw
from specverify.laws.rounding import (
    FLOAT32,
    FLOAT64,
    LARGEST,
    NEGLIGIBLE,
    UNDERFLOW,
    Rounding,
    of_lookup,
    spacing,
)
from specverify.reference import Tokens

FEWEST_BITS, MOST_BITS = 4, 24
"""A probability of 2^-4 to 2^-24, and no other, is explained by a uniform of as many bits."""
NOISE = 1e-12
"""The error of a probability that a float64 sum over a vocabulary may have."""
NOTICEABLE = 1e-6
"""Errors below this in total are not decided: a small constant that the program adds may cause them."""
NEAR = 1e-5
"""Total variation below which a law equals one particular floating-point evaluation of the rule."""


IN_FINER_FLOATS = "Pass cases in float32 or float64, and let the program compute in them"
"""The way out if the floats of a program or of its cases are too coarse."""
MOST_ROUNDING = 0.1
"""Total variation above which a law is wrong, whatever its cause. In floats of 16 bits a program that adds in float32
stays below a twentieth of this at a vocabulary of 150 000; a cumulative sum in 16 bits exceeds it."""


class Finding(NamedTuple):
    """The result of comparing the law of a verifier call with the rule, as a sentence (``statement``).

    The law is right if it is neither ``refuted`` nor ``unknown``.
    """

    statement: str
    refuted: bool = False
    unknown: bool = False
    of_rule: bool = False
    """Whether the statement assumes this rule, so that a program with another lossless rule may still be right."""


class Part(NamedTuple):
    """A conditional probability in the law of a call, with bounds for rounding.

    A part is either the probability that a draft is accepted (a scalar) or the law of the last token
    (``[vocabulary]``). ``found`` is the computed value, and ``allowed`` are the bounds. ``position`` is the number of
    accepted drafts before it, and ``weight`` the probability that the call gets there.
    """

    position: int
    """The number of accepted drafts before it."""
    found: Any
    allowed: Between
    weight: float
    """The probability that the call reaches this position."""
    partial: bool = False
    """Whether ``found`` is only a lower bound, because some outcomes were not followed."""

    @property
    def is_draft(self) -> bool:
        """Return whether this is the acceptance probability of a draft; if not, it is the law of the last token."""
        return np.ndim(self.found) == 0


def wrong_anyway(law: CallLaw, rows: Rows, edge: float = 0.0) -> str | None:
    """Describe a result of a call that is wrong under every rule; None if there is none.

    Four results are wrong: an error, accepted tokens that are not the first drafts, a number that is no token, and a
    token with p = 0. ``law`` is the law of the results. ``rows`` are p, q and the drafts. Tokens and drafts that are
    less probable than ``edge`` are ignored, such as those of ``log(weights + 1e-20)``.
    """
    spare = max(_left_on_nothing(law.rounding), edge)
    for fault in law.faults:
        if fault.mass > NEGLIGIBLE:
            where = f"where token {fault.token} is drawn (probability {readable(fault.mass)})"
            return f"{_behind(len(fault.kept))} {fault.said}, {where}"
    for prefix, result in law.behind.items():
        said = _wrong_drafts(prefix, result.weight, rows, spare) or _wrong_tokens(len(prefix), result, rows, spare)
        if said:
            return said
    return None


def impossible_mass(law: CallLaw, rows: Rows) -> float:
    """Return the probability that the call emits a token with p = 0, a wrong draft, or a number that is no token."""
    total = 0.0
    for prefix, result in law.behind.items():
        if _wrong_drafts(prefix, 1.0, rows, 0.0):
            total += result.weight
        else:
            total += float(result.masses[~(rows.p[len(prefix)].pmf > 0)].sum()) + math.fsum(result.outside.values())
    return total


def _wrong_drafts(prefix: Tokens, weight: float, rows: Rows, spare: float) -> str | None:
    """Describe what is wrong with the accepted drafts ``prefix``; None if nothing is.

    The accepted drafts must be the first drafts of ``rows``, and each must have p > 0. ``weight`` is the probability
    that exactly these drafts are accepted. If it is at most ``spare``, rounding may explain it, and nothing is wrong.
    """
    if not weight > spare:
        return None
    if prefix != rows.drafts[: len(prefix)]:
        return f"it emits {prefix} and one token more with probability {readable(weight)}, the drafts are {rows.drafts}"
    for position, token in enumerate(prefix):
        if not rows.p[position].pmf[token] > 0:
            said = f"draft {position + 1} (token {token}) is kept with probability {readable(weight)}"
            return f"{said}, and has target probability 0"
    return None


def _wrong_tokens(position: int, found: Behind, rows: Rows, spare: float) -> str | None:
    """Describe an emitted number that is no token or has p = 0; None if there is none.

    ``found`` is the law of the number emitted after ``position`` accepted drafts. A probability up to ``spare`` is
    ignored. ``rows`` are p, q and the drafts.
    """
    for number, mass in found.outside.items():
        if mass > spare:
            what = int(number) if number == int(number) else number
            said = f"{what} is emitted with probability {readable(mass)}"
            return f"{_behind(position)} {said}, and is no token of the vocabulary of {rows.vocabulary}"
    forbidden = np.where(rows.p[position].pmf > 0, 0.0, found.masses)
    if not forbidden.sum() > spare:
        return None
    token = int(forbidden.argmax())
    said = f"token {token} is emitted with probability {readable(float(forbidden[token]))}"
    return f"{_behind(position)} {_many(forbidden)}{said}, and has target probability 0"


def compared(law: CallLaw, rows: Rows, dtype: str) -> tuple[Finding, dict[str, float]]:
    """Compare the law of a call with the rule; return the result and its figures (name -> number).

    ``rows`` are p, q and the drafts, and ``dtype`` is the dtype of p and q. The figure ``tv`` is the total variation
    from the rule, and ``rounding`` the total variation that rounding permits.
    """
    if law.rounding.within > NOTICEABLE / 2:
        said = (
            f"probabilities of several random numbers together, or of those that meet 16 bits, are known to within "
            f"{law.rounding.within:.1g} alone: convert rows of 16 bits before numbers are compared with them"
        )
        return Finding(said, unknown=True), {"within": law.rounding.within}
    given, looked_up, count = spacing(dtype), law.rounding.cells > 0, rows.vocabulary
    fine, single = (
        _outside(law, rows, floats)
        for floats in (added_up(FLOAT32, count), one_by_one(FLOAT32, FLOAT32, count, looked_up=looked_up))
    )
    figures = {"tv": fine.distance, "rounding": single.slack}
    unread = next((each.unread for each in law.behind.values() if each.unread), "")
    known = not unread and not law.missing
    if known and single.total <= NOISE and fine.distance <= LARGEST / 4:
        close = f", TV = {readable(fine.distance)}: sums in float32" if fine.total > NOISE else ", token by token"
        return Finding(f"the law is the rule's{close}"), {**figures, "rounding": fine.slack}
    seen = max(law.rounding.epsilon, given, FLOAT32)
    coarse = _outside(law, rows, one_by_one(seen, given, count, looked_up=looked_up))
    figures["rounding"] = coarse.slack
    beyond = coarse.gross > NOTICEABLE or coarse.total > LARGEST
    if beyond or (known and fine.distance > MOST_ROUNDING):
        by_sums = f"{fine.told}: floats spaced by {seen:.1g} at 1 are too coarse for the sums of this program"
        return Finding(coarse.told if beyond else by_sums, refuted=True, of_rule=True), figures
    if not known:
        return Finding(unread or f"probability {readable(law.missing)} was not followed", unknown=True), figures
    if given > FLOAT32 and _computed_in(law, rows, dtype):
        said = f"the law is the rule's as {dtype} computes it, TV = {readable(fine.distance)} from what float64 does"
        return Finding(said), figures
    return Finding(_too_coarse(fine, coarse, seen), unknown=True), figures


class _ExcessLaw(NamedTuple):
    """How far the law of a call of a verifier lies outside the bounds that rounding permits."""

    total: float
    """The total probability outside the bounds."""
    gross: float
    """The part of ``total`` at probabilities that are wrong by more than a factor of two."""
    distance: float
    """Total variation from the rule evaluated in float64."""
    slack: float
    """The total variation that the bounds allow."""
    told: str
    """A sentence about the largest deviation."""


def _outside(law: CallLaw, rows: Rows, floats: Floats) -> _ExcessLaw:
    total = gross = slack = distance = worst = 0.0
    told, exact, reference = "", _scaled(rows), 1.0
    for part in _parts(law, rows, floats):
        expected = (kept if part.is_draft else behind)(exact, part.position, EXACT).low
        low, high = part.allowed
        spare = NOISE * np.asarray(high) + UNDERFLOW
        over = np.maximum(part.found - high - spare, 0.0)
        under = np.zeros_like(over) if part.partial else np.maximum(low - part.found - spare, 0.0)
        wide = (over > 0) & (part.found > 2 * np.asarray(high)) | (under > 0) & (part.found < np.asarray(low) / 2)
        if part.is_draft:  # a rejection may be wrong by a factor where the acceptance is not
            wide |= (under > 0) & (1 - part.found > 2 * (1 - low)) | (over > 0) & (1 - part.found < (1 - high) / 2)
        wrong = np.where(wide, over + under, 0.0)
        total += part.weight * float((over + under).sum())
        gross += part.weight * float(wrong.sum())
        slack += part.weight * float(np.sum(high - low)) / 2
        if part.weight * float((over + under).max()) > worst:
            worst = part.weight * float((over + under).max())
            told = _describe_difference(part, rows, np.asarray(expected), over + under)
        if part.is_draft:
            reference *= float(expected)
        distance += part.weight * float(np.abs(part.found - expected).sum()) / (1 if part.is_draft else 2)
    return _ExcessLaw(total, gross, min(distance, 1.0), min(slack, 1.0), told)


def _parts(law: CallLaw, rows: Rows, floats: Floats) -> Iterator[Part]:
    """Yield, for each number of accepted drafts, P(the next draft is accepted) and the law of the last token.

    ``law`` is the law of the call, and ``rows`` are its p, q and drafts. The bounds of each part are those of rounding
    in ``floats``.
    """
    result = [law.behind.get(rows.drafts[:position]) for position in range(len(rows.drafts) + 1)]
    weights = [each.weight if each else 0.0 for each in result]
    for position, here in enumerate(result):
        reached = math.fsum(weights[position:])
        if law.missing or not reached > NEGLIGIBLE:
            return
        if position < len(rows.drafts):
            later = math.fsum(weights[position + 1 :]) / reached
            yield Part(position, np.float64(later), kept(rows, position, floats), reached)
        if here and here.weight > NEGLIGIBLE:
            allowed = behind(rows, position, floats)
            yield Part(position, here.masses / here.weight, allowed, here.weight, partial=bool(here.unread))


def _scaled(rows: Rows) -> Rows:
    def of_sum_1(row: Any) -> Any:
        return row._replace(pmf=row.pmf / row.pmf.sum())

    return rows._replace(p=tuple(map(of_sum_1, rows.p)), q=tuple(map(of_sum_1, rows.q)))


def _describe_difference(part: Part, rows: Rows, expected: Any, outside: Any) -> str:
    if part.is_draft:
        token = rows.drafts[part.position]
        return (
            f"draft {part.position + 1} (token {token}) is kept with probability {readable(float(part.found))}, "
            f"the rule gives {readable(float(expected))}{_few_bits(float(part.found), float(expected))}"
        )
    token, most = int(np.argmax(outside)), "at least " if part.partial else ""
    return (
        f"{_behind(part.position)} {_many(outside)}token {token} is emitted with probability "
        f"{most}{readable(float(part.found[token]))}, the rule gives {readable(float(expected[token]))}"
    )


def _few_bits(found: float, expected: float) -> str:
    """Return the remark that a uniform with few bits explains a too large acceptance probability; "" if it does not.

    A uniform of n bits is 0 with probability 2^-n, and then every draft is accepted. So ``found``, the observed
    probability, must be 2^-n for an n from 4 to 24. ``expected`` is the right probability.
    """
    mantissa, exponent = math.frexp(found)
    bits = 1 - exponent
    is_zero_that_often = mantissa == 0.5 and FEWEST_BITS <= bits <= MOST_BITS and expected < found
    return f" (a uniform of {bits} bits is 0 that often)" if is_zero_that_often else ""


def _behind(count: int) -> str:
    return "at once" if not count else f"after {count} accepted draft{'s' * (count > 1)}"


def _many(outside: Any) -> str:
    """Return a phrase with the number of wrong tokens if there are several, else "".

    ``outside`` has, for each token, its probability outside the bounds.
    """
    number = int(np.count_nonzero(outside))
    return f"{number} tokens are wrong by {readable(float(outside.sum()))} together: " if number > 1 else ""


def _left_on_nothing(rounding: Rounding) -> float:
    """Return the largest probability that rounding of cumulative sums can give to a token of probability 0.

    ``rounding`` has the rounding that was observed in the run.
    """
    if not rounding.cells:
        return UNDERFLOW
    return UNDERFLOW + 2 * rounding.epsilon + of_lookup(rounding.epsilon, rounding.cells)


def _computed_in(law: CallLaw, rows: Rows, dtype: str) -> bool:
    """Return whether ``law`` equals, up to ``NEAR``, a usual computation of the rule in the dtype ``dtype``.

    Such a computation follows the rule step by step and rounds each step to ``dtype``. ``rows`` are p, q and the drafts
    of the call.
    """
    for part in _parts(law, rows, EXACT):
        ways = (evaluated_kept if part.is_draft else evaluated_behind)(rows, part.position, dtype)
        if not any(float(np.abs(part.found - way).sum()) * part.weight <= NEAR for way in ways):
            return False
    return True


def _too_coarse(fine: _ExcessLaw, coarse: _ExcessLaw, epsilon: float) -> str:
    if coarse.total > NOISE:
        return (
            f"{coarse.told}: more than rounding, but too little ({readable(coarse.total)} in all) to distinguish "
            "a defect from a small number that is added to avoid a division by 0"
        )
    told = f"; {fine.told}" if fine.told else ""
    return (
        f"TV = {readable(fine.distance)} from the rule's law may be rounding: in floats spaced by {epsilon:.1g} at 1 "
        f"it can be {coarse.slack:.1g}, in float64 {fine.slack * FLOAT64 / FLOAT32:.1g}{told}. {IN_FINER_FLOATS}"
    )
