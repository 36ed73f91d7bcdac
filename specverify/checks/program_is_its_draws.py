"""The subject is a function of its draws: equal draws give equal behaviour. Every exact verdict rests on this.

A subject that draws through ``draws`` and also uses hidden randomness breaks its contract, and is refuted. Foreign code
may draw in any way. If its draws cannot be intercepted (in native code, from the operating system, in another process),
its law is not known: the verdict is UNKNOWN, with the evidence.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from zlib import crc32

from specverify.base.process import threads_of_engines
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.calls_at_size import small_calls
from specverify.checks.check import (
    ONLY_SAMPLED,
    Case,
    Check,
    Conditions,
    Examine,
    ExaminedPart,
    in_scenarios,
    only_sampled,
)
from specverify.checks.constant_draws import seeds_in_words
from specverify.checks.coupled_runs import FEWEST, RUNS, coupled
from specverify.checks.explaining.counterexample_parts import described
from specverify.checks.fed_runs import FEW, fed
from specverify.checks.moved_replays import (
    BY_ENGINES,
    BY_SEED,
    BY_VERIFIERS,
    CARRIED,
    MISS,
    WAY_OUT,
    Replays,
    find_unseen_calls,
    replayed,
)
from specverify.checks.open_ends import with_open_ends
from specverify.checks.valued_runs import raises_without_values, with_values
from specverify.intercept.cpython.sandbox import Found, named
from specverify.intercept.distributions import Boundary
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed, Tape
from specverify.laws.enumeration import whole_run
from specverify.laws.paths import paths
from specverify.laws.rounding import FLOAT32, spacing
from specverify.laws.scenarios import Scenario
from specverify.reference import Draws
from specverify.subjects.subject import (
    EngineProgram,
    FewPaths,
    GivenCall,
    InScenario,
    Intercepted,
    Situation,
    Subject,
    Variant,
    emitted_by,
)

PATHS = 40
TAPES = 4
REPLAYS_IN_A_SCENARIO, REPLAYS_OF_REFUTED = 4, 20
PATHS_WITH_VALUES = 2
PATHS_THAT_RAISE = 8
UNLIKE = "it behaves differently with random numbers that have values than with symbolic numbers in their place"
PARTED = (
    "run as it is and examined with the same random numbers, it does not do the same ({where}): {parted}. Either it "
    "does something else when it is examined, or a rule of interception is wrong: let samples decide (sampled=True)"
)
FED_PARTED = (
    "a plain run with the random numbers of an enumerated path does not end like the path ({where}): {parted}. "
    "Either it behaves differently when it is examined, or a rule of interception is wrong: let samples decide "
    "(sampled=True)"
)
OLDER_THREADS = (
    ". Random calls in a thread that the engine started when it was made ({}) are not followed: start it in the call, "
    "or give it its work by a pool of concurrent.futures"
)
"""The end of the sentence if such threads run."""
OF_ITSELF = (
    "let it not read properties of its numbers such as their type, and keep none from call to call; or let samples "
    "decide (sampled=True)"
)
BITS = "what depends on such a number in another way (such as its bits) is not followed: compare it or shift it; else "
REPLAYS_OF_A_CALL, REPLAYS_OF_A_SMALL_CALL = 4, 40


class _RunNumbers(NamedTuple):
    """How many coupled runs (``coupled``) and how many fed runs (``fed``) are made.

    A coupled run records the random numbers of the unchanged program, and examines the path on which they lie. A fed
    run gives the random numbers of a sampled path to the unchanged program.
    """

    coupled: int
    fed: int
    few: int = FEW
    """A program with at most this many paths is run with numbers from each of its paths."""


IN_A_SCENARIO, OF_A_SMALL_CALL, AT_SIZE = _RunNumbers(5, 1, few=0), _RunNumbers(40, FEW), _RunNumbers(2, 1, few=0)
BY_NAME = _RunNumbers(FEWEST, 1, few=0)
SHARE, LEAST, LEAST_OF_EACH = 0.1, 24, 10
"""The runs of all pairs of an engine program, as a share of its other runs; and the least number of pairs of an engine
in all its programs, and in each."""


def _scenarios(subject: Subject) -> Iterator[InScenario]:
    """Return the variants of ``subject`` in short scenarios, in which it is run twice with the same draws.

    A decoder gets the scenarios with at most three new tokens. Foreign code gets only scenarios with drafts, and in
    each of them only one of the variants that differ in their number of drafts.
    """
    if not subject.intercepted:
        return in_scenarios(_short)(subject)
    in_each = groupby(in_scenarios(_drafting)(subject), key=attrgetter("scenario"))
    return chain.from_iterable(_in_turn(number, tuple(here)) for number, (_, here) in enumerate(in_each))


def _in_turn(number: int, situations: tuple[InScenario, ...]) -> Iterator[InScenario]:
    """Yield ``situations``, all of one scenario, with only one of the variants that differ in their number of drafts.

    ``number``, the index of the scenario, selects this variant, so that different scenarios keep different variants.
    """
    lengths = [here for here in situations if here.variant.drafts is not None]
    chosen = lengths[number % len(lengths)] if lengths else None
    return (here for here in situations if here.variant.drafts is None or here is chosen)


def _variant_of(subject: Subject) -> Examine:
    return partial(examine_foreign, subject) if subject.intercepted else examine


def _short(scenario: Scenario) -> bool:
    return scenario.horizon <= 3


def _drafting(scenario: Scenario) -> bool:
    return 1 < scenario.horizon <= 3 and scenario.seed != 1


def examine(here: InScenario, conditions: Conditions) -> Examination:
    """Run the decoder ``here`` twice with the same outcomes of its draws; different new tokens refute.

    ``conditions`` has the seed.
    """
    try:
        fault = _difference(here, conditions.seed)
    except NotAFunctionOfItsDraws as found:
        fault = str(found)
    if fault is None:
        return Examination("the same draws give the same output", rational=here.rational)
    return Examination(
        "it is not a function of its draws",
        failed=True,
        rational=here.rational,
        counterexample=Counterexample(let=(described(here),), then=fault),
        figures={"function_of_draws": False},
    )


def examine_foreign(subject: Subject, here: InScenario, conditions: Conditions) -> Examination:
    """Run foreign code again with the same outcomes, while all other sources of randomness are changed.

    The code is also run unchanged, and with plain floats in place of symbolic random numbers. A difference makes the
    result unknown. ``here`` is the decoder of the code in one scenario. ``conditions`` has the seed. ``subject`` has
    the code under test.
    """
    run, probe = whole_run(here.decoder, here.prompt), here.scenario.shape == "generic"
    intercepted, seed = here.variant.intercepted, crc32(f"{conditions.seed}/{described(here)}".encode())
    valued = None if intercepted is None else partial(_with_numbers, here, intercepted)
    try:
        result = _in_the_open(run, REPLAYS_IN_A_SCENARIO, conditions.seed, probe=probe)
    except Exception:
        unlike = raises_without_values(run, valued, PATHS_THAT_RAISE, seed) if valued else ""
        if not unlike:
            raise
        return _said_of_values(Examination("", rational=False), unlike, described(here))
    examination = _said(subject, *result, described(here))
    examination = _in_both_directions(
        examination, run, IN_A_SCENARIO, seed, described(here), enumerated=with_open_ends(run)
    )
    if examination.unknown or valued is None:
        return examination
    try:
        unlike = with_values(run, valued, PATHS_WITH_VALUES, seed)
    except NotAFunctionOfItsDraws as fault:
        return _said(subject, Replays(0, str(fault)), result[1], described(here))
    return _said_of_values(examination, unlike, described(here))


def _with_numbers(here: InScenario, intercepted: Intercepted, draws: Draws, boundary: Boundary) -> Any:
    """Return the text of a decode whose random numbers are plain values from ``boundary``.

    ``intercepted`` builds the decoder of ``here``, and ``draws`` answers its other draws.
    """
    decoder = intercepted.build(here.task, lambda asked: intercepted.answered(asked, boundary))
    return whole_run(decoder, here.prompt)(draws)


def examine_program(subject: Subject, program: EngineProgram, conditions: Conditions) -> Examination:
    """Run an engine program again while other sources of randomness are changed, with and without speculation.

    ``conditions`` has the number of replays and the seed. ``subject`` has all programs of the engine.
    """
    examinations, others = [], threads_of_engines()
    for where, opened in _calls_of(program):
        with opened as run:
            number_of_replays = min(program.replays, conditions.replays)
            replays, result = _in_the_open(run, number_of_replays, conditions.seed, probe=program.observed_calls)
            examination = _said_of_seeds(_said(subject, replays, result, where), replays, where)
            number = _numbers_for(program, replays, len(subject.programs), conditions)
            known = examination.unknown
            examination = _in_both_directions(examination, run, number, conditions.seed, where)
            if examination.unknown and not known:
                examination = _with_older_threads(examination, threads_of_engines() - others)
        examinations.append(examination)
        if examinations[-1].unknown:
            return examinations[-1]
    figures = {
        "replays": min(item.figures["replays"] for item in examinations),
        "probe": [line for item in examinations for line in item.figures["probe"]],
        "miss": MISS,
        "coupled_runs": min(item.figures["coupled_runs"] for item in examinations),
        "coupled_ties": sum(item.figures["coupled_ties"] for item in examinations),
        "fed_runs": min(item.figures["fed_runs"] for item in examinations),
    }
    return examinations[0]._replace(figures=figures)


def _with_older_threads(examination: Examination, threads: Collection[threading.Thread]) -> Examination:
    """Return the unknown ``examination`` of an engine with the name of one of its ``threads``, if there are any."""
    names = sorted(thread.name for thread in threads)
    older = OLDER_THREADS.format(names[0]) if names else ""
    return examination._replace(statement=examination.statement + older)


def _calls_of(situation: Situation) -> Iterator[tuple[str, AbstractContextManager[Callable[[Draws], Any]]]]:
    """Yield (name, context manager of the program) for the foreign calls in ``situation``.

    An engine has a call with speculation, and may have one without. A verifier has one. Other situations have none.
    """
    if isinstance(situation, FewPaths):
        situation = situation.program
    if isinstance(situation, EngineProgram):
        yield f"{described(situation)}, with speculation", situation.open()
        if situation.plain is not None:
            yield f"{described(situation)}, without", situation.plain()
    elif isinstance(situation, InScenario) and situation.variant.intercepted is not None:
        yield described(situation), nullcontext(whole_run(situation.decoder, situation.prompt))


def _numbers_for(program: EngineProgram, replays: Replays, cases: int, conditions: Conditions) -> _RunNumbers:
    """Return how many coupled and fed runs of an engine program to make.

    If the program makes all of its draws by its argument ``draws``, a few runs suffice. Otherwise the number is about a
    tenth of the runs that ``replays`` made. ``cases`` is the number of programs of the subject, and ``conditions`` has
    the largest number of replays.
    """
    if replays.by_name:
        return BY_NAME
    most = min(RUNS, program.replays // 2, conditions.replays)
    if replays.runs is not None:
        most = min(most, max(LEAST_OF_EACH, math.ceil(LEAST / cases), int(SHARE * replays.runs / 2)))
    fed = min(FEW, math.ceil(most / 3))
    return _RunNumbers(most, fed, few=fed)


def examine_call(subject: Subject, given: GivenCall, conditions: Conditions) -> Examination:
    """Run the user's call ``given`` again, and similar small calls more often, and compare the results.

    ``subject`` is the program that the user calls, and ``conditions`` has the seed.
    """
    opened, said = given.open(), given.name
    runs = [(opened, REPLAYS_OF_A_CALL), *((call, REPLAYS_OF_A_SMALL_CALL) for call in small_calls(opened))]
    done = Counter[str]()
    for number, (call, replays) in enumerate(runs):
        run = partial(emitted_by, call)
        result = _in_the_open(run, replays, conditions.seed, probe=not number)
        examination = _said(subject, *result, said)
        if number or spacing(call.dtype) <= FLOAT32:  # floats of 16 bits have ties that rounding decides
            pairs = OF_A_SMALL_CALL if number else AT_SIZE
            examination = _in_both_directions(examination, run, pairs, conditions.seed, said)
        if examination.unknown:
            return examination
        done.update({name: examination.figures.get(name, 0) for name in ("coupled_runs", "coupled_ties", "fed_runs")})
    figures = {"replays": sum(replays for _, replays in runs), **done}
    return examination._replace(figures={**examination.figures, **figures})


def examine_refuted(case: Case, conditions: Conditions) -> Examination | None:
    """Return the unknown result of a refuted ``case`` whose program is not a function of its draws; None if it is one.

    ``CHECK`` examines a part of the cases of a subject, so the refuted one is replayed here. A program that depends on
    something other than its draws, such as the addresses of its objects, has no law that could be refuted.
    ``conditions`` has the seed.
    """
    for where, opened in _calls_of(case.situation):
        with opened as run:
            replays, _ = _in_the_open(run, REPLAYS_OF_REFUTED, conditions.seed, probe=False)
        if replays.fault:
            return _said(case.subject, replays, Found(), where)
    return None


def _in_the_open(run: Callable[[Draws], Any], number: int, seed: int, *, probe: bool = True) -> tuple[Replays, Found]:
    """Search the foreign program ``run`` for hidden randomness: replay it ``number`` times in a changed environment.

    A replay has other generator states, clocks and system bytes. Returns (replays, calls that may draw without
    interception). With ``probe`` False these calls are not searched for. No replay is made if there is such a call, or
    if an operation of the program is not supported. ``seed`` samples the paths.
    """
    try:
        result = find_unseen_calls(run, seed) if probe else Found()
        return (Replays(0) if result.unanswered else replayed(run, number, seed)), result
    except NeedsValue as refusal:
        return Replays(0, refusal=named(refusal, run, Tape(seed))), Found()
    except NotAFunctionOfItsDraws as fault:
        return Replays(0, str(fault)), Found()


def _said(subject: Subject, replays: Replays, found: Found, where: str) -> Examination:
    sources = (*replays.given, *found.sources, *found.native)
    figures = {"replays": replays.number, "probe": [*found.unanswered, *sources], "miss": MISS}
    if replays.refusal:
        said = only_sampled(subject, replays.refusal)
        return Examination(said, unknown=True, rational=False, figures=figures)
    if not found.unanswered and not replays.fault:
        held = "the same draws give the same output, whatever else is moved"
        return Examination(held, rational=False, figures=figures)
    seen = ", ".join(found.unanswered or sources) or "nothing that draws"
    why = [replays.fault, f"{seen} was not answered" if found.unanswered else f"seen: {seen}"]
    what = "it is not a function of the draws that are answered"
    how = BY_ENGINES if subject.programs else BY_VERIFIERS
    carried = "" if found.unanswered or sources or BY_SEED in replays.fault else CARRIED.format(how=how)
    way = (BITS if replays.given else carried) + WAY_OUT
    statement = f"{what} ({where}): {'; '.join(filter(None, why))}. {way}"
    return Examination(statement, unknown=True, rational=False, figures={**figures, "function_of_draws": False})


def _in_both_directions(
    held: Examination,
    run: Callable[[Draws], Any],
    number: _RunNumbers,
    seed: int,
    where: str,
    *,
    enumerated: Callable[[Draws], Any] | None = None,
) -> Examination:
    """Return ``held`` with the numbers of coupled and fed runs, or an unknown result if one of these runs differs.

    Both compare the program under interception with the unchanged program, in which the libraries draw their own
    numbers. A coupled run records these numbers, and follows the intercepted program on the same path. A fed run starts
    from a path of the intercepted program, and gives its numbers to the unchanged program.

    Args:
        held: The result so far.
        run: The program.
        number: The numbers of coupled and fed runs.
        seed: Selects the runs.
        where: The name of the case.
        enumerated: The program of the intercepted runs, if it differs from ``run``.
    """
    if held.unknown:
        return held
    couples = coupled(run, number.coupled, seed, enumerated)
    figures = {**held.figures, "coupled_runs": couples.runs, "coupled_ties": len(couples.ties)}
    if couples.parted:
        return _parted(PARTED, couples.parted, figures, where)
    runs = fed(run, number.fed, seed, enumerated, few=number.few)
    figures["fed_runs"] = runs.runs
    return _parted(FED_PARTED, runs.parted, figures, where) if runs.parted else held._replace(figures=figures)


def _parted(message: str, parted: str, figures: dict[str, Any], where: str) -> Examination:
    said = message.format(where=where, parted=parted)
    return Examination(said, unknown=True, rational=False, figures={**figures, "function_of_draws": False})


def _said_of_seeds(held: Examination, replays: Replays, where: str) -> Examination:
    """Return ``held``, or an unknown result if the program seeds some generators alike in every run, but not all.

    The others have seeds of the process, or those that the call is given. ``replays`` lists the draws of both kinds of
    generators, and ``where`` names the case.
    """
    kinds = ((replays.seeded, replays.unseeded), (replays.fixed, replays.of_seed))
    mixed = next(((seeded, others) for seeded, others in kinds if seeded and others), None)
    if held.unknown or mixed is None:
        return held
    figures = {**held.figures, "function_of_draws": False}
    said = seeds_in_words(*mixed)
    return Examination(f"{said} ({where})", unknown=True, rational=False, figures=figures)


def _said_of_values(held: Examination, fault: str, where: str) -> Examination:
    """Return ``held``, or, if ``fault`` is not "", an unknown result with this description.

    ``fault`` describes how the program behaves differently with plain numbers than with symbolic ones. ``where`` names
    the case.
    """
    if not fault:
        return held
    figures = {**held.figures, "function_of_draws": False}
    return Examination(f"{UNLIKE} ({where}): {fault}. {OF_ITSELF}", unknown=True, rational=False, figures=figures)


def _difference(here: InScenario, seed: int) -> str | None:
    program = whole_run(here.decoder, here.prompt)
    for path in islice(paths(program), PATHS):
        again = program(Replayed(path.choices))
        if again != path.outcome:
            return f"the choices {path.choices} gave {path.outcome} and on replay {again}"
    for tape in range(seed, seed + TAPES):
        first, second = (whole_run(here.decoder, here.prompt)(Tape(tape)) for _ in range(2))
        if first != second:
            return f"two runs on one tape of uniforms gave {first} and {second}"
    return None


CHECK = Check(
    name="program_is_its_draws",
    summary="with equal answers, the program makes the same draws and emits the same tokens",
    claim=None,
    evidence=Evidence.EQUAL,
    examines=(
        ExaminedPart(Variant, _variant_of, ONLY_SAMPLED, (), _scenarios),
        ExaminedPart(EngineProgram, lambda subject: partial(examine_program, subject), ONLY_SAMPLED),
        ExaminedPart(
            GivenCall,
            lambda subject: partial(examine_call, subject),
            ONLY_SAMPLED,
            (),
            lambda subject: subject.calls[:1],
        ),
    ),
)
