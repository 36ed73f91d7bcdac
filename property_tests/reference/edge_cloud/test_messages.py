"""What edge and cloud say to each other: its JSON and schema, and what it costs."""

from __future__ import annotations

import json
from fractions import Fraction

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import constant, generate
from reference.edge_cloud.decoder import edge_cloud_decoder
from reference.edge_cloud.edge import EdgeState
from reference.edge_cloud.link import Service, in_memory, play_round
from reference.edge_cloud.messages import LARGEST_SEED, SparsePmf, Supply, Verify
from reference.edge_cloud.modes import as_row, from_row
from reference.edge_cloud.wire import SCHEMA, decode, encode
from specverify.laws.draws import FromHypothesis, Tape
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import as_float64
from test_support.laws.rational import examples, law_of
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
    LOST,
    UNANSWERED,
    Unreliable,
    edge_of,
    every_mode,
    scripts,
    session,
)

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))


@pytest.mark.thorough(keep=4)
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


def test_equal_rows_of_different_arithmetic_have_different_texts():
    half, floats = (Fraction(1, 2),) * 2, (0.5, 0.5)
    for message in (Supply("s", 0, 1, (0,), 0, SparsePmf(2, (0, 1), floats)), Verify("s", 0, 1, (0,), (), ())):
        for masses in (floats, half, floats, (0.5, Fraction(1, 2))):
            row = SparsePmf(2, (0, 1), masses)
            sent = message._replace(row=row) if isinstance(message, Supply) else message._replace(rows=(row,))
            told = ",".join("0.5" if isinstance(mass, float) else '"1/2"' for mass in masses)
            assert f"[2,[0,1],[{told}]]" in encode(sent)
            assert json.loads(encode(sent)).keys() == {"kind", *sent._fields}


def test_a_pmf_travels_as_its_support():
    row = as_row(np.array([Fraction(0), Fraction(1, 3), Fraction(0), Fraction(2, 3)], dtype=object))
    assert row == SparsePmf(4, (1, 3), (Fraction(1, 3), Fraction(2, 3)))
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


OPEN = {"kind": "open", "session": "s", "epoch": 0, "known": 1, "tokens": [0], "eos": [], "mode": "gumbel", "seed": 0}


@pytest.mark.parametrize("seed", [None, 0, 1, LARGEST_SEED])
def test_a_seed_arrives_as_it_was(seed):
    VALIDATOR.validate(OPEN | {"seed": seed})
    message = decode(json.dumps(OPEN | {"seed": seed}))
    assert (message.seed, decode(encode(message))) == (seed, message)


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, 0.5, "7", True])
def test_a_seed_that_is_none_is_refused_by_schema_and_reader(seed):
    assert not VALIDATOR.is_valid(OPEN | {"seed": seed})
    with pytest.raises(ValueError, match=f"seed is .*, expected null or an integer in 0..{LARGEST_SEED}"):
        decode(json.dumps(OPEN | {"seed": seed}))


# What is counted


def test_bytes_and_messages_are_those_counted_by_hand():
    """Prompt (0,), one draft, which is rejected: open, verify, supply, and then the last token of the horizon."""
    up = (
        '{"kind":"open","session":"0","epoch":0,"known":1,"tokens":[0],"eos":[],"mode":"two-phase","seed":null}',
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
