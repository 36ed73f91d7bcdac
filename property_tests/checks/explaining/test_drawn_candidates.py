"""Two candidates for one position, drawn without replacement: the wrong q of the second one is named."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from specverify.checks.explaining.drawn_candidates import (
    has_several_drafters,
    rule_of_candidates,
    rule_of_drafters,
)
from specverify.checks.explaining.round_rules import excess, ratio, scaled
from specverify.subjects.subject import Trace
from specverify.testing import SpeculationRefuted, check_decoder
from test_support.checks.recorded_rounds import coin, model, token

P, Q = (0.02, 0.38, 0.5, 0.1), (0.04, 0.39, 0.49, 0.08)


def without(row, gone):
    return scaled([0.0 if other == gone else mass for other, mass in enumerate(row)])


def paths_of(q_of_second):
    """Return all paths of one round: the draws and the emitted token."""
    for first in range(4):
        for second in set(range(4)) - {first}:
            drawn = [token(first, *Q), token(second, *without(Q, first))]
            bound = ratio(P[first], Q[first])
            if bound == 1:
                yield drawn, (first,)
                continue
            yield [*drawn, coin(0.0, bound)], (first,)
            drawn.append(coin(bound, 1.0))
            row, q = excess(P, Q), q_of_second(first)
            bound = ratio(row[second], q[second])
            if bound > 0:
                yield [*drawn, *([coin(0.0, bound)] if bound < 1 else [])], (second,)
            if bound < 1:
                left = excess(row, q)
                drawn += [coin(bound, 1.0)] if bound > 0 else []
                yield from (([*drawn, token(k, *left)], (k,)) for k in range(4) if left[k] > 0)


def said_of(q_of_second):
    return rule_of_candidates(paths_of(q_of_second), model({(0,): P}), (0,))


def test_a_candidate_that_stays_in_q_is_named():
    assert said_of(lambda first: Q).startswith(
        "q of a later candidate is not renormalised after the candidates before it are removed: candidate 2 ("
    )
    assert said_of(lambda first: without(Q, first)) == ""


def test_a_path_without_two_candidates_has_no_such_rule():
    other = ([token(0, *Q), coin(0.0, 0.75)], (0,))
    assert rule_of_candidates([*paths_of(lambda first: Q), other], model({(0,): P}), (0,)) == ""


def paths_with_replacement(tested):
    """Yield all paths of one round with two independent candidates; those of ``tested(first, second)`` are tested."""
    for first in range(4):
        for second in range(4):
            yield from rejections([token(first, *Q), token(second, *Q)], P, tested(first, second))


def rejections(drawn, row, candidates, left=excess, q=Q):
    """Yield all paths from the draws ``drawn`` on, with recursive rejection of ``candidates`` from ``row``.

    ``left(row, q)`` is the row with which the next candidate is tested.
    """
    if not candidates:
        yield from (([*drawn, token(k, *scaled(row))], (k,)) for k in range(4) if row[k] > 0)
        return
    bound = ratio(row[candidates[0]], q[candidates[0]])
    if bound > 0:
        yield [*drawn, *([coin(0.0, bound)] if bound < 1 else [])], candidates[:1]
    if bound < 1:
        failed = [coin(bound, 1.0)] if bound > 0 else []
        yield from rejections([*drawn, *failed], left(row, q), candidates[1:], left, q)


def test_equal_candidates_that_are_tested_only_once_are_named():
    target = model({(0,): P})
    merged = paths_with_replacement(lambda first, second: tuple(dict.fromkeys((first, second))))
    said = rule_of_candidates(merged, target, (0,))
    assert said.startswith("equal candidates are tested only once: candidates 1 and 2, both 0, are two draws from q")
    assert rule_of_candidates(paths_with_replacement(lambda *both: both), target, (0,)) == ""
    assert rule_of_candidates(paths_with_replacement(lambda first, _: (first,)), target, (0,)) == ""


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (lambda *both: tuple(sorted(both)), "from the smallest token to the largest"),
        (lambda *both: tuple(sorted(set(both))), "from the smallest token to the largest, each token once"),
        (lambda *both: tuple(sorted(both, reverse=True)), "from the largest token to the smallest"),
        (lambda *both: tuple(sorted(both, key=lambda k: -Q[k])), "from the largest q to the smallest"),
        (lambda first, second: (second, first), "from the last draw to the first"),
    ],
)
def test_candidates_in_another_order_are_named(order, said):
    name = rule_of_candidates(paths_with_replacement(order), model({(0,): P}), (0,))
    assert name.startswith(f"candidates are tested {said}, expected in the order in which they are drawn: candidates ")


@pytest.mark.parametrize("yes", [0, 1])
def test_candidates_of_a_decoder_with_its_own_labels_are_read(yes):
    """Outcome ``yes`` of the draw "keep" accepts a candidate."""

    def one_round(draws, target, draft, tokens):
        left = np.array(target(tokens))
        for drafted in sorted(draws.categorical(draft(tokens), ("candidate", k)) for k in range(2)):
            kept = min(1, left[drafted] / draft(tokens)[drafted])
            if draws.categorical(np.array([kept, 1 - kept][:: 1 - 2 * yes]), ("keep",)) == yes:
                return (drafted,)
            left = np.array(excess(left, draft(tokens)))
        return (draws.categorical(left, ("last",)),)

    with pytest.raises(SpeculationRefuted, match="candidates are tested from the smallest token to the largest, expec"):
        check_decoder(one_round, checks=["law_is_target"], quick=True)


def test_a_residual_that_is_not_divided_by_its_sum_is_named_without_an_example_of_q():
    paths = [
        path
        for first, second in product(range(4), repeat=2)
        for path in rejections([token(first, *Q), token(second, *Q)], P, (first, second), unscaled)
    ]
    said = rule_of_candidates(paths, model({(0,): P}), (0,))
    kept = "and kept where the next difference is 0"
    assert said == f"the residual after a rejected candidate is not divided by its sum, {kept}"


def unscaled(row, q):
    left = [max(a - b, 0.0) for a, b in zip(row, q, strict=True)]
    return left if any(left) else row


CERTAIN, FLAT, TARGET = (0.0, 1.0, 0.0), (0.2, 0.6, 0.2), (0.5, 0.1, 0.4)
DRAFTERS = Trace(
    (((0,), (1,)),),
    (("target", (0,)), ("draft", (0,)), ("draft", (0,)), ("target", (0, 1))),
    model({(0,): CERTAIN}),
    model({(0,): TARGET}),
    (0, 0, 0, 2),
)


def paths_of_drafters(last, *, tested=FLAT):
    """Yield all paths of one round with token 1 of the first draft model and a token of the second, ``FLAT``.

    After both are rejected, the token is drawn from ``last(residual)``. The second one is tested with the q ``tested``.
    """
    left = excess(TARGET, CERTAIN)
    for second in range(3):
        first = [token(second, *FLAT), coin(0.0, TARGET[1])]
        yield first, (1,)
        drawn = [first[0], coin(TARGET[1], 1.0)]
        bound = ratio(left[second], tested[second])
        if bound > 0:
            yield [*drawn, *([coin(0.0, bound)] if bound < 1 else [])], (second,)
        if bound < 1:
            drawn += [coin(bound, 1.0)] if bound > 0 else []
            row = last(excess(left, FLAT))
            yield from (([*drawn, token(k, *row)], (k,)) for k in range(3) if row[k] > 0)


def test_the_last_draw_after_the_candidates_of_two_draft_models_is_named():
    again = [*paths_of_drafters(lambda left: excess(TARGET, FLAT))]
    said = rule_of_drafters(again, DRAFTERS)
    assert said.startswith("2 draft models draw a candidate each for one position: after all candidates are rejected, ")
    assert "is drawn from norm(max(p - q, 0)) with q of candidate 2 alone = (0.6, 0, 0.4) (e.py:1), expected " in said
    other = rule_of_drafters([*paths_of_drafters(lambda left: (0.7, 0.2, 0.1))], DRAFTERS)
    assert "the token is drawn from (0.7, 0.2, 0.1) (e.py:1), expected (" in other


def test_right_rounds_of_two_draft_models_and_tests_with_another_q_have_no_such_sentence():
    assert rule_of_drafters([*paths_of_drafters(lambda left: left)], DRAFTERS) == ""
    assert rule_of_drafters([*paths_of_drafters(lambda left: left, tested=(0.7, 0.1, 0.2))], DRAFTERS) == ""
    once = DRAFTERS._replace(queries=DRAFTERS.queries[1:], moments=DRAFTERS.moments[1:])
    once = once._replace(queries=once.queries[1:], moments=once.moments[1:])
    assert rule_of_drafters([*paths_of_drafters(lambda left: excess(TARGET, FLAT))], once) == ""


def test_two_queries_with_one_text_and_a_draw_from_another_row_show_two_draft_models():
    drawn = [token(1, *FLAT)._replace(before=()), coin(0.1, 1.0)._replace(before=(1,))]
    assert has_several_drafters(drawn, DRAFTERS)
    residual = [token(0, *excess(TARGET, CERTAIN))._replace(before=())]
    assert not has_several_drafters(residual, DRAFTERS)
    open_rows = DRAFTERS._replace(draft=model({(0,): FLAT}))
    assert not has_several_drafters(drawn, open_rows)
    second = token(1, 0.3, 0.3, 0.4)._replace(before=(1,))
    assert has_several_drafters([drawn[0], second], open_rows)


def test_a_coin_of_a_further_candidate_is_no_draw_of_the_last_token():
    """Rounding leaves a residual of about 1e-5 where the rule leaves none, and one more candidate is tested on it."""

    def tested_again(drawn):
        return [*drawn[:-1], coin(2e-5, 1.0), drawn[-1]] if len(drawn) > 2 and drawn[-1].is_lookup else drawn

    p, q = (0.02, 0.38, 0.35, 0.25), (0.04, 0.56, 0.2, 0.2)  # two tokens are left after two rejections
    paths = [
        (tested_again(drawn), emitted)
        for pair in product(range(4), repeat=2)
        for drawn, emitted in rejections([token(k, *q) for k in pair], p, pair, q=q)
    ]
    assert rule_of_candidates(paths, model({(0,): p}), (0,)) == ""
