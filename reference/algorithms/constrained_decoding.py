"""Constrained decoding with speculation: the target is masked by a grammar at every place, and verified against.

Engines mask the logits of every verified row with the tokens that the grammar allows after the text and the drafts
before that row, and renormalise (as SGLang and vLLM with XGrammar, 2411.15100, do). The grammar's state must follow the
accepted tokens alone: what rejected drafts moved it is rolled back. Then the text has the law of the locally masked
target decoding alone. That is not the target's law given that the text obeys the grammar: masking spends at every place
the mass that the conditional law would spread over whole texts (2405.21047).

A grammar is here a table from the last token to the tokens that may follow; a token that is not in it allows all. Where
p forbids every token that the grammar allows, these are equally likely.
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
    """Return the tokens that may follow ``text``; all if the grammar allows none of the vocabulary."""
    named = tuple(token for token in dict(grammar).get(text[-1], ()) if token < size)
    return named or tuple(range(size))


def masked_row(p: Pmf, tokens: Tokens) -> Pmf:
    """Return p restricted to ``tokens`` and normalised, or their uniform pmf if p gives them no mass."""
    kept = p * 0
    for token in tokens:
        kept[token] = p[token]
    if not kept.sum() > 0:
        for token in tokens:
            kept[token] = kept[token] + 1
    return kept / kept.sum()


def masked(target: LanguageModel, grammar: Grammar) -> LanguageModel:
    """Return the model whose every row is masked by the grammar."""

    def model(text: Tokens) -> Pmf:
        p = target(text)
        return masked_row(p, allowed(grammar, text, len(p)))

    return model


@from_parts
def build(task: Task, grammar: Grammar = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts gamma tokens from the unmasked q, and verifies them against the masked target."""
    model = masked(checked_model(task.target, "target"), grammar)
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling, target=model)


def declared_law(task: Task, prompt: Tokens, grammar: Grammar = (), gamma: int = 4) -> dict[Tokens, Any]:
    """Return the declared law of the output, new tokens -> probability: the locally masked target decodes alone."""
    return autoregressive_law(masked(task.target, grammar), task, prompt)


ALGORITHM = Algorithm(
    name="constrained-decoding",
    summary="speculative sampling of p masked by a grammar at every place (declared bias: exact for the masked p)",
    build=build,
    claims=frozenset(),
    examples=(
        {"grammar": ((2, (0, 1)), (0, (1, 2))), "gamma": 2},
        {"grammar": ((0, (0,)), (1, (0, 2))), "gamma": 1},
    ),
    paper="arXiv 2411.15100 (masking); arXiv 2405.21047 (the conditional law)",
    declared_law=declared_law,
    systems=("XGrammar with speculation",),
    reductions=(Reduction("speculative-sampling", "a grammar that allows all", {"gamma": 2}, {"gamma": 2}),),
)
