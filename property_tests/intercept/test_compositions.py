"""Forty random chains of operations on uniforms, ended by a comparison: the answered law against a million rows."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.intercept.refusals import NeedsValue
from test_support.intercept.compositions import (
    ENDS,
    FAR,
    REFUSED,
    RELATIONS,
    ROWS,
    answered_law,
    bound_of,
    composition,
    furthest,
    values,
)


def decided(chain, uniforms, bound):
    return ENDS[chain.end](RELATIONS[chain.relation](values(chain, uniforms), bound))


def law_of(chain, bound):
    return answered_law(lambda: decided(chain, np.random.default_rng().random(chain.uniforms), bound))


@pytest.mark.thorough(keep=17)
@pytest.mark.parametrize("seed", sorted({*range(40)} - REFUSED))
def test_a_chain_has_the_law_that_is_answered(seed):
    chain = composition(seed)
    bound = bound_of(chain)
    with np.errstate(all="ignore"):
        rows = decided(chain, np.random.default_rng(seed).random((ROWS, chain.uniforms)), bound)
    assert furthest(law_of(chain, bound), rows) < FAR


@pytest.mark.parametrize("seed", sorted(REFUSED))
def test_what_is_not_known_is_refused(seed):
    chain = composition(seed)
    with pytest.raises(NeedsValue):
        law_of(chain, bound_of(chain))


def test_a_chain_with_another_step_is_seen():
    chain = composition(0)._replace(uniforms=1, steps=(("shift", 0.5), ("sqrt", 0.0)), relation="<", end="each")
    rows = np.random.default_rng(0).random((ROWS, 1)) < 0.5
    assert furthest(law_of(chain, 0.5), rows) > FAR
