"""Drafts run on behind an end-of-sequence token, and what is accepted of them is cut before it is committed."""

from __future__ import annotations

from functools import partial

from specverify.mutants.mutant import Control, correct
from specverify.reference import Parts, Task, constant, from_parts, prompt_lookup_drafter
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.subjects.algorithm import algorithm_subject


@from_parts
def build(task: Task, max_ngram: int = 3, gamma: int = 4) -> Parts:
    """Prompt lookup that copies past the end."""
    return Parts(prompt_lookup_drafter(max_ngram, eos=()), constant(gamma), sample_and_match)


ROW = correct("prompt-lookup")._replace(
    name="drafts-past-the-end", build=build, examples=({"max_ngram": 2, "gamma": 3},)
)

CONTROL = Control(
    "drafts-past-the-end",
    "drafts behind EOS, trims later",
    "openvino.genai PR #1951 (review); koboldcpp issue #1276",
    partial(algorithm_subject, ROW, "control"),
)
