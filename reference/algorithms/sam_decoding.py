"""SAM Decoding: copy the tokens after the longest match, found by a suffix automaton (Hu et al. 2411.10666).

The match is searched in the text itself (``drafters.longest_match``), and verified by sample and match, which is exact
at every temperature; the release verifies greedily. The release pads short drafts with token 0; here a short draft ends
instead. Not covered: the static automaton over a corpus, and the tree drafter that the release uses for matches below
``len_threshold``; here such a match drafts nothing.
"""

from __future__ import annotations

from ..drafters.longest_match import longest_match_drafter
from ..lengths.constant import constant
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, least: int = 5, predict: int = 40) -> Parts:
    """Return the decoder that copies ``predict`` - 1 tokens after the longest earlier match of the last tokens.

    Nothing is drafted if the match is shorter than ``least`` tokens.
    """
    return Parts(longest_match_drafter(least, predict), constant(predict), sample_and_match)


ALGORITHM = Algorithm(
    name="sam-decoding",
    summary="drafts are the tokens after the first occurrence of the longest repeated suffix; verified by z ~ p",
    build=build,
    claims=frozenset(Claim),
    examples=({"least": 1, "predict": 2}, {"least": 2, "predict": 3}),
    paper="arXiv 2411.10666; code: hyx1999/SAM-Decoding 18c41f0, samd/sam/dyn_sam.py",
    systems=("SAM Decoding",),
    reductions=(Reduction("autoregressive", "the least match length exceeds the text", {"least": 99, "predict": 3}),),
)
