"""Texts of node-llama-cpp: one Node.js process per configuration, which answers in lines of JSON (``driver.mjs``).

The environment variable ``NODE_LLAMA_CPP`` is the path of the folder that has ``node_modules``.

In the functions here, the parameter ``way`` states how the process is started, and ``asked`` is the request.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from specverify.reference import Tokens
from specverify.subjects.decoding import NOTHING_DRAFTED, Texts

HERE: Final = Path(__file__).parent
FOLDER: Final = "NODE_LLAMA_CPP"
PARTS: Final = 256
"""The most texts per request to the process."""
ACTIVE: Final = 128
"""Number of texts in which drafted and accepted tokens are counted."""
RIGHT: Final[Tokens] = (1,)
"""The outcome of a text that keeps a promise other than the law."""
WRONG: Final[Tokens] = (0,)
ENDING: Final = 2.0
"""Time in seconds for a process to end before it is killed."""
CONFIDENCE: Final = 1e-3
"""Allowed error of a returned probability: a hundred times the rounding of float32."""

if not (os.environ.get(FOLDER) and shutil.which("node")):
    raise ImportError(
        f"the subject of node-llama-cpp needs Node.js, and node_modules in the folder that {FOLDER} names"
    )


class ProcessSetup(NamedTuple):
    """How a Node.js process is started: the arguments of ``driver.mjs``, and the options of the drafter."""

    words: tuple[str, ...] = ()
    """Arguments of the driver; ``target`` and ``draft`` are replaced by the files of the models."""
    predictor: tuple[tuple[str, Any], ...] = ()
    """Options of the library's token predictor (drafter)."""


class Asked(NamedTuple):
    """A request to ``driver.mjs``, which calls node-llama-cpp.

    ``prompt`` are token ids, ``horizon`` is the largest number of new tokens, and ``temperature`` that of the sampling.
    """

    prompt: Tokens
    horizon: int
    temperature: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()
    """(name, value) of the options of ``evaluate``."""


class SampledTexts(NamedTuple):
    """Texts, with the numbers of drafted and accepted tokens and the reported confidences of each text."""

    texts: Sequence[Tokens]
    drafted: Sequence[int]
    accepted: Sequence[int]
    confidences: Sequence[Sequence[float]]


def command(words: Sequence[str]) -> list[str]:
    """Return the command that starts ``driver.mjs`` in Node.js with the arguments ``words``.

    The words ``target`` and ``draft`` are replaced by the files of the models.
    """
    files = {name: str(HERE / "models" / f"{name}.gguf") for name in ("target", "draft")}
    return ["node", str(HERE / "driver.mjs"), files["target"], *(files.get(word, word) for word in words)]


_IDLE: Final = dict[tuple[str, ...], Any]()
"""Arguments of the driver -> its idle process."""


def ask(way: ProcessSetup, question: dict[str, Any]) -> Any:
    """Return the answer to ``question``, a JSON object, of the Node.js process that ``way`` configures.

    Raises ``RuntimeError`` if the answer is an error or the process has ended. The next question then starts a new
    process.
    """
    process: Any = _IDLE.pop(way.words, None) or subprocess.Popen(  # noqa: S603 - the command is ours
        command(way.words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    answer = None
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        answer = json.loads(line) if line else None
    finally:
        if answer is None or "error" in answer:
            end(process)
    if answer is None:
        raise RuntimeError(f"node-llama-cpp: the process ended with status {process.returncode}")
    if "error" in answer:
        raise RuntimeError(f"node-llama-cpp: {answer['error']}")
    _IDLE[way.words] = process
    return answer


def end(process: Any) -> None:
    """End ``process`` and close its streams; it is killed if it does not end in ``ENDING`` seconds."""
    with suppress(OSError):
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answers(way: ProcessSetup, asked: Asked, seed: int, number: int) -> SampledTexts:
    """Return ``number`` texts for the request ``asked``; ``driver.mjs`` derives their seeds from ``seed``.

    ``way`` is how the process is started.
    """
    result = SampledTexts([], [], [], [])
    options = {**dict(asked.options), "draft": dict(way.predictor)}
    question = {"ask": "sample", "prompt": asked.prompt, "max_tokens": asked.horizon, "options": options}
    for part in range(0, number, PARTS):
        more = {"temperature": asked.temperature, "n": min(PARTS, number - part), "seed": (seed * 7919 + part) % 2**31}
        answer = ask(way, question | more)
        columns = (list(map(tuple, answer["tokens"])), *(answer[name] for name in SampledTexts._fields[1:]))
        result = SampledTexts(*(one + other for one, other in zip(result, columns, strict=True)))
    return result


def texts(way: ProcessSetup, asked: Asked) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts for the request ``asked``.

    ``way`` is how the process is started.
    """
    return lambda seed, number: answers(way, asked, seed, number).texts


def activity(way: ProcessSetup, asked: Asked) -> str:
    """Return a sentence such as "300 drafted, 120 accepted in 128 texts; 90 as plain by the same seed".

    The sentence is about texts for the request ``asked``, from a process started as ``way`` states. The last number
    counts texts that equal the text of plain decoding with the same seed.
    """
    done = answers(way, asked, 0, ACTIVE)
    if not sum(done.drafted):
        return NOTHING_DRAFTED
    plain = answers(ProcessSetup(), asked, 0, ACTIVE)
    same = sum(one == other for one, other in zip(done.texts, plain.texts, strict=True))
    counts = f"{sum(done.drafted)} drafted, {sum(done.accepted)} accepted in {ACTIVE} texts"
    return f"{counts}; {same} as plain by the same seed"


Keep = Callable[[ProcessSetup, Asked, int, int], Sequence[bool]]
"""``keep(way, request, seed, number)`` returns for each text whether it keeps a promise."""


def promise(way: ProcessSetup, asked: Asked, keep: Keep) -> Texts:
    """Return a function of (seed, number) that tests a promise of the engine on ``number`` texts.

    A promise is, for example, that no token follows an end token. ``keep(way, asked, seed, number)`` returns for each
    text whether it keeps the promise. The function returns ``RIGHT`` or ``WRONG`` for each text.
    """
    return partial(_kept, way, asked, keep)


def _kept(way: ProcessSetup, asked: Asked, keep: Keep, seed: int, number: int) -> Sequence[Tokens]:
    return [RIGHT if kept else WRONG for kept in keep(way, asked, seed, number)]


def same_again(way: ProcessSetup, asked: Asked, seed: int, number: int) -> Sequence[bool]:
    """Return, for each of ``number`` texts for ``asked``, whether its seed gives the same text again.

    Between the two, the process decodes texts of another prompt.
    """
    first = answers(way, asked, seed, number).texts
    answers(way, asked._replace(prompt=(*asked.prompt[::-1], 0)), seed, 3)
    return [one == other for one, other in zip(first, answers(way, asked, seed, number).texts, strict=True)]


def all_accepted(way: ProcessSetup, asked: Asked, seed: int, number: int) -> Sequence[bool]:
    """Return, for each of ``number`` texts for ``asked``, whether its count of accepted drafts shows no rejection.

    If no draft is rejected, all tokens of a text but one for each round are accepted drafts. This must hold if the
    target decodes greedily and drafts for itself.
    """
    done = answers(way, asked, seed, number)
    rounds = [-(-len(text) // (dict(way.predictor).get("maxTokens", 3) + 1)) for text in done.texts]
    kept = (len(text) - number for text, number in zip(done.texts, rounds, strict=True))
    return [accepted >= least for accepted, least in zip(done.accepted, kept, strict=True)]
