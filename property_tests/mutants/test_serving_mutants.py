"""The planted bugs of the serving engine: what each replaces, and that it is refuted for what it is said to be."""

from __future__ import annotations

from collections import Counter

import pytest

from specverify.laws.enumeration import program_law
from specverify.mutants import mutants
from specverify.mutants.not_expressed import NOT_EXPRESSED
from specverify.mutants.serving.parts import CORRECT, EngineParts

CRASHES = {
    "allowed-tokens-need-penalties",
    "clipped-by-free-space",
    "converted-twice",
    "draft-matcher-of-first-position",
    "drafts-beyond-context",
    "loaded-before-masked",
    "map-never-initialised",
    "mask-of-finished",
    "no-end-of-sequence-crashes",
    "pages-never-given-back",
    "placeholder-in-a-ragged-batch",
    "placeholders-in-chunks",
}
"""Bugs that make the engine fail its requests, in some runs at least. All others must be refuted by what comes out."""
SERVING = tuple(
    mutant
    for mutant in mutants()
    if any(item.programs or item.variants for item in [mutant.open()])
    and mutant.control().name.startswith("correct serving engine")
)
WITH_PROGRAM = tuple(mutant for mutant in SERVING if mutant.open().programs and mutant.name != "accepted-minus-one")
"""Those whose outcomes show a failure as -1; the one left out reports that number and does not fail."""


def parts_of(mutant):
    """The parts that a mutant's engine is made of."""
    subject = mutant.open()
    return subject.programs[0].open.args[0] if subject.programs else subject.variants[0].build.args[0]


def replaced(mutant):
    parts = parts_of(mutant)
    return {name for name in EngineParts._fields if getattr(parts, name) is not getattr(CORRECT, name)}


def tokens_in(outcome):
    return [token for item in outcome for token in (item if isinstance(item, tuple) else (item,))]


def test_every_class_of_serving_defects_has_bugs():
    found = Counter(mutant.category for mutant in SERVING)
    assert set(found) == set("FGHIKLMNOPQ")
    assert sum(found.values()) >= 60


@pytest.mark.parametrize("mutant", SERVING, ids=lambda mutant: mutant.name)
def test_a_bug_is_one_part_and_at_most_what_that_part_hands_on(mutant):
    """A rollback that is wrong goes together with an engine that feeds the last token on the strength of it."""
    assert len(replaced(mutant) - {"fed_next"}) == 1 or replaced(mutant) == {"fed_next"}


def test_every_part_is_replaced_by_some_bug():
    assert set().union(*(replaced(mutant) for mutant in SERVING)) | {"lookup"} == set(EngineParts._fields)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("mutant", WITH_PROGRAM, ids=lambda mutant: mutant.name)
def test_a_bug_is_not_refuted_because_it_crashes_unless_it_is_a_crash(mutant):
    with mutant.open().programs[0].open() as run:
        law = program_law(run)
    assert any(-1 in tokens_in(outcome) for outcome in law.probabilities) == (mutant.name in CRASHES)


def test_feeding_the_last_token_alone_is_right_where_the_rollback_is():
    """So what kills those bugs is their rollback."""
    shared = {parts_of(mutant).fed_next for mutant in SERVING if {"fed_next", "kept"} <= replaced(mutant)}
    (fed_last,) = shared
    (program,) = next(mutant for mutant in SERVING if mutant.name == "no-rollback").control().programs
    parts, setup = program.open.args
    with program.open.func(parts._replace(fed_next=fed_last), setup) as run:
        assert dict(program_law(run).probabilities) == dict(program.law())


def test_what_is_not_expressed_has_no_bug():
    assert all(NOT_EXPRESSED.values())
    assert not [mutant for mutant in SERVING for citation in NOT_EXPRESSED if citation in mutant.citation]
