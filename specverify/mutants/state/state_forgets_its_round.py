"""What the next round does depends on something the state does not hold: whether the last round rejected a draft.

After a rejection the next token is the target's argmax. The flag travels in an object that equals every other, so equal
looking states have different futures; merging them would compute a wrong law.
"""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task, argmax, commit


class _Forgotten:
    def __init__(self, rejected: bool) -> None:
        self.rejected = rejected

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Forgotten)

    def __hash__(self) -> int:
        return 0


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling with a flag outside the state's equality."""
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        if isinstance(state.length, _Forgotten) and state.length.rejected:
            new, remaining = commit((argmax(task.target(state.tokens)),), state.remaining, task.eos)
            return State(state.tokens + new, remaining, None, _Forgotten(False)), Round(new, (), 0, 0)
        after, done = inner.step(draws, state._replace(length=None))
        return after._replace(length=_Forgotten(done.accepted < len(done.draft))), done

    return inner._replace(init=lambda prompt: inner.init(prompt)._replace(length=_Forgotten(False)), step=step)


MUTANT = planted(
    "speculative-sampling",
    "state-forgets-its-round",
    "the next round depends on more than the state",
    build,
    category="I",
    citation="class of exllamav3 commit b2dd4ea: a count carried over between rounds",
    killed_by="merging_is_sound",
    examples=SHORT,
)
