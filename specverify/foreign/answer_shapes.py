"""Where the answers of servers hold samples and log-probabilities: tables of JSON paths, and functions that read them.

A path is a chain of keys: ``a.b`` enters an object, ``[]`` every element of a list, ``[0]`` its first element. A row of
a table is used if its path exists and holds values of a usable type. So a new server needs a new row and no new code.
Rows with token ids come before rows with texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

CHOICES: Final = (
    "choices[]",  # the OpenAI shape
    "[]",  # llama.cpp's /completion and SGLang's /generate, several samples
    "",  # the same and TGI's /generate, one sample
)
"""Paths to the list of samples in an answer, or to its only sample."""
TOKENS: Final = (
    "token_ids",  # vLLM, if asked with return_token_ids
    "tokens",  # llama.cpp's /completion, if asked with return_tokens
    "output_ids",  # SGLang's /generate
    "logprobs.content[].id",  # llama.cpp's /v1/completions and /v1/chat/completions
    "completion_probabilities[].id",  # llama.cpp's /completion
    "details.tokens[].id",  # TGI's /generate
    "logprobs.tokens",  # vLLM's and SGLang's /v1/completions: texts, or token_id:5
    "logprobs.content[].token",  # /v1/chat/completions: texts, or token_id:5
    "completion_probabilities[].content",  # llama.cpp's /completion of 2024
    "details.tokens[].text",  # TGI's /generate
)
"""Paths to the list of tokens in a sample."""
TEXTS: Final = (
    "text",  # /v1/completions, SGLang's /generate
    "message.content",  # /v1/chat/completions
    "content",  # llama.cpp's /completion
    "generated_text",  # TGI's /generate
)
"""Paths to the whole text of a sample."""
THOUGHTS: Final = ("message.reasoning_content", "message.reasoning")
"""Paths to the reasoning text that precedes a chat reply: first of llama.cpp and SGLang, then of vLLM."""
PROCESSED: Final = (
    "logprobs.content[0].top_probs",  # llama.cpp, if asked with post_sampling_probs
    "completion_probabilities[0].top_probs",  # the same of /completion
)
"""Paths to the likeliest first tokens with their probabilities after all sampling options."""
REPORTED: Final = (
    "logprobs.content[0].top_logprobs",  # /v1/chat/completions, llama.cpp's /v1/completions
    "completion_probabilities[0].top_logprobs",  # llama.cpp's /completion
    "logprobs.top_logprobs[0]",  # /v1/completions: an object, of texts or token_id:5
    "completion_probabilities[0].probs",  # llama.cpp's /completion of 2024
    "details.top_tokens[0]",  # TGI's /generate
    "meta_info.output_top_logprobs[0]",  # SGLang's /generate: lists of logarithm, id, text
)
"""Paths to the likeliest first tokens with log-probabilities that may or may not include sampling options."""
ACCEPTED: Final = ("timings.draft_n_accepted",)  # llama.cpp's /completion with a draft model
"""Paths to the number of accepted drafts of a sample."""
NAMES: Final = ("token", "text", "content", "tok_str")
"""Keys under which an element at a path of ``REPORTED`` may hold the text of its token."""


def choices_in(answer: Any) -> list[Any] | None:
    """Return the samples of a server's answer, ordered by their ``index``; None if there are none."""
    for path in CHOICES:
        choices = value_at(answer, path)
        if isinstance(choices, Mapping):
            choices = [choices]
        if isinstance(choices, list) and choices and all(isinstance(choice, Mapping) for choice in choices):
            return sorted(choices, key=lambda choice: choice["index"] if isinstance(choice.get("index"), int) else 0)
    return None


def rows_in(choices: Sequence[Mapping[str, Any]]) -> list[list[Any]] | None:
    """Return the tokens of each sample in ``choices``; None if no known shape (``TOKENS``, or a text) fits all samples.

    All tokens are of one kind: ids, texts of tokens, or the whole text of a sample as one token.
    """
    readable = [rows for path in TOKENS if (rows := _rows_at(choices, path)) is not None]
    ids = [rows for rows in readable if all(isinstance(token, int) for row in rows for token in row)]
    if ids or readable:
        return (ids or readable)[0]
    texts = [_text_of(choice) for choice in choices]
    return None if None in texts else [[text] for text in texts]


def logprobs_in(choice: Mapping[str, Any]) -> tuple[list[tuple[Any, float]], bool] | None:
    """Return (pairs, processed) for the first position of the sample ``choice``; None for an unknown shape.

    ``pairs`` are (token, log-probability) of the most likely tokens. ``processed`` is True if the probabilities include
    all sampling options, that is, if they are at a path in ``PROCESSED``.
    """
    for path in (*PROCESSED, *REPORTED):
        try:
            pairs = _pairs(value_at(choice, path))
        except (KeyError, TypeError, ValueError, IndexError):
            continue
        if pairs:
            return pairs, path in PROCESSED
    return None


def accepted_in(choice: Mapping[str, Any]) -> int | None:
    """Return how many draft tokens of the sample ``choice`` were accepted; None if the server does not report this."""
    numbers = [value for path in ACCEPTED if isinstance(value := value_at(choice, path), int)]
    return numbers[0] if numbers else None


def value_at(data: Any, path: str) -> Any:
    """Return the value at a ``path`` such as ``logprobs.content[].id`` in JSON ``data``; None if there is none.

    A ``[]`` in the path makes the result a list of values. If the path does not exist in one of the list's elements,
    the result is None.
    """
    return _value(data, re.findall(r"[^.\[\]]+|\[\d*\]", path))


def _value(data: Any, steps: Sequence[str]) -> Any:
    for place, step in enumerate(steps):
        if step == "[]":
            values = [_value(item, steps[place + 1 :]) for item in data] if isinstance(data, list) else [None]
            return None if None in values else values
        if step.startswith("["):
            index = int(step[1:-1])
            data = data[index] if isinstance(data, list) and index < len(data) else None
        else:
            data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _rows_at(choices: Sequence[Mapping[str, Any]], path: str) -> list[list[Any]] | None:
    """Return the token list at ``path`` of each of the samples ``choices``.

    Returns None unless all samples have such lists, with tokens of one type, ids or texts.
    """
    rows = [value_at(choice, path) for choice in choices]
    if not all(isinstance(row, list) for row in rows):
        return None
    if any(not row and _text_of(choice) for row, choice in zip(rows, choices, strict=True)):
        return None  # servers leave a list empty that was not asked for
    tokens = [[id_or_text(token) for token in row] for row in rows]
    kinds = {type(token) for row in tokens for token in row}
    return tokens if kinds in ({int}, {str}, set()) else None


def _text_of(choice: Mapping[str, Any]) -> str | None:
    texts = [text for path in TEXTS if isinstance(text := value_at(choice, path), str)]
    thoughts = [text for path in THOUGHTS if isinstance(text := value_at(choice, path), str)]
    return "".join([*thoughts[:1], *texts[:1]]) if texts or thoughts else None


def _pairs(told: Any) -> list[tuple[Any, float]]:
    """Return the (token, log-probability) pairs in ``told``, the list of likely tokens in a server's answer.

    The list is a mapping from tokens to logarithms, a list of objects, or a list of lists [logarithm, token id, ...].
    """
    if isinstance(told, Mapping):
        return [(id_or_text(token), float(value)) for token, value in told.items()]
    return [_pair(item) for item in told or ()]


def _pair(item: Any) -> tuple[Any, float]:
    if isinstance(item, list):
        return int(item[1]), float(item[0])
    token = item["id"] if isinstance(item.get("id"), int) else next(item[name] for name in NAMES if name in item)
    if "logprob" in item:
        return id_or_text(token), float(item["logprob"])
    probability = float(item["prob"])
    return id_or_text(token), math.log(probability) if probability > 0 else -math.inf


def id_or_text(token: Any) -> Any:
    """Return the id in a text such as ``token_id:5``, a form that some servers use; another ``token`` unchanged."""
    if isinstance(token, str) and token.startswith("token_id:") and token[9:].isdecimal():
        return int(token[9:])
    return token
