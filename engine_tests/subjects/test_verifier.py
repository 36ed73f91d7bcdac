"""Bare verifiers, enumerated as they are: the correct ones hold exactly, the wrong ones are refuted with their law."""

from __future__ import annotations

import random
from types import FunctionType

import numpy as np
import pytest
import torch

from reference import Task
from specverify.base.verdict import Status
from specverify.checks import Conditions, checks_named
from specverify.laws.enumeration import decoder_law
from specverify.laws.law import target_law, total_variation
from specverify.laws.tables import as_float64, rational_pmf
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.batch_call import arguments_of
from specverify.subjects.forms import ROW
from specverify.subjects.subject import SampledSetting
from specverify.subjects.verifier import build, verifier_subject
from specverify.testing import SpeculationRefuted, check_verifier
from test_support.shares import share_of
from test_support.verifiers import verifiers

pytestmark = pytest.mark.usefixtures("named_checks_alone")

CORRECT = (verifiers.race, verifiers.inverse_cdf, verifiers.log_space, verifiers.in_numpy)
CHEAP = checks_named({"law_is_target", "tokens_are_supported"})


def verdicts_of(verify, names, gammas=(2,), share=(0, 1), detect=0.05):
    checks = checks_named(names)
    subject = verifier_subject(verify, verify.__name__, gammas)
    settings = tuple(setting._replace(detect=detect) for setting in subject.settings)
    subject = subject._replace(scenarios=share_of(subject.scenarios, *share)).with_situations(SampledSetting, settings)
    return {verdict.check: verdict for verdict in verify_subject(subject, Checklist(checks, Conditions()))}


@pytest.mark.thorough
@pytest.mark.parametrize("verify", CORRECT, ids=lambda verify: verify.__name__)
def test_a_correct_verifier_is_exact_and_lossless(verify):
    """Each in a quarter of the scenarios, the next one in another; in all of them with the profile "thorough"."""
    names = {"law_is_target", "tokens_are_supported", "acceptance_is_optimal", "greedy_is_argmax"}
    found = verdicts_of(verify, names, share=(CORRECT.index(verify), len(CORRECT)))
    assert {verdict.status for verdict in found.values()} == {Status.HOLDS}
    assert found["law_is_target"].figures["tv"] < 1e-12
    assert found["law_is_target"].figures["rounds_of_two"] >= 1


@pytest.mark.thorough
def test_a_block_may_keep_more_than_token_after_token_and_no_more_than_a_lossless_rule_can():
    names, some = {"law_is_target", "acceptance_is_optimal"}, (8, 24)
    assert {verdict.status for verdict in verdicts_of(verifiers.as_a_block, names, share=some).values()} == {
        Status.HOLDS
    }
    everything = verdicts_of(verifiers.all_of_it, {"acceptance_is_optimal"}, share=some)["acceptance_is_optimal"]
    assert everything.status is Status.REFUTED


@pytest.mark.thorough
def test_a_verifier_without_a_bonus_accepts_as_often_as_one_with_it_and_one_that_redraws_does_not():
    """All drafts and nothing more is every draft accepted: the row is one token shorter than with a bonus."""
    rng, name = np.random.default_rng(), "acceptance_is_optimal"

    def no_bonus(p, q, draft_tokens):
        for i, token in enumerate(draft_tokens):
            if rng.random() >= p[i, token] / q[i, token]:
                rest = np.maximum(p[i] - q[i], 0)
                return [*draft_tokens[:i], rng.choice(len(rest), p=rest / rest.sum())]
        return draft_tokens

    def redrawn(p, q, draft_tokens):
        return [rng.choice(p.shape[1], p=p[0])]

    assert verdicts_of(no_bonus, {name}, gammas=(1,), share=(3, 40))[name].status is Status.HOLDS
    wasted = verdicts_of(redrawn, {name}, gammas=(1,), share=(3, 40))[name]
    assert wasted.status is Status.REFUTED
    said = "the first draft is accepted with probability "
    assert wasted.statement.startswith(said)
    assert " (inferred from the emitted tokens), optimal is " in wasted.statement


def one_position(p, q):
    """A task of two tokens whose first row is (p, q) after token 0, and which stays there."""
    return Task(as_float64(lambda tokens: rational_pmf(p)), as_float64(lambda tokens: rational_pmf(q)), horizon=2)


def test_a_uniform_used_twice_is_refuted_with_its_exact_distance():
    """P = (2, 3, 5)/10, q = (6, 2, 2)/10: token 0 is rejected when u >= 1/3 and replaced from (0, 1/4, 3/4).

    A fresh uniform gives token 1 with 1/4. The old one is uniform on [1/3, 1), so u < 1/4 never happens: token 2.
    The law of the first token is (.2, .2, .6), at total variation .1.
    """
    task = one_position((2, 3, 5), (6, 2, 2))
    law = decoder_law(build(verifiers.reused_uniform, arguments_of(verifiers.reused_uniform, ROW), 1, None, task), (0,))
    first = [sum(mass for new, mass in law.probabilities.items() if new[0] == token) for token in range(3)]
    assert first == pytest.approx([0.2, 0.2, 0.6], abs=1e-12)
    assert total_variation(law, target_law(task, (0,))).low == pytest.approx(0.1, abs=1e-12)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    "verify", [verifiers.reused_uniform, verifiers.one_uniform, verifiers.reseeded], ids=lambda verify: verify.__name__
)
def test_a_wrong_verifier_is_refuted(verify):
    found = verdicts_of(verify, {"law_is_target"})["law_is_target"]
    assert found.status is Status.REFUTED
    assert found.counterexample.because


@pytest.mark.thorough
def test_what_a_cumulative_sum_lacks_by_rounding_is_not_held_against_a_verifier():
    found = verdicts_of(verifiers.unscaled_inverse_cdf, {"tokens_are_supported"}, gammas=(1,))
    assert found["tokens_are_supported"].status is Status.HOLDS


@pytest.mark.thorough
def test_a_cumulative_sum_that_lacks_more_than_rounding_lets_a_forbidden_token_out():
    def verify(p, q, draft_tokens):
        return verifiers.unscaled_inverse_cdf(p * (1 - 1e-6), q, draft_tokens)

    found = verdicts_of(verify, {"tokens_are_supported"}, gammas=(1,))
    assert found["tokens_are_supported"].status is Status.REFUTED


@pytest.mark.thorough
def test_races_that_nothing_reads_decide_nothing():
    verdicts = verdicts_of(verifiers.clock_of_three, {"law_is_target"})
    assert verdicts["law_is_target"].status is Status.REFUTED


def test_what_needs_a_value_is_unknown_by_name_and_never_judged():
    for verdict in verdicts_of(verifiers.needs_value, {"law_is_target", "tokens_are_supported"}).values():
        assert verdict.status is Status.UNKNOWN
        assert "cannot be enumerated, only sampled (samples_fit_law, in a test with sampled=True)" in verdict.statement
        assert "verifiers.py:" in verdict.statement


@pytest.mark.thorough
def test_what_cannot_be_enumerated_is_sampled():
    """As often as it takes to see a distance of .3: uniform tokens are further than that from the target's."""
    found = verdicts_of(verifiers.needs_value, {"samples_fit_law"}, detect=0.3)["samples_fit_law"]
    assert found.status is Status.REFUTED
    assert found.figures["tv_observed"] > 0.3


def by_the_legacy_generator(p, q, draft_tokens):
    """Draws without looking, from NumPy's own generator and from the standard library's."""
    return [int(np.random.choice(p.shape[1])) if random.random() < 0.5 else 0]  # noqa: NPY002 - what is tested


@pytest.mark.parametrize("verify", [verifiers.in_numpy, verifiers.race, by_the_legacy_generator])
def test_a_sample_can_be_had_again_and_leaves_no_seed_behind(verify):
    """Also of a verifier that makes a fresh generator in every round, whose rounds must differ all the same."""
    (setting,) = verifier_subject(verify, verify.__name__, (2,)).settings
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist()  # noqa: NPY002
    counts = setting.sample(40, 5)
    assert counts == setting.sample(40, 5) != setting.sample(40, 6)
    assert len(counts) > 4
    assert before == (random.getstate(), np.random.get_state()[1].tolist(), torch.random.get_rng_state().tolist())  # noqa: NPY002


@pytest.mark.thorough
def test_three_lines_in_somebodys_test_file():
    with pytest.raises(SpeculationRefuted, match=r"used twice[\s\S]*Let[\s\S]*Refuted with it: law is target"):
        check_verifier(verifiers.one_uniform, gammas=(2,))
    verdicts = check_verifier(lambda p, q, draft_tokens: [0], gammas=(1,), on_fail=None)
    assert any(verdict.status is Status.REFUTED for verdict in verdicts)
    assert all(verdict.status is Status.HOLDS for verdict in check_verifier(verifiers.in_numpy, gammas=(1,)))


def in_numpy_by_value(p, q, draft_tokens):
    """Needs the value of a uniform, and arrays of NumPy: tensors have no ``tobytes``."""
    value = float(np.random.default_rng().random())
    assert p.tobytes()
    return [int(value * p.shape[1])]


@pytest.mark.thorough
def test_who_needs_a_value_and_knows_no_torch_is_given_numpy_arrays():
    """Torch is loaded here; that it needs a value says nothing of the arrays that it takes."""
    bare = FunctionType(in_numpy_by_value.__code__, {"np": np})
    found = verdicts_of(bare, {"samples_fit_law"}, detect=0.3)["samples_fit_law"]
    assert found.status is Status.REFUTED
