"""TriForce as released: after an inner rejection the token is drawn from q', not from norm((q' - q'')+).

Not lossless: ``declared_law`` returns the law of the output. q'' is the small model, q' the target with a partial
cache, p the target. The rule is that of ``Middle_Spec`` in Infini-AI-Lab/TriForce at 164c8c0, ``utils/decoding.py``. An
inner round has one draft. Its token has the law ``min(q', q'') + TV(q', q'') q'``, but the outer round verifies it as a
sample of q'. The token after an accepted inner draft is a sample of q'. The released block may be one token longer than
gamma; here it is cut. The decoder has no function ``propose``, because its drafts do not have the law q'.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..coupling import accept_probability, positive_part, residual, total_variation
from ..drafters.cascade import vertical
from ..drafters.model import model_drafter
from ..drafters.sequences import forgetful
from ..lengths.constant import constant
from ..limits import perfect_draft
from ..models import draft_model
from ..rounds import from_parts, without_proposal
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 4, forget: int = 1) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens and verifies them as draws from q', which they are not.

    q' is the target without the first ``forget`` tokens of the text.
    """
    partial = forgetful(task.target, forget)
    inner = accept_or_replace(
        accept=lambda prefix, p, q, token: accept_probability(p, q, token),
        replacement=lambda p, q, token: p,
    )
    drafter = vertical(partial, model_drafter(draft_model(task)), 1, inner)
    return Parts(drafter, constant(gamma), speculative_sampling, around=without_proposal)


def declared_law(task: Task, prompt: Tokens, gamma: int = 4, forget: int = 1) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    It is computed token by token. The probabilities are kept for each text, number of drafts left, and whether the last
    draft was an accepted inner one. The options are those of ``build``.
    """
    partial, draft = forgetful(task.target, forget), draft_model(task)
    law: dict[Tokens, Any] = defaultdict(int)
    reached: dict[tuple[Tokens, int, bool], Any] = {((), min(gamma, task.horizon - 1), False): 1}
    for length in range(task.horizon):
        start = min(gamma, task.horizon - length - 2)
        after: dict[tuple[Tokens, int, bool], Any] = defaultdict(int)
        for (new, left, was_accepted), weight in reached.items():
            p = task.target(prompt + new)
            if left <= 0:
                moves = [(p, start, False)]
            else:
                q1 = partial(prompt + new)
                moves = [
                    (kept, left - 1, accepted) for kept, accepted in drafted(q1, draft(prompt + new), was_accepted)
                ]
                moves = [(mass * acceptance(p, q1), *rest) for mass, *rest in moves]
                rejected = 1 - sum(mass.sum() for mass, *_ in moves)
                moves.append((rejected * residual(p, q1), start, False))
            for masses, drafts_left, accepted in moves:
                for token, mass in enumerate(masses.tolist()):
                    text = (*new, token)
                    if not mass > 0:
                        continue
                    if len(text) == task.horizon or token in task.eos:
                        law[text] += weight * mass
                    else:
                        after[text, drafts_left, accepted] += weight * mass
        reached = after
    return dict(law) if task.horizon else {(): 1}


def drafted(q1: Pmf, q2: Pmf, was_accepted: bool) -> list[tuple[Pmf, bool]]:
    """Return the ways in which the next draft can arise, each as (weights ``[V]``, is it an accepted inner draft).

    ``q1`` is q' and ``q2`` is q''. A weight is the joint probability of the way and the token. ``was_accepted`` states
    that the last draft was an accepted inner draft: the next one is then a draw from q'. Otherwise an inner draft is
    tested, and replaced by a draw from q' if it is rejected.
    """
    if was_accepted:
        return [(q1, False)]
    return [(q1 - positive_part(q1 - q2), True), (total_variation(q1, q2) * q1, False)]


def acceptance(p: Pmf, q1: Pmf) -> Pmf:
    """Return ``min(1, p/q')`` for every token, ``[V]``, with q' = ``q1``; tokens with q' = 0 are never drafted."""
    kept = q1 * 0
    for token in range(len(q1)):
        kept[token] = accept_probability(p, q1, token)
    return kept


ALGORITHM = Algorithm(
    name="triforce-released",
    summary="as triforce, but an inner rejection draws from q' (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 2},),
    paper="Infini-AI-Lab/TriForce 164c8c0, utils/decoding.py, Middle_Spec",
    declared_law=declared_law,
    systems=("TriForce",),
    needs_training="how similar the pmfs with a partial cache and with the whole cache are",
    reductions=(
        Reduction(
            "triforce",
            "q'' = q' = p",
            {"gamma": 2, "forget": 0},
            {"gamma": 2, "inner": 1, "forget": 0},
            limit=perfect_draft,
        ),
    ),
)
