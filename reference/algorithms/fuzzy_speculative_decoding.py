"""Fuzzy speculative decoding: accept a draft where p and q are close, whatever the draft is (2502.20704).

Holsman et al.; the rule is that of the released code, maxholsman/fsd at e92a157, ``fsd_utils.py``,
``_speculative_backoff_sampling``. A draft is accepted if the divergence of p and q at its position is at most a
threshold. The first rejected draft is replaced by a draw from p itself (``p_prime = p_n_plus_1``). Drafts are the draft
model's argmax (``do_sample = False`` in the release's candidate generator).

Here the divergence is the total variation, the release's ``tv_div``; the release also offers KL and JS. The release
computes the divergence before temperature and truncation, but draws from the pmfs after them. Here both use the task's
p and q; this is the release without temperature and truncation.

The law is known: where TV(p, q) <= threshold the token is the argmax of q, elsewhere it has the law p. With a target at
temperature 0 the output need not be the target's text, because q may have a different argmax within the threshold.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..coupling import total_variation
from ..drafters.model import greedy_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import point_on_argmax
from ..rounds import from_parts
from ..types import Algorithm, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, threshold: Any = Fraction(1, 5), gamma: int = 5) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes of q, accepted while TV(p, q) is at most ``threshold``."""
    draft = draft_model(task)

    def accept(prefix: Tokens, p: Pmf, _: Pmf, token: int) -> int:
        return int(total_variation(p, draft(prefix)) <= parameter(threshold, p))

    verify = accept_or_replace(accept, replacement=lambda p, q, token: p)
    return Parts(greedy_drafter(draft), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, threshold: Any = Fraction(1, 5), gamma: int = 5) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        near = total_variation(p, q) <= parameter(threshold, p)
        return (point_on_argmax(q).tolist(), []) if near else ([], p.tolist())

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="fuzzy-speculative-decoding",
    summary="accept d = argmax q while TV(p, q) <= threshold, else sample p (declared bias)",
    build=build,
    claims=frozenset(),
    examples=({"threshold": Fraction(2, 5), "gamma": 2}, {"threshold": Fraction(1, 4), "gamma": 3}),
    paper="arXiv 2502.20704; code: maxholsman/fsd e92a157, fsd_utils.py",
    declared_law=declared_law,
    systems=("fuzzy speculative decoding",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(Reduction("autoregressive", "threshold < 0", {"threshold": -1, "gamma": 2}, rounds=False),),
)
