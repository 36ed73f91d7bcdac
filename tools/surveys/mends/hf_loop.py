"""Changes that correct the loop of ``generate`` with drafts: what a round feeds, decides, ends and returns."""

from __future__ import annotations

from mends.mending import Edit

UTILS, DRAFTERS, PROCESSORS = (
    f"transformers.generation.{name}" for name in ("utils", "candidate_generator", "logits_process")
)
LOOP = f"{UTILS}:GenerationMixin._assisted_decoding"
SPLIT = f"{UTILS}:_split_model_outputs"
CHOICE = f"{UTILS}:GenerationMixin._get_candidate_generator"
SAMPLING = f"{UTILS}:_speculative_sampling"
FIRST_ROUND = (
    Edit(SPLIT, "is_decoder_attention=False)", "is_decoder_attention=False, drafts=0)"),
    Edit(
        SPLIT,
        "    if len(outputs) == 0:\n",
        "    behind = drafts + 1\n    if len(outputs) == 0:\n        behind = drafts\n",
    ),
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
        "    do_sample = generation_config.do_sample\n",
        "    do_sample = generation_config.do_sample\n"
        "    said = self.config.get_text_config()\n"
        "    kinds = getattr(said, 'layer_types', None) or ['sliding_attention'] * said.num_hidden_layers\n"
        "    window = getattr(said, 'sliding_window', None) or 0\n"
        "    windows = [window if kind == 'sliding_attention' else 0 for kind in kinds]\n",
    ),
    Edit(LOOP, "is_decoder_attention=True", "is_decoder_attention=True, windows=windows", 2),
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
ONE_BY_ONE = (
    Edit(
        CHOICE,
        "    different_tokenizers = all(",
        "    logits_processor = LogitsProcessorList()\n    different_tokenizers = all(",
    ),
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
"""Drafts are decided one after the other: processors are called once a token kept, and drafts are made without them."""
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
BOUNDARY = (Edit(SAMPLING, "r_i <= probability_ratio", "r_i < probability_ratio"),)
EMPTY = (
    Edit(
        SAMPLING,
        "p_prime.div_(p_prime_sum)",
        "p_prime = p_prime / p_prime_sum if p_prime_sum > 0 else p_n_plus_1",
    ),
)
