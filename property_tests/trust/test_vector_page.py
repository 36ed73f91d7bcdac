"""The page of vectors agrees with the vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from specverify.mutants import mutants
from specverify.trust.vector_kills import vector_row
from specverify.trust.vector_page import line_of

pytestmark = pytest.mark.xdist_group("vectors")

PAGE = (Path(__file__).parents[2] / "docs" / "vectors.md").read_text("utf-8")

BY_NAME = {mutant.name: mutant for mutant in mutants()}


@pytest.mark.thorough(keep=299)
@pytest.mark.parametrize("name", BY_NAME)
def test_the_page_says_what_the_vectors_say(name):
    assert line_of(vector_row(name)) in PAGE.splitlines()
