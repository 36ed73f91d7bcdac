"""The edge, which drafts and commits tokens: a pure state machine that draws only when it drafts.

``prepared`` puts the next request into the state, ``received`` handles a message, ``timed_out`` a missing answer. The
request stays in the state until its reply comes, so sending it again sends the same bytes. A reply that is late,
repeated or out of order changes nothing. An edge that saves its state before each send can be stopped at any point.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from ..kv_cache import keep_lengths, tokens_to_feed
from ..rounds import commit
from ..types import Draws, LanguageModel, LengthRule, Plan, Pmf, Round, Tokens
from .messages import (
    EdgeRequest,
    Open,
    Opened,
    Refused,
    Reply,
    SparsePmf,
    Supply,
    VerifiedReply,
    Verify,
    Wanted,
)
from .modes import as_row, check_session_seed, find_mode, mass_of
from .shared_noise import NoiseOf, SeededNoise, decisions
from .wire import decode, encode


class Edge(NamedTuple):
    """The settings of the edge, which do not change during a session.

    ``draft`` is the drafter's model, ``length`` the rule for the number of drafts, ``mode`` the name of the mode of
    verification, ``session`` the session's name. ``noise`` maps the seed to the shared noise.
    """

    draft: LanguageModel
    length: LengthRule
    mode: str
    eos: Tokens = ()
    session: str = "0"
    impatient: bool = False
    """Whether to commit the first draft unverified when the cloud does not reply (the edge-cloud guide, Section 8). The
    output is then biased."""
    seed: int | None = None
    """Seed of the noise shared with the cloud; None for modes that share none."""
    noise: NoiseOf = SeededNoise


class DraftedBlock(NamedTuple):
    """Drafted tokens, their rows of q, and the drafting plan that decided how many tokens to draft.

    There are no rows if the mode does not need q.
    """

    draft: Tokens
    rows: tuple[SparsePmf, ...]
    plan: Plan
    wanted: int | None = None
    """Index of the rejected draft whose row of q the cloud has requested; None if it has requested none."""


class EdgeState(NamedTuple):
    """The persistent state of the edge, which is all that it needs to continue after a stop.

    ``tokens`` is the committed text, ``remaining`` how many may follow, ``length`` the state of the length rule,
    ``epoch`` that of the session; ``opened``: the cloud has confirmed this epoch.
    """

    tokens: Tokens
    remaining: int
    length: Hashable = None
    cache: Tokens = ()
    """Tokens whose entries are in the drafter's KV cache."""
    epoch: int = 0
    opened: bool = False
    block: DraftedBlock | None = None
    """The drafted block in verification; None between rounds."""
    waiting: EdgeRequest | None = None
    """The request for which no reply has arrived yet; None if there is none."""


def drafted(edge: Edge, draws: Draws, state: EdgeState) -> tuple[DraftedBlock, tuple[Pmf, ...], Tokens]:
    """Return a new block, its pmfs ``[V]``, and the drafter's cache after drafting it.

    The block has at most ``state.remaining - 1`` tokens; ``edge`` has the draft model and the length rule. A pmf
    depends only on the cache, to which the missing tokens are fed first.
    """
    plan = edge.length.plan(state.length, state.tokens)
    draws = decisions(draws, edge.noise, edge.seed, len(state.tokens))
    draft, pmfs, cache = (), (), state.cache  # type: tuple[Tokens, tuple[Pmf, ...], Tokens]
    while len(draft) < min(plan.gamma, state.remaining - 1):
        cache += tokens_to_feed(state.tokens + draft, len(cache))
        q = edge.draft(cache)
        draft, pmfs = (*draft, draws.categorical(q, ("draft", len(draft)))), (*pmfs, q)
        if edge.length.stop_after(q, draft[-1]):
            break
    rows = () if find_mode(edge.mode).sends == "nothing" else tuple(as_row(q) for q in pmfs)
    return DraftedBlock(draft, rows, plan), pmfs, cache


def prepared(edge: Edge, draws: Draws, state: EdgeState) -> EdgeState:
    """Return the state of ``edge`` with the next request in ``waiting``, or ``state`` if a request already waits.

    The request opens the session, asks to verify a block, drafted by ``draws`` if necessary, or supplies the row of q
    that the cloud wants.
    """
    if state.waiting is not None:
        return state
    key = (edge.session, state.epoch, len(state.tokens))
    if not state.opened:
        check_session_seed(edge.mode, edge.seed)
        return state._replace(waiting=Open(*key, state.tokens, edge.eos, edge.mode, edge.seed))
    if state.block is None:
        block, _, cache = drafted(edge, draws, state)
        state = state._replace(block=block, cache=cache)
    draft, rows, _, wanted = state.block  # type: ignore[misc]
    if wanted is not None:
        return state._replace(waiting=Supply(*key, draft, wanted, rows[wanted]))
    sends = find_mode(edge.mode).sends
    masses = tuple(mass_of(row, token) for token, row in zip(draft, rows, strict=True)) if sends == "masses" else ()
    return state._replace(waiting=Verify(*key, draft, masses, rows if sends == "rows" else ()))


def received(edge: Edge, state: EdgeState, text: str) -> tuple[EdgeState, Round | None]:
    """Return the state after the message ``text`` arrived, and the round's record if the message ends the round.

    A message that answers no waiting request changes nothing. If the cloud does not know the session, the edge will
    open it again under the next epoch, and keeps its draft. Raises ``ValueError`` for a text that is no message, an
    impossible answer, or any other refusal.
    """
    reply, asked, block = decode(text), state.waiting, state.block
    if asked is None or not _answers(reply, asked):
        return state, None
    if isinstance(reply, Refused):
        if reply.reason != "unknown":
            raise ValueError(f"the cloud refuses {encode(asked)[:60]}... as {reply.reason}, expected an answer")
        return state._replace(epoch=state.epoch + 1, opened=False, waiting=None), None
    if isinstance(reply, Opened):
        return state._replace(opened=True, waiting=None), None
    assert block is not None
    if isinstance(reply, Wanted):
        if reply.position >= len(block.draft):
            raise ValueError(f"the cloud asks for row {reply.position} of {len(block.draft)} drafts")
        return state._replace(block=block._replace(wanted=reply.position), waiting=None), None
    if reply.accepted > len(block.draft):
        raise ValueError(f"the cloud accepts {reply.accepted} of {len(block.draft)} drafts")
    return _committed(edge, state, block, reply.accepted, (*block.draft[: reply.accepted], reply.token))


def timed_out(edge: Edge, state: EdgeState) -> tuple[EdgeState, Round | None]:
    """Return the state after no answer came in time, and the round's record if the edge then ends the round, else None.

    An impatient edge with an open session and a draft commits its first draft and ends the session. Otherwise the state
    is unchanged, so the same request is sent again.
    """
    if not (edge.impatient and state.opened and state.block and state.block.draft):
        return state, None
    return committed_alone(edge, state, 1)


def committed_alone(edge: Edge, state: EdgeState, count: int) -> tuple[EdgeState, Round]:
    """Return the state after committing the first ``count`` drafts unverified, and the round's record.

    This ends the edge's session: the next request opens another one.
    """
    assert state.block is not None
    after, done = _committed(edge, state, state.block, 0, state.block.draft[:count])
    alone = len(done.tokens)  # they stay, as accepted drafts do
    return after._replace(epoch=state.epoch + 1, opened=False), done._replace(accepted=alone, reached=alone)


def _answers(reply: Reply | EdgeRequest, asked: EdgeRequest) -> bool:
    kinds = {Open: (Opened,), Verify: (VerifiedReply, Wanted), Supply: (VerifiedReply,)}[type(asked)]
    return isinstance(reply, (*kinds, Refused)) and reply[:3] == asked[:3]


def _committed(
    edge: Edge, state: EdgeState, block: DraftedBlock, accepted: int, tokens: Tokens
) -> tuple[EdgeState, Round]:
    known, drafts = len(state.tokens), len(block.draft)
    new, remaining = commit(tokens, state.remaining, edge.eos)
    keep = keep_lengths(known, drafts, len(new) - 1, len(state.cache)).draft
    kept = min(accepted, len(new))
    done = Round(new, block.draft, kept, min(accepted + 1, drafts, len(new)), block.plan.trace)
    return state._replace(
        tokens=state.tokens + new,
        remaining=remaining,
        length=edge.length.update(block.plan.state, drafts, kept),
        cache=state.cache[:keep],
        block=None,
        waiting=None,
    ), done
