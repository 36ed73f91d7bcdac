"""Rules with one parameter and a declared bias: golden laws, bounds, what each bias costs, and the law declared."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    ALGORITHMS,
    Claim,
    Task,
    argmax,
    overlap,
    top_tokens,
    total_variation,
)
from reference.algorithms import (
    accept_if_likelier,
    bild,
    bild_released,
    clamped_scalar_residual,
    judge_decoding,
    lenience,
    mentored_decoding,
    resample_from_target,
    specdec,
    speculative_cascade,
    token_cascade,
    typical_acceptance,
    typical_sampling_released,
)
from reference.algorithms.mentored_decoding import clip_within, clipped, divergence
from reference.algorithms.typical_acceptance import typical_threshold
from reference.laws import autoregressive_law, chain_law
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law
from specverify.laws.tables import as_float64, table_pair
from test_support.laws.rational import P, Q, always, as_law, distance, examples, law_of, pmf, project, vector

RULES = [
    (lenience, {"lenience": Fraction(4, 5)}),
    (lenience, {"lenience": Fraction(1, 2)}),
    (resample_from_target, {}),
    (clamped_scalar_residual, {}),
    (accept_if_likelier, {}),
    (token_cascade, {"alpha": Fraction(1, 2)}),
    *((speculative_cascade, {"rule": rule, "alpha": Fraction(1, 4)}) for rule in speculative_cascade.RULES),
    (mentored_decoding, {"clip": Fraction(3, 2)}),
    (typical_acceptance, {"epsilon": 0.4, "delta": 0.8}),
    (typical_sampling_released, {"epsilon": 0.25, "delta": 0.8}),
    (judge_decoding, {"correct": ((0, 0), (1, 0))}),
    (specdec, {"beta": 2, "tau": 0.7}),
    (bild, {"fallback": Fraction(1, 4), "rollback": 1.0}),
    (bild_released, {"fallback": Fraction(1, 4), "rollback": 1.0}),
]
every_rule = pytest.mark.parametrize(("row", "options"), RULES, ids=lambda value: getattr(value, "__name__", None))
weights = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)


def normal(values):
    return pmf(*(Fraction(value, sum(values)) for value in values))


def one_position(row, p, q, prompt=(0,), **options):
    """Return the law of the first token, P(it is the draft), P(the draft is accepted) and the law of the draft."""
    decoder = row.build(Task(always(p), always(q), horizon=2), gamma=1, **options)

    def program(draws):
        done = decoder.step(draws, decoder.init(prompt))[1]
        return done.tokens[0], done.draft[:1], done.accepted

    law = law_of(program)
    hit = sum(mass for (token, draft, _), mass in law.items() if draft == (token,))
    kept = sum(mass for (_, _, accepted), mass in law.items() if accepted)
    drafts = project(law, lambda seen: seen[1])
    return project(law, lambda seen: seen[0]), hit, kept, drafts


# Golden numbers


@pytest.mark.parametrize(
    ("row", "options", "law", "bias", "accepted"),
    [
        (lenience, {"lenience": Fraction(4, 5)}, (".25", ".30", ".45"), ".05", ".65"),
        (lenience, {"lenience": Fraction(1, 2)}, (".40", ".30", ".30"), ".20", ".80"),
        (resample_from_target, {}, (".28", ".42", ".30"), ".20", ".60"),
        (clamped_scalar_residual, {}, (".20", ".45", ".35"), ".15", ".60"),
        (accept_if_likelier, {}, (".12", ".48", ".40"), ".18", ".40"),
        (token_cascade, {"alpha": Fraction(1, 2)}, (".12", ".48", ".40"), ".18", ".52"),
        (speculative_cascade, {"rule": "chow", "alpha": Fraction(1, 4)}, (".2", ".3", ".5"), "0", ".6"),
        (speculative_cascade, {"rule": "opt", "alpha": Fraction(1, 2)}, (".6", ".3", ".1"), ".4", "1"),
        (speculative_cascade, {"rule": "diff", "alpha": Fraction(-1, 5)}, (".2", ".3", ".5"), "0", ".6"),
        (speculative_cascade, {"rule": "token-v1", "alpha": Fraction(1, 4)}, (".62", ".33", ".05"), ".45", ".95"),
        (speculative_cascade, {"rule": "token-v2", "alpha": Fraction(1, 4)}, (".12", ".48", ".40"), ".18", ".52"),
        (judge_decoding, {"correct": ((0, 0),)}, (".6", ".3", ".1"), ".4", "1"),
        (judge_decoding, {"correct": ((1, 0),)}, (".2", ".3", ".5"), "0", ".6"),
        (specdec, {"beta": 3, "tau": 1.0}, ("1", "0", "0"), ".8", "1"),
        (specdec, {"beta": 2, "tau": 1.0}, ("0", "0", "1"), ".5", "0"),
        (specdec, {"beta": 3, "tau": 0.9}, ("0", "0", "1"), ".5", "0"),
        (bild, {"fallback": Fraction(1, 2), "rollback": 2.0}, ("1", "0", "0"), ".8", "1"),
        (bild, {"fallback": Fraction(1, 2), "rollback": 1.0}, ("0", "0", "1"), ".5", "0"),
        (bild, {"fallback": Fraction(2, 3), "rollback": 2.0}, ("0", "0", "1"), ".5", None),
    ],
)
def test_the_known_pair_has_its_law_bias_and_acceptance(row, options, law, bias, accepted):
    found, _, kept, _ = one_position(row, P, Q, **options)
    assert vector(found, 3) == pmf(*law).tolist()
    assert distance(found, as_law(P)) == Fraction(bias)
    assert accepted is None or kept == Fraction(accepted)


def test_the_typical_threshold_and_law_on_the_known_pair():
    """H = 1.0297, exp(-H) = .3571: delta .8 gives .2857, so 1/5 is rejected and 3/10 accepted."""
    assert typical_threshold(P, 0.4, 0.8) == pytest.approx(0.8 * math.exp(-1.0296530))
    fast = one_position(typical_acceptance, P, Q, epsilon=0.4, delta=0.8)
    assert (vector(fast[0], 3), fast[2]) == (pmf(0, ".3", ".7").tolist(), Fraction(2, 5))


def test_the_other_mode_matches_draws_from_the_typical_part_and_draws_again():
    """Here t is (0, 3/8, 5/8). Accepting by the threshold and drawing from t gives token 1 21/40: neither mode."""
    law, _, kept, _ = one_position(typical_sampling_released, P, Q, epsilon=0.4, delta=0.8)
    part = pmf(0, "3/8", "5/8")
    drawn_again = [d * z * (d_ == z_) for d_, d in enumerate(Q) for z_, z in enumerate(part)]
    assert kept == sum(drawn_again) == Fraction(7, 40)
    assert vector(law, 3) == (Q * part + (1 - kept) * part).tolist() == pmf(0, "27/64", "37/64").tolist()
    assert vector(law, 3) not in (pmf(0, "21/40", "19/40").tolist(), part.tolist())


def test_the_top_of_a_pmf_leaves_out_what_is_impossible_where_released_code_fills_up():
    """``torch.topk`` answers three places for (1, 0, 0); a stable sort of the same length stands for it here."""
    row = pmf(1, 0, 0)
    assert top_tokens(row, 3) == (0,)
    assert np.argsort(-row.astype(float), kind="stable")[:3].tolist() == [0, 1, 2]


def test_the_clip_of_a_divergence_on_the_known_pair():
    """KL(p || pi) = .05 at a = .74107, b = 1.64733, where .72947 of the drafts are accepted."""
    p, q = (np.array(row, dtype=float) for row in (P, Q))
    clip = clip_within(p, q, 0.05)
    pi = clipped(p, q, clip)
    assert (round(clip, 5), round(pi[2] / p[2], 5), round(overlap(pi, q), 5)) == (1.64733, 0.74107, 0.72947)
    assert divergence(p, pi) == pytest.approx(0.05)


# What acceptance costs


@every_rule
@examples(12)
@given(p=weights, q=weights)
def test_every_point_of_acceptance_above_the_overlap_costs_a_point_of_bias(row, options, p, q):
    """TV(law, p) >= P(out = d) - sum min(p, law of d), for any rule with one draft."""
    p, q = normal(p), normal(q)
    law, hit, kept, drafts = one_position(row, p, q, **options)
    if () in drafts:
        return  # BiLD asks the large model at once
    drafted = pmf(*(drafts.get((token,), 0) for token in range(3)))
    assert kept <= hit <= 1 - total_variation(pmf(*vector(law, 3)), drafted)
    assert distance(law, as_law(p)) >= hit - overlap(p, drafted)


@pytest.mark.parametrize("value", ["4/5", "1/2"])
def test_lenience_meets_the_price_with_equality_on_the_known_pair(value):
    law, hit, _, _ = one_position(lenience, P, Q, lenience=Fraction(value))
    assert distance(law, as_law(P)) == hit - overlap(P, Q)


@given(weights, weights, st.fractions(Fraction(1, 10), 1))
def test_lenience_never_multiplies_a_probability_by_more_than_one_over_l(p, q, value):
    p, q = normal(p), normal(q)
    law, _, kept, _ = one_position(lenience, p, q, lenience=value)
    assert all(law.get(token, 0) <= mass / value for token, mass in enumerate(p))
    assert kept == sum(min(other, mass / value) for mass, other in zip(p, q, strict=True))


@given(weights, weights)
def test_sampling_the_target_after_a_rejection_is_off_by_its_closed_form(p, q):
    p, q = normal(p), normal(q)
    law, _, kept, _ = one_position(resample_from_target, p, q)
    off = [law.get(token, 0) - mass for token, mass in enumerate(p)]
    assert off == [total_variation(p, q) * a - max(a - b, 0) for a, b in zip(p, q, strict=True)]
    assert kept == overlap(p, q)


@given(weights, weights, st.fractions(1, 6))
def test_a_clipped_pmf_is_one_within_its_band_and_nearer_to_the_draft(p, q, clip):
    p, q = normal(p), normal(q)
    pi = clipped(p, q, clip)
    assert sum(pi) == 1
    assert all(other <= clip * mass for mass, other in zip(p, pi, strict=True))
    assert overlap(p, q) <= overlap(pi, q) <= overlap(clipped(p, q, clip + 1), q)


@given(weights, weights, st.floats(0.001, 0.5))
def test_the_clip_of_a_budget_stays_within_it(p, q, budget):
    p, q = normal(p), normal(q)
    clip = clip_within(p, q, budget)
    pi = clipped(p, q, clip)
    assert divergence(p, pi) <= budget + 1e-9
    uses_it = divergence(p, pi) >= budget - 1e-6
    supported = sum(other for mass, other in zip(p, q, strict=True) if mass > 0)
    assert uses_it or float(overlap(pi, q)) == pytest.approx(float(supported)) or clip == 1


EVERYTHING = tuple((last, token) for last in range(3) for token in range(3))


@pytest.mark.parametrize(
    ("row", "options"),
    [
        (lenience, {"lenience": Fraction(1, 1000)}),
        (judge_decoding, {"correct": EVERYTHING}),
        (mentored_decoding, {"clip": 1000}),
        (speculative_cascade, {"rule": "chow", "alpha": 1}),
        (speculative_cascade, {"rule": "opt", "alpha": 1000}),
    ],
)
def test_a_rule_that_lets_everything_pass_drafts_with_the_drafter(row, options):
    law, hit, _, _ = one_position(row, P, Q, **options)
    assert (vector(law, 3), hit) == (Q.tolist(), 1)


def test_a_token_cascade_is_the_shortcut_that_samples_the_target():
    """In law "accept d in T, else sample p" is pi; speculative sampling of pi accepts at least as often."""
    found = one_position(token_cascade, P, Q, alpha=Fraction(1, 2))
    good = P.max() * Fraction(1, 2) <= P
    assert vector(found[0], 3) == (Q * good + (1 - (Q * good).sum()) * P).tolist()
    assert found[2] >= (Q * good).sum()


# The declared law


@pytest.mark.parametrize("gamma", [0, 1, 3])
def test_with_the_exact_split_the_recursion_gives_the_target(gamma):
    task = Task(*table_pair("generic", 3, 4), eos=(2,), horizon=4)

    def position(prefix, p, q):
        kept = [min(pair) for pair in zip(p, q, strict=True)]
        return kept, [mass - stays for mass, stays in zip(p, kept, strict=True)]

    assert chain_law(task, (0,), gamma, position) == target_law(task, (0,))
    assert autoregressive_law(task.target, task, (0,)) == target_law(task, (0,))
    assert chain_law(task._replace(horizon=0), (0,), gamma, position) == {(): 1}


@every_rule
def test_the_declared_law_holds_in_floats_too(row, options):
    target, draft = table_pair("generic", 3, 1)
    exact = row.declared_law(Task(target, draft, horizon=3), (0,), gamma=2, **options)
    task = Task(as_float64(target), as_float64(draft), horizon=3)
    declared = row.declared_law(task, (0,), gamma=2, **options)
    assert declared == pytest.approx({text: float(mass) for text, mass in exact.items()})
    assert dict(decoder_law(row.build(task, gamma=2, **options), (0,)).probabilities) == pytest.approx(declared)


@every_rule
def test_a_forbidden_token_comes_out_only_where_support_is_not_claimed(row, options):
    """Target (0, 1/4, 3/4) under a draft that prefers token 0."""
    p = pmf(0, "1/4", "3/4")
    law, _, _, _ = one_position(row, p, Q, **options)
    claims = next(item.claims for item in ALGORITHMS if item is row.ALGORITHM)
    assert Claim.SUPPORTED not in claims or 0 not in law
    assert argmax(p) in law or Claim.SUPPORTED not in claims


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: lenience.build(Task(always(P), always(Q)), lenience=0), "lenience is 0, expected"),
        (lambda: clipped(P, Q, Fraction(1, 2)), "clip is 1/2, expected"),
        (lambda: speculative_cascade.build(Task(always(P), always(Q)), rule="best"), "the rule is 'best', expected"),
        (lambda: token_cascade.build(Task(always(P), always(Q)), alpha=1), "alpha is 1, expected"),
        (lambda: typical_threshold(P, 2, 0.3), "epsilon is 2, expected"),
        (lambda: specdec.passes(P, 0, 0, 1.0), "beta is 0 and tau is 1.0, expected"),
        (lambda: bild.is_unlikely(P, 0, -1.0), "rollback is -1.0, expected"),
    ],
)
def test_a_parameter_out_of_range_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
