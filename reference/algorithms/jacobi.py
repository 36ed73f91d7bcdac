"""Jacobi decoding: greedy decoding as the fixed point of a parallel iteration (Santilli et al. 2305.10427).

A sweep computes the argmax at every position of a block, given the block's previous tokens. ``rule="prefix"``: a round
is a sweep, which commits the leading tokens that did not change and one more; a block of m tokens takes at most m
sweeps. ``rule="fixed point"``, the paper's ``y' = y``: a round is a block, iterated until nothing changes, which can
take m + 1 sweeps. The decoder's trace counts the sweeps. The fixed point is unique: the greedy text. Exact only at
temperature 0: a sweep that draws its tokens anew has no fixed point. Not covered: the number of sweeps for real text,
which needs a trained model.
"""

from __future__ import annotations

from ..drafters.jacobi import check_block, jacobi_drafter, padding, sweep
from ..laws import greedy_law
from ..lengths.constant import constant
from ..pmf import checked_model
from ..rounds import check_unfinished, commit, from_parts, initial_state
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Parts, Reduction, Round, State, Task, Tokens, chain
from ..verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, block: int = 8, rule: str = "prefix") -> Parts | Decoder:
    """Return the decoder that iterates on ``block`` tokens at a time.

    ``rule`` decides when a round ends: "prefix" after each sweep, "fixed point" when a sweep changes nothing. Raises
    ``ValueError`` for another rule.
    """
    if rule == "fixed point":
        return until_nothing_changes(task, block)
    if rule != "prefix":
        raise ValueError(f"rule is {rule!r}, expected 'prefix' or 'fixed point'")
    return Parts(jacobi_drafter(block), constant(block), greedy_match)


def until_nothing_changes(task: Task, block: int) -> Decoder:
    """Return a decoder whose round repeats sweeps over a block until no token changes, and then commits the block."""
    check_block(block)
    target = checked_model(task.target, "target")

    def iterated(state: State) -> tuple[Tokens, int]:
        guess, sweeps = padding(state.tokens, min(block, state.remaining)), 1
        while (swept := sweep(target, state.tokens, guess)) != guess:
            guess, sweeps = swept, sweeps + 1
        return guess, sweeps

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        guess, sweeps = iterated(state)
        new, remaining = commit(guess, state.remaining, task.eos)
        accepted = min(len(guess) - 1, len(new))
        return State(state.tokens + new, remaining), Round(new, guess[:-1], accepted, accepted, (("sweeps", sweeps),))

    def propose(draws: Draws, state: State) -> Draft:
        drafted = iterated(state)[0][:-1]
        return chain(drafted, (None,) * len(drafted))

    return Decoder(init=lambda prompt: initial_state(prompt, task), step=step, propose=propose)


ALGORITHM = Algorithm(
    name="jacobi",
    summary="y'_i = argmax p(. | x, y_<i) for a whole block, repeated until its tokens no longer change",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"block": 3}, {"block": 3, "rule": "fixed point"}),
    paper="arXiv 2305.10427, parallel Jacobi and GS-Jacobi decoding",
    declared_law=greedy_law,
    systems=("Jacobi",),
    needs_training="the number of sweeps for real text",
    reductions=(
        Reduction(
            "greedy-speculation",
            "one token per block",
            {"block": 1},
            {"gamma": 0},
            rounds=False,
            shown_by="test_lookahead.py::test_a_block_of_one_token_decodes_token_by_token",
        ),
    ),
)
