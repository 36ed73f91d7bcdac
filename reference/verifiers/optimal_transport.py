"""The optimal verifier of several candidates for one position, by an optimal transport plan (SpecTr, arXiv 2310.15141).

Given the set S that was drawn, accept v in S with probability ``plan(S, v)/Q(S)``, where Q is the law of S; if none is
accepted, emit a draw from the rest of p. This is lossless for every plan. An optimal plan accepts with alpha* of
``transport.optimum``. The plan depends on q, the number of candidates and how they are drawn, never on the drawn
tokens. It is computed exactly, which is affordable for few candidates and small vocabularies only.
"""

from __future__ import annotations

import numpy as np

from ..remembered import by_values
from ..transport import SetLaw, TransportPlan, candidate_set_law, optimal_plan
from ..tree_rounds import Step, descend
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified, Verifier


def optimal_transport(replacement: bool) -> Verifier:
    """Return the verifier for candidates that were drawn from one q, with or without ``replacement``.

    The verifier takes NumPy pmfs, of floats or of fractions. It reads q from the first candidate, whose pmf is q in
    both cases.
    """

    def select(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
        plan, sets = _plan(p, pmfs[0], len(tokens), replacement)
        drawn = frozenset(tokens)
        accepted = [plan.accepted[drawn].get(token, 0) / sets[drawn] for token in range(len(p))]
        rejected = max(1 - sum(accepted), 0 * p[0])
        choice = draws.categorical(np.array([*accepted, rejected], dtype=p.dtype), ("choose", depth))
        if choice < len(p):
            return Step(choice, accepted=True)
        owed = np.array(plan.owed, dtype=p.dtype)
        owed = owed / owed.sum() if owed.sum() > 0 else p
        return Step(draws.categorical(owed, ("residual", depth)), accepted=False)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        return descend(draws, target, prefix, draft, select)

    return verify


@by_values
def _plan(p: Pmf, q: Pmf, count: int, replacement: int) -> tuple[TransportPlan, SetLaw]:
    sets = candidate_set_law(q, count, bool(replacement))
    return optimal_plan(p, sets), sets
