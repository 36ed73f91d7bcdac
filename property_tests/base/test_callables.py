"""Verifiers and calls that are objects: those of data classes are no keys, named tuples are equal to one another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from specverify.base.callables import told_apart
from specverify.testing import SpeculationRefuted, check_engine, check_verifier
from specverify.testing.plans import name_of

LAW = ["law_is_target"]


def decided(p: Any, q: Any, draft_tokens: Any, bonus: int) -> list[int]:
    """Speculative sampling of one row; the token after the last draft is drawn from row ``bonus``."""
    rng, drafts = np.random.default_rng(), draft_tokens.tolist()
    for i, token in enumerate(drafts):
        if rng.random() >= p[i, token] / q[i, token]:
            weights = np.maximum(p[i] - q[i], 0)
            return [*drafts[:i], int(rng.choice(len(weights), p=weights / weights.sum()))]
    return [*drafts, int(rng.choice(p.shape[1], p=p[bonus]))]


@dataclass
class Sampler:
    """Equal where its fields are, and so no key."""

    bonus: int = -1

    def __call__(self, p: Any, q: Any, draft_tokens: Any) -> list[int]:
        """Decide one row."""
        return decided(p, q, draft_tokens, self.bonus)


@dataclass
class BatchSampler(Sampler):
    """The same for rows of several lengths."""

    def __call__(self, p: Any, q: Any, draft_tokens: Any, lengths: Any) -> list[list[int]]:  # type: ignore[override]
        """Decide every row."""
        return [
            decided(p[row, : n + 1], q[row, :n], draft_tokens[row, :n], self.bonus)
            for row, n in enumerate(lengths.tolist())
        ]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("kind", [Sampler, BatchSampler])
def test_an_object_that_is_no_key_is_a_verifier_like_any_other(kind: type[Sampler]) -> None:
    (held,) = check_verifier(kind(), gammas=(2,), checks=LAW, quick=True)
    assert held.status == "holds"
    with pytest.raises(SpeculationRefuted, match="law is target"):
        check_verifier(kind(0), gammas=(2,), checks=LAW, quick=True)


class Bare:
    """Python writes it by its address."""

    def __call__(self, p: Any, q: Any, draft_tokens: Any) -> list[int]:
        """Decide one row."""
        return decided(p, q, draft_tokens, -1)


class Module(Bare):
    """Written in several lines, as modules of torch are."""

    def __repr__(self) -> str:
        return "Module(\n  (head): Linear()\n)"


def test_an_object_has_a_name_of_one_line_that_is_the_same_in_every_run() -> None:
    assert name_of(Bare()) == f"{__name__}:<{__name__}.Bare object>"
    assert name_of(Module()) == f"{__name__}:Module( (head): Linear() )"
    assert name_of(partial(decided, [decided], bonus=2)) == f"{__name__}:decided([<function decided>], bonus=2)"
    assert name_of(Sampler(2)) == f"{__name__}:Sampler(bonus=2)"


class Plain(NamedTuple):
    """One token of two, evenly."""

    most: int

    def __call__(self) -> list[int]:
        """Return the token."""
        return [int(np.random.default_rng().integers(self.most))]


class Skewed(NamedTuple):
    """One token of two, one of them three times of four; equal to ``Plain`` all the same."""

    most: int

    def __call__(self) -> list[int]:
        """Return the token."""
        return [min(1, int(np.random.default_rng().integers(2 * self.most)))]


@pytest.mark.thorough
def test_a_call_that_is_equal_to_another_is_not_taken_for_it() -> None:
    assert Plain(2) == Skewed(2)
    (held,) = check_engine(Plain(2), Plain(2), checks=LAW)
    assert held.status == "holds"
    with pytest.raises(SpeculationRefuted):
        check_engine(Plain(2), Skewed(2), checks=LAW)


def test_what_is_equal_to_nothing_else_is_left_as_it_is() -> None:
    for function in (decided, partial(decided), np.maximum, Sampler, [].append, Sampler().__call__):
        assert told_apart(function) is function
    first, second = Plain(2), Plain(2)
    assert told_apart(first) != told_apart(second)
    assert told_apart(first) == told_apart(first)
