"""SPEC-RL: the rollout of the last epoch is the draft; plain decoding follows its first rejected token (2509.23232).

The rule is that of the released code, ShopeeLLM/Spec-RL at 97da99e, ``verl/utils/speculative_decoding.py``,
``spec_cut`` and ``spec_cut_with_knobs``, and ``verl/trainer/ppo/ray_trainer.py``. Token d of the old response is
accepted with probability ``min(1, l p(d)/q(d))``, where q is the policy that wrote the response and l the lenience (e^b
in the code). The response is cut at the first rejected token, and the new policy continues from there, without
speculation. A response that is accepted as a whole is not continued, and an end-of-sequence token in it is treated like
any other token.

Two points differ from speculative sampling. The token at the cut is a draw from p, not from ``norm((p - q)+)``, so even
at lenience 1 the rollout does not have the new policy's law. A lenience above 1 accepts more drafts.

The uniforms come from a generator with one fixed seed (``seed=1234``) at every step, so rollouts of different steps use
the same numbers. In this decoder every draw is new, so the reuse is not part of it; ``docs/on-policy.md`` shows which
check detects the reuse.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ..coupling import flip, positive_part
from ..drafters.model import model_drafter
from ..models import draft_model
from ..parameters import parameter
from ..pmf import checked_model
from ..rounds import check_unfinished, commit, initial_state
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Pmf, Reduction, Round, State, Task, Tokens


def reuse_probability(p: Pmf, q: Pmf, token: int, lenience: Any) -> Any:
    """Return ``min(1, l p(d)/q(d))`` for d = ``token`` and l = ``lenience``, without a division by zero.

    Raises ``ValueError`` for a negative lenience.
    """
    if not lenience >= 0:
        raise ValueError(f"lenience is {lenience}, expected a factor >= 0 (1 is the paper's, 0 reuses nothing)")
    mass = parameter(lenience, p) * p[token]
    return mass / q[token] if mass < q[token] else mass * 0 + (mass > 0)


def build(task: Task, lenience: Any = 1) -> Decoder:
    """Return the decoder that drafts a whole response from q in the first round.

    A draft is accepted with probability ``min(1, lenience p/q)``. After the first rejection, the token is drawn from p,
    and the following rounds are plain decoding.
    """
    target, old = checked_model(task.target, "target"), model_drafter(draft_model(task))

    def propose(draws: Draws, state: State) -> Draft:
        return old.propose(draws, None, state.tokens, 0 if state.drafter else state.remaining, stop)

    def stop(q: Pmf, token: int) -> bool:
        return token in task.eos

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        draft = propose(draws, state)
        kept = 0
        while kept < len(draft.tokens):
            p = target(state.tokens + draft.tokens[:kept])
            if not flip(draws, reuse_probability(p, draft.pmfs[kept], draft.tokens[kept], lenience), ("accept", kept)):
                break
            kept += 1
        new = draft.tokens[:kept]
        if kept < len(draft.tokens) or not draft.tokens:
            new = (*new, draws.categorical(target(state.tokens + new), ("target", kept)))
        committed, remaining = commit(new, state.remaining, task.eos)
        reached = min(kept + 1, len(draft.tokens), len(committed))
        after = State(state.tokens + committed, remaining, drafter=True)
        return after, Round(committed, draft.tokens, min(kept, len(committed)), reached)

    return Decoder(lambda prompt: initial_state(prompt, task)._replace(drafter=False), step, propose)


def declared_law(task: Task, prompt: Tokens, lenience: Any = 1) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: accepted tokens of the old response, then draws from p.

    The options are those of ``build``.
    """
    draft = draft_model(task)
    law: dict[Tokens, Any] = defaultdict(int)
    reached: dict[tuple[Tokens, bool], Any] = {((), True): 1}
    for _ in range(task.horizon):
        after: dict[tuple[Tokens, bool], Any] = defaultdict(int)
        for (new, reusing), weight in reached.items():
            p = task.target(prompt + new)
            kept = p * 0
            if reusing:
                q = draft(prompt + new)
                raised = parameter(lenience, p) * p
                kept = raised - positive_part(raised - q)
            for masses, onwards in ((kept, True), ((1 - kept.sum()) * p, False)):
                for token, mass in enumerate(masses.tolist()):
                    if mass > 0:
                        text = (*new, token)
                        done = len(text) == task.horizon or token in task.eos
                        (law if done else after)[text if done else (text, onwards)] += weight * mass  # type: ignore[index]
        reached = after
    return dict(law) if task.horizon else {(): 1}


ALGORITHM = Algorithm(
    name="spec-rl",
    summary="drafts are the old policy's response, accepted with min(1, l p/q); after a rejection only p is "
    "sampled (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"lenience": 1}, {"lenience": 2}),
    paper="arXiv 2509.23232; code: ShopeeLLM/Spec-RL 97da99e, verl/utils/speculative_decoding.py",
    declared_law=declared_law,
    systems=("SPEC-RL",),
    needs_training="by how much a policy changes in an epoch",
    reductions=(Reduction("autoregressive", "lenience = 0", {"lenience": 0}, rounds=False),),
)
