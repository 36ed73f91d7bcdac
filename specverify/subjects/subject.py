"""The shape of a subject: what checks may ask of it, whether it is ours or somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from reference import Claim, Decoder, Task, Tokens
from specverify.scenarios import Scenario, scenario_task


class Variant(NamedTuple):
    """A subject with its options fixed: it can be enumerated."""

    label: str
    """Such as ``gamma=2``."""
    build: Callable[[Task], Decoder]
    declared_law: Callable[[Task, Tokens], Mapping[Tokens, Any]] | None = None


class SampledSetting(NamedTuple):
    """A subject at one setting, which can only be sampled; its law is known from elsewhere."""

    name: str
    sample: Callable[[int, int], Mapping[Tokens, int]]
    """``sample(number, seed)`` -> counts of outcomes, independent draws."""
    law: Callable[[], Mapping[Tokens, float]]
    """The law the samples must fit: the target's, or the declared one."""
    detect: float
    """The total variation to be seen."""
    target: Callable[[], Mapping[Tokens, float]] | None = None
    """For a declared bias: the target's law, which the samples must *not* fit."""
    activity: Callable[[], str] | None = None
    """Says how much was drafted and accepted: a subject that never drafts proves nothing."""


class Subject(NamedTuple):
    """Anything that decodes. ``variants`` feed the exact checks, ``settings`` the statistical one."""

    name: str
    summary: str
    claims: frozenset[Claim]
    variants: tuple[Variant, ...] = ()
    settings: tuple[SampledSetting, ...] = ()
    rational: bool = True
    """Whether it computes with exact rationals; else its laws are float64 with a rounding bound."""
    probe: Callable[[], bool] | None = None
    """Finds out ``rational`` by running the subject, where that is not known beforehand."""
    stops_at_eos: bool = True
    """Whether it is told the end-of-sequence tokens."""
    whole: bool = False
    """Whether its only round is the whole decode, so that nothing can be merged and only small cases are in reach."""
    paper: str = ""


class Case(NamedTuple):
    """One subject in one situation: what a check examines and what a replay repeats."""

    subject: Subject
    variant: Variant | None = None
    scenario: Scenario | None = None
    setting: SampledSetting | None = None


def case_task(case: Case) -> Task:
    """Return the task of an enumerable case, in the arithmetic its subject can do."""
    assert case.scenario is not None
    return scenario_task(case.scenario, case.subject.rational)


def case_decoder(case: Case) -> Decoder:
    """Return the decoder of an enumerable case."""
    assert case.variant is not None
    return case.variant.build(case_task(case))
