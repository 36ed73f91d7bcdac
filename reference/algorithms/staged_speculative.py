"""Staged and polybasic speculative decoding: a chain of models, each drafting for the next (2308.04623, 2510.26527).

The smallest model drafts for q, and the tokens verified against q are the draft for p. Such a token has the law q,
which is its pmf in the verification against p. Inner rounds continue until there are ``least`` tokens. All tokens of
the last inner round are kept, including the one after its drafts. So the length of the block depends on earlier
accepted and rejected drafts, never on a token not yet drawn. (``triforce`` cuts its block at a fixed length.)

The staged method drafts a tree for q; here it is a chain of three models, as in the polybasic method. The smallest
model is q without the first token of the text.
"""

from __future__ import annotations

from collections.abc import Callable

from ..drafters.model import model_drafter, stateless
from ..drafters.sequences import forgetful
from ..lengths.constant import check_gamma, constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Site,
    Task,
    Tokens,
    chain,
    never,
)
from ..verifiers.speculative_sampling import speculative_sampling


class _Stage:
    """A source of draws for one inner round.

    It adds to the name (site) of each draw the position in the block at which the round began. So the draws of two
    inner rounds have different names.
    """

    def __init__(self, draws: Draws, start: int) -> None:
        self._draws, self._start = draws, start

    def categorical(self, pmf: Pmf, site: Site) -> int:
        return self._draws.categorical(pmf, ("stage", self._start, *site))


def gathering(model: LanguageModel, small: LanguageModel, inner: int, least: int) -> Drafter:
    """Return a drafter with the law of ``model``, whose tokens come from inner rounds of speculative sampling.

    In an inner round ``small`` drafts ``inner`` tokens, which are verified against ``model``. Rounds continue until
    there are at least ``least`` tokens.
    """
    drafter = model_drafter(small)

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        block: Tokens = ()
        while len(block) < min(least, gamma):
            text, stage = prefix + block, _Stage(draws, len(block))
            guess = drafter.propose(stage, None, text, min(inner, gamma - len(block)), never)
            block = (block + speculative_sampling(stage, model, text, guess).tokens)[:gamma]
        return chain(block, tuple(model(prefix + block[:i]) for i in range(len(block))))

    return Drafter(init=stateless, propose=propose, observe=stateless)


@from_parts
def build(task: Task, least: int = 4, inner: int = 2) -> Parts:
    """Return the decoder that drafts at least ``least`` tokens with the law q, by inner rounds of ``inner`` drafts."""
    for value, name in ((least, "least"), (inner, "inner")):
        check_gamma(value, name)
    draft = draft_model(task)
    return Parts(gathering(draft, forgetful(draft, 1), inner, least), constant(least + inner), speculative_sampling)


ALGORITHM = Algorithm(
    name="staged-speculative",
    summary="a small model drafts for q by whole rounds; these tokens are drafts for p, accepted with min(1, p/q)",
    build=build,
    claims=frozenset(Claim),
    examples=({"least": 1, "inner": 1}, {"least": 2, "inner": 1}),
    paper="arXiv 2308.04623; arXiv 2510.26527",
    systems=("staged speculative decoding", "polybasic speculative decoding"),
    needs_training="how similar the pmfs of each model and the next larger one are",
    reductions=(
        Reduction("autoregressive", "no token is drafted", {"least": 0}),
        Reduction("speculative-sampling", "the inner stage drafts no token", {"least": 2, "inner": 0}, {"gamma": 2}),
    ),
)
