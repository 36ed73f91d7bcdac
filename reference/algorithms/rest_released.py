"""REST as released: every path draws its own tokens, and the token after the match is drawn anew. Declared bias.

FasterDecoding/REST at 50a5fc1, ``rest/model/utils.py``, the nucleus mode of ``evaluate_posterior``, which is that of
Medusa's: for each row of the table of paths, and each place on it, a token is drawn from p at that place; a row is
accepted as far as its tokens equal those drawn *for it*. The row accepted furthest wins, the first of several, and the
next token is drawn from p behind it, whatever was drawn there before. Two rows that share a place draw twice for it,
and a draft d comes out with probability ``p(d) (2 - p(d))`` even where it is alone. The nucleus is whole here (top_p =
1).
"""

from __future__ import annotations

from itertools import product
from typing import Any

from reference.drafters.retrieval import retrieval_drafter
from reference.pmf import checked_model
from reference.rounds import commit
from reference.tree_rounds import tree_decoder
from reference.trees import leaves, path_tokens
from reference.types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Reduction,
    Site,
    Task,
    Tokens,
    Verified,
)


def rows_of(draft: Draft) -> list[Tokens]:
    """Return the paths from the root to a leaf."""
    return [path_tokens(draft, leaf) for leaf in leaves(draft.parents)]


def one_draw_a_row(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Match every row with draws of its own, then draw again behind the longest match."""
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
    """Retrieve as ``rest`` does."""
    return tree_decoder(task, retrieval_drafter(datastore, longest, depth, nodes), one_draw_a_row)


def declared_law(
    task: Task,
    prompt: Tokens,
    datastore: tuple[Tokens, ...] = (),
    longest: int = 4,
    depth: int = 4,
    nodes: int = 16,
) -> dict[Tokens, Any]:
    """Return new tokens -> probability: the lengths of all rows are independent given the text."""
    target, drafter = checked_model(task.target, "target"), retrieval_drafter(datastore, longest, depth, nodes)
    law: dict[Tokens, Any] = {}

    def matches(prefix: Tokens, path: Tokens) -> list[tuple[Tokens, Any]]:
        found, reached = [], target(prefix).sum() * 0 + 1
        for place, token in enumerate(path):
            chance = target(prefix + path[:place])[token]
            found.append((path[:place], reached * (1 - chance)))
            reached = reached * chance
        return [*found, (path, reached)]

    def extend(new: Tokens, remaining: int, weight: Any) -> None:
        if not remaining:
            law[new] = law.get(new, 0) + weight
            return
        prefix = prompt + new
        draft = drafter.propose(_NoDraws(), None, prefix, remaining - 1, lambda q, token: False)
        for outcome in product(*(matches(prefix, path) for path in rows_of(draft))):
            mass, best = weight, max((path for path, _ in outcome), key=len, default=())
            for _, chance in outcome:
                mass = mass * chance
            for token, share in enumerate(target(prefix + best).tolist()):
                if mass * share > 0:
                    kept, left = commit((*best, token), remaining, task.eos)
                    extend(new + kept, left, mass * share)

    extend((), task.horizon, 1)
    return law


class _NoDraws:
    def categorical(self, pmf: Pmf, site: Site) -> int:
        raise AssertionError(f"retrieval draws nothing, but asked for {site} of {pmf}")


ALGORITHM = Algorithm(
    name="rest-released",
    summary="each retrieved path is matched with draws of its own, then p is drawn again (declared bias)",
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
