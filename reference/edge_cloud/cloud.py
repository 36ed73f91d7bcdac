"""The cloud, which verifies drafts: a pure state machine with one state per session.

``decide`` draws the reply; ``state_after`` computes the next state without a draw. A repeated request gets the same
reply, whether or not the first reply arrived. A cloud that lost its memory is rebuilt from a record of requests and
replies. Drawing a reply again would be exact only if its loss did not depend on its content.

The cache is modelled by the tokens whose keys and values are stored. The target reads only the cache and the fed
tokens. So the law changes if the cache is cut at a wrong position after a rejection. The token after the accepted
drafts is fed in the next round, and has no cache entry before (the edge-cloud guide, note EC in ``docs/errata.md``,
writes the entry at once, which is not possible).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..coupling import accept_probability, excess_law, flip
from ..kv_cache import keep_lengths, tokens_to_feed
from ..pmf import as_pmf
from ..rounds import commit
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens
from .messages import (
    EdgeRequest,
    Open,
    Opened,
    Refused,
    Reply,
    Supply,
    VerifiedReply,
    Verify,
    Wanted,
)
from .modes import check_session_seed, find_mode, from_row, received_draft
from .shared_noise import NoiseOf, SeededNoise, decisions


class Pending(NamedTuple):
    """A draft that was rejected at ``position`` and whose replacement needs the row of q.

    ``draft`` are all drafts of the round. ``mass`` is q of the rejected token, which the edge sent with the drafts.
    """

    draft: Tokens
    position: int
    mass: Any


class CloudState(NamedTuple):
    """The state of one session in the cloud.

    ``tokens`` is the committed text, ``cache`` the tokens whose entries are stored, ``pending`` a rejected draft whose
    replacement waits for a row of q. Other fields are those of the message that opened the session.
    """

    epoch: int
    tokens: Tokens
    eos: Tokens
    mode: str
    cache: Tokens = ()
    pending: Pending | None = None
    answered: tuple[tuple[EdgeRequest, Reply], ...] = ()
    """Requests and replies of the last round, kept until the request of the next round acknowledges them."""
    seed: int | None = None


def decide(
    draws: Draws, target: LanguageModel, state: CloudState | None, request: EdgeRequest, noise: NoiseOf = SeededNoise
) -> Reply:
    """Return the reply to ``request``, by the model ``target``.

    A repeated request gets the recorded reply, and an impossible one ``Refused``. Others are decided by ``draws``, or
    by ``noise(seed)`` if the session has a seed. ``state`` is None before the session is open. Raises ``ValueError``
    for an unknown mode, a mode without its seed, or a draft that does not fit the mode.
    """
    repeated = earlier_reply(state, request)
    if repeated is not None:
        return repeated
    reason = reason_to_refuse(state, request)
    if reason is not None:
        return Refused(*request[:3], reason)
    if isinstance(request, Open):
        check_session_seed(request.mode, request.seed)
        return Opened(*request[:3])
    assert state is not None
    if isinstance(request, Supply):
        return _replacement(draws, target, state, request)
    return _verdict(decisions(draws, noise, state.seed, len(state.tokens)), target, state, request)


def state_after(state: CloudState | None, request: EdgeRequest, reply: Reply) -> CloudState | None:
    """Return the cloud's state after it has answered ``request`` by ``reply``.

    Nothing is drawn. A refused or repeated request does not change the state.
    """
    if isinstance(reply, Refused) or earlier_reply(state, request) is not None:
        return state
    if isinstance(request, Open):
        opened = CloudState(request.epoch, request.tokens, request.eos, request.mode, seed=request.seed)
        return opened._replace(answered=((request, reply),))
    assert state is not None
    said = tuple(pair for pair in state.answered if pair[0].known == request.known)
    state = state._replace(answered=(*said, (request, reply)))
    if isinstance(reply, Wanted):
        assert isinstance(request, Verify)
        pending = Pending(request.draft, reply.position, request.masses[reply.position])
        fed = state.tokens + request.draft
        return state._replace(pending=pending, cache=fed[: len(state.tokens) - 1 + reply.position])
    assert isinstance(reply, VerifiedReply)
    new, _ = commit((*request.draft[: reply.accepted], reply.token), reply.accepted + 1, state.eos)
    keep = keep_lengths(len(state.tokens), len(request.draft), len(new) - 1).target
    return state._replace(tokens=state.tokens + new, cache=(state.tokens + request.draft)[:keep], pending=None)


def earlier_reply(state: CloudState | None, request: EdgeRequest) -> Reply | None:
    """Return the reply that ``state`` records for a request equal to ``request``.

    Returns None if it records none, or if ``state`` is None because no session was opened.
    """
    return next((reply for asked, reply in state.answered if asked == request), None) if state else None


def reason_to_refuse(state: CloudState | None, request: EdgeRequest) -> str | None:
    """Return why ``request`` cannot be answered in ``state``, as one of ``messages.REASONS``; None if it can be."""
    if isinstance(request, Open):
        return None if state is None or request.epoch > state.epoch else "stale"
    if state is None or request.epoch > state.epoch:
        return "unknown"
    if request.epoch < state.epoch or request.known < len(state.tokens):
        seen = any((asked.epoch, asked.known) == (request.epoch, request.known) for asked, _ in state.answered)
        return "conflict" if seen else "stale"
    if request.known > len(state.tokens):
        return "misaligned"
    return None if _fits(state, request) else "conflict"


def target_rows(target: LanguageModel, state: CloudState, draft: Tokens, count: int) -> list[Pmf]:
    """Return the last ``count`` rows, pmfs ``[V]``, of a pass over the text and ``draft``.

    Only the tokens missing from the cache in ``state`` are fed. ``target`` is the target model.
    """
    fed = tokens_to_feed(state.tokens + draft, len(state.cache))
    ends = range(len(fed) - count + 1, len(fed) + 1)
    rows = [target(state.cache + fed[:end]) for end in ends]
    return [row if isinstance(row, np.ndarray) else as_pmf(row.tolist()) for row in rows]


def first_rejection(draws: Draws, rows: list[Pmf], draft: Draft) -> int | None:
    """Return the index of the first rejected draft; None if all are accepted.

    Each draft is accepted with probability min(1, p/q), with p from ``rows``.
    """
    for i, token in enumerate(draft.tokens):
        if not flip(draws, accept_probability(rows[i], draft.pmfs[i], token), ("accept", i)):
            return i
    return None


def _verdict(draws: Draws, target: LanguageModel, state: CloudState, request: Verify) -> Reply:
    mode = find_mode(state.mode)
    rows = target_rows(target, state, request.draft, len(request.draft) + 1)
    draft = received_draft(mode, request, rows[0])
    rejected = first_rejection(draws, rows, draft) if mode.fetches else None
    if rejected is not None:
        return Wanted(*request[:3], rejected)
    if mode.fetches:
        return VerifiedReply(*request[:3], len(draft.tokens), draws.categorical(rows[-1], ("bonus",)))
    verified = mode.verify(draws, lambda tokens: rows[len(tokens) - len(state.tokens)], state.tokens, draft)
    return VerifiedReply(*request[:3], verified.accepted, verified.tokens[-1])


def _replacement(draws: Draws, target: LanguageModel, state: CloudState, request: Supply) -> Reply:
    (p,) = target_rows(target, state, request.draft[: request.position], 1)
    token = draws.categorical(excess_law(p, from_row(request.row)), ("residual", request.position))
    return VerifiedReply(*request[:3], request.position, token)


def _fits(state: CloudState, request: Verify | Supply) -> bool:
    if isinstance(request, Verify):
        return state.pending is None
    if request.position >= len(request.draft) or not find_mode(state.mode).fetches:
        return False
    said = dict(zip(request.row.tokens, request.row.masses, strict=True))
    told = Pending(request.draft, request.position, said.get(request.draft[request.position]))
    return told == state.pending if state.pending else told.mass is not None  # without memory the edge is believed
