"""The edge-cloud system: its messages, its law over links that lose and repeat, its figures, and two real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from functools import partial
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import P, Q, always, as_law, distance, examples, law_of, project
from scipy.optimize import linprog

from reference import Sampled, Task, accepted_ratio, constant, generate
from reference.algorithms import clamped_scalar_residual, edge_cloud_timeout
from reference.edge_cloud import cloud as cloud_side
from reference.edge_cloud import edge as edge_side
from reference.edge_cloud.cloud import CloudState
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.edge import Edge, EdgeState
from reference.edge_cloud.messages import Open, Refused, Row, Supply, Verified, Verify, Wanted
from reference.edge_cloud.modes import MODES, as_row, find_mode, from_row
from reference.edge_cloud.over_http import HttpLink, Journal
from reference.edge_cloud.transport import Service, in_memory, play_round, rebuilt
from reference.edge_cloud.wire import SCHEMA, decode, encode
from specverify.draws import FromHypothesis, Tape
from specverify.enumeration import decoder_law
from specverify.law import target_law
from specverify.statistics import FitVerdict, confirmed_fit, goodness_of_fit, samples_for, stage_level
from specverify.strategies import prompts, tasks
from specverify.tables import as_float64, table_pair

EXACT = ("sparse-q", "two-phase", "match")
every_mode = pytest.mark.parametrize("mode", MODES)
exact_modes = pytest.mark.parametrize("mode", EXACT)
VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


def edge_of(task, mode, gamma=2, **options):
    return Edge(task.draft, constant(gamma), mode, task.eos, **options)


def play(edge, draws, state, send, after_round=lambda state: None, **options):
    """Play rounds to the end; return the finished edge state."""
    while state.remaining:
        state, done, _ = play_round(edge, draws, state, send, **options)
        assert done.tokens
        after_round(state)
    return state


def session(draws, task, prompt, mode, network=in_memory, make=Service, gamma=2):
    """Return the new tokens of a whole session in which nothing is forgotten; both contexts agree after each round."""
    service = make(task.target, draws)

    def aligned(state):
        held = service.sessions["0"]
        assert held.tokens == state.tokens
        assert held.cache == state.tokens[:-1]
        assert state.cache == state.tokens[: len(state.cache)] != state.tokens

    state = EdgeState(prompt, task.horizon)
    return play(edge_of(task, mode, gamma), draws, state, network(service), aligned).tokens[len(prompt) :]


class Unreliable:
    """A link with a script: which requests ever sent arrive now, and which replies ever made come back.

    Both count back from the newest. Where the script is silent or over, the newest request arrives and is answered.
    """

    def __init__(self, script, service):
        """``script`` is a sequence of (requests that arrive, replies that come back), each as places in history."""
        self.script, self.respond = iter(script), service.respond
        self.requests, self.replies = [], []

    def __call__(self, text):
        """Send ``text``, and what the script says beside it."""
        self.requests.append(text)
        arriving, returning = next(self.script, ((0,), (0,)))
        self.replies += [self.respond(self.requests[-1 - back % len(self.requests)]) for back in arriving]
        return [self.replies[-1 - back % len(self.replies)] for back in returning if self.replies]


places = st.lists(st.integers(0, 5), max_size=3).map(tuple)
scripts = st.lists(st.tuples(places, places), max_size=7)
LOST, UNANSWERED, TWICE = ((), ()), ((0,), ()), ((0, 0), (0, 1))
BACKWARDS = ((1, 0, 1), (2, 1, 0, 2))


# Messages


@every_mode
@pytest.mark.parametrize("rational", [True, False])
@examples(15)
@given(task=tasks(3, 2, 5), prompt=prompts(3), script=scripts, data=st.data())
def test_every_message_sent_fits_the_schema_and_survives(mode, rational, task, prompt, script, data):
    if not rational:
        task = task._replace(target=as_float64(task.target), draft=as_float64(task.draft))

    def inspected(service):
        link = Unreliable(script, service)

        def send(text):
            replies = link(text)
            for said in (text, *replies):
                VALIDATOR.validate(json.loads(said))
                assert encode(decode(said)) == said
            return replies

        return send

    session(FromHypothesis(data), task, prompt, mode, inspected)


@given(st.lists(st.floats(0, 1, exclude_min=True), min_size=1, max_size=4))
def test_floats_arrive_bit_by_bit_and_fractions_stay_fractions(values):
    sent = Verify("s", 0, 1, (0,) * len(values), tuple(values), ())
    assert decode(encode(sent)) == sent
    exact = sent._replace(masses=tuple(Fraction(value) for value in values))
    assert [type(mass) for mass in decode(encode(exact)).masses] == [Fraction] * len(values)
    assert decode(encode(exact)) == exact


def test_a_pmf_travels_as_its_support():
    row = as_row(np.array([Fraction(0), Fraction(1, 3), Fraction(0), Fraction(2, 3)], dtype=object))
    assert row == Row(4, (1, 3), (Fraction(1, 3), Fraction(2, 3)))
    assert from_row(row).tolist() == [0, Fraction(1, 3), 0, Fraction(2, 3)]
    assert from_row(as_row(np.array([0.25, 0, 0.75]))).dtype == np.float64
    assert as_row(np.array([1, 0], dtype=object)).masses == (Fraction(1),)


GOOD = {
    "kind": "supply",
    "session": "s",
    "epoch": 0,
    "known": 3,
    "draft": [0],
    "position": 0,
    "row": [3, [0, 2], ["1/2", "1/2"]],
}


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "nothing"},
        {"kind": ["supply"]},
        {"extra": 1},
        {"epoch": -1},
        {"known": True},
        {"session": 7},
        {"row": [3, [0, 2]]},
        {"row": [3, [0, 2], ["1/2", "half"]]},
        {"row": [3, [0, 2], ["1/2", "1/0"]]},
        {"row": [3, [0, 2], ["1/2", 1]]},
        {"row": [3, [0, 2], ["1/2", "1/3"]]},
        {"row": [3, [2, 0], ["1/2", "1/2"]]},
        {"row": [2, [0, 2], ["1/2", "1/2"]]},
        {"row": [3, [0, 2], ["1/1"]]},
        {"row": [3, [0, 1], [0.5, 0.4]]},
    ],
)
def test_what_is_no_message_is_refused_in_one_sentence(change):
    assert decode(json.dumps(GOOD)).row.masses == (Fraction(1, 2),) * 2
    with pytest.raises(ValueError, match="expected"):
        decode(json.dumps(GOOD | change))


def test_the_schema_is_one_and_refuses_another_kind():
    jsonschema.Draft202012Validator.check_schema(VALIDATOR.schema)
    VALIDATOR.validate(GOOD)
    for wrong in (GOOD | {"kind": "verify"}, GOOD | {"row": [3, [0]]}, GOOD | {"more": 1}, {}):
        assert not VALIDATOR.is_valid(wrong)
    for text in ("[]", "7", '{"kind":"opened"}', '{"kind":"open"', '{"kind":"open","session":"0"}'):
        with pytest.raises(ValueError):  # noqa: PT011 - JSON's own words for what is no JSON
            decode(text)


# The law


@exact_modes
@pytest.mark.parametrize("script", [(), (LOST, UNANSWERED) * 3, (TWICE, BACKWARDS) * 3], ids=["kept", "lost", "again"])
@pytest.mark.parametrize("shape", ["generic", "zeros", "peaked"])
def test_a_session_has_the_law_of_the_target_whatever_the_link_does(mode, script, shape):
    task = Task(*table_pair(shape, 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), mode, partial(Unreliable, script)))
    assert found == target_law(task, (0, 1))


@exact_modes
@examples(4)
@given(task=tasks(2, 2, 3), prompt=prompts(2), script=scripts)
def test_the_law_survives_any_script(mode, task, prompt, script):
    found = law_of(lambda draws: session(draws, task, prompt, mode, partial(Unreliable, script)))
    assert found == target_law(task, prompt)


@every_mode
@examples(60)
@given(task=tasks(3, 1, 8), prompt=prompts(3), script=scripts, seed=st.integers(0, 999))
def test_nothing_is_emitted_twice_or_lost_whatever_the_link_does(mode, task, prompt, script, seed):
    """One uniform for each occurrence of a site: a draw made again would shift every one after it."""
    plain = session(Tape(seed), task, prompt, mode)
    assert session(Tape(seed), task, prompt, mode, partial(Unreliable, script)) == plain


@exact_modes
@examples(6)
@given(task=tasks(2, 2, 4), prompt=prompts(2), start=st.integers(0, 3))
def test_the_length_of_a_draft_may_follow_the_accepted_share(mode, task, prompt, start):
    decoder = edge_cloud_decoder(task, mode, accepted_ratio(start, 0, 3))
    assert decoder_law(decoder, prompt).probabilities == target_law(task, prompt)


def loses_zeros(service):
    """A link that reads replies: the first copy of every reply that emits token 0 is lost, however often it is made."""
    seen = set()

    def send(text):
        said = service.respond(text)
        reply = decode(said)
        lost = isinstance(reply, Verified) and reply.token == 0 and reply.known not in seen
        seen.update({reply.known} if lost else ())
        return () if lost else (said,)

    return send


@exact_modes
def test_even_a_link_that_loses_by_content_cannot_bend_the_law(mode):
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    assert law_of(lambda draws: session(draws, task, (0, 1), mode, loses_zeros)) == target_law(task, (0, 1))


GOLDEN = Task(always(P), always(Q), horizon=2)


def first_of_round(mode, task=GOLDEN):
    law = law_of(lambda draws: session(draws, task, (0,), mode, gamma=1)[:1])
    return project(law, lambda new: new[0])


@pytest.mark.parametrize(
    ("mode", "law", "bias"),
    [
        ("sparse-q", (".2", ".3", ".5"), "0"),
        ("two-phase", (".2", ".3", ".5"), "0"),
        ("match", (".2", ".3", ".5"), "0"),
        ("scalar-q", (".20", ".45", ".35"), ".15"),
        ("shortcut", (".28", ".42", ".30"), ".20"),
        ("likelier", (".12", ".48", ".40"), ".18"),
    ],
)
def test_the_known_pair_has_the_known_law_in_every_mode(mode, law, bias):
    found = first_of_round(mode)
    assert found == {token: Fraction(mass) for token, mass in enumerate(law)}
    assert distance(found, as_law(P)) == Fraction(bias)


def test_a_silence_that_commits_the_first_draft_costs_its_probability_times_the_distance():
    law = decoder_law(edge_cloud_timeout.build(GOLDEN, Fraction(1, 10), 1), (0,)).probabilities
    first = project(law, lambda new: new[0])
    assert distance(first, as_law(P)) == Fraction(1, 10) * Fraction(2, 5)


@pytest.mark.parametrize(("mode", "rate"), [("sparse-q", "3/5"), ("two-phase", "3/5"), ("match", "13/50")])
def test_the_known_pair_is_accepted_as_often_as_its_mode_allows(mode, rate):
    decoder = edge_cloud_decoder(GOLDEN, mode, constant(1))
    law = law_of(lambda draws: decoder.step(draws, decoder.init((0,)))[1].accepted)
    assert law[1] == Fraction(rate)


def most_accepted(p, steps):
    """Return the largest mean of P(out = y) over all q on a grid, for a verifier told (p, y, q(y)) that is lossless."""
    size = len(p)
    grid = [q for q in np.ndindex(*[steps + 1] * size) if sum(q) == steps]
    shape = (size, steps + 1, size)
    equations = np.zeros((len(grid) * size + size * (steps + 1), np.prod(shape)))
    right, gain = [], np.zeros(shape)
    for row, (q, v) in enumerate((q, v) for q in grid for v in range(size)):
        for y, mass in enumerate(q):
            equations[row].reshape(shape)[y, mass, v] = mass / steps
            gain[y, mass, v] += (y == v) * mass / steps / len(grid)
        right.append(p[v])
    for row, (y, mass) in enumerate(np.ndindex(size, steps + 1), start=len(right)):
        equations[row].reshape(shape)[y, mass] = 1
    right += [1.0] * (size * (steps + 1))
    solved = linprog(-gain.ravel(), A_eq=equations, b_eq=right, bounds=(0, 1), method="highs")
    assert solved.success
    return -solved.fun, np.array(grid) / steps


@pytest.mark.parametrize("steps", [4, 6, 8])
@pytest.mark.parametrize("p", [(0.2, 0.3, 0.5), (0.1, 0.1, 0.8)])
def test_with_scalars_alone_nothing_lossless_beats_sample_and_match(p, steps):
    best, grid = most_accepted(p, steps)
    assert best == pytest.approx(float(np.mean(grid @ p)), abs=1e-9)
    assert best < np.mean(np.minimum(grid, p).sum(axis=1)) - 0.05


@pytest.mark.parametrize("p", [(0.2, 0.8), (0.5, 0.5)])
def test_with_two_tokens_the_scalar_is_the_whole_row(p):
    best, grid = most_accepted(p, 10)
    assert best == pytest.approx(float(np.mean(np.minimum(grid, p).sum(axis=1))), abs=1e-9)


# What is counted


def test_bytes_and_messages_are_those_counted_by_hand():
    """Prompt (0,), one draft, which is rejected: open, verify, supply, and then the last token of the horizon."""
    up = (
        '{"kind":"open","session":"0","epoch":0,"known":1,"tokens":[0],"eos":[],"mode":"two-phase"}',
        '{"kind":"verify","session":"0","epoch":0,"known":1,"draft":[0],"masses":["3/5"],"rows":[]}',
        '{"kind":"supply","session":"0","epoch":0,"known":1,"draft":[0],"position":0,"row":[3,[0,1,2],["3/5","3/10","1/10"]]}',
    )
    down = (
        '{"kind":"opened","session":"0","epoch":0,"known":1}',
        '{"kind":"wanted","session":"0","epoch":0,"known":1,"position":0}',
        '{"kind":"verified","session":"0","epoch":0,"known":1,"accepted":0,"token":2}',
    )
    tape = Tape(0, {(("draft", 0), 0): 0.1, (("accept", 0), 0): 0.9, (("residual", 0), 0): 0.5})
    decoder = edge_cloud_decoder(GOLDEN, "two-phase", constant(1))
    first, last = generate(decoder, (0,), tape).rounds
    assert (first.tokens, first.draft, first.accepted) == ((2,), (0,), 0)
    assert first.trace == (
        ("sent", 3),
        ("bytes_up", sum(map(len, up))),
        ("bytes_down", sum(map(len, down))),
    )
    assert last.trace[0] == ("sent", 1)
    said = []
    service = Service(GOLDEN.target, Tape(0, {(("accept", 0), 0): 0.9, (("residual", 0), 0): 0.5}))
    said = [service.respond(text) for text in up]
    assert tuple(said) == down


def test_two_phases_ask_for_a_row_as_often_as_a_draft_is_rejected():
    decoder = edge_cloud_decoder(GOLDEN, "two-phase", constant(1))
    law = law_of(lambda draws: dict(decoder.step(draws, decoder.init((0,)))[1].trace)["sent"])
    assert law == {2: Fraction(3, 5), 3: Fraction(2, 5)}


def test_lost_messages_are_counted_as_sent():
    service = Service(GOLDEN.target, Tape(0))
    edge, state = edge_of(GOLDEN, "match"), EdgeState((0,), 1)
    _, _, traffic = play_round(edge, Tape(0), state, Unreliable((LOST, UNANSWERED), service))
    assert traffic.sent == 4
    _, _, plain = play_round(edge, Tape(0), state, in_memory(Service(GOLDEN.target, Tape(0))))
    assert (plain.sent, plain.bytes_down) == (2, traffic.bytes_down)


# What is refused, and silence


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
        ((), ROW._replace(row=Row(3, (1,), (Fraction(1),))), "conflict"),
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
        (Verified("0", 0, 1, 2, 0), "the cloud accepts 2 of 1 drafts"),
        (Wanted("0", 0, 1, 1), "the cloud asks for row 1 of 1 drafts"),
    ],
)
def test_an_impossible_reply_is_an_error(reply, sentence):
    edge = edge_of(GOLDEN, "two-phase", 1)
    state = edge_side.prepared(edge, Tape(0), EdgeState((0,), 2, opened=True))
    with pytest.raises(ValueError, match=sentence):
        edge_side.received(edge, state, encode(reply))


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
    assert (done.tokens, done.accepted, done.reached) == (done.draft[:1], 0, 0)
    assert (state.epoch, state.opened) == (1, False)
    state = play(edge, Tape(seed + 1), state, link)
    assert len(state.tokens) == 5
    assert service.sessions["0"].tokens == state.tokens


# Killed and gone on


class Killed(Exception):  # noqa: N818 - not an error of the subject
    """The edge stops here."""


@every_mode
@examples(30)
@given(task=tasks(3, 1, 6), prompt=prompts(3), seed=st.integers(0, 999), data=st.data())
def test_both_sides_killed_anywhere_go_on_from_what_they_wrote_down(mode, task, prompt, seed, data):
    """The edge goes on from its last saved state, the cloud from its record: same draws, same text, each once."""
    plain, draws, record, saved = session(Tape(seed), task, prompt, mode), Tape(seed), [], []
    edge, kills = (
        edge_of(task, mode),
        data.draw(st.lists(st.sampled_from(("edge", "cloud", "both", "none")), max_size=8)),
    )
    remaining = iter(kills)

    def started():
        return Service(task.target, draws, rebuilt(record), lambda *pair: record.append(pair))

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
        except Killed:
            state = saved[-1]
    assert state.tokens[len(prompt) :] == plain
    assert service.sessions["0"] == rebuilt(record)["0"]
    rounds = [decode(said).known for _, said in record if isinstance(decode(said), Verified)]
    assert len(rounds) == len(set(rounds))


def forgetful(service):
    """A link to a cloud that loses its memory and its reply at the third request: with two phases often a row."""
    sent = iter(range(100))

    def send(text):
        if next(sent) == 2:
            service.respond(text)
            service.sessions.clear()
            return ()
        return (service.respond(text),)

    return send


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


class DrawsAgain(Service):
    """A cloud that answers a repeated request by verifying once more from where it stood before."""

    def respond(self, text):
        """Forget the first answer, then answer."""
        self.before = getattr(self, "before", {})
        if text in self.before:
            self.sessions["0"] = self.before[text]
        elif "0" in self.sessions:
            self.before[text] = self.sessions["0"]
        return super().respond(text)


@exact_modes
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
        "reference.edge_cloud.transport.timed_out",
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

    monkeypatch.setattr("reference.edge_cloud.transport.received", forgets)
    task = Task(*table_pair("generic", 2, 5), horizon=3)
    found = law_of(lambda draws: session(draws, task, (0, 1), "two-phase", forgetful))
    assert distance(found, target_law(task, (0, 1))) > Fraction(1, 50)


# Two processes

ROOT = Path(__file__).parents[1]
FLAT_P, FLAT_Q = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
SERVER = """
import os, sys
from pathlib import Path
import numpy as np
from reference import Sampled
from reference.edge_cloud import over_http

seed, journal, fault, left = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])

def dying(function, late=False):
    def call(*arguments):
        global left
        left -= 1
        answer = function(*arguments) if late or left else None
        if left == 0:
            os._exit(9)
        return answer
    return call

target = lambda tokens: np.roll([0.2, 0.3, 0.5], tokens[-1])
if fault in {"before", "after"}:
    over_http.Journal.record = dying(over_http.Journal.record, late=fault == "after")
server = over_http.server(
    dying(target) if fault == "model" else target, Sampled(seed), Path(journal) if journal else None
)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A server that dies at the given call of the model, or before or after that many replies are written down."""


def http_target(tokens):
    """Golden rows, turned by the last token: a context off by one shows."""
    return np.roll(FLAT_P, tokens[-1])


def http_draft(tokens):
    return np.roll(FLAT_Q, tokens[-1])


class Running:
    """A server in a process of its own; asked for its address again, it is started again, without the fault."""

    def __init__(self, journal="", fault="", after=0):
        """``fault`` is "model", "before" or "after"; it strikes at the call ``after``."""
        self.journal, self.fault, self.starts, self.process = str(journal), (fault, str(after)), 0, None

    def address(self):
        """Start a server, in place of the one before; return where it listens."""
        if self.process is not None:
            self.stop()
        arguments = (str(self.starts), self.journal, *(("", "0") if self.starts else self.fault))
        command = [sys.executable, "-c", SERVER, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.starts += 1
        return "127.0.0.1", int(self.process.stdout.readline())

    def stop(self):
        """Kill the server."""
        self.process.kill()
        self.process.wait(10)
        self.process.stdout.close()


def http_session(link, draws, mode, name, horizon=2, gamma=1):
    edge = Edge(http_draft, constant(gamma), mode, session=name)
    return play(edge, draws, EdgeState((0,), horizon), link).tokens[1:]


def test_over_http_the_sample_fits_and_a_wrong_mode_is_rejected():
    """False alarm 1e-6, every law at TV 0.15 refuted but for 1e-3; the clamped residual is at least that far away."""
    law = target_law(Task(http_target, http_draft, horizon=2), (0,))
    false_alarm, miss, level = 1e-6, 1e-3, stage_level(1e-6)
    biased = clamped_scalar_residual.declared_law(Task(http_target, http_draft, horizon=2), (0,), 1)
    assert distance(biased, law) > 0.15
    number = samples_for(law, 0.15, level, miss / 2)
    running = Running()
    link = HttpLink(running.address)

    def sampled(mode, count, seed):
        draws = Sampled(seed)
        return Counter(http_session(link, draws, mode, f"{mode}/{seed}/{i}") for i in range(count))

    try:
        fit = confirmed_fit(
            partial(sampled, "two-phase"), law, samples=number, false_alarm=false_alarm, miss=miss, seed=7
        )
        wrong = goodness_of_fit(sampled("scalar-q", number, 8), law)
    finally:
        link.close()
        running.stop()
    assert fit.verdict is FitVerdict.FITS
    assert fit.control
    assert fit.detectable_tv <= 0.15
    assert wrong.p_value < level
    assert running.starts == 1


@pytest.mark.parametrize(("fault", "at"), [("model", 5), ("before", 3), ("after", 3)])
def test_over_http_a_server_killed_in_mid_round_goes_on(tmp_path, fault, at):
    """It dies while it verifies, before its reply is written down, or with the reply written down and unsent."""
    running = Running(tmp_path / "journal", fault, at)
    link = HttpLink(running.address, timeout=20)
    try:
        new = http_session(link, Sampled(3), "sparse-q", "0", horizon=12, gamma=3)
    finally:
        link.close()
        running.stop()
    assert running.starts == 2
    assert len(new) == 12
    pairs = Journal(tmp_path / "journal").pairs
    assert rebuilt(pairs)["0"].tokens == (0, *new)
    rounds = [decode(said) for _, said in pairs if isinstance(decode(said), Verified)]
    drafts = [decode(asked).draft for asked, said in pairs if isinstance(decode(said), Verified)]
    text = [(*draft[: reply.accepted], reply.token) for draft, reply in zip(drafts, rounds, strict=True)]
    assert sum(text, ()) == new
    assert [reply.known for reply in rounds] == [1 + sum(map(len, text[:i])) for i in range(len(text))]


def test_over_http_what_is_no_request_is_answered_by_one_sentence():
    running = Running()
    link = HttpLink(running.address)
    try:
        with pytest.raises(ValueError, match=r"the server answered 400: .* is not a message, expected one of open"):
            link("{}")
        assert decode(link(encode(FIRST))[0]).reason == "unknown"
    finally:
        link.close()
        running.stop()


def test_a_state_is_hashable_and_holds_one_session():
    assert len({CloudState(0, (0,), (), "match"), CloudState(0, (0,), (), "match")}) == 1
