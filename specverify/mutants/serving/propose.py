"""The drafting half of an engine step, and the row processing that target and draft share.

In all functions of this module the parameter ``parts`` has the functions of the engine (``EngineParts``), and ``setup``
all other data of the run, such as the requests, the number of drafts and the size of the cache (``Setup``).
"""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.model import Models
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.processors import Matcher, mask, penalised, warped, without
from specverify.mutants.serving.request import ExactPmf, Parameters, Request, argmax, normalised, one_hot
from specverify.mutants.serving.situations import Setup
from specverify.mutants.serving.state import Running
from specverify.mutants.serving.verification import choose
from specverify.reference import Draws, Tokens

Proposed = tuple[Tokens, tuple[ExactPmf, ...], DraftCache]


def proposed(parts: EngineParts, setup: Setup, models: Models, draws: Draws, running: Running, count: int) -> Proposed:
    """Return at most ``count`` drafts for the request ``running``, their pmfs, and the draft model's cache afterwards.

    A pmf is the law from which the draft was drawn; the lookup drafter has point masses.
    """
    if setup.drafting == "lookup":
        result = parts.lookup(running.corpus, running.tokens, count) if count else ()
        return result, tuple(one_hot(token, setup.vocabulary) for token in result), running.draft
    drafts: Tokens = ()
    pmfs: tuple[ExactPmf, ...] = ()
    cache = running.draft
    for place in range(count):
        fed = parts.draft_feed(running.tokens, cache.seen, running.rounds) if place == 0 else drafts[-1:]
        cache = parts.draft_write(cache, fed)
        row = raw = models.draft(cache.entries)
        if setup.draft_ids:
            row = parts.to_target(row, setup.draft_ids, setup.vocabulary)
        if setup.draft_processed:
            row = _draft_row(parts, running, row, drafts)
        if setup.drafting == "argmax":
            row = one_hot(argmax(row), len(row))
        drafts += (choose(draws, row, ("draft", running.number, len(running.tokens) + place)),)
        pmfs += (parts.declared(raw, row),)
    return drafts, pmfs, cache


def _draft_row(parts: EngineParts, running: Running, row: ExactPmf, drafts: Tokens) -> ExactPmf:
    """Return ``row``, a row of the draft model, with the parameters and grammar of the request ``running``.

    The row is processed like a row of the target. ``drafts`` are the drafts before the row.
    """
    allowed = None
    grammar = running.request.grammar
    if grammar is not None and running.matcher is not None:
        matcher = parts.draft_matcher(grammar, running.matcher, drafts)
        allowed = mask_of(parts, running.request, matcher)
    new = len(running.tokens) - running.start + len(drafts)
    prefix = parts.draft_prefix(running.history, drafts)
    return processed(parts, running.request, row, running.request.parameters, prefix, drafts, len(drafts), new, allowed)


def mask_of(parts: EngineParts, request: Request, matcher: Matcher) -> frozenset[int] | None:
    """Return the tokens that the grammar of ``request`` allows next in the state ``matcher``.

    Returns None if the grammar does not constrain the next token.
    """
    assert request.grammar is not None
    return mask(request.grammar, matcher) if parts.needs_mask(request.grammar, matcher) else None


def processed(
    parts: EngineParts,
    request: Request,
    row: ExactPmf,
    parameters: Parameters,
    prefix: Tokens,
    drafts: Tokens,
    place: int,
    new: int,
    allowed: frozenset[int] | None,
) -> ExactPmf:
    """Return ``row`` after penalties, masks, temperature and truncation, in this order, by ``parameters``.

    ``prefix`` has the tokens before the row, of which the last ``place`` are drafts and ``new`` are new tokens.
    ``drafts`` are the drafts of the round, ``allowed`` the tokens that the grammar allows (None: all). If no token is
    left, the row is returned without these changes.
    """
    everything = frozenset(range(len(row)))
    banned = parts.blocked(parameters.bad_words, prefix, drafts, place)
    banned |= everything - parts.permitted(parameters, len(row))
    banned |= frozenset(request.eos) if new < parameters.min_new else frozenset()
    banned |= frozenset() if allowed is None else everything - allowed
    masses = penalised(row, parameters, parts.occurrences(prefix, place))
    result = warped(without(masses, banned), parameters)
    return normalised(row) or row if result is None else parts.truncated(result, parameters)
