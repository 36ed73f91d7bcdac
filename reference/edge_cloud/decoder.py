"""The edge-cloud system as a decoder: a step is one round over a link in memory, with every message encoded as JSON.

Some state is dropped between rounds, so that equal texts have equal states: the replies that the cloud remembers,
because the edge will not request them again, and sessions that the edge has left. Tests verify that sessions which keep
the replies, over links that lose, repeat and reorder messages, have the same law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..models import draft_model
from ..pmf import checked_model
from ..rounds import check_unfinished, initial_state
from ..types import Decoder, Draft, Draws, LengthRule, Round, State, Task, Tokens, chain
from .cloud import CloudState
from .edge import Edge, EdgeState, drafted
from .link import Link, Service, in_memory, play_round
from .modes import find_mode
from .shared_noise import DrawnNoise, SharedNoise


class BothSides(NamedTuple):
    """The states of edge and cloud between two rounds."""

    edge: EdgeState
    cloud: CloudState | None = None


def edge_cloud_decoder(
    task: Task,
    mode: str,
    length: LengthRule,
    *,
    link: Callable[[Draws, Service], Link] = lambda draws, service: in_memory(service),
    impatient: bool = False,
    noise: Callable[[Draws], SharedNoise] = DrawnNoise,
) -> Decoder:
    """Return the decoder of an edge and a cloud. The trace of a round ends with the messages and the bytes each way.

    Args:
        task: The decoding task.
        mode: Name of the mode of verification.
        length: Rule for the number of drafts.
        link: ``link(draws, service)`` connects the two sides.
        impatient: Whether the edge commits its first draft when no answer comes.
        noise: ``noise(draws)`` is the noise that both sides share in a round.

    Raises:
        ValueError: For an unknown mode or a task without draft model. ``init`` raises it for an empty prompt, ``step``
            if the decoder has finished or the two sides disagree.
    """
    seed = 0 if find_mode(mode).shared_noise else None
    target = checked_model(task.target, "target")
    edge = Edge(draft_model(task), length, mode, task.eos, impatient=impatient, seed=seed)

    def init(prompt: Tokens) -> State:
        state = initial_state(prompt, task)
        return state._replace(drafter=BothSides(EdgeState(state.tokens, state.remaining, length.init)))

    def holding(shared: SharedNoise) -> Edge:
        return edge._replace(noise=lambda seed: shared)

    def propose(draws: Draws, state: State) -> Draft:
        block, pmfs, _ = drafted(holding(noise(draws)), draws, _sides(state).edge)
        return chain(block.draft, pmfs)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        before, held = _sides(state)
        shared = noise(draws)
        service = Service(target, draws, {} if held is None else {edge.session: held}, noise=lambda seed: shared)
        after, done, traffic = play_round(holding(shared), draws, before, link(draws, service))
        cloud = service.sessions.get(edge.session)
        if cloud is not None:
            cloud = cloud._replace(answered=())
        if after.opened and (cloud is None or cloud.tokens != after.tokens):
            raise ValueError(f"the edge holds {after.tokens}, the cloud {cloud and cloud.tokens}, expected one context")
        if not after.opened:
            after, cloud = after._replace(epoch=0), None
        trace = (*done.trace, *zip(traffic._fields, traffic, strict=True))
        return State(after.tokens, after.remaining, BothSides(after, cloud), after.length), done._replace(trace=trace)

    return Decoder(init, step, propose)


def _sides(state: State) -> BothSides:
    assert isinstance(state.drafter, BothSides)
    return state.drafter
