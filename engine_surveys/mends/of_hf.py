"""What mends each cause in transformers, the smallest change that was found: its lines are read as others."""

from __future__ import annotations

from typing import Any

from mends.mending import Change, Edit, Ours

UTILS, DRAFTERS, PROCESSORS = (
    f"transformers.generation.{name}" for name in ("utils", "candidate_generator", "logits_process")
)
LOOP = f"{UTILS}:GenerationMixin._assisted_decoding"
SPLIT = f"{UTILS}:_split_model_outputs"
CHOICE = f"{UTILS}:GenerationMixin._get_candidate_generator"
SAMPLING = f"{UTILS}:_speculative_sampling"
DRAFTER = f"{DRAFTERS}:AssistedCandidateGenerator"
WHISPER = "transformers.models.whisper.generation_whisper:WhisperGenerationMixin.generate"

FIRST_ROUND = (
    Edit(SPLIT, "is_decoder_attention=False)", "is_decoder_attention=False, drafts=0)"),
    Edit(SPLIT, "    if len(outputs) == 0:\n", "    behind = drafts + 1\n    if len(outputs) == 0:\n        behind = drafts\n"),
    Edit(SPLIT, "layer[..., :cur_len, :", "layer[..., : layer.shape[-2] - drafts, :"),
    Edit(SPLIT, "layer[..., i : i + 1, :", "layer.narrow(-2, layer.shape[-2] - behind + i, 1)[..., :"),
    Edit(LOOP, " cur_len, newly_added_length", " cur_len, newly_added_length, drafts=candidate_length", 3),
    Edit(LOOP, " newly_added_length,\n", " newly_added_length,\n drafts=candidate_length,\n", 2),
)
"""What a round returns is counted from its end: behind the prompt, whatever of it was fed."""
WINDOWS = (
    Edit(SPLIT, "drafts=0)", "drafts=0, windows=())"),
    Edit(
        SPLIT,
        "        last_dim_size = cur_len + i if is_decoder_attention else layer.shape[-1]\n",
        "        window = windows[len(new_tuple)] if is_decoder_attention and windows else 0\n"
        "            last_dim_size = layer.shape[-1] - behind + 1 + i if is_decoder_attention else layer.shape[-1]\n"
        "            first_dim = max(last_dim_size - window, 0) if window else 0\n",
    ),
    Edit(SPLIT, "i, 1)[..., :", "i, 1)[..., first_dim:"),
    Edit(
        LOOP,
        "is_decoder_attention=True",
        "is_decoder_attention=True, windows=[getattr(layer, 'sliding_window', 0) for layer in cache.layers]"
        " if hasattr(cache, 'layers') else ()",
        2,
    ),
)
"""The keys of a row end with its own; where its layer has a window they begin with it."""
FED = (
    Edit(
        LOOP,
        "candidate_length + 1 if not is_first_iteration else None",
        "candidate_length + 1 if not is_first_iteration"
        " else candidate_input_ids.shape[1] - cache.get_seq_length() if cache.get_seq_length() else None",
    ),
)
"""What the cache lacks is fed."""
ONE_BY_ONE = (
    Edit(CHOICE, "    different_tokenizers = all(", "    logits_processor = LogitsProcessorList()\n    different_tokenizers = all("),
    Edit(LOOP, "for i in range(candidate_length + 1):", "for i in range(0):"),
    Edit(
        LOOP,
        "        if do_sample and candidate_logits is not None:\n",
        "        valid_tokens = input_ids[:, :0]\n"
        "        for i in range(candidate_length + 1):\n"
        "            until = candidate_input_ids[:, : cur_len + i + 1]\n"
        "            new_logits[:, i, :] = logits_processor(until[:, : cur_len + i], new_logits[:, i, :])\n"
        "            if do_sample and candidate_logits is not None and i < candidate_length:\n"
        "                two = new_logits[:, i : i + 2]\n"
        "                token = _speculative_sampling(until, candidate_logits[:, i : i + 1], 1, two)[0][:, :1]\n"
        "            elif do_sample:\n"
        "                token = torch.multinomial(new_logits[:, i].softmax(dim=-1), num_samples=1)\n"
        "            else:\n"
        "                token = new_logits[:, i].argmax(dim=-1, keepdim=True)\n"
        "            valid_tokens = torch.cat((valid_tokens, token), dim=-1)\n"
        "            if i == candidate_length or token != until[:, -1:]:\n"
        "                break\n"
        "        if len(logits_processor) >= 0:\n"
        "            n_matches = valid_tokens.shape[1] - 1\n"
        "        elif do_sample and candidate_logits is not None:\n",
    ),
)
"""Drafts are decided one after the other: processors are called once for each token kept, and drafts made without them."""
ENDS = (
    Edit(
        LOOP,
        "        n_matches = valid_tokens.shape[1] - 1\n",
        "        for length in range(1, valid_tokens.shape[1]):\n"
        "            if stopping_criteria(torch.cat((input_ids, valid_tokens[:, :length]), dim=-1), scores).all():\n"
        "                valid_tokens = valid_tokens[:, :length]\n"
        "                break\n"
        "        n_matches = valid_tokens.shape[1] - 1\n",
    ),
)
"""Criteria are asked after every token of a block."""


def guided(library: Any) -> Any:
    """Return the logits without the prompt, computed anew from all tokens behind it."""

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


def restoring(library: Any) -> Any:
    """Return drafting by early exit, after which the model has its layers again, whatever happens."""

    def get_candidates(self, input_ids, **kwargs):
        config = getattr(self.assistant_model, self.assistant_model.base_model_prefix).config
        layers = config.num_hidden_layers
        try:
            return library(self, input_ids, **kwargs)
        finally:
            config.num_hidden_layers = layers

    return get_candidates


GUIDANCE = (Ours(f"{PROCESSORS}:UnbatchedClassifierFreeGuidanceLogitsProcessor.get_unconditional_logits", guided),)
BOUNDARY = (Edit(SAMPLING, "r_i <= probability_ratio", "r_i < probability_ratio"),)
EMPTY = (
    Edit(
        SAMPLING,
        "p_prime.div_(p_prime_sum)",
        "p_prime = p_prime / p_prime_sum if p_prime_sum > 0 else p_n_plus_1",
    ),
)
POINT_MASS = (
    Edit(
        f"{DRAFTERS}:SinglePositionMultiTokenCandidateGenerator.get_candidates",
        "drafted_logits.append(outputs.logits)",
        "drafted_logits.append(torch.full_like(outputs.logits, -float('inf')).scatter(-1, last_token_id[..., None], 0.0))",
    ),
)
TRANSLATOR = f"{DRAFTERS}:AssistantToTargetTranslator.__init__"
IN_ORDER = (
    Edit(TRANSLATOR, "list(self.target_to_assistant_input_ids.values())", "sorted(self.target_to_assistant_input_ids.values())"),
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
FINALLY = (Ours(f"{DRAFTERS}:EarlyExitCandidateGenerator.get_candidates", restoring),)
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


def inner(name: str) -> tuple[Change, ...]:
    """Return what clears an option in the config that drafts are made with."""
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


def cropped(library: Any) -> Any:
    """Return the crop of a layer whose states are kept in eight bits."""

    def crop(self, tokens_to_remove):
        if tokens_to_remove == 0 or not self.is_initialized:
            return
        self._quantized_keys, self._quantized_values = (
            (states[..., :tokens_to_remove, :], scale) for states, scale in (self._quantized_keys, self._quantized_values)
        )
        self.cumulative_length += tokens_to_remove

    return crop


CROPPED = (Ours("transformers.cache_utils:Fp8QuantizedLayer.crop", cropped),)
PROMPT_ALONE = (
    Edit(
        LOOP,
        "        candidate_length = candidate_input_ids.shape[1] - input_ids.shape[1]\n",
        "        if is_first_iteration:\n"
        "            candidate_input_ids, candidate_logits = input_ids, None\n"
        "        candidate_length = candidate_input_ids.shape[1] - input_ids.shape[1]\n",
    ),
)
"""The scale of a cache in eight bits is that of what it holds first: of the prompt, and of no drafts."""
LAST_POSITION = (
    Edit(
        f"{DRAFTERS}:PromptLookupCandidateGenerator.get_candidates",
        "start_idx + self.num_output_tokens",
        "start_idx + min(self.num_output_tokens, self.max_length - input_length - 1)",
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
        "        special_image_mask &= special_image_mask.cumsum(-1) <= image_features.numel() // inputs_embeds.shape[-1]\n"
        "    n_image_tokens = special_image_mask.sum()",
    ),
)
"""The first tokens of an image are those of the prompt."""
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
CHUNKS = (
    Edit(
        LOOP,
        "    n_matches = 0\n",
        "    n_matches = 0\n"
        "    chunk = generation_config.prefill_chunk_size\n"
        "    if chunk and cur_len > chunk:\n"
        "        read = (cur_len - 1) // chunk * chunk\n"
        "        until = _prepare_attention_mask({**model_kwargs}, read, self.config.is_encoder_decoder)\n"
        "        self._prefill(input_ids[:, :read], generation_config, until)\n",
    ),
)
"""All chunks but the last are read as without drafts."""
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
    """Return the processors, those that take padding for text shown each row without it."""

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
    Edit(f"{UTILS}:GenerationMixin._get_logits_processor", "if mask is not None else None", "if mask is not None and input_ids_seq_length else None"),
    Ours(f"{UTILS}:GenerationMixin._get_logits_processor", padding_left_out),
)
_PARTS: dict[str, tuple[tuple[Change, ...], ...]] = {
    "a cache that is passed in is fed the whole prompt again": (FED, FIRST_ROUND),
    "the same, as logits processors see it": (FED,),
    "a processor that counts its calls is called for rejected drafts": (ONE_BY_ONE,),
    "a criterion of the last token misses one inside a block": (ENDS,),
    "stop strings are looked for at the end of a block only": (ENDS,),
    "guidance keeps a cache that is not cropped": (GUIDANCE,),
    "`r <= p / q` at r = 0": (BOUNDARY,),
    "Gemma 4's assistant drafts by argmax and declares softmax as q": (POINT_MASS,),
    "two tokenizers: q is permuted": (IN_ORDER,),
    "Whisper's assistant with an encoder drafts by argmax and declares softmax as q": (WHISPER_TEMPERATURE,),
    "Whisper drops `begin_suppress_tokens` with an assistant": (WHISPER_SUPPRESSED,),
    "Whisper writes into the assistant's generation config": (WHISPER_CONFIG,),
    "a call broken off while it drafts by early exit leaves fewer layers": (FINALLY,),
    "the call after one that was broken off runs fewer layers": (FINALLY, FIRST_ROUND),
    "two tokenizers: the assistant is left with a pruned head and wrapped embeddings": (COPIED,),
    "attentions of drafts are cut to the length of the text where a layer has a window": (FIRST_ROUND, WINDOWS),
    "a prompt is not prefilled in chunks where it is drafted, so that more is returned for it": (CHUNKS, FED, FIRST_ROUND),
    "a prompt of embeddings with drafts of a model: the drafter has no ids": (NO_IDS,),
    "stop strings: the inner call has no tokenizer": (inner("stop_strings"), ENDS, FIRST_ROUND),
    "healed prompts: the inner call has no tokenizer": (inner("token_healing"),),
    "`cache_implementation=\"dynamic\"` reaches the inner call": (inner("cache_implementation"), FIRST_ROUND),
    "a cache in eight bits cannot be cropped": (CROPPED, PROMPT_ALONE, inner("cache_implementation")),
    "prompt lookup drafts past the last position": (LAST_POSITION, FIRST_ROUND),
    "a copy as assistant: the residual is 0/0": (EMPTY,),
    "an image's token in a draft is counted as an image": (IMAGES,),
    "T5 with two tokenizers: ids beyond the mapped embeddings": (DRAFTED_ALONE,),
    "`top_h` bounds another sum; a forbidden word that is an end is allowed": (RENORMALISED, NO_END_SPARED),
    "options that take padding for text": (PADDING,),
    "hidden states and attentions of the first round are those of the prompt's beginning": (FIRST_ROUND,),
}
"""Cause -> its mend first, then those of other causes that share its cells."""
OF_CAUSE = {cause: tuple(dict.fromkeys(change for part in parts for change in part)) for cause, parts in _PARTS.items()}
