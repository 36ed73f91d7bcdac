"""The shape of a planted bug: a row with one thing wrong, where it was seen, and the check that must see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from reference import ALGORITHMS, Algorithm, Decoder, Task, Verifier, chain_decoder, constant, model_drafter
from reference.models import draft_model


class Mutant(NamedTuple):
    """One planted bug. ``algorithm`` claims what the correct row claims, so the suite must refute it."""

    algorithm: Algorithm
    citation: str
    """Project and issue, pull request or commit of the real defect, or "plausible"."""
    killed_by: str
    """The name of the check that must refute it."""

    @property
    def name(self) -> str:
        """The mutant is named like its row."""
        return self.algorithm.name


def correct(name: str) -> Algorithm:
    """Return the registry row that a mutant distorts."""
    return next(row for row in ALGORITHMS if row.name == name)


def planted(original: str, name: str, summary: str, build: Callable[..., Decoder], **changes: Any) -> Algorithm:
    """Return the row ``original`` with another ``build``: same claims, same examples unless changed."""
    return correct(original)._replace(name=name, summary=summary, build=build, **changes)


def with_verifier(verify: Verifier) -> Callable[..., Decoder]:
    """Return the build function of speculative sampling with another verifier."""

    def build(task: Task, gamma: int = 4) -> Decoder:
        return chain_decoder(task, model_drafter(draft_model(task)), constant(gamma), verify)

    return build
