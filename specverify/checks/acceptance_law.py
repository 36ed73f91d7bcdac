"""Drafts are accepted as often as possible: draft x with probability min(p(x), q(x)), wherever a draft is made.

No decoder whose output follows p can emit a draft from q more often (2211.17192, section 3.4), and "always reject"
passes every test of the law alone. q is the observed law of the engine's drafts and p follows from the expected law, so
the check does not rely on what the engine reports about itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import NamedTuple

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.observed_runs import (
    Observable,
    Seen,
    refuted,
    seen_in,
    watched,
)
from specverify.laws.near_ties import greedy_parting
from specverify.laws.rounding import Rounding, allowed, at_most_float32, holds_within, worst
from specverify.reference import Claim, Tokens
from specverify.subjects.subject import committed_before, drafts_of

DraftContext = tuple[tuple[int, ...], Tokens]
"""The lengths of the new text at which the rounds so far began, and the new text before a draft."""


class Rate(NamedTuple):
    """How often one token is drafted, and emitted as a draft, at one position of a text.

    ``token`` is the drafted token, and ``before`` are the new tokens before it. ``p`` is the target's probability of
    the token, and ``q`` the observed probability that it is drafted. ``rounds`` has the number of new tokens at the
    start of each round so far.
    """

    rounds: tuple[int, ...]
    before: Tokens
    token: int
    reached: float
    """Probability that any token is drafted at this position."""
    p: float
    q: float
    emitted: float
    """Probability that the draft is this token and is emitted, given that a token is drafted at this position."""

    @property
    def expected(self) -> float:
        """Return min(p, q), the largest possible probability that this token is drafted and emitted as a draft."""
        return min(self.p, self.q)


def rates(seen: Seen, promised_law: Mapping[Tokens, float]) -> Iterator[Rate]:
    """Yield a ``Rate`` for every draft in the recorded runs ``seen``: how often it is drafted, and how often emitted.

    p is computed from ``promised_law``, the expected law of texts. Drafts after a text with probability 0 in this law
    are left out.
    """
    promised = _prefix_masses(promised_law)
    drafted, emitted = _masses(seen)
    for (rounds, before), masses in sorted(drafted.items()):
        if not promised[before]:
            continue  # the promised law has no p there; that it is reached is the matter of other checks
        reached = sum(masses.values())
        for token, mass in sorted(masses.items()):
            p = promised[*before, token] / promised[before]
            yield Rate(rounds, before, token, reached, p, mass / reached, emitted[rounds, before][token] / reached)


def examine(observable: Observable, __: Conditions) -> Examination:
    """Compare the emission rate of every draft with min(p, q), its largest possible value.

    ``observable`` is an engine program whose forward passes are recorded. A rate that differs by more than rounding
    refutes. The result is unknown in three cases:

    * No draft was recorded.
    * Rounding may explain the difference.
    * Greedy decoding with and without speculation gives different texts, and the logits are nearly tied at the first
      difference.
    """
    program, seen = observable.program, seen_in(observable.watch)
    promised_law = program.law()
    drafted, _ = _masses(seen)
    rounding = reduce(worst, (run.rounding for run in seen.runs))
    bound = _of_position(rounding)
    figures = {"runs": len(seen.runs), "positions": len(drafted), "rounding": bound}
    if not drafted:
        return Examination("no draft was reached", unknown=True, rational=False, figures=figures, is_empty=True)
    farthest = 0.0
    for rate in rates(seen, promised_law):
        distance = abs(rate.emitted - rate.expected)
        farthest = max(farthest, distance)
        if distance > bound:
            texts = {new: mass for run in seen.runs for new, mass in run.ends}
            tied = greedy_parting(program.name, program.logits, texts, promised_law)
            if tied is not None and tied.near_tie:
                return Examination(tied.undecided, unknown=True, rational=False, figures=figures)
            return refuted(program, describe_rate(rate), f"rounds begin at new tokens {rate.rounds}", figures)
    if not holds_within(farthest, _of_position(at_most_float32(rounding))):
        said = f"a rate is {farthest:.2g} from min(p, q), which may be rounding: here that is up to {bound:.2g}"
        return Examination(said, unknown=True, rational=False, figures=figures)
    return Examination("every draft is emitted with probability min(p, q)", rational=False, figures=figures)


def describe_rate(rate: Rate) -> str:
    """Return a sentence about the emission rate of a draft: p, q, the expected and the actual rate."""
    return (
        f"after {rate.before} draft {rate.token} has p = {rate.p:.6g} and q = {rate.q:.6g}: it should be emitted with "
        f"probability {rate.expected:.6g}, but is with {rate.emitted:.6g}"
    )


def _of_position(rounding: Rounding) -> float:
    """Return the rounding bound for the comparison of one draft: how far ``Rate.emitted`` may be from min(p, q).

    ``Rate.emitted`` is the observed probability that a draft is one given token and is emitted; min(p, q) is the
    largest possible value. ``rounding`` has the dtypes, supports and lookups observed in the runs. Two random decisions
    can be rounded: the acceptance test, and the draw of the token from p in the expected law. Decisions before the
    draft do not count, because the rate, p and q are all conditional on the tokens before the draft.
    """
    return allowed(rounding._replace(decisions=2))


def _masses(seen: Seen) -> tuple[dict[DraftContext, dict[int, float]], dict[DraftContext, dict[int, float]]]:
    """Return how probable each draft is to be made, and to be emitted, as two mappings ``drafted`` and ``emitted``.

    A context is a pair (number of new tokens at the start of each round so far, new tokens before the draft).
    ``drafted[context][token]`` is the probability that ``token`` is the draft in this context, and
    ``emitted[context][token]`` that it is also emitted. ``seen`` holds the recorded runs of an engine.
    """
    drafted: dict[DraftContext, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    emitted: dict[DraftContext, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for run in seen.runs:
        for new, mass in run.ends:
            rounds: tuple[int, ...] = ()
            for forward in run.seen.forwards:
                begin = committed_before(forward, seen.prompt) - len(seen.prompt)
                rounds = (*rounds, begin)
                for offset, draft in enumerate(drafts_of(forward, seen.prompt)):
                    position = begin + offset
                    if position >= len(new):
                        break
                    drafted[rounds, new[:position]][draft] += mass
                    if new[position] != draft:
                        break
                    emitted[rounds, new[:position]][draft] += mass
    return drafted, emitted


def _prefix_masses(law: Mapping[Tokens, float]) -> dict[Tokens, float]:
    masses: dict[Tokens, float] = defaultdict(float)
    for new, mass in law.items():
        for length in range(len(new) + 1):
            masses[new[:length]] += mass
    return masses


CHECK = Check(
    name="acceptance_law",
    summary="every draft of an engine is emitted with probability min(p, q), q the observed law of its drafts",
    claim=Claim.OPTIMAL_COUPLING,
    evidence=Evidence.EXACT,
    examines=(watched("forwards", examine),),
)
