"""Cache lengths around a round: what is kept, what is fed next, and that a cache never holds a rejected token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import crop, keep_lengths, tokens_to_feed
from reference.kv_cache import (
    KeepLengths,
    check_croppable,
    keep_path,
    tree_depths,
    tree_mask,
    tree_path,
    window_crop,
)


@pytest.mark.parametrize("gamma", range(9))
@pytest.mark.parametrize("known", range(1, 7))
def test_kept_lengths_leave_out_every_rejected_draft_and_what_was_never_fed(known, gamma):
    for accepted in range(gamma + 1):
        keep = keep_lengths(known, gamma, accepted)
        dropped = known + gamma - keep.target, known + gamma - 1 - keep.draft
        assert keep.target == known + accepted
        assert 0 <= keep.draft <= keep.target
        assert dropped == (gamma - accepted, max(0, gamma - 1 - accepted))


@pytest.mark.parametrize("accepted", range(5))
def test_ten_known_tokens_and_four_drafts(accepted):
    """The target holds 14 entries and drops 4 - n; the drafter holds 13 and drops max(0, 3 - n)."""
    keep = keep_lengths(10, 4, accepted)
    assert (keep.target, keep.draft) == (10 + accepted, min(10 + accepted, 13))
    assert (14 - keep.target, 13 - keep.draft) == (4 - accepted, max(0, 3 - accepted))


@pytest.mark.parametrize("gamma", range(1, 9))
@pytest.mark.parametrize("known", range(1, 7))
def test_the_drafter_is_fed_two_tokens_exactly_after_a_fully_accepted_draft(known, gamma):
    for accepted in range(gamma + 1):
        tokens = tuple(range(known + accepted + 1))
        keep = keep_lengths(known, gamma, accepted)
        assert tokens_to_feed(tokens, keep.target) == tokens[-1:]
        assert tokens_to_feed(tokens, keep.draft) == (tokens[-2:] if accepted == gamma else tokens[-1:])


def play(rounds, prompt_length=2):
    """Run rounds (gamma, accepted) with two caches that hold the tokens they were fed; check them after every round.

    Committed tokens count up from 0, a rejected draft is -1, so a wrong entry shows.
    """
    tokens = tuple(range(prompt_length))
    target, draft = np.array(tokens[:-1], dtype=int), np.array(tokens[:-1], dtype=int)
    for gamma, accepted in rounds:
        known = len(tokens)
        right = tuple(range(known, known + accepted))
        drafts = right + (-1,) * (gamma - accepted)
        if gamma:
            draft = np.concatenate([draft, tokens_to_feed(tokens, len(draft)), drafts[:-1]]).astype(int)
        target = np.concatenate([target, tokens_to_feed(tokens, len(target)), drafts]).astype(int)
        keep = keep_lengths(known, gamma, accepted, draft_held=len(draft))
        target, draft = crop(target, keep.target, axis=0), crop(draft, keep.draft, axis=0)
        tokens = (*tokens, *right, known + accepted)
        assert tuple(target) == tokens[:-1]
        assert tuple(draft) == tokens[: len(draft)]
    return tokens, len(draft)


drafted_rounds = st.integers(1, 4).flatmap(lambda gamma: st.tuples(st.just(gamma), st.integers(0, gamma)))


@given(st.lists(drafted_rounds, max_size=6))
def test_caches_hold_committed_tokens_only_over_any_rounds_that_draft(rounds):
    tokens, held_by_draft = play(rounds)
    assert len(tokens_to_feed(tokens, held_by_draft)) in {1, 2}


def test_caches_survive_a_round_without_draft_after_a_fully_accepted_one():
    """A length rule may choose gamma = 0 at any time; the drafter is then not fed, and holds two tokens too few."""
    tokens, held_by_draft = play([(2, 2), (0, 0), (1, 1)])
    assert tokens == tuple(range(8))
    assert held_by_draft <= 7


def test_rounds_without_any_draft_need_no_drafter_cache():
    assert keep_lengths(5, 0, 0) == (5, 4)


# Cropping


def test_cropping_to_zero_keeps_nothing_and_to_all_keeps_everything():
    entries = np.arange(24).reshape(1, 2, 4, 3)
    assert crop(entries, 0).shape == (1, 2, 0, 3)
    assert crop(entries, 4).tolist() == entries.tolist()


@given(st.integers(0, 5), st.integers(0, 3))
def test_cropping_keeps_the_first_positions_of_the_axis(keep, axis):
    entries = np.arange(5**4).reshape(5, 5, 5, 5)
    assert crop(entries, keep, axis=axis).tolist() == entries.take(range(keep), axis=axis).tolist()


def test_the_default_axis_is_that_of_positions():
    assert crop(np.zeros((1, 2, 7, 3)), 5).shape == (1, 2, 5, 3)


@pytest.mark.parametrize("keep", [-1, 8])
def test_a_negative_or_too_large_length_is_refused(keep):
    with pytest.raises(ValueError, match=f"cannot keep {keep} of 7 cache positions, expected a length between 0 and 7"):
        crop(np.zeros((1, 2, 7, 3)), keep)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: keep_lengths(0, 2, 1), "0 tokens are known, expected at least 1"),
        (lambda: keep_lengths(3, -1, 0), "gamma is -1, expected at least 0"),
        (lambda: keep_lengths(3, 2, 3), "3 drafts accepted, expected a number between 0 and gamma = 2"),
        (lambda: keep_lengths(3, 2, -1), "-1 drafts accepted, expected a number between 0 and gamma = 2"),
        (lambda: tokens_to_feed((1, 2), 2), "holds 2 entries for 2 known tokens, expected fewer entries than tokens"),
        (lambda: tokens_to_feed((1, 2), -1), "holds -1 entries for 2 known tokens"),
        (lambda: tokens_to_feed((), 0), "holds 0 entries for 0 known tokens"),
    ],
)
def test_impossible_counts_are_refused_in_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_a_crop_keeps_the_first_positions_and_not_the_last():
    entries = np.arange(14).reshape(1, 1, 7, 2)
    assert crop(entries, 3)[0, 0, :, 0].tolist() == [0, 2, 4]
    assert crop(entries, 3, axis=2).tolist() == crop(entries, 3).tolist()


# Sliding windows


@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 12), st.integers(-1, 13))
def test_a_window_goes_on_from_the_entries_before_it_or_refuses(window, held, dropped, keep):
    """Entries are numbered from the start of the text; the newest ``stored`` of ``held`` are there."""
    stored = held - min(dropped, held)
    there = list(range(held - stored, held))
    needed = list(range(max(0, keep - window + 1), max(keep, 0)))
    if 0 <= keep <= held and max(0, keep - window + 1) >= held - stored:
        assert there[window_crop(held, stored, keep, window)] == needed
        assert window_crop(held, stored, keep, window).start >= 0
    else:
        with pytest.raises(ValueError, match=f"a sliding window of {window} needs entries .* to {keep} to go on from"):
            window_crop(held, stored, keep, window)


def test_a_window_names_what_it_needs_and_what_is_there():
    assert window_crop(held=13, stored=11, keep=5, window=4) == slice(0, 3)
    sentence = "needs entries 1 to 4 to go on from 4 tokens, but holds 2 to 13: record what leaves"
    with pytest.raises(ValueError, match=sentence):
        window_crop(held=13, stored=11, keep=4, window=4)


def test_a_state_that_holds_no_entry_per_token_is_refused_by_its_name():
    check_croppable(["keys", "values"])
    check_croppable([])
    check_croppable(["latent"], per_token=["latent"])
    with pytest.raises(ValueError, match="'conv_state' is one state for all tokens fed, not an entry for each"):
        check_croppable(["keys", "conv_state", "ssm_state"])


# Paths


def test_a_path_is_gathered_along_its_axis_behind_the_known_tokens():
    entries = np.arange(14).reshape(1, 1, 7, 2)
    assert keep_path(entries, 3, (1, 3)).tolist() == entries[:, :, [0, 1, 2, 4, 6]].tolist()
    assert keep_path(entries.swapaxes(0, 2), 3, (1, 3), axis=0).shape == (5, 1, 1, 2)
    assert keep_path(entries, 0, ()).shape == (1, 1, 0, 2)
    assert keep_path(entries, 7, ()).tolist() == entries.tolist()


@pytest.mark.parametrize(("known", "path"), [(3, (4,)), (3, (-1,)), (3, (0, 4)), (8, ()), (7, (0,))])
def test_a_node_that_is_not_in_the_cache_is_refused(known, path):
    with pytest.raises(ValueError, match=f"behind {known} known tokens is not among the 7 entries of the cache"):
        keep_path(np.zeros((1, 1, 7, 2)), known, path)


def test_a_mask_has_one_row_for_the_last_known_token_and_one_for_each_node():
    assert tree_mask((-1, -1, 0), 2).astype(int).tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 1, 0, 1],
    ]


@pytest.mark.parametrize(
    ("draft_held", "kept"), [(None, KeepLengths(6, 6)), (0, KeepLengths(6, 0)), (5, KeepLengths(6, 5))]
)
def test_a_cache_is_never_kept_longer_than_it_is(draft_held, kept):
    assert keep_lengths(4, 3, 2, draft_held) == kept
    assert keep_lengths(1, 0, 0) == KeepLengths(1, 0)


def test_a_drafters_cache_that_no_round_leaves_is_refused():
    for held in (-1, 8):
        with pytest.raises(
            ValueError, match=rf"^the drafter's cache holds {held} entries, expected at least 0 and at "
        ):
            keep_lengths(4, 3, 2, draft_held=held)
    assert keep_lengths(4, 3, 2, draft_held=7) == KeepLengths(6, 6)


def test_the_depths_of_nodes_and_their_paths():
    assert tree_depths((-1, -1, 0, 2, 1)) == (0, 0, 1, 2, 1)
    assert tree_path((-1, -1, 0, 2, 1), 3) == (0, 2, 3)
    assert tree_path((-1,), -1) == ()
    for parents in ((0,), (-2,), (-1, 1), (-1, 2)):
        with pytest.raises(ValueError, match=r"has parent .*, expected an earlier node, or -1 for"):
            tree_depths(parents)
