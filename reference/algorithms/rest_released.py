"""REST as released: every path draws its own tokens, and the token after the match is drawn anew.

Not lossless: ``declared_law`` returns the law of the output. The rule is that of FasterDecoding/REST at 50a5fc1,
``rest/model/utils.py``, the nucleus mode of ``evaluate_posterior``, which is also Medusa's.

For each path, and each position on it, a token is drawn from p at that position. A path is accepted as far as its
tokens equal those drawn for it. The path accepted furthest is chosen, the first of several. The next token is drawn
from p after it, regardless of what was drawn there before. So two paths that share a position draw twice for it, and a
draft d is emitted with probability ``p(d) (2 - p(d))`` even if it is the only one. The nucleus is the whole pmf here
(top_p = 1).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from ..drafters.retrieval import retrieval_drafter, retrieved
from ..laws import law_of_rounds
from ..pmf import checked_model
from ..tree_rounds import tree_decoder
from ..trees import deterministic_draft, leaves, merged, path_tokens
from ..types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Reduction,
    Task,
    Tokens,
    Verified,
)


def rows_of(draft: Draft) -> list[Tokens]:
    """Return the tokens of every path of ``draft`` from the root to a leaf."""
    return [path_tokens(draft, leaf) for leaf in leaves(draft.parents)]


def one_draw_a_row(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Match every branch of the tree ``draft`` with draws from p that are its own, and keep the longest match.

    For each branch (a row of ``rows_of``), tokens are drawn from p one by one, until a token differs from the branch.
    Branches share no draws, although they may begin with the same tokens: this is the fault of the released code. The
    result has the longest match (the first of several), then one token drawn from p after the match.
    """
    best: Tokens = ()
    for row, path in enumerate(rows_of(draft)):
        matched: Tokens = ()
        for place, token in enumerate(path):
            if draws.categorical(target(prefix + matched), ("row", row, place)) != token:
                break
            matched = (*matched, token)
        best = matched if len(matched) > len(best) else best
    return Verified((*best, draws.categorical(target(prefix + best), ("bonus",))), len(best))


def build(task: Task, datastore: tuple[Tokens, ...] = (), longest: int = 4, depth: int = 4, nodes: int = 16) -> Decoder:
    """Return the decoder that retrieves drafts as ``rest`` does and verifies each path with its own draws.

    Suffixes of up to ``longest`` tokens are looked up in ``datastore`` and in the text so far; the tree has at most
    ``nodes`` nodes and ``depth`` levels.
    """
    return tree_decoder(task, retrieval_drafter(datastore, longest, depth, nodes), one_draw_a_row)


def declared_law(
    task: Task,
    prompt: Tokens,
    datastore: tuple[Tokens, ...] = (),
    longest: int = 4,
    depth: int = 4,
    nodes: int = 16,
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    The options are those of ``build``. A round emits the path of the tree with the most accepted tokens. Given the
    text, the numbers of accepted tokens of different paths are independent, so the law of the longest one follows from
    the law of each number.
    """
    target = checked_model(task.target, "target")

    def matches(prefix: Tokens, path: Tokens) -> list[tuple[Tokens, Any]]:
        result, reached = [], target(prefix).sum() * 0 + 1
        for place, token in enumerate(path):
            chance = target(prefix + path[:place])[token]
            result.append((path[:place], reached * (1 - chance)))
            reached = reached * chance
        return [*result, (path, reached)]

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        paths = retrieved(prefix, datastore, longest, min(depth, remaining - 1), nodes)
        for outcome in product(*(matches(prefix, path) for path in rows_of(deterministic_draft(merged(paths))))):
            mass, best = prod(chance for _, chance in outcome), max((path for path, _ in outcome), key=len, default=())
            for token, share in enumerate(target(prefix + best).tolist()):
                yield (*best, token), mass * share

    return law_of_rounds(task, prompt, committed)


ALGORITHM = Algorithm(
    name="rest-released",
    summary="each retrieved path is compared with its own draws from p, then p is drawn again (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"longest": 1, "depth": 1, "nodes": 2},
        {"datastore": ((0, 1, 1), (1, 0, 1)), "longest": 1, "depth": 2, "nodes": 3},
    ),
    paper="FasterDecoding/REST 50a5fc1, rest/model/utils.py, evaluate_posterior (nucleus)",
    declared_law=declared_law,
    systems=("REST", "Medusa"),
    reductions=(Reduction("autoregressive", "depth = 0", {"depth": 0}),),
)
