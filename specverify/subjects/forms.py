"""The forms of a verifier, on three axes: probabilities or logits, one row or a batch, a chain or a tree of drafts.

  verify(p, q, draft_tokens) -> emitted tokens
  verify(target_logits, draft_logits, draft_tokens, temperature, top_k, top_p, min_p) -> emitted tokens
  verify(p, q, parents, tokens) -> emitted tokens, or (accepted tokens, weights of the next token)
  verify(p, draft_tokens) -> emitted tokens, if the drafter has no probabilities

A batch adds a leading dimension to all arguments, and one answer for each row. ``verifier``, ``logits_verifier``,
``batched_verifier`` and ``tree_verifier`` describe the arguments.

On the command line ``row=module:callable``, ``batched-logits=module:callable``, ``tree-top-k=module:callable``;
``same-`` before ``tree`` states that all rows of a batch share one tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

from specverify.base.arguments import argument_error, check_choice, check_flag
from specverify.reference import Tokens
from specverify.reference.kv_cache import tree_depths

Drafts = Literal["with_replacement", "without_replacement", "top_k"]
"""How the children of a node of a tree were drawn."""


class Form(NamedTuple):
    """The form of a verifier's arguments: probabilities or logits, one row or a batch, a chain or a tree of drafts."""

    logits: bool = False
    """Whether it takes logits and sampling parameters in place of probabilities."""
    batched: bool = False
    """Whether one call decides several rows or trees."""
    drafts: Drafts | None = None
    """How trees are drawn; None if the drafts are a chain."""
    same_tree: bool = False
    """Whether all trees of a batch have one shape."""
    without_q: bool = False
    """Whether a verifier of chains takes no q, because each draft is certain (``certain_drafts``)."""

    @property
    def word(self) -> str:
        """Return the name of the form on the command line."""
        words = ["batched"] * self.batched + ["logits"] * self.logits
        if self.drafts is not None:
            words += ["same"] * self.same_tree + ["tree", self.drafts.replace("_", "-")]
        return "-".join(words) or "row"

    @property
    def kind(self) -> str:
        """Return the kind of verifier, such as "row" or "batched logits", by which a quick run selects its cases."""
        return "tree" if self.drafts is not None else self.word.replace("-", " ")


ROW, BATCHED, LOGITS, BATCHED_LOGITS = Form(), Form(batched=True), Form(logits=True), Form(logits=True, batched=True)
TREES = [
    Form(False, batched, drafts, same)
    for batched, same, drafts in product((False, True), (False, True), get_args(Drafts))
    if batched or not same
]
FORMS = {form.word: form for form in (ROW, BATCHED, LOGITS, BATCHED_LOGITS, *TREES)}
"""Form by its name on the command line."""


def form_of_chains(name: str | None) -> Form | None:
    """Return the form of a verifier of chains with this ``name``, such as "batched_logits"; None for None."""
    return None if name is None else FORMS[name.replace("_", "-")]


def tree_form(form: str, drafts: Any, same_tree: Any) -> Form:
    """Return the form of a verifier of trees: ``form`` is "tree" or "batched_tree".

    ``drafts`` names the method by which the trees are drawn, such as "top_k". ``same_tree`` states that all trees of a
    batch have one shape. Raises ``ValueError`` for another method, and for ``same_tree`` without a batch.
    """
    if drafts is None:
        raise argument_error("drafts", drafts, f"one of {', '.join(get_args(Drafts))}: it decides which rule is right")
    check_choice(drafts, "drafts", get_args(Drafts))
    check_flag(same_tree, "same_tree")
    if same_tree and form == "tree":
        raise argument_error("same_tree", same_tree, 'False with form="tree", where there is one tree')
    return Form(False, form == "batched_tree", drafts, same_tree)


def checked_trees(trees: Any) -> tuple[Tokens, ...] | None:
    """Return ``trees``, the shapes of trees, after validation; None if ``trees`` is None.

    A shape is the sequence of the parents of its nodes, with -1 for a child of the root. Raises ``ValueError`` with one
    sentence for an invalid shape, and if two shapes are equal.
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
