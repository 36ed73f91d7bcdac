"""The cloud's service with its sessions, a link to it in memory, and one round played over any link.

A link is ``send(text) -> received texts``: none if nothing came in time, several if the network repeats or reorders.
The link in memory encodes and decodes every message, so a law computed over it is the protocol's law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ..types import Draws, LanguageModel, Round
from .cloud import CloudState, decide, earlier_reply, state_after
from .edge import Edge, EdgeState, prepared, received, timed_out
from .messages import Refused
from .shared_noise import NoiseOf, SeededNoise
from .wire import decode, encode

Link: TypeAlias = Callable[[str], Sequence[str]]


class Traffic(NamedTuple):
    """The traffic of one round: the number of messages sent, and the bytes of message bodies (UTF-8) each way."""

    sent: int = 0
    bytes_up: int = 0
    bytes_down: int = 0


class Service:
    """The cloud with its sessions. ``record`` is called with request and reply before the reply is sent."""

    def __init__(
        self,
        target: LanguageModel,
        draws: Draws,
        sessions: dict[str, CloudState] | None = None,
        record: Callable[[str, str], None] = lambda request, reply: None,
        noise: NoiseOf = SeededNoise,
    ) -> None:
        """Store the target, the verifier's ``draws``, and the states of its ``sessions``.

        ``record(request, reply)`` is called before a new reply is sent, except for a refusal. ``noise(seed)`` returns
        the shared noise of a session.
        """
        self.sessions = dict(sessions or {})
        self._target, self._draws, self._record, self._noise = target, draws, record, noise

    def respond(self, text: str) -> str:
        """Return the reply to the request ``text``, and store the new state of its session.

        A new reply that is no refusal is passed to ``record`` first. Raises ``ValueError`` for an invalid request.
        """
        request = decode(text)
        state = self.sessions.get(request.session)
        reply = decide(self._draws, self._target, state, request, self._noise)
        said = encode(reply)
        if not isinstance(reply, Refused) and earlier_reply(state, request) is None:
            self._record(text, said)
        changed = state_after(state, request, reply)
        if changed is not None:
            self.sessions[request.session] = changed
        return said


def rebuilt(lines: Sequence[tuple[str, str]]) -> dict[str, CloudState]:
    """Return session -> state of the cloud, restored without drawing.

    ``lines`` are the pairs of a request and a reply that a service has recorded.
    """
    sessions: dict[str, CloudState] = {}
    for text, said in lines:
        request = decode(text)
        state = state_after(sessions.get(request.session), request, decode(said))
        if state is not None:
            sessions[request.session] = state
    return sessions


def in_memory(service: Service) -> Link:
    """Return a link to ``service`` in memory that loses no message."""
    return lambda text: (service.respond(text),)


def play_round(
    edge: Edge,
    draws: Draws,
    state: EdgeState,
    send: Link,
    *,
    patience: int = 8,
    save: Callable[[EdgeState], None] = lambda state: None,
) -> tuple[EdgeState, Round, Traffic]:
    """Run from ``state`` until a round is committed; return the state after it, the round and its traffic.

    ``save(state)`` is called before each send. Raises ``TimeoutError`` if ``patience`` sends in a row change nothing,
    and ``ValueError`` for a message that the edge rejects.
    """
    done: Round | None = None
    traffic, silent = Traffic(), 0
    while silent < patience:
        state = before = prepared(edge, draws, state)
        assert state.waiting is not None
        save(state)
        text = encode(state.waiting)
        replies = send(text)
        for reply in replies:
            state, finished = received(edge, state, reply)
            done = done or finished
        if state == before:
            state, done = timed_out(edge, state)
        down = sum(len(reply.encode()) for reply in replies)
        traffic = Traffic(traffic.sent + 1, traffic.bytes_up + len(text.encode()), traffic.bytes_down + down)
        if done is not None:
            return state, done, traffic
        silent = silent + 1 if state == before else 0
    raise TimeoutError(f"{patience} sends of one request brought no answer, expected one from the cloud")
