"""Calls of llama-cpp-python: ``Llama.generate`` with scripted drafts. One object serves all texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from specverify.reference import Tokens
from specverify.subjects.decoding import Decoding, Texts, seeds_of

try:
    from llama_cpp import GGML_TYPE_F16, GGML_TYPE_F32, Llama, LogitsProcessorList, MinTokensLogitsProcessor
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
except ImportError as error:
    raise ImportError("the subject of llama.cpp needs llama-cpp-python: pip install llama-cpp-python") from error

TARGET = Path(__file__).parent / "models" / "target.gguf"
VOCABULARY = 5
MINIMUM = 2
"""New tokens before an end, where the library's own processor asks for them."""
Drafter = Callable[..., Any]


@cache
def model(precise: bool = True) -> Any:
    """Return the target; its cache holds float32, or its default, float16."""
    kind = GGML_TYPE_F32 if precise else GGML_TYPE_F16
    sizes: dict[str, Any] = {"n_ctx": 256, "n_batch": 64, "n_threads": 1, "n_threads_batch": 1}
    return Llama(str(TARGET), **sizes, type_k=kind, type_v=kind, logits_all=True, verbose=False)


def scripted(script: Callable[[Sequence[int]], int], gamma: int) -> Drafter:
    """Return a drafter of ``gamma`` tokens, each chosen by the script from all tokens before it."""

    def drafts(input_ids: Any, /, **options: Any) -> Any:
        tokens = input_ids.tolist()
        for _ in range(gamma):
            tokens.append(script(tokens))
        return np.array(tokens[len(input_ids) :], dtype=np.intc)

    return drafts


def lookup(decoding: Decoding) -> Drafter:
    """Return the library's own drafter."""
    result: Drafter = LlamaPromptLookupDecoding(max_ngram_size=2, num_pred_tokens=decoding.gamma)
    return result


def constant(decoding: Decoding) -> Drafter:
    """Draft the same probable token everywhere."""
    return scripted(lambda tokens: 3, decoding.gamma)


def unlikely(decoding: Decoding) -> Drafter:
    """Draft tokens of low target probability, which are hardly ever accepted."""
    return scripted(lambda tokens: 0, decoding.gamma)


def wandering(decoding: Decoding) -> Drafter:
    """Draft a different token at every position, sometimes an accepted one."""
    return scripted(lambda tokens: (3 * sum(tokens) + len(tokens)) % VOCABULARY, decoding.gamma)


def nothing(decoding: Decoding) -> None:
    """Decode without speculation."""


def text(loaded: Any, decoding: Decoding, seed: int) -> Tokens:
    """Return the text of a seed, up to an end."""
    loaded.set_seed(seed)
    result: list[int] = []
    for token in loaded.generate(list(decoding.prompt), **_options(decoding)):
        result.append(int(token))
        if len(result) == decoding.horizon or token in decoding.eos:
            return tuple(result)
    return tuple(result)


def texts(drafter: Callable[[Decoding], Drafter | None], decoding: Decoding, precise: bool = True) -> Texts:
    """Return the function that draws a text for each seed."""
    return partial(_texts, drafter, decoding, precise)


def _texts(
    drafter: Callable[[Decoding], Drafter | None], decoding: Decoding, precise: bool, seed: int, number: int
) -> Sequence[Tokens]:
    loaded = model(precise)
    loaded.draft_model = drafter(decoding)
    return [text(loaded, decoding, each) for each in seeds_of(seed, number)]


def _options(decoding: Decoding) -> dict[str, Any]:
    more = dict(decoding.more)
    processors = (
        LogitsProcessorList([MinTokensLogitsProcessor(MINIMUM, decoding.eos[0])]) if "minimum" in more else None
    )
    return {
        "top_k": decoding.top_k or 0,
        "top_p": decoding.top_p or 1.0,
        "min_p": decoding.min_p or 0.0,
        "temp": decoding.temperature,
        "repeat_penalty": decoding.repetition_penalty,
        "logits_processor": processors,
    } | dict(more.get("options", ()))
