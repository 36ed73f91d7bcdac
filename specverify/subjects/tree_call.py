"""One call of a verifier of trees: the arguments, the other trees of its batch, and the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.reference import Draft, Draws, LanguageModel, Tokens
from specverify.reference.trees import children, leaves, path_tokens
from specverify.subjects.array_kinds import Attempt, BareVerifier, arrays_of
from specverify.subjects.checked_calls import Convert, called
from specverify.subjects.forms import Form
from specverify.subjects.subject import Context
from specverify.subjects.tree_answers import TreeAnswer, read_answer, read_answers


class TreeRows(NamedTuple):
    """The arguments of a call of a verifier for one tree.

    ``parents`` has the parent of each node (-1: the root), and ``tokens`` its token.
    """

    p: Any
    """Target probabilities ``[nodes + 1, vocabulary]``."""
    q: Any
    """Draft probabilities ``[nodes, vocabulary]``."""
    parents: Tokens
    tokens: Tokens


def rows_of(target: LanguageModel, q_of: LanguageModel, prefix: Tokens, draft: Draft) -> TreeRows:
    """Return the arguments of a verifier for the tree ``draft`` after the text ``prefix``.

    The parents and tokens are those of ``draft``; ``target`` gives the rows of p, and ``q_of`` those of q.
    """
    texts = [prefix, *(prefix + path_tokens(draft, node) for node in range(len(draft.tokens)))]
    p = np.stack([np.asarray(target(text)) for text in texts])
    q = np.stack([np.asarray(q_of(texts[1 + parent])) for parent in draft.parents])
    return TreeRows(p, q, draft.parents, draft.tokens)


def neighbours(rows: TreeRows, same_tree: bool) -> tuple[TreeRows, TreeRows]:
    """Return two trees with certain outcomes, to be verified in the same batch as the tree ``rows``.

    In the first tree the last child of every node is accepted, from the root down to a leaf. In the second tree all
    children of the root are rejected. If ``same_tree``, both have the shape of ``rows``. Otherwise they are a chain and
    a binary tree with as many nodes.
    """
    count = len(rows.parents)
    path, pairs = tuple(range(-1, count - 1)), tuple((node - 2) // 2 if node > 1 else -1 for node in range(count))
    shapes = (rows.parents, rows.parents) if same_tree else (path, pairs)
    return certain_tree(shapes[0], rows.p, True), certain_tree(shapes[1], rows.p, False)


def certain_tree(parents: Tokens, like: Any, accepted: bool) -> TreeRows:
    """Return a tree of the shape ``parents`` with a certain outcome, in the vocabulary and dtype of the rows ``like``.

    If ``accepted``, the last child of every node is accepted, from the root down to a leaf. Otherwise every child is
    rejected, unless a node has as many children as there are tokens.
    """
    vocabulary = like.shape[1]
    rows = np.zeros((len(parents) + 1, vocabulary), dtype=like.dtype)
    rows[:, -1 if accepted else 0] = 1
    tokens = [0] * len(parents)
    for node in range(-1, len(parents)):
        below = children(parents, (node,))
        for place, child in enumerate(below):
            tokens[child] = (vocabulary - len(below) + place if accepted else 1 + place) % vocabulary
    for leaf in leaves(parents):
        rows[1 + leaf] = np.eye(vocabulary, dtype=like.dtype)[0]
    even = np.full((len(parents), vocabulary), 1 / vocabulary, dtype=like.dtype)
    return TreeRows(rows, even, parents, tuple(tokens))


def decided(
    verify: BareVerifier, form: Form, trees: Sequence[TreeRows], answered: Context, draws: Draws
) -> tuple[TreeAnswer, ...]:
    """Return the answer of ``verify`` for each of ``trees``, from one call inside ``answered(draws)``.

    ``form`` is the form of the verifier. The tokens of the answers are recorded with the call; their weights are not.
    """
    result: list[tuple[TreeAnswer, ...]] = []

    def tokens(answer: Any) -> tuple[Tokens, ...]:
        result.append(_read(form, trees, answer))
        return tuple(tree.tokens for tree in result[-1])

    given, convert = _arrays(form, trees), arrays_of(verify, attempt_of(form))
    with answered(draws):
        called(convert, given, partial(_invoked, verify, form), tokens, verify)
    return result[0]


@lru_cache(maxsize=16)
def attempt_of(form: Form) -> Attempt:
    """Return a function ``attempt(verify, convert)`` that makes a first call of a verifier, on small trees.

    It shows which kind of arrays the verifier accepts: ``convert`` converts the arguments. ``form`` is the form of the
    verifier.
    """

    def attempt(verify: BareVerifier, convert: Convert) -> Any:
        p, q = np.array([[2, 1], [1, 2], [1, 1]]) / [[3], [3], [2]], np.array([[1, 2]] * 2) / 3
        either = TreeRows(p, q, (-1, 0), (1, 0))
        trees = (*neighbours(either, True), either) if form.batched else (either,)
        return _read(form, trees, _invoked(verify, form, *convert(_arrays(form, trees))))

    return attempt


def _arrays(form: Form, trees: Sequence[TreeRows]) -> dict[str, Any]:
    """Return the arguments of a call for ``trees`` by name; without q for top-k drafts.

    The arguments are stacked if the verifier, whose form is ``form``, takes a batch.
    """
    columns = [np.stack([np.asarray(tree[place]) for tree in trees]) for place in range(4)]
    given = dict(zip(TreeRows._fields, columns if form.batched else [column[0] for column in columns], strict=True))
    return {name: array for name, array in given.items() if name != "q" or form.drafts != "top_k"}


def _invoked(verify: BareVerifier, form: Form, *arrays: Any) -> Any:
    """Call ``verify`` on converted arrays and return its result; q is None if ``form`` is one of top-k drafts."""
    return verify(arrays[0], None, *arrays[1:]) if form.drafts == "top_k" else verify(*arrays)


def _read(form: Form, trees: Sequence[TreeRows], answer: Any) -> tuple[TreeAnswer, ...]:
    vocabulary = trees[0].p.shape[1]
    if form.batched:
        return read_answers(answer, [tree.parents for tree in trees], vocabulary)
    return (read_answer(answer, trees[0].parents, vocabulary),)
