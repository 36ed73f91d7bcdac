"""SpecTr-GBV as released: K drafted blocks, each tried prefix by prefix with one joint probability.

Not lossless: ``declared_law`` returns the law of the output. The rule is that of ``verifiers.joint_blocks``, read in
junemily/SpecTr-GBV at e399f44; the paper, arXiv 2604.25925, was not available, and its rule may differ.

For K = 1 the rule is the greedy block verification of arXiv 2403.10444. It keeps more of a block than block
verification does, and requires a modified target in the following rounds. The release continues with p, so the text is
biased from its second token on: by 1/25 in two tokens for p = (1/5, 3/10, 1/2) and q = (3/5, 3/10, 1/10).

For K > 1 the first token is biased as well. The probability of keeping a prefix is computed from ``1 - (1 - r)^K``, but
the law of the token after it from ``1 - r^K``. And the longer prefixes of a block are tried whether or not the block
begins with the kept prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from ..drafters.sequences import sequences_drafter
from ..laws import law_of_rounds
from ..lengths.constant import check_gamma
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Decoder, Reduction, Task, Tokens
from ..verifiers.joint_blocks import Prefix, behind, joint_blocks, prefixes, stays


def build(task: Task, candidates: int = 4, gamma: int = 8) -> Decoder:
    """Return the decoder that drafts K = ``candidates`` blocks of ``gamma`` tokens from q."""
    check_gamma(gamma, "gamma")
    return tree_decoder(task, sequences_drafter((draft_model(task),) * candidates, gamma), joint_blocks)


def declared_law(task: Task, prompt: Tokens, candidates: int = 4, gamma: int = 8) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    It is a sum over all tuples of ``candidates`` blocks of at most ``gamma`` drafts, weighted by their probability, and
    over the prefixes that the released rule may keep.
    """

    def committed(text: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        words = product(range(len(task.target(text))), repeat=min(gamma, remaining - 1))
        blocks = [prefixes(task.target, draft_model(task), text, block) for block in words]
        for chosen in product([block for block in blocks if block[-1].proposed > 0], repeat=candidates):
            weight: Any = 1
            for block in chosen:
                weight = weight * block[-1].proposed
            for kept, share in _ends(chosen, (0, 1), chosen[0][0], frozenset()):
                for token, mass in enumerate(behind(kept, candidates).tolist()):
                    yield (*kept.tokens, token), weight * share * mass

    return law_of_rounds(task, prompt, committed)


def _ends(
    blocks: Sequence[Sequence[Prefix]], at: tuple[int, int], kept: Prefix, turned: frozenset[Tokens]
) -> list[tuple[Prefix, Any]]:
    """Return every prefix that may be kept when the verification ends, with its probability, given the tests so far.

    A prefix may be listed several times.

    Args:
        blocks: The prefixes of each drafted block, the empty one first.
        at: Block number and length of the prefix to test next.
        kept: The longest prefix kept so far.
        turned: The rejected prefixes.
    """
    number, length = at
    if length > len(blocks[number]) - 1:
        if kept.q is None or number == len(blocks) - 1:
            return [(kept, 1)]
        return _ends(blocks, (number + 1, len(kept.tokens) + 1), kept, turned)
    prefix = blocks[number][length]
    if prefix.tokens in turned:
        return _ends(blocks, (number, length + 1), kept, turned)
    heads = stays(prefix, len(blocks))
    down = turned if prefix.q is None else turned | {prefix.tokens}
    branches = ((heads, prefix, turned), (1 - heads, kept, down))
    return [
        (end, chance * share)
        for chance, then, without in branches
        for end, share in (_ends(blocks, (number, length + 1), then, without) if chance > 0 else ())
    ]


ALGORITHM = Algorithm(
    name="spectr-gbv-released",
    summary="K blocks; prefixes are tried with 1 - (1 - min(1, S/B))^K of their joint ratio (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"candidates": 1, "gamma": 2}, {"candidates": 2, "gamma": 1}),
    paper="arXiv 2604.25925; code: junemily/SpecTr-GBV e399f44, src/engine.py",
    declared_law=declared_law,
    systems=("SpecTr-GBV",),
    reductions=(
        Reduction("speculative-sampling", "one block of one token", {"candidates": 1, "gamma": 1}, {"gamma": 1}),
        Reduction("autoregressive", "gamma = 0", {"candidates": 2, "gamma": 0}),
    ),
)
