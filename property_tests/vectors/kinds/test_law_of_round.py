"""Laws of rounds sum to one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from specverify.vectors.all_vectors import all_vectors
from specverify.vectors.kinds import law_of_round

pytestmark = pytest.mark.xdist_group("vectors")


def test_laws_sum_to_one():
    for vector in [vector for vector in all_vectors().values() if vector.kind == law_of_round.KIND][::5]:
        law = vector.expected[0].answer["law"]
        assert sum(Fraction(item["probability"]) for item in law) == 1
        assert all(len(item["tokens"]) <= vector.inputs["horizon"] for item in law)
