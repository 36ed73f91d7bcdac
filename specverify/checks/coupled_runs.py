"""Coupled runs: a program runs twice with the same random numbers, unchanged and intercepted; the results must agree.

The *plain run* is the unchanged program; its random numbers are recorded. The *examined run* follows the path of the
enumeration on which these numbers lie. The enumeration assigns a probability to each path, and an examined run takes
the path with this probability. So the two runs end differently with a probability of at least the total variation
between the enumerated law and the law of the program. n runs miss a difference of probability x with probability (1 -
x)^n. No statistical test is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.cpython.sandbox import generators_moved
from specverify.intercept.interpreters import Coupled, Parted
from specverify.intercept.recorded_numbers import NotRecorded
from specverify.intercept.recorder import Recorder
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.paths import outcomes_of
from specverify.reference import Draws
from specverify.subjects.seeded import seeded

RUNS = 200
"""The least number of coupled runs of a subject."""
FEWEST = 3
"""Number of runs after which two random numbers that were equal in every run are taken to be one number."""
AGAIN = 40
"""Number of plain runs that show whether a program keeps a JAX key from one run to the next."""
SEED = 0x5EED


class CoupledRuns(NamedTuple):
    """The result of ``coupled``, which runs a program in pairs: once unchanged, and once examined by interception.

    Both runs of a pair have the same random numbers, so both should have the same result.
    """

    runs: int
    """Number of pairs of runs that gave the same result."""
    parted: str = ""
    """Description of the first pair with different results and of the first call that differs; "" if there is none."""
    ties: tuple[str, ...] = ()
    """Pairs whose different results rounding may explain; they do not count."""
    unrecorded: str = ""
    """Why the runs stopped early: a call that cannot be recorded or is not supported; "" if they did not."""


def coupled(
    program: Callable[[Draws], Any],
    runs: int = RUNS,
    seed: int = 0,
    enumerated: Callable[[Draws], Any] | None = None,
) -> CoupledRuns:
    """Run a program in pairs with the same random numbers, once plainly and once examined, and compare the results.

    Pairs with equal results are counted. Pairs whose difference rounding may explain are listed. The runs end early in
    three cases:

    * A pair differs by more than rounding: the result describes it.
    * A random call cannot be recorded or is not supported.
    * The program keeps a JAX key from one run to the next.

    The result also describes two random numbers that are examined as independent but are equal in every run.

    Parameters
    ----------
    program
        A function of draws. It runs its code inside ``answered_everywhere``, which intercepts the random calls.
    runs
        The number of pairs.
    seed
        Seed of the random numbers.
    enumerated
        The program of the examined runs, if it differs from ``program``. It may leave its last token symbolic.
    """
    done, ties, twins = 0, list[str](), None
    for number in range(runs):
        place = SEED + seed + number
        recorder = Recorder(Tape(place))
        plain = plain_end(program, recorder, place)
        try:
            examined, ended = _examined_run(enumerated or program, recorder, place)
            if examined.by_keys and _difference(plain, ended, examined):
                with seeded(place), generators_moved(place):  # a factory may draw the seed of its key
                    examined, ended = _examined_run(enumerated or program, recorder, place)
        except NotRecorded as reason:
            return CoupledRuns(done, ties=tuple(ties), unrecorded=str(reason))
        if isinstance(ended, NeedsValue) or isinstance(plain, NeedsValue):
            return CoupledRuns(done, ties=tuple(ties), unrecorded=str(ended))
        fault = _difference(plain, ended, examined)
        if fault and examined.ties:
            ties.append(fault)
        elif fault and examined.by_keys and _keeps_state(program, place, plain):
            kept = "a key of JAX is kept from run to run, so a run is not had again"
            return CoupledRuns(done, ties=tuple(ties), unrecorded=kept)
        elif fault:
            return CoupledRuns(done, fault, tuple(ties))
        else:
            done, twins = done + 1, examined.twins() if twins is None else twins & examined.twins()
    if done >= FEWEST and twins:
        one, other = min(twins)
        return CoupledRuns(done, f"in every run numbers {one} and {other} are equal, and are examined as two")
    return CoupledRuns(done, ties=tuple(ties))


def _examined_run(program: Callable[[Draws], Any], recorder: Recorder, place: int) -> tuple[Coupled, Any]:
    """Run ``program`` with interception on the path of the enumeration on which the numbers of ``recorder`` lie.

    Returns (interpreter of the draws, result or error). ``place``, an integer, selects values for numbers that are
    missing in the record.
    """
    examined = Coupled(recorder, Tape(place), np.random.default_rng(place))
    return examined, end_of(program, examined)


def plain_end(program: Callable[[Draws], Any], recorder: Recorder, place: int) -> Any:
    """Return the result of a plain run, ``program(recorder)``, or the exception that it raises.

    In a plain run the libraries draw their own numbers. ``place``, an integer, selects the seeds and the states of the
    generators.
    """
    with seeded(place), generators_moved(place):
        return end_of(program, recorder)


def end_of(program: Callable[[Draws], Any], draws: Draws) -> Any:
    """Return the result of ``program(draws)``, or the exception that it raises, so that two runs can be compared.

    ``NotRecorded``, which concerns the method and not the program, is not caught.
    """
    try:
        return program(draws)
    except NotRecorded:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it raises, the other run is to raise it too
        return error


def _keeps_state(program: Callable[[Draws], Any], place: int, plain: Any) -> bool:
    """Return whether the program keeps state from run to run: whether runs with equal seeds have different results.

    The libraries draw their own numbers. ``plain`` is the result of an earlier run, and ``place`` selects its seeds.
    The program is run ``AGAIN`` times more with these seeds.
    """
    again = (plain_end(program, Recorder(Tape(place)), place) for _ in range(AGAIN))
    return any(_name_of(each) != _name_of(plain) for each in again)


def _difference(plain: Any, ended: Any, examined: Coupled) -> str:
    first = (*examined.parted, *([] if isinstance(ended, Exception) else [examined.left()]))
    return difference_of(plain, ended, next(filter(None, first), ""), "examined")


def difference_of(plain: Any, ended: Any, first: str, other: str) -> str:
    """Return how a run of the unchanged program differs from another run with the same numbers, or "" if it does not.

    Parameters
    ----------
    plain
        The result of the run of the unchanged program, or the exception that it raised.
    ended
        The result of the other run, or its exception. If draws were not read, the result stands for several outcomes.
    first
        The first call that differs, or "".
    other
        The name of the other run in the sentence, such as "examined".
    """
    if isinstance(plain, Exception) or isinstance(ended, Exception):
        alike = type(plain) is type(ended)
    else:
        alike = any(bool(plain == outcome) and share > 0 for outcome, share in outcomes_of(ended))
    if alike and not first:
        return ""
    ends = "both end alike" if alike else f"it ended with {_name_of(plain)}, and {other} with {_name_of(ended)}"
    return "; ".join(filter(None, (ends, first)))


def _name_of(ended: Any) -> str:
    """Return the result of a run as text; ``ended`` is this result, or the exception that the run raised.

    The text of ``Parted``, with which interception ends a run, does not name the call that differs.
    """
    if isinstance(ended, Parted):
        return "other draws"
    return f"{type(ended).__name__}: {ended}".rstrip(": ") if isinstance(ended, Exception) else str(ended)


__all__ = ["SEED", "CoupledRuns", "coupled", "difference_of", "end_of", "plain_end"]
