"""If an unread index selects among unread outcomes, the index is drawn, and only the selected outcomes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law

P = torch.tensor([[0.25, 0.25, 0.5], [0.125, 0.125, 0.75], [0.5, 0.25, 0.25]], dtype=torch.float64)
ACCEPTED = (0.5, 0.25, 0.25)


def enumeration_of(program):
    def answered(draws):
        with answered_everywhere(draws):
            return program()

    return program_law(answered)


def drawn_in_one_call():
    return torch.multinomial(P, 1).squeeze(-1)


def won():
    return (P / torch.empty_like(P).exponential_()).argmax(-1)


def accepted():
    return (torch.rand(2, dtype=torch.float64) < 0.5).long().cumprod(0).sum().view(1)


SELECTIONS = {
    "gather": lambda tokens, at: tokens.gather(0, at),
    "index": lambda tokens, at: tokens[at],
    "index_select": lambda tokens, at: tokens.index_select(0, at),
    "take": torch.take,
    "take_along_dim": lambda tokens, at: torch.take_along_dim(tokens, at, 0),
    "of a batch": lambda tokens, at: tokens[None].gather(1, at[None])[0],
    "scatter": lambda tokens, at: torch.zeros(3, dtype=torch.long).scatter(0, at, tokens.gather(0, at))[at],
}


@pytest.mark.parametrize("tokens", [drawn_in_one_call, won])
@pytest.mark.parametrize("name", SELECTIONS)
def test_only_the_selected_tokens_are_drawn(name, tokens):
    """Three outcomes of the index times three tokens are nine runs; all tokens together would be 81."""
    law = enumeration_of(lambda: int(SELECTIONS[name](tokens(), accepted())))
    assert law.runs == 9
    expected = {token: sum(mass * float(P[at, token]) for at, mass in enumerate(ACCEPTED)) for token in range(3)}
    assert dict(law.probabilities) == pytest.approx(expected)


def winner_by_blocks(weights, padded):
    scores = torch.tensor(weights, dtype=torch.float64) / torch.empty(len(weights), dtype=torch.float64).exponential_()
    blocks = torch.nn.functional.pad(scores, (0, 2), value=padded).view(-1, 2)
    highest, places = blocks.max(-1)
    block = highest.argmax(-1)
    return int(places.gather(-1, block.view(1)) + 2 * block)


@pytest.mark.parametrize("weights", [[0.125, 0.25, 0.5, 0.125], [0.5, 0.0, 0.0, 0.5], [0.25, 0.0, 0.75, 0.0]])
@pytest.mark.parametrize("padded", [-1.0, float("-inf")])
def test_the_argmax_of_the_maxima_of_blocks_is_one_race(weights, padded):
    """The index of the best block is drawn before the indices within blocks: one run for each token."""
    law = enumeration_of(lambda: winner_by_blocks(weights, padded))
    assert dict(law.probabilities) == pytest.approx({at: mass for at, mass in enumerate(weights) if mass})
    assert law.runs == sum(mass > 0 for mass in weights)


@pytest.mark.parametrize("place", range(4))
def test_the_outcome_of_a_race_by_blocks_is_the_index_in_the_row(place):
    with answered_everywhere(SimpleNamespace(categorical=lambda pmf, site: place)):
        assert winner_by_blocks([0.125, 0.25, 0.5, 0.125], -1.0) == place


def test_tokens_of_one_draw_select_each_other_for_each_of_its_outcomes():
    def program():
        token = torch.multinomial(P[0], 1)
        return int(torch.cat([token + 1, token, 2 * token]).gather(0, token))

    assert dict(enumeration_of(program).probabilities) == pytest.approx({1: 0.5, 4: 0.5})
