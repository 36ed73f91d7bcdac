"""A tensor whose shape is changed in place has the new shape: for who slices it, and not for views made before."""

from __future__ import annotations

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.enumeration import program_law
from specverify.subjects.seeded import seeded

ROWS = torch.tensor([[0.75, 0.25], [0.4, 0.6]], dtype=torch.float64)
BOUNDS = torch.tensor([0.5, 0.25])


def drawn():
    return torch.multinomial(ROWS, 1)


def row_of_drafts():
    """As LayerSkip writes a residual draw among the target's."""
    tokens = drawn()
    tokens.transpose_(1, 0)
    tokens[0][0] = 1
    return tokens[:, 0:1].tolist(), tokens[0][:1].tolist(), tokens[:, :-1].tolist(), tuple(tokens.shape)


def view_made_before():
    tokens = drawn()
    view = tokens[0:1]
    tokens.transpose_(1, 0)
    view[0][0] = 1
    return view.tolist(), tokens[:, :1].tolist(), tuple(view.shape), tuple(tokens.shape)


def view_that_is_reshaped():
    tokens = drawn()
    view = tokens.T[:, 0:2]
    view.t_()
    tokens[1][0] = 0
    return view[1:].tolist(), tokens.tolist(), tuple(view.shape)


def squeezed_and_unsqueezed():
    tokens = drawn().squeeze_(1).unsqueeze_(0)
    return tokens[:, 0:1].tolist(), tuple(tokens.shape)


def uniforms():
    numbers = torch.rand(2, 1)
    numbers.squeeze_(1)
    return (numbers < BOUNDS).tolist(), tuple(numbers.shape)


def filled_uniforms():
    numbers = torch.empty(2, 1)
    numbers.uniform_().squeeze_(1)
    return (numbers < BOUNDS).tolist(), tuple(numbers.shape)


def swapped_uniforms():
    numbers = torch.rand(2, 2)
    numbers.swapaxes_(0, 1)
    return bool(numbers[1, 0] < 0.25), tuple(numbers.shape)


WAYS = (
    row_of_drafts,
    view_made_before,
    view_that_is_reshaped,
    squeezed_and_unsqueezed,
    uniforms,
    filled_uniforms,
    swapped_uniforms,
)


def law_of(way):
    def program(draws):
        with answered_everywhere(draws):
            return (repr(way()),)

    return program_law(program).probabilities


@pytest.mark.parametrize("way", WAYS)
def test_what_comes_out_is_what_torch_gives(way):
    law = law_of(way)
    with seeded(0):
        seen = {(repr(way()),) for _ in range(100)}
    assert seen == set(law)
    assert sum(law.values()) == pytest.approx(1)


def test_the_law_of_a_row_is_that_of_its_tokens():
    law = law_of(view_made_before)
    assert law == {("([[1]], [[1]], (1, 1), (1, 2))",): pytest.approx(1)}
    (most,) = [mass for (said,), mass in law_of(squeezed_and_unsqueezed).items() if said.startswith("([[0]]")]
    assert most == pytest.approx(0.75)


def test_a_storage_that_is_given_another_size_is_refused():
    with pytest.raises(NeedsValue, match="the shape of a tensor that holds random numbers is changed in place"):
        law_of(lambda: drawn().resize_(1, 2).tolist())
