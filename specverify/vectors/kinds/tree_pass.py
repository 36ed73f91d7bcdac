"""Test vectors ``tree``: the attention mask for one forward pass over a tree of drafts, and the accepted path.

The parent of node i is node ``parents[i]``, or with -1 the last known token, which is fed before the nodes. The rows of
p are the root's row, then one row for each node. Siblings are tried in node order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.laws.paths import paths
from specverify.reference import Draft, Draws, Pmf, Site, Tokens, Verified, one_hot
from specverify.reference.kv_cache import tree_mask
from specverify.reference.trees import children, path_tokens, position_ids, regular_tree, retrieve_indices
from specverify.reference.verifiers.recursive_rejection import recursive_rejection
from specverify.vectors.given import UNASKED, GivenUniforms, uniform_for
from specverify.vectors.json_models import pmf_of, row_pairs, rows_of, support_of
from specverify.vectors.judging import judged_exactly
from specverify.vectors.vector import Answer, Kind, Vector, text, valid

KIND = "tree"
LAYOUT, GREEDY, RECURSIVE = "layout", "greedy", "recursive-rejection"
Inputs = Mapping[str, Any]
TREES: tuple[Tokens, ...] = (
    (),
    (-1,),
    (-1, 0, 1),
    (-1, -1),
    (-1, -1, 0, 1),
    (-1, 0, 0, -1, 3),
    (-1, -1, 1, 0, 2, 2),
    regular_tree((2, 2, 1)),
    regular_tree((3, 1)),
)
"""Trees as the parent of each node (-1 for the root): chains, siblings, and trees whose nodes are not ordered by depth.
"""
UNASKED_COIN = Fraction(1, 64)
"""Uniform of a sibling that must not be tried, such that it would be accepted."""


def layout_of(inputs: Inputs) -> Answer:
    """Return the attention mask, position ids and root-to-leaf paths of the tree in a vector's inputs.

    ``known`` in the inputs is the number of tokens before the tree.
    """
    parents, known = tuple(inputs["parents"]), inputs["known"]
    mask = np.asarray(tree_mask(parents, known), dtype=int)
    return {
        "mask": ["".join(map(str, row)) for row in mask.tolist()],
        "positions": position_ids(parents, known).tolist(),
        "paths": retrieve_indices(parents).tolist(),
    }


def accepted_of(inputs: Inputs, draws: Draws) -> Answer:
    """Return the tokens that recursive rejection emits on a vector's inputs, and the nodes of the accepted path.

    ``draws`` answers its random decisions.
    """
    verified = verified_by(inputs, draws)
    kept = verified.tokens[: verified.accepted]
    return {"accepted": verified.accepted, "tokens": list(verified.tokens), "path": list(_path(inputs, kept))}


def verified_by(inputs: Inputs, draws: Draws) -> Verified:
    """Return the result of recursive rejection on the inputs of a vector, with the given draws."""
    return recursive_rejection(draws, _target(inputs), (), draft_of(inputs))


def draft_of(inputs: Inputs) -> Draft:
    """Return the tree of drafts in a vector's inputs; without ``q`` the drafter is deterministic."""
    rows = inputs.get("q") or [None] * len(inputs["tokens"])
    return Draft(
        tuple(inputs["tokens"]), tuple(inputs["parents"]), tuple(None if row is None else pmf_of(row) for row in rows)
    )


def _target(inputs: Inputs) -> Any:
    draft = draft_of(inputs)
    rows: dict[Tokens, Pmf] = {(): pmf_of(inputs["p"][0])}
    rows |= {path_tokens(draft, node): pmf_of(inputs["p"][1 + node]) for node in range(len(draft.tokens))}
    return rows.__getitem__


def _path(inputs: Inputs, kept: Tokens) -> Tokens:
    path: Tokens = ()
    for token in kept:
        at = path[-1:] or (-1,)
        path += (next(node for node in children(inputs["parents"], at) if inputs["tokens"][node] == token),)
    return path


def draws_of(inputs: Inputs) -> Draws:
    """Return the interpreter that answers draws with the coins and the final uniform of a vector's inputs."""

    def uniform(site: Site) -> Fraction:
        if site[0] == "accept":
            return Fraction(inputs["coins"][site[1]][site[2]]) if "coins" in inputs else UNASKED
        return Fraction(inputs.get("final", UNASKED))

    return GivenUniforms(uniform)


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``tree``."""
    return (*_layouts(), *_greedy(), *_recursive())


def _layouts() -> Iterator[Vector]:
    for number, parents in enumerate(TREES):
        for known in (1, 4):
            inputs = {"parents": list(parents), "known": known}
            name = f"{LAYOUT}/tree{number}-known{known}"
            yield valid(name, KIND, inputs, layout_of(inputs), LAYOUT, notes=("tree-position",))


def _greedy() -> Iterator[Vector]:
    """Yield, for each node of each tree, the vector in which the target's argmax follows the path to that node."""
    for number, parents in enumerate(TREES[1:], start=1):
        tokens = _sibling_tokens(parents)
        for last in range(-1, len(parents)):
            path = {last, *_ancestors(parents, last)}
            rows = [_row_to(parents, tokens, node, path) for node in range(-1, len(parents))]
            inputs = {"parents": list(parents), "tokens": list(tokens), "p": rows_of(rows)}
            answer = accepted_of(inputs, draws_of(inputs))
            notes = ("tree-path", "siblings")
            yield valid(f"{GREEDY}/tree{number}-to{last + 1}", KIND, inputs, answer, GREEDY, notes=notes)


def _row_to(parents: Sequence[int], tokens: Tokens, node: int, path: set[int]) -> Pmf:
    """Return the pmf at ``node`` with which greedy verification follows a given path through the tree ``parents``.

    It is one-hot on the token of the node's child in ``path``, the nodes of the path. If the path ends at the node, it
    is one-hot on token 4, which no child has. ``tokens`` has the tokens of all nodes.
    """
    below = [child for child in children(parents, (node,)) if child in path]
    like = pmf_of(["1"] + ["0"] * 4)
    return one_hot(tokens[below[0]] if below else 4, like)


def _ancestors(parents: Sequence[int], node: int) -> set[int]:
    result = set()
    while node >= 0:
        node = parents[node]
        result.add(node)
    return result


def _sibling_tokens(parents: Sequence[int]) -> Tokens:
    """Return a token from 0 to 3 for each node of the tree ``parents``.

    Siblings have different tokens; other nodes may have equal ones.
    """
    return tuple((1 + parent + list(parents[:node]).count(parent)) % 4 for node, parent in enumerate(parents))


def _recursive() -> Iterator[Vector]:
    """Yield a vector for each path of recursive rejection through small trees with drafts drawn with replacement."""
    for number, parents in ((3, TREES[3]), (4, TREES[4]), (8, TREES[8])):
        for shape in ("generic", "zeros", "disjoint"):
            p, q = row_pairs(shape, 4, 1 + len(parents), KIND)
            rows = [q[1 + parent] for parent in parents]
            tokens = _drawn(parents, rows)
            if tokens is None:
                continue
            given = {"parents": list(parents), "tokens": list(tokens), "p": rows_of(p), "q": rows_of(rows)}
            for way in paths(lambda draws, given=given: verified_by(given, draws)):  # type: ignore[misc]
                inputs = given | _numbers(parents, way.decisions)
                answer = accepted_of(inputs, draws_of(inputs))
                word = "".join(map(str, answer["tokens"])) + "-n" + "".join(map(str, answer["path"]))
                name = f"{RECURSIVE}/{shape}-tree{number}-e{word}"
                yield valid(name, KIND, inputs, answer, RECURSIVE, notes=("siblings", "tree-path", "residual"))


def _drawn(parents: Sequence[int], rows: Sequence[Pmf]) -> Tokens | None:
    """Return for each node of the tree ``parents`` a token of positive probability under its row of ``rows``.

    Siblings get different tokens. The result is None if there is no such token for some node.
    """
    tokens: Tokens = ()
    for node, row in enumerate(rows):
        taken = {tokens[other] for other in children(parents[:node], (parents[node],))}
        free = [token for token in support_of(row) if token not in taken]
        if not free:
            return None
        tokens += (free[-1],)
    return tokens


def _numbers(parents: Sequence[int], decisions: Any) -> dict[str, Any]:
    """Return the coins ``[depth][sibling]`` and the final uniform of a vector's inputs.

    With them the verifier of the tree ``parents`` makes the ``decisions``: the draws of one path of the verifier, each
    with its site, weights and outcome.
    """
    result = {step.site: uniform_for(step.weights, step.outcome) for step in decisions}
    widest = max(len(children(parents, (node,))) for node in range(-1, len(parents)))
    levels = 1 + max(len(_ancestors(parents, node)) - 1 for node in range(len(parents)))
    coins = [[text(result.get(("accept", depth, k), UNASKED_COIN)) for k in range(widest)] for depth in range(levels)]
    last = next((uniform for site, uniform in result.items() if site[0] != "accept"), UNASKED)
    return {"coins": coins, "final": text(last)}


TREE = Kind(
    KIND,
    "the attention mask, positions and paths of a tree of drafts, and the accepted path",
    vectors,
    {
        "mask": "one string for each row of the pass (root, then nodes); character j is 1 if the row attends to "
        "j. The numbers j count first the known tokens, then the nodes",
        "positions": "the position of every row",
        "paths": "for every leaf, depth first, the rows from the root to the leaf, padded with -1",
        "accepted": "how many drafts are accepted",
        "tokens": "the accepted drafts and the token after them",
        "path": "the nodes of the accepted drafts",
    },
    judged_exactly,
)
