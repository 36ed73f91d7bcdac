"""BiLD as its T5 code runs it: ``T5BiLDModel._greedy_search_body`` of kssteven418/BigLittleDecoder at ad37f56.

Four points differ from the paper (``bild``), all in that function of ``modeling_t5.py``:

* ``init_iters(..., init_with='large')``: the first token is the large model's, not the small one's.
* Only the earliest draft with a cross-entropy above the threshold is examined. If it is the large model's argmax
  (the comment calls this a minor optimization), all drafts are kept, also later ones of target probability 0.
* A rollback ends in ``continue``, before ``schedule_iters``: the large model keeps its turn and writes one more token.
* Length and end of sequence are tested after every token, so a text may end with tokens of the small model that the
  large model never verified.

So the output is not the large model's greedy text even for one-hot targets, and the algorithm has no claims. A prompt
stands for the encoder's input: the release compares only the tokens after it. If a rollback writes an end of sequence,
the release continues the text; here the text ends.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..lengths.constant import check_gamma
from ..models import draft_model
from ..pmf import argmax, checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Decoder, Draws, LanguageModel, Reduction, Round, State, Task, Tokens
from .bild import confident, is_unlikely, is_unsure


def build(task: Task, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10) -> Decoder:
    """Return the decoder whose small model drafts at most ``gamma`` tokens.

    ``fallback`` and ``rollback`` are the thresholds of ``bild.build``. In the first round, and in a round after a
    rollback, nothing is drafted and the large model writes one token. Before such a round the field ``drafter`` of the
    decoder's state is True.
    """
    check_gamma(gamma, "gamma")
    large, small = checked_model(task.target, "target"), draft_model(task)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        drafted: Tokens = ()
        if not state.drafter:
            drafted = confident(small, state.tokens, fallback, min(gamma, state.remaining), task.eos)
        if len(drafted) == state.remaining or drafted[-1:] in [(end,) for end in task.eos]:
            return State(state.tokens + drafted, 0, False), Round(drafted, drafted, len(drafted), len(drafted))
        kept, rolled_back = looked_at(large, state.tokens, drafted, rollback)
        block = (*drafted[:kept], argmax(large(state.tokens + drafted[:kept])))
        new, remaining = commit(block, state.remaining, task.eos)
        done = Round(new, drafted, min(kept, len(new)), min(kept + rolled_back, len(new)))
        return State(state.tokens + new, remaining, drafter=rolled_back), done

    return Decoder(init=lambda prompt: initial_state(prompt, task)._replace(drafter=True), step=step)


def looked_at(large: LanguageModel, prefix: Tokens, drafted: Tokens, rollback: float) -> tuple[int, bool]:
    """Return how many of the drafts ``drafted`` the large model keeps, and whether it rolls back after these.

    ``large`` gives the pmfs p of the drafts, which follow the text ``prefix``. Let d be the first draft with ``-log
    p(d) > rollback``. If it is not the argmax of p, the drafts before it are kept, and a rollback follows. In any other
    case all drafts are kept.
    """
    for i, token in enumerate(drafted):
        p = large(prefix + drafted[:i])
        if is_unlikely(p, token, rollback):
            return (i, True) if argmax(p) != token else (len(drafted), False)
    return len(drafted), False


def declared_law(
    task: Task, prompt: Tokens, fallback: Any = 0.6, rollback: float = 5.0, gamma: int = 10
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises: a point mass on the text that the two models write in turn.

    The text is computed token by token, without the decoder. The options are those of ``build``.
    """
    small = draft_model(task)
    new: Tokens = ()
    unchecked, large_again = 0, True
    while len(new) < task.horizon and not (new and new[-1] in task.eos):
        q = small(prompt + new)
        if not large_again and unchecked < gamma and not is_unsure(q, fallback):
            new, unchecked = (*new, argmax(q)), unchecked + 1
            continue
        start = len(new) - unchecked
        rows = [task.target(prompt + new[:end]) for end in range(start, len(new) + 1)]
        unlikely = [i for i in range(unchecked) if is_unlikely(rows[i], new[start + i], rollback)]
        large_again = bool(unlikely) and argmax(rows[unlikely[0]]) != new[start + unlikely[0]]
        kept = unlikely[0] if large_again else unchecked
        new, unchecked = (*new[: start + kept], argmax(rows[kept])), 0
    return {new: 1}


ALGORITHM = Algorithm(
    name="bild-released",
    summary="as bild, but the large model begins, and writes one more token after a rollback (declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"fallback": Fraction(1, 2), "rollback": 1.0, "gamma": 2},
        {"fallback": Fraction(1, 4), "rollback": 0.0, "gamma": 3},
    ),
    paper="arXiv 2302.07863, code: kssteven418/BigLittleDecoder ad37f56, modeling_t5.py",
    declared_law=declared_law,
    systems=("BiLD",),
    needs_training="small and large models aligned by fine-tuning, and the loss of quality by the lost exactness",
    reductions=(
        Reduction(
            "greedy-speculation",
            "fallback > 1",
            {"fallback": 2, "rollback": 9.0, "gamma": 2},
            {"gamma": 2},
            rounds=False,
            shown_by="test_limits_of_declared_biases.py::test_deterministic_rules_at_their_strict_end_are_greedy_decoding",
        ),
    ),
)
