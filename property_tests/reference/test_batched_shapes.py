"""The batched verifiers at their edges: types, shapes that do not fit, the smallest batch, ends of intervals."""

from __future__ import annotations

import numpy as np
import pytest

from property_tests.reference.test_batched import ALMOST_ONE, last_draw, random_inputs
from reference import greedy_batched, inverse_cdf_batched, verify_batched

# Shapes and types


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("integers", [np.int32, np.int64])
def test_answers_are_int64_whatever_comes_in(dtype, integers):
    inputs = random_inputs(0, 5, batch=3)
    floats, ids = [x.astype(dtype) for x in (inputs.p, inputs.q)], [x.astype(integers) for x in inputs[2:4]]
    for batch in (verify_batched(*floats, *ids, *inputs[4:]), greedy_batched(floats[0], *ids)):
        assert (batch.emitted.dtype, batch.accepted.dtype) == (np.int64, np.int64)
        assert (batch.emitted.shape, batch.accepted.shape) == ((3, 4), (3,))


def test_inputs_are_left_as_they_were():
    inputs = random_inputs(0, 5, batch=3)
    copies = [values.copy() for values in inputs]
    verify_batched(*inputs)
    greedy_batched(*inputs[::2][:1], *inputs[2:4])
    assert all((values == copy).all() for values, copy in zip(inputs, copies, strict=True))


@pytest.mark.parametrize(
    ("field", "shape", "message"),
    [
        ("p", (2, 3), r"p has shape \(2, 3\), expected \[batch, gamma \+ 1, vocabulary\]"),
        ("p", (2, 0, 5), r"p has shape \(2, 0, 5\)"),
        ("q", (2, 4, 5), r"q has shape \(2, 4, 5\), expected \(2, 3, 5\) to fit p"),
        ("q", (2, 3, 4), r"q has shape \(2, 3, 4\)"),
        ("draft_tokens", (2, 4), r"draft_tokens has shape \(2, 4\), expected \(2, 3\)"),
        ("lengths", (1,), r"lengths has shape \(1,\), expected \(2,\)"),
        ("accept_uniforms", (2, 1), r"accept_uniforms has shape \(2, 1\), expected \(2, 3\)"),
        ("final_uniforms", (2, 1), r"final_uniforms has shape \(2, 1\), expected \(2,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(field, shape, message):
    inputs = random_inputs(0, 5, batch=2)._replace(**{field: np.zeros(shape)})
    with pytest.raises(ValueError, match=message):
        verify_batched(*inputs)


# The smallest and the largest


@pytest.mark.parametrize("shape", [(2, 3), (2, 0, 5), (2, 4, 0), (1, 2, 3, 4)])
def test_greedy_refuses_what_is_no_batch_of_rows(shape):
    with pytest.raises(ValueError, match=r"^p has shape .*, expected \[batch, gamma \+ 1, vocabulary\]"):
        greedy_batched(np.zeros(shape), np.zeros((2, 3), dtype=int), np.zeros(2, dtype=int))


@pytest.mark.parametrize(("tokens", "lengths"), [((2, 2), (2,)), ((2, 3), (3,)), ((2, 3), (2, 1))])
def test_greedy_names_what_does_not_fit(tokens, lengths):
    name = "draft_tokens" if tokens != (2, 3) else "lengths"
    with pytest.raises(ValueError, match=f"^{name} has shape .*, expected .* to fit p"):
        greedy_batched(np.zeros((2, 4, 5)), np.zeros(tokens, dtype=int), np.zeros(lengths, dtype=int))


def test_a_batch_of_one_token_and_no_draft():
    none = np.zeros((1, 0), dtype=int)
    nothing = (none, np.zeros(1, dtype=int))
    one = np.ones((1, 1, 1))
    sampled = verify_batched(one, np.zeros((1, 0, 1)), *nothing, np.zeros((1, 0)), np.zeros(1))
    for batch in (sampled, greedy_batched(one, *nothing)):
        assert (batch.emitted.tolist(), batch.accepted.tolist()) == ([[0]], [0])


def test_the_last_id_of_the_vocabulary_can_be_accepted_and_the_one_behind_it_cannot():
    for draft, accepted in ((2, 1), (3, 0)):
        assert last_draw([0.2, 0.3, 0.5], [0.3, 0.3, 0.4], uniform=0.0, accept=0.0, draft=draft) == (
            (0, 1) if accepted else (2, 0)
        )


def test_no_rows_are_no_answer():
    batch = verify_batched(
        *(np.zeros(s) for s in ((0, 3, 4), (0, 2, 4))),
        *(np.zeros(s, dtype=int) for s in ((0, 2), (0,))),
        np.zeros((0, 2)),
        np.zeros(0),
    )
    assert (batch.emitted.shape, batch.accepted.shape) == ((0, 3), (0,))


def test_a_uniform_on_a_breakpoint_takes_the_token_behind_it():
    """Each token has its lower end and not its upper one, as in the draws of a single row."""
    row = np.broadcast_to([0.25, 0.0, 0.25, 0.5], (5, 4))
    assert inverse_cdf_batched(row, np.array([0.0, 0.25, 0.5, 0.75, ALMOST_ONE])).tolist() == [0, 2, 3, 3, 3]
