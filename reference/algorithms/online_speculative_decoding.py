"""Online speculative decoding: the drafter learns from its rejections while it serves (Liu et al. 2310.07177).

After a rejection the target's row is known, so (context, p) is added to a buffer at no cost. Every ``interval`` rounds
the drafter learns from the buffer, which is then emptied. The output is exact at every moment: a round drafts and
verifies with one table, which depends only on earlier rounds. If the drafter were updated between a draw and its
verification, the token would be verified with a q from which it was not drawn, and the output would be biased.

The update here is ``mixture_step``, which is rational; ``online_decoder`` takes any other, such as a gradient step.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..drafters.changing_table import Learned, Update, after_round, buffered, learned_model, mixture_step
from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..limits import last_token_draft
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Round,
    State,
    Task,
    Tokens,
)
from ..verifiers.speculative_sampling import speculative_sampling


def online_drafter(draft: LanguageModel, order: int) -> Drafter:
    """Return a drafter that draws the next token from the pmf learned for the last ``order`` tokens.

    If none was learned for them, it draws from ``draft``. The learned pmfs are its state, which ``online_decoder``
    updates.
    """

    def propose(
        draws: Draws, state: Learned, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        now = model_drafter(learned_model(draft, state, order))
        return now.propose(draws, None, prefix, gamma, stop_after)

    return Drafter(init=lambda prompt: Learned(), propose=propose, observe=lambda state, tokens, start, target: state)


@from_parts
def online_decoder(task: Task, gamma: int, update: Update, interval: int, order: int) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens and learns from its rejections every ``interval`` rounds.

    For each rejection, ``update(q, p)`` is the new pmf of the draft in its context, the last ``order`` tokens of the
    text; p is the target's row there. Raises ``ValueError`` for an interval or order below 1.
    """
    for value, name in ((interval, "interval"), (order, "order")):
        if value < 1:
            raise ValueError(f"{name} is {value}, expected at least 1")
    target, draft = checked_model(task.target, "target"), draft_model(task)

    def learning(rounds: Decoder) -> Decoder:
        def step(draws: Draws, state: State) -> tuple[State, Round]:
            after, done = rounds.step(draws, state)
            learned = after.drafter
            assert isinstance(learned, Learned)
            if done.reached > done.accepted:
                context = after.tokens[: len(state.tokens) + done.accepted]
                learned = buffered(learned, context, target(context))
            return after._replace(drafter=after_round(learned, draft, update, interval, order)), done

        return rounds._replace(step=step)

    return Parts(online_drafter(draft, order), constant(gamma), speculative_sampling, around=learning)


@from_parts
def build(task: Task, eta: Any = Fraction(1, 10), interval: int = 8, order: int = 1, gamma: int = 4) -> Parts | Decoder:
    """Return the decoder that drafts ``gamma`` tokens and moves q towards p in contexts with rejections.

    Every ``interval`` rounds, q becomes ``(1 - eta) q + eta p`` for each rejection, in its context: the last ``order``
    tokens.
    """
    return online_decoder.parts(task, gamma, mixture_step(eta), interval, order)


ALGORITHM = Algorithm(
    name="online-speculative-decoding",
    summary="speculative sampling; q learns from p at rejected positions, every few rounds",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"eta": Fraction(1, 2), "interval": 1, "gamma": 1},
        {"eta": Fraction(1, 3), "interval": 2, "order": 2, "gamma": 2},
    ),
    paper="arXiv 2310.07177",
    systems=("OSD",),
    needs_training="how similar real queries are; tables show that alpha rises if contexts are repeated",
    reductions=(
        Reduction(
            "speculative-sampling",
            "eta = 0, and q depends on the last token alone",
            {"eta": 0, "interval": 1, "gamma": 2},
            {"gamma": 2},
            limit=last_token_draft,
            shown_by="test_changing_table.py::test_learning_nothing_is_speculative_sampling_round_by_round",
        ),
    ),
)
