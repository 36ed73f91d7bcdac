"""Drafting stops after a token that the target itself finds unlikely, and the token stays: exact."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct, with_verifier
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, chain
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.subjects.algorithm import algorithm_subject


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Cut the block behind the first draft with p(d) < q(d)."""
    kept = 0
    for token, q in zip(draft.tokens, draft.pmfs, strict=True):
        kept += 1
        if q is not None and target(prefix + draft.tokens[: kept - 1])[token] < q[token]:
            break
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that looks at p while it drafts."""
    return with_verifier(verify)(task, gamma)


ROW = correct("sample-and-match")._replace(name="stops-on-the-target", build=build, examples=SHORT)

CONTROL = Control(
    "stops-on-the-target",
    "ends the draft by p of its last token",
    "plausible",
    partial(algorithm_subject, ROW, "control"),
)
