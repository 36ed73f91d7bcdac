"""Changes that correct transformers' drafters, and the caches that drafts are removed from."""

from __future__ import annotations

from typing import Any

from mends.hf_loop import CHOICE, DRAFTERS
from mends.mending import Change, Edit, Ours

DRAFTER = f"{DRAFTERS}:AssistedCandidateGenerator"


def inner(name: str) -> tuple[Change, ...]:
    """Return the change that clears the option ``name`` in the generation config with which drafts are made."""
    said = "    self.generation_config.is_assistant = True\n"
    return (Edit(f"{DRAFTER}.__init__", said, f"{said}    self.generation_config.{name} = None\n"),)


NO_IDS = (
    Edit(
        f"{DRAFTER}.get_candidates",
        "    input_ids = input_ids.to(self.assistant_model.device)\n",
        "    input_ids = input_ids.to(self.assistant_model.device)\n"
        "    if input_ids.shape[1] == 0:\n"
        "        for name in ('inputs_embeds', 'attention_mask'):\n"
        "            self.assistant_kwargs.pop(name, None)\n"
        "        return input_ids, None\n",
    ),
)
"""Nothing is drafted for a prompt of embeddings, and later from the new tokens alone."""
LAST_POSITION = (
    Edit(
        f"{DRAFTERS}:PromptLookupCandidateGenerator.get_candidates",
        "start_idx + self.num_output_tokens",
        "start_idx + min(self.num_output_tokens, self.max_length - input_length - 1)",
    ),
)
POINT_MASS = (
    Edit(
        f"{DRAFTERS}:SinglePositionMultiTokenCandidateGenerator.get_candidates",
        "drafted_logits.append(outputs.logits)",
        "nothing = torch.full_like(outputs.logits, -float('inf'))\n"
        "        drafted_logits.append(nothing.scatter(-1, last_token_id[..., None], 0.0))",
    ),
)
TRANSLATOR = f"{DRAFTERS}:AssistantToTargetTranslator.__init__"
IN_ORDER = (
    Edit(
        TRANSLATOR,
        "list(self.target_to_assistant_input_ids.values())",
        "sorted(self.target_to_assistant_input_ids.values())",
    ),
)
COPIED = (
    Edit(
        CHOICE,
        "atm_translator = AssistantVocabTranslatorCache.get_translator(",
        "from transformers.generation.candidate_generator import AssistantToTargetTranslator\n"
        "            assistant_model = copy.deepcopy(assistant_model)\n"
        "            atm_translator = AssistantToTargetTranslator(",
    ),
)
DRAFTED_ALONE = (
    Edit(
        f"{DRAFTERS}:UniversalSpeculativeDecodingGenerator.get_candidates",
        "self._prev_assistant_ids, assistant_candidate_logits = self._generate_candidates(generation_args)\n",
        "candidate_ids, assistant_candidate_logits = self._generate_candidates(generation_args)\n"
        "    drafted = candidate_ids[:, -assistant_candidate_logits.shape[1] :]\n"
        "    self._prev_assistant_ids = torch.cat([assistant_input_ids, drafted], dim=-1)\n",
    ),
)
"""The start that a decoder's ``generate`` puts in front is no draft."""


def restoring(library: Any) -> Any:
    """Return a corrected early-exit drafting function, which restores the model's layers even after an exception."""

    def get_candidates(self, input_ids, **kwargs):
        config = getattr(self.assistant_model, self.assistant_model.base_model_prefix).config
        layers = config.num_hidden_layers
        try:
            return library(self, input_ids, **kwargs)
        finally:
            config.num_hidden_layers = layers

    return get_candidates


FINALLY = (Ours(f"{DRAFTERS}:EarlyExitCandidateGenerator.get_candidates", restoring),)


def cropped(library: Any) -> Any:
    """Return a corrected ``crop`` for cache layers whose states are stored in eight bits."""

    def crop(self, tokens_to_remove) -> None:
        if tokens_to_remove == 0 or not self.is_initialized:
            return
        self._quantized_keys, self._quantized_values = (
            (states[..., :tokens_to_remove, :], scale)
            for states, scale in (self._quantized_keys, self._quantized_values)
        )
        self.cumulative_length += tokens_to_remove

    return crop


CROPPED = (Ours("transformers.cache_utils:Fp8QuantizedLayer.crop", cropped),)
