"""Laws of ``distributions`` in torch: their values, what they consume, and a right verifier beside its wrong twin."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.laws.draws import Tape
from specverify.laws.enumeration import program_law

P, Q = np.array([[0.2, 0.3, 0.5], [0.25, 0.25, 0.5]]), np.array([[0.5, 0.3, 0.2]])


def law(program):
    def run(draws):
        with answered_everywhere(draws):
            return program()

    return program_law(run).probabilities


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_number_of_trials_is_geometric(dtype):
    found = law(lambda: int(torch.bucketize(torch.empty(2, dtype=dtype).geometric_(0.25)[1], torch.tensor([1.5, 2.5]))))
    assert found == pytest.approx({0: 0.25, 1: 0.75 * 0.25, 2: 0.75**2})


def test_it_is_the_law_that_torch_draws_by_itself():
    torch.manual_seed(5)
    sample = torch.empty(200_000).geometric_(0.3)
    for most in (1, 2, 4):
        mass = law(lambda most=most: bool(torch.empty(()).geometric_(0.3) <= most))[True]
        assert mass == pytest.approx(1 - 0.7**most)
        assert abs(float((sample <= most).float().mean()) - mass) < 0.006  # five standard deviations


def test_one_state_gives_one_number_and_the_generator_moves_on_as_it_does():
    def program():
        generator = torch.Generator().manual_seed(3)
        first = torch.empty(()).geometric_(0.5, generator=generator).item() == 1
        after = torch.rand((), generator=generator)
        again = torch.Generator().manual_seed(3)
        torch.empty(()).geometric_(0.5, generator=again)
        return first, bool(after < 0.5) == bool(torch.rand((), generator=again) < 0.5)

    assert law(program) == pytest.approx({(True, True): 0.5, (False, True): 0.5})


def test_another_number_of_trials_of_one_state_is_another_law():
    def program():
        first = torch.empty(()).geometric_(0.5, generator=torch.Generator().manual_seed(3)).item() == 1
        return first, torch.empty(()).geometric_(0.25, generator=torch.Generator().manual_seed(3)).item() == 1

    with pytest.raises(NeedsValue, match="geometric_"):
        law(program)


@pytest.mark.parametrize(("forced", "least"), [(0.0, 1), (1.0, 50)])
def test_at_the_ends_it_has_values(forced, least):
    with answered_everywhere(Tape(0), forced):
        found = torch.empty(2, dtype=torch.int64).geometric_(0.5)
    assert found.dtype is torch.int64
    assert (found >= least).all()


def test_wrong_parameters_fail_as_they_do_in_torch():
    with pytest.raises(RuntimeError, match="expects p to be in"):
        law(lambda: torch.empty(()).geometric_(1.5))


def test_numbers_of_sixteen_bits_are_refused():
    with pytest.raises(NeedsValue, match=r"geometric_ .* float32"):
        law(lambda: torch.empty((), dtype=torch.bfloat16).geometric_(0.5) == 1)


def verifier(accepts):
    def verify(p, q, draft_tokens):
        new = []
        for place, token in enumerate(draft_tokens.tolist()):
            ratio = float(p[place, token] / q[place, token])
            if ratio < 1 and not accepts(ratio):
                left = torch.clamp(p[place] - q[place], min=0)
                return [*new, int(torch.multinomial(left, 1))]
            new.append(token)
        return [*new, int(torch.multinomial(p[len(new)], 1))]

    return verify


def law_of_first_token(accepts):
    verify = verifier(accepts)

    def program(draws):
        token = draws.categorical(Q[0], ("draft",))
        with answered_everywhere(draws):
            return verify(torch.from_numpy(P), torch.from_numpy(Q), torch.tensor([token]))[0]

    return [program_law(program).probabilities[token] for token in range(3)]


def test_a_coin_of_a_geometric_number_is_right_and_its_twin_is_not():
    right = law_of_first_token(lambda ratio: torch.empty(()).geometric_(ratio).item() == 1)
    wrong = law_of_first_token(lambda ratio: torch.empty(()).geometric_(ratio).item() <= 2)
    assert right == pytest.approx(P[0].tolist(), abs=1e-7)
    assert max(map(abs, P[0] - wrong)) > 0.1
