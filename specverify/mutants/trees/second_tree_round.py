"""After the first tree round the root is a token behind: later trees are verified without the last committed token."""

from __future__ import annotations

from specverify.mutants.mutant import correct, planted
from specverify.reference import Decoder, Draws, Pmf, Round, State, Task, Tokens


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD that forgets the end of the text from round 2 on."""
    right = correct("rsd").build(task, branching)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        known = len(state.tokens)

        def behind(tokens: Tokens) -> Pmf:
            return task.target(tokens[: known - 1] + tokens[known:])

        wrong = correct("rsd").build(task._replace(target=behind), branching)
        return (right if state.remaining == task.horizon else wrong).step(draws, state)

    return right._replace(step=step)


MUTANT = planted(
    "rsd",
    "second-tree-round",
    "leaves the last token out from round 2 on",
    build,
    category="J",
    citation="FlexFlow PR #714",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
