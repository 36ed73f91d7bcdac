"""The prompt's length is taken off the number of new tokens: long prompts get short answers."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, correct, planted
from specverify.reference import Decoder, Task, Tokens
from specverify.reference.types import State


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that emits ``horizon - (len(prompt) - 1)`` tokens, at least one."""
    inner = correct("speculative-sampling").build(task, gamma=gamma)

    def init(prompt: Tokens) -> State:
        state = inner.init(prompt)
        return state._replace(remaining=max(state.remaining - (len(prompt) - 1), 1))

    return inner._replace(init=init)


MUTANT = planted(
    "speculative-sampling",
    "budget-without-the-prompt",
    "counts the prompt as output",
    build,
    category="K",
    citation="romsto/Speculative-Decoding codec_base_decoding.py:45 at db7db67",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
