"""Changes that correct options of ``generate``: guidance, truncation, padding, audio and image inputs."""

from __future__ import annotations

from typing import Any

from mends.hf_loop import PROCESSORS, UTILS
from mends.mending import Edit, Ours


def guided(library: Any) -> Any:
    """Return corrected guidance: the logits without the prompt are computed anew from all tokens after the prompt."""

    def unconditional(self, input_ids):
        import torch

        context = self.unconditional_context
        if context["first_pass"]:
            context["first_pass"], context["length"] = False, input_ids.shape[1]
            if context["input_ids"] is None:
                context["input_ids"] = input_ids[:, -1:]
            if context["attention_mask"] is None:
                context["attention_mask"] = torch.ones_like(context["input_ids"])
        new = input_ids[:, context["length"] :]
        ids = torch.cat([context["input_ids"], new], dim=1)
        mask = torch.cat([context["attention_mask"], torch.ones_like(new)], dim=1)
        return self.model(ids, attention_mask=mask, use_cache=False).logits

    return unconditional


GUIDANCE = (Ours(f"{PROCESSORS}:UnbatchedClassifierFreeGuidanceLogitsProcessor.get_unconditional_logits", guided),)
RENORMALISED = (
    Edit(
        f"{PROCESSORS}:TopHLogitsWarper.__call__",
        "torch.cumsum(entropy_terms, dim=-1)",
        "torch.cumsum(entropy_terms, dim=-1) / probs.cumsum(-1) + probs.cumsum(-1).log()",
    ),
)
NO_END_SPARED = (
    Edit(
        f"{PROCESSORS}:NoBadWordsLogitsProcessor.__init__",
        "all(bad_token_seq != [i] for i in eos_token_id_list)",
        "True",
    ),
)


def padding_left_out(library: Any) -> Any:
    """Return corrected logits processors: those that would take padding for text see each row without its padding."""

    def processors(self, *given, model_kwargs=None, **named):
        from transformers import (
            EncoderRepetitionPenaltyLogitsProcessor,
            LogitsProcessorList,
            MinLengthLogitsProcessor,
            NoRepeatNGramLogitsProcessor,
        )

        kinds = (EncoderRepetitionPenaltyLogitsProcessor, MinLengthLogitsProcessor, NoRepeatNGramLogitsProcessor)
        found = library(self, *given, model_kwargs=model_kwargs, **named)
        mask = (model_kwargs or {}).get("attention_mask")
        if mask is None:
            return found
        lengths = (mask != 0).int().argmax(dim=1).tolist()
        return LogitsProcessorList([_of_rows(each, lengths) if isinstance(each, kinds) else each for each in found])

    return processors


def _of_rows(processor: Any, lengths: list[int]) -> Any:
    import copy

    import torch

    def process(ids, scores):
        rows = []
        for row, padding in enumerate(lengths):
            of_row = copy.copy(processor)
            if hasattr(processor, "encoder_input_ids"):
                of_row.encoder_input_ids = processor.encoder_input_ids[row : row + 1, padding:]
            rows.append(of_row(ids[row : row + 1, padding:], scores[row : row + 1]))
        return torch.cat(rows)

    return process


PADDING = (
    Edit(
        f"{UTILS}:GenerationMixin._get_logits_processor",
        "if mask is not None else None",
        "if mask is not None and input_ids_seq_length else None",
    ),
    Ours(f"{UTILS}:GenerationMixin._get_logits_processor", padding_left_out),
)
WHISPER = "transformers.models.whisper.generation_whisper:WhisperGenerationMixin.generate"
WHISPER_TEMPERATURE = (
    Edit(
        WHISPER,
        "    temperatures = [temperature] if",
        "    if temperature is None and generation_config.do_sample:\n"
        "        temperature = generation_config.temperature\n"
        "    temperatures = [temperature] if",
    ),
)
WHISPER_SUPPRESSED = (Edit(WHISPER, "generation_config.begin_suppress_tokens = None", "pass"),)
WHISPER_CONFIG = (
    Edit(
        WHISPER,
        'assistant_model = kwargs["assistant_model"]',
        'assistant_model = kwargs["assistant_model"] = copy.copy(kwargs["assistant_model"])\n'
        "        assistant_model.generation_config = copy.deepcopy(assistant_model.generation_config)",
    ),
)
IMAGES = (
    Edit(
        "transformers.models.llava.modeling_llava:LlavaModel.get_placeholder_mask",
        "n_image_tokens = special_image_mask.sum()",
        "special_image_mask &= special_image_mask.cumsum(-1) <= image_features.numel() // inputs_embeds.shape[-1]\n"
        "    n_image_tokens = special_image_mask.sum()",
    ),
    Edit(
        "transformers.models.qwen2_vl.modeling_qwen2_vl:Qwen2VLModel.get_placeholder_mask",
        "n_image_tokens = special_image_mask.sum()",
        "if image_features is not None:\n"
        "        of_images = image_features.numel() // inputs_embeds.shape[-1]\n"
        "        special_image_mask &= special_image_mask.cumsum(-1) <= of_images\n"
        "    n_image_tokens = special_image_mask.sum()",
    ),
)
"""The first tokens of an image are those of the prompt."""
