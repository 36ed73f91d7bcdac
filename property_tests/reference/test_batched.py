"""The batched verifiers row by row: on the same tape, site by site, each row is the reference's own chain verifier.

Two regimes. Pmfs that are multiples of 1/64 and uniforms with ten bits make every float64 operation exact, so rows must
equal the verifier run on fractions, on the breakpoints too: that is where ``<`` and ``<=`` part. Arbitrary float64 pmfs
and tape uniforms leave a margin that no rounding crosses in practice (1e-15 against 53 random bits).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Batch, Tokens, Verified, chain, greedy_batched, inverse_cdf_batched, verify_batched
from reference.verifiers.greedy_match import greedy_match
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.laws.draws import Tape

DENOMINATOR = 64
ALMOST_ONE = 1 - 2**-53
NOTHING = -1


class Inputs(NamedTuple):
    """The arguments of ``verify_batched``, NumPy float64 and int64."""

    p: Any
    q: Any
    draft_tokens: Any
    lengths: Any
    accept_uniforms: Any
    final_uniforms: Any


def tape(inputs: Inputs, row: int) -> Tape:
    """The uniforms of one row by site. The verifier asks one of the last sites, whichever it reaches."""
    gamma, final = inputs.q.shape[1], float(inputs.final_uniforms[row])
    accepts = {(("accept", i), 0): float(inputs.accept_uniforms[row, i]) for i in range(gamma)}
    residuals = {(("residual", i), 0): final for i in range(gamma)}
    return Tape(0, {**accepts, **residuals, (("bonus",), 0): final})


def draft_of(inputs: Inputs, row: int) -> Tokens:
    return tuple(inputs.draft_tokens[row, : inputs.lengths[row]].tolist())


def by_row(inputs: Inputs, row: int, *, exact: bool) -> Verified:
    """What the reference's verifier emits for one row, on fractions or on the floats themselves."""

    def pmf(values):
        return np.array([Fraction(value) for value in values.tolist()], dtype=object) if exact else values

    drafted = draft_of(inputs, row)
    draft = chain(drafted, tuple(pmf(inputs.q[row, i]) for i in range(len(drafted))))

    def target(tokens):
        assert tokens == drafted[: len(tokens)]
        return pmf(inputs.p[row, len(tokens)])

    return speculative_sampling(tape(inputs, row), target, (), draft)


def rows_of(batch, row: int) -> Verified:
    emitted, accepted = batch.emitted[row].tolist(), int(batch.accepted[row])
    assert emitted[accepted + 1 :] == [NOTHING] * (len(emitted) - accepted - 1)
    return Verified(tuple(emitted[: accepted + 1]), accepted)


def differing(inputs: Inputs, batch, *, exact: bool) -> list[int]:
    return [row for row in range(len(inputs.p)) if rows_of(batch, row) != by_row(inputs, row, exact=exact)]


def weights(vocabulary: int):
    """Multiples of 1/64 that sum to 1: differences of sorted cuts, so zeros, ties and point masses are common."""
    cuts = st.lists(st.integers(0, DENOMINATOR), min_size=vocabulary - 1, max_size=vocabulary - 1)
    return cuts.map(lambda found: np.diff([0, *sorted(found), DENOMINATOR]) / DENOMINATOR)


UNIFORMS = st.one_of(
    st.integers(0, DENOMINATOR - 1).map(lambda j: j / DENOMINATOR),
    st.integers(0, 1023).map(lambda j: j / 1024),
    st.sampled_from([0.0, 2**-53, 2**-24, 1 - 2**-24, ALMOST_ONE]),
)


@st.composite
def dyadic_inputs(draw) -> Inputs:
    """Batches whose every product and sum is exact in float64, with junk wherever a row has ended."""
    vocabulary, gamma, batch = draw(st.integers(1, 5)), draw(st.integers(0, 3)), draw(st.integers(1, 4))
    p = np.full((batch, gamma + 1, vocabulary), np.nan)
    q = np.full((batch, gamma, vocabulary), np.nan)
    tokens = np.full((batch, gamma), draw(st.sampled_from([NOTHING, 0, vocabulary, 10**6])))
    accepts, finals = np.zeros((batch, gamma)), np.zeros(batch)
    lengths = np.array([draw(st.integers(0, gamma)) for _ in range(batch)])
    for row, length in enumerate(lengths):
        finals[row] = draw(UNIFORMS)
        for i in range(length + 1):
            p[row, i] = draw(weights(vocabulary))
        for i in range(length):
            q[row, i] = p[row, i] if draw(st.integers(0, 5)) == 0 else draw(weights(vocabulary))
            tokens[row, i] = draw(st.integers(0, vocabulary - 1))
            accepts[row, i] = draw(UNIFORMS)
    return Inputs(p, q, tokens, lengths, accepts, finals)


def random_inputs(seed: int, vocabulary: int, gamma: int = 3, batch: int = 200) -> Inputs:
    """Peaked float64 pmfs, a draft near the target, drafts drawn from q, uniforms of 53 bits."""
    rng = np.random.default_rng([seed, vocabulary])
    p = rng.dirichlet(np.full(vocabulary, 0.3), size=(batch, gamma + 1))
    q = (p[:, :gamma] + rng.dirichlet(np.full(vocabulary, 0.3), size=(batch, gamma))) / 2
    tokens = (q.cumsum(axis=-1) < rng.random((batch, gamma, 1))).sum(axis=-1).clip(max=vocabulary - 1)
    lengths = rng.integers(gamma + 1, size=batch)
    return Inputs(p, q, tokens, lengths, rng.random((batch, gamma)), rng.random(batch))


# The twin


@given(dyadic_inputs())
def test_every_row_is_the_verifier_on_fractions_on_the_breakpoints_too(inputs):
    assert differing(inputs, verify_batched(*inputs), exact=True) == []


@pytest.mark.parametrize("vocabulary", [1, 2, 7, 300])
@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_the_verifier_on_floats(vocabulary, seed):
    inputs = random_inputs(seed, vocabulary)
    batch = verify_batched(*inputs)
    assert differing(inputs, batch, exact=False) == []
    assert vocabulary == 1 or set(batch.accepted.tolist()) == {0, 1, 2, 3}


def test_a_tape_wound_by_one_site_is_noticed():
    """The coupling is site by site: other uniforms of the same law give other rows."""
    inputs = random_inputs(0, 7)
    wound = inputs._replace(accept_uniforms=np.roll(inputs.accept_uniforms, 1, axis=1))
    shared = inputs._replace(final_uniforms=inputs.accept_uniforms[:, 0])
    for planted in (wound, shared):
        assert len(differing(inputs, verify_batched(*planted), exact=False)) > 10


def test_planted_comparison_that_is_not_strict_is_noticed_on_a_breakpoint():
    """At u = 0 and p(x) = 0 the draft must go; ``u q <= p`` keeps a token that the target never emits."""
    inputs = Inputs(
        p=np.array([[[0.0, 1.0], [1.0, 0.0]]]),
        q=np.array([[[0.5, 0.5]]]),
        draft_tokens=np.array([[0]]),
        lengths=np.array([1]),
        accept_uniforms=np.array([[0.0]]),
        final_uniforms=np.array([0.0]),
    )
    assert verify_batched(*inputs).emitted.tolist() == [[1, NOTHING]]
    assert differing(inputs, verify_batched(*inputs), exact=True) == []
    assert differing(inputs, Batch(np.array([[0, 0]]), np.array([1])), exact=True) == [0]


# Greedy


@given(dyadic_inputs())
def test_greedy_rows_are_greedy_match(inputs):
    p = np.nan_to_num(inputs.p)
    batch = greedy_batched(p, inputs.draft_tokens, inputs.lengths)
    for row in range(len(p)):
        drafted = draft_of(inputs, row)
        draft = chain(drafted, (None,) * len(drafted))
        expected = greedy_match(Tape(0), lambda tokens, row=row: p[row, len(tokens)], (), draft)
        assert rows_of(batch, row) == expected


@given(dyadic_inputs())
def test_greedy_is_the_chain_on_one_hot_rows_whatever_the_uniforms(inputs):
    p = np.nan_to_num(inputs.p)
    one_hot = np.eye(p.shape[2])[p.argmax(axis=-1)]
    sampled, greedy = verify_batched(one_hot, *inputs[1:]), greedy_batched(p, inputs.draft_tokens, inputs.lengths)
    assert sampled.emitted.tolist() == greedy.emitted.tolist()
    assert sampled.accepted.tolist() == greedy.accepted.tolist()


# The last draw


def last_draw(p, q, uniform, accept=ALMOST_ONE, draft=0):
    """The token emitted after one draft, which is rejected if it can be."""
    p, q = np.array([[p, p]]), np.array([[q]])
    batch = verify_batched(p, q, np.array([[draft]]), np.array([1]), np.array([[accept]]), np.array([uniform]))
    return batch.emitted[0, batch.accepted[0]], int(batch.accepted[0])


@pytest.mark.parametrize("uniform", [0.0, 5e-324, 0.5, ALMOST_ONE])
@pytest.mark.parametrize("vocabulary", [3, 1000])
def test_tokens_of_probability_zero_are_never_drawn(vocabulary, uniform):
    p = np.zeros(vocabulary)
    p[vocabulary // 2] = 1
    assert last_draw(p, np.full(vocabulary, 1 / vocabulary), uniform) == (vocabulary // 2, 0)


def first_beyond(weights: list[int], uniform: float) -> int:
    """The first token whose cumulative mass exceeds ``uniform`` of the total."""
    sums = list(accumulate(weights))
    return min(bisect_right(sums, math.floor(Fraction(uniform) * sums[-1])), sums.index(sums[-1]))


@pytest.mark.parametrize("vocabulary", [1, 2, 300, 1023, 1024, 1025, 1300])
@pytest.mark.parametrize("share", [0.02, 0.5, 1])
def test_a_row_is_cut_into_blocks_and_every_breakpoint_is_where_it_was(vocabulary, share):
    rng = np.random.default_rng([vocabulary, int(100 * share)])
    weights = [int(weight) for weight in rng.integers(1, 9, vocabulary) * (rng.random(vocabulary) < share)]
    weights[rng.integers(vocabulary)] += 1  # no row without mass
    total = 2 ** (sum(weights) - 1).bit_length()
    weights[rng.integers(vocabulary)] += total - sum(weights)  # a power of two: every breakpoint is a float64
    breakpoints = np.unique(np.cumsum(weights))[:-1][:: 1 + vocabulary // 300] / total
    uniforms = np.array([*breakpoints, 0.0, 5e-324, ALMOST_ONE])
    uniforms = np.concatenate([uniforms, np.nextafter(uniforms, 0), np.nextafter(uniforms[:-1], 1)])
    found = inverse_cdf_batched(np.tile(np.array(weights, dtype=float), (len(uniforms), 1)), uniforms)
    assert found.tolist() == [first_beyond(weights, uniform) for uniform in uniforms.tolist()]


def test_what_stands_in_the_residual_of_a_row_that_accepts_everything_does_not_matter():
    p = np.tile([[[0.25, 0.75]]], (3, 2, 1))
    q = np.array([[[0.5, 0.5]], [[np.nan, np.nan]], [[0.0, 0.0]]])
    batch = verify_batched(p, q, np.zeros((3, 1), int), np.array([1, 0, 0]), np.zeros((3, 1)), np.full(3, 0.9))
    assert batch.accepted.tolist() == [1, 0, 0]
    assert batch.emitted.tolist() == [[0, 1], [1, -1], [1, -1]]


def test_uniforms_near_one_take_the_last_positive_token():
    """Ten times 0.1 is not 1 in float64; a uniform beyond the last sum must not fall off the end, or on a zero."""
    row = np.array([[*[0.1] * 10, 0.0, 0.0]])
    assert inverse_cdf_batched(row, np.array([ALMOST_ONE])).tolist() == [9]
    assert inverse_cdf_batched(row, np.array([1.0])).tolist() == [9]


def test_an_empty_residual_falls_back_to_the_target():
    """Two kernels may round so that some p < q and no p > q: a rejection with nothing left."""
    p, q = np.array([0.25, 0.75]), np.array([0.5, 0.75])
    assert last_draw(p, q, uniform=0.1) == (0, 0)
    assert last_draw(p, q, uniform=0.9) == (1, 0)


def test_an_empty_residual_is_that_of_its_own_row():
    """Beside it one is rejected that has something left."""
    p, q = np.array([[[0.25, 0.75]] * 2, [[0.25, 0.75]] * 2]), np.array([[[0.5, 0.75]], [[0.75, 0.25]]])
    for order in ([0, 1], [1, 0]):
        batch = verify_batched(
            p[order], q[order], np.zeros((2, 1), int), np.ones(2, int), np.full((2, 1), 0.9), np.full(2, 0.1)
        )
        assert batch.accepted.tolist() == [0, 0]
        assert batch.emitted[:, 0].tolist() == [[0, 1][row] for row in order]


def test_a_row_without_mass_emits_no_token():
    assert inverse_cdf_batched(np.zeros((2, 3)), np.array([0.0, 0.5])).tolist() == [NOTHING, NOTHING]


@pytest.mark.parametrize("token", [-1, -3, 2, 10**9])
def test_a_draft_outside_the_vocabulary_is_rejected(token):
    assert last_draw([0.25, 0.75], [0.75, 0.25], uniform=0.0, accept=0.0, draft=token) == (1, 0)


def test_rare_tokens_keep_their_intervals_which_a_float32_sum_loses():
    """A head of mass 1/2, a tail of 150 000 tokens of mass 2**-26, the rest on one more; all exact in float32.

    Near 1/2 float32 steps by 2**-24, so adding a tail token one by one changes nothing: together 0.2 percent of the
    mass become impossible. In float64 every sum is exact and every tail token has its interval.
    """
    tail = 150_000
    weights = np.array([0.5, *[2.0**-26] * tail, 0.5 - tail * 2.0**-26], dtype=np.float32)
    assert not np.diff(np.cumsum(weights, dtype=np.float32)[: tail + 1]).any()
    tokens = np.arange(1, tail + 1, 1000)
    uniforms = 0.5 + (tokens - 0.5) * 2.0**-26
    drawn = inverse_cdf_batched(np.broadcast_to(weights, (len(tokens), len(weights))), uniforms)
    assert drawn.tolist() == tokens.tolist()
