"""What the engine owes: the same requests decoded one token at a time, one after the other, with code of its own.

Nothing here is taken from the engine's parts: only requests, tables and the detokeniser are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from specverify.mutants.serving.model import Entry, Models
from specverify.mutants.serving.request import ExactPmf, Grammar, Request
from specverify.mutants.serving.setup import Setup
from specverify.mutants.serving.stopping import text_of
from specverify.reference import Tokens


def plain_law(setup: Setup, models: Models) -> dict[Any, Fraction]:
    """Return the joint law of what all requests end with, as the subject's outcome has it."""
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
    """Yield every text of a request and its probability."""
    waiting: list[tuple[Tokens, Fraction]] = [((), Fraction(1))]
    while waiting:
        new, weight = waiting.pop()
        if is_over(setup, request, prompt, new):
            yield new, weight
            continue
        row = plain_row(setup, models, request, prompt, new)
        waiting += [((*new, token), weight * mass) for token, mass in enumerate(row) if mass]


def is_over(setup: Setup, request: Request, prompt: Tokens, new: Tokens) -> bool:
    """Return whether a text is complete."""
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
    """Return the pmf of the next token. Raises ``ValueError`` where the parameters leave nothing."""
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
    """Return whether a text can still become one of the grammar's."""
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
