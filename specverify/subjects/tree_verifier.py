"""A verifier of trees: one call decides a tree of drafts.

    verify(p, q, parents, tokens) -> emitted tokens
    verify(p, q, parents, tokens) -> (accepted tokens, weights of the next token)

``parents`` is ``[nodes]``: the parent of node j is ``parents[j] < j``, or the root (the last committed token) for -1.
``tokens`` is ``[nodes]``; both are int64. ``p`` is ``[nodes + 1, vocabulary]``: row 0 is the target after the committed
text, row j + 1 after node j. ``q`` is ``[nodes, vocabulary]``: row j is the drafter after the parent of node j, the
same for all siblings. Both are float64 probabilities. Siblings are in the order in which they were drawn.
``reference.tree_layouts`` converts other layouts to this one.

The emitted tokens are those of an accepted path and one more. Code that returns the path and the row of the next token
leaves the draw to its caller: ``weights`` ``[vocabulary]`` are that row, float32 or float64, and the token is drawn
here in proportion to them, at once, so they may be a view of p or a reused buffer; the tokens may not.

The promise of a rule depends on how the tree was drawn, which ``drafts`` states:

``"with_replacement"``: every child of a node is drawn from q, independent of its siblings (SpecInfer, arXiv 2305.09781;
SpecTr, arXiv 2310.15141). ``"without_replacement"``: from q without the earlier siblings, normalised (RSD, arXiv
2402.14160; Sequoia, arXiv 2402.12374; EAGLE, arXiv 2401.15077); no further child if q has no more tokens. ``"top_k"``:
nothing is drawn, the children of a node are q's most probable tokens, most probable first (EAGLE-2, arXiv 2406.16858;
Medusa, arXiv 2401.10774; SGLang), and ``q`` is None: an acceptance ratio with q would be biased.

A tree is cut at the remaining length of the text; a round without drafts is one draw from p and does not reach the
verifier. Batches are in ``tree_batches``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from specverify.base.callables import first_line
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.deep_scenarios import DEEP_TREE, ONE_ROW_SCENARIOS, TREE_SCENARIOS, WIDE, WIDE_TREE
from specverify.laws.scenarios import SCENARIOS, Scenario
from specverify.reference import Claim, Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, Verifier
from specverify.reference.drafters.tree import Pick, independent, most_likely, tree_drafter, without_replacement
from specverify.reference.kv_cache import tree_depths
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.trees import children, path_tokens
from specverify.reference.verifiers.candidate_set import candidate_set
from specverify.reference.verifiers.recursive_rejection import recursive_rejection
from specverify.subjects.array_kinds import Attempt, BareVerifier, arrays_of
from specverify.subjects.checked_calls import Convert, Given, called
from specverify.subjects.deep import Cases, where_it_runs
from specverify.subjects.subject import Context, Subject, Variant
from specverify.subjects.tree_answers import TreeAnswer, read_answer
from specverify.subjects.verifier import setting_of_decoder, variant_of

Drafts = Literal["with_replacement", "without_replacement", "top_k"]
"""How the children of a node were drawn."""


class TreeDrafting(NamedTuple):
    """One method of drawing a tree of drafts, with the data for its examination."""

    pick: Pick
    best: Verifier
    """The best known rule for such drafts; a verifier that claims optimal acceptance must accept as often."""
    trees: tuple[Tokens, ...]
    """The default shapes, each given by its parents."""
    scenarios: tuple[Scenario, ...]


MORE = tuple(Scenario("generic", 3, (0, 1, 0), 3, seed=seed) for seed in (6, 8))
"""Scenarios in which the residual after a rejection has several tokens, so that the test of the next sibling depends on
it."""
ALL = tuple(sorted((*SCENARIOS, *MORE), key=lambda scenario: (scenario.vocabulary, scenario.horizon)))
FEWER = tuple(
    scenario
    for scenario in ALL
    if scenario.vocabulary * scenario.horizon < 14
    or scenario.greedy
    or scenario.shape in {"generic", "point_target", "point_draft"}
)
"""Scenarios for drawn trees, without some of the longest ones, because every drawn node multiplies the paths."""

DRAFTING: dict[Drafts, TreeDrafting] = {
    "with_replacement": TreeDrafting(independent, recursive_rejection, ((-1, -1, -1), (-1, -1, 0), (-1, 0, 0)), FEWER),
    "without_replacement": TreeDrafting(
        without_replacement, recursive_rejection, ((-1, -1, -1), (-1, -1, 0, 0)), FEWER
    ),
    "top_k": TreeDrafting(most_likely, candidate_set, ((-1, -1, -1), (-1, -1, 0, 1, 1), (-1, 0, -1, 2, 3)), ALL),
}


class TreeRows(NamedTuple):
    """The arguments of a call of a verifier for one tree."""

    p: Any
    """Target probabilities ``[nodes + 1, vocabulary]``."""
    q: Any
    """Draft probabilities ``[nodes, vocabulary]``."""
    parents: Tokens
    tokens: Tokens


def tree_subject(verify: BareVerifier, name: str, drafts: Drafts, trees: tuple[Tokens, ...] | None = None) -> Subject:
    """Return the subject of a verifier of trees drawn by ``drafts``; it claims to be lossless and optimal.

    ``trees`` are the shapes to examine, each given by its parents. Without them, ``DEEP_TREE`` and ``WIDE_TREE`` are
    examined too, and one draft with p and q a little apart, if the verifier runs on them.
    """
    shapes = trees or DRAFTING[drafts].trees
    variants = tuple(_variant(partial(build, verify, drafts, shape), drafts, shape) for shape in shapes)
    result = subject_of(verify, name, drafts, shapes, variants)
    return result if trees else result._replace(deep=partial(_deep, verify, drafts))


def _deep(verify: BareVerifier, drafts: Drafts) -> Cases:
    result = ((DEEP_TREE, TREE_SCENARIOS), (WIDE_TREE, (WIDE,)), ((-1,), ONE_ROW_SCENARIOS))
    made = ((_variant(partial(build, verify, drafts, shape), drafts, shape), where) for shape, where in result)
    return tuple(case for variant, scenarios in made for case in where_it_runs(variant, scenarios))


def subject_of(
    verify: BareVerifier, name: str, drafts: Drafts, shapes: Sequence[Tokens], variants: tuple[Variant, ...]
) -> Subject:
    """Return the subject of a verifier of trees with these ``variants``.

    The last of them are the variants of ``shapes``; the deepest shape is also sampled.
    """
    deepest = max(range(-len(shapes), 0), key=lambda place: max(tree_depths(shapes[place])))
    levels, siblings = 1 + max(tree_depths(shapes[deepest])), max(Counter(shapes[deepest]).values())
    sampled = variants[deepest]
    assert sampled.intercepted is not None
    return Subject(
        name=name,
        summary=first_line(verify, "a verifier of trees"),
        claims=frozenset(Claim),
        rational=False,
        stops_at_eos=False,
        intercepted=True,
        kind="tree",
        scenarios=DRAFTING[drafts].scenarios,
        situations=(
            *variants,
            setting_of_decoder(sampled.intercepted.build, sampled.label, levels, least=siblings + 1),
        ),
    )


def _variant(make: Callable[..., Decoder], drafts: Drafts, shape: Tokens) -> Variant:
    return variant_of(label_of(drafts, shape), make, best=partial(best_decoder, drafts, shape))


def label_of(drafts: Drafts, shape: Tokens) -> str:
    """Return the label of a shape of trees drawn by the method ``drafts``."""
    return f"parents {shape} {drafts.replace('_', ' ')}"


def drafter_decoder(task: Task, drafts: Drafts, shape: Tokens, verifier: Verifier) -> Decoder:
    """Return the decoder that draws trees of one shape from q by method ``drafts`` and decides by ``verifier``."""
    return tree_decoder(task, tree_drafter(draft_model(task), shape, DRAFTING[drafts].pick), verifier)


def best_decoder(drafts: Drafts, shape: Tokens, task: Task) -> Decoder:
    """Return the decoder with the best known rule for trees of one shape drawn by the method ``drafts``."""
    return drafter_decoder(task, drafts, shape, DRAFTING[drafts].best)


def build(
    verify: BareVerifier, drafts: Drafts, shape: Tokens, task: Task, answered: Context = answered_everywhere
) -> Decoder:
    """Return the decoder that draws trees of one shape from q and decides them by ``verify``, round by round.

    ``answered(draws)`` is the context of the call; by default it intercepts random calls.
    """

    def decide(draws: Draws, rows: TreeRows) -> TreeAnswer:
        given, convert = arrays_given((rows,), drafts), arrays_of(verify, attempt_of(drafts))
        read = partial(read_answer, parents=rows.parents, vocabulary=rows.p.shape[1])
        with answered(draws):
            return answers_of(convert, given, partial(invoked, verify, drafts), lambda answer: (read(answer),))[0]

    return drafter_decoder(task, drafts, shape, verifier_of(task, decide))


def verifier_of(task: Task, decide: Callable[[Draws, TreeRows], TreeAnswer]) -> Verifier:
    """Return the verifier that emits the tokens of ``decide``; it draws the last token if only weights are returned."""
    q_of = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        if not draft.tokens:
            return Verified((draws.categorical(np.asarray(target(prefix)), ("bonus",)),), accepted=0)
        emitted = all_of(draws, decide(draws, rows_of(target, q_of, prefix, draft)))
        return Verified(emitted, accepted_of(draft, emitted))

    return verify


def all_of(draws: Draws, answer: TreeAnswer) -> Tokens:
    """Return the emitted tokens of ``answer``; if it has weights, the last token is drawn here."""
    if answer.weights is None:
        return answer.tokens
    weights = np.array(answer.weights, dtype=answer.kind)
    return (*answer.tokens, draws.categorical(weights / weights.sum(), ("bonus",)))


def rows_of(target: LanguageModel, q_of: LanguageModel, prefix: Tokens, draft: Draft) -> TreeRows:
    """Return the pmfs p and q with which a verifier decides ``draft``."""
    texts = [prefix, *(prefix + path_tokens(draft, node) for node in range(len(draft.tokens)))]
    p = np.stack([np.asarray(target(text)) for text in texts])
    q = np.stack([np.asarray(q_of(texts[1 + parent])) for parent in draft.parents])
    return TreeRows(p, q, draft.parents, draft.tokens)


def accepted_of(draft: Draft, emitted: Tokens) -> int:
    """Return how many of the emitted tokens, except the last, lie on a path of the tree."""
    nodes: Tokens = (-1,)
    for place, token in enumerate(emitted[:-1]):
        nodes = tuple(node for node in children(draft.parents, nodes) if draft.tokens[node] == token)
        if not nodes:
            return place
    return len(emitted) - 1


def arrays_given(rows: tuple[TreeRows, ...], drafts: Drafts, batched: bool = False) -> dict[str, Any]:
    """Return the arguments of a call by name, stacked if ``batched``; without q for top-k drafts."""
    columns = [np.stack([np.asarray(row[place]) for row in rows]) for place in range(4)]
    given = dict(zip(TreeRows._fields, columns if batched else [column[0] for column in columns], strict=True))
    return {name: array for name, array in given.items() if name != "q" or drafts != "top_k"}


def answers_of(
    convert: Convert, given: Given, invoke: Callable[..., Any], read: Callable[[Any], tuple[TreeAnswer, ...]]
) -> tuple[TreeAnswer, ...]:
    """Call ``invoke`` on the converted arguments ``given``, and return ``read`` of its result: one entry per tree.

    The tokens of a result are recorded with the call; its weights are not, because they may be a reused buffer.
    """
    result: list[tuple[TreeAnswer, ...]] = []

    def tokens(answer: Any) -> tuple[Tokens, ...]:
        result.append(read(answer))
        return tuple(tree.tokens for tree in result[-1])

    called(convert, given, invoke, tokens)
    return result[0]


def invoked(verify: BareVerifier, drafts: Drafts, *arrays: Any) -> Any:
    """Call ``verify`` on converted arrays and return its result; for top-k drafts q is None."""
    return verify(arrays[0], None, *arrays[1:]) if drafts == "top_k" else verify(*arrays)


@lru_cache(maxsize=8)
def attempt_of(drafts: Drafts) -> Attempt:
    """Return the function ``attempt(verify, convert)`` that calls a verifier once on a small tree.

    ``drafts`` is the method by which the tree is drawn.
    """

    def attempt(verify: BareVerifier, convert: Convert) -> Any:
        p = np.array([[2, 1], [1, 2], [1, 1]]) / [[3], [3], [2]]
        rows = TreeRows(p, np.array([[1, 2]] * 2) / 3, (-1, 0), (1, 0))
        answer = invoked(verify, drafts, *convert(arrays_given((rows,), drafts)))
        return read_answer(answer, rows.parents, vocabulary=2)

    return attempt
