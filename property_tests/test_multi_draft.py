"""Several candidates for one position: laws, acceptance in closed form, limits, orders, and numbers on a known pair."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import P, Q, always, as_law, distance, examples, law_of, pmf, project, vector
from scipy.optimize import linprog

from reference import Draft, Task, Verified, chain, chain_decoder, constant, flip, model_drafter, overlap, residual
from reference import accept_probability as ratio
from reference.algorithms import k_seq as k_seq_row
from reference.algorithms import specinfer, speculative_sampling, traversal_verification
from reference.drafters.sequences import sequences_drafter
from reference.drafters.tree import (
    excluding,
    independent,
    most_likely,
    sampled_then_most_likely,
    tree_drafter,
    without_replacement,
)
from reference.pmf import top_tokens
from reference.transport import candidate_set_law, optimal_plan, optimum
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers import k_seq as k_seq_rule
from reference.verifiers import recursive_rejection as rejection
from reference.verifiers.candidate_set import candidate_set
from reference.verifiers.k_seq import k_seq
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection
from reference.verifiers.sample_and_match import sample_and_match
from reference.verifiers.speculative_sampling import speculative_sampling as single
from reference.verifiers.traversal import traversal
from specverify.enumeration import decoder_law
from specverify.law import target_law
from specverify.strategies import pmf_pairs, prompts, tasks

F = Fraction
pairs = st.integers(2, 3).flatmap(pmf_pairs)
counts = st.integers(1, 3)


def one_level(p, q, count, pick, verify):
    """The law of (first token, accepted) for ``count`` siblings and a horizon of two tokens."""
    decoder = tree_decoder(Task(always(p), horizon=2), tree_drafter(always(q), (-1,) * count, pick), verify)

    def program(draws):
        done = decoder.step(draws, decoder.init((0,)))[1]
        return done.tokens[0], done.accepted

    return law_of(program)


def accepted(*setting):
    return project(one_level(*setting), lambda outcome: outcome[1]).get(1, F(0))


def expected_tokens(decoder, prompt=(0,)):
    law = law_of(lambda draws: len(decoder.step(draws, decoder.init(prompt))[1].tokens))
    return sum(count * mass for count, mass in law.items())


def tree_law(task, prompt, branching, pick, verify):
    drafter = tree_drafter(task.draft, regular_tree(branching), pick)
    return decoder_law(tree_decoder(task, drafter, verify), prompt).probabilities


RULES = {
    "recursive rejection with replacement": (independent, recursive_rejection),
    "recursive rejection without replacement": (without_replacement, recursive_rejection),
    "k-seq": (independent, k_seq(8)),
    "transport with replacement": (independent, optimal_transport(replacement=True)),
    "transport without replacement": (without_replacement, optimal_transport(replacement=False)),
    "hybrid": (sampled_then_most_likely, recursive_rejection),
    "candidate set": (most_likely, candidate_set),
    "membership of sampled candidates": (independent, candidate_set),
    "traversal with replacement": (independent, traversal),
    "traversal without replacement": (without_replacement, traversal),
}
every_rule = pytest.mark.parametrize(("pick", "verify"), RULES.values(), ids=RULES)


# Lossless, one level and several


@every_rule
@examples(15)
@given(pair=pairs, count=counts)
def test_the_first_token_of_a_round_has_the_law_of_the_target(pick, verify, pair, count):
    p, q = pair
    first = project(one_level(p, q, count, pick, verify), lambda outcome: outcome[0])
    assert vector(first, len(p)) == p.tolist()


@every_rule
@pytest.mark.parametrize("branching", [(2, 1), (1, 2), (2, 2)], ids=str)
@examples(4)
@given(task=tasks(2, 3, 4), prompt=prompts(2))
def test_a_tree_is_lossless_over_several_rounds(pick, verify, branching, task, prompt):
    assert tree_law(task, prompt, branching, pick, verify) == target_law(task, prompt)


@pytest.mark.parametrize(
    ("row", "options"),
    [
        (specinfer, {"forget": (0, 1), "depth": 2}),
        (specinfer, {"forget": (0, 0, 1), "depth": 1}),
        (k_seq_row, {"sequences": 2, "depth": 2, "bits": 6}),
        (k_seq_row, {"sequences": 3, "depth": 1, "bits": 6}),
    ],
    ids=str,
)
@examples(6)
@given(task=tasks(2, 3, 4), prompt=prompts(2))
def test_sequences_that_share_a_prefix_are_lossless(row, options, task, prompt):
    assert decoder_law(row.build(task, **options), prompt).probabilities == target_law(task, prompt)


# Limits


@pytest.mark.parametrize(
    "name", [name for name in RULES if name not in {"candidate set", "membership of sampled candidates"}]
)
@examples(20)
@given(pair=pairs)
def test_one_candidate_is_speculative_sampling(name, pair):
    p, q = pair
    pick, verify = RULES[name]
    assert one_level(p, q, 1, pick, verify) == one_level(p, q, 1, independent, single)
    assert accepted(p, q, 1, pick, verify) == overlap(p, q)


@pytest.mark.parametrize("verify", [recursive_rejection, k_seq(8), optimal_transport(replacement=True)], ids=range(3))
@examples(10)
@given(task=tasks(3, 2, 3), prompt=prompts(3))
def test_a_tree_of_one_path_is_a_chain(verify, task, prompt):
    """The same law of every round, not of the output alone."""
    chained = speculative_sampling.build(task, gamma=2)
    drafter = tree_drafter(task.draft, (-1, 0), independent)
    decoder = tree_decoder(task, drafter, verify)
    laws = [law_of(lambda draws, one=one: one.step(draws, one.init(prompt))[1]) for one in (chained, decoder)]
    assert laws[0] == laws[1]


@examples(15)
@given(tasks(3, 2, 4), prompts(3))
def test_a_path_of_point_masses_is_sample_and_match(task, prompt):
    drafter = tree_drafter(task.draft, (-1, 0), most_likely)
    two = constant(2)
    limited = drafter._replace(
        propose=lambda draws, s, x, depth, stop: drafter.propose(draws, s, x, min(2, depth), stop)
    )
    matched = chain_decoder(task, limited, two, sample_and_match)
    for verify in (candidate_set, recursive_rejection, traversal):
        decoder = tree_decoder(task, drafter, verify)
        laws = [law_of(lambda draws, one=one: one.step(draws, one.init(prompt))[1]) for one in (matched, decoder)]
        assert laws[0] == laws[1]


@examples(20)
@given(pairs, counts)
def test_candidate_sets_are_recursive_rejection_of_point_masses(pair, count):
    p, q = pair
    law = one_level(p, q, count, most_likely, candidate_set)
    assert law == one_level(p, q, count, most_likely, recursive_rejection)
    chosen = top_tokens(q, count)
    assert project(law, lambda outcome: outcome[1]).get(1, 0) == sum(p[token] for token in chosen)


@examples(15)
@given(pairs, st.permutations(range(3)), counts)
def test_the_order_of_point_masses_changes_nothing(pair, order, count):
    p, _ = pair
    tokens = tuple(token for token in order if token < len(p))[:count]
    drafts = [Draft(turned, (-1,) * len(tokens), (None,) * len(tokens)) for turned in permutations(tokens)]
    laws = [law_of(lambda draws, d=draft: candidate_set(draws, always(p), (), d).tokens[0]) for draft in drafts]
    accepts = [law_of(lambda draws, d=draft: recursive_rejection(draws, always(p), (), d).accepted) for draft in drafts]
    assert all(law == laws[0] for law in laws)
    assert all(law == accepts[0] for law in accepts)


@pytest.mark.parametrize("replacement", [True, False])
@examples(15)
@given(pair=pairs, count=counts)
def test_traversal_of_one_level_is_recursive_rejection(replacement, pair, count):
    p, q = pair
    pick = independent if replacement else without_replacement
    assert one_level(p, q, count, pick, traversal) == one_level(p, q, count, pick, recursive_rejection)


# Acceptance in closed form


@examples(20)
@given(pairs, counts)
def test_recursive_rejection_accepts_one_minus_the_product_of_distances(pair, count):
    p, q = pair
    found = accepted(p, q, count, independent, recursive_rejection)
    assert found == rejection.acceptance(p, (q,) * count)


@examples(20)
@given(pairs, counts)
def test_k_seq_accepts_as_its_formula_says(pair, count):
    p, q = pair
    assert accepted(p, q, count, independent, k_seq(8)) == k_seq_rule.acceptance(p, q, count, 8)


@examples(40)
@given(pairs, counts, st.integers(0, 8))
def test_every_rho_above_the_least_is_valid_and_owes_nothing_negative(pair, count, eighths):
    p, q = pair
    least = k_seq_rule.least_rho(p, q, count, 8)
    rho = least + F(eighths, 8) * (count - least)
    assert 1 <= least <= count
    assert k_seq_rule.is_valid(p, q, rho, count)
    rate = k_seq_rule.beta(p, q, rho)
    taken = k_seq_rule.capped(p, q, rho) * ((1 - (1 - rate) ** count) / rate if rate else 0)
    assert (p - taken >= 0).all()
    assert k_seq_rule.leftover(p, q, rho, count).sum() == 1


@examples(20)
@given(pairs, counts)
def test_the_hybrid_accepts_its_top_and_the_overlap_of_the_rest(pair, count):
    p, q = pair
    top = top_tokens(q, count - 1)
    rest = excluding(q, top)
    outside = pmf(*(token not in top for token in range(len(q))))
    closed = sum(p[token] for token in top) + (0 if rest is None else np.minimum(p * outside, rest).sum())
    assert accepted(p, q, count, sampled_then_most_likely, recursive_rejection) == closed


@pytest.mark.parametrize("replacement", [True, False])
@examples(20)
@given(pair=pairs, count=counts)
def test_the_optimal_plan_accepts_the_dual_value(replacement, pair, count):
    p, q = pair
    pick = independent if replacement else without_replacement
    sets = candidate_set_law(q, count, replacement)
    assert sum(sets.values()) == 1
    assert accepted(p, q, count, pick, optimal_transport(replacement)) == optimum(p, sets)


# Orders and bounds


def membership(p, q, count):
    return (p * (1 - (1 - q) ** count)).sum()


@examples(60)
@given(st.integers(2, 4).flatmap(pmf_pairs), counts)
def test_membership_rejection_k_seq_and_the_optimum_stand_in_this_order(pair, count):
    p, q = pair
    best = optimum(p, candidate_set_law(q, count, replacement=True))
    in_turn = rejection.acceptance(p, (q,) * count)
    level = k_seq_rule.acceptance(p, q, count, 30)
    assert membership(p, q, count) <= in_turn <= level + F(1, 2**20)
    assert level <= best
    assert level + F(1, 2**20) >= (1 - (1 - F(1, count)) ** count) * best
    without = optimum(p, candidate_set_law(q, count, replacement=False))
    assert best <= without
    assert accepted(p, q, count, without_replacement, recursive_rejection) <= without


def hybrid_set_law(q, count):
    top = top_tokens(q, count - 1)
    rest = excluding(q, top)
    if rest is None:
        return {frozenset(top): F(1)}
    return {frozenset({*top, token}): mass for token, mass in enumerate(rest.tolist()) if mass > 0}


@examples(60)
@given(st.integers(2, 4).flatmap(pmf_pairs), counts)
def test_the_hybrid_is_the_transport_optimum_of_its_own_draft_law(pair, count):
    p, q = pair
    assert accepted(p, q, count, sampled_then_most_likely, recursive_rejection) == optimum(p, hybrid_set_law(q, count))


def transport_by_linear_programme(p, sets):
    """Maximise the mass of (S, y) with y in S under both marginals."""
    edges = [(drawn, token) for drawn in sets for token in sorted(drawn)]
    rows = [[float(edge[0] == drawn) for edge in edges] for drawn in sets]
    rows += [[float(edge[1] == token) for edge in edges] for token in range(len(p))]
    limits = [float(mass) for mass in (*sets.values(), *p)]
    return -linprog([-1.0] * len(edges), A_ub=rows, b_ub=limits, bounds=(0, None)).fun


@pytest.mark.parametrize("replacement", [True, False])
@examples(30)
@given(pair=st.integers(2, 4).flatmap(pmf_pairs), count=counts)
def test_flow_cut_and_linear_programme_agree(replacement, pair, count):
    p, q = pair
    sets = candidate_set_law(q, count, replacement)
    best = optimum(p, sets)
    plan = optimal_plan(p, sets)
    assert sum(sum(row.values()) for row in plan.accepted.values()) == best == 1 - sum(plan.owed)
    assert all(sum(row.values()) <= sets[drawn] and min(row.values()) >= 0 for drawn, row in plan.accepted.items())
    assert float(best) == pytest.approx(transport_by_linear_programme(p, sets), abs=1e-9)
    floats = optimal_plan(p.astype(float), {drawn: float(mass) for drawn, mass in sets.items()})
    assert 1 - sum(floats.owed) == pytest.approx(float(best), abs=1e-12)


@examples(40)
@given(pairs, counts)
def test_without_replacement_covers_small_supports(pair, count):
    p, q = pair
    if (q > 0).sum() <= count and not (p[q == 0] > 0).any():
        assert accepted(p, q, count, without_replacement, recursive_rejection) == 1


@examples(20)
@given(tasks(2, 3, 3), prompts(2))
def test_a_further_leaf_never_lowers_what_is_emitted(task, prompt):
    task = task._replace(eos=())
    shapes = [(), (-1,), (-1, -1), (-1, -1, 0), (-1, -1, 0, 0), (-1, -1, 0, 0, 1)]
    for pick, verify in ((most_likely, candidate_set), (without_replacement, recursive_rejection)):
        found = [expected_tokens(tree_decoder(task, tree_drafter(task.draft, s, pick), verify), prompt) for s in shapes]
        assert found == sorted(found)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("branching", [(1, 1), (2, 1), (1, 2)], ids=str)
@examples(12)
@given(task=tasks(2, 3, 3), prompt=prompts(2))
def test_traversal_never_emits_fewer_tokens(replacement, branching, task, prompt):
    task = task._replace(eos=())
    pick = independent if replacement else without_replacement
    drafter = tree_drafter(task.draft, regular_tree(branching), pick)
    level, whole = (
        expected_tokens(tree_decoder(task, drafter, rule), prompt) for rule in (recursive_rejection, traversal)
    )
    assert level <= whole


# Numbers on the known pair

KNOWN = {
    "recursive rejection with replacement": (F(3, 5), F(16, 25), F(169, 250)),
    "recursive rejection without replacement": (F(3, 5), F(7, 10), F(1)),
    "membership of sampled candidates": (F(13, 50), F(52, 125), F(2599, 5000)),
    "transport with replacement": (F(3, 5), F(69, 100), F(771, 1000)),
    "transport without replacement": (F(3, 5), F(111, 140), F(1)),
    "hybrid": (F(3, 5), F(3, 4), F(1)),
    "candidate set": (F(1, 5), F(1, 2), F(1)),
    "traversal with replacement": (F(3, 5), F(16, 25), F(169, 250)),
    "traversal without replacement": (F(3, 5), F(7, 10), F(1)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_acceptance_of_one_two_and_three_candidates(name):
    assert tuple(accepted(P, Q, count, *RULES[name]) for count in (1, 2, 3)) == KNOWN[name]


def test_the_known_acceptance_of_k_seq():
    rows = [(k_seq_rule.least_rho(P, Q, count, 40), k_seq_rule.acceptance(P, Q, count)) for count in (1, 2, 3)]
    assert [(round(float(rho), 7), round(float(rate), 7)) for rho, rate in rows] == [
        (1.0, 0.6),
        (1.5844289, 0.6584429),
        (2.1000308, 0.7100031),
    ]


def test_membership_without_replacement_has_its_known_acceptance():
    assert accepted(P, Q, 2, without_replacement, candidate_set) == F(1189, 2100)


@pytest.mark.parametrize(
    ("gamma", "known"), [(2, "11/9"), (4, "2.049383"), (8, "3.106843")], ids=["two", "four", "eight"]
)
def test_traversal_of_a_chain_accepts_what_block_verification_does(gamma, known):
    """Context free, p = (1/3, 2/3) and q = (2/3, 1/3): the whole path counts; the extra token does not."""
    p, q = pmf("1/3", "2/3"), pmf("2/3", "1/3")
    decoder = traversal_verification.build(
        Task(always(p), always(q), horizon=gamma + 1), (1,) * gamma, replacement=True
    )
    found = expected_tokens(decoder) - 1
    assert found == F(known) if gamma == 2 else round(float(found), 6) == float(known)


# What breaks


TALL = pmf(".1", ".5", ".4")
"""Against q the residual keeps two tokens, so that a second candidate can be mistreated."""


def bias(program, p):
    return distance(law_of(lambda draws: program(draws, p)), as_law(p))


def with_soft_q(draws, p):
    """Top-2 of q verified as if drawn from q."""
    draft = Draft((0, 1), (-1, -1), (Q, excluding(Q, (0,))))
    return recursive_rejection(draws, always(p), (), draft).tokens[0]


def skipping_duplicates(draws, p):
    """With replacement, a repeated candidate is passed over without being subtracted."""
    first, second = (draws.categorical(Q, ("draft", k)) for k in range(2))
    tokens = (first,) if first == second else (first, second)
    draft = Draft(tokens, (-1,) * len(tokens), (Q,) * len(tokens))
    return recursive_rejection(draws, always(p), (), draft).tokens[0]


def without_replacement_as_if_with(draws, p):
    first = draws.categorical(Q, ("draft", 0))
    second = draws.categorical(excluding(Q, (first,)), ("draft", 1))
    return recursive_rejection(draws, always(p), (), Draft((first, second), (-1, -1), (Q, Q))).tokens[0]


def sorted_candidates(draws, p):
    tokens = tuple(sorted((draws.categorical(Q, ("draft", k)) for k in range(2)), key=lambda token: -p[token]))
    return recursive_rejection(draws, always(p), (), Draft(tokens, (-1, -1), (Q, Q))).tokens[0]


def scalar_residual(draws, p):
    """After a rejection only the rejected entry is reduced."""
    token = draws.categorical(Q, ("draft", 0))
    if flip(draws, ratio(p, Q, token), ("accept", 0)):
        return token
    owed = p.copy()
    owed[token] = max(p[token] - Q[token], F(0))
    return draws.categorical(owed / owed.sum(), ("residual", 0))


@pytest.mark.parametrize(
    "program", [with_soft_q, skipping_duplicates, without_replacement_as_if_with, sorted_candidates, scalar_residual]
)
def test_the_usual_shortcuts_are_biased(program):
    assert bias(program, TALL) > 0


def test_the_known_bias_of_the_scalar_residual():
    assert bias(scalar_residual, P) == F(3, 20)


# Drafting


@examples(20)
@given(pairs, counts)
def test_an_exponential_race_draws_siblings_as_one_after_the_other(pair, count):
    """The race's law of ordered winners (Plackett and Luce) against the drafter's."""
    _, q = pair
    drafter = tree_drafter(always(q), (-1,) * count, without_replacement)
    law = law_of(lambda draws: drafter.propose(draws, None, (0,), 9, None).tokens)
    for tokens, mass in law.items():
        product, left = F(1), F(1)
        for token in tokens:
            product, left = product * q[token] / left, left - q[token]
        assert mass == product
        assert len(tokens) == min(count, (q > 0).sum())


def test_candidates_of_different_laws_are_no_k_seq():
    draft = Draft((0, 1), (-1, -1), (P, Q))
    with pytest.raises(ValueError, match="the 2 candidates at depth 0 have different pmfs, expected one for all"):
        law_of(lambda draws: k_seq(4)(draws, always(P), (), draft))
    with pytest.raises(ValueError, match="bits is 0, expected at least 1"):
        k_seq(0)


def test_drafters_of_different_models_are_lossless_in_any_order():
    other = pmf("1/7", "2/7", "4/7")
    task = Task(always(P), always(Q), horizon=3)
    for drafts in ((always(Q), always(other)), (always(other), always(Q))):
        law = decoder_law(tree_decoder(task, sequences_drafter(drafts, 2), recursive_rejection), (0,))
        assert law.probabilities == target_law(task, (0,))


def test_nothing_drafted_is_one_draw_from_the_target():
    for _, verify in RULES.values():
        law = law_of(lambda draws, verify=verify: verify(draws, always(P), (), chain((), ())))
        assert law == {Verified((token,), 0): mass for token, mass in as_law(P).items()}
    assert residual(P, Q).tolist() == [0, 0, 1]
    assert model_drafter(always(Q)).propose(None, None, (0,), 0, None).tokens == ()
