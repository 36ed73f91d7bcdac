"""Find draws whose numbers are constants of the program, such as the weights of a model that each call makes anew.

A generator that the program itself seeds with a constant draws the same numbers in every call. Interception treats them
as random, as if the program could choose another seed: so a sampler with a fixed seed has a law. But the weights of a
network are used in ways in which no symbolic number is followed. If an engine is refused, this module finds the lines
that draw from a generator in such a state and decide nothing by what they draw. There the library draws its own
numbers, and the law is that of the engine with these constants. Lines without which the engine is followed too are left
out: what they draw remains random.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from specverify.intercept.cpython.sandbox import moved
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import PROCESS
from specverify.intercept.streams import CHOSEN, states_noted
from specverify.laws.draws import Narrated
from specverify.laws.paths import outcomes_of
from specverify.reference import Draws, Sampled
from specverify.subjects.call_arguments import FIRST_SEED, runs_begin_at
from specverify.subjects.subject import Subject

_SEEDS = (0, 1, 2)
"""Seeds of the paths that are followed: an engine may be refused on some paths alone."""
_MOST_SEARCHES = 4
"""Number of searches at most. With the lines that one has found, the engine may come to others."""
_WORLDS = (0, 1)
"""Numbers of the states of the process, and of the seed arguments, with which the engine is run."""


def find_constant_draws(subject: Subject) -> tuple[str, ...]:
    """Find the lines of an engine whose draws are constants, and let the library draw there in later runs.

    The lines are put into ``PROCESS.constant_lines``. There are none if interception follows the engine without them,
    or does not follow it with them either. A subject that is no engine has none. Returns file and line of each of these
    draws, sorted.
    """
    PROCESS.constant_lines = frozenset()
    for program in subject.programs[:1]:
        for opened in filter(None, (program.open, program.plain)):
            before = lines = PROCESS.constant_lines
            with suppress(Exception), opened() as run:
                lines = _search(run)
            PROCESS.constant_lines = before | lines
    return tuple(sorted(PROCESS.constant_lines))


def are_of_rows(subject: Subject, lines: Collection[str]) -> bool:
    """Return whether the numbers drawn at ``lines`` belong to the rows of p and q, and choose no token.

    This is so if the call of the engine without speculation draws at these lines too, and draws each of its tokens at
    others, from generators that it does not seed. An example is a watermark, whose list of tokens is drawn with a hash
    of the text as seed. Returns False for an engine without such a call.
    """
    for program in subject.programs[:1]:
        if program.plain is None:
            continue
        with suppress(Exception), program.plain() as run:
            first, second = (_drawn_in(run, Sampled(_SEEDS[0]), world) for world in _WORLDS)
            alike = _alike(first, second)
            others = sum(len(states) for line, states in first.items() if line not in alike)
            text, _ = outcomes_of(run(Sampled(_SEEDS[0])))[0]
            return alike >= set(lines) and others >= len(text) > 0
    return False


def _drawn_in(run: Callable[[Draws], Any], draws: Draws, world: int) -> dict[str, list[Any]]:
    """Return the lines at which the program ``run`` draws, with the states of the generators, in order.

    ``world`` is the number of the states of the process, and of the seed arguments, with which it is run. Refused runs
    end early.
    """
    lines = dict[str, list[Any]]()
    with states_noted() as noted, runs_begin_at(FIRST_SEED + world):
        _is_refused(run, draws, moved(world))
    for (_, line, *_), state in noted:
        lines.setdefault(str(line), []).append(state)
    return lines


def _search(run: Callable[[Draws], Any]) -> frozenset[str]:
    """Return the lines whose draws must be constants for the program ``run`` to be followed; none if it is not then."""
    for _ in range(_MOST_SEARCHES):
        refused = _refused_path(run)
        if refused is None:
            return _needed(run)
        found = _seeded_alike(run, refused) - PROCESS.constant_lines
        if not found:
            break
        PROCESS.constant_lines |= found
    return frozenset()


def _needed(run: Callable[[Draws], Any]) -> frozenset[str]:
    """Return the lines of ``PROCESS.constant_lines`` without any of which the program ``run`` is refused."""
    for line in sorted(PROCESS.constant_lines):
        lines = PROCESS.constant_lines
        PROCESS.constant_lines = lines - {line}
        if _refused_path(run) is not None:
            PROCESS.constant_lines = lines
    return PROCESS.constant_lines


def _refused_path(run: Callable[[Draws], Any]) -> int | None:
    """Return the seed of a path on which the program ``run`` is refused; None if there is none among ``_SEEDS``."""
    return next((seed for seed in _SEEDS if _is_refused(run, Sampled(seed), nullcontext())), None)


def _is_refused(run: Callable[[Draws], Any], draws: Draws, world: AbstractContextManager[None]) -> bool:
    try:
        with world:
            run(draws)
    except NeedsValue:
        return True
    return False


def _seeded_alike(run: Callable[[Draws], Any], seed: int) -> frozenset[str]:
    """Return the lines that draw from generators whose state is the same whatever the process and its caller do.

    The process has another state in each run, and the seed arguments of the program have other values. A line is left
    out if a draw there decides something before ``run`` is refused. ``seed`` selects the path.
    """
    states, deciding = list[dict[str, list[Any]]](), set[str]()
    for world in _WORLDS:
        draws = Narrated(Sampled(seed))
        states.append(_drawn_in(run, draws, world))
        deciding |= {str(decision.site[1]) for decision in draws.decisions if len(decision.site) > 1}
    first, second = states
    return frozenset(_alike(first, second) - deciding)


def _alike(first: Mapping[str, list[Any]], second: Mapping[str, list[Any]]) -> set[str]:
    """Return the lines that draw from the same states in two runs, ``first`` and ``second``, set by the program."""
    return {line for line, drawn in first.items() if not {None, CHOSEN} & {*drawn} and drawn == second.get(line)}
