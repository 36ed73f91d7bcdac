"""Open a black box by its name as a sampler: a program in its own process that answers lines of JSON.

Names: ``python:module:callable``, ``command:PROGRAM ARGUMENTS``, ``http://...`` or ``https://...`` (also ``http:URL``).
A program of ``command:`` reads lines such as

  {"ask": "sample", "prompt": [3, 1], "max_tokens": 2, "seed": 7, "n": 32}
  {"ask": "logprobs", "prompt": [3, 1, 4], "top": 20}

and answers each with one line: ``{"tokens": [[4, 1], ...]}``, n rows of ids or words, optionally with ``"accepted": [3,
...]``, the accepted drafts of each row; ``{"logprobs": [[4, -0.3], ...]}``, the most probable next tokens, if
available; or ``{"error": "..."}``. Questions contain ``"temperature"`` and ``"options"`` (an object) if the caller
passed them. ``"processed": true`` beside log-probabilities states that they include the temperature and the options.
``"notes"``, a list of sentences, are printed; ``"at_once": 8`` states how many samples a call draws together.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.base.arguments import is_token, shown
from specverify.base.files import reason_of
from specverify.foreign.lines import Limits, answering
from specverify.laws.known_law import OTHERS
from specverify.reference import Tokens
from specverify.run.sequential_samples import FIRST_CALL, SamplingPlan, seeds_of
from specverify.subjects.sampler import Sampler, drawn
from specverify.subjects.subject import UnusableSubject

KINDS: Final = "python:module:callable, command:PROGRAM or http://HOST/v1/completions"
TOP: Final = 20
Ask = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class SampleRequest(NamedTuple):
    """The prompt, length and options of the samples requested from a black box.

    ``max_tokens`` is the largest number of new tokens of a sample. ``temperature`` and ``model`` are sent with the
    request, unless they are None and "".
    """

    prompt: Tokens | str = ()
    max_tokens: int = 1
    temperature: float | None = None
    model: str = ""
    eos: int | str | None = None
    """The end-of-sequence token, with which a sequence may end early, whether or not the black box returns it."""
    whole: bool = False
    """Whether a sequence that ends early without ``eos`` is an error. A server then also gets options that turn off its
    default truncation and penalties, except where ``options`` sets them."""
    options: Mapping[str, Any] = {}
    """Sampling options, under the names that the black box uses."""


class ReportedLogprobs(NamedTuple):
    """The log-probabilities of the next token that a black box reports: token -> log-probability (``logprobs``).

    ``processed`` is True if the black box states that they include the temperature and the other sampling options.
    """

    logprobs: Mapping[Any, float]
    """Token -> log-probability, for the most probable tokens."""
    processed: bool
    """Whether the black box states that they include the temperature and the options."""


class BlackBox(NamedTuple):
    """A running black-box program.

    ``sampler`` draws samples, and ``logprobs(prompt, request)`` returns the log-probabilities of the next token.
    ``notes`` and ``at_once`` collect what the program has reported: sentences for the user, and numbers of samples per
    call.
    """

    sampler: Sampler
    logprobs: Callable[[Tokens, SampleRequest], ReportedLogprobs]
    """``logprobs(prefix, request)`` returns its log-probabilities after the prompt and ``prefix``."""
    notes: list[str]
    """Sentences for the report, in the order in which they came."""
    at_once: list[int]
    """The reported numbers of samples that a call draws together, oldest first; the last number is valid."""


class Words(NamedTuple):
    """The numbers of a black box's tokens.

    A token id is its own number. Tokens that are words are numbered in the order in which they first occur
    (``numbers``). ``kinds`` has the types of the tokens so far: ids and words must not be mixed.
    """

    numbers: dict[str, int]
    kinds: set[type]

    def number(self, token: Any) -> int:
        """Return the number of ``token``. Raises ``UnusableSubject`` if ids and words are mixed."""
        if not is_token(token) and not isinstance(token, str):
            raise UnusableSubject(f"a token is {shown(token)}, expected an id of at least 0 or a word")
        self.kinds.add(type(token))
        if len(self.kinds) > 1:
            raise UnusableSubject(f"some tokens are ids and some are words ({shown(token)}), expected one of them")
        return self.numbers.setdefault(token, len(self.numbers)) if isinstance(token, str) else int(token)


def is_server(name: str) -> bool:
    """Return whether ``name`` begins with one of the prefixes of servers, whose requests name a model."""
    return name.startswith(("http:", "https:"))


def is_black_box(name: str) -> bool:
    """Return whether ``name`` begins with one of the prefixes of black boxes."""
    return is_server(name) or name.startswith(("python:", "command:"))


@contextmanager
def opened(name: str, wanted: SampleRequest, limits: Limits, words: Words) -> Iterator[BlackBox]:
    """Start the black box ``name`` and yield it. The end of the ``with`` block ends its process.

    ``wanted`` describes the requested samples, ``limits`` bounds the process's time and memory, and ``words`` numbers
    its tokens. A failed start or request raises ``UnusableSubject`` with one sentence.
    """
    notes: list[str] = []
    at_once: list[int] = []
    with answering(_command(name, wanted), name, limits) as answered:

        def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
            answer = answered(question)
            new = answer.get("notes")
            notes.extend(str(note) for note in (new if isinstance(new, list) else ()) if str(note) not in notes)
            if is_token(answer.get("at_once")):
                at_once.append(max(1, answer["at_once"]))
            return answer

        sampler = Sampler(name, lambda seed, n: _sampled(ask, name, wanted, words, seed, n))
        yield BlackBox(sampler, lambda prefix, asked: _logprobs(ask, name, asked, prefix), notes, at_once)


def smaller_calls(box: BlackBox, plan: SamplingPlan) -> SamplingPlan:
    """Return ``plan`` with calls no larger than the number of samples that the black box draws together.

    One call of samples is drawn to learn this number. With calls of this size, a server draws all rows of a call in one
    request.
    """
    seed = next(seeds_of([plan.seed, 1]))
    drawn(box.sampler, seed, min(plan.largest_call, FIRST_CALL))
    return plan._replace(largest_call=min([plan.largest_call, *box.at_once[-1:]]))


def _command(name: str, wanted: SampleRequest) -> Sequence[str]:
    kind, _, rest = name.partition(":")
    here = [sys.executable, "-m"]
    if kind == "python" and ":" in rest:
        return [*here, "specverify.foreign.callable_answers", rest]
    if kind == "command" and rest.strip():
        return shlex.split(rest)
    if kind in {"http", "https"} and rest:
        url = name if rest.startswith("//") else rest
        if url.startswith(("http://", "https://")):
            model = ["--model", wanted.model] if wanted.model else []
            neutral = ["--neutral"] if wanted.whole else []
            return [*here, "specverify.foreign.completions", *model, *neutral, "--", url]
    hint = f", did you mean python:{name}?" if ":" in name and not is_black_box(name) else ""
    raise UnusableSubject(f"{name!r} is no black box, expected {KINDS}{hint}")


def _sampled(ask: Ask, name: str, wanted: SampleRequest, words: Words, seed: int, number: int) -> Any:
    answer = ask({"ask": "sample", **_given(wanted), "max_tokens": wanted.max_tokens, "seed": seed, "n": number})
    rows = answer.get("tokens")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise UnusableSubject(f"{name} answered {shown(answer)}, expected tokens: a list of lists of ids or words")
    short = [row for row in rows if len(row) < wanted.max_tokens]
    if short and wanted.whole and wanted.eos is None:
        raise UnusableSubject(
            f"{name} ended a sample after {len(short[0])} of {wanted.max_tokens} tokens: name the token that ends one"
        )
    tokens = [_ended(tuple(map(words.number, row)), wanted, words) for row in rows]
    return {"tokens": tokens, "accepted": answer["accepted"]} if "accepted" in answer else tokens


def _ended(tokens: Tokens, wanted: SampleRequest, words: Words) -> Tokens:
    """Return the sequence ``tokens`` without its end-of-sequence token and without the tokens after it.

    The end-of-sequence token is that of the request ``wanted``; ``words`` has its number. It is removed because only
    some black boxes return it.
    """
    end = None if wanted.eos is None else words.number(wanted.eos)
    return tokens[: tokens.index(end)] if end in tokens else tokens


def _logprobs(ask: Ask, name: str, wanted: SampleRequest, prefix: Tokens) -> ReportedLogprobs:
    if prefix and not isinstance(wanted.prompt, tuple):
        raise UnusableSubject(f"{name} is given a text, and what follows more than one token needs a prompt of ids")
    prompt = (*wanted.prompt, *prefix) if isinstance(wanted.prompt, tuple) else wanted.prompt
    answer = ask({"ask": "logprobs", **_given(wanted), "prompt": prompt, "top": TOP})
    pairs, logprobs = answer.get("logprobs"), dict[Any, float]()
    try:
        for token, value in pairs or ():
            number = float(value)
            if isinstance(token, str) and token in logprobs:  # two tokens of one text
                number = float(np.logaddexp(number, logprobs[token]))
            logprobs[token] = number
    except (TypeError, ValueError):
        raise UnusableSubject(f"{name} answered {shown(pairs)}, expected logprobs: pairs of token, logarithm") from None
    if not logprobs:
        raise UnusableSubject(f"{name} returns no logprobs, expected a law or a reference")
    return ReportedLogprobs(logprobs, answer.get("processed") is True)


def _given(wanted: SampleRequest) -> dict[str, Any]:
    temperature = {} if wanted.temperature is None else {"temperature": wanted.temperature}
    return {"prompt": wanted.prompt, **temperature, **({"options": dict(wanted.options)} if wanted.options else {})}


def law_of_file(file: Path) -> Any:
    """Return the law in a JSON file: a list (a pmf), or a mapping from token sequences to probabilities.

    In the file the mapping is an object. Its key for a sequence has the token ids with spaces between; the key "others"
    stands for all other sequences. Raises ``ValueError`` with one sentence for anything else.
    """
    try:
        result = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"the law {str(file)!r} cannot be read: {reason_of(error)}") from None
    if isinstance(result, list) and all(isinstance(item, (int, float)) for item in result):
        return result
    if isinstance(result, dict):
        return {_key(key, file): value for key, value in result.items()}
    raise ValueError(f"the law {str(file)!r} is neither a list of probabilities nor an object of them by token ids")


def _key(key: str, file: Path) -> Any:
    parts = key.split()
    if key == OTHERS:
        return key
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"the law {str(file)!r} has the key {key!r}, expected token ids with spaces or {OTHERS!r}")
    return tuple(map(int, parts))
