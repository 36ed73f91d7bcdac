"""Two candidates for one position, drawn without replacement: the wrong q of the second one is named."""

from __future__ import annotations

from specverify.checks.explaining.drawn_candidates import rule_of_candidates
from specverify.checks.explaining.round_rules import excess, ratio, scaled
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


def rejections(drawn, row, candidates):
    """Yield all paths from the draws ``drawn`` on, with recursive rejection of ``candidates`` from ``row``."""
    if not candidates:
        yield from (([*drawn, token(k, *row)], (k,)) for k in range(4) if row[k] > 0)
        return
    bound = ratio(row[candidates[0]], Q[candidates[0]])
    if bound > 0:
        yield [*drawn, *([coin(0.0, bound)] if bound < 1 else [])], candidates[:1]
    if bound < 1:
        failed = [coin(bound, 1.0)] if bound > 0 else []
        yield from rejections([*drawn, *failed], excess(row, Q), candidates[1:])


def test_equal_candidates_that_are_tested_only_once_are_named():
    target = model({(0,): P})
    merged = paths_with_replacement(lambda first, second: tuple(dict.fromkeys((first, second))))
    said = rule_of_candidates(merged, target, (0,))
    assert said.startswith("equal candidates are tested only once: candidates 1 and 2, both 0, are two draws from q")
    assert rule_of_candidates(paths_with_replacement(lambda *both: both), target, (0,)) == ""
    assert rule_of_candidates(paths_with_replacement(lambda first, _: (first,)), target, (0,)) == ""
