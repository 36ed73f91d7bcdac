"""A server of completions as a sampler whose answers contain values in addition to the tokens."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from specverify.base.arguments import argument_error, check_count, check_flag, is_token, shown
from specverify.foreign.answer_shapes import choices_in, id_or_text, rows_in, value_at
from specverify.foreign.completions import server_at
from specverify.reference import Tokens
from specverify.subjects.beside import STATISTICS, value_of
from specverify.subjects.subject import UnusableSubject

SECONDS: Final = 120.0
"""Time limit of one answer, in seconds."""
_WITHOUT_IDS: set[str] = set()
"""URLs of servers that returned tokens without their ids."""
_NUMBERS: dict[str, int] = {}
"""Text of a token -> its number, for servers that return no ids; shared, so that two samplers use the same numbers."""


def server_sampler(
    url: str,
    prompt: Tokens | str,
    max_tokens: int,
    *,
    model: str = "",
    top: int = 1,
    stream: bool = False,
    single: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., list[dict[str, Any]]]:
    """Return ``sample(seed, n, prefix=())``, which requests n completions from a server at once.

    Args:
        url: The address of ``/v1/completions``, which is also used without a path, or of another path with the same
            requests and answers. ``specverify sample URL`` also sends the requests of other paths.
        prompt: A text or token ids.
        max_tokens: Largest number of new tokens of a completion.
        model: The model to request.
        top: Number of most likely tokens to request at each position.
        stream: Whether to keep the chunks of a stream; then each completion is a request of its own.
        single: Whether each completion is a request of its own, with the seeds that follow ``seed``. Statistics that a
            server reports for a whole answer, such as the accepted drafts of llama.cpp, are read only then.
        options: Fields of the request, such as ``{"temperature": 0.7}``.

    Returns:
        A sampler for ``check_sampler``. Each answer has ``tokens`` and, if the server returns them, ``logprobs``,
        ``top_logprobs``, ``text``, ``chunks``, ``finish_reason``, ``usage``, and the statistics ``drafted``,
        ``accepted``, ``rounds``, ``accepted_per_position``, ``acceptance_rate`` and ``tokens_per_round``. Without token
        ids from the server, a token is numbered by its text. A ``prefix`` of tokens is added to a prompt of token ids.
        It raises ``UnusableSubject`` for an answer that cannot be read, and for a prefix without token ids.

    Raises:
        ValueError: For invalid arguments.

    Examples:
        >>> sample = server_sampler("http://localhost:8000/v1/completions", (3, 1, 4), max_tokens=2)
        >>> callable(sample)  # the first request is sent when the sampler is called
        True
    """
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise argument_error("url", url, "the URL of a server of completions")
    server = server_at(url)
    if server.dialect.ends:
        expected = "a path with the requests of /v1/completions; `specverify sample URL` sends those of other paths too"
        raise argument_error("url", url, expected)
    url = server.url
    if not (
        isinstance(prompt, (str, tuple, list)) and prompt and (isinstance(prompt, str) or all(map(is_token, prompt)))
    ):
        raise argument_error("prompt", prompt, "a text, or a non-empty sequence of token ids")
    if not isinstance(options or {}, Mapping):
        raise argument_error("options", options, 'fields of the request, such as {"temperature": 0.7}')
    check_count(max_tokens, "max_tokens")
    check_count(top, "top", least=0)
    check_flag(stream, "stream")
    check_flag(single, "single")
    fields = {
        "max_tokens": max_tokens,
        "logprobs": top,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        **({"model": model} if model else {}),
        **(options or {}),
    }

    def sample(seed: int, number: int, prefix: Tokens = ()) -> list[dict[str, Any]]:
        asked = {**fields, "prompt": _continued(url, prompt, prefix)}
        if stream:
            usage = {"stream": True, "stream_options": {"include_usage": True}}
            return [_streamed(url, {**asked, **usage, "seed": seed + place, "n": 1}) for place in range(number)]
        if single:
            return [_alone(url, {**asked, "seed": seed + place, "n": 1}) for place in range(number)]
        with _opened(url, {**asked, "seed": seed, "n": number}) as body:
            return _answers(url, _decoded(url, body.read()), number)

    return sample


def _continued(url: str, prompt: Tokens | str, prefix: Tokens) -> str | list[int]:
    """Return ``prompt`` followed by the tokens ``prefix``, so that the server at ``url`` continues a text.

    Raises ``UnusableSubject`` for a prefix if the prompt is a text, or if the server returns no token ids.
    """
    if isinstance(prompt, str) and prefix:
        raise UnusableSubject(f"the prompt is {shown(prompt)}, expected token ids, which a prefix can follow")
    if prefix and url in _WITHOUT_IDS:
        raise UnusableSubject(f"{url} returns no token ids, so no text can be continued by tokens")
    return prompt if isinstance(prompt, str) else [*prompt, *prefix]


def _alone(url: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Request one completion from the server at ``url``, with these ``fields``.

    Returns its tokens and values, with the statistics of the server's answer.
    """
    with _opened(url, fields) as body:
        answer = _decoded(url, body.read())
    return _statistics(answer) | _answers(url, answer, 1)[0]


def _opened(url: str, fields: Mapping[str, Any]) -> Any:
    key = os.environ.get("SPECVERIFY_API_KEY")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers)  # noqa: S310 - it is http or https
    try:
        return urllib.request.urlopen(request, timeout=SECONDS)  # noqa: S310 - as above
    except urllib.error.HTTPError as error:
        said = error.read()[:300].decode("utf-8", "replace")
        raise UnusableSubject(f"{url} answered {error.code}: {said}") from None
    except (OSError, ValueError) as error:
        raise UnusableSubject(f"{url} does not answer: {error}") from None


def _decoded(url: str, data: bytes | str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise UnusableSubject(f"{url} answered {shown(data[:300])}, expected JSON") from None


def _answers(url: str, answer: Any, number: int) -> list[dict[str, Any]]:
    choices = choices_in(answer)
    rows = None if choices is None else rows_in(choices)
    if choices is None or rows is None or len(rows) != number:
        raise UnusableSubject(f"{url} answered {shown(answer)}, expected {number} completions with their tokens")
    if any(isinstance(token, str) for row in rows for token in row):
        _WITHOUT_IDS.add(url)
    result = [_values(choice, row) for choice, row in zip(choices, rows, strict=True)]
    usage = value_at(answer, "usage")
    if isinstance(usage, Mapping) and isinstance(usage.get("completion_tokens"), int):
        others = sum(len(row) for row in rows[1:])
        for place, each in enumerate(result):  # what the sum is off by stands at the first completion
            count = usage["completion_tokens"] - others if place == 0 else len(each["tokens"])
            each["usage"] = {"completion_tokens": count}
        if number == 1:
            result[0]["usage"] = dict(usage)
        else:
            result[0]["usage"] |= _reasoning(usage, others)
    return result


def _reasoning(usage: Mapping[str, Any], others: int) -> dict[str, int]:
    """Return {"reasoning_tokens": number} for the first of several completions; {} if the server does not count them.

    ``usage`` counts the reasoning tokens of all completions together. The number is this count minus ``others``, the
    number of tokens of the other completions, and at least 0.
    """
    for path in ("reasoning_tokens", "completion_tokens_details.reasoning_tokens"):
        count = value_at(usage, path)
        if isinstance(count, int):
            return {"reasoning_tokens": max(count - others, 0)}
    return {}


def _statistics(answer: Any) -> dict[str, Any]:
    """Return the statistics in the answer of one completion: name -> value. ``usage`` is left out."""
    given = {name: value_of(answer, name) for name in STATISTICS if name != "usage"}
    return {name: value for name, value in given.items() if value is not None}


def _values(choice: Mapping[str, Any], row: Sequence[Any]) -> dict[str, Any]:
    """Return name -> value for one completion: its tokens, and the further values that the server returned.

    ``choice`` is the completion in the server's answer, and ``row`` has its tokens, each an id or a text.
    """
    result: dict[str, Any] = {"tokens": [_number(token) for token in row]}
    logprobs = value_at(choice, "logprobs.content[].logprob") or value_at(choice, "logprobs.token_logprobs")
    if logprobs is not None:
        result["logprobs"] = logprobs
    top = value_at(choice, "logprobs.content[].top_logprobs") or value_at(choice, "logprobs.top_logprobs")
    if isinstance(top, list):
        result["top_logprobs"] = [None if entry is None else list(_pairs(entry)) for entry in top]
    for name, paths in (
        ("text", ("text", "message.content", "content")),
        ("finish_reason", ("finish_reason",)),
        ("stop_reason", ("stop_reason",)),
    ):
        value = next((value for path in paths if (value := value_at(choice, path)) is not None), None)
        if value is not None:
            result[name] = value
    return result | _statistics(choice)


def _pairs(entry: Any) -> Iterator[tuple[int, float]]:
    """Yield (token, log-probability) of the most probable tokens at one position.

    ``entry`` is a list of objects or of pairs, or a mapping from tokens to log-probabilities.
    """
    for item in entry.items() if isinstance(entry, Mapping) else entry:
        if isinstance(item, Mapping):
            token = item["id"] if "id" in item else id_or_text(item["token"])
            yield _number(token), float(item["logprob"])
        else:
            yield _number(id_or_text(item[0])), float(item[1])


def _number(token: Any) -> int:
    return token if isinstance(token, int) else _NUMBERS.setdefault(str(token), len(_NUMBERS))


def _streamed(url: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Request one completion as a stream of events; return its tokens and values, with the chunks of text.

    ``url`` is the address of the server. ``fields`` are the fields of the request. Raises ``UnusableSubject`` if the
    stream has no tokens.
    """
    result: dict[str, Any] = {"tokens": [], "logprobs": [], "top_logprobs": [], "chunks": []}
    with _opened(url, fields) as body:
        for line in body:
            data = line.decode("utf-8").strip().removeprefix("data:").strip()
            if not data or data == "[DONE]" or data.startswith(":"):
                continue
            event = _decoded(url, data)
            usage = value_at(event, "usage")
            if isinstance(usage, Mapping) and isinstance(usage.get("completion_tokens"), int):
                result["usage"] = dict(usage)
            result |= _statistics(event)
            for choice in choices_in(event) or ():
                _add(result, choice)
    if not result["tokens"]:
        raise UnusableSubject(f"{url} streamed no tokens, expected token ids or the tokens of log-probabilities")
    return {name: value for name, value in result.items() if value != [] or name == "chunks"}


def _add(found: dict[str, Any], choice: Mapping[str, Any]) -> None:
    """Add the data of one event of a stream, ``choice``, to the completion ``found``."""
    delta = value_at(choice, "delta.content")
    chunk = delta if delta is not None else value_at(choice, "text")
    if isinstance(chunk, str) and chunk:
        found["chunks"].append(chunk)
    rows = rows_in([choice]) if value_at(choice, "logprobs") or value_at(choice, "token_ids") else None
    if rows is not None:
        values = _values(choice, rows[0])
        for name in ("tokens", "logprobs", "top_logprobs"):
            found[name] += values.get(name, [])
    if value_at(choice, "finish_reason"):
        found["finish_reason"] = choice["finish_reason"]
