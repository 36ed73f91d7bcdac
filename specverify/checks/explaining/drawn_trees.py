"""Trees of drafts in a line of text: which node holds which token, which were kept, and what came behind them.

Node 2 with the token 1 is ``#2=1``; its children follow in brackets. A chain needs no drawing and gets none.
"""

from __future__ import annotations

from contextlib import suppress

from specverify.laws.draws import NotAFunctionOfItsDraws, Replayed
from specverify.reference import Decoder, Draft, Tokens, chain
from specverify.reference.trees import children


def is_tree(draft: Draft) -> bool:
    """Return whether a draft has branches."""
    return draft.parents != chain(draft.tokens, draft.pmfs).parents


def drawn(draft: Draft) -> str:
    """Return a tree in a line, such as ``#0=1 [#2=0] #1=2``."""

    def below(node: int) -> str:
        return " ".join(
            f"#{child}={draft.tokens[child]}" + (f" [{inside}]" if (inside := below(child)) else "")
            for child in children(draft.parents, (node,))
        )

    return f"tree {below(-1)}"


def node_named(draft: Draft, node: int) -> str:
    """Return what a node is called: its number, its token and what it hangs from."""
    if node < 0:
        return "root"
    parent = draft.parents[node]
    return f"#{node} (token {draft.tokens[node]} below {f'#{parent}' if parent >= 0 else 'the root'})"


def kept(draft: Draft, emitted: Tokens) -> str:
    """Return which nodes the emitted tokens follow, and the tokens behind them."""
    nodes: list[int] = []
    for token in emitted:
        result = [child for child in children(draft.parents, (nodes or [-1])[-1:]) if draft.tokens[child] == token]
        if not result or len(nodes) + 1 == len(emitted):
            break
        nodes.append(result[0])
    path = " ".join(f"#{node}" for node in nodes) or "nothing"
    return f"keeps {path}, then {', '.join(map(str, emitted[len(nodes) :]))}"


def trees_of_run(decoder: Decoder, prompt: Tokens, choices: tuple[int, ...]) -> list[str]:
    """Return the trees that a decode drafts on the path of ``choices``, a line for each round that has one.

    Nothing where the decoder does not show its drafting step, or drafts otherwise than it shows.
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
