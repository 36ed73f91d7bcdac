"""Names of black boxes to what samples: each is a program that answers lines of JSON, in a process of its own.

``python:module:callable``, ``command:PROGRAM ARGUMENTS``, ``http://...`` or ``https://...`` (also ``http:URL``). A
program of ``command:`` reads lines such as

    {"ask": "sample", "prompt": [3, 1], "max_tokens": 2, "seed": 7, "n": 32}
    {"ask": "logprobs", "prompt": [3, 1, 4], "top": 20}

and answers each with a line: ``{"tokens": [[4, 1], ...]}``, n rows of ids or words, and beside them, if it likes,
``"accepted": [3, ...]``, how many drafts of each were accepted; ``{"logprobs": [[4, -0.3], ...]}``, the likeliest next
tokens, if it can tell them; or ``{"error": "..."}``.
"""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from specverify.base.arguments import is_token, shown
from specverify.foreign.lines import Ask, Limits, answering
from specverify.laws.known_law import OTHERS
from specverify.laws.near_ties import NO_TOKEN, Logits
from specverify.reference import Tokens
from specverify.subjects.sampler import Sampler
from specverify.subjects.subject import UnusableSubject

KINDS: Final = "python:module:callable, command:PROGRAM or http://HOST/v1/completions"
TOP: Final = 20
LEAST_LEFT: Final = 1e-6
"""Probability of what is not told, at least: sums of float32 are no nearer to 1."""
MOST_QUESTIONS: Final = 500
"""Prefixes whose next token is asked for, at most, to make a law."""


class Wanted(NamedTuple):
    """What a black box is asked to sample."""

    prompt: Tokens | str = ()
    max_tokens: int = 1
    temperature: float | None = None
    model: str = ""
    eos: int | str | None = None
    """Where a sequence ends early: this token ends it, whether or not the subject shows it."""
    whole: bool = False
    """Whether a sequence that ends early, without ``eos`` to tell why, cannot be judged."""


class BlackBox(NamedTuple):
    """A program that runs."""

    sampler: Sampler
    logprobs: Callable[[Tokens], Mapping[Any, float]]
    """The logarithms of the probabilities of the likeliest tokens after the prompt and these."""


class Words(NamedTuple):
    """Numbers for tokens: ids stand for themselves, words for the place at which they came first."""

    numbers: dict[str, int]
    kinds: set[type]

    def number(self, token: Any) -> int:
        """Return the number of a token. Raises ``UnusableSubject`` where ids and words are mixed."""
        if not is_token(token) and not isinstance(token, str):
            raise UnusableSubject(f"a token is {shown(token)}, expected an id of at least 0 or a word")
        self.kinds.add(type(token))
        if len(self.kinds) > 1:
            raise UnusableSubject(f"some tokens are ids and some are words ({shown(token)}), expected one of them")
        return self.numbers.setdefault(token, len(self.numbers)) if isinstance(token, str) else int(token)


def is_black_box(name: str) -> bool:
    """Return whether a name is that of a black box."""
    return name.startswith(("python:", "command:", "http:", "https:"))


@contextmanager
def opened(name: str, wanted: Wanted, limits: Limits, words: Words) -> Iterator[BlackBox]:
    """Start a black box. Raises ``UnusableSubject`` in one sentence, here and whenever it is asked."""
    with answering(_command(name, wanted), name, limits) as ask:
        yield BlackBox(
            Sampler(name, lambda seed, n: _sampled(ask, name, wanted, words, seed, n)),
            lambda prefix: _logprobs(ask, name, wanted, prefix),
        )


def _command(name: str, wanted: Wanted) -> Sequence[str]:
    kind, _, rest = name.partition(":")
    here = [sys.executable, "-m"]
    if kind == "python" and ":" in rest:
        return [*here, "specverify.foreign.callable_answers", rest]
    if kind == "command" and rest.strip():
        return shlex.split(rest)
    if kind in {"http", "https"} and rest:
        url = name if rest.startswith("//") else rest
        if url.startswith(("http://", "https://")):
            return [*here, "specverify.foreign.completions", url, *([wanted.model] if wanted.model else [])]
    hint = f", did you mean python:{name}?" if ":" in name and not is_black_box(name) else ""
    raise UnusableSubject(f"{name!r} is no black box, expected {KINDS}{hint}")


def _sampled(ask: Ask, name: str, wanted: Wanted, words: Words, seed: int, number: int) -> Any:
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


def _ended(tokens: Tokens, wanted: Wanted, words: Words) -> Tokens:
    """Return a sequence without what ends it: some show the end-of-sequence token, some do not."""
    end = None if wanted.eos is None else words.number(wanted.eos)
    return tokens[: tokens.index(end)] if end in tokens else tokens


def _logprobs(ask: Ask, name: str, wanted: Wanted, prefix: Tokens) -> Mapping[Any, float]:
    if prefix and not isinstance(wanted.prompt, tuple):
        raise UnusableSubject(f"{name} is given a text, and what follows more than one token needs a prompt of ids")
    prompt = (*wanted.prompt, *prefix) if isinstance(wanted.prompt, tuple) else wanted.prompt
    if wanted.temperature == 0:
        wanted = wanted._replace(temperature=None)  # of the row whose argmax is taken, not of a point mass
    found = ask({"ask": "logprobs", **_given(wanted), "prompt": prompt, "top": TOP}).get("logprobs")
    try:
        told = {token: float(value) for token, value in found or ()}
    except (TypeError, ValueError):
        raise UnusableSubject(f"{name} answered {shown(found)}, expected logprobs: pairs of token, logarithm") from None
    if not told:
        raise UnusableSubject(f"{name} tells no logprobs, expected a law or a reference")
    return told


def _given(wanted: Wanted) -> dict[str, Any]:
    temperature = {} if wanted.temperature is None else {"temperature": wanted.temperature}
    return {"prompt": wanted.prompt, **temperature}


def told_logits(box: BlackBox, wanted: Wanted, words: Words, rounding: float) -> Logits:
    """Return what a black box tells of next tokens, with how far off it may be; nothing where it cannot tell."""

    def row(new: Tokens) -> Mapping[int, float] | None:
        try:
            told = {words.number(token): value for token, value in box.logprobs(new).items()}
        except UnusableSubject:
            return None
        end = None if wanted.eos is None else told.get(words.number(wanted.eos), min(told.values()))
        return told if end is None else {**told, NO_TOKEN: end}

    return Logits(row, rounding)


def law_from_logprobs(box: BlackBox, wanted: Wanted, words: Words, rounding: float) -> dict[Any, float]:
    """Return the law of sequences by what the subject itself says of next tokens, prefix by prefix.

    The likeliest prefixes are asked about first; what is not told, or would take more than ``MOST_QUESTIONS``, stands
    under ``OTHERS``. What is told may be off by ``rounding``, relatively, and what it leaves over by as much, which is
    added to it: a right subject is within ``(1 + rounding)^2`` of every probability. Raises ``UnusableSubject`` where
    the subject cannot tell, or tells no probabilities.
    """
    law: dict[Any, float] = {}
    open_prefixes: dict[Tokens, float] = {(): 1.0}
    end = None if wanted.eos is None else words.number(wanted.eos)
    for _ in range(MOST_QUESTIONS):
        if not open_prefixes:
            break
        prefix = max(open_prefixes, key=open_prefixes.__getitem__)
        mass = open_prefixes.pop(prefix)
        told = {words.number(token): math.exp(value) for token, value in box.logprobs(prefix).items()}
        if sum(told.values()) > 1 + max(rounding, 1e-3):
            raise UnusableSubject(f"{box.sampler.name} tells probabilities that sum to {sum(told.values()):.4g}")
        for token, share in told.items():
            text = prefix if token == end else (*prefix, token)
            complete = token == end or len(text) == wanted.max_tokens
            (law if complete else open_prefixes)[text] = mass * share
    law[OTHERS] = max(1 - math.fsum(law.values()), 0.0) + max(rounding, LEAST_LEFT)
    total = math.fsum(law.values())
    return {text: mass / total for text, mass in law.items()}


def law_of_file(file: Path) -> Any:
    """Return the law that a JSON file holds: a pmf, or probabilities by ids with spaces between, and "others".

    Raises ``ValueError`` in one sentence for anything else.
    """
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"the law {str(file)!r} cannot be read: {error}") from None
    if isinstance(found, list) and all(isinstance(item, (int, float)) for item in found):
        return found
    if isinstance(found, dict):
        return {_key(key, file): value for key, value in found.items()}
    raise ValueError(f"the law {str(file)!r} is neither a list of probabilities nor an object of them by token ids")


def _key(key: str, file: Path) -> Any:
    parts = key.split()
    if key == OTHERS:
        return key
    if not all(part.isdecimal() for part in parts):
        raise ValueError(f"the law {str(file)!r} has the key {key!r}, expected token ids with spaces or {OTHERS!r}")
    return tuple(map(int, parts))
