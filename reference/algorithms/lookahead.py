"""Lookahead decoding: a window of Jacobi guesses fills a pool of n-grams, which one target pass verifies.

The candidates are point masses that depend on the past only. At each position a token is drawn from the target, and the
round continues if a candidate has this token. So the output is lossless, and greedy if the target is one-hot. A round
commits 1 to N tokens. After a candidate that matches whole, a bonus token is drawn; the released code emits none.

With N = 2 this is not Jacobi decoding: a round commits at most two tokens, and a guess may be used at any position. Not
covered: how often n-grams repeat, which needs a trained model.
"""

from __future__ import annotations

from ..drafters.lookahead import lookahead_drafter
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.candidate_set import candidate_set


def build(task: Task, width: int = 5, order: int = 3, guesses: int = 5) -> Decoder:
    """Return the decoder that drafts n-grams of ``order`` tokens from a pool, which a window of guesses fills.

    The window has ``order - 1`` rows of ``width`` guesses. The pool holds at most ``guesses`` n-grams with the same
    first token.
    """
    return tree_decoder(task, lookahead_drafter(width, order, guesses), candidate_set)


ALGORITHM = Algorithm(
    name="lookahead",
    summary="n-grams of a Jacobi window that start with the last token; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"width": 3, "order": 2, "guesses": 2}, {"width": 2, "order": 3, "guesses": 2}),
    paper="arXiv 2402.02057, Algorithm 2 and its sampling verification",
    systems=("Lookahead",),
    needs_training="how often n-grams of the trajectories occur again",
    reductions=(
        Reduction(
            "autoregressive",
            "a window of no tokens",
            {"width": 0},
            shown_by="test_lookahead.py::test_without_a_window_nothing_is_drafted",
        ),
    ),
)
