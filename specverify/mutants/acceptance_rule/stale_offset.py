"""The ratio is read at the tokens that stand where the first round began: right in round 1, wrong from round 2 on."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    accept_probability,
    flip,
    residual,
)


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose drafted ids are looked up behind the prompt."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft, start: int) -> Verified:
        text = prefix + draft.tokens
        for i, q in enumerate(draft.pmfs):
            p = target(prefix + draft.tokens[:i])
            if not flip(draws, accept_probability(p, q, text[start + i]), ("accept", i)):
                return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
        return Verified((*draft.tokens, draws.categorical(target(text), ("bonus",))), len(draft.tokens))

    def round_from(state: State) -> Decoder:
        start = len(state.tokens) - (task.horizon - state.remaining)
        return with_verifier(lambda draws, target, prefix, draft: verify(draws, target, prefix, draft, start))(
            task, gamma
        )

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        return round_from(state).step(draws, state)

    return Decoder(round_from(State((), 0)).init, step)


MUTANT = planted(
    "speculative-sampling",
    "stale-offset",
    "reads p/q at the ids behind the prompt",
    build,
    category="A",
    citation="romsto/Speculative-Decoding commit 41668c8",
    killed_by="law_is_target",
    examples=SHORT,
)
