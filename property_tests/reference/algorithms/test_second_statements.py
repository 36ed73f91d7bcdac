"""Every row of the registry is stated a second time, in other words, by a test: which one, and that it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from property_tests.reference.algorithms import (
    test_biased_again,
    test_chains_again,
    test_heads_again,
    test_newest_again,
    test_trees_again,
)
from reference import ALGORITHMS

LOOPS = (test_chains_again, test_biased_again, test_heads_again, test_newest_again, test_trees_again)
OTHERS = {
    "nasd-released": "test_released_rules.py::test_nasd_as_released_is_its_loop_and_off_by_the_variance_of_a_coin",
    "bandit-spec": "test_bandit.py::test_the_bandit_is_the_loop_with_running_means",
    "sam-decoding": "test_longest_match.py::test_the_longest_match_is_the_automaton_s",
    "suffix-decoding": "test_suffix_counts.py::test_the_best_suffix_is_the_trie_s",
    "specinfer": "test_specinfer.py::test_every_law_is_that_of_the_algorithm",
    "transport-optimum": "test_transport.py::test_flow_cut_and_linear_programme_agree",
    "canonical-selection": "test_lists_and_hubs.py::test_no_other_weights_accept_more",
    "spechub": "test_lists_and_hubs.py::test_the_hub_moves_what_the_four_steps_move",
    "eagle-2": "test_dynamic_tree.py::test_a_dynamic_tree_holds_the_best_paths",
    "medusa": "test_heads.py::test_heads_make_a_product_that_is_prefix_closed",
    "redrafter": "test_released_drafters.py::test_beams_are_the_best_extensions_of_the_beams_before",
    "specexec": "test_released_drafters.py::test_the_budget_buys_the_most_probable_paths",
    "token-recycling": "test_recycled.py::test_recycled_tokens_are_those_of_the_matrix_in_the_loop",
    "rest": "test_retrieval.py::test_retrieval_keeps_the_most_frequent_prefixes",
    "rest-released": "test_released_rules.py::test_rest_as_released_draws_for_every_row_and_again",
    "hierarchical": "test_released_rules.py::test_a_block_is_decided_as_the_array_code_decides_it",
    "hierarchical-released": "test_released_rules.py::test_a_block_is_decided_as_the_array_code_decides_it",
    "gumbel-coupling": "test_gumbel_coupling.py::test_the_joint_law_of_the_winners_is_that_of_races",
    "gumbel-list": "test_gumbel_list.py::test_races_that_are_run_match_as_often_as_the_formula_says",
    "fuzzy-speculative-decoding": "test_released_rules.py::test_fuzzy_speculative_decoding_is_its_loop",
    "reward-guided": "test_released_rules.py::test_reward_guided_steps_are_kept_or_written_anew",
    "lantern-released": "test_released_rules.py::test_lantern_gives_a_draft_its_neighbours_and_takes_one_more_away",
    "bild-released": (
        "test_bild_released.py::test_every_text_is_that_of_the_loop_and_some_differ_from_the_paper_s_rounds"
    ),
    "edge-cloud-gumbel": "test_shared_noise.py::test_acceptance_is_the_agreement_of_the_coupling",
    "speculative-jacobi": "test_lists_and_hubs.py::test_sweeps_are_those_of_the_loop",
    "cllm": "test_lookahead.py::test_a_fine_tuned_model_is_decoded_to_its_own_text",
    "lookahead": "test_lookahead.py::test_the_window_moves_one_place_and_drops_its_oldest_row",
    "ouroboros": "test_phrases.py::test_the_phrases_of_a_miss_are_those_of_the_release",
    "draft-and-verify": "test_chains_again.py::test_the_threshold_of_draft_and_verify_moves_as_in_the_loop",
    "kangaroo": "test_released_drafters.py::test_kangaroo_s_loop_drafts_past_the_first_unsure_token_and_no_further",
    "ppd": "test_self_draft.py::test_a_token_takes_fewer_layers_the_more_often_it_was_guessed",
    "triforce-released": "test_cascade.py::test_the_released_law_is_declared_for_longer_blocks",
    "specdec-pp": (
        "test_released_drafters.py::test_the_predicted_rejection_ends_the_draft_after_a_token_not_yet_judged"
    ),
    "greedy-multi-path": "test_multi_path_blocks.py::test_gbv_is_its_loop_round_by_round",
    "spectr-gbv-released": "test_multi_path_blocks.py::test_spectr_gbv_as_released_is_its_loop_round_by_round",
    "cactus": "test_loose_rules.py::test_cactus_is_its_loop",
    "fly": "test_loose_rules.py::test_fly_is_its_loop",
    "swift": "test_swift.py::test_a_round_of_swift_is_its_loop",
}
"""Row -> the test that states it again, for those that are in none of the tables of loops."""


def test_every_row_is_stated_twice():
    stated = [name for loops in LOOPS for name in loops.AGAIN] + list(OTHERS)
    assert sorted(stated) == sorted(row.name for row in ALGORITHMS)


@pytest.mark.parametrize("where", sorted(set(OTHERS.values())))
def test_the_test_is_there(where):
    file, _, test = where.partition("::")
    assert f"def {test}(" in next(Path(__file__).parents[1].rglob(file)).read_text("utf-8")
