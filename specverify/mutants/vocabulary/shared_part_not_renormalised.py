"""Token-level intersection that draws from the shared part of q and compares with q as it was."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Decoder, Draft, Drafter, Task, Tokens, chain
from specverify.reference.algorithms import tli
from specverify.reference.drafters.two_vocabularies import shared_tokens_drafter
from specverify.reference.models import draft_model


def build(task: Task, missing: Tokens = (), gamma: int = 4) -> Decoder:
    """TLI whose drafts declare the whole q."""
    inner, q = shared_tokens_drafter(draft_model(task), missing), draft_model(task)

    def propose(draws: object, state: object, prefix: Tokens, *rest: object) -> Draft:
        drafted = inner.propose(draws, state, prefix, *rest)  # type: ignore[arg-type]
        return chain(drafted.tokens, tuple(q(prefix + drafted.tokens[:i]) for i in range(len(drafted.tokens))))

    drafter: Drafter = inner._replace(propose=propose)
    return with_parts("tli", drafter=drafter)(task, missing, gamma)


MUTANT = planted(
    "tli",
    "shared-part-not-renormalised",
    "draws from the shared tokens, declares the whole q",
    build,
    category="N",
    citation="plausible: tokens masked after the softmax that is kept",
    killed_by="law_is_target",
    examples=tli.ALGORITHM.examples,
)
