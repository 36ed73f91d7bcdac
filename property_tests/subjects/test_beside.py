"""Values in the shapes that engines return: each right one holds, and each wrong twin is refuted."""

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch

from specverify.subjects.beside import part_answer, ranked, value_of, values_of_row
from specverify.testing import Made, SpeculationRefuted, SpeculationUndecided, check_engine

pytestmark = pytest.mark.usefixtures("named_checks_alone")

P = np.array([[0.2, 0.8], [0.6, 0.4]])


def drawn(pmf):
    return int(np.random.choice(2, p=pmf))


def logprobs_of(new, wrong):
    rows = [P[0], P[new[0]]]
    if wrong:
        rows = [P[0], P[0]]
    return [math.log(row[token]) for row, token in zip(rows, new, strict=True)], rows


def text_of(new):
    return "".join("ab"[token] for token in new)


class Named(NamedTuple):
    tokens: tuple
    logprobs: list


@dataclass
class Data:
    token_ids: list
    logprobs: list


def pair(new, values, rows):
    return new, {"logprobs": values}


def in_order(new, values, rows):
    return new, values


def mapping(new, values, rows):
    return {"tokens": new, "logprobs": np.array(values)}


def named_tuple(new, values, rows):
    return Named(new, values)


def data_class(new, values, rows):
    return Data(list(new), values)


def request_output(new, values, rows):
    """As vLLM returns: a dictionary for each token, by token id."""
    entries = [
        {t: SimpleNamespace(logprob=math.log(row[t]), rank=1 + int(row[1 - t] > row[t])) for t in range(2)}
        for row in rows
    ]
    sample = SimpleNamespace(token_ids=list(new), logprobs=entries, text=text_of(new), finish_reason="length")
    return SimpleNamespace(outputs=[sample], prompt_token_ids=[0])


def chat_completion(new, values, rows):
    """As an OpenAI response, beside the token ids."""
    content = [
        {
            "token": t,
            "logprob": value,
            "top_logprobs": [{"token": u, "logprob": math.log(row[u])} for u in np.argsort(-row)],
        }
        for t, value, row in zip(new, values, rows, strict=True)
    ]
    choice = {"logprobs": {"content": content}, "message": {"content": text_of(new)}, "finish_reason": "length"}
    return new, {"choices": [choice], "usage": {"completion_tokens": 2}}


def model_output(new, values, rows):
    """As transformers' generate returns: one array [1, vocabulary] for each step."""
    return SimpleNamespace(sequences=[new], scores=tuple(np.log(row)[None] for row in rows))


def stream(new, values, rows):
    def pieces():
        yield from ((token, {"logprobs": value}) for token, value in zip(new, values, strict=True))

    return pieces()


def meta_info(new, values, rows):
    """As SGLang returns: lists of logarithm, id, text."""
    listed = [[value, token, "ab"[token]] for value, token in zip(values, new, strict=True)]
    return {
        "output_ids": list(new),
        "meta_info": {"output_token_logprobs": listed, "finish_reason": {"type": "length"}},
    }


SHAPES = {
    pair: "logprobs",
    in_order: "logprobs",
    mapping: "logprobs",
    named_tuple: "logprobs",
    data_class: "logprobs",
    request_output: "logprobs",
    chat_completion: "logprobs",
    model_output: "scores",
    stream: "logprobs",
    meta_info: "logprobs",
}


def engine(shape, wrong, drafts):
    def decode():
        new = ()
        while len(new) < 2:
            row = P[new[-1] if new else 0]
            if drafts:
                draft = drawn([0.5, 0.5])
                left = np.maximum(row - 0.5, 0)
                kept = np.random.random() < row[draft] / 0.5
                new += (draft if kept else drawn(left / left.sum()),)
            else:
                new += (drawn(row),)
        return shape(new, *logprobs_of(new, wrong))

    return decode


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_a_shape_is_read_and_its_wrong_twin_refuted(shape):
    how = {"returns": (SHAPES[shape],), "quick": True}
    right = engine(shape, False, True), engine(shape, False, False)
    found = check_engine(*right, checks=["law_is_target", "values_match"], **how)
    assert "values_match" in {v.check for v in found}
    with pytest.raises(SpeculationRefuted, match="new token 2"):
        check_engine(engine(shape, True, True), engine(shape, False, False), checks=["values_match"], **how)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("shape", "name"), [(request_output, "top_logprobs"), (chat_completion, "top_logprobs")])
def test_lists_of_the_most_probable_tokens_are_read(shape, name):
    how = {"returns": (name, "text", "finish_reason"), "checks": ["values_match"], "quick": True}
    check_engine(engine(shape, False, True), engine(shape, False, False), **how)
    with pytest.raises(SpeculationRefuted, match="most probable tokens at new token 2"):
        check_engine(engine(shape, True, True), engine(shape, False, False), **how)


LAW = {(a, b): float(P[0][a] * P[a][b]) for a in range(2) for b in range(2)}


def test_a_law_is_enough():
    how = {"returns": ("logprobs",), "checks": ["values_match"], "quick": True}
    check_engine(engine(pair, False, True), LAW, **how)
    with pytest.raises(SpeculationRefuted, match="new token 2"):
        check_engine(engine(pair, True, True), LAW, **how)


def test_what_nothing_says_is_no_pass():
    how = {"checks": ["values_match"], "quick": True}
    with pytest.raises(SpeculationUndecided, match="no expected value is known for text"):
        check_engine(engine(request_output, False, True), LAW, returns=("text",), **how)
    check_engine(engine(request_output, False, True), LAW, returns={"text": text_of}, **how)


def test_equal_tokens_have_equal_values_whatever_they_are():
    def decode():
        accepted = np.random.random() < 0.5
        return (drawn([0.5, 0.5]),), {"logprobs": [math.log(0.5)], "hidden": [1.0 if accepted else 2.0]}

    law = {(0,): 0.5, (1,): 0.5}
    with pytest.raises(SpeculationRefuted, match="depend on which drafts were accepted"):
        check_engine(decode, law, returns=("hidden",), checks=["values_match"], quick=True)


def test_names_and_lists_are_found():
    assert value_of({"meta_info": {"finish_reason": {"type": "stop"}}}, "finish_reason") == "stop"
    assert part_answer(((1, 2), [0.5, 0.5]), ("logprobs",)).beside == {"logprobs": [0.5, 0.5]}
    assert ranked([(2, -0.5), (0, -1.5)]).tokens == (2, 0)
    assert ranked([[-0.5, 2, "c"]]).tokens == (2,)
    assert ranked(torch.topk(torch.tensor([0.1, 0.7, 0.2]), 2)).tokens == (1, 2)


@pytest.mark.parametrize(
    ("beside", "name", "is_there"),
    [
        ({"stop_reason": None}, "stop_reason", True),
        ({"outputs": [{"stop_reason": None}]}, "stop_reason", True),
        ({"tokens": (1,)}, "stop_reason", False),
        ({"grade": None}, "grade", True),
        ({"logprobs": None}, "logprobs", False),
    ],
)
def test_none_is_a_value_where_it_may_be(beside, name, is_there):
    assert values_of_row(beside, (name,), 0, 0) == ({name: None} if is_there else {})


def test_what_returns_says_is_looked_at():
    for returns in ("logprobs", (), {"logprobs": "row"}, (3,)):
        with pytest.raises(ValueError, match="returns"):
            check_engine(engine(pair, False, True), engine(pair, False, False), returns=returns)


WHOLE_NUMBERS = {
    "numbers": (3, 1),
    "elements of an array": tuple(np.array([3, 1])),
    "elements of a tensor": tuple(torch.tensor([3, 1])),
}


@pytest.mark.parametrize("kind", WHOLE_NUMBERS)
def test_a_tuple_of_whole_numbers_is_a_row_of_tokens(kind):
    parted = part_answer(WHOLE_NUMBERS[kind], ("logprobs",))
    assert [int(token) for token in parted.tokens] == [3, 1]


@pytest.mark.parametrize("answer", [([3, 1], [-0.5, 0.0]), (np.array([3, 1]), np.array([-0.5, 0.0])), ((3, 1), (0, 0))])
def test_a_row_and_its_values_are_parted(answer):
    parted = part_answer(answer, ("logprobs",))
    assert [int(token) for token in parted.tokens] == [3, 1]
    assert set(parted.beside) == {"logprobs"}


def test_one_token_and_its_value_are_parted():
    parted = part_answer((3, -0.5), ("logprobs",))
    assert (parted.tokens, parted.beside) == (3, {"logprobs": -0.5})


def test_a_plain_call_may_return_a_bare_tuple_beside_an_engine_that_returns_values():
    def make(s):
        def decode():
            new = ()
            while len(new) < s.horizon:
                new += (int(np.random.choice(s.vocabulary, p=s.target(s.prompt + new))),)
            return new

        def fast():
            new = decode()
            rows = [s.target(s.prompt + new[:place]) for place in range(len(new))]
            return list(new), [float(np.log(row[token])) for row, token in zip(rows, new, strict=True)]

        return Made(fast, decode)

    found = check_engine(make, returns=("logprobs",), checks=["values_match"], quick=True, on_fail=None)
    assert {str(v.status) for v in found} == {"holds"}
