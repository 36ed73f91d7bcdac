"""Masked places of a block: conditionals of the joint law, in every order, and what one pass for two places does."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest

from reference import ALGORITHMS, Task
from reference.any_order import conditional, filled, masked_model, masked_places
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.laws.rational import law_of

F = Fraction
ROWS = {row.name: row for row in ALGORITHMS}
MODEL = table_pair("generic", 2, 3)[0]
JOINT = target_law(Task(MODEL, horizon=3), (0,))


def given(block, place):
    agreeing = {
        text: mass for text, mass in JOINT.items() if all(a in {None, b} for a, b in zip(block, text, strict=True))
    }
    total = sum(agreeing.values())
    return [sum(mass for text, mass in agreeing.items() if text[place] == token) / total for token in range(2)]


@pytest.mark.parametrize("block", [block for block in product((None, 0, 1), repeat=3) if None in block])
def test_a_place_has_its_law_given_the_others(block):
    for place in masked_places(block):
        assert conditional(MODEL, (0,), block, place).tolist() == given(block, place)


@pytest.mark.parametrize("order", sorted(permutations(range(3))))
def test_places_in_any_order_multiply_to_the_joint_law(order):
    model = masked_model(MODEL)

    def program(draws):
        block = (None, None, None)
        for place in order:
            block = filled(block, place, draws.categorical(model((0,), block, place), ("fill", place)))
        return block

    assert law_of(program) == JOINT


def test_two_places_of_one_pass_are_independent_and_the_text_is_not():
    """The law of two places by one pass is off by the largest of four masses, each off by as much."""
    joint = target_law(Task(MODEL, horizon=2), (0,))
    rows = [conditional(MODEL, (0,), (None, None), place) for place in range(2)]
    off = {text: rows[0][text[0]] * rows[1][text[1]] - mass for text, mass in joint.items()}
    assert len(set(map(abs, off.values()))) == 1
    assert sum(map(abs, off.values())) / 2 > F(1, 100)


def test_a_place_that_is_filled_and_one_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match=r"place 0 of .* is filled, expected a masked place"):
        conditional(MODEL, (0,), (1, None), 0)
    never = table_pair("point_target", 2, 0)[0]
    blocked = next(token for token, mass in enumerate(never((0,)).tolist()) if mass == 0)
    with pytest.raises(ValueError, match="has probability 0 after"):
        conditional(never, (0,), (blocked, None, 0), 1)


def mean_calls_saved(name, **options):
    decoder, task = ROWS[name].build, Task(table_pair("peaked", 3, 1)[0], horizon=3)
    law = law_of(lambda draws: (built := decoder(task, **options)).step(draws, built.init((0,)))[1].accepted)
    return sum(saved * mass for saved, mass in law.items())


def test_a_deeper_graph_saves_as_many_passes_or_more():
    saved = [mean_calls_saved("spiffy", block=3, depth=depth, width=3) for depth in (0, 1, 2)]
    assert saved[0] == 0
    assert 0 < saved[1] <= saved[2] <= 1


@pytest.mark.parametrize(("name", "options"), [("spiffy", {"block": 0}), ("self-speculative-diffusion", {"window": 0})])
def test_a_block_without_places_is_refused(name, options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} is 0"):
        ROWS[name].build(Task(MODEL), **options)
