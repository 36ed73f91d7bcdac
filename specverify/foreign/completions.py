"""``python -m specverify.foreign.completions URL [MODEL]``: a completions endpoint answers lines of JSON.

The endpoint is one of the shape that OpenAI's ``/v1/completions`` has. Tokens are taken from ``token_ids`` of a choice
where there are any, else from ``logprobs.tokens``, else its text is one token. Words are told apart by what they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

LARGEST: Final = 2**28
IDS: Final = {"return_token_ids": True, "return_tokens_as_token_ids": True}
"""Some servers tell ids if they are asked to; others do not mind."""
WAIT: Final = 3600.0
"""Seconds for one answer here: whoever asks this program has a limit of its own, and ends it."""


def main() -> None:
    """Answer until the standard input ends."""
    url, *model = sys.argv[1:]
    for line in sys.stdin:
        question = json.loads(line)
        try:
            asks = {"sample": sampled, "logprobs": logprobs_after}[question["ask"]]
            answer = asks(url, {"model": model[0]} if model else {}, question)
        except UnusableAnswer as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


class UnusableAnswer(Exception):  # noqa: N818 - reads as the sentence it is
    """What the endpoint answered cannot be used; the message says why."""


def sampled(url: str, fixed: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokens of ``n`` completions."""
    asked = {name: question[name] for name in ("prompt", "max_tokens", "seed", "n", "temperature") if name in question}
    answer = posted(url, {**fixed, **asked, "logprobs": 1, **IDS})
    return {"tokens": [tokens_of(choice) for choice in choices_of(answer, question["n"])]}


def logprobs_after(url: str, fixed: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the logarithms of the probabilities of the likeliest tokens after a prompt, as many as it tells."""
    asked = {name: question[name] for name in ("prompt", "temperature") if name in question}
    answer = posted(url, {**fixed, **asked, "max_tokens": 1, "n": 1, "logprobs": question["top"], **IDS})
    choice = choices_of(answer, 1)[0]
    try:
        found = choice["logprobs"]["top_logprobs"][0]
        return {"logprobs": [(_id_or_word(token), float(value)) for token, value in found.items()]}
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        raise UnusableAnswer("it tells no logprobs.top_logprobs, and a law from it needs them") from None


def posted(url: str, body: Mapping[str, Any]) -> Any:
    """Return the JSON that the endpoint answers."""
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})  # noqa: S310 - http only
    try:
        with urlopen(request, timeout=WAIT) as response:  # noqa: S310 - as above
            text = response.read(LARGEST)
    except HTTPError as error:
        said = error.read(300).decode("utf-8", "replace")
        raise UnusableAnswer(f"{url} answered with status {error.code}: {' '.join(said.split())}") from None
    except (URLError, OSError, ValueError) as error:
        raise UnusableAnswer(f"{url} cannot be asked: {getattr(error, 'reason', error)}") from None
    try:
        return json.loads(text)
    except ValueError:
        raise UnusableAnswer(f"{url} answered {text[:60]!r}, expected JSON") from None


def choices_of(answer: Any, number: int) -> list[Any]:
    """Return the choices, as many as were asked for, in the order of their index."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != number or not all(isinstance(item, dict) for item in choices):
        found = f"{len(choices)} choices" if isinstance(choices, list) else "no choices"
        raise UnusableAnswer(f"it answered {found}, expected {number}")
    return sorted(choices, key=lambda choice: choice.get("index", 0))


def tokens_of(choice: Mapping[str, Any]) -> list[Any]:
    """Return the tokens of a choice: ids, words, or its text as one word."""
    words = choice.get("logprobs")
    for found in (choice.get("token_ids"), words.get("tokens") if isinstance(words, dict) else None):
        if isinstance(found, list):
            return [_id_or_word(token) for token in found]
    text = choice.get("text")
    if not isinstance(text, str):
        raise UnusableAnswer("a choice has neither token_ids nor logprobs.tokens nor text")
    return [text]


def _id_or_word(token: Any) -> Any:
    """Return the id that some servers write as a word."""
    if isinstance(token, str) and token.startswith("token_id:") and token[9:].isdecimal():
        return int(token[9:])
    return token


if __name__ == "__main__":
    main()
