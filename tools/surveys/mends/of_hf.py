"""The changes that correct each cause in transformers, each the smallest that is known."""

from __future__ import annotations

from mends.hf_drafters import (
    COPIED,
    CROPPED,
    DRAFTED_ALONE,
    FINALLY,
    IN_ORDER,
    LAST_POSITION,
    NO_IDS,
    POINT_MASS,
    inner,
)
from mends.hf_loop import BOUNDARY, CHUNKS, EMPTY, ENDS, FED, FIRST_ROUND, ONE_BY_ONE, PROMPT_ALONE, WINDOWS
from mends.hf_options import (
    GUIDANCE,
    IMAGES,
    NO_END_SPARED,
    PADDING,
    RENORMALISED,
    WHISPER_CONFIG,
    WHISPER_SUPPRESSED,
    WHISPER_TEMPERATURE,
)
from mends.mending import Change

_PARTS: dict[str, tuple[tuple[Change, ...], ...]] = {
    "a cache that is passed in is fed the whole prompt again": (FED, FIRST_ROUND),
    "a cache that is passed in, as logits processors see it": (FED,),
    "a processor that counts its calls is called for rejected drafts": (ONE_BY_ONE, FIRST_ROUND),
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
    "a prompt is not prefilled in chunks where it is drafted, so that more is returned for it": (
        CHUNKS,
        FED,
        FIRST_ROUND,
    ),
    "a prompt of embeddings with drafts of a model: the drafter has no ids": (NO_IDS,),
    "stop strings: the inner call has no tokenizer": (inner("stop_strings"), ENDS, FIRST_ROUND, FINALLY),
    "healed prompts: the inner call has no tokenizer": (inner("token_healing"),),
    '`cache_implementation="dynamic"` reaches the inner call': (inner("cache_implementation"), FIRST_ROUND),
    "a cache in eight bits cannot be cropped": (CROPPED, PROMPT_ALONE, inner("cache_implementation")),
    "prompt lookup drafts past the last position": (LAST_POSITION, FIRST_ROUND),
    "a copy as assistant: the residual is 0/0": (EMPTY,),
    "an image's token in a draft is counted as an image": (IMAGES,),
    "T5 with two tokenizers: the start that the inner call puts in front counts as a draft": (DRAFTED_ALONE,),
    "`top_h` bounds another sum; a forbidden word that is an end is allowed": (RENORMALISED, NO_END_SPARED),
    "options that take padding for text": (PADDING,),
    "hidden states and attentions of the first round are those of the prompt's beginning": (FIRST_ROUND,),
}
"""Cause -> its mend first, then those of other causes that share its cells."""
OF_CAUSE = {cause: tuple(dict.fromkeys(change for part in parts for change in part)) for cause, parts in _PARTS.items()}
