"""Drafts are dropped because of what they are, where the target's draws alone are emitted: exact."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import SHORT, Control, correct, with_verifier
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, argmax, chain
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.subjects.algorithm import algorithm_subject


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Sample and match on the drafts before the first that is not the target's argmax."""
    tokens = draft.tokens
    kept = next((i for i, t in enumerate(tokens) if t != argmax(target(prefix + tokens[:i]))), len(tokens))
    return sample_and_match(draws, target, prefix, chain(tokens[:kept], draft.pmfs[:kept]))


def build(task: Task, gamma: int = 4) -> Decoder:
    """Sampled drafts, dropped by value."""
    return with_verifier(verify)(task, gamma)


ROW = correct("sample-and-match")._replace(name="unlikely-matches-dropped", build=build, examples=SHORT)

CONTROL = Control(
    "unlikely-matches-dropped",
    "drops drafts before sample and match",
    "plausible",
    partial(algorithm_subject, ROW, "control"),
)
