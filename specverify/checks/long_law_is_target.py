"""The joint law of long texts is the target's law, tested by a random fingerprint of the law (``laws.long_texts``).

Equal laws have equal fingerprints, and different laws have different ones except with a stated, tiny probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from specverify.base.verdict import Counterexample, DoesNotApply, Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart, Need, by, in_scenarios
from specverify.checks.explaining.counterexample_parts import described, readable
from specverify.laws.long_texts import (
    NotRational,
    Pattern,
    ReadsWholeText,
    Rounds,
    TooManyRounds,
    difference,
    rounds_of,
)
from specverify.laws.scenarios import LONG_SCENARIOS, Scenario, handed_task
from specverify.reference import Claim
from specverify.reference.algorithms import autoregressive
from specverify.subjects.subject import InScenario, Subject, Variant

RUNS = 15_000
"""The most runs in one scenario. For a decoder whose states merge they grow linearly: 48 tokens take 400 to 8000."""
MORE = (0, 2)
"""Numbers of last tokens, beyond those that the models read, by which states are merged."""
UNMERGED = "its states cannot be merged by the last tokens: {}"


OWN_LAW = "it declares another law than the target's"
NO_STATE = "only a decoder with a state has states that can be merged"
_in_long_scenarios = in_scenarios()


def _situations(subject: Subject) -> Iterator[InScenario]:
    return _in_long_scenarios(subject._replace(scenarios=LONG_SCENARIOS))


def _rounds(situation: InScenario, budget: int) -> Rounds:
    """Return the rounds of the decode ``situation`` as a graph, in which states with the same last tokens are one node.

    The number of compared tokens is the number that the models read, or slightly more. At most ``budget`` runs are
    made. Raises ``DoesNotApply`` if states cannot be merged in this way.
    """
    for more in MORE:
        try:
            return rounds_of(situation.decoder, situation.prompt, situation.scenario.order + more, budget)
        except ReadsWholeText as used:
            reason = str(used)
        except (NotRational, TooManyRounds) as refused:
            raise DoesNotApply(UNMERGED.format(refused)) from None
    raise DoesNotApply(UNMERGED.format(reason))


@lru_cache(maxsize=8)
def _plain(scenario: Scenario) -> Rounds:
    return rounds_of(autoregressive.build(handed_task(scenario)), scenario.prompt, scenario.order, RUNS)


def examine(situation: InScenario, conditions: Conditions) -> Examination:
    """Compare the law of the output with the target's law by a random fingerprint; a difference refutes.

    ``situation`` is a decoder in a scenario. ``conditions`` has the largest number of runs and the seed of the
    fingerprint.
    """
    rounds, plain = _rounds(situation, min(RUNS, conditions.runs // 4)), _plain(situation.scenario)
    pattern = difference(rounds, plain, situation.scenario.vocabulary, conditions.seed)
    figures = {"runs": rounds.runs, "new_tokens": rounds.horizon, "miss": rounds.horizon / 2**61}
    if pattern is None:
        return Examination(f"the law of {rounds.horizon} new tokens is the target's", figures=figures)
    fault = _fault(pattern)
    return Examination(
        fault,
        failed=True,
        counterexample=Counterexample(let=(described(situation),), then=fault, fault=fault),
        figures={**figures, "tv": float(abs(pattern.one - pattern.other))},
    )


def _fault(pattern: Pattern) -> str:
    first, last = pattern.place + 1, pattern.place + len(pattern.tokens)
    which = f"new token {first} is {pattern.tokens[0]}" if first == last else f"new tokens {first} to {last} are"
    listed = "" if first == last else f" ({', '.join(map(str, pattern.tokens))})"
    return f"{which}{listed} with probability {readable(float(pattern.one))}, expected {readable(float(pattern.other))}"


CHECK = Check(
    name="long_law_is_target",
    summary="the joint law of 48 new tokens is the target's, by fingerprints",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(
            Variant,
            by(examine),
            NO_STATE,
            (
                Need(lambda subject, _: not (subject.intercepted or subject.whole), NO_STATE),
                Need(lambda _, variant: variant.declared_law is None, OWN_LAW),
            ),
            _situations,
        ),
    ),
)
