"""Functions that build the decoders of planted bugs of draft trees: another verifier, choice of nodes, or tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from specverify.reference import Decoder, Draft, Draws, Pmf, Task, Tokens, Verifier
from specverify.reference.drafters.tree import Pick, tree_drafter, without_replacement
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import SiblingRule, descend, tree_decoder
from specverify.reference.trees import path_tokens, regular_tree
from specverify.reference.verifiers.recursive_rejection import recursive_rejection

PAIR = ({"branching": (2,)},)
"""Options that suffice for most bugs of a tree: two candidates for one position."""


def with_tree(verify: Verifier = recursive_rejection, pick: Pick = without_replacement) -> Callable[..., Decoder]:
    """Return the build function of a decoder of trees in which all nodes of one depth have equally many children.

    ``pick`` draws the children of a node, and ``verify`` verifies the tree. The build function takes the task and
    ``branching``: ``branching[i]`` is the number of children of each node at depth i.
    """

    def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
        return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), pick), verify)

    return build


def with_changed_tree(change: Callable[[Draft, Pmf], Draft]) -> Callable[..., Decoder]:
    """Return the build function of recursive rejection on a changed tree.

    ``change(tree, q)`` returns the tree to verify, given the drafted tree and the draft pmf of the root. The build
    function takes the task and ``branching``: ``branching[i]`` is the number of children of each node at depth i.
    """

    def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
        drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)

        def propose(draws: Draws, state: Any, prefix: Tokens, depth: int, stop: Callable[[Pmf, int], bool]) -> Draft:
            return change(drafter.propose(draws, state, prefix, depth, stop), draft_model(task)(prefix))

        return tree_decoder(task, drafter._replace(propose=propose), recursive_rejection)

    return build


def by_siblings(rule: SiblingRule) -> Verifier:
    """Return the verifier that applies ``rule`` to the siblings of each node, from the root down.

    ``rule(draws, p, tokens, pmfs, depth)`` gets the target row of a node, its children and the q of each. It returns
    the emitted token and whether it is a child, where verification continues.
    """
    return partial(descend, rule=rule)


def texts_of_rows(prefix: Tokens, draft: Draft) -> list[Tokens]:
    """Return the text before each row of a tree's pass: ``prefix`` for the root, then ``prefix`` + a node's path."""
    return [prefix, *(prefix + path_tokens(draft, node) for node in range(len(draft.tokens)))]
