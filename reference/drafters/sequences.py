"""Several sequences drafted side by side, each by its own model: the token tree of SpecInfer.

SpecInfer (arXiv 2305.09781) merges the sequences of several small models into one tree; SpecTr (arXiv 2310.15141) draws
them from one model. Here every sequence remains a separate path, so that a token drawn twice counts twice: dropping a
duplicate would bias the verification. Only the cache uses the merged tree, ``trees.merged``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens
from .model import stateless


def sequences_drafter(drafts: tuple[LanguageModel, ...], depth: int) -> Drafter:
    """Return a drafter of one sequence of ``depth`` tokens from each model of ``drafts``, level by level.

    If gamma is smaller than ``depth``, a sequence has gamma tokens. Raises ``ValueError`` for a negative depth, or if
    there is no model.
    """
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise ValueError(f"depth is {depth!r}, expected an integer >= 0 (the tokens of each sequence)")
    if not drafts:
        raise ValueError("there are no draft models, expected one for each sequence")

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        grown = Draft((), (), ())
        texts = [prefix] * len(drafts)
        for level in range(min(depth, gamma)):
            for k, draft in enumerate(drafts):
                q = draft(texts[k])
                token = draws.categorical(q, ("draft", level, k))
                texts[k] = (*texts[k], token)
                parent = len(grown.tokens) - len(drafts) if level else -1
                grown = Draft((*grown.tokens, token), (*grown.parents, parent), (*grown.pmfs, q))
        return grown

    return Drafter(init=stateless, propose=propose, observe=stateless)


def forgetful(draft: LanguageModel, count: int) -> LanguageModel:
    """Return ``draft`` as a model that does not see the first ``count`` tokens, but always the last token."""
    return lambda tokens: draft(tokens[min(count, len(tokens) - 1) :])
