"""No randomness is used twice: no uniform decides two things, and no two draws come from one state of a generator.

Whether the law survives is for ``law_is_target`` to say; this names the line. What counts as two decisions, and what
cannot be seen, is in ``intercept.audit``. All rounds of a decode are followed in one block, as one stream: a verifier
that seeds its generator anew in each call decides every round by the same numbers. The law of one round does not show
it, and laws of several rounds are put together from those. One that makes its seed of what it is given has other
numbers in other rounds, and no randomness of its own: so a round is put to it twice as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from reference import Draws
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks._explain import described
from specverify.checks._laws import OpenProgram, overheard_of
from specverify.checks._open_ends import step_with_open_end
from specverify.checks.check import Case, Check, Conditions, in_scenarios
from specverify.intercept.audit import Reuse, audited
from specverify.intercept.unknowns.deferred import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import Undecided, first_outcomes, paths
from specverify.laws.scenarios import Scenario
from specverify.subjects.subject import InScenario, Intercepted, Subject

SHAPES = {"generic", "point_draft"}
ROUNDS_TWICE = 4
"""Rounds that are put to a verifier twice, its drafts being certain."""


def obstacle(subject: Subject) -> str | None:
    """Only draws that foreign code makes can be told apart by the state they are made from."""
    if subject.programs or (subject.intercepted and subject.variants):
        return None
    return "its draws are asked for by name, nothing is intercepted"


def _several_rounds(scenario: Scenario) -> bool:
    """Contexts enough for thresholds on both sides of each other; a vocabulary beyond two, for residuals of several."""
    plain = not scenario.greedy and not scenario.eos
    return plain and scenario.vocabulary > 2 and scenario.horizon > 3 and scenario.shape in SHAPES


def cases(subject: Subject) -> Iterator[Case]:
    """Return every variant in a few scenarios of several rounds, and every engine program.

    One row of pmfs is looked at with one gamma, the last: what fewer drafts share, they share with it.
    """
    if subject.intercepted:
        rows = [variant for variant in subject.variants if not variant.joint and not variant.process]
        kept = tuple(variant for variant in subject.variants if variant not in rows[:-1])
        for here in in_scenarios(_several_rounds)(subject._replace(variants=kept)):
            twice = partial(_put_twice, here) if here.scenario.shape == "point_draft" else None
            yield Case(subject, here, partial(examine, described(here), partial(_opened, here), twice=twice))
    for program in subject.programs:
        yield Case(subject, program, partial(examine, described(program), program.open, whole=True))


def examine(
    where: str,
    opened: OpenProgram,
    conditions: Conditions,
    twice: Callable[[], str] | None = None,
    *,
    whole: bool = False,
) -> Examination:
    """Follow paths with the audit on, until something is used twice, unless a law was enumerated by the same paths.

    ``twice()`` says what is used twice where a call is made twice, or nothing. Noise of a ``whole`` engine may belong
    to a place in its text and decide there in every iteration, as in Jacobi decoding: where that cannot be followed,
    it is not refuted for it.
    """
    for shares, draws in overheard_of(opened):
        if max(shares.values()) <= _each(conditions.paths, len(shares)):
            return _nothing_twice(sum(shares.values()), draws)
    with audited() as found, opened() as run:
        refusal, runs, draws = _follow(run, found, conditions.paths)
    figures = {"runs": runs}
    if whole and refusal and all(reuse.coupled for reuse in found):
        raise refusal
    if found:
        example = Counterexample(let=(where,), then=found[0].sentence, because=tuple(r.sentence for r in found[1:]))
        return Examination(found[0].sentence, failed=True, rational=False, counterexample=example, figures=figures)
    if refusal:
        raise refusal
    if said := twice() if twice else "":
        return Examination(
            said, failed=True, rational=False, counterexample=Counterexample(let=(where,), then=said), figures=figures
        )
    return _nothing_twice(runs, draws)


class _LastToken(NamedTuple):
    """The end of a decode whose last token is drawn and not looked at."""

    outcomes: int
    """How many it can be: as many paths end here."""


def _paths_in(outcome: Any) -> int:
    return outcome.outcomes if isinstance(outcome, _LastToken) else 1


def _nothing_twice(runs: int, draws: int) -> Examination:
    return Examination(f"nothing is used twice in {draws} draws", rational=False, figures={"runs": runs})


def _each(most: int, shares: int) -> int:
    """Return how many paths of each share are followed, of ``most`` together."""
    return -(-most // shares)


@contextmanager
def _opened(here: InScenario) -> Iterator[Callable[[Draws], Any]]:
    intercepted = here.variant.intercepted
    yield whole_run(here.decoder, here.prompt) if intercepted is None else _in_one_block(here, intercepted)


def _in_one_block(here: InScenario, intercepted: Intercepted) -> Callable[[Draws], Any]:
    """Return a whole decode whose calls are all made in one block; it ends where a token is none.

    A last token that nobody looks at decides nothing: one run stands for all that it can be.
    """
    task, prompt = here.task, here.prompt
    decoder, vocabulary = intercepted.build(task, lambda _: nullcontext()), range(len(task.target(prompt)))
    with suppress(NeedsValue):
        whole_run(here.decoder, prompt)(Tape(0))  # what it imports is imported before the block

    def program(draws: Draws) -> Any:
        state = decoder.init(prompt)
        with intercepted.answered(draws):
            while state.remaining > 0 and all(token in vocabulary for token in state.tokens):
                after = step_with_open_end(decoder, draws, state)
                if isinstance(after, Undecided):
                    return _LastToken(len(after.outcomes))
                state, _ = after
        return state.tokens

    return program


def _put_twice(here: InScenario) -> str:
    """Return what is used twice where the first round is put to a verifier twice, given the same both times."""
    if (intercepted := here.variant.intercepted) is None:
        return ""
    decoder = intercepted.build(here.task, lambda _: nullcontext())
    with audited() as found, suppress(NeedsValue):
        for tape in range(ROUNDS_TWICE):
            draws = Tape(tape)
            with intercepted.answered(draws):
                for _ in range(2):
                    decoder.step(draws, decoder.init(here.prompt))
    return f"{found[0].sentence}, in two calls that are given the same" if found else ""


def _follow(run: Callable[[Draws], Any], found: list[Reuse], most: int) -> tuple[NeedsValue | None, int, int]:
    """Follow at most so many paths, as many for each outcome of the first two draws.

    Return why a path could not be followed, if so, and the numbers of paths and of their draws.
    """
    runs = draws = 0
    try:
        shares = first_outcomes(run, depth=2)
        for share in shares:
            each = (path for path in paths(run, share) for _ in range(_paths_in(path.outcome)))
            for path in islice(each, _each(most, len(shares))):
                runs, draws = runs + 1, draws + len(path.decisions) + isinstance(path.outcome, _LastToken)
                if found:
                    return None, runs, draws
    except NeedsValue as refusal:
        return refusal, runs, draws
    return None, runs, draws


CHECK = Check(
    name="draws_are_independent",
    summary="no random number is used for two decisions, and no stream of them is started over",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
)
