"""A real vocabulary in torch: the law of every way to draw a token and to hand it on, in a few runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.large import at_large
from specverify.laws.draws import Tape
from specverify.laws.law_of_call import call_law
from specverify.subjects.open_rows import ending_of
from test_support.laws.at_large import kept_open

SIZE = 300
WEIGHTS = np.random.default_rng(0).exponential(size=SIZE)
WEIGHTS[[0, 7, 100, SIZE - 1]] = 0.0
PMF = WEIGHTS / WEIGHTS.sum()
P = torch.from_numpy(PMF)
CDF = P.cumsum(0)
ORDER = torch.arange(SIZE - 1, -1, -1)


def noise(like=P):
    return torch.empty_like(like).exponential_()


def uniforms():
    return torch.rand(SIZE, dtype=torch.float64)


def in_place():
    scores = P.clone()
    return scores.div_(noise()).argmax()


def into_an_array():
    clock = torch.empty(2, SIZE, dtype=torch.float64)
    for row in range(2):
        clock[row].exponential_(generator=torch.Generator().manual_seed(row))
    return (P / clock).argmax(-1)[1]


def by_blocks():
    scores = torch.cat([P / noise(), torch.full((84,), -1.0, dtype=torch.float64)]).view(-1, 128)
    best, places = scores.max(dim=-1)
    block = best.argmax()
    return block * 128 + places[block]


def smallest():
    return (noise() / P).min(dim=0).indices


def masked():
    return torch.where(P > 0, P.log() - noise().log(), -torch.inf).argmax()


WINNERS = {
    "multinomial": lambda: torch.multinomial(P, 1)[0],
    "of rows": lambda: torch.multinomial(torch.stack([P, P.flip(0)]), 1)[0, 0],
    "race": lambda: (P / noise()).argmax(dim=-1),
    "race in float32": lambda: (P.float() / noise(P.float())).argmax(-1),
    "race in place": in_place,
    "race of rows": lambda: (torch.stack([P.flip(0), P]) / noise(torch.empty(2, SIZE))).argmax(-1)[1],
    "noise by rows": into_an_array,
    "smallest": smallest,
    "best of blocks": by_blocks,
    "topk of one": lambda: (P / noise()).topk(1).indices[0],
    "gumbel": lambda: (P.log() - torch.log(-torch.log(uniforms()))).argmax(-1),
    "gumbel with a guard": lambda: (P.log() - torch.log(-torch.log(uniforms() + 1e-20))).argmax(-1),
    "exponentiated": lambda: torch.exp(P.log() - noise().log()).argmax(),
    "masked": masked,
    "power": lambda: (uniforms() ** (1 / P.clamp(min=1e-300))).argmax(-1),
    "searchsorted": lambda: torch.searchsorted(CDF, torch.rand(1, dtype=torch.float64), right=True)[0],
    "bucketize": lambda: torch.bucketize(torch.rand((), dtype=torch.float64) * CDF[-1], CDF, right=True),
    "first above": lambda: (torch.rand(1, dtype=torch.float64) < CDF).int().argmax(),
    "count below": lambda: (torch.rand((), dtype=torch.float64) >= CDF).sum(-1),
    "count of few": lambda: torch.le(CDF, torch.rand((), dtype=torch.float64)).sum(0),
    "not above": lambda: (~(torch.rand((), dtype=torch.float64) < CDF)).to(torch.int64).sum(-1),
    "distribution": lambda: torch.distributions.Categorical(P).sample(),
}


@pytest.mark.parametrize("draw", WINNERS)
def test_a_token_has_its_law_and_is_never_looked_at(draw):
    found, runs = kept_open(WINNERS[draw], SIZE)
    assert np.allclose(found, PMF, atol=1e-7 if "float32" in draw else 1e-12)
    assert runs <= 3  # as many as there are blocks


@pytest.mark.parametrize("draw", ["multinomial", "race", "searchsorted"])
@pytest.mark.parametrize(
    "look", [int, lambda token: token.item(), lambda token: token.tolist(), lambda t: int(t.numpy())]
)
def test_a_token_that_is_looked_at_has_the_same_law_in_some_tens_of_runs(draw, look):
    found, runs = kept_open(lambda: look(WINNERS[draw]()), SIZE)
    assert np.allclose(found, PMF, atol=1e-12)
    assert 10 < runs < 60


def test_another_law_would_be_seen():
    assert not np.allclose(kept_open(lambda: torch.multinomial(P.flip(0), 1)[0], SIZE)[0], PMF, atol=1e-12)


# What is done to a token that nobody has looked at


def token():
    return torch.multinomial(P, 1)


MAPS = {
    "shifted": (lambda: token() - 5 + 5, np.arange(SIZE)),
    "in another type": (lambda: token().to(torch.int16), np.arange(SIZE)),
    "looked up": (lambda: ORDER[token()], np.arange(SIZE)[::-1]),
    "gathered": (lambda: ORDER.gather(-1, token()), np.arange(SIZE)[::-1]),
    "selected": (lambda: ORDER.index_select(0, token()), np.arange(SIZE)[::-1]),
    "in blocks": (lambda: token() // 16 * 16 + token_again() * 0, None),
    "clamped": (lambda: token().clamp(max=99), np.minimum(np.arange(SIZE), 99)),
    "stacked": (lambda: torch.stack([token()[0]]), np.arange(SIZE)),
    "in a buffer": (lambda: put(token()), np.arange(SIZE)),
    "copied into one": (lambda: torch.zeros(1, dtype=torch.int64).copy_(token()), np.arange(SIZE)),
}


def token_again():
    return torch.zeros(1, dtype=torch.int64)


def put(found):
    buffer = torch.full((2, 3), -1)
    buffer[0, 1] = found
    buffer[1, :2] = torch.tensor([4, 5])
    assert buffer[1].tolist() == [4, 5, -1]
    return buffer[0, 1:]


def law_of(row, drafts=2):
    def program(draws):
        with at_large(), answered_everywhere(draws):
            return ending_of(row(), drafts)

    return call_law(program, SIZE)


@pytest.mark.parametrize("how", MAPS)
def test_a_number_made_of_a_token_is_known_for_every_outcome(how):
    make, values = MAPS[how]
    values = np.arange(SIZE) // 16 * 16 if values is None else values
    law = law_of(make)
    assert law.runs == 1
    assert np.allclose(law.behind[()].masses, np.bincount(values, PMF, minlength=SIZE), atol=1e-12)


def test_a_type_that_does_not_hold_the_token_shows():
    law = law_of(lambda: (token() + 40_000).to(torch.int16))
    assert law.behind[()].masses.sum() == 0
    assert sorted(law.behind[()].outside) == [k + 40_000 - 2**16 for k in np.flatnonzero(PMF)]


def test_numbers_of_two_draws_are_not_numbers_of_one():
    """One draw may meet itself; another draw has another outcome, so both are forced and the law is open."""
    total = law_of(lambda: (token() + token()) // 2)
    assert "several draws" in total.behind[()].unread
    with_coin = law_of(lambda: (token() + (torch.rand(1) < 0.25)) % SIZE).behind[()]
    assert np.all(with_coin.masses <= 0.75 * PMF + 0.25 * np.roll(PMF, 1) + 1e-12)
    smaller = law_of(lambda: (token() < token()).to(torch.int64))
    assert smaller.behind[()].unread

    def beside_itself():
        drawn = token()
        return (drawn < drawn + 1).long()

    assert law_of(beside_itself).behind[()].masses[1] == 1


def test_a_question_to_a_token_is_a_coin():
    """As where a token of the target is compared with the draft: one is kept, and the others stay together."""

    def row():
        found = token()
        return torch.cat([torch.tensor([5]), torch.multinomial(P, 1)]) if found == 5 else found

    law = law_of(row)
    assert law.runs == 2
    assert np.isclose(law.behind[5,].weight, PMF[5])
    assert np.allclose(law.behind[5,].masses, PMF[5] * PMF)
    assert np.allclose(law.behind[()].masses, np.where(np.arange(SIZE) == 5, 0, PMF))


def test_several_questions_narrow_it():
    def row():
        found = token()
        assert bool(found < 200) == bool(found <= 199)
        return torch.tensor([1]) if found < 200 and found >= 100 else found

    law = law_of(row)
    low = PMF[100:200].sum()
    assert np.isclose(law.behind[()].masses[1], low + PMF[1])
    assert np.isclose(law.behind[()].masses[250], PMF[250])
    assert np.isclose(law.behind[()].masses[150], 0)


def test_a_choice_is_made_when_somebody_looks():
    """Replacements of all positions and the bonus are drawn, one of them is emitted, and the others take no run."""

    def row():
        replaced, bonus = (P.flip(0) / noise()).argmax(keepdim=True), torch.multinomial(P, 1)
        kept = torch.rand(1) < 0.25
        return torch.cat([torch.where(kept, 5, replaced), torch.where(kept, bonus, -1)])

    law = law_of(row)
    assert law.runs == 2
    assert np.allclose(law.behind[()].masses, 0.75 * PMF[::-1])
    assert np.allclose(law.behind[5,].masses, 0.25 * PMF)


def test_one_noise_may_stand_for_all_positions_if_one_is_emitted():
    def row():
        replaced = (torch.stack([P, P.flip(0)]) / noise()).argmax(-1)
        return replaced[1:] if torch.rand(()) < 0.25 else replaced[:1]

    assert np.allclose(law_of(row).behind[()].masses, 0.25 * PMF[::-1] + 0.75 * PMF)


# What is refused


def refused(program, match):
    with pytest.raises(NeedsValue, match=match), at_large(), answered_everywhere(Tape(0)):
        program()


def test_noise_that_decides_twice_is_refused():
    def twice():
        clock = noise()
        return int((P / clock).argmax()), int((P.flip(0) / clock).argmax())

    refused(twice, "second race")


def test_a_number_that_is_looked_up_twice_is_refused():
    def twice():
        u = torch.rand(1, dtype=torch.float64)
        return int(torch.searchsorted(CDF, u)), int(torch.searchsorted(CDF, u * 0.5))

    refused(twice, "after a race, or after another lookup")


def test_a_coin_that_is_looked_up_again_has_the_law_that_it_has():
    """Wrong of a verifier, and it shows: the number that rejected a draft is a large one."""

    def row():
        u = torch.rand(1, dtype=torch.float64)
        return torch.tensor([5]) if u < 0.5 else torch.searchsorted(CDF, u)

    found = law_of(row).behind[()].masses
    upper = np.diff(np.maximum(np.append(0.0, CDF.numpy()), 0.5))
    assert np.allclose(found, upper + 0.5 * (np.arange(SIZE) == 5), atol=1e-12)


def test_the_state_of_a_generator_is_one_noise():
    def seeded(size):
        torch.manual_seed(3)
        return torch.empty(size).exponential_()

    refused(lambda: (int(seeded(SIZE).argmin()), int(seeded(SIZE).argmin())), "second race")
    refused(lambda: (int(seeded(SIZE).argmin()), int(seeded(SIZE + 1).argmin())), "draws? (twice )?from one state")


@pytest.mark.parametrize(
    "program",
    [
        lambda u: u.sum(),
        lambda u: u.numpy().sum(),
        lambda u: bool(u.softmax(0)[0] < 0.5),
        lambda u: bool(u.sort()[0][3] < 0.5),
    ],
)
def test_what_needs_the_numbers_is_refused(program):
    refused(lambda: program(torch.rand(SIZE)), "random number|order of|softmax")


def test_bounds_that_are_not_sorted_are_no_lookup():
    refused(lambda: torch.searchsorted(P, torch.rand(1, dtype=torch.float64)), "not sorted")


def test_outside_of_it_nothing_is_kept_open():
    with answered_everywhere(Tape(0)):
        assert type(torch.multinomial(P, 1).elements[0]).__name__ == "Categorical"
        assert isinstance(torch.rand(SIZE).content, np.ndarray)


@pytest.mark.parametrize("draw", [lambda: noise().to(torch.bfloat16), lambda: noise(torch.empty(SIZE).half())])
def test_noise_of_16_bits_is_refused_unless_the_rows_have_no_more(draw):
    """The first of equal ones wins: a race of rows in float32 has another law then."""

    def program(draws, *, short):
        with at_large(short=short), answered_everywhere(draws):
            return (P / draw().double()).argmax()

    with pytest.raises(NeedsValue, match="are often equal: draw them in float32"):
        program(Tape(0), short=False)
    program(Tape(0), short=True)
