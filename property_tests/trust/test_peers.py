"""Statistics of other projects: what they refuse and what they miss."""

from __future__ import annotations

import pytest

from specverify.run.catalogue import find_subject
from specverify.trust.peers import PEERS, judged

pytestmark = pytest.mark.xdist_group("kills")

QUICK = [peer for peer in PEERS if peer.vocabulary < 100]


@pytest.mark.parametrize("peer", QUICK, ids=lambda peer: peer.name)
def test_a_peer_accepts_the_correct_rule_and_refuses_an_inverted_ratio(peer):
    assert judged(peer, find_subject("reference:speculative-sampling"))
    assert not judged(peer, find_subject("mutant:inverted-ratio"))


def test_the_order_of_four_counts_does_not_see_the_missing_residual():
    order = next(peer for peer in PEERS if peer.name == "transformers")
    assert judged(order, find_subject("mutant:residual-from-target"))


def test_no_peer_sees_a_row_off_by_one_because_their_pmfs_do_not_depend_on_the_context():
    assert all(judged(peer, find_subject("mutant:row-off-by-one")) for peer in QUICK)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["hidden-randomness", "counted-calls"])
def test_a_bug_that_is_no_function_of_its_draws_is_sampled_all_the_same(name):
    """Its law is right, which a count that is divided would not show."""
    assert all(judged(peer, find_subject(f"mutant:{name}")) for peer in QUICK)
