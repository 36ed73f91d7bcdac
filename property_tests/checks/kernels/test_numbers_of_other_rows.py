"""A kernel that takes random numbers of a neighbouring row: the first line says which numbers, and of which row."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.testing import check_kernel
from test_support.kernels.kernels import plain


def from_row(numbers, by):
    """Return the numbers of row r + ``by`` in row r; the rows at the end keep their own."""
    return numbers[np.clip(np.arange(len(numbers)) + by, 0, len(numbers) - 1)]


def last_before(p, q, drafts, accept_uniforms, final_uniforms):
    return plain(p, q, drafts, accept_uniforms, from_row(final_uniforms, -1))


def coins_after(p, q, drafts, accept_uniforms, final_uniforms):
    return plain(p, q, drafts, from_row(accept_uniforms, 1), final_uniforms)


def two_before(p, q, drafts, accept_uniforms, final_uniforms):
    return plain(p, q, drafts, accept_uniforms, from_row(final_uniforms, -2))


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (
            last_before,
            "the bonus and the replacement of a row are drawn with the final uniform of the row before it: row",
        ),
        (coins_after, "a draft of a row is tested with the accept uniforms of the row after it: row "),
        (two_before, ""),
    ],
)
def test_the_numbers_of_a_neighbour_are_named(kernel, said):
    (verdict,) = check_kernel(
        kernel, gammas=(1,), vocabularies=(), rows=2**11, checks=["rows_are_independent"], on_fail=None
    )
    assert verdict.counterexample.fault.startswith(said)
    assert bool(verdict.counterexample.fault) == bool(said)
