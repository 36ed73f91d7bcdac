"""SWIFT: the target without some of its layers is the drafter, and the choice of layers changes over time (2410.06916).

The rule is that of the released code, hemingkx/SWIFT at 88caed7, ``model/swift/utils.py``:

* ``swift_draft``: a chain of tokens is drawn from q. It ends after a token with q(token) below a threshold.
* ``get_choices_list``: each token of the chain gets siblings, drawn without replacement; more siblings if q(token) is
  smaller. Siblings have no children.
* ``sample`` and ``evaluate_posterior``: recursive rejection, as in EAGLE.
* ``swift_optimization``: after a round another set of layers is tested on the first tokens of the answer. Its score is
  the number of these tokens that are the argmax of its q. A set is chosen if its score exceeds all earlier scores.

The number of siblings depends on the probability of the token drawn first. The output is exact nevertheless: that token
is tried first, and the residual after its rejection does not depend on it. The layers change only between rounds, by
committed text, which is exact too. Without search, siblings and stopping it would be ``layerskip``. The release draws
the sets of layers or proposes them by Bayesian optimisation; here ``sets`` lists them, and they are tried in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..drafters.self_draft import partial_model
from ..drafters.tree import excluding
from ..models import draft_model
from ..parameters import parameter
from ..pmf import argmax, checked_model
from ..tree_rounds import tree_decoder
from ..types import (
    Algorithm,
    Claim,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Pmf,
    Reduction,
    Task,
    Tokens,
)
from ..verifiers.recursive_rejection import recursive_rejection

Widths = Sequence[tuple[Any, int]]
"""(bound, count) pairs, from the highest bound: ``count`` candidates where the first has a probability above it."""
RELEASED: Widths = ((Fraction(19, 20), 1), (Fraction(4, 5), 3), (Fraction(1, 2), 5), (-1, 10))


class Search(NamedTuple):
    """The set of layers that drafts now, and the state of the search for a better one.

    ``chosen`` is the index of the set that drafts, ``tried`` the index of the set that was tried last.
    """

    begin: int
    """Number of tokens of the prompt."""
    chosen: int = 0
    tried: int = 0
    best: int = 0
    """Number of the first tokens of the answer that are the argmax of the chosen set. It starts at 0, so the first set
    with one such token is chosen."""


def candidates(widths: Widths, q: Pmf, token: int) -> int:
    """Return the number of tokens drawn at a position, of which ``token`` is the first; the others are its siblings.

    ``widths`` has pairs (bound, count); the result is the count of the first pair whose bound is below q(token). Raises
    ``ValueError`` if there is none.
    """
    for bound, count in widths:
        if q[token] > parameter(bound, q):
            return count
    raise ValueError(f"widths are {tuple(widths)}, expected a last bound below every probability, such as -1")


def layer_drafter(sets: Sequence[LanguageModel], depth: int, stop: Any, widths: Widths, window: int) -> Drafter:
    """Return a drafter of at most ``depth`` levels that uses the best of the models ``sets``; each skips other layers.

    Once the answer has ``window`` tokens, one more model is scored after each round. Its score is the number of the
    first ``window`` tokens that are its argmax; the model with the best score drafts. A draft ends after a token with
    probability below ``stop``. ``widths`` gives the number of siblings (see ``candidates``).
    """

    def propose(draws: Draws, state: Search, prefix: Tokens, gamma: int, _: Callable[[Pmf, int], bool]) -> Draft:
        grown, above, text = Draft((), (), ()), -1, prefix
        for level in range(min(depth, gamma)):
            q = sets[state.chosen](text)
            drawn: Tokens = ()
            count = 1
            while len(drawn) < count and (left := excluding(q, drawn)) is not None:
                token = draws.categorical(left, ("draft", level, len(drawn)))
                grown = Draft((*grown.tokens, token), (*grown.parents, above), (*grown.pmfs, left))
                drawn = (*drawn, token)
                count = candidates(widths, q, drawn[0])
            above, text = len(grown.tokens) - len(drawn), (*text, drawn[0])
            if q[drawn[0]] < parameter(stop, q):
                break
        return grown

    def observe(state: Search, tokens: Tokens, _: int, __: LanguageModel) -> Search:
        if len(tokens) - state.begin < window or len(sets) == 1:
            return state
        tried = (state.tried + 1) % len(sets)
        places = range(state.begin, state.begin + window)
        met = sum(argmax(sets[tried](tokens[:place])) == tokens[place] for place in places)
        better = met > state.best
        return Search(state.begin, tried if better else state.chosen, tried, max(met, state.best))

    return Drafter(init=lambda prompt: Search(len(prompt)), propose=propose, observe=observe)


def build(
    task: Task,
    depth: int = 25,
    stop: Any = Fraction(4, 5),
    widths: Widths = RELEASED,
    sets: tuple[int, ...] = (1, 2, 3),
    layers: int = 4,
    window: int = 32,
) -> Decoder:
    """Return the decoder whose drafter leaves out layers of the target.

    ``sets`` has, for each set of layers that may draft, the number of layers that run, of ``layers`` in all. A draft
    has at most ``depth`` levels and ends after a token with probability below ``stop``; ``widths`` gives the number of
    siblings. The first ``window`` tokens of an answer score the sets.
    """
    target, draft = checked_model(task.target, "target"), draft_model(task)
    models = [partial_model(target, draft, run, layers) for run in sets]
    return tree_decoder(task, layer_drafter(models, depth, stop, widths, window), recursive_rejection)


ALGORITHM = Algorithm(
    name="swift",
    summary="a subset of the layers drafts a path, with siblings where it is unsure; recursive rejection",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"depth": 2, "stop": 0.4, "widths": ((0.5, 1), (-1, 2)), "sets": (1, 3), "layers": 4, "window": 1},
        {"depth": 1, "stop": 0, "widths": ((0.3, 2), (-1, 3)), "sets": (0,), "layers": 2, "window": 1},
    ),
    paper="arXiv 2410.06916; code: hemingkx/SWIFT 88caed7, model/swift/utils.py",
    systems=("SWIFT",),
    needs_training="which layers can be skipped",
    reductions=(
        Reduction(
            "layerskip",
            "one set of layers, one candidate per position, no early stop",
            {"depth": 2, "stop": 0, "widths": ((-1, 1),), "sets": (1,), "layers": 2},
            {"gamma": 2, "exit_layer": 1, "layers": 2},
        ),
    ),
)
