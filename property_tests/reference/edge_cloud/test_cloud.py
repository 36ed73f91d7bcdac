"""An edge and a cloud that are killed and go on, and planted bugs of both that are refuted."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, constant
from reference.edge_cloud import cloud as cloud_side
from reference.edge_cloud import edge as edge_side
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.edge import EdgeState
from reference.edge_cloud.link import Service, play_round, rebuilt
from reference.edge_cloud.messages import VerifiedReply
from reference.edge_cloud.over_http import Journal
from reference.edge_cloud.wire import decode
from specverify.laws.draws import Tape
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, distance, examples, law_of
from test_support.reference.edge_cloud_sessions import (
    DRAWING,
    UNANSWERED,
    DrawsAgain,
    NoiseOfRounds,
    Unreliable,
    edge_of,
    every_mode,
    exact_modes,
    forgetful,
    loses_zeros,
    session,
)

# Killed and gone on


class Killed(Exception):  # noqa: N818 - not an error of the subject
    """The edge stops here."""


@pytest.mark.thorough(keep=2)
@every_mode
@examples(30)
@given(task=tasks(3, 1, 6), prompt=prompts(3), seed=st.integers(0, 999), data=st.data())
def test_both_sides_killed_anywhere_go_on_from_what_they_wrote_down(mode, task, prompt, seed, data):
    """The edge goes on from its last saved state, the cloud from its record: same draws, same text, each once."""
    plain, draws, record, saved = session(Tape(seed), task, prompt, mode), Tape(seed), [], []
    noise = NoiseOfRounds(draws)
    edge, kills = (
        edge_of(task, mode, noise=noise),
        data.draw(st.lists(st.sampled_from(("edge", "cloud", "both", "none")), max_size=8)),
    )
    remaining = iter(kills)

    def started():
        return Service(task.target, draws, rebuilt(record), lambda *pair: record.append(pair), noise)

    service = started()

    def send(text):
        nonlocal service
        kill = next(remaining, "none")
        replies = (service.respond(text),)
        if kill in {"cloud", "both"}:
            service, replies = started(), ()
        if kill in {"edge", "both"}:
            raise Killed
        return replies

    state = EdgeState(prompt, task.horizon)
    while state.remaining:
        try:
            state, _, _ = play_round(edge, draws, state, send, save=saved.append)
            noise.next_round()
        except Killed:
            state = saved[-1]
    assert state.tokens[len(prompt) :] == plain
    assert service.sessions["0"] == rebuilt(record)["0"]
    rounds = [decode(said).known for _, said in record if isinstance(decode(said), VerifiedReply)]
    assert len(rounds) == len(set(rounds))


@exact_modes
def test_a_cloud_that_forgets_everything_is_opened_again_and_keeps_the_law(mode):
    """Fresh coins for the same draft, but for a rejection that was told: what is drawn again was never seen."""
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    assert law_of(lambda draws: session(draws, task, (0, 1), mode, forgetful)) == target_law(task, (0, 1))


def test_a_journal_drops_what_was_not_finished(tmp_path):
    path = tmp_path / "journal"
    Journal(path).record("a", "b")
    with path.open("a") as file:
        file.write("c\nhalf a rep")
    assert Journal(path).pairs == [("a", "b")]
    assert path.read_text() == "a\nb\n"


# Planted bugs


@pytest.mark.parametrize("mode", DRAWING)
def test_a_cloud_that_draws_again_is_bent_by_a_link_that_loses_by_content(mode):
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), mode, loses_zeros, DrawsAgain))
    assert distance(found, target_law(task, (0, 1))) > Fraction(1, 20)


def test_a_cloud_that_draws_again_falls_apart_from_an_edge_that_repeats():
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    twice = partial(Unreliable, [((0,), (0,)), ((0, 0), (1,))])
    with pytest.raises(AssertionError):
        law_of(lambda draws: session(draws, task, (0, 1), "match", twice, DrawsAgain))


@exact_modes
def test_a_rejected_draft_left_in_the_cache_is_seen(mode, monkeypatch):
    task, right = Task(*table_pair("generic", 2, 5), horizon=4), cloud_side.keep_lengths

    def one_too_many(known, gamma, accepted):
        keep = right(known, gamma, accepted)
        return keep._replace(target=keep.target + (accepted < gamma))

    monkeypatch.setattr(cloud_side, "keep_lengths", one_too_many)
    decoder = edge_cloud_decoder(task, mode, constant(1))
    try:
        found = decoder_law(decoder, (0, 1)).probabilities
    except ValueError as error:
        assert "the cache holds" in str(error)  # noqa: PT017
    else:
        assert found != target_law(task, (0, 1))


def test_an_edge_that_drafts_again_on_a_retry_is_refused(monkeypatch):
    monkeypatch.setattr(
        "reference.edge_cloud.link.timed_out",
        lambda edge, state: (state._replace(waiting=None, block=None, cache=()), None),
    )
    task = Task(always(P), always(Q), horizon=4)
    with pytest.raises(ValueError, match=r"the cloud refuses .* as conflict"):
        law_of(lambda d: session(d, task, (0,), "sparse-q", partial(Unreliable, [((0,), (0,)), UNANSWERED])))


def test_an_edge_that_takes_any_reply_emits_twice(monkeypatch):
    """After the repeat of a finished round's reply it believes its next round to be over."""
    monkeypatch.setattr(edge_side, "_answers", lambda reply, asked: True)
    task = Task(always(P), always(Q), horizon=3)
    script = [((0,), (0,)), ((0,), (0,)), ((0,), (1,))]
    with pytest.raises((AssertionError, ValueError)):
        law_of(lambda draws: session(draws, task, (0,), "match", partial(Unreliable, script)))


def test_an_edge_that_forgets_a_rejection_when_its_session_is_lost_is_biased(monkeypatch):
    """A row is asked for after a rejection alone: drawing that coin again there accepts too often."""

    def forgets(edge, state, text):
        state, done = edge_side.received(edge, state, text)
        lost = state.block is not None and not state.opened
        return (state._replace(block=state.block._replace(wanted=None)) if lost else state), done

    monkeypatch.setattr("reference.edge_cloud.link.received", forgets)
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), "two-phase", forgetful))
    assert distance(found, target_law(task, (0, 1))) > Fraction(1, 50)
