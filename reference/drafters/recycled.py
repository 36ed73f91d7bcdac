"""A matrix of the target's latest most probable next tokens (Token Recycling, Luo et al. 2408.08696).

The rule is that of the released code (Luowaterbi/TokenRecycling at 1b4c05c, ``evaluation/inference_recycling.py``). Row
t of the matrix has the ``width`` most probable next tokens of the target when the token t was fed last, accepted or
not. Rows begin as zeros. The matrix fills a fixed template, in which a node is a path of ranks: the node (i, j) has the
token with rank j in the row of the token at node (i).

After a pass the rows of all tokens that were fed are written, in the order of the tree. So for a token that was fed
twice the last row counts. Everything is computed in the verifying pass: candidates depend on the past alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..pmf import top_tokens
from ..trees import deterministic_draft, merged
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens

Matrix = tuple[tuple[int, Tokens], ...]
"""Pairs (token, candidate successors of that token), sorted by token."""


def filled(matrix: Mapping[int, Tokens], template: tuple[Tokens, ...], last: int, width: int) -> dict[Tokens, Tokens]:
    """Return node -> tokens on the path to the node, for the root () and every node of ``template`` (a path of ranks).

    ``matrix`` maps a token to its row of ``width`` tokens; the row of a token without one is all 0. ``last`` is the
    last token of the text, at the root.
    """
    paths: dict[Tokens, Tokens] = {(): ()}
    for ranks in template:
        above = paths[ranks[:-1]]
        row = matrix.get((last, *above)[-1], (0,) * width)
        paths[ranks] = (*above, row[ranks[-1]])
    return paths


def recycling_drafter(template: tuple[Tokens, ...], width: int) -> Drafter:
    """Return a drafter of a tree of tokens that were probable under the target earlier.

    A round passes gamma; nodes below level gamma are left out. ``template`` is the whole tree: a node is a path of
    ranks, and rank r selects the r-th of the ``width`` stored successors of the token above. Raises ``ValueError`` for
    a node without its parent before it, or a rank not below ``width``.
    """
    for place, ranks in enumerate(template):
        if not ranks or (ranks[:-1] and ranks[:-1] not in template[:place]) or max(ranks) >= width or min(ranks) < 0:
            raise ValueError(
                f"node {ranks} of the template has no parent before it, or a rank outside 0 to {width - 1}"
            )

    def propose(draws: Draws, state: Matrix, prefix: Tokens, gamma: int, stop: Callable[[Pmf, int], bool]) -> Draft:
        paths = filled(dict(state), template, prefix[-1], width)
        return deterministic_draft(merged(path for path in paths.values() if len(path) <= gamma))

    def observe(state: Matrix, tokens: Tokens, start: int, target: LanguageModel) -> Matrix:
        prefix, matrix = tokens[:start], dict(state)
        for path in filled(matrix, template, prefix[-1], width).values():
            result = top_tokens(target(prefix + path), width)
            matrix[(prefix + path)[-1]] = result + (result[-1],) * (width - len(result))
        return tuple(sorted(matrix.items()))

    return Drafter(init=lambda prompt: (), propose=propose, observe=observe)
