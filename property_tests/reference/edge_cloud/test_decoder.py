"""The decoder of edge and cloud on the known pair."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import constant
from reference.edge_cloud.decoder import edge_cloud_decoder
from test_support.laws.rational import law_of
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
)


def test_two_phases_ask_for_a_row_as_often_as_a_draft_is_rejected():
    decoder = edge_cloud_decoder(GOLDEN, "two-phase", constant(1))
    law = law_of(lambda draws: dict(decoder.step(draws, decoder.init((0,)))[1].trace)["sent"])
    assert law == {2: Fraction(3, 5), 3: Fraction(2, 5)}


@pytest.mark.parametrize(
    ("mode", "rate"), [("sparse-q", "3/5"), ("two-phase", "3/5"), ("match", "13/50"), ("gumbel", "18/35")]
)
def test_the_known_pair_is_accepted_as_often_as_its_mode_allows(mode, rate):
    decoder = edge_cloud_decoder(GOLDEN, mode, constant(1))
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
    assert law[1] == Fraction(rate)
