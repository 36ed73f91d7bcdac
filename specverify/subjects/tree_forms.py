"""The named forms of a verifier of trees: how its trees are drawn, and whether it decides one or several.

On the command line ``tree-top-k=module:callable``, ``batched-tree-without-replacement=module:callable``; ``same-``
before ``tree`` states that all rows of a batch share one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple, get_args

from specverify.base.arguments import argument_error, check_choice, check_flag
from specverify.base.callables import told_apart
from specverify.reference import Tokens
from specverify.reference.kv_cache import tree_depths
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.keys import keyed
from specverify.subjects.subject import Subject
from specverify.subjects.tree_batches import tree_batch_subject
from specverify.subjects.tree_verifier import Drafts, tree_subject

FORMS = ("tree", "batched_tree")


class TreeForm(NamedTuple):
    """The form of a verifier of trees: how its trees are drawn, and whether one call decides one or several."""

    drafts: Drafts
    batched: bool = False
    same_tree: bool = False
    """Whether all trees of a batch have one shape."""

    @property
    def word(self) -> str:
        """Return the name of the form on the command line."""
        words = ("batched" * self.batched, "same" * self.same_tree, "tree", self.drafts.replace("_", "-"))
        return "-".join(filter(None, words))


TREE_FORMS = {
    form.word: form
    for batched, same, drafts in product((False, True), (False, True), get_args(Drafts))
    if batched or not same
    for form in [TreeForm(drafts, batched, same)]
}


def tree_form(form: str, drafts: Any, same_tree: Any) -> TreeForm:
    """Return the form ``form`` ("tree" or "batched_tree") for trees drawn by ``drafts``.

    Raises ``ValueError`` if there is no such form.
    """
    if drafts is None:
        raise argument_error("drafts", drafts, f"one of {', '.join(get_args(Drafts))}: it decides which rule is right")
    check_choice(drafts, "drafts", get_args(Drafts))
    check_flag(same_tree, "same_tree")
    if same_tree and form == "tree":
        raise argument_error("same_tree", same_tree, 'False with form="tree", where there is one tree')
    return TreeForm(drafts, form == "batched_tree", same_tree)


def checked_trees(trees: Any) -> tuple[Tokens, ...] | None:
    """Return the validated shapes of trees; None if ``trees`` is None.

    Raises ``ValueError`` with one sentence for an invalid tree.
    """
    if trees is None:
        return None
    if not isinstance(trees, Sequence) or isinstance(trees, (str, bytes)) or not trees:
        raise argument_error(
            "trees", trees, "a sequence of at least one tree, each as its parents, such as ((-1, -1, 0),)"
        )
    for parents in trees:
        if not isinstance(parents, Sequence) or isinstance(parents, (str, bytes)) or not parents:
            raise argument_error("a tree", parents, "the parents of at least one node, such as (-1, -1, 0)")
        tree_depths(parents)
    if len({tuple(parents) for parents in trees}) < len(trees):
        raise argument_error("trees", trees, "each tree once")
    return tuple(tuple(map(int, parents)) for parents in trees)


def tree_form_subject(
    verify: BareVerifier, name: str, form: TreeForm, trees: tuple[Tokens, ...] | None = None
) -> Subject:
    """Return the subject of a verifier of trees in this ``form``.

    The subject gets the name by which the command line finds it.
    """
    called, alone = f"{form.word}={name}", told_apart(keyed(verify))
    if form.batched:
        return tree_batch_subject(alone, called, form.drafts, trees, form.same_tree)
    return tree_subject(alone, called, form.drafts, trees)
