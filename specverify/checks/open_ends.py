"""Decodes whose last token stays symbolic: one run stands for all values of that token.

No token follows the last one. A verifier that does not read it, for example one that ends with a multinomial, behaves
the same for every value, so one run is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specverify.intercept.run import mode_with
from specverify.laws.paths import Undecided
from specverify.reference import Decoder, Draws, State, Tokens
from specverify.subjects.emitted import ends_left_open


def step_with_open_end(decoder: Decoder, draws: Draws, state: State) -> Any:
    """Run one round of ``decoder`` from ``state``, answered by ``draws``, and return (next state, round).

    If the last token of the decode is never read, return ``Undecided``, which has all possible pairs.
    """
    with ends_left_open(state.remaining):
        return decoder.step(draws, state)


def run_with_open_end(decoder: Decoder, prompt: Tokens) -> Callable[[Draws], Any]:
    """Return a program in which ``decoder`` decodes from ``prompt`` to the end; it returns the new tokens.

    If the last token is never read, the program returns ``Undecided``, which has all possible texts.
    """

    def program(draws: Draws) -> Any:
        state = decoder.init(prompt)
        while state.remaining > 0:
            after = step_with_open_end(decoder, draws, state)
            if isinstance(after, Undecided):
                return Undecided(tuple((reached.tokens[len(prompt) :], mass) for (reached, _), mass in after.outcomes))
            state, _ = after
        return state.tokens[len(prompt) :]

    return program


def with_open_ends(run: Callable[[Draws], Any]) -> Callable[[Draws], Any]:
    """Return ``run`` as a program that leaves its last token symbolic, as in an enumeration.

    Coupled and fed runs use this program: they compare the law of the last token with the recorded draw
    (``coupled_runs``, ``fed_runs``).
    """

    def enumerated(draws: Draws) -> Any:
        with ends_left_open(), mode_with(coupled=draws):
            return run(draws)

    return enumerated
