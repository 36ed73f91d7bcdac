"""The table model: its law is a closed form, and a cache that is cropped wrongly is caught at the forward it is fed to.

The planted faults replace one line of the library's own source for the length of a test; each has its control.
"""

from __future__ import annotations

from functools import cache

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, cache_utils
from transformers.generation import candidate_generator, utils

from specverify.engines.huggingface.real_generate import quiet_and_seeded
from specverify.engines.huggingface.table_model import CacheFault, TableModel, build_table, table_law
from specverify.intercept.torch.calls import answered_by, outcome_of
from specverify.laws.enumeration import program_law
from specverify.laws.law import total_variation
from specverify.laws.tables import SHAPES

PROMPT = (0, 1, 2, 0, 1)
HORIZON = 3
WAYS = ("plain", "assisted", "prompt lookup")


def distance(way, shape="generic", **options):
    """Total variation between the enumerated law of ``generate`` and the table's."""
    target, draft = (build_table(4, seed=1, shape=shape, side=side) for side in ("target", "draft"))
    draft.generation_config.num_assistant_tokens = 2
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    if way == "assisted":
        options["assistant_model"] = draft
    lookup = {"prompt_lookup_num_tokens": 2, "max_matching_ngram_size": 2} if way == "prompt lookup" else {}
    config = GenerationConfig(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=HORIZON, **lookup)
    ids = torch.tensor([PROMPT])

    def program(draws):
        with answered_by(draws):
            rows = target.generate(
                input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=config, **options
            )
            return outcome_of(rows[0, len(PROMPT) :])

    with quiet_and_seeded(0), torch.no_grad():
        law = program_law(program)
    return total_variation(law, table_law(target, PROMPT, HORIZON)).high


@pytest.mark.thorough(keep=24)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_law_is_the_tables(shape, way):
    assert distance(way, shape) < 1e-6


@cache
def distance_without_a_fault(way):
    """The control beside every planted fault."""
    return distance(way)


def test_the_law_without_a_cache_is_the_tables():
    assert distance("plain", use_cache=False) < 1e-6


def test_the_law_is_a_law_of_the_whole_context():
    model = build_table(4, seed=1)
    assert sum(table_law(model, PROMPT, 3).values()) == 1
    assert model.next_pmf((0, 1, 2, 0, 1)) != model.next_pmf((3, 1, 2, 0, 1))
    assert build_table(4, seed=1, side="draft").next_pmf(PROMPT) != model.next_pmf(PROMPT)


def test_logits_are_log_pmfs_after_each_fed_token():
    model = build_table(4, seed=1)
    pmfs = model(torch.tensor([PROMPT, PROMPT[::-1]])).logits.softmax(-1)
    assert pmfs.shape == (2, 5, 4)
    for row, tokens in zip(pmfs, (PROMPT, PROMPT[::-1]), strict=True):
        for length in range(1, 6):
            assert row[length - 1].tolist() == pytest.approx([float(mass) for mass in model.next_pmf(tokens[:length])])
    assert model(torch.tensor([PROMPT]), logits_to_keep=2).logits.shape == (1, 2, 4)


def test_it_is_saved_and_loaded_as_any_model_is(tmp_path):
    model = build_table(5, seed=3, shape="peaked", side="draft")
    with torch.no_grad():
        model.inverse_temperature.fill_(0.5)
    model.save_pretrained(tmp_path)
    loaded = TableModel.from_pretrained(tmp_path)
    assert loaded.next_pmf(PROMPT) == model.next_pmf(PROMPT)
    assert torch.equal(loaded(torch.tensor([PROMPT])).logits, model(torch.tensor([PROMPT])).logits)


LOOP = (utils.GenerationMixin, "_assisted_decoding", "outputs.past_key_values.crop(-number_of_tokens_to_crop)")
ASSISTANT = (
    candidate_generator.AssistedCandidateGenerator,
    "_update_past_and_masks",
    'self.assistant_kwargs["past_key_values"].crop(-tokens_to_remove)',
)
CACHE = "outputs.past_key_values"
FAULTS = {
    "target's cache not cropped": ("assisted", *LOOP, "pass"),
    "target's cache cropped one short": ("assisted", *LOOP, f"{CACHE}.crop(-max(number_of_tokens_to_crop - 1, 0))"),
    "target's cache cropped one long": ("assisted", *LOOP, f"{CACHE}.crop(-number_of_tokens_to_crop - 1)"),
    "the same with prompt lookup": ("prompt lookup", *LOOP, "pass"),
    "assistant's cache not cropped": ("assisted", *ASSISTANT, "pass"),
    "tokens stored twice": (
        "plain",
        cache_utils.DynamicLayer,
        "update",
        "self.keys = torch.cat([self.keys, key_states], dim=-2)",
        (
            "key_states, value_states = key_states.repeat(1, 1, 2, 1), value_states.repeat(1, 1, 2, 1); "
            "self.keys = torch.cat([self.keys, key_states], dim=-2)"
        ),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS)
def test_a_wrong_length_is_caught_at_the_forward(planted, case):
    way, *plan = case
    assert distance_without_a_fault(way) < 1e-6
    planted(*plan)
    with pytest.raises(CacheFault, match=r"^the cache held \[.*\] at positions \[.*\] when \[.*\] came for positions"):
        distance(way)


@pytest.mark.thorough
def test_a_wrong_token_at_the_right_position_changes_the_law(planted):
    """Ids cropped at the wrong end, positions at the right one: no length tells."""
    assert distance_without_a_fault("assisted") < 1e-6
    planted(
        cache_utils.DynamicLayer,
        "crop",
        "self.keys = self.keys[..., : -abs(tokens_to_remove), :]",
        "self.keys = self.keys[..., abs(tokens_to_remove) :, :]",
    )
    assert distance("assisted") > 1e-2


def test_what_was_held_fed_and_expected_is_said():
    model, past = build_table(4, seed=1), DynamicCache()
    model(torch.tensor([[0, 1, 2]]), past_key_values=past)
    said = (
        r"held \[0, 1, 2\] at positions \[0, 1, 2\] when \[3\] came for positions \[2\], expected .* and \[3\] to come"
    )
    with pytest.raises(CacheFault, match=said):
        model(torch.tensor([[3]]), past_key_values=past, position_ids=torch.tensor([[2]]))


def test_a_mask_that_does_not_cover_cache_and_input_is_caught():
    model, past = build_table(4, seed=1), DynamicCache()
    model(torch.tensor([[0, 1, 2]]), past_key_values=past, attention_mask=torch.ones(1, 3))
    with pytest.raises(CacheFault, match="under a mask of 5, expected"):
        model(torch.tensor([[3]]), past_key_values=past, attention_mask=torch.ones(1, 5))


def test_padding_and_unknown_tables_are_refused():
    with pytest.raises(ValueError, match="expected no padding"):
        build_table(4, seed=1)(torch.tensor([[0, 1]]), attention_mask=torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="the table is 'square', 'target', expected one of generic"):
        build_table(4, seed=1, shape="square")
