"""Messages as text: the schema, seeds, floats and fractions arrive as they were sent."""

from __future__ import annotations

import json
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.edge_cloud.messages import LARGEST_SEED, SparsePmf, Supply, Verify
from reference.edge_cloud.wire import SCHEMA, decode, encode

VALIDATOR = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8")))

GOOD = {
    "kind": "supply",
    "session": "s",
    "epoch": 0,
    "known": 3,
    "draft": [0],
    "position": 0,
    "row": [3, [0, 2], ["1/2", "1/2"]],
}

OPEN = {"kind": "open", "session": "s", "epoch": 0, "known": 1, "tokens": [0], "eos": [], "mode": "gumbel", "seed": 0}


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
