"""SLEM, string-level exact match: the drafter's text, spelled in the target's tokens, matched with the target's draws.

The drafter writes with a vocabulary of its own; its text is tokenised anew by the target's tokenizer and stays while
the target's draw is the next token of it (Timor et al. 2502.05202). The draws decide alone, so the row is exact
whatever either tokenizer does. The stand-in for two tokenizers is that of ``drafters.two_vocabularies``; the text is
the drafter's greedy one.
"""

from __future__ import annotations

from ..drafters.two_vocabularies import Pieces, respelling_drafter
from ..lengths.constant import constant
from ..limits import greedy_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, pieces: Pieces = (), gamma: int = 4) -> Parts:
    """Draft gamma of the target's tokens, of which the drafter spells some by one token of its own."""
    return Parts(respelling_drafter(draft_model(task), pieces), constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="slem",
    summary="another vocabulary's text spelled in one's own tokens, draw z ~ p, emit z, go on while z = d",
    build=build,
    claims=frozenset(Claim),
    examples=({"pieces": ((0, (0, 1)),), "gamma": 2}, {"pieces": ((1, (1, 1, 0)),), "gamma": 3}),
    paper="arXiv 2502.05202, string-level exact match",
    systems=("SLEM", "universal assisted generation"),
    needs_training="how often two tokenizers agree",
    reductions=(
        Reduction("sample-and-match", "one vocabulary, q one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_draft),
    ),
)
