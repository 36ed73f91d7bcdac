"""The first line of a refutation names the fault in the words of decoding: wrong programs, each with its sentence."""

from __future__ import annotations

import random

import numpy as np
import pytest

from specverify.checks.explaining import round_faults
from specverify.checks.explaining.decoder_counterexamples import law_counterexample, outcome_counterexample
from specverify.checks.explaining.engine_paths import KeptPaths, draws_of, with_pmfs
from specverify.checks.explaining.given_drafts import GivenDrafts
from specverify.checks.explaining.one_number_rules import Accepted, Replaced, accept_rule, powered, replace_rule
from specverify.checks.explaining.round_faults import fault_of_rounds, named_fault
from specverify.checks.explaining.round_rules import ModelRows, excess
from specverify.checks.explaining.tree_readings import tree_reading
from specverify.laws.enumeration import decoder_law, whole_run
from specverify.laws.law import target_law
from specverify.laws.paths import paths
from specverify.laws.scenarios import Scenario
from specverify.reference import warpers
from specverify.subjects.engine import engine_subject
from specverify.subjects.forms import BATCHED, LOGITS, Form
from specverify.subjects.subject import InScenario
from specverify.subjects.tree_verifier import tree_subject
from specverify.subjects.verifier import verifier_subject
from specverify.testing import SpeculationRefuted, check_engine, check_verifier

RNG = np.random.default_rng()
SMALL = Scenario("generic", 2, (0,), 2, seed=0)
FOUR = Scenario("generic", 4, (0,), 4, seed=0)
TARGET = ((0.2, 0.3, 0.5), (0.5, 0.25, 0.25), (0.1, 0.8, 0.1))
DRAFT = ((0.6, 0.3, 0.1), (0.2, 0.4, 0.4), (0.3, 0.4, 0.3))


def drawn(row):
    row = np.maximum(row, 0)
    return int(RNG.choice(len(row), p=row / row.sum()))


def norm(row):
    return row / row.sum() if row.any() else row


def verifier(accept=lambda p, q: p / q, replace=lambda p, q: p - q, bonus=lambda p: p[-1]):
    def verify(p, q, draft_tokens):
        tokens = []
        for i, token in enumerate(draft_tokens.tolist()):
            if RNG.random() < accept(p[i, token], q[i, token]):
                tokens.append(token)
                continue
            row = replace(p[i], q[i])
            return [*tokens, drawn(row if (row > 0).any() else p[i])]
        return [*tokens, drawn(bonus(p))]

    return verify


def in_scenario(verify, gamma=1, scenario=SMALL):
    return InScenario(verifier_subject(verify, "it", (gamma,)).variants[0], scenario, rational=False)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"replace": lambda p, q: p},
            "a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0)): in place of",
        ),
        ({"replace": lambda p, q: q - p}, "a rejected draft is replaced by a draw from norm(max(q - p, 0)), expected"),
        (
            {"replace": lambda p, q: np.maximum(p - q, 0.01)},
            "a rejected draft is replaced by a draw from norm(max(p - q, 0.01)), expected norm(max(p - q, 0)): in",
        ),
        (
            {"replace": lambda p, q: np.maximum(p - q, 0) + 0.02},
            "a rejected draft is replaced by a draw from norm(max(p - q, 0) + 0.02), expected norm(max(p - q, 0)): in",
        ),
        (
            {"replace": lambda p, q: 0.8 * norm(np.maximum(p - q, 0)) + 0.2 * p},
            "a rejected draft is replaced by a draw from norm(max(p - q, 0)), mixed with a share 0.2 of p, expected",
        ),
        (
            {"accept": lambda p, q: 1 - p / q},
            "drafts are accepted with probability 1 - p/q, expected min(1, p/q): draft 1, token 0 (p = 0.571",
        ),
        ({"replace": lambda p, q: abs(p - q)}, "a rejected draft is replaced by a draw from norm(|p - q|), expected"),
        (
            {"accept": lambda p, q: q / p},
            "drafts are accepted with probability min(1, q/p), expected min(1, p/q): draft 1",
        ),
        ({"accept": lambda p, q: (p / q) ** 3}, "drafts are accepted with probability min(1, (p/q)^3), expected min(1"),
        ({"accept": lambda p, q: p / (q + 0.1)}, "drafts are accepted with probability min(1, p/(q + 0.1)), expected"),
        (
            {"accept": lambda p, q: 1.25 * p / q},
            "drafts are accepted with probability min(1, 1.25 p/q), expected min(1,",
        ),
        (
            {"accept": lambda p, q: 1.0},
            "drafts are accepted always, expected min(1, p/q): draft 1, token 1 (p = 0.429, q",
        ),
        (
            {"bonus": lambda p: p[-2]},
            "the bonus token is drawn from the row of p before the last draft, expected p after",
        ),
        (
            {"replace": lambda p, q: np.exp(norm(np.maximum(p - q, 0)))},
            "a rejected draft is replaced by a draw from softmax(norm(max(p - q, 0))), as if the probabilities were lo",
        ),
        (
            {"bonus": lambda p: np.eye(len(p[-1]))[p[-1].argmax()]},
            "the bonus token is the argmax of p, expected a draw from p after the last draft: drawn from (",
        ),
        (
            {"replace": lambda p, q: np.ones(len(p)), "bonus": lambda p: np.ones(len(p[-1]))},
            "each token that is not a draft is drawn from all tokens alike, expected norm(max(p - q, 0)) after a rejec",
        ),
    ],
)
def test_a_wrong_part_of_a_round_is_named(wrong, said):
    assert fault_of_rounds(in_scenario(verifier(**wrong))).sentence.startswith(said)


def test_a_right_round_has_no_fault():
    assert fault_of_rounds(in_scenario(verifier())) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"replace": lambda p, q: p - 0.9 * q},
            "a rejected draft is replaced by a draw from norm(max(p - 0.9 q, 0)), expected norm(max(p - q, 0)): in",
        ),
        (
            {"replace": lambda p, q: np.maximum(p - q, 0) ** 2},
            "a rejected draft is replaced by a draw from norm(max(p - q, 0)^2), expected norm(max(p - q, 0)): in",
        ),
        (
            {"replace": lambda p, q: np.where(p > q, p / q, 0)},
            "a rejected draft is replaced by a draw from norm(p/q) on the tokens with p > q, expected norm(max(p - q, ",
        ),
        (
            {"accept": lambda p, q: np.ceil(min(1, p / q) * 16) / 16},
            "drafts are accepted by a coin with 16 values only, expected min(1, p/q): draft 1, token ",
        ),
        (
            {"accept": lambda p, q: min(p, 0.05) / q},
            "drafts are accepted with probability min(1, min(p, 0.05)/q): p is cut in the row p = (",
        ),
        (
            {"replace": lambda p, q: np.eye(len(p))[0]},
            "draft 1, token ",
        ),
    ],
)
def test_a_residual_of_several_tokens_is_named(wrong, said):
    assert fault_of_rounds(in_scenario(verifier(**wrong), 1, FOUR)).sentence.startswith(said)


def test_a_bonus_that_is_right_after_a_single_draft_is_named():
    wrong = verifier(bonus=lambda p: p[-2] if len(p) > 2 else p[-1])
    said = "the bonus token is drawn from the row of p before the last draft (after a single draft it is right), expec"
    assert fault_of_rounds(in_scenario(wrong, 2, FOUR._replace(horizon=3))).sentence.startswith(said)


def of_the_first_position(p, q, draft_tokens):
    """Take the residual of every rejected draft with q of the first position."""
    for i, token in enumerate(draft_tokens.tolist()):
        if RNG.random() >= p[i, token] / q[i, token]:
            left = np.maximum(p[i] - q[0], 0)
            return [*draft_tokens[:i].tolist(), drawn(left if left.any() else p[i])]
    return [*draft_tokens.tolist(), drawn(p[-1])]


def test_rules_that_two_drafts_do_not_tell_apart_are_both_named():
    here = in_scenario(of_the_first_position, 2, Scenario("generic", 3, (0, 1, 0), 3, seed=2))
    names = "max(p - q, 0) with q one position early, or max(p - q, 0) with the first row of q, expected"
    assert fault_of_rounds(here).sentence.startswith(f"a rejected draft is replaced by a draw from {names}")


def test_numbers_that_are_p_are_told_as_p():
    """In one round the replacement is drawn from p, in another from the residual, so no formula fits both."""
    cases = (
        ((0.5, 0.2, 0.3), (0.7, 0.2, 0.1), {0: 0.5, 1: 0.2, 2: 0.3}),
        ((0.1, 0.4, 0.5), (0.8, 0.1, 0.1), {1: 3 / 7, 2: 4 / 7}),
    )
    rounds = []
    for p, q, law in cases:
        rows = ModelRows((p, p), (q, q))
        rounds.append(GivenDrafts((0,), (0,), rows, None, (p[0] / q[0],), {0: law}, None, False, {}, 1e-9))
    sentence = named_fault(rounds, "").sentence
    assert "replaced by a draw from (0.5, 0.2, 0.3) = p, expected (0, 0, 1) = norm(max(p - q, 0))" in sentence


def test_rows_before_the_parameters_are_not_blamed_if_the_right_ones_fit_as_well():
    """The residual is so small that a rounding error of the rows may change all of it: p is drawn from in its place."""
    p, q = (0.49893372, 0.50097408, 3.0678e-05, 6.1521e-05), (0.49896428, 0.5009436, 6.13562e-05, 3.07604e-05)
    rows, law = ModelRows((p, (1.0, 0, 0, 0)), (q, (1.0, 0, 0, 0))), dict(enumerate(p))
    given = GivenDrafts((0,), (0,), rows, rows, (p[0] / q[0],), {0: law}, {0: 1.0}, True, {}, 1.4e-5)
    sentence = named_fault([given], "temperature=1").sentence
    assert sentence.startswith("a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0))")


def test_the_example_of_an_engine_is_a_test_with_a_program_line():
    rounds = []
    placed = {("accept", 0): "e.py:2"}
    for p, q, places in (((0.1, 0.4, 0.5), (0.8, 0.1, 0.1), {}), ((0.2, 0.4, 0.4), (0.5, 0.2, 0.3), placed)):
        rows = ModelRows((p, p), (q, q))
        rounds.append(GivenDrafts((0,), (0,), rows, None, (p[0],), {}, None, False, places, 1e-9, of_engine=True))
    assert named_fault(rounds, "").sentence.endswith("(p = 0.2, q = 0.5) with 0.2 instead of 0.4 (e.py:2)")


def test_a_fault_has_the_rows_after_the_text_of_its_example():
    fault = fault_of_rounds(in_scenario(verifier(replace=lambda p, q: p)))
    here = in_scenario(verifier()).prompt
    (context,) = fault.contexts
    assert context.text[: len(here)] == here
    assert context.q is not None
    assert (in_scenario(verifier()).task.target(context.text) == context.p).all()


def keeps_up_to_the_last_failure(p, q, draft_tokens):
    tokens = draft_tokens.tolist()
    failed = [i for i, token in enumerate(tokens) if RNG.random() >= p[i, token] / q[i, token]]
    if not failed:
        return [*tokens, drawn(p[-1])]
    left = p[failed[-1]] - q[failed[-1]]
    return [*tokens[: failed[-1]], drawn(left if (left > 0).any() else p[failed[-1]])]


def test_an_acceptance_up_to_the_last_test_that_fails_is_named():
    said = "drafts are accepted up to the last test that fails, not the first, expected min(1, p/q): draft 1, token"
    assert fault_of_rounds(in_scenario(keeps_up_to_the_last_failure, 2, FOUR)).sentence.startswith(said)


def test_a_fault_of_a_later_round_is_named():
    scenario = Scenario("generic", 2, (0,), 5, seed=0)
    late = in_scenario(verifier(), 1, scenario).task.target((0, 1, 1, 1)).astype(float)
    here = in_scenario(verifier(replace=lambda p, q: p if np.allclose(p, late) else p - q), 1, scenario)
    assert fault_of_rounds(here) is None
    law = decoder_law(here.remembering, here.prompt, 20_000)
    told = law_counterexample(here, law.probabilities, target_law(here.task, here.prompt))
    assert told.fault.startswith("draft 1, token 0, is rejected and replaced by a draw from (0.333, 0.667) = p (test_")


def divides_by_the_largest_q(p, q, draft_tokens):
    for i, token in enumerate(draft_tokens.tolist()):
        if RNG.random() >= p[i, token] / q[i].max():
            left = p[i] - q[i]
            return [*draft_tokens[:i].tolist(), drawn(left if (left > 0).any() else p[i])]
    return [*draft_tokens.tolist(), drawn(p[-1])]


def test_an_acceptance_by_the_largest_entry_of_q_is_named():
    said = (
        "drafts are accepted with probability min(1, p/max(q)), by the largest entry of q, expected min(1, p/q): draft"
    )
    assert fault_of_rounds(in_scenario(divides_by_the_largest_q)).sentence.startswith(said)


def test_a_residual_of_squares_is_named():
    here = in_scenario(verifier(replace=lambda p, q: p**2 - q**2), 1, Scenario("generic", 3, (0,), 2, seed=0))
    said = "a rejected draft is replaced by a draw from norm(max(p^2 - q^2, 0)), expected norm(max(p - q, 0)): in place"
    assert fault_of_rounds(here).sentence.startswith(said)


def ratio_in_place_of_difference(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(p > q, p / q * q, 0.0)
    return left if left.sum() > 0 else p


def test_a_residual_with_a_nan_where_q_is_0_is_named_and_shown_where_it_is_not():
    point = Scenario("point_draft", 2, (0,), 3, seed=0)
    sentence = fault_of_rounds(in_scenario(verifier(replace=ratio_in_place_of_difference), 2, point)).sentence
    said = "a rejected draft is replaced by a draw from p on the tokens with p > q (p itself, not p - q), but all of p "
    assert sentence.startswith(f"{said}where q is 0 on one of them (0/0), expected norm(max(p - q, 0)): in place of")
    assert sentence.endswith("in another case, with p = (0.308, 0.385, 0.308) and q = (0.3, 0.3, 0.4)")


def squared(row):
    return np.maximum(row, 0) ** 2


def test_one_wrong_number_in_replacement_and_bonus_is_named_once():
    both = verifier(replace=lambda p, q: squared(p - q), bonus=lambda p: squared(p[-1]))
    sentence = fault_of_rounds(in_scenario(both)).sentence
    assert sentence.startswith("each token that is not a draft is drawn from norm(max(p - q, 0)^2), expected")
    of_bonus = fault_of_rounds(in_scenario(verifier(bonus=lambda p: squared(p[-1])))).sentence
    assert of_bonus.startswith(
        "the bonus token is drawn from p at a further temperature of 0.5, expected p after the last draft"
    )
    apart = verifier(replace=lambda p, q: squared(p - q), bonus=lambda p: p[-1] ** 3)
    assert "each token that is not a draft" not in fault_of_rounds(in_scenario(apart)).sentence


def test_a_token_after_a_replacement_is_named_and_not_the_acceptance():
    def by_length(p, q, draft_tokens):
        tokens = verifier()(p, q, draft_tokens)
        return [*tokens, drawn(p[-1])] if len(tokens) == len(draft_tokens) else tokens

    def otherwise_right(p, q, draft_tokens):
        tokens = verifier()(p, q, draft_tokens)
        return [*tokens, drawn(p[-1])] if tuple(tokens[:1]) != tuple(draft_tokens[:1].tolist()) else tokens

    said = "the round does not end with the token that replaces a rejected draft: draft 1 (1) is replaced by 0, and"
    assert fault_of_rounds(in_scenario(by_length)).sentence.startswith(said)
    assert fault_of_rounds(in_scenario(otherwise_right, 2)).sentence.startswith(said)
    assert "does not end" not in fault_of_rounds(in_scenario(verifier(accept=lambda p, q: 1))).sentence


def test_a_product_that_does_not_start_again_is_named():
    def never_starts_again(p, q, draft_tokens):
        joint = 1.0
        for i, token in enumerate(draft_tokens.tolist()):
            joint *= p[i, token] / q[i, token]
            if RNG.random() >= joint:
                row = p[i] - q[i]
                return [*draft_tokens[:i].tolist(), drawn(row if (row > 0).any() else p[i])]
        return [*draft_tokens.tolist(), drawn(p[-1])]

    here = in_scenario(never_starts_again, 2, Scenario("generic", 3, (0,), 3, seed=0))
    sentence = fault_of_rounds(here).sentence
    assert sentence.startswith("drafts are accepted with the product of p/q over all drafts so far (it does not start")


def test_the_case_itself_is_the_example_where_it_tells_something():
    assert "another case" not in fault_of_rounds(in_scenario(verifier(replace=lambda p, q: p))).sentence


@pytest.mark.parametrize(
    ("temperature", "said"),
    [
        (0.7, "the residual with the temperature 0.7 applied a second time, norm(max(p - q, 0)^(1/0.7))"),
        (0.5, "norm(max(p - q, 0)^1.43)"),
        (1.0, "norm(max(p - q, 0)^1.43)"),
    ],
)
def test_a_temperature_of_the_residual_is_named_if_it_is_the_temperature_set(temperature, said):
    rows = [((0.5, 0.3, 0.2), (0.1, 0.1, 0.8)), ((0.4, 0.35, 0.25), (0.25, 0.1, 0.65))]
    laws = [norm(np.maximum(np.subtract(p, q), 0) ** (1 / 0.7)) for p, q in rows]
    seen = [Replaced(p, q, dict(enumerate(law)), 1e-9) for (p, q), law in zip(rows, laws, strict=True)]
    assert replace_rule(seen, temperature) == said


@pytest.mark.parametrize(("share", "deviates"), [(0.9, True), (1.0, False)])
def test_a_path_that_deviates_is_shown_before_heavier_ones(share, deviates):
    here = in_scenario(verifier(replace=lambda p, q: p - share * q), 2, Scenario("generic", 3, (0, 1, 0), 3, seed=2))
    told = outcome_counterexample(here, (1, 0, 1), "it comes out")
    assert any("; expected " in line for line in told.because) == deviates
    assert sum(line.startswith("with probability ") for line in told.because) == (1 if deviates else 3)


def keeps_one_more(target_logits, draft_logits, draft_tokens, temperature=1.0, top_k=0):
    def pmfs(logits, k):
        least = np.sort(logits, axis=-1)[:, -min(k or logits.shape[-1], logits.shape[-1])]
        powers = np.where(logits < least[:, None], 0.0, np.exp((logits - logits.max()) / temperature))
        return powers / powers.sum(-1, keepdims=True)

    return verifier()(pmfs(target_logits, top_k and top_k + 1), pmfs(draft_logits, top_k), draft_tokens)


def test_a_target_with_another_top_k_is_named():
    variant = next(
        one
        for one in verifier_subject(keeps_one_more, "it", form=LOGITS).variants
        if "temperature=0.7 top_k=2" in one.label
    )
    here = InScenario(variant, Scenario("generic", 3, (0, 1, 0), 3, seed=2), rational=False)
    said = "p is taken with top_k=3 in the place of 2: draft 1, token "
    assert fault_of_rounds(here).sentence.startswith(said)


def top_p_first(target_logits, draft_logits, draft_tokens, temperature=1.0, top_k=0, top_p=1.0):
    def pmfs(logits):
        powers = np.exp(logits - logits.max(-1, keepdims=True))
        rows = [warpers.top_p(row, top_p) for row in powers / powers.sum(-1, keepdims=True)]
        rows = [warpers.top_k(row, top_k) if top_k else row for row in rows]
        return np.array([row ** (1 / temperature) / (row ** (1 / temperature)).sum() for row in rows])

    return verifier()(pmfs(target_logits), pmfs(draft_logits), draft_tokens)


@pytest.mark.parametrize("shape", ["generic", "peaked"])
def test_sampling_parameters_in_another_order_are_named(shape):
    """In the peaked scenario, all wrong values are 0 or 1."""
    scenario = Scenario(shape, 2, (0,), 2, seed=int(shape == "generic"))
    subject = verifier_subject(top_p_first, "it", form=LOGITS)
    variant = next(one for one in subject.variants if "temperature=1.5 top_k=2 top_p=0.8" in one.label)
    fault = fault_of_rounds(InScenario(variant, scenario, rational=False))
    assert fault.sentence.startswith("p is taken with top_p=0.8 applied before temperature=1.5: draft 1, token 0 (p")


def cut_by_a_sorted_mask(target_logits, draft_logits, draft_tokens, temperature=1.0, top_p=1.0):
    def pmfs(logits):
        powers = np.exp((logits - logits.max(-1, keepdims=True)) / temperature)
        rows = powers / powers.sum(-1, keepdims=True)
        ordered = -np.sort(-rows, axis=-1)
        cut = np.where(np.cumsum(ordered, axis=-1) - ordered >= top_p, 0.0, rows)
        return cut / cut.sum(-1, keepdims=True)

    return verifier()(pmfs(target_logits), pmfs(draft_logits), draft_tokens)


def test_a_mask_in_sorted_order_is_named():
    variants = verifier_subject(cut_by_a_sorted_mask, "it", form=LOGITS).variants
    variant = next(one for one in variants if "temperature=1.5 top_p=0.8" in one.label)
    here = InScenario(variant, Scenario("generic", 3, (0, 1, 0), 2, seed=2), rational=False)
    said = "p is cut by a mask of top_p that belongs to the sorted probabilities, applied to those in order of the"
    assert fault_of_rounds(here).sentence.startswith(said)


def wrong_for_tokens(p, q, draft_tokens):
    """Accept token 2 with a probability that is too large by 0.001, token 1 with the square of p/q, and 0 rightly."""
    for place, token in enumerate(draft_tokens):
        ratio = p[place, token] / q[place, token]
        if RNG.random() >= (ratio, ratio**2, ratio + 0.001)[token]:
            rest = np.maximum(p[place] - q[place], 0)
            return [*draft_tokens[:place], drawn(rest if rest.any() else p[place])]
    return [*draft_tokens, drawn(p[-1])]


def test_a_small_deviation_is_not_quoted_before_a_large_one():
    variant = verifier_subject(wrong_for_tokens, "it").variants[0]
    here = InScenario(variant, Scenario("generic", 3, (0, 1, 0), 3, seed=2), rational=False)
    assert fault_of_rounds(here).sentence.startswith("draft 1, token 1 (")


def bonus_behind_the_longest_row(p, q, draft_tokens, lengths):
    tokens = np.full((len(p), draft_tokens.shape[1] + 1), -1)
    for row, length in enumerate(lengths.tolist()):
        for i in range(length):
            token = draft_tokens[row, i]
            if RNG.random() * q[row, i, token] >= p[row, i, token]:
                left = p[row, i] - q[row, i]
                tokens[row, i] = drawn(left if (left > 0).any() else p[row, i])
                break
            tokens[row, i] = token
        else:
            tokens[row, length] = drawn(p[row, -1])
    return tokens


@pytest.mark.parametrize(
    ("horizon", "said"), [(1, "without drafts drawn from (1, 0) instead of ("), (3, ": drawn from (1, 0) instead of (")]
)
def test_a_bonus_from_a_padded_position_is_named(horizon, said):
    variant = verifier_subject(bonus_behind_the_longest_row, "it", form=BATCHED).variants[1]
    here = InScenario(variant, Scenario("generic", 2, (0,), horizon, seed=0), rational=False)
    sentence = fault_of_rounds(here).sentence
    assert sentence.startswith("the bonus token is drawn from (1, 0, ...), the row that p has at padded positions, exp")
    assert said in sentence
    assert " (test_round_faults.py:" in sentence


def bonus_as_of_a_rejected_padding(p, q, draft_tokens, lengths):
    tokens = bonus_behind_the_longest_row(p, q, draft_tokens, lengths)
    for row, length in enumerate(lengths.tolist()):
        if length < draft_tokens.shape[1] and tokens[row, length] >= 0:
            left = np.maximum(p[row, length] - q[row, length], 0)
            tokens[row, length] = drawn(left if left.any() else p[row, length])
    return tokens


def test_a_bonus_from_a_residual_at_a_padded_position_is_named():
    variant = verifier_subject(bonus_as_of_a_rejected_padding, "it", form=BATCHED).variants[1]
    here = InScenario(variant, Scenario("generic", 2, (0,), 1, seed=0), rational=False)
    sentence = fault_of_rounds(here).sentence
    assert sentence.startswith("the bonus token is drawn from norm(max(p - q, 0)) with q = (0.75, 0, ..., 0.25), ")


def test_what_no_formula_fits_is_told_in_numbers_alone():
    sentence = fault_of_rounds(in_scenario(verifier(accept=lambda p, q: 0.1 + 0.5 * p * q))).sentence
    assert sentence.startswith(
        "draft 1, token 0 (p = 0.571, q = 0.333) is accepted with probability 0.195 (test_round_"
    )
    assert sentence.endswith("expected 1 = min(1, p/q)")


def test_drafts_that_count_behind_a_rejection_are_told():
    def verify(p, q, draft_tokens):
        kept = sum(RNG.random() * q[i, x] < p[i, x] for i, x in enumerate(draft_tokens.tolist()))
        row = p[kept] if kept == len(draft_tokens) else np.maximum(p[kept] - q[kept], 0)
        return [*draft_tokens[:kept].tolist(), drawn(row if row.any() else p[kept])]

    here = in_scenario(verify, 2, SMALL._replace(horizon=3))
    said = "drafts are accepted by the number of tests that pass, also after the first rejection (no cumulative produ"
    assert fault_of_rounds(here).sentence.startswith(said)


def choose(pmf):
    return random.choices(range(3), pmf)[0]


def plain(last=0, length=2):
    new = [last]
    for _ in range(length):
        new.append(choose(TARGET[new[-1]]))
    return new[1:]


def one_product(p, q, draft_tokens):
    """Keep drafts while one uniform is below the running product of p/q."""
    u, product, tokens = RNG.random(), 1.0, []
    for i, token in enumerate(draft_tokens.tolist()):
        product *= p[i, token] / q[i, token]
        if u >= product:
            left = p[i] - q[i]
            return [*tokens, drawn(left if (left > 0).any() else p[i])]
        tokens.append(token)
    return [*tokens, drawn(p[-1])]


@pytest.mark.thorough
def test_one_uniform_and_a_product_without_limit_are_both_told():
    (verdict,) = check_verifier(one_product, gammas=(2,), checks=["draws_are_independent"], on_fail=None)
    example = verdict.counterexample
    assert example.fault.startswith("drafts are accepted while one uniform is below the running product of p/q, which")
    assert any(line.startswith("random numbers are used twice: ") for line in example.because)


def resamples_from_p(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = TARGET[new[-1]], DRAFT[new[-1]]
        draft = choose(q)
        new.append(draft if random.random() < p[draft] / q[draft] else choose(p))
    return new[1:]


@pytest.mark.thorough
def test_an_engine_is_refuted_with_the_fault_in_the_first_line():
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(resamples_from_p, plain, checks=["law_is_target"])
    first, *others = str(raised.value).splitlines()
    assert ": a rejected draft is replaced by a draw from p, expected norm(max(p - q, 0))" in first
    assert any("drafted " in line and "(q = " in line for line in others)
    assert not any("replay" in line or "draws below" in line for line in others)


def test_the_comparisons_of_a_lookup_tell_the_pmf_that_it_looked_in():
    with engine_subject(resamples_from_p, plain, "it").programs[0].open() as run:
        path = next(iter(paths(run)))
        first = with_pmfs(KeptPaths(run), draws_of(path.decisions), 3, {})[0]
    assert (first.outcome, first.pmf) == (0, pytest.approx(DRAFT[0]))


def warmer_target(last=0, length=2):
    new = [last]
    while len(new) <= length:
        p, q = [mass**0.5 for mass in TARGET[new[-1]]], DRAFT[new[-1]]
        p = [mass / sum(p) for mass in p]
        draft = choose(q)
        accepted = random.random() < p[draft] / q[draft]
        new.append(draft if accepted else choose([max(a - b, 0) for a, b in zip(p, q, strict=True)]))
    return new[1:]


def softmax_rows(logits, temperature=0.5):
    powers = np.exp(np.array(logits) / temperature)
    return (powers / powers.sum(-1, keepdims=True)).tolist()


@pytest.mark.thorough
def test_a_temperature_is_named_where_the_paths_can_be_read_with_it_alone(monkeypatch):
    monkeypatch.setitem(globals(), "TARGET", softmax_rows([[2.0, 0.5, 1.0], [0.2, 1.5, 0.1], [1.0, 1.0, 0.3]]))
    monkeypatch.setitem(globals(), "DRAFT", softmax_rows([[1.0, 1.0, 0.5], [0.5, 0.8, 0.9], [0.2, 1.2, 0.6]]))
    with pytest.raises(SpeculationRefuted) as raised:
        check_engine(lambda: warmer_target(length=3), lambda: plain(length=3), checks=["law_is_target"], quick=True)
    said = ": p has a further temperature of 2: (0.629, 0.14, 0.231) in the place of p = (0.844, 0.042, 0.114) after ()"
    assert said in str(raised.value).splitlines()[0]


def first_line_of_tree(verify, drafts, tree, *, quick=True):
    """Return the first line of the refutation of ``verify``, with the trees whose nodes have the parents ``tree``."""
    with pytest.raises(SpeculationRefuted) as raised:
        check_verifier(verify, form="tree", drafts=drafts, trees=[tree], checks=["law_is_target"], quick=quick)
    return str(raised.value).splitlines()[0]


def siblings_without_residual(p, q, parents, tokens):
    for child, drafted in enumerate(tokens):
        if RNG.random() * q[child, drafted] < p[0, drafted]:
            return [int(drafted), drawn(p[child + 1])]
    return [drawn(p[0] - q[0] if (p[0] > q[0]).any() else p[0])]


@pytest.mark.thorough
def test_a_sibling_that_is_tested_with_p_is_named():
    first = first_line_of_tree(siblings_without_residual, "with_replacement", (-1, -1), quick=False)
    assert ": the siblings after a rejected child are tested with p, not with the residual: after #0 (token 1)" in first
    assert " is rejected, child #1 (token 1) is tested with u < 0.643 (test_round_" in first


def drawn_from_p_at_last(p, q, parents, tokens):
    left = p[0]
    for child, drafted in enumerate(tokens):
        if RNG.random() * q[child, drafted] < left[drafted]:
            return [int(drafted), drawn(p[child + 1])]
        left = norm(np.maximum(left - q[child], 0))
    return [drawn(p[0])]


def recursive_rejection(p, q, parents, tokens):
    left = p[0]
    for child, drafted in enumerate(tokens):
        if RNG.random() * q[child, drafted] < left[drafted]:
            return [int(drafted), drawn(p[child + 1])]
        rest = np.maximum(left - q[child], 0)
        left = norm(rest) if rest.any() else left
    return [drawn(left)]


@pytest.mark.thorough
def test_a_last_draw_from_p_behind_rejected_siblings_is_named():
    first = first_line_of_tree(drawn_from_p_at_last, "with_replacement", (-1, -1))
    said = ": the token after the last rejected child is drawn from p, not from the residual"
    assert said in first


def unscaled_residual(p, q, parents, tokens):
    left = p[0]
    for child, drafted in enumerate(tokens):
        if RNG.random() * q[child, drafted] < left[drafted]:
            return [int(drafted), drawn(p[child + 1])]
        left = np.maximum(left - q[child], 0)
    return [drawn(left if left.any() else p[0])]


@pytest.mark.thorough
def test_a_residual_of_siblings_that_is_not_divided_by_its_sum_is_named():
    first = first_line_of_tree(unscaled_residual, "with_replacement", (-1, -1))
    assert ": the residual after a rejected child is not divided by its sum: after #0 (token " in first
    assert "is tested with u < 0 " not in first
    assert " (test_round_faults.py:" in first


def duplicates_skipped(p, q, parents, tokens):
    new = [child for child, token in enumerate(tokens) if token not in tokens[:child]]
    return recursive_rejection(p[[0, *(child + 1 for child in new)]], q[new], parents, tokens[new])


def test_a_skipped_sibling_is_named_beside_the_other_rule_that_fits():
    first = first_line_of_tree(duplicates_skipped, "with_replacement", (-1, -1))
    assert (
        ", or a child with the token of a rejected sibling is skipped, and the residual is not reduced for it" in first
    )


def takes_p_of(row):
    """Return a verifier that goes on, after an accepted child, with the row of p at the index ``row(child)``."""

    def verify(p, q, parents, tokens):
        left = p[0].copy()
        for child, drafted in enumerate(tokens):
            if RNG.random() * left.sum() < left[drafted]:
                return [int(drafted), drawn(p[row(child)])]
            left[drafted] = 0
        return [drawn(left)]

    return verify


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (lambda child: child, ": p after an accepted child is the row of the node before it in the tree"),
        (lambda child: 0, ": p after an accepted child is the row of its parent"),
    ],
    ids=["before", "parent"],
)
def test_a_row_of_another_node_than_the_accepted_one_is_named(row, said):
    assert said in first_line_of_tree(takes_p_of(row), "top_k", (-1, -1, -1))


def reads_the_row_of(node):
    def verify(p, q, parents, tokens):
        first = drawn(p[0])
        kept = next((child for child, token in enumerate(tokens) if token == first), None)
        return [first] if kept is None else [first, drawn(p[node(kept) + 1])]

    return verify


@pytest.mark.parametrize(
    ("verify", "drafts", "said"),
    [
        (reads_the_row_of(lambda kept: 0), "top_k", " the token after #1 is drawn from p after #0 = ("),
        (reads_the_row_of(lambda kept: kept), "top_k", ""),
        (drawn_from_p_at_last, "with_replacement", "drawn from p = ("),
        (recursive_rejection, "with_replacement", ""),
    ],
)
def test_a_row_of_another_node_or_of_p_is_told_in_the_path_of_a_tree(verify, drafts, said):
    variant = tree_subject(verify, "it", Form(drafts=drafts), ((-1, -1),)).variants[0]
    here = InScenario(variant, Scenario("generic", 4, (0, 1, 0), 2, seed=0), rational=False)
    readings = [tree_reading(here, path.choices) for path in paths(whole_run(here.decoder, here.prompt))]
    told = [reading.example or reading.last for reading in readings]
    assert any(one.startswith(said) for one in told) if said else set(told) == {""}


def any_sibling(p, q, parents, tokens):
    child = int(RNG.integers(0, len(tokens)))
    drafted = int(tokens[child])
    if RNG.random() * q[child, drafted] < p[0, drafted]:
        return [drafted, drawn(p[child])]
    return [drawn(p[0] - q[child])]


def test_a_difference_without_a_name_is_a_difference_from_recursive_rejection():
    variant = tree_subject(any_sibling, "it", Form(drafts="with_replacement"), ((-1, -1),)).variants[0]
    here = InScenario(variant, Scenario("generic", 2, (0,), 2, seed=0), rational=False)
    law, expected = decoder_law(here.decoder, here.prompt, 20_000), target_law(here.task, here.prompt)
    example = law_counterexample(here, law.probabilities, expected)
    assert example.fault == "child #0 (token 1) is not accepted, expected u < 0.643 by recursive rejection"
    assert example.rows[0].startswith("new token 2")


def test_a_residual_that_is_truncated_a_second_time_has_a_name():
    rows = ModelRows(((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)), ((0.0, 0.2, 0.8),))
    formulas = round_faults._warped_residuals("temperature=1.5, top_k=1, top_p=0.8")
    laws = {name: [round(mass, 9) for mass in formula(rows, (2,), 0)] for name, formula in formulas.items()}
    assert laws == {
        "the residual with top_k=1 applied a second time": [1, 0, 0],
        "the residual with top_p=0.8 applied a second time": [1, 0, 0],
    }
    assert not round_faults._warped_residuals("temperature=0.7")


def counts_in_256ths(p, q, draft_tokens):
    for i, token in enumerate(draft_tokens.tolist()):
        if RNG.integers(256) / 256 >= p[i, token] / q[i, token]:
            left = np.maximum(p[i] - q[i], 0)
            return [*draft_tokens[:i].tolist(), drawn(left if left.any() else p[i])]
    return [*draft_tokens.tolist(), drawn(p[-1])]


def test_a_coin_with_few_values_is_named_with_one_draft_too():
    here = in_scenario(counts_in_256ths, 1, Scenario("peaked", 2, (0, 1, 0), 2, seed=1))
    said = "drafts are accepted by a coin with 256 values only, expected min(1, p/q): draft 1, token"
    assert fault_of_rounds(here).sentence.startswith(said)


def test_rounding_of_a_small_residual_is_not_named_as_a_wrong_replacement():
    """In float32 a residual of mass 0.004 has a relative error of 3e-6; the acceptance is what is wrong."""
    p = (0.02343750, 0.03906250, 0.05468750, 0.38085938, 0.49609375, 0.00195312, 0.00390625)
    q = (0.02343750, 0.03906250, 0.05468750, 0.38281250, 0.49414062, 0.00390625, 0.00195313)
    law = {0: 9.54e-07, 1: 2.86e-06, 2: 2.86e-06, 4: 0.5 - 4e-6, 6: 0.5 - 2.7e-6}
    rows = ModelRows((p,), (q,))
    given = [
        GivenDrafts((0,), (token,), rows, None, (q[token] / 0.2,), {0: law}, None, True, {}, 1e-6, of_engine=True)
        for token in (0, 1, 2)
    ]
    fault = named_fault(given, "")
    assert fault is not None
    assert fault.parts == {"accept"}
    exact = [one._replace(slack=1e-9, accept=(1.0,)) for one in given]
    assert named_fault(exact, "").parts == {"replace"}
    assert named_fault([one._replace(accept=(1.0,)) for one in given], "") is None


def test_a_certain_bonus_is_named_as_the_draft_and_as_the_row_before_it():
    def given(token):
        rows = tuple(tuple(float(other == one) for other in range(3)) for one in (token, token + 1))
        return GivenDrafts(
            (0,), (token,), ModelRows(rows, rows), None, (1.0,), {}, {token: 1.0}, True, {}, 1e-6, of_engine=True
        )

    said = (
        "the bonus token is the last draft again, or is drawn from the row of p before the last draft, expected a draw"
    )
    assert named_fault([given(0), given(1)], "").sentence.startswith(said)


@pytest.mark.parametrize(("factor", "said"), [(0.9, "with probability min(1, 0.9 p/q)"), (0.99999, "")])
def test_a_factor_that_is_printed_as_one_is_no_cause(factor, said):
    rows = [(0.2, 0.5), (0.3, 0.5), (0.1, 0.4)]
    observed = [Accepted(p, q, factor * p / q, 1e-12) for p, q in rows]
    assert accept_rule(observed) == said


@pytest.mark.parametrize("rows", [[(0.2, 0.5, 0.3)], [(0.2, 0.5, 0.3), (0.5, 0.2, 0.3)]], ids=["one", "two"])
def test_a_constant_acceptance_needs_two_rows_of_p(rows):
    """In one row of p, the same coin may test another draft."""
    observed = [Accepted(p, q, 0.1, 1e-12, row) for row in rows for p, q in zip(row[:2], (0.6, 0.4), strict=True)]
    said = "with the constant probability 0.1, whatever p and q are"
    assert accept_rule(observed) == (said if len(rows) > 1 else "")


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([(0.0, 0.5), (0.0, 0.4), (0.1, 0.2)], "with probability 0.3 if p is 0, as with the lower limit max(0.3, p/q)"),
        ([(0.0, 0.5), (0.1, 0.4), (0.1, 0.2)], "with probability max(0.3, min(1, p/q)): never less than 0.3"),
        ([(0.0, 0.5), (0.0, 0.5), (0.1, 0.2)], ""),
    ],
)
def test_a_lower_limit_of_the_acceptance_is_named(pairs, said):
    observed = [Accepted(p, q, max(0.3, p / q), 1e-12, (p, 1 - p, float(k))) for k, (p, q) in enumerate(pairs)]
    assert accept_rule(observed) == said


def test_an_upper_limit_of_the_acceptance_is_named():
    pairs = [(0.5, 0.5), (0.9, 0.5), (0.38, 0.4), (0.1, 0.2), (0.3, 0.4)]
    observed = [Accepted(p, q, min(0.9, p / q), 1e-12, (p, 1 - p)) for p, q in pairs]
    assert accept_rule(observed) == "with probability min(0.9, p/q): never more than 0.9"


@pytest.mark.parametrize(
    ("power", "said"),
    [
        (0.7, "q is used without a temperature of 0.7 in tests and replacements, other than in the draws of drafts: "),
        (2.0, "q is used with a temperature of 0.5 in tests and replacements, other than in the draws of drafts: "),
    ],
)
def test_another_temperature_of_q_in_the_tests_is_named(power, said):
    p, q = ((0.2, 0.3, 0.5), (0.4, 0.1, 0.5)), ((0.5, 0.1, 0.4), (0.1, 0.2, 0.7))

    def given(first, second):
        tested = [powered(row, power) for row in q]
        accept = tuple(min(1.0, p[i][token] / tested[i][token]) for i, token in enumerate((first, second)))
        law = dict(enumerate(excess(p[0], tested[0])))
        rows = ModelRows((*p, p[0]), (*q, q[0]))
        return GivenDrafts((0,), (first, second), rows, None, accept, {0: law}, None, True, {}, 1e-9, of_engine=True)

    both = [given(first, second) for first in range(3) for second in range(3)]
    assert named_fault(both, "").sentence.startswith(said)
    wrong = both[-1]._replace(accept=(0.9 * both[-1].accept[0], both[-1].accept[1]))
    assert "q is used" not in named_fault([*both[:-1], wrong], "").sentence


def test_a_certain_replacement_is_not_said_to_be_a_draw_from_q():
    """It is drawn by the row of q before; where that leaves one token, q may be certain of it too."""

    def verify(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if RNG.random() * q[i, token] >= p[i, token]:
                row = np.maximum(p[i] - q[i - 1], 0)
                return [*draft_tokens[:i], drawn(row if row.any() else p[i])]
        return [*draft_tokens, drawn(p[-1])]

    with pytest.raises(SpeculationRefuted) as refuted:
        check_verifier(verify, quick=True, checks=["law_is_target"])
    first = str(refuted.value).splitlines()[0]
    assert "replaced by a draw from (0, 1) (" in first
    assert "expected (1, 0) = norm(max(p - q, 0))" in first
