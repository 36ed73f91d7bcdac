"""Whole decodes of the serving engine, and plain decoding, with which they are compared.

Plain decoding uses none of the engine's parts; it shares only requests, tables and the detokeniser.

In all functions of this module the parameter ``parts`` has the functions of the engine (``EngineParts``), ``setup`` all
other data of the run, such as the requests, the number of drafts and the size of the cache (``Setup``), and ``models``
the target and the draft model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.serving.engine import SeenPasses, finished, started_engine, step
from specverify.mutants.serving.model import Entry, Models
from specverify.mutants.serving.output import text_of
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.request import Aborted, ExactPmf, Grammar, Request
from specverify.mutants.serving.situations import Setup
from specverify.mutants.serving.state import Running
from specverify.mutants.serving.verification import choose
from specverify.reference import Draws, Tokens
from specverify.subjects.subject import Forward, Observed

# What the engine owes: the same requests decoded one token at a time, one after the other, with code of its own


def plain_law(setup: Setup, models: Models) -> dict[Any, Fraction]:
    """Return the joint law of the results of all requests under plain decoding: result -> probability.

    ``setup.outcome`` selects what the result of a request is, such as its new tokens or its streamed text.
    """
    joint: dict[tuple[Tokens, ...], tuple[tuple[Any, ...], Fraction]] = {(): ((), Fraction(1))}
    for number, body in enumerate(setup.bodies):
        request, longer = Request(**body), {}
        gone = any(number == who for _, who in setup.aborted)
        for texts, (ends, weight) in joint.items():
            prompt = (texts[-1] if request.continues else ()) + request.prompt
            if gone:
                longer[*texts, prompt] = ((*ends, (0,)), weight)
                continue
            for new, mass in texts_after(setup, models, request, prompt):
                longer[*texts, prompt + new] = ((*ends, _shown(setup, models, request, prompt, new)), weight * mass)
        joint = longer
    law: dict[Any, Fraction] = {}
    for ends, weight in joint.values():
        outcome = ends[0] if len(ends) == 1 else ends
        outcome = (outcome,) * setup.ranks if setup.ranks > 1 else outcome
        law[outcome] = law.get(outcome, Fraction(0)) + weight
    return law


def _shown(setup: Setup, models: Models, request: Request, prompt: Tokens, new: Tokens) -> tuple[Any, ...]:
    if setup.outcome == "streamed":
        return tuple(map(ord, text_of(new, setup.pieces)))
    if setup.outcome == "reported":
        rows = [plain_row(setup, models, request, prompt, new[:place]) for place in range(len(new))]
        return new + tuple(row[token] for row, token in zip(rows, new, strict=True))
    return new


def texts_after(setup: Setup, models: Models, request: Request, prompt: Tokens) -> Iterator[tuple[Tokens, Fraction]]:
    """Yield every text that a request can get under plain decoding after ``prompt``, with its probability."""
    waiting: list[tuple[Tokens, Fraction]] = [((), Fraction(1))]
    while waiting:
        new, weight = waiting.pop()
        if is_over(setup, request, prompt, new):
            yield new, weight
            continue
        row = plain_row(setup, models, request, prompt, new)
        waiting += [((*new, token), weight * mass) for token, mass in enumerate(row) if mass]


def is_over(setup: Setup, request: Request, prompt: Tokens, new: Tokens) -> bool:
    """Return whether the text ``new`` of a request, which follows ``prompt``, is complete.

    It is complete after an end token or a stop string of the request, at its largest number of new tokens, or when the
    context is full.
    """
    if not new:
        return False
    spoken = text_of(new, setup.pieces) if request.stop_strings else ""
    room = request.max_context - len(prompt) - len(new)
    return (
        new[-1] in request.eos
        or len(new) == request.max_new
        or room == 0
        or any(string in spoken for string in request.stop_strings)
    )


def plain_row(setup: Setup, models: Models, request: Request, prompt: Tokens, new: Tokens) -> ExactPmf:
    """Return the pmf of the token after ``prompt`` and ``new``, with the request's parameters and grammar.

    Raises ``ValueError`` if the parameters exclude every token.
    """
    tokens, chosen = prompt + new, request.parameters
    if setup.flavour == "recurrent":
        row = models.by_tokens(tokens)
    else:
        entries = [Entry(token, place) for place, token in enumerate(tokens)]
        row = models.target(entries[-setup.window :] if setup.window else entries)
    masses = {token: mass for token, mass in enumerate(row) if not _is_banned(request, tokens, new, token)}
    for token, factor in chosen.bias:
        masses[token] = masses.get(token, Fraction(0)) * factor
    for token in masses:
        count = tokens.count(token)
        masses[token] *= (chosen.repetition if count else 1) * chosen.frequency**count
    if not any(masses.values()):
        raise ValueError(f"nothing can follow {tokens}: the situation leaves no token")
    if chosen.temperature == 0:
        best = max(masses, key=lambda token: (masses[token], -token))
        return tuple(Fraction(int(token == best)) for token in range(len(row)))
    masses = {token: mass**chosen.temperature for token, mass in masses.items() if mass}
    return _cut(masses, request, len(row))


def _cut(masses: dict[int, Fraction], request: Request, size: int) -> ExactPmf:
    chosen, whole = request.parameters, sum(masses.values())
    ranked = sorted(masses, key=lambda token: (-masses[token], token))
    kept: dict[int, Fraction] = {}
    before = Fraction(0)
    for rank, token in enumerate(ranked):
        few = not chosen.top_k or rank < chosen.top_k
        if few and before < chosen.top_p * whole and masses[token] >= chosen.min_p * masses[ranked[0]]:
            kept[token] = masses[token]
        before += masses[token]
    total = sum(kept.values())
    return tuple(kept.get(token, Fraction(0)) / total for token in range(size))


def _is_banned(request: Request, tokens: Tokens, new: Tokens, token: int) -> bool:
    chosen = request.parameters
    longer = (*tokens, token)
    return (
        any(longer[-len(word) :] == word for word in chosen.bad_words)
        or bool(chosen.allowed and token not in chosen.allowed)
        or (token in request.eos and len(new) < chosen.min_new)
        or not follows_grammar(request.grammar, (*new, token))
    )


def follows_grammar(grammar: Grammar | None, new: Tokens) -> bool:
    """Return whether the tokens ``new`` can be continued to a text of the grammar; True without a grammar."""
    if grammar is None:
        return True
    begin = 0
    if grammar.trigger is not None:
        if grammar.trigger not in new:
            return True
        begin = new.index(grammar.trigger) + 1
    state = 0
    for token in new[begin:]:
        if state == grammar.last:
            return True
        following = [after for before, label, after in grammar.edges if (before, label) == (state, token)]
        if not following:
            return False
        state = following[0]
    return True


# Whole runs of the engine: what comes out of one, on one rank or several, and what was seen of it

FAILED: Tokens = (-1,)
"""Outcome of a request whose engine raised; the server answers with an error."""
_CRASHES = (Aborted, IndexError, TypeError)


def outcome(parts: EngineParts, setup: Setup, models: Models, draws: Draws) -> Any:
    """Return the results of all requests of one run as a tuple; with a single request, its result alone.

    With several ranks, a tuple with such a value for each rank is returned.
    """
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
    """Return the record of one run with a single request: passes, tokens, and the values returned with them.

    If the engine crashes, the tokens are ``FAILED``. The record also lists changes of the caller's request.
    """
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
    """Return the record expected for a run with a single request: one pass for each token, rows of plain decoding."""
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
    """Return the entries of a cache as two arrays ``[1, 1, entries, 1]``: their tokens (keys) and positions (values).

    ``entries`` is a sequence of ``Entry``. The result is () if it is empty.
    """
    if not entries:
        return ()
    columns = np.array([[entry.token, entry.position] for entry in entries], dtype=float)
    return tuple(columns[None, None, :, index : index + 1] for index in (0, 1))
