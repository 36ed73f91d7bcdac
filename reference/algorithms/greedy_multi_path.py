"""Greedy multi-path block verification (GBV): of K drafted paths verify the best by p/q, as a block (2602.16961).

K paths of L tokens are drawn from q independently. At every position the tokens are ordered by p/q, ties by id. So the
paths have a lexicographic order, and the largest path is selected. The probability that all K paths are at most s is
F(s)^K, where F(s) is the mass under q of the paths up to s. So the next token of the selected path has the law

    q'(v) = ((A + y_v + x q(v))^K - (A + y_v)^K) / ((A + x)^K - A^K)

Here x is the mass under q of the text selected so far, A the mass of all smaller texts of this length, and y_v the mass
of the continuations of the selected text by tokens below v. Block verification (arXiv 2403.10444) of the selected path,
with q' in place of q, is lossless, because block verification is lossless for every known law of drafts. With one path
it is block verification itself.

The formula and the order are those of the authors' implementation (``gbv_verify``, ``compute_skew``), read in two
copies. One copy caps p/q at 1 before it orders the paths. Capped ratios are often equal. This copy then selects the
path drafted first, although the formula orders equal ratios by id, so q' is not the law of its path. Any order is right
if selection and formula share it.
"""

from __future__ import annotations

from typing import Any

from ..drafters.sequences import sequences_drafter
from ..kv_cache import tree_path
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import child_pmf, leaves, path_tokens
from ..types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Reduction,
    Task,
    Tokens,
    Verified,
    chain,
)
from ..verifiers.block_verification import block_verification


def ranking(p: Pmf, q: Pmf) -> list[int]:
    """Return all tokens in increasing order of p/q, ties by id; tokens with q = 0 come first."""
    masses, proposed = p.tolist(), q.tolist()
    return sorted(range(len(proposed)), key=lambda v: (masses[v] / proposed[v] if proposed[v] > 0 else 0, v))


def below(q: Pmf, order: list[int]) -> list[Any]:
    """Return for every token the mass under q of the tokens before it in ``order``."""
    result, total = [0 * q[0]] * len(order), 0 * q[0]
    for token in order:
        result[token] = total
        total = total + q[token]
    return result


def selected_pmf(q: Pmf, order: list[int], lower: Any, mass: Any, count: int) -> Pmf:
    """Return q', the law of the next token of the selected path: the largest of ``count`` paths drafted from q.

    Paths are compared at the first position where they differ; the token later in ``order`` is larger. ``order`` has
    all tokens of this position by increasing p/q. ``mass`` is the probability under q of the part of the selected path
    before this position, and ``lower`` that of all smaller sequences of the same length.
    """
    start = lower + mass * _like(below(q, order), q)
    end = start + mass * q
    weights = q * sum(end**i * start ** (count - 1 - i) for i in range(count))
    return weights / weights.sum()


def _like(values: list[Any], like: Pmf) -> Pmf:
    """Return ``values`` as an array of the type of ``like``."""
    result = like * 0
    for token, value in enumerate(values):
        result[token] = value
    return result


def selection(target: LanguageModel, prefix: Tokens, draft: Draft) -> Draft:
    """Return the selected path of ``draft`` as a chain: its largest path in the lexicographic order by p/q.

    The pmf of each of its tokens is q' (see ``selected_pmf``), not the q from which the token was drawn.
    """
    result = {path_tokens(draft, leaf): leaf for leaf in leaves(draft.parents)}
    count = len(leaves(draft.parents))
    tokens: list[int] = []
    pmfs: list[Pmf] = []
    lower, mass = 0, 1
    for depth in range(max(map(len, result), default=0)):
        alike = [path for path in result if path[:depth] == tuple(tokens)]
        text = prefix + tuple(tokens)
        q = child_pmf(draft, tree_path(draft.parents, result[alike[0]])[depth], target(text))
        order = ranking(target(text), q)
        pmfs.append(selected_pmf(q, order, lower, mass, count))
        chosen = max((path[depth] for path in alike), key=order.index)
        lower, mass = lower + mass * below(q, order)[chosen], mass * q[chosen]
        tokens.append(chosen)
    return chain(tuple(tokens), tuple(pmfs))


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Select one of the drafted paths and verify it as a block, with the law of the selected path in place of q."""
    return block_verification(draws, target, prefix, selection(target, prefix, draft))


def build(task: Task, paths: int = 3, depth: int = 8) -> Decoder:
    """Return the decoder that drafts K = ``paths`` sequences of ``depth`` tokens from q."""
    return tree_decoder(task, sequences_drafter((draft_model(task),) * paths, depth), verify)


ALGORITHM = Algorithm(
    name="greedy-multi-path",
    summary="of K paths the one with the highest p/q at each token; block verification with the law of this path as q",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"paths": 2, "depth": 2}, {"paths": 3, "depth": 1}),
    paper="arXiv 2602.16961, greedy multi-path block verification",
    systems=("GBV",),
    reductions=(
        Reduction("block-verification", "one path", {"paths": 1, "depth": 2}, {"gamma": 2}),
        Reduction("autoregressive", "depth = 0", {"paths": 2, "depth": 0}),
    ),
)
