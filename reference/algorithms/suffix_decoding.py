"""SuffixDecoding: draft the most frequent continuation in past responses or this text (Oliaro et al. 2411.04975).

The drafter is the released one (``drafters.suffix_counts``), a function of the past. Its tokens are verified by sample
and match, which is exact at every temperature.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..drafters.suffix_counts import suffix_drafter
from ..lengths.constant import constant
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task, Tokens
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(
    task: Task, texts: tuple[Tokens, ...] = (), factor: Any = 1, least: Any = Fraction(1, 10), gamma: int = 24
) -> Parts:
    """Return the decoder that drafts at most ``factor`` tokens for every token of the matched suffix.

    A draft has at most ``gamma`` tokens. ``texts`` are the past responses. The product of the relative counts along a
    draft must be at least ``least``.
    """
    return Parts(suffix_drafter(texts, factor, least), constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="suffix-decoding",
    summary="drafts are the most frequent continuation of the suffix with the best score; verified by z ~ p",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"factor": 2, "gamma": 2},
        {"texts": ((0, 1, 1, 0), (1, 0, 1)), "factor": 1, "least": Fraction(1, 3), "gamma": 3},
    ),
    paper="arXiv 2411.04975; code: snowflakedb/ArcticInference 9d46438, csrc/suffix_decoding/suffix_tree.cc",
    systems=("SuffixDecoding",),
    reductions=(Reduction("autoregressive", "factor = 0", {"factor": 0}),),
)
