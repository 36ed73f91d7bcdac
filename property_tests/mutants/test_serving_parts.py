"""The parts of the serving engine one by one: cache, drafter, matcher, processors, stops, stream, scheduler."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.mutants.serving import (
    cache,
    drafting,
    output,
    processors,
    scheduler,
    verification,
)
from specverify.mutants.serving.decode import follows_grammar
from specverify.mutants.serving.model import Entry, context, scan
from specverify.mutants.serving.request import Aborted, Grammar, Parameters, normalised
from specverify.mutants.serving.situations import BALANCED, HALVES, LETTERS, SHORT_GRAMMAR

# Cache and models


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.permutations(range(5)))
def test_what_is_written_to_pages_is_read_back_in_order(tokens, pages):
    entries = [Entry(token, place) for place, token in enumerate(tokens)]
    places = cache.slots(tuple(pages), 2, 0, len(tokens))
    memory = cache.written((None,) * 10, places, entries)
    assert len(set(places)) == len(places)
    assert cache.read(memory, tuple(pages), 2, len(tokens)) == entries


@given(st.integers(1, 4), st.integers(0, 8), st.integers(0, 8))
def test_no_page_is_lost_or_shared(size, first, then):
    pages, free = cache.grown((), cache.fragmented(8), cache.pages_for(first, size))
    pages, free = cache.trimmed(pages, free, cache.pages_for(min(first, then), size))
    pages, free = cache.grown(pages, free, cache.pages_for(then, size))
    assert sorted(pages + free) == list(range(8))
    assert len(pages) * size >= then


def test_growing_beyond_the_pool_aborts():
    with pytest.raises(Aborted, match="out of pages"):
        cache.grown((), (0, 1), 3)


@pytest.mark.parametrize(
    "entries",
    [
        [Entry(1, 0), Entry(2, 2)],
        [Entry(1, 0), Entry(2, 0)],
        [Entry(1, 0), Entry(2, 1, writer=1)],
        [Entry(2, 0), Entry(1, 1)],
        [Entry(1, 0)],
    ],
    ids=["gap", "same place", "other writer", "other order", "missing"],
)
def test_whatever_is_wrong_with_a_cache_is_another_context(entries):
    assert context([Entry(1, 0), Entry(2, 1)], 0) == (1, 2)
    assert context(entries, 0) != (1, 2)


def test_entries_are_taken_in_order_of_position_wherever_they_are():
    assert context([Entry(2, 1), Entry(1, 0)], 0) == (1, 2)


@pytest.mark.parametrize("accepted", [0, 1, 2])
def test_the_checkpoint_has_seen_the_last_token_and_the_accepted_drafts(accepted):
    states = scan((0, 1), (7, 8, 9))
    assert cache.checkpoint((0, 1), states, 2, accepted) == (0, 1, 7, 8, 9)[: 3 + accepted]


def test_a_window_shows_its_newest_entries():
    entries = [Entry(token, token) for token in range(5)]
    assert cache.visible(entries, 3, 2) == entries[2:]
    assert cache.visible(entries, 0, 2) == entries


# Drafter


def test_a_lookup_continues_the_last_earlier_occurrence():
    assert drafting.lookup((0, 1, 0, 2, 0), (0, 1, 0, 2, 0), 2) == (2, 0)
    assert drafting.lookup((0, 1, 2), (0, 1, 2), 2) == ()


@pytest.mark.parametrize("accepted", [0, 1, 2])
def test_the_drafters_cache_keeps_what_was_accepted(accepted):
    cached = drafting.draft_write(drafting.DraftCache(), (0, 1, 5, 6))
    kept = drafting.draft_kept(cached, known=2, drafts=3, accepted=accepted)
    assert [entry.token for entry in kept.entries] == [0, 1, 5, 6][: 2 + accepted]
    assert kept.seen == 2 + accepted


def test_a_row_of_the_drafter_is_scattered_to_target_ids():
    assert drafting.to_target((Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)), (2, 0, 1), 4) == (
        Fraction(1, 3),
        Fraction(1, 6),
        Fraction(1, 2),
        0,
    )


# Grammar

automata = st.sampled_from([BALANCED, SHORT_GRAMMAR, BALANCED._replace(trigger=1), Grammar(((0, 0, 0),))])
texts = st.lists(st.integers(0, 2), max_size=6).map(tuple)


@given(automata, texts, texts)
def test_advance_and_rollback_is_the_identity(language, text, drafts):
    matcher = processors.committed(language, processors.started(language), text, first=True)
    ahead = matcher
    for draft in drafts:
        ahead = processors.advance(language, ahead, draft)
    assert processors.rollback(ahead, len(drafts)) == matcher


@given(automata, texts, st.integers(0, 2))
def test_masks_are_those_of_a_replay(language, text, token):
    """The plain decoder walks the automaton from the beginning each time."""
    if not follows_grammar(language, text):
        return
    matcher = processors.committed(language, processors.started(language), text, first=True)
    allowed = not processors.needs_mask(language, matcher) or token in processors.mask(language, matcher)
    assert allowed == follows_grammar(language, (*text, token))


def test_a_finished_matcher_has_no_mask():
    matcher = processors.committed(SHORT_GRAMMAR, processors.started(SHORT_GRAMMAR), (0, 2), first=True)
    assert not processors.needs_mask(SHORT_GRAMMAR, matcher)
    with pytest.raises(Aborted, match="finished"):
        processors.mask(SHORT_GRAMMAR, matcher)


# Parameters, verification, stopping

pmfs = (
    st.lists(st.integers(0, 5), min_size=3, max_size=4)
    .filter(any)
    .map(lambda weights: tuple(Fraction(weight, sum(weights)) for weight in weights))
)


@given(pmfs, st.integers(0, 4), st.fractions(0, 1), st.fractions(0, 1))
def test_truncation_keeps_a_pmf_and_its_mode(row, top_k, top_p, min_p):
    found = processors.truncated(row, Parameters(top_k=top_k, top_p=top_p, min_p=min_p))
    assert sum(found) == 1
    assert found[row.index(max(row))] > 0
    assert all(mass > 0 for mass, kept in zip(row, found, strict=True) if kept)


@given(pmfs, pmfs)
def test_acceptance_and_residual_together_give_back_p(p, q):
    size = min(len(p), len(q))
    p, q = normalised(p[:size]), normalised(q[:size])
    if p is None or q is None:
        return
    kept = [q[token] * verification.ratio(p, q, token) for token in range(size)]
    rest = verification.residual(p, q)
    assert tuple(mass + (1 - sum(kept)) * other for mass, other in zip(kept, rest, strict=True)) == p


def test_drafts_end_at_the_first_placeholder():
    assert verification.usable((2, 0, -1, -1)) == 2
    assert verification.usable((2, 0)) == 2


def test_a_phrase_of_several_tokens_is_blocked_at_its_last():
    assert processors.blocked(((1, 2), (0,)), (0, 1), (), 0) == {2, 0}
    assert processors.blocked(((1, 2),), (1, 0), (), 0) == frozenset()


@pytest.mark.parametrize(("most", "expected"), [(9, (2, True)), (2, (2, True)), (1, (1, True))])
def test_a_block_is_cut_at_its_first_end_or_at_the_cap(most, expected):
    assert output.cut(lambda count: count >= 2, (5, 6, 7), 2, most) == expected


def test_a_block_without_an_end_stays_whole():
    assert output.cut(lambda count: False, (5, 6, 7), 2, 9) == (3, False)


@given(st.lists(st.integers(0, 3), max_size=9), st.data())
def test_a_stream_is_the_text_in_pieces_that_are_never_taken_back(tokens, data):
    sent = ""
    new: tuple[int, ...] = ()
    while len(new) < len(tokens):
        count = data.draw(st.integers(1, len(tokens) - len(new)))
        new += tuple(tokens[len(new) : len(new) + count])
        last = len(new) == len(tokens)
        sent += output.streamed(sent, new, new[-count:], (), HALVES, last)
        assert output.text_of(tuple(tokens), HALVES).startswith(sent)
    assert sent == output.text_of(tuple(tokens), HALVES)


# Scheduler


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans())
def test_rows_of_a_pass_do_not_overlap(lengths, rectangular):
    begins = scheduler.starts(lengths, rectangular, [False] * len(lengths))
    places = [begin + index for begin, length in zip(begins, lengths, strict=True) for index in range(length)]
    assert len(set(places)) == len(places)


@given(texts, st.integers(1, 3))
def test_chunks_are_the_prompt_but_for_its_last_token(tokens, size):
    held = 0
    while part := scheduler.chunk(tokens, held, size, (9,)):
        assert part == tokens[held : held + len(part)]
        assert len(part) <= size
        held += len(part)
    assert held == max(len(tokens) - 1, 0)


def test_placeholders_give_way_to_what_arrived():
    assert scheduler.resolved((0, 1, -1, -1, -1), 3, (2, 0), (2, 1)) == (0, 1, 2, 0)


def test_letters_are_one_byte_and_halves_are_one_character():
    assert output.text_of((0, 1, 2), LETTERS) == "abc"
    assert output.text_of((0, 1, 2), HALVES) == "aé"
