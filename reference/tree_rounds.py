"""A round with a tree: draft, walk down from the root as far as candidates are accepted, commit.

The drafter decides the size of a tree; the horizon limits its depth. Many verifiers decide level by level. Such a
verifier is given by its rule for one position: ``descend`` applies the rule from the root until nothing is accepted or
a node has no children.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from .pmf import checked_model
from .rounds import check_unfinished, commit, initial_state
from .trees import ROOT, check_draft, child_pmf, children
from .types import (
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Pmf,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    Verifier,
    never,
)


class Step(NamedTuple):
    """The token emitted at one position of a draft tree, and whether it is one of the drafted candidates there.

    If so, verification continues with the children of this candidate; otherwise the round ends.
    """

    token: int
    accepted: bool


SiblingRule: TypeAlias = Callable[[Draws, Pmf, Tokens, tuple[Pmf, ...], int], Step]
"""``rule(draws, p, tokens, pmfs, depth)`` decides one position at ``depth`` (0 at the root); p is the target's row.

``tokens`` are the candidates in the order drawn, ``pmfs[i]`` is the pmf from which candidate i was drawn.
Lossless for one position means that the token has the law p whenever the candidates have theirs. A rule may depend on
how many candidates there are, since that was decided before they were drawn.
"""


def descend(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft, rule: SiblingRule) -> Verified:
    """Apply ``rule`` at the root and after every accepted token; draw a bonus token at a node without children.

    ``rule(draws, p, tokens, pmfs, depth)`` returns the ``Step`` of one position: p is the target's row, ``tokens`` are
    the candidates, ``pmfs`` their pmfs, ``depth`` is 0 at the root. If several siblings have the accepted token, the
    children of all of them are the next candidates.
    """
    kept: Tokens = ()
    nodes = ROOT
    while siblings := children(draft.parents, nodes):
        p = target(prefix + kept)
        tokens = tuple(draft.tokens[node] for node in siblings)
        step = rule(draws, p, tokens, tuple(child_pmf(draft, node, p) for node in siblings), len(kept))
        kept = (*kept, step.token)
        if not step.accepted:
            return Verified(kept, accepted=len(kept) - 1)
        nodes = tuple(node for node in siblings if draft.tokens[node] == step.token)
    bonus = draws.categorical(target(prefix + kept), ("bonus",))
    return Verified((*kept, bonus), accepted=len(kept))


def tree_decoder(task: Task, drafter: Drafter, verify: Verifier) -> Decoder:
    """Return the decoder built from a tree drafter and the verifier ``verify``; a chain is a tree too.

    The drafter gets ``remaining - 1`` as ``gamma``, the largest depth. ``Round.draft`` has the accepted path first,
    then the other nodes; ``Round.reached`` counts levels. ``init`` raises ``ValueError`` for an empty prompt, ``step``
    if the decoder has finished.
    """
    target = checked_model(task.target, "target")

    def propose(draws: Draws, state: State) -> Draft:
        return check_draft(drafter.propose(draws, state.drafter, state.tokens, state.remaining - 1, never))

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        check_unfinished(state)
        draft = propose(draws, state)
        verified = verify(draws, target, state.tokens, draft)
        new, remaining = commit(verified.tokens, state.remaining, task.eos)
        tokens = state.tokens + new
        path, further = _walked(draft, verified.tokens[: verified.accepted])
        others = tuple(token for node, token in enumerate(draft.tokens) if node not in path)
        done = Round(
            tokens=new,
            draft=tuple(draft.tokens[node] for node in path) + others,
            accepted=min(verified.accepted, len(new)),
            reached=min(verified.accepted + further, len(new)),
        )
        return State(tokens, remaining, drafter.observe(state.drafter, tokens, len(state.tokens), target)), done

    return Decoder(
        init=lambda prompt: initial_state(prompt, task)._replace(drafter=drafter.init(prompt)),
        step=step,
        propose=propose,
    )


def _walked(draft: Draft, accepted: Tokens) -> tuple[Tokens, bool]:
    """Return a path of nodes of ``draft`` with the tokens ``accepted``, and whether its last node has children.

    The path begins at a child of the root; of several such paths, the first is returned.
    """
    nodes = ROOT
    places: list[int] = []
    for token in accepted:
        nodes = tuple(node for node in children(draft.parents, nodes) if draft.tokens[node] == token)
        places.append(nodes[0])
    return tuple(places), bool(children(draft.parents, nodes))
