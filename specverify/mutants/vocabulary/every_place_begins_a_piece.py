"""String-level rejection sampling that judges every token by what the drafter begins with, also inside a piece."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Decoder, Draft, Drafter, Draws, LanguageModel, Pmf, Task, Tokens, chain
from specverify.reference.drafters.two_vocabularies import Pieces, spelled
from specverify.reference.models import draft_model


def forgetting(draft: LanguageModel, pieces: Pieces) -> Drafter:
    """Draft the drafter's tokens; each token they spell declares the law of a first token at its place."""

    def first(text: Tokens) -> Pmf:
        q = draft(text)
        law = q * 0
        for token, mass in enumerate(q.tolist()):
            begins = spelled(pieces, token)[0]
            law[begins] = law[begins] + mass
        return law

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        text: Tokens = ()
        while len(text) < gamma:
            text += spelled(pieces, draws.categorical(draft(prefix + text), ("draft", len(text))))
        kept = text[: max(gamma, 0)]
        return chain(kept, tuple(first(prefix + kept[:i]) for i in range(len(kept))))

    return Drafter(init=lambda prompt: None, propose=propose, observe=lambda *_: None)


def build(task: Task, pieces: Pieces = (), gamma: int = 4) -> Decoder:
    """SLRS with that drafter."""
    return with_parts("slrs", drafter=forgetting(draft_model(task), pieces))(task, pieces, gamma)


MUTANT = planted(
    "slrs",
    "every-place-begins-a-piece",
    "judges a token inside a piece as if one began there",
    build,
    category="N",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"pieces": ((0, (0, 1)), (1, (0, 0))), "gamma": 2},),
)
