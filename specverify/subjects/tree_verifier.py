"""A verifier of trees: one call verifies a tree of drafts, or a batch of trees.

    verify(p, q, parents, tokens) -> emitted tokens
    verify(p, q, parents, tokens) -> (accepted tokens, weights of the next token)

``parents`` is ``[nodes]``: the parent of node j is ``parents[j] < j``, or the root (the last committed token) for -1.
``tokens`` is ``[nodes]``; both are int64. ``p`` is ``[nodes + 1, vocabulary]``: row 0 is the target after the committed
text, row j + 1 after node j. ``q`` is ``[nodes, vocabulary]``: row j is the drafter after the parent of node j, the
same for all siblings. Both are float64 probabilities. Siblings are in the order in which they were drawn.
``reference.tree_layouts`` converts other layouts to this one.

The emitted tokens are those of an accepted path and one more. A verifier may leave the draw of the last token to its
caller: it returns the path, and as ``weights`` ``[vocabulary]`` the row of the last token, in float32 or float64. The
token is drawn here in proportion to the weights, at once. So the weights may be a view of p or a buffer that the next
call overwrites; the accepted tokens must not be overwritten.

The promise of a rule depends on how the tree was drawn, which ``drafts`` states:

``"with_replacement"``: every child of a node is drawn from q, independent of its siblings (SpecInfer, arXiv 2305.09781;
SpecTr, arXiv 2310.15141). ``"without_replacement"``: from q without the earlier siblings, normalised (RSD, arXiv
2402.14160; Sequoia, arXiv 2402.12374; EAGLE, arXiv 2401.15077); no further child if q has no more tokens. ``"top_k"``:
nothing is drawn, the children of a node are q's most probable tokens, most probable first (EAGLE-2, arXiv 2406.16858;
Medusa, arXiv 2401.10774; SGLang), and ``q`` is None: an acceptance ratio with q would be biased.

A tree is cut at the remaining length of the text. In a round without drafts the token is drawn from p, and the verifier
is not called.

A batch has a leading dimension: ``p`` is ``[B, nodes + 1, vocabulary]``, ``q`` ``[B, nodes, vocabulary]`` (None for
top-k drafts), ``parents`` and ``tokens`` are ``[B, nodes]``: all trees have the same number of nodes. Each has a shape
of its own, unless ``same_tree`` states that all rows share one. The verifier returns ``[B, most tokens]`` padded with
negative numbers, or a sequence of answers. The law of a tree must not depend on its neighbours. A tree is verified
alone, and as the third of three: the first is accepted along its last children, the second is rejected at once, both
with certainty, so they add no path. ``rows_are_independent`` verifies it together with another random tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from specverify.base.callables import first_line
from specverify.base.prefixes import common_length
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.deep_scenarios import (
    ALIKE_CHAINS,
    ALL_UNCERTAIN,
    APART_CHAINS,
    BRANCH_SCENARIOS,
    DEEP_TREE,
    FOUR_SIBLINGS,
    LATE_BRANCHES,
    LATE_SCENARIOS,
    LATE_TREE,
    ONE_CHILD,
    ONE_CHILD_SCENARIO,
    ONE_ROW_SCENARIOS,
    SIBLING_SCENARIOS,
    SIBLINGS_TREE,
    THREE_SIBLINGS,
    TREE_SCENARIOS,
    TWIN_CHAINS,
    TWO_BRANCHES,
    WIDE,
    WIDE_TREE,
    whole_tree,
)
from specverify.laws.scenarios import CONFIDENT, SCENARIOS, Scenario
from specverify.reference import Claim, Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, Verifier
from specverify.reference.drafters.tree import Pick, independent, most_likely, tree_drafter, without_replacement
from specverify.reference.kv_cache import tree_depths
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.trees import children
from specverify.reference.types import never
from specverify.reference.verifiers.candidate_set import candidate_set
from specverify.reference.verifiers.recursive_rejection import recursive_rejection
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.batched_verifier import of_rows
from specverify.subjects.deep import Cases, where_it_runs
from specverify.subjects.forms import Drafts, Form
from specverify.subjects.subject import Context, EngineProgram, Subject, Variant
from specverify.subjects.tree_answers import TreeAnswer
from specverify.subjects.tree_call import TreeRows, decided, neighbours, rows_of
from specverify.subjects.verifier_rounds import setting_of_decoder, variant_of

MINE = 2
"""The index of the examined tree in its batch."""


class TreeDrafting(NamedTuple):
    """One method of drawing a tree of drafts, with the data for its examination.

    ``pick`` draws the children of a node, and ``scenarios`` are those in which verifiers of such trees are examined.
    """

    pick: Pick
    best: Verifier
    """The best known rule for such drafts; a verifier that claims optimal acceptance must accept as often."""
    trees: tuple[Tokens, ...]
    """The default shapes, each given by its parents."""
    scenarios: tuple[Scenario, ...]


MORE = tuple(Scenario("generic", 3, (0, 1, 0), 3, seed=seed) for seed in (6, 8))
"""Scenarios in which the residual after a rejection has several tokens, so that the test of the next sibling depends on
it."""
ALL = tuple(sorted((*SCENARIOS, *MORE), key=lambda each: (each == CONFIDENT, each.vocabulary, each.horizon)))
FEWER = tuple(
    scenario
    for scenario in ALL
    if scenario.vocabulary * scenario.horizon < 14
    or scenario.greedy
    or scenario.shape in {"generic", "point_target", "point_draft"}
)
"""Scenarios for drawn trees, without some of the longest ones, because every drawn node multiplies the paths."""


def rejection_below_one(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify ``draft`` by recursive rejection that continues below one node (SpecInfer, arXiv 2305.09781, Algorithm 2).

    ``target`` gives p after ``prefix``. Of equal siblings only the first can be accepted, so the nodes below the others
    are left out. A rule that continues below all of them accepts as many drafts or more.
    """
    pairs = list(zip(draft.parents, draft.tokens, strict=True))
    kept: list[int] = []
    for node, (parent, _) in enumerate(pairs):
        if parent == -1 or (parent in kept and pairs.index(pairs[parent]) == parent):
            kept.append(node)
    number = {-1: -1} | {node: i for i, node in enumerate(kept)}
    thinned = Draft(
        tokens=tuple(draft.tokens[node] for node in kept),
        parents=tuple(number[draft.parents[node]] for node in kept),
        pmfs=tuple(draft.pmfs[node] for node in kept),
    )
    return recursive_rejection(draws, target, prefix, thinned)


DRAFTING: dict[Drafts, TreeDrafting] = {
    "with_replacement": TreeDrafting(independent, rejection_below_one, ((-1, -1, -1), (-1, -1, 0), (-1, 0, 0)), FEWER),
    "without_replacement": TreeDrafting(
        without_replacement, recursive_rejection, ((-1, -1, -1), (-1, -1, 0, 0)), FEWER
    ),
    "top_k": TreeDrafting(most_likely, candidate_set, ((-1, -1, -1), (-1, -1, 0, 1, 1), (-1, 0, -1, 2, 3)), ALL),
}


def tree_subject(verify: BareVerifier, name: str, form: Form, trees: tuple[Tokens, ...] | None = None) -> Subject:
    """Return the subject of a verifier of trees in this form; it claims to be lossless and optimal.

    ``verify`` is the verifier and ``name`` the name of the subject. ``trees`` are the shapes of the trees to examine,
    each given by the parents of its nodes. With None, default shapes are examined.

    * The deepest of these shapes is also examined by sampling.
    * If ``verify`` takes a batch of trees, each shape is examined as one tree of a batch. The first shape is also
      examined in a batch of this tree alone.
    * Shapes in ``trees`` are also examined where their trees are whole: elsewhere a small vocabulary or horizon may cut
      them.
    * If ``trees`` is None, ten more shapes are examined: ``DEEP_TREE``, ``LATE_TREE``, ``WIDE_TREE``,
      ``SIBLINGS_TREE``, ``TWIN_CHAINS``, ``TWO_BRANCHES``, ``LATE_BRANCHES``, ``THREE_SIBLINGS``, ``ONE_CHILD``, and a
      single draft with p and q nearly equal. A shape on which ``verify`` raises is left out.
    """
    drafting = DRAFTING[_drafts(form)]
    shapes = trees or (drafting.trees[1:2] if form.batched else drafting.trees)
    variants = [_variant(verify, form, shape) for shape in shapes]
    deepest = max(range(len(shapes)), key=lambda place: max(tree_depths(shapes[place])))
    levels, siblings = _depth(shapes[deepest]), _siblings(shapes[deepest])
    sampled = variants[deepest]
    assert sampled.intercepted is not None
    return Subject(
        name=name,
        summary=first_line(verify, "a verifier of trees"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        kind=form.kind,
        scenarios=drafting.scenarios,
        deep=partial(_whole, tuple(zip(variants, shapes, strict=True))) if trees else partial(_deep, verify, form),
        situations=(
            *((_variant(verify, form, shapes[0], company=False),) if form.batched else ()),
            *variants,
            setting_of_decoder(sampled.intercepted.build, sampled.label, levels, least=siblings + 1),
        ),
    )


def _drafts(form: Form) -> Drafts:
    assert form.drafts is not None
    return form.drafts


def _whole(variants: Sequence[tuple[Variant, Tokens]]) -> Cases:
    """Return a case for each of the ``variants``, given with the shape of its trees, in which these trees are whole."""
    return tuple(
        (variant, scenario) for variant, shape in variants for scenario in whole_tree(_siblings(shape), _depth(shape))
    )


def _deep(verify: BareVerifier, form: Form) -> Cases:
    deep = (
        (DEEP_TREE, TREE_SCENARIOS),
        (LATE_TREE, LATE_SCENARIOS),
        (WIDE_TREE, (WIDE, *(() if form.drafts == "with_replacement" else (FOUR_SIBLINGS,)))),
        (SIBLINGS_TREE, SIBLING_SCENARIOS),
        (TWIN_CHAINS, (*ALIKE_CHAINS, APART_CHAINS)),
        (TWO_BRANCHES, BRANCH_SCENARIOS[:1]),
        (LATE_BRANCHES, BRANCH_SCENARIOS[1:]),
        (THREE_SIBLINGS, (ALL_UNCERTAIN,)),
        (ONE_CHILD, (ONE_CHILD_SCENARIO,)),
        ((-1,), ONE_ROW_SCENARIOS),
    )
    made = ((_variant(verify, form, shape), where) for shape, where in deep)
    return tuple(case for variant, scenarios in made for case in where_it_runs(variant, scenarios))


def _variant(verify: BareVerifier, form: Form, shape: Tokens, company: bool = True) -> Variant:
    drafts = _drafts(form)
    label = f"parents {shape} {drafts.replace('_', ' ')}"
    if form.batched:
        beside = f"tree {MINE + 1} of {MINE + 1}" + (" of one shape" if form.same_tree else "")
        label += f", {beside if company else 'alone'}"
    return variant_of(
        label,
        partial(build, verify, form, shape, form.batched and company),
        best=partial(best_decoder, drafts, shape),
        joint=partial(two_trees, verify, form) if form.batched and company else None,
    )


def drafter_decoder(task: Task, drafts: Drafts, shape: Tokens, verifier: Verifier) -> Decoder:
    """Return the decoder that draws trees of one shape from q by the method ``drafts``, and uses ``verifier``.

    ``task`` has the models. ``shape`` has the parent of each node of the tree, -1 for a child of the root.
    """
    return tree_decoder(task, tree_drafter(draft_model(task), shape, DRAFTING[drafts].pick), verifier)


def best_decoder(drafts: Drafts, shape: Tokens, task: Task) -> Decoder:
    """Return the decoder with the best known rule for trees of one shape that are drawn by the method ``drafts``.

    ``task`` has the models. ``shape`` has the parent of each node of the tree, -1 for a child of the root.
    """
    return drafter_decoder(task, drafts, shape, DRAFTING[drafts].best)


def build(
    verify: BareVerifier,
    form: Form,
    shape: Tokens,
    company: bool,
    task: Task,
    answered: Context = answered_everywhere,
) -> Decoder:
    """Return the decoder that draws trees of one shape from q and verifies them by ``verify``, round by round.

    ``form`` states whether ``verify`` takes one tree or a batch, and how trees are drawn. ``shape`` has the parent of
    each node, -1 for a child of the root. ``company`` states whether each tree is verified in a batch with other trees.
    ``task`` has the models. ``answered(draws)`` returns a context manager, inside which each call of ``verify`` runs.
    In the default one, ``draws`` chooses the results of the random calls that ``verify`` makes.
    """

    def decide(draws: Draws, rows: TreeRows) -> TreeAnswer:
        trees = (*neighbours(rows, form.same_tree), rows) if company else (rows,)
        return decided(verify, form, trees, answered, draws)[-1]

    return drafter_decoder(task, _drafts(form), shape, verifier_of(task, decide))


def verifier_of(task: Task, decide: Callable[[Draws, TreeRows], TreeAnswer]) -> Verifier:
    """Return the verifier that emits the tokens of ``decide``, and draws the last token if it is given by weights.

    ``decide(draws, rows)`` returns the answer for one tree with its pmfs ``rows``: tokens, and the weights of one more
    token or None. q is that of the draft model of ``task``. In a round without drafts the token is drawn from p, and
    ``decide`` is not called.
    """
    q_of = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        if not draft.tokens:
            return Verified((draws.categorical(np.asarray(target(prefix)), ("bonus",)),), accepted=0)
        emitted = all_of(draws, decide(draws, rows_of(target, q_of, prefix, draft)))
        return Verified(emitted, accepted_of(draft, emitted))

    return verify


def all_of(draws: Draws, answer: TreeAnswer) -> Tokens:
    """Return the emitted tokens of ``answer``; if it has weights, ``draws`` draws the last token from them."""
    if answer.weights is None:
        return answer.tokens
    weights = np.array(answer.weights, dtype=answer.kind)
    return (*answer.tokens, draws.categorical(weights / weights.sum(), ("bonus",)))


def accepted_of(draft: Draft, emitted: Tokens) -> int:
    """Return the number of accepted drafts: how many of the first emitted tokens form a path from the root.

    ``draft`` is the tree, and ``emitted`` are the tokens of the round. The last emitted token is not counted.
    """
    nodes: Tokens = (-1,)
    for place, token in enumerate(emitted[:-1]):
        nodes = tuple(node for node in children(draft.parents, nodes) if draft.tokens[node] == token)
        if not nodes:
            return place
    return len(emitted) - 1


def two_trees(verify: BareVerifier, form: Form, task: Task, prompt: Tokens) -> EngineProgram:
    """Return a program that verifies two trees in one call, one after ``prompt`` and one after ``(*prompt, 1)``.

    ``verify`` takes a batch, and ``form`` is its form. ``task`` has the models. The outcome of the program is the pair
    of the texts. The target draws the tokens that a tree does not emit. If q has too few tokens to fill one tree, both
    trees are cut to the same number of nodes.
    """
    drafts, same_tree = _drafts(form), form.same_tree
    shapes = _pair(drafts, same_tree, len(task.target(prompt)))
    rows = [(prefix, _depth(shape)) for prefix, shape in zip((prompt, (*prompt, 1)), shapes, strict=True)]
    q_of = draft_model(task)
    drafters = [tree_drafter(q_of, shape, DRAFTING[drafts].pick) for shape in shapes]

    def decide(draws: Draws) -> list[Tokens]:
        trees = [
            drafter.propose(draws, None, prefix, depth, never)
            for drafter, (prefix, depth) in zip(drafters, rows, strict=True)
        ]
        count = (
            common_length(*(tree.parents for tree in trees)) if same_tree else min(len(tree.tokens) for tree in trees)
        )
        batch = [
            rows_of(task.target, q_of, prefix, Draft(tree.tokens[:count], tree.parents[:count], tree.pmfs[:count]))
            for tree, (prefix, _) in zip(trees, rows, strict=True)
        ]
        return [all_of(draws, answer) for answer in decided(verify, form, batch, answered_everywhere, draws)]

    name = " and ".join(f"parents {shape} after {prefix}" for shape, (prefix, _) in zip(shapes, rows, strict=True))
    return of_rows(name, task, rows, decide)


def _pair(drafts: Drafts, same_tree: bool, vocabulary: int) -> tuple[Tokens, Tokens]:
    first: Tokens = (-1, -1, 0) if drafts == "top_k" else (-1, -1) if vocabulary == 2 else (-1,)
    return first, first if same_tree else tuple(range(-1, len(first) - 1))


def _depth(parents: Tokens) -> int:
    return 1 + max(tree_depths(parents))


def _siblings(parents: Tokens) -> int:
    return max(Counter(parents).values())
