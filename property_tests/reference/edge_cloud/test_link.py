"""Links that lose or delay messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.edge_cloud.edge import EdgeState
from reference.edge_cloud.link import Service, in_memory, play_round
from specverify.laws.draws import Tape
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
    LOST,
    UNANSWERED,
    Unreliable,
    edge_of,
    play,
)


def test_a_patient_edge_gives_up_in_one_sentence():
    with pytest.raises(TimeoutError, match="8 sends of one request brought no answer, expected one from the cloud"):
        play_round(edge_of(GOLDEN, "match"), Tape(0), EdgeState((0,), 2), lambda text: ())


@given(seed=st.integers(0, 999))
def test_a_reply_that_comes_after_an_impatient_edge_left_is_ignored(seed):
    """The cloud verified the round that the edge then abandoned; under the next epoch both agree again."""
    service = Service(GOLDEN.target, Tape(seed))
    link = Unreliable([((0,), (0,)), UNANSWERED, ((0,), (1, 0))], service)
    edge = edge_of(GOLDEN, "sparse-q", impatient=True)
    state, done, _ = play_round(edge, Tape(seed), EdgeState((0,), 4), link)
    assert (done.tokens, done.accepted, done.reached) == (done.draft[:1], 1, 1)
    assert (state.epoch, state.opened) == (1, False)
    state = play(edge, Tape(seed + 1), state, link)
    assert len(state.tokens) == 5
    assert service.sessions["0"].tokens == state.tokens


def test_lost_messages_are_counted_as_sent():
    service = Service(GOLDEN.target, Tape(0))
    edge, state = edge_of(GOLDEN, "match"), EdgeState((0,), 1)
    _, _, traffic = play_round(edge, Tape(0), state, Unreliable((LOST, UNANSWERED), service))
    assert traffic.sent == 4
    _, _, plain = play_round(edge, Tape(0), state, in_memory(Service(GOLDEN.target, Tape(0))))
    assert (plain.sent, plain.bytes_down) == (2, traffic.bytes_down)
