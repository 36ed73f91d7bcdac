"""Planted bugs, class J: trees of drafts.

A function with the decorator ``planted(ORIGINAL, ...)`` changes the registry algorithm ORIGINAL, and its options are
those of that algorithm.

A function of ``p``, ``q``, ``parents`` and ``tokens`` verifies a tree, or a batch of trees, as described in
``subjects.tree_verifier``. A function of ``draws``, ``target``, ``prefix`` and ``draft`` verifies the drafts ``draft``
after the text ``prefix`` and returns the tokens to emit (``reference.types.Verifier``).

A function of ``draws``, ``p``, ``tokens``, ``pmfs`` and ``depth`` verifies the candidates of one node: ``p`` is the
target row of the node, ``tokens`` are the candidates, ``pmfs`` the q of each, and ``depth`` is the depth of the node.
It returns the emitted token and whether it is a candidate. A function of ``q``, ``earlier``, ``width`` and ``site``
picks the next candidate of a node from the drafter's row ``q``: ``earlier`` are the candidates so far, ``width`` is
their final number, and ``site`` names the draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.mutants.mutant import correct, planted
from specverify.mutants.numpy_trees import (
    along_paths,
    below,
    greedy,
    in_batch,
    looked_up,
    planted_tree,
    recursive_rejection,
    top_k,
    walked,
    with_replacement,
)
from specverify.mutants.numpy_trees import without_replacement as numpy_without_replacement
from specverify.mutants.numpy_verifiers import drawn
from specverify.mutants.tree_mutants import PAIR, by_siblings, texts_of_rows, with_changed_tree, with_tree
from specverify.reference import (
    Claim,
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Round,
    Site,
    State,
    Task,
    Tokens,
    Verified,
    accept_probability,
    argmax,
    chain,
    commit,
    excess_law,
    flip,
    residual,
)
from specverify.reference.algorithms.greedy_multi_path import selected_pmf
from specverify.reference.algorithms.redrafter import beams_drafter
from specverify.reference.algorithms.rest_released import one_draw_a_row
from specverify.reference.algorithms.specexec import best_first_drafter
from specverify.reference.algorithms.spechub import hub_drafter, through_the_hub
from specverify.reference.drafters.recycled import recycling_drafter
from specverify.reference.drafters.retrieval import retrieval_drafter
from specverify.reference.drafters.sequences import forgetful, sequences_drafter
from specverify.reference.drafters.sequoia_tree import sequoia_tree
from specverify.reference.drafters.tree import (
    Child,
    excluding,
    most_likely,
    tree_drafter,
    without_replacement,
    without_replacement_then_uniform,
)
from specverify.reference.kv_cache import tree_depths, tree_path
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import Step, tree_decoder
from specverify.reference.trees import child_pmf, children, leaves, merged, path_tokens, regular_tree
from specverify.reference.types import never
from specverify.reference.verifiers.block_verification import block_verification
from specverify.reference.verifiers.candidate_set import candidate_set
from specverify.reference.verifiers.joint_blocks import joint_blocks
from specverify.reference.verifiers.optimal_transport import optimal_transport
from specverify.reference.verifiers.recursive_rejection import recursive_rejection as reference_recursive_rejection
from specverify.reference.verifiers.recursive_rejection import try_in_turn
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@planted(
    "redrafter",
    "beams-drawn-apart",
    "draws the target's token once for each path instead of once for all",
    category="J",
    citation="FasterDecoding/REST rest/model/utils.py at 50a5fc1",
    killed_by="law_is_target",
)
def beams_drawn_apart(task: Task, beams: int = 4, depth: int = 4) -> Decoder:
    """Verification of drafted beams that draws the target's token at a position once for each path: the bug.

    All paths through a position need one common draw. The original is ReDrafter. ``beams`` is the number of drafted
    paths, ``depth`` their length.
    """
    return tree_decoder(task, beams_drafter(draft_model(task), beams, depth), one_draw_a_row)


def bonus_of_the_last_node_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify a tree by draws from the target, but draw the token after any leaf from the row of the last leaf.

    Verification continues at the child that has the drawn token.
    """
    ends = [prefix + path_tokens(draft, leaf) for leaf in leaves(draft.parents)]

    def row(tokens: Tokens) -> Pmf:
        return target(ends[-1] if tokens in ends else tokens)

    return candidate_set(draws, row, prefix, draft)


bonus_of_the_last_node = planted(
    "candidate-set",
    "bonus-of-the-last-node",
    "draws the bonus token from the row of the last leaf",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(bonus_of_the_last_node_verify, most_likely))
"""The token after the accepted path is drawn from the last row: the padding -1 of a path is used as an index."""


@planted(
    "specexec",
    "budget-rows-drawn-apart",
    "draws the target's token once for each path instead of once for all",
    category="J",
    citation="FasterDecoding/REST rest/model/utils.py at 50a5fc1",
    killed_by="law_is_target",
)
def budget_rows_drawn_apart(task: Task, budget: int = 16, depth: int = 8) -> Decoder:
    """Verification of the drafter's most probable paths that draws the target's token once for each path: the bug.

    All paths through a position need one common draw. The original is SpecExec. ``budget`` is the number of drafted
    nodes, ``depth`` their largest depth.
    """
    return tree_decoder(task, best_first_drafter(draft_model(task), budget, depth), one_draw_a_row)


@planted_tree(
    "children-by-token",
    "continues at a node with the right token that belongs to another parent",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
)
def children_by_token(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify a tree by draws from p; continue at the first node of the level that has the drawn token.

    This node may be a child of another node than the present one.
    """
    rule, depths = looked_up(tokens), tree_depths(parents.tolist())

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        result, token = rule(rng, row, nodes, above)
        if result is None:
            return None, token
        return next(
            node for node in range(result + 1) if (depths[node], tokens[node]) == (depths[result], token)
        ), token

    return walked(np.random.default_rng(), p, parents, tokens, choose)


class _Again:
    """A generator of NumPy whose ``random`` returns the uniforms of a shared list, from the first on.

    After the end of the list, it draws a new uniform and appends it.
    """

    def __init__(self, rng: Any, coins: list[Any]) -> None:
        self._rng, self._coins, self._used, self.choice = rng, coins, 0, rng.choice

    def random(self) -> Any:
        if self._used == len(self._coins):
            self._coins.append(self._rng.random())
        self._used += 1
        return self._coins[self._used - 1]


@planted_tree(
    "coins-of-all-trees",
    "uses the same uniforms for every tree of a batch",
    "without_replacement",
    citation="plausible",
    killed_by="rows_are_independent",
    batched=True,
)
def coins_of_all_trees(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """Recursive rejection of a batch of trees that uses the same uniforms for every tree."""
    rng, coins, result = np.random.default_rng(), list[Any](), []
    for tree in range(len(p)):
        rule = recursive_rejection(q[tree], tokens[tree], without=True)
        result.append(walked(_Again(rng, coins), p[tree], parents[tree], tokens[tree], rule))
    return result


def duplicates_get_two_chances_pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return the most probable token of q as the next candidate of a node, even if it is a candidate already: the bug.

    The candidate is declared with a point mass as its law. ``earlier`` and ``width`` are not used for the choice.
    """
    return most_likely(draws, q, (), width, site)


def duplicates_get_two_chances_rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Accept each candidate d with probability p(d); a duplicate gives its token a second chance.

    If no candidate is accepted, emit a draw from p without the candidates. ``p`` is the target row of the node, and
    ``tokens`` are its candidates. ``pmfs`` is not used.
    """
    for k, token in enumerate(tokens):
        if flip(draws, p[token], ("accept", depth, k)):
            return Step(token, accepted=True)
    rest = excluding(p, tokens)
    return Step(draws.categorical(p if rest is None else rest, ("residual", depth)), accepted=False)


duplicates_get_two_chances = planted(
    "candidate-set",
    "duplicates-get-two-chances",
    "tests two siblings with the same token separately",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(by_siblings(duplicates_get_two_chances_rule), duplicates_get_two_chances_pick))
"""If a tree holds a token twice, each copy is tested with its own uniform against p(d): it is emitted with probability
1 - (1 - p(d))^2."""


@planted_tree(
    "earlier-siblings-in-q",
    "tests siblings with the whole q, although they were drawn without replacement",
    "without_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
def earlier_siblings_in_q(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that tests each sibling with the whole q, although they were drawn without replacement."""
    return with_replacement(p, q, parents, tokens)


def equal_blocks_counted_once_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify the drafted blocks, the paths of ``draft``, after equal blocks are merged into one path: the bug.

    The acceptance probability depends on the number of blocks, which is then too small.
    """
    rows = {path_tokens(draft, node): pmf for node, pmf in enumerate(draft.pmfs)}
    tree = merged(path_tokens(draft, leaf) for leaf in leaves(draft.parents))
    nodes = Draft(*tree, (None,) * len(tree.tokens))
    pmfs = tuple(rows[path_tokens(nodes, node)] for node in range(len(tree.tokens)))
    return joint_blocks(draws, target, prefix, nodes._replace(pmfs=pmfs))


@planted(
    "spectr-gbv-released",
    "equal-blocks-counted-once",
    "merges equal drafted blocks, but uses probabilities for unmerged blocks",
    category="J",
    citation="plausible",
    killed_by="law_is_declared",
    examples=({"candidates": 2, "gamma": 1},),
)
def equal_blocks_counted_once(task: Task, candidates: int = 4, gamma: int = 8) -> Decoder:
    """SpecTr-GBV with a bug: equal drafted blocks are merged before they are verified.

    SpecTr-GBV drafts ``candidates`` blocks and accepts them with a joint probability, which depends on their number.
    After the merge this number is too small.
    """
    return tree_decoder(
        task, sequences_drafter((draft_model(task),) * candidates, gamma), equal_blocks_counted_once_verify
    )


def exhausted_draft_keeps_q_pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return the next candidate of a node, with a wrong declared law if q of the candidate is 0.

    Candidates with positive q are drawn first, and then the other tokens uniformly. q is declared as the law of these
    other tokens: the bug. ``earlier`` are the candidates so far.
    """
    child = without_replacement_then_uniform(draws, q, earlier, width, site)
    return child if child is None or q[child.token] > 0 else Child(child.token, q)


@planted(
    "sequoia",
    "exhausted-draft-keeps-q",
    "declares q for children that were drawn uniformly",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"acceptance": (0.6, 0.3), "size": 3, "depth": 1},),
)
def exhausted_draft_keeps_q(
    task: Task, acceptance: tuple[Any, ...] = (0.6, 0.3), size: int = 3, depth: int = 1
) -> Decoder:
    """Sequoia with a wrong declared q for children that are drawn after the tokens with positive q are used up.

    Such children are drawn uniformly from the other tokens, but q is declared for them. ``acceptance``, ``size`` and
    ``depth`` describe the tree.
    """
    parents = sequoia_tree(acceptance, size, depth).parents
    return tree_decoder(
        task, tree_drafter(draft_model(task), parents, exhausted_draft_keeps_q_pick), reference_recursive_rejection
    )


@planted_tree(
    "first-child-alone",
    "tries only the first child of each node",
    "without_replacement",
    category="Q",
    citation="plausible",
    killed_by="acceptance_is_optimal",
)
def first_child_alone(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that tries only the first child of each node, which loses acceptance but keeps the law."""
    rule = recursive_rejection(q, tokens, without=True)

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, nodes[:1], above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


def hub_first(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Verify a pair of candidates by SpecHub's rule in the order (hub, other token), whichever was drawn first.

    The hub is the most probable token under q.
    """
    hub = argmax(pmfs[0])
    return through_the_hub(draws, p, tuple(sorted(tokens, key=lambda token: token != hub)), pmfs, depth)


@planted(
    "spechub",
    "hub-pair-turned-round",
    "treats every pair as if its most probable token had been drawn first",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
)
def hub_pair_turned_round(task: Task, depth: int = 4) -> Decoder:
    """SpecHub with a bug: every pair of candidates is verified as (hub token, other token), whichever was drawn first.

    The hub is the most probable token of q, and one candidate of each pair. ``depth`` is the number of levels of pairs.
    """
    return tree_decoder(task, hub_drafter(draft_model(task), depth), by_siblings(hub_first))


def k_seq_without_rho_rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Accept each candidate with min(1, p/q); emit from norm((p - q)+) if none is accepted."""
    for k, token in enumerate(tokens):
        if flip(draws, accept_probability(p, pmfs[k], token), ("accept", depth, k)):
            return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, pmfs[0]), ("residual", depth)), accepted=False)


@planted(
    "k-seq",
    "k-seq-without-rho",
    "accepts each of K candidates with min(1, p/q), without the divisor rho",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"sequences": 2, "depth": 1, "bits": 8},),
)
def k_seq_without_rho(task: Task, sequences: int = 4, depth: int = 4, bits: Any = 16) -> Decoder:
    """Verification of several drafted sequences that accepts every candidate with min(1, p/q): the bug.

    The original, K-SEQ, divides this probability by a number rho. ``sequences`` is the number of drafted sequences,
    ``depth`` their length; ``bits`` is not used.
    """
    return tree_decoder(
        task, sequences_drafter((draft_model(task),) * sequences, depth), by_siblings(k_seq_without_rho_rule)
    )


def likeliest_first(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Try the siblings of a node by recursive rejection, in decreasing order of p instead of the order drawn.

    Returns the first accepted sibling, or else a draw from the residual. ``p`` is the target row of the node,
    ``tokens`` are the siblings, ``pmfs`` the q of each, and ``depth`` is the depth of the node.
    """
    order = sorted(range(len(tokens)), key=lambda k: -p[tokens[k]])
    return try_in_turn(draws, p, tuple(tokens[k] for k in order), tuple(pmfs[k] for k in order), depth)


@planted(
    "specinfer",
    "likelier-sibling-first",
    "tries siblings in decreasing order of p instead of a random order",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
)
def likelier_sibling_first(task: Task, forget: tuple[int, ...] = (0, 1), depth: int = 4) -> Decoder:
    """SpecInfer, a tree of several drafters, with a bug: siblings are tried in decreasing order of p.

    The right order is random. ``forget`` has one number for each drafter: how many tokens at the start of the text it
    does not read.
    """
    draft = draft_model(task)
    drafter = sequences_drafter(tuple(forgetful(draft, count) for count in forget), depth)
    return tree_decoder(task, drafter, by_siblings(likeliest_first))


@planted(
    "rsd",
    "logits-slice-off-by-one",
    "tests a node by the row of another node",
    category="J",
    citation="TensorRT-LLM PR #15098",
    killed_by="law_is_target",
    examples=PAIR,
)
@with_tree
def logits_slice_off_by_one(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection that reads each target row one too early, so a node is tested by another node's row."""
    texts = texts_of_rows(prefix, draft)
    return reference_recursive_rejection(
        draws, lambda text: target(texts[max(texts.index(text) - 1, 0)]), prefix, draft
    )


class _Of:
    def __init__(self, draws: Draws, which: int) -> None:
        self._draws, self._which = draws, which

    def categorical(self, pmf: Pmf, site: Site) -> int:
        return self._draws.categorical(pmf, (*site, "of chain", self._which))


@planted(
    "k-seq",
    "longest-of-several-chains",
    "of several verified chains keeps the one with most accepted drafts",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"sequences": 2, "depth": 1, "bits": 8},),
)
def longest_of_several_chains(task: Task, sequences: int = 4, depth: int = 4, bits: int = 16) -> Decoder:
    """Speculative sampling of several chains, verified independently, that keeps the one with most accepted drafts.

    This choice depends on the tests, so it changes the law. ``sequences`` is the number of chains, ``depth`` their
    length; ``bits`` is not used.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        chains = [chain(draft.tokens[k::sequences], draft.pmfs[k::sequences]) for k in range(sequences)]
        result = [speculative_sampling(_Of(draws, k), target, prefix, one) for k, one in enumerate(chains)]
        return max(result, key=lambda verified: verified.accepted)

    return tree_decoder(task, sequences_drafter((draft_model(task),) * sequences, depth), verify)


@planted(
    "rsd",
    "mask-is-causal",
    "a node attends to its earlier siblings",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
@with_tree
def mask_is_causal(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection under a causal mask: a node attends to its earlier siblings as if they preceded it."""
    texts = texts_of_rows(prefix, draft)
    return reference_recursive_rejection(
        draws, lambda text: target(prefix + draft.tokens[: texts.index(text)]), prefix, draft
    )


class _Coin:
    """A generator that draws one uniform when it is made, and returns it in every call of ``random``."""

    def __init__(self, rng: Any) -> None:
        self._coin, self.choice = rng.random(), rng.choice

    def random(self) -> Any:
        return self._coin


@planted_tree(
    "one-coin-for-siblings",
    "tests all siblings with one uniform",
    "with_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
def one_coin_for_siblings(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that tests all children of a node with one uniform."""
    rule = recursive_rejection(q, tokens, without=False)

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(_Coin(rng), row, nodes, above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


def one_draw_a_path_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Match each path of the tree with draws from the target that are made for this path alone.

    Drawing ends with the first draw that differs from the path, or one draw after its end. The draws of the path with
    the most matches are emitted, in a tie those of the first path.
    """
    best = Verified((), -1)
    for leaf in leaves(draft.parents) or (-1,):
        path, emitted = path_tokens(draft, leaf), ()  # type: Tokens, Tokens
        while emitted == path[: len(emitted)] and len(emitted) <= len(path):
            emitted = (*emitted, draws.categorical(target(prefix + emitted), ("target", leaf, len(emitted))))
        best = max(best, Verified(emitted, len(emitted) - 1), key=lambda found: found.accepted)
    return best


one_draw_a_path = planted(
    "candidate-set",
    "one-draw-a-path",
    "draws from p once for each path instead of once for all",
    category="J",
    citation="REST and Medusa nucleus modes, as released",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(one_draw_a_path_verify, most_likely))
"""Each path of a candidate tree is compared with its own draws from p, and the longest match is committed."""


@planted_tree(
    "padding-is-a-token",
    "accepts the padding of a short path as a draft",
    "top_k",
    citation="Medusa evaluate_posterior at e2a5d20",
    killed_by="greedy_is_argmax",
    control=greedy,
    claims=frozenset({Claim.GREEDY}),
)
def padding_is_a_token(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Greedy tree verification that takes padding for a draft where the target's argmax is token 0.

    Short paths are padded with token 0, and the row of the padding is that of the last node.
    """
    indices, candidates = along_paths(parents, tokens, padding=0)
    wanted = p[indices].argmax(-1)
    lengths = (candidates[:, 1:] == wanted[:, :-1]).cumprod(-1).sum(-1)
    best = int(lengths.argmax())
    return [*candidates[best, 1 : 1 + lengths[best]].tolist(), int(wanted[best, lengths[best]])]


@planted(
    "rsd",
    "path-by-one-integer",
    "keeps the cache of the first n nodes, not of the accepted path",
    category="J",
    citation="TensorRT-LLM issue #10343 (PR #8586)",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
def path_by_one_integer(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """Recursive rejection whose cache is rewound to the first n nodes, not to the n nodes of the accepted path.

    ``State.drafter`` holds the tokens in the cache. Each node at depth i has ``branching[i]`` children.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        held = state.drafter if isinstance(state.drafter, tuple) else state.tokens
        draft = drafter.propose(draws, None, held, state.remaining - 1, never)
        verified = reference_recursive_rejection(draws, task.target, held, draft)
        new, remaining = commit(verified.tokens, state.remaining, task.eos)
        held = (*held, *draft.tokens[: verified.accepted], verified.tokens[-1])
        return State(state.tokens + new, remaining, held), Round(new, draft.tokens, verified.accepted, len(new))

    return Decoder(correct("rsd").build(task, branching).init, step)


@planted(
    "transport-optimum",
    "plan-for-another-draw",
    "uses a transport plan for candidates drawn with replacement; they are drawn without",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,), "replacement": False},),
)
def plan_for_another_draw(task: Task, branching: tuple[int, ...] = (2, 1), replacement: bool = False) -> Decoder:
    """Optimal transport verification with the transport plan for another way of drawing the candidates.

    The candidates are drawn without replacement, but the plan is for draws with replacement, unless ``replacement`` is
    True. Each node at depth i has ``branching[i]`` children.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)
    return tree_decoder(task, drafter, optimal_transport(not replacement))


@planted(
    "rsd",
    "position-by-index",
    "uses the index of a node as its position instead of its depth",
    category="J",
    citation="mlxcel PR #1214",
    killed_by="law_is_target",
    examples=PAIR,
)
@with_tree
def position_by_index(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection that uses the index of a node in the flat tree as its position instead of its depth.

    A table model has no positions, so a wrong position is modelled by tokens put before the text.
    """
    texts = texts_of_rows(prefix, draft)

    def row(tokens: Tokens) -> Pmf:
        depth = len(tokens) - len(prefix)
        return target(prefix[:1] * (texts.index(tokens) - depth) + tokens)

    return reference_recursive_rejection(draws, row, prefix, draft)


@planted_tree(
    "q-of-the-root",
    "verifies every level of the tree with the q of the root",
    "without_replacement",
    citation="plausible",
    killed_by="law_is_target",
)
def q_of_the_root(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that verifies every level with the q of the root."""
    return numpy_without_replacement(p, np.broadcast_to(q[0], q.shape), parents, tokens)


@planted(
    "token-recycling",
    "recycled-rows-drawn-apart",
    "draws the target's token once for each path instead of once for all",
    category="J",
    citation="FasterDecoding/REST rest/model/utils.py at 50a5fc1",
    killed_by="law_is_target",
)
def recycled_rows_drawn_apart(task: Task, template: tuple[Tokens, ...] = ((0,),), width: int = 8) -> Decoder:
    """Token Recycling with a bug: the target's token at a position is drawn once for each path, not once for all paths.

    The drafted tree has tokens that were probable under the target earlier. ``template`` and ``width`` describe the
    tree, as in ``reference.algorithms.token_recycling``.
    """
    return tree_decoder(task, recycling_drafter(template, width), one_draw_a_row)


@planted(
    "rest-released",
    "released-rows-share-a-draw",
    "draws once for all paths; the release draws for each path",
    category="J",
    citation="plausible",
    killed_by="law_is_declared",
)
def released_rows_share_a_draw(
    task: Task, datastore: tuple[Tokens, ...] = (), longest: int = 4, depth: int = 4, nodes: int = 16
) -> Decoder:
    """REST, as released, with one shared draw per position for all paths: lossless, but not the declared law.

    REST drafts continuations that it finds in a ``datastore`` of texts. The release makes a draw for each path, which
    is biased, and declares this biased law. The parameters are those of ``reference.algorithms.rest_released``.
    """
    return tree_decoder(task, retrieval_drafter(datastore, longest, depth, nodes), candidate_set)


def replacement_not_declared_pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Draw a candidate from q; the law declared for it is q without the ``earlier`` siblings, renormalised: the bug."""
    left = excluding(q, earlier)
    return None if left is None else Child(draws.categorical(q, site), left)


replacement_not_declared = planted(
    "rsd",
    "replacement-not-declared",
    "draws siblings with replacement, but verifies them as if without",
    category="J",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=PAIR,
)(with_tree(pick=replacement_not_declared_pick))
"""Siblings are drawn with replacement but declared as drawn without replacement."""


@planted_tree(
    "residual-behind-the-last-level",
    "after an accepted leaf draws the bonus token from an earlier residual",
    "top_k",
    citation="EAGLE commits 2f982e2 to 61020ed; modeling_eagle.py:1448 at cb7e084",
    killed_by="law_is_target",
)
def residual_behind_the_last_level(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Verify the candidates of each node in turn, but draw the bonus token from a wrong row in one case.

    The bonus token should be drawn from the row after the accepted leaf. If a sibling of this leaf was rejected before,
    the token is drawn from the row before the leaf, without the rejected siblings: the bug. The candidates are declared
    as point masses.
    """
    rng, node, kept, rejected = np.random.default_rng(), -1, list[int](), False
    left = p[0]
    while children := below(parents, node):
        left, result, rejected = p[1 + node], None, False
        for child in children:
            if rng.random() < left[tokens[child]]:
                result = child
                break
            left, rejected = left * (np.arange(len(left)) != tokens[child]), True
            left = left / left.sum()
        if result is None:
            return [*kept, drawn(rng, left)]
        kept.append(int(tokens[result]))
        node = result
    return [*kept, drawn(rng, left if rejected else p[1 + node])]


@planted_tree(
    "row-of-the-first-path",
    "draws the next token from a row of the first path",
    "top_k",
    citation="plausible",
    killed_by="greedy_is_argmax",
    control=greedy,
    claims=frozenset({Claim.GREEDY}),
)
def row_of_the_first_path(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Greedy tree verification that reads the next token from a row of the first path instead of the longest match."""
    indices, candidates = along_paths(parents, tokens, padding=-1)
    wanted = p[indices].argmax(-1)
    lengths = (candidates[:, 1:] == wanted[:, :-1]).cumprod(-1).sum(-1)
    best = int(lengths.argmax())
    return [*candidates[best, 1 : 1 + lengths[best]].tolist(), int(wanted[0, lengths[best]])]


@planted(
    "rsd",
    "sampled-nodes-pruned",
    "removes drawn siblings with small q",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
@with_changed_tree
def sampled_nodes_pruned(tree: Draft, _: Pmf) -> Draft:
    """Return a tree of one level without the siblings whose q is below 1/3.

    So the siblings do not have the declared law any more.
    """
    rows = zip(*tree, strict=True)
    likely = [row for row in rows if row[2] is not None and row[2][row[0]] >= Fraction(1, 3)]
    tokens, parents, pmfs = zip(*likely, strict=True) if likely else ((), (), ())
    return Draft(tokens, parents, pmfs)


@planted(
    "rsd",
    "second-tree-round",
    "from round 2 on verifies trees without the last committed token",
    category="J",
    citation="FlexFlow PR #714",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
def second_tree_round(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """Recursive rejection that verifies trees as if the last committed token were missing, from round 2 on.

    Each node at depth i has ``branching[i]`` children.
    """
    right = correct("rsd").build(task, branching)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        known = len(state.tokens)

        def behind(tokens: Tokens) -> Pmf:
            return task.target(tokens[: known - 1] + tokens[known:])

        wrong = correct("rsd").build(task._replace(target=behind), branching)
        return (right if state.remaining == task.horizon else wrong).step(draws, state)

    return right._replace(step=step)


@planted_tree(
    "shape-of-the-first-tree",
    "uses the parents of the first tree for all trees of a batch",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
    batched=True,
)
def shape_of_the_first_tree(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """Verify a batch of trees by draws from p, using the parents of the first tree for all trees."""
    decided: list[list[int]] = in_batch(top_k)(p, q, np.broadcast_to(parents[0], parents.shape), tokens)
    return decided


@planted_tree(
    "shared-node-tried-twice",
    "tests a node once for each path that contains it",
    "without_replacement",
    citation="EAGLE before commit b09a256",
    killed_by="law_is_target",
)
def shared_node_tried_twice(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection path by path, which tries a node again for each path that contains it."""
    rule, shape = recursive_rejection(q, tokens, without=True), parents.tolist()
    shared = [node for path in sorted(tree_path(shape, leaf) for leaf in leaves(shape)) for node in path]

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, [node for node in shared if node in nodes], above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


@planted_tree(
    "siblings-by-leaf",
    "tries siblings in the order of their leaves, not in the order drawn",
    "without_replacement",
    citation="EAGLE before commit b09a256",
    killed_by="law_is_target",
)
def siblings_by_leaf(p: Any, q: Any, parents: Any, tokens: Any) -> list[int]:
    """Recursive rejection that tries siblings in the order of the leaves below them, not in the order drawn."""
    rule, shape = recursive_rejection(q, tokens, without=True), parents.tolist()
    met = list(dict.fromkeys(node for leaf in leaves(shape) for node in tree_path(shape, leaf)))

    def choose(rng: Any, row: Any, nodes: Sequence[int], above: int) -> tuple[int | None, int]:
        return rule(rng, row, sorted(nodes, key=met.index), above)

    return walked(np.random.default_rng(), p, parents, tokens, choose)


def siblings_share_a_residual_rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Try each candidate with min(1, p/q_k), where p is the target row, which no rejection changes: the bug.

    If all are rejected, emit a draw from the residual of p and the last candidate's q.
    """
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(p, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, pmfs[-1]), ("residual", depth)), accepted=False)


siblings_share_a_residual = planted(
    "rsd",
    "siblings-share-a-residual",
    "tests every sibling by p, without the residual of earlier rejections",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(by_siblings(siblings_share_a_residual_rule)))
"""After a sibling is rejected, the next sibling is tested against p again instead of against the residual."""


@planted(
    "rsd",
    "siblings-sorted",
    "tries siblings in decreasing order of q, not in the order drawn",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
@with_changed_tree
def siblings_sorted(tree: Draft, q: Pmf) -> Draft:
    """Return ``tree``, which has one level, with its siblings sorted by falling ``q`` instead of the order drawn.

    ``q`` is the draft pmf of the root.
    """
    best = tuple(sorted(tree.tokens, key=lambda token: -q[token]))
    return Draft(best, tree.parents, tuple(excluding(q, best[:k]) for k in range(len(best))))


def ties_to_the_first_path_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify only the sibling with the largest min(1, p/q), as a single draft; ties go to the sibling drafted first.

    The law declared for it is wrong: that of a selection that breaks ties by token id.
    """
    if not draft.tokens:
        return block_verification(draws, target, prefix, draft)
    p, q = target(prefix), draft.pmfs[0]
    assert q is not None
    capped = [accept_probability(p, q, token) if q[token] > 0 else 0 for token in range(len(p))]
    chosen = max(draft.tokens, key=capped.__getitem__)
    order = sorted(range(len(p)), key=lambda token: (capped[token], token))
    declared = selected_pmf(q, order, 0, 1, len(draft.tokens))
    return block_verification(draws, target, prefix, chain((chosen,), (declared,)))


@planted(
    "greedy-multi-path",
    "ties-to-the-first-path",
    "breaks ties by the drafting order, but declares the law for ties by id",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"paths": 2, "depth": 1},),
)
def ties_to_the_first_path(task: Task, paths: int = 3, depth: int = 1) -> Decoder:
    """Block verification of the best of several paths that breaks ties by drafting order, but declares another law.

    The original is greedy multi-path block verification (2602.16961). ``paths`` is the number of drafted paths. They
    have one token each, or none if ``depth`` is 0. The declared law is right if ties are broken by token id.
    """
    return tree_decoder(
        task, sequences_drafter((draft_model(task),) * paths, min(depth, 1)), ties_to_the_first_path_verify
    )


def top_k_tree_soft_q_pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Return the most probable token that is not in ``earlier`` as a candidate, but declare q as its law: the bug.

    The right declaration is a point mass on the candidate.
    """
    child = most_likely(draws, q, earlier, width, site)
    return None if child is None else Child(child.token, q)


top_k_tree_soft_q = planted(
    "candidate-set",
    "top-k-tree-soft-q",
    "divides by q for candidates that were not drawn from q",
    category="B",
    citation="EAGLE issues #221, #110 (disputed there)",
    killed_by="law_is_target",
    examples=PAIR,
)(with_tree(pick=top_k_tree_soft_q_pick))
"""A top-k tree is verified with the full pmf q, as if its nodes had been sampled."""


def traversal_keeps_its_weight_verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Verify a tree from its leaves up (traversal), without updating the weight of a node after a rejected child.

    The weight is the probability with which the part of the tree below the node accepts; it should fall.
    """

    def enter(node: int, weight: Any) -> Verified | None:
        text = path_tokens(draft, node)
        owed = target(prefix + text)
        for child in children(draft.parents, (node,)):
            q = child_pmf(draft, child, owed)
            result = enter(child, accept_probability(weight * owed, q, draft.tokens[child]))
            if result:
                return result
            owed = excess_law(weight * owed, q) if (weight * owed > q).any() else owed
        if node < 0 or flip(draws, weight, ("accept", node)):
            return Verified((*text, draws.categorical(owed, ("bonus", node))), accepted=len(text))
        return None

    result = enter(-1, 1)
    assert result is not None
    return result


@planted(
    "traversal-verification",
    "traversal-keeps-its-weight",
    "gives later children of a node the weight of the first child",
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (1, 1), "replacement": False},),
)
def traversal_keeps_its_weight(
    task: Task, branching: tuple[int, ...] = (2, 2, 1), replacement: bool = False
) -> Decoder:
    """Traversal verification with a bug: after a rejected child, the next child is tried with the old weight.

    Traversal verifies a tree from the leaves up. The weight of a node is the probability with which the part of the
    tree below the node accepts, and falls with each rejected child. ``branching[i]`` is the number of children of each
    node at depth i.
    """
    return tree_decoder(
        task,
        tree_drafter(draft_model(task), regular_tree(branching), without_replacement),
        traversal_keeps_its_weight_verify,
    )


@planted_tree(
    "trees-run-together",
    "reads the rows of tree k of a batch k rows too early",
    "top_k",
    citation="plausible",
    killed_by="law_is_target",
    batched=True,
)
def trees_run_together(p: Any, q: Any, parents: Any, tokens: Any) -> list[list[int]]:
    """Verify a batch of trees by draws from p; the rows of tree k are read k rows too early.

    The offset of a tree's rows leaves out the rows of the roots.
    """
    nodes = parents.shape[1]
    rows = p.reshape(-1, p.shape[-1])
    return [
        top_k(rows[tree * nodes : tree * nodes + nodes + 1], None, parents[tree], tokens[tree])
        for tree in range(len(p))
    ]
