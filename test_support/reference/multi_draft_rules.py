"""The rules for several candidates at one position, and the law, acceptance and length of a round with them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import strategies as st

from reference import Task
from reference.drafters.tree import (
    independent,
    most_likely,
    sampled_then_most_likely,
    tree_drafter,
    without_replacement,
)
from reference.tree_rounds import tree_decoder
from reference.verifiers.candidate_set import candidate_set
from reference.verifiers.k_seq import k_seq
from reference.verifiers.optimal_transport import optimal_transport
from reference.verifiers.recursive_rejection import recursive_rejection
from reference.verifiers.traversal import traversal
from specverify.laws.model_strategies import pmf_pairs
from test_support.laws.rational import always, law_of, project

F = Fraction
pairs = st.integers(2, 3).flatmap(pmf_pairs)
counts = st.integers(1, 3)


def one_level(p, q, count, pick, verify):
    """Return the law of (first token, accepted) for ``count`` siblings and a horizon of two tokens."""
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
