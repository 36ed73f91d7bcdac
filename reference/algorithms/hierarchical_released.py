"""Hierarchical speculative decoding as released: the ratio of the whole block is not capped.

Not lossless: ``declared_law`` returns the law of the output. The code is ZhouYuxuanYX/Hierarchical-Speculative-Decoding
at b8575e2, ``transformers/generation/utils.py``, the branch ``backward`` of ``_speculative_sampling`` with one draft.
The whole block is tested by ``is_accepted = r_i <= probability_ratio``. Here ``probability_ratio`` is the plain
cumulative product of p/q, while all other tests use ``previous_max``. A block whose ratio rose above 1 and fell again
is kept too often. With one draft the law is p, from two drafts on it is not: for p = (1/3, 2/3) after every text, q =
(2/3, 1/3) and two drafts, the law of three tokens is off by 1/9 in total variation. Everything else is as in
``hierarchical``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..coupling import excess_law
from ..drafters.model import model_drafter
from ..laws import drafted_blocks, law_of_rounds
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Parts, Pmf, Reduction, Task, Tokens
from .hierarchical import backward, ratios, stays, whole_block


@from_parts
def build(task: Task, gamma: int = 5) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them as ``hierarchical``, but for one test.

    This test keeps the whole block with probability min(1, r), where r is the product of p/q over all drafts. In
    ``hierarchical`` the probability is the capped ratio r / m. Here m is the largest product of p/q over the first i
    drafts, i = 0 .. ``gamma``; the empty product is 1, so m is at least 1.
    """
    return Parts(model_drafter(draft_model(task)), constant(gamma), backward(capped_end=False))


def declared_law(task: Task, prompt: Tokens, gamma: int = 5) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: a sum over blocks of q and the prefixes that are kept.

    The options are those of ``build``.
    """

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        for block, mass in drafted_blocks(draft_model(task), prefix, min(gamma, remaining - 1)):
            for kept, last, share in _ends(task, prefix, block):
                for token, chance in enumerate(last.tolist()):
                    yield (*kept, token), mass * share * chance

    return law_of_rounds(task, prompt, committed)


def _ends(task: Task, prefix: Tokens, block: Tokens) -> list[tuple[Tokens, Pmf, Any]]:
    """Return every possible end of the verification of ``block``, which was drafted after ``prefix``.

    An end is (the kept prefix of the block, the pmf of the token after it, the probability of this end).
    """
    draft, gamma = draft_model(task), len(block)
    p = [task.target(prefix + block[:i]) for i in range(gamma + 1)]
    q = [draft(prefix + block[:i]) for i in range(gamma)]
    plain, capped = ratios(p, q, block)
    whole = whole_block(plain, capped, capped_end=False)
    result, left = [(block, p[gamma], whole)], 1 - whole
    for kept in range(gamma - 1, -1, -1):
        heads = stays(capped[kept], p[kept], q[kept]) if kept else capped[0]
        result.append((block[:kept], excess_law(capped[kept] * p[kept], q[kept]), left * heads))
        left = left * (1 - heads)
    return result


ALGORITHM = Algorithm(
    name="hierarchical-released",
    summary="as hierarchical, but the whole block is accepted by its uncapped ratio (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"gamma": 2}, {"gamma": 3}),
    paper="arXiv 2601.05724; code: ZhouYuxuanYX/Hierarchical-Speculative-Decoding b8575e2, generation/utils.py",
    declared_law=declared_law,
    systems=("HSD",),
    reductions=(
        Reduction("speculative-sampling", "gamma = 1", {"gamma": 1}, {"gamma": 1}),
        Reduction("autoregressive", "gamma = 0", {"gamma": 0}),
    ),
)
