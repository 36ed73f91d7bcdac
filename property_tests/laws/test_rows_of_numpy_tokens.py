"""The rows of a scenario's models depend on the values of the tokens, not on their types."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.certain_tables import CERTAIN, certain_pair, large_pair, open_after
from specverify.laws.rounded_tables import rounded_pair
from specverify.laws.tables import table_pair

TEXT = (0, 1, 2)


@pytest.mark.parametrize(
    "pair",
    [
        lambda seed: table_pair("generic", 4, seed),
        lambda seed: certain_pair(CERTAIN, 4, seed),
        lambda seed: certain_pair(open_after(3), 4, seed),
        lambda seed: large_pair(4, seed),
        lambda seed: rounded_pair("two_softmaxes", 4, seed, np.float64),
    ],
)
def test_a_text_of_numpy_integers_has_the_rows_of_the_equal_text(pair):
    for seed in range(8):
        of_integers, of_numpy = ([list(model(text)) for model in pair(seed)] for text in (TEXT, tuple(np.array(TEXT))))
        assert of_integers == of_numpy
