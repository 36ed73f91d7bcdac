"""The second half of an engine step: process the rows of one request, verify its drafts, commit the new tokens.

In all functions of this module the parameter ``parts`` has the functions of the engine (``EngineParts``), and ``setup``
all other data of the run, such as the requests, the number of drafts and the size of the cache (``Setup``).
"""

from __future__ import annotations

from typing import NamedTuple

from specverify.mutants.serving.cache import pages_for
from specverify.mutants.serving.output import left
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.propose import mask_of, processed
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.mutants.serving.situations import Setup
from specverify.mutants.serving.state import EngineState, Kept, Passed, Report, Running, Work
from specverify.mutants.serving.verification import PLACEHOLDER, choose, flip, ratio, residual
from specverify.reference import Draws, Tokens


class Judged(NamedTuple):
    """The new tokens of a round after verification: the accepted drafts and one more.

    The end of the text may fall among them, and later cuts them. ``accepted`` is the number of accepted drafts.
    """

    new: Tokens
    accepted: int


def settled(
    parts: EngineParts,
    setup: Setup,
    draws: Draws,
    engine: EngineState,
    works: tuple[Work, ...],
    row: int,
    passed: Passed,
    shown: list[list[Tokens]] | None,
) -> EngineState:
    """Return the engine after verifying the request in row ``row`` of the batch and committing its tokens.

    If the request was only fed a part of its prompt, only its counters and recurrent state change. ``works`` has the
    input of each row, and ``passed`` what the target computed for this request. For request 0 the text before each pmf
    is appended to ``shown[-1]``, unless ``shown`` is None.
    """
    work = works[row]
    running = engine.of(work.number)
    if running.finished:
        return engine
    if work.prefill:
        return engine.replaced(_prefilled(parts, running, work, passed))
    batch = [engine.of(item.number).request for item in works]
    parameters = parts.parameters_at([request.parameters for request in batch], row, passed.start)
    running = running._replace(request=running.request._replace(parameters=parameters))
    rows, running = _row_pmfs(parts, setup, running, work, passed, shown)
    width = max(len(item.drafts) for item in works)
    padded = work.drafts + (PLACEHOLDER,) * (width - len(work.drafts))
    greedy = parameters.temperature == 0
    mixed = any((request.parameters.temperature == 0) != greedy for request in batch)
    judged = _judged(parts, draws, work, rows, padded, greedy=greedy, mixed=mixed)
    if (engine.steps, work.number) in setup.aborted:
        dropped = parts.accepted_count((), judged.accepted)
        return _ended(parts, setup, engine, running._replace(accepted=dropped, aborted=True))
    strings = parts.stop_strings_of(running.request, batch)
    earlier, request = running.tokens[running.start :], running.request
    original = engine.of(work.number).request

    def ends(count: int) -> bool:
        last, text = judged.new[count - 1], earlier + judged.new[:count]
        return parts.ends_text(last, request.eos) or parts.has_stop_string(strings, text, count, setup.pieces)

    most = left(request, len(earlier))
    keep, finished = parts.cut(ends, judged.new, judged.accepted, most)
    after = _committed(parts, setup, running, work, passed, rows, judged, keep, len(works))
    after = after._replace(
        request=original, finished=finished, stream=running.stream + _sent(parts, setup, after, work, keep, finished)
    )
    if finished:
        block = work.known + judged.accepted
        return _ended(parts, setup, engine, after._replace(held=parts.at_end(after.held, block)))
    return _rewound(parts, setup, engine, after)


def _prefilled(parts: EngineParts, running: Running, work: Work, passed: Passed) -> Running:
    states = (passed.states[-1], *running.states[1:]) if passed.states else running.states
    return running._replace(held=work.held + len(work.fed), states=states, chunks=running.chunks + 1)


def _row_pmfs(
    parts: EngineParts, setup: Setup, running: Running, work: Work, passed: Passed, shown: list[list[Tokens]] | None
) -> tuple[list[ExactPmf], Running]:
    """Return the pmfs before each draft and after the last, and the request with its grammar matcher rolled back.

    The pmfs are the rows of ``passed`` after the parameters and the grammar of the request ``running`` were applied;
    ``work`` has its drafts. For request 0 the text before each pmf is appended to ``shown[-1]``, unless ``shown`` is
    None.
    """
    request, matcher, result = running.request, running.matcher, []
    raw = passed.rows[-1 - len(work.drafts) :]
    new = len(running.tokens) - running.start
    for place, row in enumerate(raw):
        prefix = parts.row_prefix(running.history, work.drafts, place)
        if shown is not None and work.number == 0:
            shown[-1].append(prefix)
        allowed = mask_of(parts, request, matcher) if matcher is not None else None
        parameters = parts.row_parameters(request.parameters, place, len(work.drafts))
        count = parts.new_before(new, place, running.rounds)
        result.append(processed(parts, request, row, parameters, prefix, work.drafts, place, count, allowed))
        if matcher is not None and request.grammar is not None and place < len(work.drafts):
            matcher = parts.forked(request.grammar, matcher, work.drafts[place], result[-1])
    if matcher is not None:
        matcher = parts.rollback(matcher, len(work.drafts))
    of_prompt = running.of_prompt
    if setup.reports and not of_prompt and work.held == 0 and len(work.fed) == running.start + len(work.drafts):
        of_prompt = parts.of_prompt(passed.rows, running.tokens, len(work.drafts))
    return result, running._replace(matcher=matcher, of_prompt=of_prompt)


def _judged(
    parts: EngineParts, draws: Draws, work: Work, rows: list[ExactPmf], padded: Tokens, *, greedy: bool, mixed: bool
) -> Judged:
    count = parts.usable(padded)
    empty = (ZERO,) * len(rows[0])
    for place, draft in enumerate(padded[:count]):
        p, q = rows[place], work.pmfs[place] if place < len(work.pmfs) else empty
        site = (work.number, work.known + place)
        if greedy:
            best = parts.greedy(p, mixed)
            if best != draft:
                return Judged((*padded[:place], best), place)
        elif not flip(draws, ratio(p, q, draft), ("accept", *site)):
            return Judged((*padded[:place], choose(draws, residual(p, q), ("residual", *site))), place)
    last = rows[count]
    bonus = parts.greedy(last, mixed) if greedy else choose(draws, last, ("bonus", work.number, work.known + count))
    return Judged((*padded[:count], bonus), count)


def _committed(
    parts: EngineParts,
    setup: Setup,
    running: Running,
    work: Work,
    passed: Passed,
    rows: list[ExactPmf],
    judged: Judged,
    keep: int,
    batch: int,
) -> Running:
    new, accepted = judged.new[:keep], min(judged.accepted, keep)
    reserved = len(work.drafts) + 1
    matcher, grammar = running.matcher, running.request.grammar
    if matcher is not None and grammar is not None:
        matcher = parts.committed(grammar, matcher, new, len(running.tokens) == running.start)
    states = running.states
    if passed.states:
        recorded = parts.recorded(passed.states, len(work.drafts))
        slots = list(states)
        state = parts.checkpoint(states[0], recorded, len(work.drafts), accepted)
        slots[parts.state_slot(len(work.drafts))] = state
        states = tuple(slots)
    tokens = running.tokens + new
    reports = _reports(parts, setup, running, rows, new, accepted)
    return running._replace(
        tokens=tokens,
        history=parts.resolved(running.history + (PLACEHOLDER,) * reserved, reserved, new, work.drafts),
        corpus=running.corpus + new,
        matcher=matcher,
        held=parts.kept(work.known, accepted, work.held + len(work.fed), batch),
        states=states,
        draft=parts.draft_kept(work.cache, work.known, len(work.drafts), accepted),
        pending=work.drafts,
        accepted=parts.accepted_count(new, accepted),
        rounds=running.rounds + 1,
        reports=running.reports + reports,
    )


def _reports(
    parts: EngineParts, setup: Setup, running: Running, rows: list[ExactPmf], new: Tokens, accepted: int
) -> tuple[Report, ...]:
    if not setup.reports and setup.outcome != "reported":
        return ()
    result = tuple(parts.probability(rows, place, token, accepted, running.chunks) for place, token in enumerate(new))
    listed = parts.listed(result, setup.waits)
    return tuple(Report(mass, parts.most_probable(rows, place, setup.top)) for place, mass in enumerate(listed))


def _sent(parts: EngineParts, setup: Setup, running: Running, work: Work, keep: int, finished: bool) -> str:
    if setup.outcome != "streamed":
        return ""
    new = running.tokens[running.start :]
    return parts.streamed(running.stream, new, new[-keep:], work.drafts, setup.pieces, finished)


def _rewound(parts: EngineParts, setup: Setup, engine: EngineState, running: Running) -> EngineState:
    """Return the engine after freeing the pages that the request ``running`` no longer needs."""
    pages, free = parts.trimmed(running.pages, engine.free, pages_for(running.held, setup.page_size))
    return engine.replaced(running._replace(pages=pages))._replace(free=free)


def _ended(parts: EngineParts, setup: Setup, engine: EngineState, running: Running) -> EngineState:
    """Return the engine after the last round of the request ``running``.

    Its slot keeps the caches that the next request may reuse.
    """
    engine = _rewound(parts, setup, engine, running._replace(finished=True))
    free = engine.free + (engine.kept.pages if engine.kept else ())
    last = engine.of(running.number)
    rejected = len(last.pending) - last.accepted
    kept = Kept(last.tokens, last.held, last.pages, last.states[0], last.draft, rejected)
    return engine._replace(free=free, kept=kept)
