"""Temperatures and cuts of warp vectors."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import warped
from specverify.vectors.json_models import row_pairs
from specverify.vectors.kinds import law_of_round, warp
from specverify.vectors.vector import VectorResult

pytestmark = pytest.mark.xdist_group("vectors")


def _log(row):
    import numpy as np

    return np.log(row.astype(float))


@pytest.mark.parametrize("name", list(law_of_round.PARAMETERS))
def test_no_sampling_parameter_hits_a_threshold(name):
    """The support stays the same where a threshold moves a little, so no convention decides."""
    parameters = {
        key: Fraction(value) for key, value in law_of_round.PARAMETERS[name].items() if key in ("top_p", "min_p")
    }
    rows, _ = row_pairs("untied", 3, 3, law_of_round.KIND)
    power = float(Fraction(law_of_round.PARAMETERS[name].get("temperature", "1"))) or 1.0
    for row in rows:
        assert len(set(row.tolist())) == 3
        for key, value in parameters.items():
            kept = [
                (
                    warped(lambda _, row=row: _log(row), temperature=power, **{key: float(value) + shift})((0,)) > 0
                ).tolist()
                for shift in (-1e-3, 0, 1e-3)
            ]
            assert kept[0] == kept[1] == kept[2]


def test_temperatures_are_those_of_the_reference():
    import numpy as np

    for vector in warp.vectors():
        if set(vector.inputs) == {"pmf", "temperature"} and vector.result is VectorResult.VALID:
            pmf = np.array([float(Fraction(mass)) for mass in vector.inputs["pmf"]])
            with np.errstate(divide="ignore"):
                found = warped(
                    lambda _, pmf=pmf: np.log(pmf), temperature=float(Fraction(vector.inputs["temperature"]))
                )((0,))
            expected = [float(Fraction(mass)) for mass in vector.expected[0].answer["pmf"]]
            assert np.abs(found - expected).max() < 1e-12, vector.id
