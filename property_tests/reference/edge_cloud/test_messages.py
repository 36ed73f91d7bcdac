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
from reference.edge_cloud.link import Service
from reference.edge_cloud.messages import SparsePmf
from reference.edge_cloud.modes import as_row, from_row
from reference.edge_cloud.wire import SCHEMA, decode, encode
from specverify.laws.draws import FromHypothesis, Tape
from specverify.laws.model_strategies import prompts, tasks
from specverify.laws.tables import as_float64
from test_support.laws.rational import examples
from test_support.reference.edge_cloud_sessions import (
    GOLDEN,
    Unreliable,
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


def test_a_pmf_travels_as_its_support():
    row = as_row(np.array([Fraction(0), Fraction(1, 3), Fraction(0), Fraction(2, 3)], dtype=object))
    assert row == SparsePmf(4, (1, 3), (Fraction(1, 3), Fraction(2, 3)))
    assert from_row(row).tolist() == [0, Fraction(1, 3), 0, Fraction(2, 3)]
    assert from_row(as_row(np.array([0.25, 0, 0.75]))).dtype == np.float64
    assert as_row(np.array([1, 0], dtype=object)).masses == (Fraction(1),)


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
