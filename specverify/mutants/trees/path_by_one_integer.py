"""The cache is rewound by a count, though an accepted path need not be the first nodes: the next round reads others."""

from __future__ import annotations

from specverify.mutants.mutant import correct, planted
from specverify.reference import Decoder, Draws, Round, State, Task, commit
from specverify.reference.drafters.tree import tree_drafter, without_replacement
from specverify.reference.models import draft_model
from specverify.reference.trees import regular_tree
from specverify.reference.types import never
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD over a cache; ``State.drafter`` holds the tokens that are really in it."""
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = state.drafter if isinstance(state.drafter, tuple) else state.tokens
        draft = drafter.propose(draws, None, held, state.remaining - 1, never)
        verified = recursive_rejection(draws, task.target, held, draft)
        new, remaining = commit(verified.tokens, state.remaining, task.eos)
        held = (*held, *draft.tokens[: verified.accepted], verified.tokens[-1])
        return State(state.tokens + new, remaining, held), Round(new, draft.tokens, verified.accepted, len(new))

    return Decoder(correct("rsd").build(task, branching).init, step)


MUTANT = planted(
    "rsd",
    "path-by-one-integer",
    "keeps the first nodes, not the path's",
    build,
    category="J",
    citation="TensorRT-LLM issue #10343 (PR #8586)",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
