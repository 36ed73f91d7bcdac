"""Texts of node-llama-cpp: one Node.js process per configuration, which answers in lines of JSON (``driver.mjs``).

``NODE_LLAMA_CPP`` names the folder that has ``node_modules``.
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
"""Texts of one question."""
ACTIVE: Final = 128
"""Texts in which drafted and accepted tokens are counted."""
RIGHT: Final[Tokens] = (1,)
"""The outcome of a text whose promise beside the law is kept."""
WRONG: Final[Tokens] = (0,)
ENDING: Final = 2.0
"""Seconds that a process has to end by itself."""
CONFIDENCE: Final = 1e-3
"""How far a returned probability may be from that in float64: a hundred times its rounding."""

if not (os.environ.get(FOLDER) and shutil.which("node")):
    raise ImportError(
        f"the subject of node-llama-cpp needs Node.js, and node_modules in the folder that {FOLDER} names"
    )


class Way(NamedTuple):
    """The arguments with which a process is started."""

    words: tuple[str, ...] = ()
    """Arguments of the driver; ``target`` and ``draft`` stand for the files of the models."""
    predictor: tuple[tuple[str, Any], ...] = ()
    """Options of the predictor of tokens."""


class Asked(NamedTuple):
    """A request: the fields of the question."""

    prompt: Tokens
    horizon: int
    temperature: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()
    """Options of ``evaluate`` by their names."""


class Answer(NamedTuple):
    """Texts and the values beside them, an element for each text."""

    texts: Sequence[Tokens]
    drafted: Sequence[int]
    accepted: Sequence[int]
    confidences: Sequence[Sequence[float]]


def command(words: Sequence[str]) -> list[str]:
    """Return the command of the driver."""
    files = {name: str(HERE / "models" / f"{name}.gguf") for name in ("target", "draft")}
    return ["node", str(HERE / "driver.mjs"), files["target"], *(files.get(word, word) for word in words)]


_IDLE: Final = dict[tuple[str, ...], Any]()
"""Arguments of the driver -> a process that waits for a question."""


def ask(way: Way, question: dict[str, Any]) -> Any:
    """Return the answer to a question. Raises ``RuntimeError`` if it is an error or the process has ended.

    A process that was interrupted while it answered is ended, and the next question is for a new one.
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
        if answer is None:
            end(process)
    if answer is None:
        raise RuntimeError(f"node-llama-cpp: the process ended with status {process.returncode}")
    _IDLE[way.words] = process
    if "error" in answer:
        raise RuntimeError(f"node-llama-cpp: {answer['error']}")
    return answer


def end(process: Any) -> None:
    """End a process and close its streams."""
    with suppress(OSError):
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(ENDING)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answers(way: Way, asked: Asked, seed: int, number: int) -> Answer:
    """Return ``number`` texts; the driver derives their seeds from ``seed``."""
    result = Answer([], [], [], [])
    options = {**dict(asked.options), "draft": dict(way.predictor)}
    question = {"ask": "sample", "prompt": asked.prompt, "max_tokens": asked.horizon, "options": options}
    for part in range(0, number, PARTS):
        more = {"temperature": asked.temperature, "n": min(PARTS, number - part), "seed": (seed * 7919 + part) % 2**31}
        answer = ask(way, question | more)
        columns = (list(map(tuple, answer["tokens"])), *(answer[name] for name in Answer._fields[1:]))
        result = Answer(*(one + other for one, other in zip(result, columns, strict=True)))
    return result


def texts(way: Way, asked: Asked) -> Texts:
    """Return the sampler of the texts of a request."""
    return lambda seed, number: answers(way, asked, seed, number).texts


def activity(way: Way, asked: Asked) -> str:
    """Return the numbers of drafted and accepted tokens, and of texts equal to plain decoding with the same seed."""
    done = answers(way, asked, 0, ACTIVE)
    if not sum(done.drafted):
        return NOTHING_DRAFTED
    plain = answers(Way(), asked, 0, ACTIVE)
    same = sum(one == other for one, other in zip(done.texts, plain.texts, strict=True))
    counts = f"{sum(done.drafted)} drafted, {sum(done.accepted)} accepted in {ACTIVE} texts"
    return f"{counts}; {same} as plain by the same seed"


Keep = Callable[[Way, Asked, int, int], Sequence[bool]]
"""(way, request, seed, number) -> for each text whether a promise is kept."""


def promise(way: Way, asked: Asked, keep: Keep) -> Texts:
    """Return the sampler that gives ``RIGHT`` for each text that keeps a promise."""
    return partial(_kept, way, asked, keep)


def _kept(way: Way, asked: Asked, keep: Keep, seed: int, number: int) -> Sequence[Tokens]:
    return [RIGHT if kept else WRONG for kept in keep(way, asked, seed, number)]


def same_again(way: Way, asked: Asked, seed: int, number: int) -> Sequence[bool]:
    """Return whether a seed gives the same text again, after texts of another prompt."""
    first = answers(way, asked, seed, number).texts
    answers(way, asked._replace(prompt=(*asked.prompt[::-1], 0)), seed, 3)
    return [one == other for one, other in zip(first, answers(way, asked, seed, number).texts, strict=True)]


def all_accepted(way: Way, asked: Asked, seed: int, number: int) -> Sequence[bool]:
    """Return whether every draft within a text was accepted: greedy drafts of the model itself are its texts."""
    done = answers(way, asked, seed, number)
    rounds = [-(-len(text) // (dict(way.predictor).get("maxTokens", 3) + 1)) for text in done.texts]
    kept = (len(text) - number for text, number in zip(done.texts, rounds, strict=True))
    return [accepted >= least for accepted, least in zip(done.accepted, kept, strict=True)]
