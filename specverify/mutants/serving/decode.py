"""Whole runs of the engine: what comes out of one, on one rank or several, and what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from specverify.mutants.serving.engine import SeenPasses, finished, started_engine, step
from specverify.mutants.serving.model import Entry, Models
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.plain import is_over, plain_row
from specverify.mutants.serving.request import Aborted, ExactPmf, Request
from specverify.mutants.serving.setup import Setup
from specverify.mutants.serving.state import Running
from specverify.mutants.serving.verification import choose
from specverify.reference import Draws, Tokens
from specverify.subjects.subject import Forward, Observed

FAILED: Tokens = (-1,)
"""What a request ends with whose engine could not go on: the server answers with an error."""
_CRASHES = (Aborted, IndexError, TypeError)


def outcome(parts: EngineParts, setup: Setup, models: Models, draws: Draws) -> Any:
    """Return what all requests end with; with several ranks, what they do on each."""
    drawn: dict[Any, int] = {}
    if setup.ranks == 1:
        return _on_one_rank(parts, setup, models, draws)
    ends = []
    for rank in range(setup.ranks):
        own = parts.rank_lookup(rank)
        mine = parts if own is None else parts._replace(lookup=own)
        ends.append(_on_one_rank(mine, setup, models, parts.rank_draws(draws, drawn, rank)))
    return tuple(ends)


def _on_one_rank(parts: EngineParts, setup: Setup, models: Models, draws: Draws) -> Any:
    setup = setup._replace(bodies=tuple(map(dict, setup.bodies)))
    try:
        ends = tuple(_end(setup, running) for running in _decoded(parts, setup, models, draws, None))
    except _CRASHES:
        ends = (FAILED,) * len(setup.bodies)
    return ends[0] if len(ends) == 1 else ends


def _decoded(parts: EngineParts, setup: Setup, models: Models, draws: Draws, seen: SeenPasses | None) -> list[Running]:
    engine = started_engine(parts, setup)
    while not finished(engine):
        engine = step(parts, setup, models, draws, engine, seen)
    return sorted(engine.running, key=lambda running: running.number)


def _end(setup: Setup, running: Running) -> tuple[Any, ...]:
    if running.aborted:
        return (running.accepted,)
    new = running.tokens[running.start :]
    if setup.outcome == "reported":
        return new + tuple(report.probability for report in running.reports)
    return tuple(map(ord, running.stream)) if setup.outcome == "streamed" else new


def observed(parts: EngineParts, setup: Setup, models: Models, draws: Draws) -> Observed:
    """Return what is seen of the only request of a run."""
    seen, sent = SeenPasses([], []), setup._replace(bodies=deepcopy(setup.bodies))
    try:
        (running,) = _decoded(parts, sent, models, draws, seen)
    except _CRASHES:
        new, returned = FAILED, {}
    else:
        new = _end(setup, running)
        returned = {
            "most probable": tuple(np.array(report.top, dtype=float) for report in running.reports),
            "prompt": tuple(np.array(running.of_prompt, dtype=float) for _ in running.reports if running.of_prompt),
        }
    changed = () if sent.bodies == setup.bodies else ("the request's parameters",)
    forwards = tuple(Forward(held, fed, entries_of(entries)) for held, fed, entries in seen.forwards)
    return Observed(new, forwards, tuple(map(tuple, seen.rows)), _present(returned), changed)


def plainly_observed(setup: Setup, models: Models, draws: Draws) -> Observed:
    """Return what should be seen of it: one pass for each token, rows of the plain decoder."""
    request = Request(**setup.bodies[0])
    new: Tokens = ()
    forwards, rows = [], []
    while not is_over(setup, request, request.prompt, new):
        tokens = request.prompt + new
        held = len(tokens) - 1 if new else 0
        forwards.append(Forward(held, tokens[held:], entries_of([Entry(t, i) for i, t in enumerate(tokens[:held])])))
        rows.append(plain_row(setup, models, request, request.prompt, new))
        new += (choose(draws, rows[-1], ("target", len(tokens))),)
    reported = {} if not setup.reports else _plain_reports(setup, models, request, rows, new)
    return Observed(new, tuple(forwards), returned=reported)


def _plain_reports(
    setup: Setup, models: Models, request: Request, rows: list[ExactPmf], new: Tokens
) -> Mapping[str, tuple[Any, ...]]:
    bare = Request(request.prompt, request.max_new)
    tops = [sorted(((-mass, token) for token, mass in enumerate(row)))[: setup.top] for row in rows]
    prompt = request.prompt
    before = [plain_row(setup, models, bare, prompt[:place], ())[prompt[place]] for place in range(1, len(prompt))]
    returned = {
        "most probable": tuple(np.array([(token, -mass) for mass, token in top], dtype=float) for top in tops),
        "prompt": tuple(np.array([1, *before], dtype=float) for _ in new) if not setup.chunk else (),
    }
    return _present(returned)


def _present(returned: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {name: entries for name, entries in returned.items() if entries}


def entries_of(entries: Any) -> tuple[Any, ...]:
    """Return a cache's entries as arrays ``[1, 1, entries, 1]``: tokens as keys, positions as values; none if empty."""
    if not entries:
        return ()
    columns = np.array([[entry.token, entry.position] for entry in entries], dtype=float)
    return tuple(columns[None, None, :, index : index + 1] for index in (0, 1))
