"""Format draft trees as one line: the token of each node, the accepted nodes, and the tokens after them.

Node 2 with the token 1 is written ``#2=1``, and its children follow in brackets. A draft without branches is no tree
here.
"""

from __future__ import annotations

from contextlib import suppress

from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed
from specverify.reference import Decoder, Draft, Tokens, chain
from specverify.reference.trees import children


def is_tree(draft: Draft) -> bool:
    """Return whether ``draft`` has branches."""
    return draft.parents != chain(draft.tokens, draft.pmfs).parents


def drawn(draft: Draft) -> str:
    """Format a draft tree as one line, such as ``#0=1 [#2=0] #1=2``."""

    def below(node: int) -> str:
        return " ".join(
            f"#{child}={draft.tokens[child]}" + (f" [{inside}]" if (inside := below(child)) else "")
            for child in children(draft.parents, (node,))
        )

    return f"tree {below(-1)}"


def node_named(draft: Draft, node: int) -> str:
    """Return the name of a node of the tree ``draft``: its number, token and parent; "root" for node -1."""
    if node < 0:
        return "root"
    parent = draft.parents[node]
    return f"#{node} (token {draft.tokens[node]} below {f'#{parent}' if parent >= 0 else 'the root'})"


def kept(draft: Draft, emitted: Tokens) -> str:
    """Return words for a round of the tree ``draft``: which nodes are accepted, and which tokens follow.

    ``emitted`` are the tokens of the round; the last one is never an accepted node. The accepted nodes are found from
    the root: a child with the next emitted token is accepted, then its child with the token after it, and so on.
    """
    nodes: list[int] = []
    for token in emitted:
        result = [child for child in children(draft.parents, (nodes or [-1])[-1:]) if draft.tokens[child] == token]
        if not result or len(nodes) + 1 == len(emitted):
            break
        nodes.append(result[0])
    path = " ".join(f"#{node}" for node in nodes) or "nothing"
    return f"keeps {path}, then {', '.join(map(str, emitted[len(nodes) :]))}"


def trees_of_run(decoder: Decoder, prompt: Tokens, choices: tuple[int, ...]) -> list[str]:
    """Return one line for each draft tree of a decode of ``prompt`` by ``decoder``.

    ``choices`` are the outcomes of the draws of the decode. Returns [] if the decoder has no ``propose`` step. The
    lines end early if a round drafts another tree than ``propose``.
    """
    if decoder.propose is None:
        return []
    told: list[str] = []
    draws, state = Replayed(choices), decoder.init(prompt)
    with suppress(NotAFunctionOfItsDraws):
        while state.remaining > 0:
            draft = decoder.propose(Replayed(choices[draws.used :]), state)
            state, done = decoder.step(draws, state)
            if is_tree(draft):
                told.append(f"{drawn(draft)} {kept(draft, done.tokens)}")
    return told
