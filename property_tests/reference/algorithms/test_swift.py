"""SWIFT: candidates counted by the first of them, layers chosen by what was written. Against a plain loop."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reference import Task
from reference.algorithms import swift
from reference.algorithms.swift import RELEASED, Search, candidates, layer_drafter
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import table_pair
from test_support.laws.rational import P, Q, always, law_of

F = Fraction
FEW = ((F(1, 2), 1), (-1, 3))


def swift_loop(task, depth, stop, widths):
    """One round with q as it is: the path of first tokens, siblings where they were unlikely, EAGLE's rejection."""

    def without(row, tokens):
        left = [F(0) if v in tokens else mass for v, mass in enumerate(row)]
        return [mass / sum(left) for mass in left] if sum(left) else None

    def program(draws):
        text, levels = (0,), []
        while len(levels) < min(depth, task.horizon - 1):
            q = task.draft(text).tolist()
            found = [draws.categorical(task.draft(text), ("first", len(levels)))]
            chance = q[found[0]]
            count = next(number for bound, number in widths if chance > bound)
            while len(found) < count and without(q, found):
                row = task.draft(text) * 0 + without(q, found)
                found.append(draws.categorical(row, ("more", len(levels), len(found))))
            levels.append((q, found))
            text += (found[0],)
            if chance < stop:
                break
        kept = ()
        for level, (q, found) in enumerate(levels):
            r = task.target((0, *kept)).tolist()
            for k, x in enumerate(found):
                row = without(q, found[:k])
                accept = min(F(1), r[x] / row[x])
                if draws.categorical(task.draft((0,))[:2] * 0 + [accept, 1 - accept], ("coin", level, k)) == 0:
                    kept += (x,)
                    break
                left = [max(a - b, F(0)) for a, b in zip(r, row, strict=True)]
                r = [mass / sum(left) for mass in left] if sum(left) else r
            else:
                row = task.target((0,)) * 0 + r
                return (*kept, draws.categorical(row, ("residual",))), level
            if kept[-1] != found[0]:
                break
        return (*kept, draws.categorical(task.target((0, *kept)), ("bonus",))), len(kept)

    return program


@pytest.mark.parametrize(("shape", "depth", "stop"), [("generic", 2, F(1, 3)), ("zeros", 1, 0), ("peaked", 2, 0)])
def test_a_round_of_swift_is_its_loop(shape, depth, stop):
    task = Task(*table_pair(shape, 3, 0), horizon=depth + 1)
    decoder = swift.build(task, depth, stop, FEW, sets=(0,), layers=1)

    def program(draws):
        done = decoder.step(draws, decoder.init((0,)))[1]
        return done.tokens, done.accepted

    assert law_of(program) == law_of(swift_loop(task, depth, stop, FEW))


def test_layers_that_change_with_the_text_leave_the_law_alone():
    """Sets that differ much, tried after every token: p itself, and q as it is."""
    task = Task(*table_pair("generic", 2, 0), horizon=3)
    law = decoder_law(swift.build(task, 1, 0, FEW, sets=(0, 4), layers=4, window=1), (0,)).probabilities
    assert law == target_law(task, (0,))


def test_the_best_set_on_the_first_tokens_stays():
    """P's mode is 2 and Q's is 0: after two twos the set of P is found, and nothing beats it."""
    drafter = layer_drafter([always(Q), always(P)], 1, 0, FEW, window=2)
    state = drafter.init((1,))
    assert drafter.observe(state, (1, 2), 1, always(P)) == state
    found = drafter.observe(state, (1, 2, 2), 2, always(P))
    assert found == Search(begin=1, chosen=1, tried=1, best=2)
    assert drafter.observe(found, (1, 2, 2, 0), 3, always(P)) == found._replace(tried=0)


def test_candidates_are_counted_by_bounds():
    row = [F(96, 100), F(3, 100), F(1, 100)]
    q = P * 0 + row
    assert [candidates(RELEASED, q, token) for token in range(3)] == [1, 10, 10]
    assert candidates(RELEASED, P, 2) == 10
    with pytest.raises(ValueError, match="expected a last bound below every probability"):
        candidates(((F(1, 2), 1),), P, 0)


def test_fewer_candidates_of_a_sure_first_token_are_what_is_drawn():
    task = Task(always(P), always(Q), horizon=2)
    decoder = swift.build(task, 1, 0, ((F(1, 2), 1), (-1, 3)), sets=(0,), layers=1)
    sizes = law_of(lambda draws: len(decoder.propose(draws, decoder.init((0,))).tokens))
    assert sizes == {1: F(3, 5), 3: F(2, 5)}
