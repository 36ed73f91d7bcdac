"""Conventions: branches of an acceptable vector are one choice, and each flag is explained."""

from __future__ import annotations

import json

import pytest

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.conventions import FAMILIES, FLAGS, family_of
from specverify.vectors.notes import NOTES
from specverify.vectors.vector import VectorResult

pytestmark = pytest.mark.xdist_group("vectors")


def test_flags_and_notes_are_explained_and_used():
    vectors = all_vectors().values()
    algorithms = {vector.inputs["algorithm"] for vector in vectors if "algorithm" in vector.inputs}
    assert {vector.flags[0] for vector in vectors} == set(FLAGS) | algorithms
    taken = {branch.flag for vector in vectors for branch in vector.expected if branch.flag}
    assert taken == {flag for flags in FAMILIES.values() for flag in flags}
    assert {note for vector in vectors for note in vector.notes} == set(NOTES)


def test_the_branches_of_an_acceptable_vector_are_one_choice():
    for vector in all_vectors().values():
        if vector.result is VectorResult.ACCEPTABLE:
            assert len({family_of(branch.flag) for branch in vector.expected}) == 1
            assert len({json.dumps(branch.answer) for branch in vector.expected}) > 1
