"""The n-gram cache of the request before is kept: its continuations are drafted for this one."""

from __future__ import annotations

from specverify.mutants.mutant import correct, planted
from specverify.reference import Parts, Task, constant, from_parts, prompt_lookup_drafter
from specverify.reference.verifiers.sample_and_match import sample_and_match

BEFORE = (1, 1, 1, 0, 1, 1)


@from_parts
def build(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Prompt lookup in another text first; ``propose`` shows what this text alone gives."""
    drafter = prompt_lookup_drafter(max_ngram, task.eos)
    polluted = drafter._replace(
        propose=lambda draws, state, prefix, count, stop: drafter.propose(draws, state, BEFORE + prefix, count, stop)
    )
    right = correct("prompt-lookup").build(task, max_ngram=max_ngram, gamma=gamma)
    return Parts(polluted, constant(gamma), sample_and_match, around=lambda wrong: right._replace(step=wrong.step))


MUTANT = planted(
    "prompt-lookup",
    "lookup-of-another-request",
    "looks drafts up in the last request",
    build,
    category="Q",
    citation="llama.cpp issue #27852",
    killed_by="acceptance_is_optimal",
    examples=({"max_ngram": 2, "gamma": 2},),
)
