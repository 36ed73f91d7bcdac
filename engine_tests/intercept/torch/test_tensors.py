"""A draw that nobody looks at takes no run of its own, wherever it went: through a model, its cache, and arithmetic."""

from __future__ import annotations

import math

import pytest
import torch

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.symbolic.deferred import Categorical, Chosen
from specverify.intercept.torch.passes import Memory, Passes, remembered
from specverify.intercept.torch.tensors import MOST_CARRIED, SymbolicTensor, for_each_outcome, merged_outcomes
from test_support.intercept import torch_laws
from test_support.intercept.torch_laws import close

P = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
ROWS = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [0.125, 0.0, 0.875]], dtype=torch.float64)
NEVER = 9


class Output(dict):
    """What a model returns, as the library's own outputs are: a dict with attributes."""

    __getattr__ = dict.__getitem__


class Cache:
    """The rows of what was fed, ``[tokens, 3]``."""

    def __init__(self):
        """Nothing has been fed."""
        self.rows = torch.zeros(0, 3, dtype=torch.float64)
        self.calls = 0


class Model:
    """Each row of the logits is the table's row of its token; the cache keeps the rows."""

    config = None

    def forward(self, input_ids, past_key_values=None, refused=NEVER):
        """Return the rows of the tokens, of shape ``[1, tokens]``."""
        if (input_ids == refused).any():
            raise ValueError("a token that this model refuses")
        rows = ROWS[input_ids[0]]
        if past_key_values is not None:
            past_key_values.rows = torch.cat([past_key_values.rows, rows])
            past_key_values.calls += 1
        return Output(logits=rows, past_key_values=past_key_values)


def law_of(function):
    """Return the exact law of ``function(model)``, whose forward passes are remembered."""
    model = Model()
    with remembered(model, Memory({}, [0]), Passes("past_key_values")):
        return torch_laws.law_of(lambda: function(model))


def fed(model, *, count=2, **options):
    """Feed token 1 and behind it tokens that nobody has looked at."""
    ids = torch.cat([torch.tensor([1]), torch.multinomial(P, count - 1, replacement=True)])[None]
    return model.forward(input_ids=ids, **options)


def test_a_row_before_the_draw_does_not_depend_on_it():
    law = law_of(lambda model: fed(model).logits[0] * 4)
    assert (law.runs, set(law.probabilities)) == (1, {(0.0, 1.0, 3.0)})


def test_the_row_of_the_draw_has_its_law():
    law = law_of(lambda model: fed(model).logits[1])
    assert law.runs == 3
    assert close(law, {tuple(row): mass for row, mass in zip(ROWS.tolist(), P.tolist(), strict=True)})


def test_a_remembered_pass_has_the_draw_that_is_fed_to_it():
    law = law_of(lambda model: torch.cat([fed(model).logits[1], fed(model).logits[1]]))
    drawn = [(tuple(row), mass) for row, mass in zip(ROWS.tolist(), P.tolist(), strict=True)]
    assert close(law, {(*one, *other): p * q for one, p in drawn for other, q in drawn})


def test_arithmetic_looks_at_nothing_and_is_right_for_each_outcome():
    def computed(row):
        row = (row.softmax(-1).log() * 2 + 1 - row).exp().float().clamp(max=2.0)
        return torch.where(torch.tensor([True, False, True]), row, -row) / row.gather(0, torch.tensor([2, 0, 0]))

    def program(model, used):
        found = computed(fed(model).logits[1])
        return found if used else torch.zeros(1)

    assert law_of(lambda model: program(model, used=False)).runs == 1
    expected = {tuple(computed(row).tolist()): mass for row, mass in zip(ROWS, P.tolist(), strict=True)}
    assert close(law_of(lambda model: program(model, used=True)), expected)


def test_a_coin_before_the_draw_is_thrown_without_it():
    """Keep the first row if its coin says so, else look at the second: one run there and three here."""

    def program(model):
        rows = fed(model).logits
        kept = torch.rand(2, dtype=torch.float64) < rows[:, 1]
        return rows[0] if kept[0] else rows[1]

    law = law_of(program)
    assert law.runs == 1 + 3
    assert math.isclose(law.probabilities[(0.0, 0.25, 0.75)], 0.25 + 0.75 * 0.25)


def test_a_place_that_is_cut_off_the_cache_is_forgotten():
    def program(model, kept=1):
        cache = Cache()
        fed(model, past_key_values=cache)
        cache.rows = cache.rows[:kept]
        assert cache.calls == 1
        model.forward(input_ids=torch.tensor([[0]]), past_key_values=cache)
        assert cache.calls == 2
        return cache.rows.sum(0)

    assert law_of(program).runs == 1
    stale = law_of(lambda model: program(model, kept=2))
    assert stale.runs == len(stale.probabilities) == 3


def test_an_outcome_that_the_model_refuses_is_refused_in_its_own_run():
    def program(model):
        try:
            return fed(model, refused=2).logits[0] * 4
        except ValueError:
            return (NEVER,)

    law = law_of(program)
    assert close(law, {(NEVER,): 0.5, (0.0, 1.0, 3.0): 0.5})
    assert law.runs == 3


@pytest.mark.parametrize("first", ["cache", "none"])
def test_two_draws_are_not_followed_together(first):
    law = law_of(lambda model: fed(model, count=3, past_key_values=Cache() if first == "cache" else None).logits[0])
    assert law.runs == 9


def test_a_lone_token_is_looked_at():
    """Nothing comes out of the pass that would not depend on it."""
    law = law_of(lambda model: model.forward(input_ids=torch.multinomial(P, 1)[None]).logits[0, 0])
    assert law.runs == 3


# Merging


def draw(pmf):
    """Return a draw that must not be looked at."""

    def never(pmf, site):
        raise AssertionError("looked at")

    asked = type("Asked", (), {"categorical": staticmethod(never)})()
    return Categorical(asked, pmf, ("test",))


def test_numbers_agree_only_bit_for_bit():
    found = {0: torch.tensor([math.nan, 0.0, 1.0]), 1: torch.tensor([math.nan, -0.0, 1.0])}
    made = merged_outcomes(draw(P.numpy()), found)
    assert isinstance(made, SymbolicTensor)
    nan, zero, one = made.elements
    assert math.isnan(nan)
    assert isinstance(zero, Chosen)
    assert one == 1.0
    assert not isinstance(merged_outcomes(draw(P.numpy()), {0: found[0], 1: found[0].clone()}), SymbolicTensor)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (torch.zeros(2), torch.zeros(3)),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2, dtype=torch.complex128), torch.ones(2, dtype=torch.complex128)),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        (1, 2),
        (1, "1"),
    ],
)
def test_outcomes_that_differ_in_more_than_numbers_are_not_merged(first, second):
    with pytest.raises(RuleDeclined):
        merged_outcomes(draw(P.numpy()), {0: first, 1: second})


def test_a_draw_of_many_outcomes_is_looked_at():
    many = torch.full((MOST_CARRIED + 1,), 1 / (MOST_CARRIED + 1), dtype=torch.float64)

    def program(model):
        ids = torch.cat([torch.tensor([1]), torch.multinomial(many, 1) % 3])[None]
        return model.forward(input_ids=ids).logits[0]

    assert law_of(program).runs == MOST_CARRIED + 1


def test_impossible_outcomes_are_not_computed():
    seen = []
    for_each_outcome(draw(torch.tensor([0.5, 0.0, 0.5]).numpy()), lambda: seen.append(0), (), {})
    assert len(seen) == 2


# Views


def test_what_is_written_to_a_view_is_written_to_the_tokens():
    def program(_):
        tokens = torch.multinomial(P, 3, replacement=True)
        view = tokens[:2]
        tokens[1:].fill_(7)
        view[0] += 3
        return tokens

    assert close(law_of(program), {(3 + token, 7, 7): mass for token, mass in enumerate(P.tolist())})


def test_a_view_that_was_made_before_sees_what_is_written():
    def program(_):
        tokens = torch.multinomial(P, 2, replacement=True)
        parts, other, again = tokens.unbind(), tokens.reshape(2, 1), tokens.detach()
        tokens.zero_()
        return torch.cat([torch.stack(parts), other[:, 0], again, tokens])

    assert close(law_of(program), {(0,) * 8: 1.0})


def test_reading_a_view_looks_at_nothing_else():
    law = law_of(lambda _: (int(torch.multinomial(P, 2, replacement=True)[1:].reshape(-1)[0]),))
    assert law.runs == 3


# Numbers that torch computed, compared and counted as torch does it


def test_numbers_of_a_model_are_compared_and_added_as_torch_does_it():
    """In float32: 0.1 equals the number 0.1, though its digits do not, and sums are rounded after every term."""
    tenth = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1], [0.9, 0.05, 0.05]])

    def computed(row):
        return torch.cat([row == 0.1, row <= 0.3, (row.cumsum(-1) > 0.3), row.argmax(-1)[None] == 2, (row * 9).long()])

    def program(_):
        return computed(tenth[torch.multinomial(P, 1)][0])

    expected = {}
    for row, mass in zip(tenth, P.tolist(), strict=True):
        outcome = tuple(computed(row).tolist())
        expected[outcome] = expected.get(outcome, 0.0) + mass
    assert close(law_of(program), expected)
    assert len(expected) == 3


def test_a_cast_is_a_cast_before_anybody_looks():
    def program(_):
        tokens = torch.multinomial(P, 1)
        heads = torch.bernoulli(torch.tensor([0.5]))
        return torch.cat([tokens.bool() == True, tokens.int(), heads.bool(), heads.long(), (tokens + heads).bool()])  # noqa: E712

    masses = {(token, head): mass / 2 for token, mass in enumerate(P.tolist()) for head in (0, 1)}
    assert close(
        law_of(program),
        {(token > 0, token, head, head, token + head > 0): mass for (token, head), mass in masses.items()},
    )
