"""Several candidates for one position: rules with the law of the target, what they reduce to, what is drafted."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from reference import Task, Verified, chain, chain_decoder, constant, model_drafter, overlap, residual
from reference.algorithms import k_seq as k_seq_row
from reference.algorithms import specinfer, speculative_sampling, traversal_verification
from reference.drafters.sequences import sequences_drafter
from reference.drafters.tree import independent, most_likely, tree_drafter
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.candidate_set import candidate_set
from reference.verifiers.k_seq import k_seq
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection
from reference.verifiers.sample_and_match import sample_and_match
from reference.verifiers.speculative_sampling import speculative_sampling as single
from reference.verifiers.traversal import traversal
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import P, Q, always, as_law, examples, law_of, pmf, project, vector
from test_support.reference.multi_draft_rules import (
    RULES,
    accepted,
    counts,
    every_rule,
    expected_tokens,
    one_level,
    pairs,
)

F = Fraction


def tree_law(task, prompt, branching, pick, verify):
    drafter = tree_drafter(task.draft, regular_tree(branching), pick)
    return decoder_law(tree_decoder(task, drafter, verify), prompt).probabilities


# Lossless, one level and several


@every_rule
@examples(15)
@given(pair=pairs, count=counts)
def test_the_first_token_of_a_round_has_the_law_of_the_target(pick, verify, pair, count):
    p, q = pair
    first = project(one_level(p, q, count, pick, verify), lambda outcome: outcome[0])
    assert vector(first, len(p)) == p.tolist()


@pytest.mark.thorough(keep=3)
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


# Drafting


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
