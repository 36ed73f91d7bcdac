"""Single calls of a verifier whose uniforms have given values; shared by several checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import NamedTuple

from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import Conditions, ExaminedPart, Need, by, in_scenarios
from specverify.checks.explaining.counterexample_parts import described
from specverify.checks.explaining.drawn_trees import drawn, is_tree, node_named
from specverify.checks.explaining.wording import apart, short
from specverify.intercept.distributions import Boundary
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Decision, Narrated, NotAFunctionOfItsDraws, Replayed
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.paths import RunBudget, Undecided, outcomes_of, paths
from specverify.laws.rounding import NEGLIGIBLE
from specverify.laws.scenarios import Scenario
from specverify.reference import Draft, Draws, State, Task, Tokens, chain
from specverify.reference.models import draft_model
from specverify.reference.trees import path_tokens
from specverify.subjects.checked_calls import KeptCall, calls_kept, changed_answer, changed_input, overwrite_inputs
from specverify.subjects.emitted import ends_left_open
from specverify.subjects.subject import InScenario, Intercepted, Subject, Variant

ORDINARY = (0.25, 0.75)
"""Two values for all uniforms: with the first most drafts are accepted, with the second most are rejected."""
MOST_LEFT_OUT = 8_000
"""The most paths of rounds after one text that are left out because they are rare, as ``RunBudget`` counts them."""
MOST_COMBINED = 3
"""Any set of this many drafts of a call has every combination of tokens (``checksums``)."""
SAID = (NeedsValue, NotAFunctionOfItsDraws)
"""Errors that the examination raises and not the verifier."""


class CalledVerifier(NamedTuple):
    """A verifier in a scenario (``situation``), to be called with given random numbers.

    ``intercepted`` builds the decoder of the verifier, in which random calls are intercepted.
    """

    situation: InScenario
    intercepted: Intercepted


ExamineCalls = Callable[[CalledVerifier, Conditions], Examination]


class Came(NamedTuple):
    """The result of one round of a verifier that begins in the state ``state`` and gets given random numbers.

    ``new`` are the emitted tokens, and ``boundary`` is the object that supplied the numbers.
    """

    state: State
    choices: tuple[int, ...]
    """The enumerated outcomes; those of the drafts come first."""
    new: Tokens
    error: Exception | None
    """The error that was raised, or None."""
    boundary: Boundary
    drafted: int = 0
    """The number of outcomes that were enumerated before the verifier was called."""


NO_VERIFIER = "it is no verifier"
"""Why a check of calls does not apply."""


def called_in(
    keep: Callable[[Scenario], bool],
    examine: ExamineCalls,
    absent: str = NO_VERIFIER,
    more: tuple[Scenario, ...] = (),
) -> ExaminedPart:
    """Return the part of a check that examines a verifier in the scenarios with two drafts.

    These scenarios have a horizon of 3, a vocabulary of more than two tokens, and neither greedy decoding nor an
    end-of-text token. Of the variants that verify one sequence, only the one with the largest gamma is examined.

    Args:
        keep: Returns whether a scenario with two drafts is examined.
        examine: Examines the verifier in one scenario.
        absent: Why the check does not apply to a subject that is no verifier.
        more: Further scenarios beside those of the subject.
    """

    def two_drafts(scenario: Scenario) -> bool:
        plain = not scenario.greedy and not scenario.eos
        return plain and scenario.horizon == 3 and scenario.vocabulary > 2 and keep(scenario)

    def within(subject: Subject) -> Iterator[InScenario]:
        others = [variant for variant in subject.variants if variant.joint or variant.process]
        rows = [variant for variant in subject.variants if variant not in others]
        kept = subject.with_situations(Variant, (*rows[-1:], *others))
        return in_scenarios(two_drafts)(kept._replace(scenarios=subject.scenarios + more))

    def examined(situation: InScenario, conditions: Conditions) -> Examination:
        assert situation.variant.intercepted is not None
        return examine(CalledVerifier(situation, situation.variant.intercepted), conditions)

    needs = (Need(lambda _, variant: variant.intercepted, absent),)
    return ExaminedPart(Variant, by(examined), absent, needs, within)


def rounds_at(called: CalledVerifier, uniforms: Iterable[float]) -> Iterator[Came]:
    """Yield rounds of the verifier ``called`` in which all uniforms have one value, for each value in ``uniforms``.

    For each value there are the rounds after the scenario's prompt, and after the prompt and one token, with every
    possible draft.
    """
    for uniform in uniforms:
        for start in starting_texts(called.situation):
            yield from rounds_after(called, start, uniform)


def starting_texts(situation: InScenario) -> tuple[Tokens, ...]:
    """Return the prompt of ``situation``, and the prompt followed by each token of the vocabulary."""
    return (situation.prompt, *((*situation.prompt, token) for token in range(situation.scenario.vocabulary)))


def rounds_after(
    called: CalledVerifier,
    start: Tokens,
    end: float,
    only: int | None = None,
    *,
    left_open: bool = False,
    apart: float = 0.0,
    first: tuple[int, ...] = (),
) -> Iterator[Came]:
    """Yield the rounds of a verifier after one text, for every draft, with given random numbers.

    Of more than ``MOST_COMBINED`` drafts, as of a tree or of several rows, not all combinations are examined, but a
    part of them in which any ``MOST_COMBINED`` drafts have all of theirs (``checksums``).

    An error of the verifier is the ``error`` of its round. Errors of the examination are raised, and
    ``EnumerationTooLarge`` if too many paths are left out because they are rare (``MOST_LEFT_OUT``).

    Args:
        called: The verifier in its scenario.
        start: The text before the round.
        end: The value of the random numbers: 0 or 1 for the ends of their range, or an ordinary value.
        only: Index of the only number with this value; all others are ordinary. None: all numbers have it.
        left_open: Whether one call stands for all values of a last token that is never read.
        apart: The probability that a number is nearer to the end than the given one; 0: the extreme value itself.
        first: Outcomes of the first draws, which are the drafts. All other draws of outcomes are enumerated.
    """
    intercepted = called.intercepted
    boundaries: list[Boundary] = []
    narrations: list[Narrated] = []
    drafted: list[int] = []
    check_examined = _checked_drafts()

    def answered(draws: Draws) -> AbstractContextManager[None]:
        if not drafted:
            check_examined(narrations[-1].decisions)
        drafted.append(len(narrations[-1].decisions))
        return intercepted.answered(draws, boundaries[-1])

    decoder = intercepted.build(called.situation.task, answered)
    state = decoder.init(start)

    def one_round(draws: Draws) -> Undecided:
        narrated = Narrated(draws)
        narrations.append(narrated)
        drafted.clear()
        boundaries.append(Boundary(end, only, apart=apart))

        def came(new: Tokens = (), error: Exception | None = None) -> Came:
            return Came(state, _choices(narrated), new, error, boundaries[-1], max(drafted, default=0))

        try:
            with ends_left_open(int(left_open)):
                ends = outcomes_of(decoder.step(narrated, state))
        except SAID:
            raise
        except _LeftOut:
            return Undecided(())
        except Exception as error:  # noqa: BLE001 - the verifier may raise anything; it is judged or raised again
            return Undecided(((came(error=error), 1),))
        return Undecided(tuple((came(done.tokens), share) for (_, done), share in ends))

    spent = RunBudget(MOST_LEFT_OUT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a division by zero that is warned of is not yet wrong
        for path in paths(one_round, first, rare=spent.leave_out):
            yield from (each for each, share in path.outcome.outcomes if path.weight * share > NEGLIGIBLE)
    if spent.is_over:
        raise EnumerationTooLarge(f"a round after {start} has too many paths with uniforms at {end}")


class _LeftOut(Exception):  # noqa: N818 - it ends a round before the verifier is called
    """Raised if the drafts of a round are not among those that are examined."""


def _checked_drafts() -> Callable[[Sequence[Decision]], None]:
    """Return a function that raises ``_LeftOut`` if the drafts have other checksums than those of its first call."""
    sums = list[tuple[int, ...]]()

    def check(drafts: Sequence[Decision]) -> None:
        sums.append(checksums(drafts))
        if sums[-1] != sums[0]:
            raise _LeftOut

    return check


def checksums(drafts: Sequence[Decision]) -> tuple[int, ...]:
    """Return the sums of the tokens ``drafts``, modulo the vocabulary, that are equal in all examined rounds.

    They are the check symbols of a Reed-Solomon code. Draft i has the weight i ** j in sum j, so that all sums and any
    ``MOST_COMBINED`` drafts determine the other drafts if the vocabulary is a prime number of at least as many tokens
    as there are drafts; at other sizes, a few combinations may be missing.
    """
    sums = range(len(drafts) - MOST_COMBINED)
    return tuple(
        sum(place**power * draft.outcome for place, draft in enumerate(drafts)) % len(drafts[0].weights)
        for power in sums
    )


def described_call(situation: InScenario, came: Came) -> tuple[str, ...]:
    """Return lines about the call in the round ``came``: the scenario, the rows of p and q, and the drafts.

    ``situation`` is the verifier in its scenario.
    """
    propose, prefix = situation.decoder.propose, came.state.tokens
    draft = chain((), ()) if propose is None else propose(Replayed(came.choices), came.state)
    drafted = drawn(draft) if is_tree(draft) else str(draft.tokens)
    return (described(situation), *_described_rows(situation.task, prefix, draft), f"drafted {drafted} after {prefix}")


def _described_rows(task: Task, prefix: Tokens, draft: Draft) -> Iterator[str]:
    """Yield lines with the rows of p and q along ``draft``, with enough digits to show where they differ.

    ``prefix`` is the text before the draft. The models of ``task`` give the rows.
    """
    draft_row, branching = draft_model(task), is_tree(draft)
    for node in range(-1, len(draft.tokens)):
        text = prefix + path_tokens(draft, node)
        p_row, q_row = task.target(text).tolist(), draft_row(text).tolist()
        pairs = [apart(p, q) for p, q in zip(p_row, q_row, strict=True)]
        drafted = node in draft.parents
        p = ", ".join(pair[0] if drafted else short(mass) for pair, mass in zip(pairs, p_row, strict=True))
        q = f"   q = ({', '.join(pair[1] for pair in pairs)})" if drafted else ""
        place = f"{node_named(draft, node)}, " if branching else ""
        yield f"{place}after {text}: p = ({p}){q}"


def _choices(narrated: Narrated) -> tuple[int, ...]:
    return tuple(decision.outcome for decision in narrated.decisions)


class After(NamedTuple):
    """The result of calling a verifier several times: what the calls changed, besides returning results.

    ``calls`` is the number of calls.
    """

    calls: int
    changed: tuple[str, tuple[str, ...]] | None
    """(an argument that a call changed, the setting of that call); None if there is none."""
    stale: tuple[str, tuple[str, ...]] | None
    """(a result that changed after its call, the setting of that call); None if there is none."""
    views: bool
    """Whether a result changes if the arrays that were passed as arguments are overwritten after the call."""


@lru_cache(maxsize=256)
def after_calls(called: CalledVerifier) -> After:
    """Call the verifier ``called`` with ordinary random numbers, and search for changed arguments and results.

    Arguments and results are compared after the last call. Then the arguments are overwritten and the results are
    compared again, to find results that share memory with the arguments. Raises the verifier's errors.
    """
    seen: list[tuple[KeptCall, Came]] = []
    with calls_kept() as calls:
        for came in rounds_at(called, ORDINARY):
            if came.error is not None:
                raise came.error
            seen += [(call, came) for call in calls[len(seen) :]]
    changed = _first((changed_input(call), came) for call, came in seen)
    stale = _first((changed_answer(call), came) for call, came in seen)
    for call, _ in seen:
        overwrite_inputs(call)
    views = stale is None and any(changed_answer(call) for call, _ in seen)
    first, second = (result and (result[0], described_call(called.situation, result[1])) for result in (changed, stale))
    return After(len(seen), first, second, views)


def _first(found: Iterable[tuple[str | None, Came]]) -> tuple[str, Came] | None:
    return next(((said, came) for said, came in found if said), None)


def examine_calls(after: After, found: tuple[str, tuple[str, ...]] | None, holds: str) -> Examination:
    """Return the examination of the calls in ``after``.

    ``found`` is the change that refutes; if it is None, the check holds with the sentence ``holds``.
    """
    figures = {"runs": after.calls}
    if found is None:
        return Examination(holds, rational=False, figures=figures)
    said, let = found
    return Examination(said, failed=True, rational=False, counterexample=Counterexample(let, said), figures=figures)
