"""Each check on engines kills a bug planted in transformers at run time, and holds on the library as it is.

The engine is a pair of tables: nothing is wrong with what the library returns for them, so every control is clean.
"""

from __future__ import annotations

from functools import cache

import pytest
from transformers.generation import candidate_generator, utils

from specverify.base.verdict import Status
from specverify.checks import CHECKS, Conditions, check_named
from specverify.checks import acceptance_law as acceptance
from specverify.checks.observed_runs import Run, Seen
from specverify.engines.huggingface.generation import assisted_engine
from specverify.engines.huggingface.rows import BASE, TableRow, row_subject, rows
from specverify.engines.huggingface.special import table_engine
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.subject import Forward, Observed

LOOP = (utils.GenerationMixin, "_assisted_decoding")
SAMPLING = (utils, "_speculative_sampling")
CROP = "number_of_tokens_to_crop = candidate_length - n_matches"
SMALL = BASE._replace(vocabulary=3)
ENDING = SMALL._replace(eos=(1,))
TOP_K = SMALL._replace(top_k=2)


def verdict_of(check, setting=SMALL, build=table_engine, **options):
    subject = row_subject("planted", TableRow(build, setting, **options))
    chosen = (check_named(check),)
    return next(iter(verify_subject(subject, Checklist(chosen, Conditions()))))


@cache
def unplanted(check, setting=SMALL, build=table_engine):
    """The control beside every planted bug."""
    return verdict_of(check, setting, build).status


PLANTED = {
    "processors on the last row only": (
        "processors_see_their_prefix",
        SMALL,
        *LOOP,
        "for i in range(candidate_length + 1):",
        "for i in range(candidate_length, candidate_length + 1):",
    ),
    "processors shown all drafts at every row": (
        "processors_see_their_prefix",
        SMALL,
        *LOOP,
        "logits_processor(candidate_input_ids[:, : cur_len + i], new_logits[:, i, :])",
        "logits_processor(candidate_input_ids, new_logits[:, i, :])",
    ),
    "scores of the first row for every token": (
        "scores_match",
        SMALL,
        *LOOP,
        "scores += tuple(new_logits[:, i, :] for i in range(newly_added_length))",
        "scores += tuple(new_logits[:, 0, :] for i in range(newly_added_length))",
    ),
    "one score too many": (
        "scores_match",
        SMALL,
        *LOOP,
        "scores += tuple(new_logits[:, i, :] for i in range(newly_added_length))",
        "scores += tuple(new_logits[:, i, :] for i in range(min(newly_added_length + 1, new_logits.shape[1])))",
    ),
    "raw logits are processed ones": (
        "scores_match",
        SMALL._replace(temperature=2.0),
        *LOOP,
        "next_token_logits = new_logits.clone()",
        "next_token_logits = new_logits",
    ),
    "the assistant's config is written to": (
        "inputs_unchanged",
        SMALL,
        candidate_generator.AssistedCandidateGenerator,
        "get_candidates",
        "input_ids = input_ids.to(self.assistant_model.device)",
        "self.assistant_model.generation_config.num_assistant_tokens = 7",
    ),
    "end of sequence ignored inside a block": (
        "stop_law",
        ENDING,
        *LOOP,
        "valid_tokens = valid_tokens[:, :num_drafted]",
        "pass",
    ),
    "one token too few": (
        "stop_law",
        SMALL,
        *LOOP,
        "this_peer_finished = unfinished_sequences.max() == 0",
        "this_peer_finished = unfinished_sequences.max() == 0 or new_cur_len >= generation_config.max_length - 1",
    ),
    "every draft rejected, which is lossless": (
        "acceptance_law",
        SMALL,
        *SAMPLING,
        "is_accepted = r_i <= probability_ratio",
        "is_accepted = torch.zeros_like(probability_ratio, dtype=torch.bool)",
        "p_prime = torch.clamp((p_n_plus_1 - q_n_plus_1), min=0)",
        "p_prime = p_n_plus_1.clone()",
    ),
}


@pytest.mark.thorough(keep=9)
@pytest.mark.usefixtures("named_checks_alone")
@pytest.mark.parametrize("case", PLANTED.values(), ids=PLANTED)
def test_a_planted_bug_is_refuted_by_its_check(planted, case):
    check, setting, owner, name, *lines = case
    assert unplanted(check, setting) is Status.HOLDS
    planted(owner, name, *lines)
    found = verdict_of(check, setting)
    assert found.status is Status.REFUTED
    assert found.counterexample.then


@pytest.mark.thorough
@pytest.mark.parametrize("crop", ["max(candidate_length - n_matches - 1, 0)", "candidate_length - n_matches + 1"])
def test_a_cache_cropped_by_one_token_too_few_or_too_many_is_named(planted, crop):
    """A network's cache says nothing of its own; a table's would raise at the forward pass where it happens."""
    assert unplanted("cache_equals_prefill", SMALL, assisted_engine) is Status.HOLDS
    planted(*LOOP, CROP, f"number_of_tokens_to_crop = {crop}")
    found = verdict_of("cache_equals_prefill", build=assisted_engine)
    assert found.status is Status.REFUTED
    assert "before forward pass 2" in found.statement


@pytest.mark.thorough
def test_a_lossless_rule_that_always_rejects_passes_the_law_and_nothing_else_sees_it(planted):
    planted(*PLANTED["every draft rejected, which is lossless"][2:])
    assert verdict_of("law_is_target").status is Status.HOLDS


@pytest.mark.thorough
def test_support_at_the_boundary_depends_on_one_comparison(planted):
    found = verdict_of("support_at_boundary_draws", TOP_K)
    assert found.status is Status.REFUTED
    assert "every uniform is exactly 0" in found.counterexample.let[1]
    planted(*SAMPLING, "is_accepted = r_i <= probability_ratio", "is_accepted = r_i < probability_ratio")
    assert verdict_of("support_at_boundary_draws", TOP_K).status is Status.HOLDS


@pytest.mark.thorough
def test_a_documented_change_is_not_a_fault_and_any_other_is():
    heuristic = TOP_K._replace(assistant=(("num_assistant_tokens_schedule", "heuristic"),))
    row = rows()["assisted/heuristic"]
    documented = verdict_of("inputs_unchanged", heuristic, assisted_engine, documented=row.documented)
    assert documented.status is Status.HOLDS
    found = verdict_of("inputs_unchanged", heuristic, assisted_engine)
    assert found.status is Status.REFUTED
    assert "generation_config.num_assistant_tokens" in found.statement


@pytest.mark.thorough
def test_what_the_library_refuses_is_listed_in_its_words():
    row = rows()["assisted/two-prompts"]
    verdicts = list(verify_subject(row_subject("assisted/two-prompts", row), Checklist(CHECKS)))
    refused = [verdict for verdict in verdicts if verdict.status is Status.REFUSED]
    assert [verdict.statement for verdict in refused] == ["assisted generate is only supported for batch_size = 1"]
    assert {verdict.status for verdict in verdicts} == {Status.REFUSED, Status.NOT_APPLICABLE}


def test_any_other_error_of_the_library_is_a_fault_and_no_refusal():
    row = rows()["assisted/two-prompts"]._replace(refusal="something it does not say")
    subject = row_subject("assisted/two-prompts", row)
    assert next(iter(verify_subject(subject, Checklist(CHECKS[1:2])))).status is Status.UNUSABLE


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["ensemble/plain", "ensemble/greedy"])
def test_the_documented_lossy_mode_has_its_declared_law(name, planted):
    row = rows()[name]
    found = verdict_of("law_is_declared", row.setting, row.build, declared=row.declared)
    assert found.status is (Status.DECLARED_BIAS if name == "ensemble/plain" else Status.HOLDS)
    assert found.figures["tv"] < 1e-6
    planted(*SAMPLING, "probability_ratio = 1.0 - assistant_ensemble_weight", "probability_ratio = 0.9")
    if name == "ensemble/plain":
        wrong = verdict_of("law_is_declared", row.setting, row.build, declared=row.declared)
        assert wrong.status is Status.REFUTED


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("gemma4-assistant/plain", "law_is_target"),
        ("prompt-lookup/cache-passed-in", "law_is_target"),
        ("prompt-lookup/guidance", "law_is_target"),
        ("prompt-lookup/stop-strings", "stop_law"),
        ("prompt-lookup/greedy", "scores_match"),
    ],
)
def test_findings_of_this_version_are_still_there(name, check):
    """What ``docs/findings`` says of the tested version; a library that mends one of them changes this list."""
    row = rows()[name]
    found = verdict_of(check, row.setting, row.build, tells=row.tells)
    assert found.status is Status.REFUTED


def test_mass_of_drafts_is_counted_where_they_were_reached():
    """A round of two drafts: the second is reached where the first came out, and nothing is reached behind a stop."""
    runs = (
        Run(Observed((1, 2), (Forward(0, (0, 1, 2)),)), (((1, 2), 0.5),)),
        Run(Observed((3,), (Forward(0, (0, 1, 2)),)), (((3,), 0.25),)),
        Run(Observed((1,), (Forward(0, (0, 1, 2)),)), (((1,), 0.25),)),
    )
    drafted, emitted = acceptance._masses(Seen(runs, (), {}, (0,)))
    assert {place: dict(masses) for place, masses in drafted.items()} == {((0,), ()): {1: 1.0}, ((0,), (1,)): {2: 0.5}}
    assert {place: dict(masses) for place, masses in emitted.items()} == {((0,), ()): {1: 0.75}, ((0,), (1,)): {2: 0.5}}
