"""Prompt lookup decoding: drafts copied from earlier in the text, verified by sample-and-match."""

from __future__ import annotations

from ..drafters.prompt_lookup import prompt_lookup_drafter
from ..lengths.constant import constant
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Return the decoder that copies up to ``gamma`` tokens from earlier in the text.

    The last tokens of the text, at most ``max_ngram``, are looked up earlier in the text, and the tokens after their
    first occurrence are copied.
    """
    return Parts(prompt_lookup_drafter(max_ngram, task.eos), constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="prompt-lookup",
    summary="drafts are the tokens after the first occurrence of the last tokens; verified by z ~ p",
    build=build,
    claims=frozenset(Claim),
    examples=({"max_ngram": 1, "gamma": 1}, {"max_ngram": 2, "gamma": 2}, {"max_ngram": 2, "gamma": 3}),
    paper="A. Saxena, prompt lookup decoding (2023); no paper",
    systems=("PLD",),
    reductions=(Reduction("autoregressive", "gamma = 0", {"max_ngram": 1, "gamma": 0}),),
)
