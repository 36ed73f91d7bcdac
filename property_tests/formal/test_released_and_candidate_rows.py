"""Released, edge-cloud and candidate rows have, as rationals, the joint law of their programs in ``proofs/``."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from property_tests.formal.test_rows_are_the_programs_of_the_theories import (
    PROMPT,
    best,
    chain,
    disagreements,
    drafter,
    independent,
    regular,
    verified,
)
from reference import argmax, as_pmf
from reference.algorithms.canonical_selection import selection
from reference.algorithms.fly import top_entropy
from reference.algorithms.rest_released import rows_of
from reference.drafters.prompt_lookup import lookup
from reference.drafters.retrieval import retrieved
from reference.drafters.sequences import forgetful
from reference.transport import candidate_set_law, optimal_plan
from reference.trees import deterministic_draft, merged
from reference.verifiers.gumbel_coupling import draft_given_target
from test_support.formal import candidate_programs as candidates
from test_support.formal import released_programs as released
from test_support.formal import theory_programs as theory
from test_support.formal.theory_programs import Chain, Tree

TABLES = 6
"""Random pairs of models for each case."""
FEW = {"spectr-gbv-released of longer blocks": 1, "specinfer": 3}
"""The same for the cases that take seconds."""
HALF = Fraction(1, 2)


def point(token, size):
    return tuple(Fraction(x == token) for x in range(size))


def hierarchical_released(p, q, eos):
    return theory.block_round(drafter(q, 3), lambda c, ds: released.hierarchical_released(p, q, c, ds))


def rest_released(p, q, eos):
    def paths(n, c):
        found = retrieved(c, ((0, 1, 1), (1, 0, 1)), 1, min(2, n - 1), 3)
        return rows_of(deterministic_draft(merged(found)))

    return released.rest_released_round(p, paths)


def fly(p, q, eos):
    window, threshold = 2, 0.9

    def excused(c, ds, met, i):
        unsure = top_entropy(as_pmf(p(c + ds[:i]))) >= threshold
        return i < len(met) - window and all(met[i + 1 : i + window]) and unsure

    greedy = drafter(lambda text: point(best(q)(text), len(q(text))), 3)
    return theory.block_round(greedy, lambda c, ds: released.fly_judge(p, excused, c, ds))


def bild_released(p, q, eos):
    step = released.bild_step(
        eos,
        (best(q), best(p)),
        lambda text: max(q(text)) < HALF,
        lambda text, token: p(text)[token] < math.exp(-1.0),
        2,
    )
    return lambda again, n, c: theory.ret(step(again, n, c))


def triforce_released(p, q, eos):
    partial_model = lambda c: p(c[min(1, len(c) - 1) :])  # noqa: E731 - the target without the first token
    inner = chain(partial_model, q, 1, theory.resample_rule)
    return theory.cascade_round(verified(p, partial_model, 2), inner, None, slack=1)


def timeout(p, q, eos):
    return released.timeout_round(verified(p, q, 2), Fraction(1, 3))


def gated(p, q, eos):
    def hard(text):
        first, second = sorted(q(text), reverse=True)[:2]
        return first - second < HALF

    def easy(c, ds):
        return 2 * sum(hard(c + ds[:i]) for i in range(len(ds))) <= len(ds)

    return released.gated_round(verified(p, q, 2), eos, easy)


def shared_noise_drafts_first(p, q, eos):
    """The edge's races first, the cloud's given them."""

    def rule(target, draft, d):
        def given(d):
            if target == draft:
                return point(d, len(target))
            return tuple(draft_given_target(as_pmf(draft), as_pmf(target), d).tolist())

        for z, mass in enumerate(target):  # what coupled_lossless asks for: the cloud's token has the law p
            assert sum(draft[d] * given(d)[z] for d in range(len(draft)) if draft[d] > 0) == mass
        return released.coupled_rule(given, d)

    return chain(p, q, 2, rule)


def drawn_order(p, q, eos):
    """Two sequences, the second of a model that does not see the first token; a plan is which sequence, or the root."""
    models = (q, forgetful(q, 1))
    tree = Tree(
        lambda plan, c, earlier: (
            models[len(earlier)](c)
            if plan is None and len(earlier) < 2
            else models[plan](c)
            if plan is not None and not earlier
            else None
        ),
        lambda plan, c, earlier, d: len(earlier) if plan is None else plan,
        width=2,
    )
    return theory.tree_round(p, tree, candidates.try_in_drawn_order, None, 2)


def spechub(p, q, eos):
    def top(u):
        return argmax(as_pmf(u))

    tree = Tree(candidates.hub_sibling(q, top), lambda plan, c, earlier, d: None, width=2)
    return theory.tree_round(p, tree, candidates.through_the_hub(top), None, 2)


def feasible_plan(r, u, count, replacement):
    """Return the code's plan and the law of sets, having checked all that ``transport_plan_exact`` asks of it."""
    sets = candidate_set_law(as_pmf(u), count, replacement)
    plan = optimal_plan(as_pmf(r), sets)
    for drawn, mass in sets.items():
        moved = plan.accepted[drawn]
        assert set(moved) <= drawn
        assert min(moved.values()) >= 0
        assert sum(moved.values()) <= mass
    for v, mass in enumerate(r):
        assert sum(moved.get(v, 0) for moved in plan.accepted.values()) == mass - plan.owed[v] <= mass
    return plan, sets


def transport(replacement):
    def round_(p, q, eos):
        def plan_of(r, drawn):
            plan, sets = feasible_plan(r, drawn[0][1], len(drawn), replacement)
            tokens = frozenset(token for token, _ in drawn)
            return plan, [Fraction(plan.accepted[tokens].get(v, 0)) / sets[tokens] for v in range(len(r))]

        def owed(r, drawn):
            plan, _ = plan_of(r, drawn)
            return tuple(mass / sum(plan.owed) for mass in plan.owed) if sum(plan.owed) > 0 else r

        select = candidates.plan_select(lambda r, drawn: plan_of(r, drawn)[1], owed)
        return theory.tree_round(p, independent(q) if replacement else regular(q), select, (2, 1), 2)

    return round_


def canonical(p, q, eos):
    def weights(r, drawn):
        chosen, _ = selection(as_pmf(r), as_pmf(drawn[0][1]), len(drawn), 0)
        return chosen

    def choice(r, drawn):
        return tuple(weights(r, drawn)[frozenset(token for token, _ in drawn)].tolist())

    def law_of_choice(r, drawn):
        sets = candidate_set_law(as_pmf(drawn[0][1]), len(drawn), replacement=True)
        return tuple(sum(mass * weights(r, drawn)[tokens][v] for tokens, mass in sets.items()) for v in range(len(r)))

    return theory.tree_round(p, independent(q), candidates.two_step_select(choice, law_of_choice), (2, 1), 2)


def jacobi(p, q, eos):
    size = len(p(PROMPT))
    return candidates.jacobi_round(p, (Fraction(1, size),) * size, 2)


def cascade_drafting(p, q, eos):
    """Two tokens of q, drafted by inner rounds of looked-up tokens; then one looked-up token."""

    def looked_up(c, count):
        found = lookup(c, 2, count)
        end = next((i for i, token in enumerate(found) if token in eos), len(found))
        return found[:end]

    def copied(c, ds):
        """Return the token that a lookup behind the text c copies after the drafts ds, or None."""
        found = looked_up(c, len(ds) + 1)
        return found[len(ds)] if len(ds) < len(found) else None

    size = len(p(PROMPT))
    inner = theory.chain_round(
        Chain(
            lambda s, c: 2,
            lambda s, c, ds: copied(c, ds) is not None,
            lambda s, c, ds: point(copied(c, ds), size),
            lambda s, c, ks, d: theory.speculative_rule(q(c + ks), point(d, size), d),
            lambda c: theory.draw(q(c)),
        )
    )

    def second_more(s, c, ds):
        return len(ds) < 3 and copied(c + ds[:2], ds[2:]) is not None

    def second_pmf(s, c, ds):
        return point(copied(c + ds[:2], ds[2:]), size)

    def rule(s, c, ks, d):
        return theory.speculative_rule(p(c + ks), q(c + ks) if len(ks) < 2 else point(d, size), d)

    outer = Chain(lambda s, c: 3, None, None, rule, lambda c: theory.draw(p(c)))
    return candidates.staged_round(outer, inner, 1, 2, Chain(None, second_more, second_pmf, None, None))


def capped_hierarchical(p, q, eos):
    one = (Fraction(1), Fraction(1))
    return theory.block_round(drafter(q, 3), lambda c, ds: theory.hierarchical_coins(p, q, c, one, (), ds))


PROGRAMS = {
    "hierarchical-released": ({"gamma": 3}, hierarchical_released, None),
    "spectr-gbv-released": (
        {"candidates": 2, "gamma": 1},
        lambda p, q, eos: released.joint_round(p, q, 2, 1),
        None,
    ),
    "spectr-gbv-released of longer blocks": (
        {"candidates": 2, "gamma": 2},
        lambda p, q, eos: released.joint_round(p, q, 2, 2),
        None,
    ),
    "rest-released": (
        {"datastore": ((0, 1, 1), (1, 0, 1)), "longest": 1, "depth": 2, "nodes": 3},
        rest_released,
        None,
    ),
    "fly": ({"window": 2, "threshold": 0.9, "gamma": 3}, fly, None),
    "bild-released": ({"fallback": HALF, "rollback": 1.0, "gamma": 2}, bild_released, True),
    "triforce-released": ({"gamma": 2, "forget": 1}, triforce_released, None),
    "edge-cloud-timeout": ({"late": Fraction(1, 3), "gamma": 2}, timeout, None),
    "edge-cloud-gated": ({"gamma": 2, "entropy": None, "margin": HALF, "most": HALF}, gated, None),
    "edge-cloud-gumbel": ({"gamma": 2}, shared_noise_drafts_first, None),
    "specinfer": ({"forget": (0, 1), "depth": 2}, drawn_order, None),
    "spechub": ({"depth": 2}, spechub, None),
    "transport-optimum": ({"branching": (2, 1), "replacement": True}, transport(replacement=True), None),
    "transport-optimum without replacement": (
        {"branching": (2, 1), "replacement": False},
        transport(replacement=False),
        None,
    ),
    "canonical-selection": ({"branching": (2, 1)}, canonical, None),
    "speculative-jacobi": ({"window": 2}, jacobi, ()),
    "cascade-drafting": ({"large": 2, "small": 1, "inner": 2, "max_ngram": 2}, cascade_drafting, None),
}
"""Row, perhaps at two options -> its options, the round of its program, and the state that it starts in."""


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_row_has_the_joint_law_of_its_program(name):
    assert disagreements(name, *PROGRAMS[name], FEW.get(name, TABLES)) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("hierarchical-released", capped_hierarchical),
        ("edge-cloud-timeout", lambda p, q, eos: released.timeout_round(verified(p, q, 2), HALF)),
        ("triforce-released", lambda p, q, eos: theory.chain_round(verified(p, lambda c: p(c[1:]), 2))),
        ("spectr-gbv-released", lambda p, q, eos: released.joint_round(p, q, 1, 2)),
    ],
)
def test_another_program_is_told_apart(name, wrong):
    options, _, start = PROGRAMS[name]
    assert disagreements(name, options, wrong, start, TABLES // 2)
