"""Calls of ``Llama.generate`` of llama-cpp-python with scripted drafts; all texts are decoded by one ``Llama`` object.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

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
"""Number of new tokens before an end, if the library's processor for a minimum length is used."""
Drafter = Callable[..., Any]


@cache
def model(precise: bool = True) -> Any:
    """Return the target model.

    With ``precise`` its KV cache is float32, otherwise float16, which is the library's default.
    """
    kind = GGML_TYPE_F32 if precise else GGML_TYPE_F16
    sizes: dict[str, Any] = {"n_ctx": 256, "n_batch": 64, "n_threads": 1, "n_threads_batch": 1}
    return Llama(str(TARGET), **sizes, type_k=kind, type_v=kind, logits_all=True, verbose=False)


def scripted(script: Callable[[Sequence[int]], int], gamma: int) -> Drafter:
    """Return a drafter that drafts ``gamma`` tokens, each of which is ``script(tokens)``.

    ``tokens`` are all tokens before the draft: the text and the earlier drafts.
    """

    def drafts(input_ids: Any, /, **options: Any) -> Any:
        tokens = input_ids.tolist()
        for _ in range(gamma):
            tokens.append(script(tokens))
        return np.array(tokens[len(input_ids) :], dtype=np.intc)

    return drafts


def lookup(decoding: Decoding) -> Drafter:
    """Return the library's own drafter: it searches the text for its last tokens and copies what follows the match."""
    result: Drafter = LlamaPromptLookupDecoding(max_ngram_size=2, num_pred_tokens=decoding.gamma)
    return result


def constant(decoding: Decoding) -> Drafter:
    """Return a scripted drafter (no model) that drafts the token 3, which is probable, at every position."""
    return scripted(lambda tokens: 3, decoding.gamma)


def unlikely(decoding: Decoding) -> Drafter:
    """Return a drafter of tokens with small target probability; almost all of its drafts are rejected."""
    return scripted(lambda tokens: 0, decoding.gamma)


def wandering(decoding: Decoding) -> Drafter:
    """Return a scripted drafter (no model) whose drafts differ from position to position; some of them are accepted."""
    return scripted(lambda tokens: (3 * sum(tokens) + len(tokens)) % VOCABULARY, decoding.gamma)


def nothing(decoding: Decoding) -> None:
    """Return None: no drafter, so decoding is plain."""


def text(loaded: Any, decoding: Decoding, seed: int) -> Tokens:
    """Return the new tokens that the model ``loaded`` generates for ``decoding`` with ``seed``.

    The text ends with an end token or after ``decoding.horizon`` tokens.
    """
    loaded.set_seed(seed)
    result: list[int] = []
    for token in loaded.generate(list(decoding.prompt), **_options(decoding)):
        result.append(int(token))
        if len(result) == decoding.horizon or token in decoding.eos:
            return tuple(result)
    return tuple(result)


def texts(drafter: Callable[[Decoding], Drafter | None], decoding: Decoding, precise: bool = True) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts of the call ``decoding``.

    ``drafter(decoding)`` returns the drafter, or None for plain decoding. With ``precise`` the KV cache is float32.
    """
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
