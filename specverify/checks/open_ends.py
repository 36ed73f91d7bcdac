"""Whole decodes whose last token is left open: one run stands for all that it can be, and for its place in a law.

Nothing comes behind that token. A verifier that does not look at it itself, such as one that ends in a multinomial,
does the same whatever it is, so it need not be run for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.laws.paths import Undecided
from specverify.reference import Decoder, Draws, State, Tokens
from specverify.subjects.emitted import ends_left_open


def step_with_open_end(decoder: Decoder, draws: Draws, state: State) -> Any:
    """Return the state and the round after ``state``; ``Undecided`` between several where the decode ends in them."""
    with ends_left_open(state.remaining):
        return decoder.step(draws, state)


def run_with_open_end(decoder: Decoder, prompt: Tokens) -> Callable[[Draws], Any]:
    """Return the program that decodes from ``prompt`` to the end and returns the new tokens, or what they may be."""

    def program(draws: Draws) -> Any:
        state = decoder.init(prompt)
        while state.remaining > 0:
            after = step_with_open_end(decoder, draws, state)
            if isinstance(after, Undecided):
                return Undecided(tuple((reached.tokens[len(prompt) :], mass) for (reached, _), mass in after.outcomes))
            state, _ = after
        return state.tokens[len(prompt) :]

    return program
