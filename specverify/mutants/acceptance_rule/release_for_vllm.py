"""vLLM's FLy with the authors' count of followers: one draft fewer has to be accepted behind an excused one."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Decoder, Task
from specverify.reference.algorithms.fly_vllm import deferring


def build(task: Task, window: int = 6, threshold: float = 0.3, gamma: int = 8) -> Decoder:
    """FLy with a window that counts the excused draft."""
    return with_parts("fly-vllm", verifier=deferring(window - 1, threshold))(task, window, threshold, gamma)


MUTANT = planted(
    "fly-vllm",
    "release-for-vllm",
    "counts the excused draft among its followers",
    build,
    category="A",
    citation="plausible: the authors' release counts so",
    killed_by="law_is_declared",
    examples=({"window": 2, "threshold": 0.5, "gamma": 3},),
)
