"""Find draws whose numbers are constants of the program, such as the weights of a model that each call makes anew.

A generator that the program itself seeds with a constant draws the same numbers in every call. Interception treats them
as random, as if the program could choose another seed: so a sampler with a fixed seed has a law. But the weights of a
network are used in ways in which no symbolic number is followed. If an engine is refused, this module finds the lines
that draw from a generator in such a state and decide nothing by what they draw. There the library draws its own
numbers, and the law is that of the engine with these constants. Lines without which the engine is followed too are left
out: what they draw remains random.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NamedTuple

from specverify.intercept.cpython.sandbox import moved
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import PROCESS
from specverify.intercept.streams import CHOSEN, states_noted
from specverify.laws.draws import Narrated
from specverify.laws.paths import outcomes_of
from specverify.reference import Draws, Sampled
from specverify.subjects.call_arguments import FIRST_SEED, runs_begin_at
from specverify.subjects.subject import EngineProgram, Subject

SEEDED = (
    "some of its random numbers come from seeds that it sets to the same values in every run ({seeded}), others do not "
    "({unseeded}): the seeded ones are equal in all of its calls, but the enumerated law would be that of all seeds. "
    "If the call is given the seed, draw all numbers from it. Else move set-up, such as making the weights of a model, "
    "out of the call, or set no seed inside it; or let samples decide (sampled=True)"
)
SHOWN = 3
"""The most draws of a kind that a sentence names."""
_SEEDS = (0, 1, 2)
"""Seeds of the paths that are followed: an engine may be refused on some paths alone."""
_MOST_SEARCHES = 4
"""Number of searches at most. With the lines that one has found, the engine may come to others."""
_WORLDS = (0, 1)
"""Numbers of the states of the process, and of the seed arguments, with which the engine is run."""


class ConstantDraws(NamedTuple):
    """The draws of an engine whose numbers are constants, and why this may be wrong."""

    lines: tuple[str, ...]
    """File and line of each of these draws, sorted."""
    doubt: str = ""
    """A sentence: the seeds may belong to what is sampled, so that a wrong law of these numbers refutes nothing alone.
    "" if there is no doubt."""
    doubtful: tuple[str, ...] = ()
    """The lines to which the doubt applies."""


def find_constant_draws(subject: Subject) -> ConstantDraws:
    """Find the lines of an engine whose draws are constants, and let the library draw there in later runs.

    The lines are put into ``PROCESS.constant_lines``. There are two kinds: those without which interception does not
    follow the engine, if it does with them, and those that draw from generators which the engine seeds itself, beside
    others that it does not seed. A subject that is no engine has none.
    """
    PROCESS.constant_lines = frozenset()
    doubt, doubtful = "", tuple[str, ...]()
    for program in subject.programs[:1]:
        calls = [*filter(None, (program.open, program.plain))]
        for opened in calls:
            before = lines = PROCESS.constant_lines
            with suppress(Exception), opened() as run:
                lines = _search(run)
            PROCESS.constant_lines = before | lines
        of_calls = [*map(_seeded_beside_others, calls)]
        mixtures = [*filter(None, of_calls)]
        if mixtures:
            doubt = "" if _are_of_rows(program, *of_calls) else mixtures[0].sentence
            seeded = {str(line) for mixture in mixtures for _, line in mixture.seeded}
            doubtful = tuple(sorted(seeded - PROCESS.constant_lines)) if doubt else ()
            PROCESS.constant_lines |= seeded
    return ConstantDraws(tuple(sorted(PROCESS.constant_lines)), doubt, doubtful)


class _Mixture(NamedTuple):
    """The draws of a call from generators that it seeds itself, and those from others: (operation, file and line)."""

    seeded: Collection[tuple[str, str]]
    others: Collection[tuple[str, str]]

    @property
    def sentence(self) -> str:
        """Return the sentence that the call seeds some of its generators, and not the others."""
        return seeds_in_words(*([" at ".join(each) for each in draws] for draws in self))


def seeds_in_words(seeded: Sequence[str], unseeded: Sequence[str]) -> str:
    """Return the sentence that a program draws from generators that it seeds itself, and from others.

    Each draw is given in words, its operation and line. The first ones are named.
    """
    both = {*seeded} & {*unseeded}
    of_seeds, of_others = (
        ", ".join(f"{which} draws of {draw}" if draw in both else draw for draw in draws[:SHOWN])
        for draws, which in ((seeded, "some"), (unseeded, "other"))
    )
    return SEEDED.format(seeded=of_seeds, unseeded=of_others)


def _seeded_beside_others(opened: Callable[[], AbstractContextManager[Callable[[Draws], Any]]]) -> _Mixture | None:
    """Return the draws of a call if it seeds some of its generators in each run, and not all of them; else None.

    A few paths are followed, each twice, with other states of the process and other seed arguments.
    """
    seeded, others = dict[tuple[str, str], None](), dict[tuple[str, str], None]()
    with suppress(Exception), opened() as run:
        for seed in _SEEDS:
            first, second = (_drawn_in(run, Sampled(seed), world) for world in _WORLDS)
            alike = _alike(first, second)
            for draw in first:
                (seeded if draw[1] in alike else others).setdefault(draw)
            if not seeded:
                break
    return _Mixture([*seeded], [*others]) if seeded and others else None


def _are_of_rows(program: EngineProgram, fast: _Mixture | None, plain: _Mixture | None = None) -> bool:
    """Return whether the numbers of seeds belong to the rows of p and q, and choose no token.

    This is so if the call of ``program`` without speculation draws at all of their lines too, and draws each of its
    tokens at others. An example is a watermark, whose list of tokens is drawn with a hash of the text as seed. ``fast``
    and ``plain`` have the draws of the calls with and without speculation. Returns False for an engine without such a
    call.
    """
    if program.plain is None or plain is None:
        return False
    without = {line for _, line in plain.seeded}
    if fast is not None and not {line for _, line in fast.seeded} <= without:
        return False
    with suppress(Exception), program.plain() as run:
        text, _ = outcomes_of(run(Sampled(_SEEDS[0])))[0]
        drawn = _drawn_in(run, Sampled(_SEEDS[0]), _WORLDS[0])
        return sum(len(states) for (_, line), states in drawn.items() if line not in without) >= len(text) > 0
    return False


def _drawn_in(run: Callable[[Draws], Any], draws: Draws, world: int) -> dict[tuple[str, str], list[Any]]:
    """Return the draws of the program ``run``, (operation, file and line) -> the states of the generators, in order.

    ``world`` is the number of the states of the process, and of the seed arguments, with which it is run. Refused runs
    end early.
    """
    result = dict[tuple[str, str], list[Any]]()
    with states_noted() as noted, runs_begin_at(FIRST_SEED + world):
        _is_refused(run, draws, moved(world))
    for (operation, line, *_), state in noted:
        result.setdefault((str(operation), str(line)), []).append(state)
    return result


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
    states, deciding = list[dict[tuple[str, str], list[Any]]](), set[str]()
    for world in _WORLDS:
        draws = Narrated(Sampled(seed))
        states.append(_drawn_in(run, draws, world))
        deciding |= {str(decision.site[1]) for decision in draws.decisions if len(decision.site) > 1}
    return frozenset(_alike(*states) - deciding)


def _alike(first: Mapping[Any, list[Any]], second: Mapping[Any, list[Any]]) -> set[str]:
    """Return the lines all of whose draws are from the same states in two runs, states that the program set.

    ``first`` and ``second`` have the states of each draw (operation, line) of the two runs.
    """
    differ = {line for (_, line), states in first.items() if {None, CHOSEN} & {*states}}
    differ |= {draw[1] for draw in first.keys() | second.keys() if first.get(draw) != second.get(draw)}
    return {line for _, line in first} - differ
