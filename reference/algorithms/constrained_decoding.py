"""Constrained decoding with speculation: each row of p is masked by a grammar before it verifies a draft.

Engines mask the logits of every verified row with the tokens that the grammar allows after the text and the drafts
before that row, and renormalise (SGLang, and vLLM with XGrammar, 2411.15100). The grammar's state must follow accepted
tokens only: the effect of rejected drafts is rolled back. Then the text has the law of plain decoding with locally
masked rows. This is not the target's law given that the text obeys the grammar: local masking renormalises at every
position, where the conditional law weights whole texts (2405.21047).

A grammar is here a table from the last token to the tokens that may follow; a token without an entry allows all. If p
gives no mass to the allowed tokens, they are equally likely.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from ..drafters.model import model_drafter
from ..laws import autoregressive_law
from ..lengths.constant import constant
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, LanguageModel, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling

Grammar: TypeAlias = tuple[tuple[int, Tokens], ...]


def allowed(grammar: Grammar, text: Tokens, size: int) -> Tokens:
    """Return the tokens that may follow ``text``, in a vocabulary of ``size``; all if the grammar allows none."""
    named = tuple(token for token in dict(grammar).get(text[-1], ()) if token < size)
    return named or tuple(range(size))


def masked_row(p: Pmf, tokens: Tokens) -> Pmf:
    """Return p restricted to ``tokens`` and normalised; if p gives them no mass, their uniform pmf."""
    kept = p * 0
    for token in tokens:
        kept[token] = p[token]
    if not kept.sum() > 0:
        for token in tokens:
            kept[token] = kept[token] + 1
    return kept / kept.sum()


def masked(target: LanguageModel, grammar: Grammar) -> LanguageModel:
    """Return ``target`` with every row masked by the grammar."""

    def model(text: Tokens) -> Pmf:
        p = target(text)
        return masked_row(p, allowed(grammar, text, len(p)))

    return model


@from_parts
def build(task: Task, grammar: Grammar = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from the unmasked q and verifies them by the masked target.

    ``grammar`` is the table of allowed tokens by last token.
    """
    model = masked(checked_model(task.target, "target"), grammar)
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling, target=model)


def declared_law(task: Task, prompt: Tokens, grammar: Grammar = (), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: that of plain decoding with locally masked rows.

    The options are those of ``build``.
    """
    return autoregressive_law(masked(task.target, grammar), task, prompt)


ALGORITHM = Algorithm(
    name="constrained-decoding",
    summary="speculative sampling of p masked by a grammar at every position (declared bias: exact for the masked p)",
    build=build,
    claims=frozenset(),
    examples=(
        {"grammar": ((2, (0, 1)), (0, (1, 2))), "gamma": 2},
        {"grammar": ((0, (0,)), (1, (0, 2))), "gamma": 1},
    ),
    paper="arXiv 2411.15100 (masking); arXiv 2405.21047 (the conditional law)",
    declared_law=declared_law,
    systems=("XGrammar with speculation",),
    reductions=(Reduction("speculative-sampling", "the grammar allows every token", {"gamma": 2}, {"gamma": 2}),),
)
