"""Correct tree verifiers in NumPy, and the functions that make mutants of them by changing one part.

``walked`` goes down from the root; a rule decides at each node which child to continue with. ``parents`` has the parent
of each node (-1 is the root) and ``tokens`` the token of each node; ``p`` and ``q`` are the rows of the target and the
drafter (``subjects.tree_verifier``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from specverify.mutants.mutant import Mutant
from specverify.mutants.numpy_verifiers import drawn, owed
from specverify.reference import Claim, Tokens
from specverify.reference.tree_layouts import path_candidates, path_indices
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.forms import Drafts, Form
from specverify.subjects.subject import Subject, Variant
from specverify.subjects.tree_verifier import tree_subject

Choose = Callable[[Any, Any, Sequence[int], int], tuple[int | None, int]]
"""``choose(rng, p, nodes, above)`` decides about the children ``nodes`` of the node ``above``, whose target row is
``p``. It returns the accepted child or None, and the token to emit if no child is accepted."""

TREES: dict[Drafts, Tokens] = {
    "with_replacement": (-1, -1, 0),
    "without_replacement": (-1, -1, 0, 0),
    "top_k": (-1, -1, 0, 1, 1, 3),
}
"""Way in which candidates are drawn -> parents of the nodes of a small tree (-1: the root), of uneven depth."""


def below(parents: Any, node: int) -> list[int]:
    """Return the children of ``node`` in the order in which they were drawn; ``parents`` has each node's parent."""
    return [int(child) for child in np.flatnonzero(parents == node)]


def walked(rng: Any, p: Any, parents: Any, tokens: Any, choose: Choose) -> list[int]:
    """Verify one tree from the root down; return the accepted tokens and one more.

    ``p`` has the root's row first, then one row for each node. At each node ``choose(rng, row, children, node)`` is
    called with the target row of the node. It returns the child to continue with and a number that is ignored, or
    (None, token to emit).
    """
    node, kept = -1, list[int]()
    while children := below(parents, node):
        result, token = choose(rng, p[1 + node], children, node)
        if result is None:
            return [*kept, token]
        kept.append(int(tokens[result]))
        node = result
    return [*kept, drawn(rng, p[1 + node])]


def recursive_rejection(q: Any, tokens: Any, without: bool) -> Choose:
    """Return the rule of recursive rejection: siblings are tried in the order drawn.

    After each rejection, p is replaced by the normalised (p - q)+. If siblings were drawn ``without`` replacement, the
    q of a sibling excludes the earlier siblings. ``tokens`` are those of the nodes.
    """

    def choose(rng: Any, p: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        for node in nodes:
            law = q[node].copy()
            law[[tokens[other] for other in nodes if without and other < node]] = 0
            law = law / law.sum()
            if rng.random() * law[tokens[node]] < p[tokens[node]]:
                return node, -1
            p = owed(p, law) / owed(p, law).sum()
        return None, drawn(rng, p)

    return choose


def looked_up(tokens: Any) -> Choose:
    """Return the rule that draws a token from p and looks for a child with this token.

    If there is such a child, verification continues there. If not, the token is emitted.
    """

    def choose(rng: Any, p: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        token = drawn(rng, p)
        return next((node for node in nodes if tokens[node] == token), None), token

    return choose


def with_replacement(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify a tree whose siblings were drawn independently, by recursive rejection."""
    return walked(np.random.default_rng(), p, parents, tokens, recursive_rejection(q, tokens, without=False))


def without_replacement(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify a tree whose siblings were drawn without replacement, by recursive rejection."""
    return walked(np.random.default_rng(), p, parents, tokens, recursive_rejection(q, tokens, without=True))


def top_k(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify a tree of top-k candidates: at each node, draw a token from p and continue at the child with this token.

    If no child has the token, it is emitted as the last token.
    """
    return walked(np.random.default_rng(), p, parents, tokens, looked_up(tokens))


RIGHT: dict[Drafts, BareVerifier] = {
    "with_replacement": with_replacement,
    "without_replacement": without_replacement,
    "top_k": top_k,
}


@cache
def in_batch(verify: BareVerifier) -> BareVerifier:
    """Return the verifier of batches that applies ``verify``, a verifier of one tree, to each tree."""

    def batch(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
        none = [None] * len(p)
        return [verify(*tree) for tree in zip(p, none if q is None else q, parents, tokens, strict=True)]

    return batch


def greedy(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Accept the path of the target's argmax tokens for as long as they are candidates.

    Returns the accepted tokens and one more argmax.
    """
    node, kept = -1, list[int]()
    while True:
        kept.append(int(p[1 + node].argmax()))
        following = [child for child in below(parents, node) if tokens[child] == kept[-1]]
        if not following:
            return kept
        node = following[0]


def along_paths(parents: Any, tokens: Any, padding: int) -> tuple[Any, Any]:
    """Return two arrays ``[paths, 1 + depth]``: the row indices of p along each path, and the tokens on it.

    Column 0 belongs to the root: row 0, and token 0 as a stand-in. After the end of a short path the row index is -1
    and the token ``padding``.
    """
    indices = path_indices(parents)
    return indices, path_candidates(tokens, indices, padding=padding)


def planted_tree(
    name: str,
    summary: str,
    drafts: Drafts,
    *,
    citation: str,
    killed_by: str,
    category: str = "J",
    batched: bool = False,
    control: BareVerifier | None = None,
    claims: frozenset[Claim] = frozenset(Claim),
) -> Callable[[BareVerifier], Mutant]:
    """Return a decorator that makes a tree verifier a mutant.

    ``drafts`` is the way in which trees are drawn, such as "top_k". The default ``control`` is the correct verifier for
    such trees. ``batched``: the verifier takes a batch of trees. ``claims`` are the promises of the subject. The other
    parameters are fields of ``Mutant``, such as ``killed_by``, the check that must detect the bug.
    """
    right = control or RIGHT[drafts]

    def subject(verify: BareVerifier, name: str) -> Subject:
        made = tree_subject(verify, name, Form(drafts=drafts, batched=batched), (TREES[drafts],))._replace(
            claims=claims
        )
        if not batched:
            return made
        return made.with_situations(Variant, tuple(variant for variant in made.variants if variant.joint))

    def plant(verify: BareVerifier) -> Mutant:
        return Mutant(
            name,
            summary,
            category,
            citation,
            killed_by,
            open=partial(subject, verify, f"mutant:{name}"),
            control=lambda: subject(in_batch(right) if batched else right, f"correct numpy_trees.{right.__name__}"),
        )

    return plant
