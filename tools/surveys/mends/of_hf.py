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
    "a cache passed by the caller receives the whole prompt again": (FED, FIRST_ROUND),
    "a cache passed by the caller: logits processors get the wrong tokens": (FED,),
    "a processor that counts its calls is called for rejected drafts": (ONE_BY_ONE, FIRST_ROUND),
    "a stopping criterion that tests the last token misses tokens inside a block": (ENDS,),
    "stop strings are searched only at the end of a block of tokens": (ENDS,),
    "guidance keeps a cache that is not cropped": (GUIDANCE,),
    "`r <= p / q` at r = 0": (BOUNDARY,),
    "Gemma 4's assistant drafts the argmax, but q is the softmax": (POINT_MASS,),
    "two tokenizers: the entries of q are in the wrong order": (IN_ORDER,),
    "Whisper's assistant with an encoder drafts the argmax, but q is the softmax": (WHISPER_TEMPERATURE,),
    "Whisper drops `begin_suppress_tokens` with an assistant": (WHISPER_SUPPRESSED,),
    "Whisper writes into the assistant's generation config": (WHISPER_CONFIG,),
    "an exception during early-exit drafting leaves the model with fewer layers": (FINALLY,),
    "after an exception during early-exit drafting the next call runs fewer layers": (FINALLY, FIRST_ROUND),
    "two tokenizers: after the call the assistant has a pruned output layer and wrapped embeddings": (COPIED,),
    "attentions of drafts are cut to the length of the text, also in layers with a window": (FIRST_ROUND, WINDOWS),
    "with drafts a prompt is not prefilled in chunks, so more attentions are returned for it": (
        CHUNKS,
        FED,
        FIRST_ROUND,
    ),
    "a prompt of embeddings with a draft model: the draft model gets no token ids": (NO_IDS,),
    "stop strings: the inner call of the draft model has no tokenizer": (
        inner("stop_strings"),
        ENDS,
        FIRST_ROUND,
        FINALLY,
    ),
    "token healing: the inner call of the draft model has no tokenizer": (inner("token_healing"),),
    '`cache_implementation="dynamic"` is passed to the inner call of the draft model': (
        inner("cache_implementation"),
        FIRST_ROUND,
    ),
    "a cache in eight bits cannot be cropped": (CROPPED, PROMPT_ALONE, inner("cache_implementation")),
    "prompt lookup drafts past the last position": (LAST_POSITION, FIRST_ROUND),
    "a copy as assistant: the residual is 0/0": (EMPTY,),
    "an image token that is drafted is counted as an image": (IMAGES,),
    "T5 with two tokenizers: the start token of the inner call counts as a draft": (DRAFTED_ALONE,),
    "`top_h` bounds another sum; a forbidden word that is an end token is not forbidden": (RENORMALISED, NO_END_SPARED),
    "options that count padding as text": (PADDING,),
    "hidden states and attentions of the first round are those of the prompt's beginning": (FIRST_ROUND,),
}
"""Cause -> its mend first, then those of other causes that share its cells."""
OF_CAUSE = {cause: tuple(dict.fromkeys(change for part in parts for change in part)) for cause, parts in _PARTS.items()}
