"""A verifier of batches of trees: one call decides several trees.

  verify(p, q, parents, tokens) -> an answer for each tree, as in ``tree_verifier``

``p`` is ``[B, nodes + 1, vocabulary]``, ``q`` ``[B, nodes, vocabulary]`` (None for top-k drafts), ``parents`` and
``tokens`` are ``[B, nodes]``: all trees have the same number of nodes. Each has a shape of its own, unless
``same_tree`` states that all rows share one. It returns ``[B, most tokens]`` padded with negative numbers, or a
sequence of answers.

The law of a tree must not depend on its neighbours. A tree is decided alone, and as the third of three: the first is
accepted along its last children, the second is rejected at once, both with certainty, so they add no path.
``rows_are_independent`` decides it together with an equally random tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from specverify.intercept.everywhere import answered_everywhere
from specverify.reference import Decoder, Draft, Draws, Task, Tokens
from specverify.reference.drafters.tree import tree_drafter
from specverify.reference.kv_cache import tree_depths
from specverify.reference.models import draft_model
from specverify.reference.trees import children, leaves
from specverify.reference.types import never
from specverify.subjects.array_kinds import Attempt, BareVerifier, arrays_of
from specverify.subjects.batched_verifier import of_rows
from specverify.subjects.checked_calls import Convert
from specverify.subjects.subject import Context, EngineProgram, Subject, Variant
from specverify.subjects.tree_answers import TreeAnswer, read_answers
from specverify.subjects.tree_verifier import (
    DRAFTING,
    Drafts,
    TreeRows,
    all_of,
    answers_of,
    arrays_given,
    best_decoder,
    drafter_decoder,
    invoked,
    label_of,
    rows_of,
    subject_of,
    verifier_of,
)
from specverify.subjects.verifier import variant_of

MINE = 2
"""The index of the examined tree in its batch."""


def tree_batch_subject(
    verify: BareVerifier, name: str, drafts: Drafts, trees: tuple[Tokens, ...] | None = None, same_tree: bool = False
) -> Subject:
    """Return the subject of a verifier of batches of trees; it claims to be lossless and optimal.

    ``drafts`` states how trees are drawn, and ``trees`` are the shapes to examine (None: the default); the first is
    also examined alone.
    """
    shapes = trees or DRAFTING[drafts].trees[1:2]
    beside = f"tree {MINE + 1} of {MINE + 1}" + (" of one shape" if same_tree else "")

    def variant(shape: Tokens, company: bool, said: str, **more: Any) -> Variant:
        make = partial(build, verify, drafts, shape, company, same_tree)
        return variant_of(f"{label_of(drafts, shape)}, {said}", make, best=partial(best_decoder, drafts, shape), **more)

    together = {"joint": partial(two_trees, verify, drafts, same_tree)}
    variants = [variant(shapes[0], False, "alone"), *(variant(shape, True, beside, **together) for shape in shapes)]
    return subject_of(verify, name, drafts, shapes, tuple(variants))


def build(
    verify: BareVerifier,
    drafts: Drafts,
    shape: Tokens,
    company: bool,
    same_tree: bool,
    task: Task,
    answered: Context = answered_everywhere,
) -> Decoder:
    """Return the decoder that draws trees of one shape from q and decides them by ``verify``, alone or in a batch.

    ``company`` states whether a tree is decided in a batch. ``answered(draws)`` is the context of the call; by default
    it intercepts random calls.
    """

    def decide(draws: Draws, rows: TreeRows) -> TreeAnswer:
        batch = (*neighbours(rows, same_tree), rows) if company else (rows,)
        return decided(verify, drafts, batch, answered, draws)[-1]

    return drafter_decoder(task, drafts, shape, verifier_of(task, decide))


def decided(
    verify: BareVerifier, drafts: Drafts, batch: Sequence[TreeRows], answered: Context, draws: Draws
) -> tuple[TreeAnswer, ...]:
    """Return the result of ``verify`` for each tree of ``batch``, from one call."""
    given, convert = arrays_given(tuple(batch), drafts, batched=True), arrays_of(verify, _attempt_of(drafts))
    read = partial(read_answers, trees=[rows.parents for rows in batch], vocabulary=batch[0].p.shape[1])
    with answered(draws):
        return answers_of(convert, given, partial(invoked, verify, drafts), read)


def neighbours(rows: TreeRows, same_tree: bool) -> tuple[TreeRows, TreeRows]:
    """Return two neighbours for a tree like ``rows``: one accepted along its last children, one rejected at once."""
    count = len(rows.parents)
    path, pairs = tuple(range(-1, count - 1)), tuple((node - 2) // 2 if node > 1 else -1 for node in range(count))
    shapes = (rows.parents, rows.parents) if same_tree else (path, pairs)
    return certain_tree(shapes[0], rows.p, True), certain_tree(shapes[1], rows.p, False)


def certain_tree(parents: Tokens, like: Any, accepted: bool) -> TreeRows:
    """Return a tree that is accepted or rejected with certainty, in the vocabulary and dtype of ``like``.

    If ``accepted``, p is certain of the last token everywhere, and of the first token after a leaf; the last child of
    every node is the last token. Otherwise p is certain of the first token, which no child has if there are enough
    other tokens.
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


def two_trees(verify: BareVerifier, drafts: Drafts, same_tree: bool, task: Task, prompt: Tokens) -> EngineProgram:
    """Return one call that decides a tree after the prompt and another tree after a longer text.

    Drawn trees have one node if the vocabulary is above 2, because the numbers of paths multiply. If q has too few
    tokens to fill one tree, both are cut, because all trees of a batch have the same number of nodes.
    """
    shapes = _pair(drafts, same_tree, len(task.target(prompt)))
    rows = [(prefix, _depth(shape)) for prefix, shape in zip((prompt, (*prompt, 1)), shapes, strict=True)]
    q_of = draft_model(task)
    drafters = [tree_drafter(q_of, shape, DRAFTING[drafts].pick) for shape in shapes]

    def decide(draws: Draws) -> list[Tokens]:
        trees = [
            drafter.propose(draws, None, prefix, depth, never)
            for drafter, (prefix, depth) in zip(drafters, rows, strict=True)
        ]
        count = _common(*(tree.parents for tree in trees)) if same_tree else min(len(tree.tokens) for tree in trees)
        batch = [
            rows_of(task.target, q_of, prefix, Draft(tree.tokens[:count], tree.parents[:count], tree.pmfs[:count]))
            for tree, (prefix, _) in zip(trees, rows, strict=True)
        ]
        return [all_of(draws, answer) for answer in decided(verify, drafts, batch, answered_everywhere, draws)]

    name = " and ".join(f"parents {shape} after {prefix}" for shape, (prefix, _) in zip(shapes, rows, strict=True))
    return of_rows(name, task, rows, decide)


def _pair(drafts: Drafts, same_tree: bool, vocabulary: int) -> tuple[Tokens, Tokens]:
    first: Tokens = (-1, -1, 0) if drafts == "top_k" else (-1, -1) if vocabulary == 2 else (-1,)
    return first, first if same_tree else tuple(range(-1, len(first) - 1))


def _depth(parents: Tokens) -> int:
    return 1 + max(tree_depths(parents))


def _common(one: Tokens, other: Tokens) -> int:
    """Return the length of the common prefix of two trees' parents."""
    least = min(len(one), len(other))
    return next((place for place in range(least) if one[place] != other[place]), least)


@lru_cache(maxsize=8)
def _attempt_of(drafts: Drafts) -> Attempt:
    """Return the function ``attempt(verify, convert)`` that calls a verifier once on three small trees.

    ``drafts`` is the method by which the trees are drawn.
    """

    def attempt(verify: BareVerifier, convert: Convert) -> Any:
        either = TreeRows(
            np.array([[2, 1], [1, 2], [1, 1]]) / [[3], [3], [2]], np.array([[1, 2]] * 2) / 3, (-1, 0), (1, 0)
        )
        batch = (*neighbours(either, True), either)
        answer = invoked(verify, drafts, *convert(arrays_given(batch, drafts, batched=True)))
        return read_answers(answer, [rows.parents for rows in batch], vocabulary=2)

    return attempt
