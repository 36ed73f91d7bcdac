"""Edge and cloud with a gate: blocks that the drafter finds easy are committed without verification.

Not lossless: ``declared_law`` returns the law of the output. A token is hard by the signals of
``reference.lengths.gating``; a block is easy if its share of hard tokens is at most ``most`` (.3 in the edge-cloud
guide). An easy block has the law of blocks drafted from q, given that the block is easy. The others are verified
exactly. So the output has neither the law q nor p. With ``most`` < 0 every block is verified, as in
``edge-cloud-sparse-q``. Not covered: the guide's rules that always ask the cloud (numbers, names, rare words).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..coupling import accept_probability, residual
from ..edge_cloud.gated import gated_decoder, is_easy
from ..lengths.gating import Gate
from ..models import draft_model
from ..rounds import commit
from ..types import Algorithm, Decoder, Pmf, Reduction, Task, Tokens


def build(
    task: Task,
    gamma: int = 4,
    nll: float | None = None,
    entropy: float | None = 1.733,
    margin: Any = 0.2,
    most: Any = Fraction(3, 10),
) -> Decoder:
    """Return the decoder that drafts ``gamma`` tokens from q on the edge, and sends hard blocks to the cloud.

    A token d is hard if -ln q(d) > ``nll``, the entropy of q > ``entropy``, or the margin of the two largest entries of
    q < ``margin``; None switches a signal off. A block is hard if more than the share ``most`` of its tokens is hard.
    Other blocks are committed unverified.
    """
    return gated_decoder(task, "sparse-q", Gate(nll, entropy, margin), most, gamma)


def declared_law(
    task: Task,
    prompt: Tokens,
    gamma: int = 4,
    nll: float | None = None,
    entropy: float | None = 1.733,
    margin: Any = 0.2,
    most: Any = Fraction(3, 10),
) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: a sum over drafted blocks, weighted by their probability.

    The options are those of ``build``.
    """
    gate = Gate(nll, entropy, margin)
    law: dict[Tokens, Any] = defaultdict(int)
    starts: dict[int, dict[Tokens, Any]] = defaultdict(lambda: defaultdict(int))
    starts[task.horizon][()] = 1
    for remaining in range(task.horizon, 0, -1):
        for new, weight in starts.pop(remaining, {}).items():
            for block, mass in _after_block(task, prompt + new, min(gamma, remaining - 1), gate, most):
                kept, left = commit(block, remaining, task.eos)
                if left:
                    starts[left][new + kept] += weight * mass
                else:
                    law[new + kept] += weight * mass
    return dict(law) if task.horizon else {(): 1}


def _after_block(task: Task, prefix: Tokens, count: int, gate: Gate, most: Any) -> Iterator[tuple[Tokens, Any]]:
    """Yield each outcome of a block of ``count`` drafts after the text ``prefix``, with its probability.

    An outcome is the block committed unverified, the block cut at a rejection, or the block with a bonus token. A block
    is committed unverified if at most the share ``most`` of its tokens is hard by ``gate``.
    """
    rejected: dict[Tokens, Any] = defaultdict(int)
    accepted: dict[Tokens, Any] = defaultdict(int)
    draft = draft_model(task)
    for drafted, pmfs, weight in _blocks(task, prefix, count):
        if is_easy(gate, most, drafted, pmfs):
            yield drafted, weight
            continue
        for i, token in enumerate(drafted):
            stays = accept_probability(task.target(prefix + drafted[:i]), pmfs[i], token)
            rejected[drafted[:i]] += weight * (1 - stays)
            weight = weight * stays  # noqa: PLW2901 - what is left of it
        accepted[drafted] += weight
    for kept, weight in rejected.items():
        p, q = task.target(prefix + kept), draft(prefix + kept)
        yield from _one_more(kept, weight, residual(p, q))
    for kept, weight in accepted.items():
        yield from _one_more(kept, weight, task.target(prefix + kept))


def _blocks(task: Task, prefix: Tokens, count: int) -> list[tuple[Tokens, tuple[Pmf, ...], Any]]:
    """Return every block of ``count`` drafts with its rows of q and its probability under q.

    ``prefix`` is the text before the block.
    """
    draft = draft_model(task)
    blocks: list[tuple[Tokens, tuple[Pmf, ...], Any]] = [((), (), 1)]
    for _ in range(count):
        rows = [(drafted, pmfs, weight, draft(prefix + drafted)) for drafted, pmfs, weight in blocks]
        blocks = [
            ((*drafted, token), (*pmfs, q), weight * mass)
            for drafted, pmfs, weight, q in rows
            for token, mass in enumerate(q.tolist())
            if mass > 0
        ]
    return blocks


def _one_more(kept: Tokens, weight: Any, pmf: Pmf) -> Iterator[tuple[Tokens, Any]]:
    if weight > 0:
        yield from (((*kept, token), weight * mass) for token, mass in enumerate(pmf.tolist()) if mass > 0)


ALGORITHM = Algorithm(
    name="edge-cloud-gated",
    summary="the edge commits blocks that its gate calls easy; the cloud verifies the other blocks (declared bias)",
    build=build,
    claims=frozenset(),
    examples=(
        {"gamma": 1, "nll": 0.9, "entropy": None, "margin": None, "most": 0},
        {"gamma": 2, "nll": 0.9, "entropy": None, "margin": Fraction(1, 5), "most": Fraction(1, 2)},
    ),
    paper="edge-cloud guide, Sections 3.1 and 4 (gating with local commits)",
    declared_law=declared_law,
    systems=("edge-cloud", "gating"),
    reductions=(
        Reduction(
            "edge-cloud-sparse-q",
            "most < 0",
            {"most": -1, "gamma": 2},
            {"gamma": 2},
            shown_by="test_gated.py::test_a_gate_that_always_fires_is_verification_round_by_round",
        ),
    ),
)
