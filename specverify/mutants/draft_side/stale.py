"""A decoder whose drafts come from something stale. ``propose`` shows what a drafter that is up to date would draft.

So acceptance is compared with what the task's own draft model allows, and the law is exact, whatever is drafted.
"""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.mutant import correct
from specverify.reference import Decoder, Draws, LanguageModel, Pmf, Round, State, Task, Tokens
from specverify.reference.models import draft_model

See = Callable[[Tokens, Tokens, bool], Tokens]
"""``see(tokens, known, first)``: what the drafter is shown of ``tokens``, of which ``known`` were committed before."""


def drafting_from(see: See, original: str = "speculative-sampling") -> Callable[..., Decoder]:
    """Return the build of a registry row whose drafter is shown another text than there is."""

    def build(task: Task, gamma: int = 4) -> Decoder:
        draft: LanguageModel = draft_model(task)
        right = correct(original).build(task, gamma=gamma)

        def step(draws: Draws, state: State) -> tuple[State, Round]:
            def stale(tokens: Tokens) -> Pmf:
                return draft(see(tokens, state.tokens, state.remaining == task.horizon))

            return correct(original).build(task._replace(draft=stale), gamma=gamma).step(draws, state)

        return right._replace(step=step)

    return build
