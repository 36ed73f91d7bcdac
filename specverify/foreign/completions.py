"""``python -m specverify.foreign.completions URL`` samples a completion server.

Each line of standard input is a question in JSON, and each line of standard output its answer. ``DIALECTS`` is the
table of request bodies, chosen by the path of the URL; ``foreign.answer_shapes`` holds the table of answers. If a
server rejects an optional field by name, the field is left out. If it rejects a number by name, such as samples per
request or the count of log-probabilities, the number is lowered and further requests make up for it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from random import Random
from typing import Any, Final, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from specverify.foreign.answer_shapes import accepted_in, choices_in, logprobs_in, rows_in

LARGEST: Final = 2**28
"""Bytes of a server's answer that are read at most."""
WAIT: Final = 3600.0
"""Seconds to wait for one answer of the server; the caller of this program usually ends it earlier."""
KEY: Final = "SPECVERIFY_API_KEY"
"""Name of the environment variable that holds the API key of the server, if it needs one."""
NEUTRAL: Final[Mapping[str, Any]] = {
    "top_k": -1,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "dry_multiplier": 0.0,
    "xtc_probability": 0.0,
    "mirostat": 0,
}
"""Sampling options that do not change the model's law; servers or model files may have other defaults."""
PENALTIES: Final = ("repetition_penalty", "repeat_penalty", "presence_penalty", "frequency_penalty", "dry_multiplier")
"""Names of sampling options that can change which token is the most likely."""
ADAPTABLE: Final = (400, 413, 422, 500, 501)
"""HTTP statuses whose message may name a field that the server rejects."""


class Dialect(NamedTuple):
    """The format of a request to one kind of server.

    It maps the data of a question to fields of the request body. A dot in the name of a field enters an object: ``a.b``
    is the field ``b`` of the object ``a``.
    """

    ends: str
    """The end of the URL's path for which this format is used."""
    fields: Mapping[str, Sequence[str]]
    """Key of a question, such as ``max_tokens`` -> the fields of the request body that get its value."""
    options: Sequence[str] = ("",)
    """Paths of the objects in the body that get the sampling options; "" is the body itself."""
    to_sample: Mapping[str, Any] = {}
    """Optional fields of a request for samples: left out if the server rejects them."""
    to_tell: Mapping[str, Any] = {}
    """Optional fields of a request for log-probabilities: left out if the server rejects them."""
    needed_to_tell: Mapping[str, Any] = {}
    """Required fields of a request for log-probabilities."""
    texts_alone: bool = False
    """Whether the prompt is a chat message, which must be text and cannot be token ids."""


IDS: Final = {"return_token_ids": True, "return_tokens_as_token_ids": True}
OPENAI: Final = {name: (name,) for name in ("prompt", "max_tokens", "seed", "n", "temperature", "model")}
TOLD: Final = {"post_sampling_probs": True}
DIALECTS: Final = (
    Dialect(
        "/chat/completions",
        {**OPENAI, "prompt": ("messages",), "top": ("top_logprobs",)},
        to_sample={"logprobs": True, **IDS},
        to_tell={**TOLD, **IDS},
        needed_to_tell={"logprobs": True},
        texts_alone=True,
    ),
    Dialect(
        "/completion",  # llama.cpp
        {**OPENAI, "max_tokens": ("n_predict",), "top": ("n_probs",)},
        to_sample={"return_tokens": True},
        to_tell={"return_tokens": True, **TOLD},
    ),
    Dialect(
        "/generate",  # TGI and SGLang: each ignores the fields of the other
        {
            "text": ("inputs", "text"),
            "ids": ("input_ids",),
            "max_tokens": ("parameters.max_new_tokens", "sampling_params.max_new_tokens"),
            "seed": ("parameters.seed", "sampling_params.sampling_seed"),
            "n": ("sampling_params.n",),
            "temperature": ("parameters.temperature", "sampling_params.temperature"),
            "top": ("parameters.top_n_tokens", "top_logprobs_num"),
        },
        options=("parameters", "sampling_params"),
        to_sample={"parameters.do_sample": True, "parameters.details": True},
        to_tell={"parameters.do_sample": True, "parameters.details": True},
        needed_to_tell={"return_logprob": True},
    ),
    Dialect(
        "",  # /v1/completions
        {**OPENAI, "top": ("logprobs",)},
        to_sample={"logprobs": 1, **IDS},
        to_tell={**TOLD, **IDS},
    ),
)
"""Formats of requests; the first one whose ``ends`` fits the path of the URL is used."""
LIMITED: Final[Mapping[str, re.Pattern[str]]] = {
    "n": re.compile(r"\bn\b|\bn_cmpl\b|best_of|num_return_sequences|\bparallel\b|completion choice", re.IGNORECASE),
    "top": re.compile(r"\b(logprobs|top_logprobs|n_probs|top_n_tokens|top_logprobs_num)\b", re.IGNORECASE),
}
"""Key of a question whose number a server may limit -> how error messages name it."""


class UnusableAnswer(Exception):  # noqa: N818 - reads as the sentence it is
    """The answer of the server cannot be used; the message of the exception is the reason."""


class HttpRefusal(NamedTuple):
    """An HTTP answer with a status other than 200: the status, and the message of the server."""

    status: int
    message: str


class Server(NamedTuple):
    """A server with the format of its requests, and the limits that it has reported so far."""

    url: str
    dialect: Dialect
    model: str
    neutral: bool
    """Whether requests contain the options of ``NEUTRAL``, unless the user's sampling options set others."""
    most: dict[str, int]
    """Key of a question -> the largest number that the server accepts, for the limits known so far."""
    refused: set[str]
    """Names of optional fields that the server has rejected."""
    notes: list[str]
    """Sentences for the report that have not been sent with an answer yet."""


def main() -> None:
    """Send each line of standard input, a JSON object, to a completion server as a request, and print its answers."""
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--model", default="")
    parser.add_argument("--neutral", action="store_true")
    given = parser.parse_args()
    server = server_at(given.url, given.model, neutral=given.neutral)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"sample": sample, "logprobs": logprobs_after}[question["ask"]](server, question)
        except UnusableAnswer as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def server_at(url: str, model: str = "", *, neutral: bool = False) -> Server:
    """Return the server at ``url``; a URL without a path gets the path ``/v1/completions``.

    ``model`` is the model name in requests; with "" they have none. With ``neutral``, each request sets top-k, top-p,
    penalties and similar options to values without effect (``NEUTRAL``), unless the question sets them.
    """
    path = urlsplit(url).path.rstrip("/")
    if not path:
        url, path = url.rstrip("/") + "/v1/completions", "/v1/completions"
    dialect = next(dialect for dialect in DIALECTS if path.endswith(dialect.ends))
    return Server(url, dialect, model, neutral, {}, set(), [])


def sample(server: Server, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a question for samples: the tokens of its ``n`` samples, as ``tokens``.

    As few requests are sent as the limits of the server allow, with seeds derived from the question's ``seed``. The
    answer also has the numbers of accepted drafts (``accepted``) if the server reports them, and notes about the
    limits. Raises ``UnusableAnswer`` if the server returns no tokens or too many samples.
    """
    rows: list[list[Any]] = []
    accepted: list[int | None] = []
    for seed in _seeds(question["seed"]):
        left = question["n"] - len(rows)
        if not left:
            break
        choices, asked = _choices(server, {**question, "seed": seed, "n": left})
        new = rows_in(choices)
        if new is None:
            raise UnusableAnswer(f"it answered {_short(choices[0])}, and neither tokens nor a text are in it")
        if len(new) < asked:
            _limit(server, "n", len(new), f"of {asked} it answered {len(new)}")
        if len(new) > asked:
            raise UnusableAnswer(f"it answered {len(new)} samples, expected {asked}")
        rows += new
        accepted += [accepted_in(choice) for choice in choices]
    counts = {"accepted": [count or 0 for count in accepted]} if any(count is not None for count in accepted) else {}
    return {"tokens": rows, **counts, **_news(server)}


def logprobs_after(server: Server, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a question for log-probabilities: those of the most likely tokens after a prompt.

    ``logprobs`` are pairs (token, log-probability), as many as the server returns. ``processed`` is True if the server
    computed them after all sampling options, such as top-k. If the question has no temperature, they are those before
    temperature and truncation. Raises ``UnusableAnswer`` if the server returns none.
    """
    choices, _ = _choices(server, {**question, "max_tokens": 1, "n": 1})
    told = logprobs_in(choices[0])
    if told is None:
        raise UnusableAnswer(f"it answered {_short(choices[0])}, and no log-probabilities of next tokens are in it")
    pairs, processed = told
    return {"logprobs": pairs, "processed": processed, **_news(server)}


def _choices(server: Server, question: Mapping[str, Any]) -> tuple[list[Any], int]:
    """Return the samples in the server's answer to ``question``, and the number of samples that was requested.

    If the server rejects the request for a limit that it names, the request is repeated with lower numbers or fewer
    fields.
    """
    while True:
        limits = {name: most for name, most in server.most.items() if name in question}
        asked = {**question, **{name: min(question[name], most) for name, most in limits.items()}}
        answer = post_json(server.url, body_of(server, asked))
        if not isinstance(answer, HttpRefusal):
            choices = choices_in(answer)
            if choices is None:
                raise UnusableAnswer(f"it answered {_short(answer)}, and no samples are in it")
            return choices, asked["n"]
        if not _adapt(server, asked, answer):
            raise UnusableAnswer(_sentence(answer))


def body_of(server: Server, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON body of the request for ``question`` in the server's format."""
    dialect, prompt = server.dialect, question["prompt"]
    words = {**question, ("ids" if isinstance(prompt, list) else "text"): prompt}
    if server.model:
        words["model"] = server.model
    if question["ask"] == "logprobs":
        words.setdefault("temperature", 1.0)
    if dialect.texts_alone:
        if isinstance(prompt, list) and prompt:
            raise UnusableAnswer("a chat takes a text, and the prompt is token ids: use /v1/completions or a text")
        words["prompt"] = [{"role": "user", "content": prompt or ""}]
    fields = _optional(server, question)
    if question["ask"] == "logprobs":
        fields |= dialect.needed_to_tell
    for word, places in dialect.fields.items():
        fields |= {place: words[word] for place in places if word in words}
    body: dict[str, Any] = {}
    for place, value in fields.items():
        objects, _, name = place.rpartition(".")
        _object_at(body, objects)[name] = value
    for objects in dialect.options:
        _object_at(body, objects).update(question.get("options", {}))
    return body


def _object_at(body: dict[str, Any], objects: str) -> dict[str, Any]:
    """Return the object in ``body`` at the path ``objects``, keys joined by dots; "" is the body itself.

    Missing objects are created.
    """
    for name in objects.split(".") if objects else ():
        body = body.setdefault(name, {})
    return body


def _optional(server: Server, question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the optional fields of the request for ``question``, as path in the body -> value.

    Fields that the server has rejected are left out.
    """
    dialect = server.dialect
    fields = dict(dialect.to_tell if question["ask"] == "logprobs" else dialect.to_sample)
    greedy = question["ask"] == "logprobs" and "temperature" not in question
    neutral = {name: value for name, value in NEUTRAL.items() if server.neutral or name not in PENALTIES}
    for place in dialect.options if server.neutral or greedy else ():
        fields |= {f"{place}.{name}" if place else name: value for name, value in neutral.items()}
    return {place: value for place, value in fields.items() if place.rpartition(".")[2] not in server.refused}


def _adapt(server: Server, question: Mapping[str, Any], refusal: HttpRefusal) -> bool:
    """Record in ``server`` the limit that ``refusal``, an HTTP error, names; return whether to try again.

    The limit is an optional field, to be left out, or a number of the request, to be lowered. ``question`` is the
    question whose request was refused.
    """
    if refusal.status not in ADAPTABLE:
        return False
    for place in _optional(server, question):
        name = place.rpartition(".")[2]
        if re.search(rf"\b{re.escape(name)}\b", refusal.message):
            server.refused.add(name)
            return True
    for word, pattern in LIMITED.items():
        number = question.get(word, 1)
        if number > 1 and pattern.search(refusal.message):
            smaller = [int(text) for text in re.findall(r"\d+", refusal.message) if 0 < int(text) < number]
            _limit(server, word, max(smaller, default=number // 2), f"{number} are refused ({refusal.message[:120]})")
            return True
    return False


def _limit(server: Server, word: str, number: int, reason: str) -> None:
    server.most[word] = number
    if word == "n":
        samples = "1 sample" if number == 1 else f"{number} samples"
        server.notes[:] = [f"each request asks for {samples}: {reason}"]


def _news(server: Server) -> dict[str, Any]:
    notes = {"notes": list(server.notes)} if server.notes else {}
    server.notes.clear()
    return {**notes, **({"at_once": server.most["n"]} if "n" in server.most else {})}


def _seeds(seed: int) -> Iterator[int]:
    """Yield distinct seeds for the requests of one question: first ``seed``, then seeds derived from it."""
    yield seed
    rng, given = Random(seed), {seed}  # noqa: S311 - seeds, not secrets
    while True:
        other = rng.getrandbits(31)
        if other not in given:
            given.add(other)
            yield other


def post_json(url: str, body: Mapping[str, Any]) -> Any:
    """Post ``body`` as JSON to ``url`` and return the JSON answer, or an ``HttpRefusal`` for an error status.

    Raises ``UnusableAnswer`` with a one-sentence reason if there is no answer or no JSON.
    """
    key = {"Authorization": f"Bearer {os.environ[KEY]}"} if os.environ.get(KEY) else {}
    headers = {"Content-Type": "application/json", **key}
    try:
        request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - http only
        with urlopen(request, timeout=WAIT) as response:  # noqa: S310 - as above
            text = response.read(LARGEST)
    except HTTPError as error:
        return HttpRefusal(error.code, _message(error.read(2**16).decode("utf-8", "replace")))
    except (URLError, OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise UnusableAnswer(f"the request failed: {getattr(reason, 'strerror', None) or reason}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        start = text[:4096].decode("utf-8", "replace")
        raise UnusableAnswer(f"it answered {_title(start) or repr(start[:60])}, expected JSON") from None


def _message(text: str) -> str:
    """Return the error message in ``text``, the body of an HTTP refusal, without a copy of the request in it."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return _title(text) or " ".join(text.split())[:300]
    for name in ("error", "message", "detail"):
        if isinstance(data, dict) and name in data:
            data = data[name]
    if isinstance(data, list):
        data = "; ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}" if {"loc", "msg"} <= item.keys() else str(item)
            for item in data
            if isinstance(item, dict)
        )
    return " ".join(str(data).split())[:600]


def _title(text: str) -> str:
    """Return a short description of an HTML page with its title, if it has one; "" if ``text`` is not HTML."""
    if not re.match(r"\s*<(!doctype|html|head)", text, re.IGNORECASE):
        return ""
    title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
    return "a page of HTML" + (f" ({' '.join(title[1].split())[:80]!r})" if title else "")


def _sentence(refusal: HttpRefusal) -> str:
    said = f"it answered with status {refusal.status}: {refusal.message or 'nothing more'}"
    ways = {
        401: f"; put the key of the server into the environment variable {KEY}",
        403: f"; put the key of the server into the environment variable {KEY}",
        404: "; expected a path that ends in /v1/completions, /v1/chat/completions, /completion or /generate",
    }
    return said + ways.get(refusal.status, "")


def _short(answer: Any) -> str:
    """Return the first 160 characters of an answer's JSON."""
    text = json.dumps(answer)
    return text if len(text) <= 160 else f"{text[:157]}..."


if __name__ == "__main__":
    main()
