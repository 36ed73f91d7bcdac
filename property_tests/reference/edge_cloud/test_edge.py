"""What edge and cloud refuse, and silence."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference.edge_cloud import edge as edge_side
from reference.edge_cloud.cloud import CloudState
from reference.edge_cloud.edge import EdgeState
from reference.edge_cloud.link import Service
from reference.edge_cloud.messages import Open, Refused, SparsePmf, Supply, VerifiedReply, Verify, Wanted
from reference.edge_cloud.modes import as_row, find_mode
from reference.edge_cloud.wire import decode, encode
from specverify.laws.draws import Tape
from test_support.laws.rational import P, Q
from test_support.reference.edge_cloud_sessions import GOLDEN, edge_of


def service_with(*requests, mode="two-phase"):
    service = Service(GOLDEN.target, Tape(0, {(("accept", 0), 0): 0.9}))
    for request in (Open("0", 0, 1, (0,), (), mode), *requests):
        service.respond(encode(request))
    return service


FIRST = Verify("0", 0, 1, (0,), (Fraction(3, 5),), ())
ROW = Supply("0", 0, 1, (0,), 0, as_row(Q))


@pytest.mark.parametrize(
    ("before", "request_", "reason"),
    [
        ((), FIRST._replace(session="1"), "unknown"),
        ((), FIRST._replace(epoch=1), "unknown"),
        ((), FIRST._replace(known=2), "misaligned"),
        ((FIRST,), ROW._replace(draft=(1,)), "conflict"),
        ((), ROW._replace(position=1), "conflict"),
        ((), ROW._replace(row=SparsePmf(3, (1,), (Fraction(1),))), "conflict"),
        ((Open("0", 1, 1, (0,), (), "match"),), ROW._replace(epoch=1), "conflict"),
        ((FIRST,), FIRST._replace(draft=(1,), masses=(Fraction(3, 10),)), "conflict"),
        ((FIRST,), ROW._replace(position=1), "conflict"),
        ((FIRST,), ROW._replace(row=as_row(P)), "conflict"),
        ((FIRST, ROW), FIRST._replace(draft=(), masses=()), "conflict"),
        ((FIRST, ROW, FIRST._replace(known=2, draft=(), masses=())), FIRST, "stale"),
        ((FIRST, ROW), Open("0", 0, 2, (0, 1), (), "two-phase"), "stale"),
        ((Open("0", 2, 1, (0,), (), "two-phase"),), FIRST, "stale"),
    ],
)
def test_a_request_out_of_place_is_refused_and_changes_nothing(before, request_, reason):
    service = service_with(*before)
    held = dict(service.sessions)
    reply = decode(service.respond(encode(request_)))
    assert reply == Refused(*request_[:3], reason)
    assert service.sessions == held


@pytest.mark.parametrize(
    ("mode", "request_", "sentence"),
    [
        ("two-phase", FIRST._replace(masses=()), "1 drafts came with .* expected masses for each"),
        ("match", FIRST, "1 drafts came with .* expected nothing for each"),
        ("sparse-q", FIRST, "1 drafts came with .* expected rows for each"),
        ("match", FIRST._replace(draft=(3,), masses=()), r"the draft \(3,\) leaves the vocabulary 0..2"),
    ],
)
def test_a_draft_without_what_its_mode_needs_is_an_error(mode, request_, sentence):
    with pytest.raises(ValueError, match=sentence):
        service_with(mode=mode).respond(encode(request_))


def test_an_unknown_mode_is_an_error_on_both_sides():
    for call in (lambda: find_mode("none"), lambda: service_with(mode="none")):
        with pytest.raises(ValueError, match="there is no mode 'none', expected one of sparse-q"):
            call()


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Refused("0", 0, 1, "misaligned"), "the cloud refuses .* as misaligned"),
        (VerifiedReply("0", 0, 1, 2, 0), "the cloud accepts 2 of 1 drafts"),
        (Wanted("0", 0, 1, 1), "the cloud asks for row 1 of 1 drafts"),
    ],
)
def test_an_impossible_reply_is_an_error(reply, sentence):
    edge = edge_of(GOLDEN, "two-phase", 1)
    state = edge_side.prepared(edge, Tape(0), EdgeState((0,), 2, opened=True))
    with pytest.raises(ValueError, match=sentence):
        edge_side.received(edge, state, encode(reply))


def test_a_state_is_hashable_and_holds_one_session():
    assert len({CloudState(0, (0,), (), "match"), CloudState(0, (0,), (), "match")}) == 1
