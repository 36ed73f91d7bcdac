"""A batch in lock step whose models are not recorded: one row decides about another, or a row is wrong by itself."""

from __future__ import annotations

import random

import pytest

from specverify.testing import SpeculationRefuted, check_engine

P = {(): ((0.6, 0.4), (0.3, 0.7)), (0,): ((0.55, 0.45), (0.2, 0.8)), (1,): ((0.35, 0.65), (0.75, 0.25))}
Q = {(): ((0.8, 0.2), (0.45, 0.55)), (0,): ((0.25, 0.75), (0.5, 0.5)), (1,): ((0.7, 0.3), (0.4, 0.6))}
ROWS, LENGTH = 2, 2
CUT = "a row that accepts more drafts than another row of the batch is cut to as many, and the accepted draft is "


def row_of(table, row, new):
    return table[tuple(new[-1:])][row]


def draw(weights):
    return random.choices(range(2), weights)[0]


def excess(p, q):
    return [max(one - other, 0.0) for one, other in zip(p, q, strict=True)]


def plain():
    texts = ((), ())
    for _ in range(LENGTH):
        texts = tuple((*new, draw(row_of(P, row, new))) for row, new in enumerate(texts))
    return texts


def lock_step(kept_row, bound=lambda p, q: p / q, residual=excess, together=min):
    """Return a batch that keeps ``together`` of the numbers of accepted drafts in each row.

    ``kept_row`` gives the row of the token that replaces an accepted draft.
    """

    def decode():
        texts = [[] for _ in range(ROWS)]
        while len(texts[0]) < LENGTH:
            count = min(1, LENGTH - len(texts[0]) - 1)
            drafts = [[] for _ in range(ROWS)]
            for _ in range(count):
                for row, some in enumerate(drafts):
                    some.append(draw(row_of(Q, row, texts[row] + some)))
            accepted = []
            for row, some in enumerate(drafts):
                p, q = ([row_of(of, row, texts[row] + some[:i]) for i in range(count)] for of in (P, Q))
                passed = [random.random() < bound(p[i][x], q[i][x]) for i, x in enumerate(some)]
                accepted.append([*passed, False].index(False))
            kept = together(accepted)
            for row, some in enumerate(drafts):
                p, q = (row_of(of, row, texts[row] + some[:kept]) for of in (P, Q))
                last = kept_row(p, q) if accepted[row] > kept else p if kept == count else residual(p, q)
                texts[row] += [*some[:kept], draw(last)]
        return tuple(map(tuple, texts))

    return decode


def message(batch):
    with pytest.raises(SpeculationRefuted) as refuted:
        check_engine(batch, plain, checks=["law_is_target"], quick=True)
    return str(refuted.value)


def rest(p, q):
    """Return the residual of p and q; p if it is empty, as it may be for an accepted draft."""
    return excess(p, q) if any(excess(p, q)) else p


@pytest.mark.parametrize(
    ("kept_row", "named"), [(lambda p, q: p, "a draw from p"), (rest, "a draw from norm(max(p - q, 0))")]
)
def test_a_row_that_is_cut_to_another_is_named(kept_row, named):
    assert f": {CUT}replaced by {named}\n" in message(lock_step(kept_row))


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    "batch",
    [
        lock_step(lambda p, q: p[::-1]),
        lock_step(lambda p, q: p, bound=lambda p, q: 0.5 * p / q),
        lock_step(lambda p, q: p, residual=lambda p, q: q),
        lock_step(rest, together=lambda counts: counts[-1]),
    ],
)
def test_a_batch_with_another_fault_is_not_told_as_cut(batch):
    assert CUT not in message(batch)
