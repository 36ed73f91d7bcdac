"""A reply that the network repeats is taken twice: the edge commits its tokens again and begins anew from there."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task, commit, flip
from specverify.reference.edge_cloud.decoder import BothSides
from specverify.reference.edge_cloud.edge import EdgeState


def build(task: Task, gamma: int = 4) -> Decoder:
    """Sparse-q; one reply in four comes twice."""
    inner = correct("edge-cloud-sparse-q").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        if not after.remaining or not flip(draws, Fraction(1, 4), ("repeated",)):
            return after, done
        again, remaining = commit(done.tokens, after.remaining, task.eos)
        tokens = after.tokens + again
        sides = BothSides(EdgeState(tokens, remaining, after.length))
        return State(tokens, remaining, sides, after.length), done._replace(tokens=done.tokens + again)

    return inner._replace(step=step)


MUTANT = planted(
    "edge-cloud-sparse-q",
    "reply-taken-twice",
    "commits a repeated reply again",
    build,
    category="M",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
