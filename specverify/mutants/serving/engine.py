"""One step of the engine: schedule, draft, run one pass over a flat batch, verify, commit, rewind.

In all functions of this module the parameter ``parts`` has the functions of the engine (``EngineParts``), ``setup`` all
other data of the run, such as the requests, the number of drafts and the size of the cache (``Setup``), and ``models``
the target and the draft model.
"""

from __future__ import annotations

from typing import NamedTuple

from specverify.base.prefixes import common_length
from specverify.mutants.serving.cache import CacheMemory, fragmented, grown, pages_for, read, slots, written
from specverify.mutants.serving.commit import settled
from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.model import Entry, Models, scan
from specverify.mutants.serving.output import left
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.processors import started
from specverify.mutants.serving.propose import proposed
from specverify.mutants.serving.request import ONE, Aborted, ExactPmf
from specverify.mutants.serving.scheduler import starts
from specverify.mutants.serving.situations import Setup
from specverify.mutants.serving.state import NO_STATE, EngineState, Kept, Passed, Running, Work
from specverify.reference import Draws, Tokens

MOST_STEPS = 40
_NOTHING: ExactPmf = (ONE,)
"""Padding row of the flat array at places without a request."""


class SeenPasses(NamedTuple):
    """The record of the first request's passes: its inputs, and the text before each row.

    ``forwards`` has for each pass (number of valid cache entries, fed tokens, these entries). ``rows`` has for each
    pass the text before each row.
    """

    forwards: list[tuple[int, Tokens, tuple[Entry, ...]]]
    rows: list[list[Tokens]]


def started_engine(parts: EngineParts, setup: Setup, kept: Kept | None = None) -> EngineState:
    """Return the engine before its first step; ``kept`` are the caches that an earlier request left in its slot."""
    free = fragmented(setup.pages)
    memory: CacheMemory = (None,) * (setup.pages * setup.page_size)
    if kept is not None:
        pages, free = grown((), free, pages_for(kept.held, setup.page_size))
        entries = [Entry(token, place) for place, token in enumerate(kept.tokens[: kept.held])]
        memory = written(memory, slots(pages, setup.page_size, 0, kept.held), entries)
        kept = kept._replace(pages=pages)
    return EngineState(memory, free, (), tuple(range(len(setup.bodies))), kept)


def step(
    parts: EngineParts, setup: Setup, models: Models, draws: Draws, engine: EngineState, seen: SeenPasses | None = None
) -> EngineState:
    """Return the engine after one more step. Raise ``Aborted`` if the state is invalid.

    ``seen``, if it is not None, receives a record of the passes of the first request.
    """
    engine = _preempted(parts, setup, _admitted(parts, setup, engine))
    works = _planned(parts, setup, models, draws, engine)
    if works:
        engine, passed = _passed(parts, setup, models, engine, works, seen)
        for row, mine in enumerate(passed):
            engine = settled(parts, setup, draws, engine, works, row, mine, seen.rows if seen else None)
    return engine._replace(steps=engine.steps + 1)


def finished(engine: EngineState) -> bool:
    """Return whether every request has finished. Raises ``Aborted`` after ``MOST_STEPS`` steps."""
    if engine.steps > MOST_STEPS:
        raise Aborted("no progress")
    return not engine.waiting and all(running.finished for running in engine.running)


def _admitted(parts: EngineParts, setup: Setup, engine: EngineState) -> EngineState:
    for number in engine.waiting:
        request = parts.admit(setup.bodies[number])
        busy = sum(not running.finished for running in engine.running)
        if busy >= setup.capacity or request.arrives > engine.steps:
            break
        before, kept = (engine.kept.tokens if engine.kept else ()), engine.kept
        tokens = before + request.prompt if request.continues else request.prompt
        running = Running(number, request, tokens, len(tokens), tokens, matcher=started(request.grammar))
        if kept is not None:
            running, free = _continued(parts, setup, engine, kept, running)
            engine = engine._replace(free=free, kept=None)
        running = running._replace(corpus=parts.corpus(tokens, before))
        engine = engine._replace(running=(*engine.running, running), waiting=engine.waiting[1:])
    return engine


def _continued(
    parts: EngineParts, setup: Setup, engine: EngineState, kept: Kept, running: Running
) -> tuple[Running, tuple[int, ...]]:
    """Return the request ``running`` with the cache entries reused from the previous request, and the free pages.

    ``kept`` has the caches of the previous request.
    """
    tokens, size, recurrent = running.tokens, setup.page_size, setup.flavour == "recurrent"
    common = kept.held if running.request.continues else common_length(kept.tokens[: kept.held], tokens[:-1])
    count = parts.reused(kept.held, common // size * size, recurrent)
    held = read(engine.memory, kept.pages, size, kept.held)
    pages, free = kept.pages[: pages_for(count, size)], kept.pages[pages_for(count, size) :] + engine.free
    state = kept.state if recurrent and count else parts.fresh_state(kept.state, kept.rejected)
    draft = parts.draft_reused(kept.draft, tuple(held), min(count, common_length(kept.tokens, tokens[:-1])))
    return running._replace(held=count, pages=pages, states=(state, ()), draft=draft), free


def _preempted(parts: EngineParts, setup: Setup, engine: EngineState) -> EngineState:
    for when, number in setup.preempted:
        running = next((item for item in engine.running if item.number == number and not item.finished), None)
        if when == engine.steps and running is not None:
            bare = running._replace(
                tokens=parts.resumed(running.tokens, running.pending),
                held=0,
                pages=(),
                states=NO_STATE,
                draft=DraftCache(),
                pending=(),
            )
            engine = engine.replaced(bare)._replace(free=running.pages + engine.free)
    return engine


def _planned(parts: EngineParts, setup: Setup, models: Models, draws: Draws, engine: EngineState) -> tuple[Work, ...]:
    """Return the work of this step for each request of the batch: the tokens that it is fed, with its new drafts."""
    ready = [index for index, running in enumerate(engine.running) if not running.finished]
    works = []
    for index in parts.schedule(ready, engine.steps, setup.rotates):
        running = engine.running[index]
        chunk = parts.chunk(running.tokens, running.held, setup.chunk, running.pending) if setup.chunk else ()
        if chunk:
            works.append(Work(running.number, running.held, chunk, (), (), running.draft, len(running.tokens), True))
            continue
        gamma = setup.gammas[(running.number + running.rounds) % len(setup.gammas)]
        most = left(running.request, len(running.tokens) - running.start)
        alone = setup.alone_first and len(running.tokens) == running.start
        count = 0 if alone else parts.draft_budget(gamma, most)
        drafts, pmfs, cache = proposed(parts, setup, models, draws, running, count)
        fed = parts.fed_next(running.tokens, running.held) + drafts
        if most == 1 < gamma:
            fed += parts.fed_when_full(running.pending)
        works.append(Work(running.number, running.held, fed, drafts, pmfs, cache, len(running.tokens), False))
    return tuple(works)


def _passed(
    parts: EngineParts,
    setup: Setup,
    models: Models,
    engine: EngineState,
    works: tuple[Work, ...],
    seen: SeenPasses | None,
) -> tuple[EngineState, list[Passed]]:
    """Return the engine after one pass of the target, and each request's rows, one after every token it was fed.

    ``works`` has the input of each request. ``seen``, if not None, receives a record of the first request. Raises
    ``Aborted`` if a placeholder is fed, a request exceeds its context, or too few pages are free.
    """
    memory, size = engine.memory, setup.page_size
    first = parts.positions([work.held for work in works], [len(work.fed) for work in works])
    for work, begin in zip(works, first, strict=True):
        running = engine.of(work.number)
        pages, free = grown(running.pages, engine.free, pages_for(work.held + len(work.fed), size))
        engine = engine.replaced(running._replace(pages=pages))._replace(free=free)
        if begin + len(work.fed) > running.request.max_context:
            raise Aborted(f"an entry at position {begin + len(work.fed) - 1} of {running.request.max_context}")
        if min(work.fed) < 0:
            raise Aborted(f"token {min(work.fed)} was fed")
        if seen is not None and work.number == 0:
            held = tuple(read(memory, pages, size, work.held))
            seen.forwards.append((work.held, work.fed, held))
            seen.rows.append([])
        places = parts.slots(pages, size, work.held, len(work.fed))
        memory = parts.after_drafting(memory, slots(pages, size, 0, work.held), work.cache.entries)
        entries = [Entry(token, begin + index) for index, token in enumerate(work.fed)]
        count = parts.written_count(len(entries), len(work.drafts))
        memory = written(memory, places[:count], entries[:count])
    for row in range(setup.padding):
        place = parts.padding_slot(row)
        memory = memory if place is None else written(memory, (place,), (Entry(0, 0),))
    engine = engine._replace(memory=memory)
    results = [_rows(parts, setup, models, engine, work, begin) for work, begin in zip(works, first, strict=True)]
    return engine, _unpacked(parts, setup, works, results)


def _rows(parts: EngineParts, setup: Setup, models: Models, engine: EngineState, work: Work, begin: int) -> Passed:
    """Return the target's rows, and its recurrent states, after each token that a request is fed.

    ``work`` has these tokens, and ``begin`` is the position of the first of them in the text.
    """
    running = engine.of(work.number)
    if setup.flavour == "recurrent":
        states = scan(running.states[0], work.fed)
        return Passed([models.by_tokens(state) for state in states], states)
    rows = []
    for index, token in enumerate(work.fed):
        before = read(engine.memory, running.pages, setup.page_size, work.held + index)
        seen = parts.visible([*before, Entry(token, begin + index)], setup.window, setup.spare)
        rows.append(models.target(seen))
    return Passed(rows)


def _unpacked(parts: EngineParts, setup: Setup, works: tuple[Work, ...], results: list[Passed]) -> list[Passed]:
    """Return the rows of each request, read from the flat array in which the rows of all requests follow one another.

    ``results`` has the right rows of each request, which are written to the array and read at the offsets of
    ``parts.rows_begin``. With wrong offsets a request gets rows of another.
    """
    lengths, prefilling = [len(work.fed) for work in works], [work.prefill for work in works]
    begins = starts(lengths, setup.rectangular, prefilling)
    size = len(works) * max(lengths) if setup.rectangular else sum(lengths)
    flat: list[ExactPmf] = [_NOTHING] * size
    for begin, result in zip(begins, results, strict=True):
        flat[begin : begin + len(result.rows)] = result.rows
    taken = parts.rows_begin(lengths, setup.rectangular, prefilling)
    return [
        result._replace(rows=flat[begin : begin + length], start=begin)
        for begin, length, result in zip(taken, lengths, results, strict=True)
    ]
