"""Texts of llama.cpp's server; one server per kind of speculation, called over HTTP on the loopback address.

In the functions here, the parameter ``way`` is the configuration of the server, ``asked`` is the request, and
``drawing`` states how its texts are drawn.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from specverify.engines.llamacpp.chain import NEUTRAL, Request, raw_logprobs, request
from specverify.engines.llamacpp.weights import LETTERS
from specverify.reference import Tokens
from specverify.subjects.decoding import NOTHING_DRAFTED, Texts, seeds_of

try:
    import xllamacpp as xl
except ImportError as error:
    raise ImportError("the subject of llama.cpp's server needs xllamacpp: pip install xllamacpp") from error

MODELS: Final = Path(__file__).parent / "models"
SLOTS: Final = 4
CONTEXT: Final = 256
"""Context size of one server slot, in tokens."""
RIGHT: Final[Tokens] = (1,)
"""The outcome of a text that keeps a promise other than the law."""
WRONG: Final[Tokens] = (0,)
LOGPROB: Final = 1e-3
"""Allowed error of a returned log-probability: a hundred times the rounding of float32."""
ACTIVE: Final = 128
"""Number of texts in which drafted and accepted tokens are counted."""


class ServerSetup(NamedTuple):
    """How a llama.cpp server is started: its kinds of speculation and its options."""

    kinds: tuple[str, ...] = ()
    """Kinds of speculation, by their names in ``common_speculative_type``."""
    options: tuple[tuple[str, Any], ...] = ()
    """(field of ``CommonParams``, value), such as ``speculative.draft.n_max``."""


class Drawing(NamedTuple):
    """How the texts of a request are drawn: alone or with other requests, streamed or not."""

    beside: bool = False
    """Whether other requests (``BESIDE``) run at the same time, one for each text, at most ``SLOTS`` requests together.
    """
    streamed: bool = False


ALONE: Final = Drawing()
BESIDE: Final[Sequence[Request]] = (
    request((4,), 1),
    request((0, 5), 6, temperature=0.0),
    request((3, 1, 2, 3), 5, top_k=1),
    request((6, 5, 4, 3, 2, 1, 0), 5, presence_penalty=1.5, frequency_penalty=-1.0),
    request((3, 1, 2, 3, 1), 4, repeat_penalty=2.0, temperature=0.5),
    request((3,) * 9, 7, letters=(3, 5)),
    request((3, 1, 2, 3, 1, 6, 6), 3, logit_bias=((4, False),), top_p=0.6),
    request((2, 4), 8, mirostat=2, mirostat_tau=1.0),
    request((6,), 3, n_probs=3),
    request((1, 3, 1, 3, 1, 3), 6, xtc_probability=0.5, dry_multiplier=0.8),
)
"""Requests that run at the same time as the examined one; some begin like its prompt (``chain.PROMPT``)."""


@cache
def server(way: ServerSetup) -> Any:
    """Return a running llama.cpp server of the configuration ``way``; it runs until this process ends."""
    given = xl.CommonParams()
    fields: dict[str, Any] = {
        "model.path": str(MODELS / "target.gguf"),
        "n_ctx": SLOTS * CONTEXT,
        "n_parallel": SLOTS,
        "fit_params": False,
        "warmup": False,
        "n_gpu_layers": 0,
        "cpuparams.n_threads": 1,
        "cpuparams_batch.n_threads": 1,
        "verbosity": -1,
        "flash_attn_type": xl.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED,
        "port": 0,
        "cache_type_k": xl.ggml_type.GGML_TYPE_F32,
        "cache_type_v": xl.ggml_type.GGML_TYPE_F32,
    }
    if "DRAFT_SIMPLE" in way.kinds:
        fields |= {
            "speculative.draft.mparams.path": str(MODELS / "draft.gguf"),
            "speculative.draft.n_max": 3,
            "speculative.draft.n_min": 0,
            "speculative.draft.p_min": 0.0,
            "speculative.draft.cache_type_k": xl.ggml_type.GGML_TYPE_F32,
            "speculative.draft.cache_type_v": xl.ggml_type.GGML_TYPE_F32,
        }
    for name, value in (fields | dict(way.options)).items():
        *path, last = name.split(".")
        owner = given
        for each in path:
            owner = getattr(owner, each)
        setattr(owner, last, value)
    if way.kinds:
        given.speculative.types = [getattr(xl.common_speculative_type, f"{PREFIX}{kind}") for kind in way.kinds]
    return xl.Server(given)


PREFIX: Final = "COMMON_SPECULATIVE_TYPE_"
_LOCAL = threading.local()


def post(way: ServerSetup, body: dict[str, Any]) -> Any:
    """Return the JSON answer of the server of ``way`` to a request with this ``body`` to its path ``/completion``.

    The parts of a streamed answer are joined.
    """
    status, read = _sent(way, json.dumps(body))
    if status != 200:
        raise RuntimeError(f"the server answers {status}: {read[:300]}")
    if not body.get("stream"):
        return json.loads(read)
    parts = [json.loads(line.removeprefix("data: ")) for line in read.splitlines() if line.startswith("data: {")]
    return parts[-1] | {"tokens": [token for part in parts for token in part["tokens"]]}


def _sent(way: ServerSetup, body: str) -> tuple[int, str]:
    """Send ``body`` as a request to the server of ``way``, and return the status and the body of the answer.

    A connection that the server has closed while idle is reopened.
    """
    connections = _LOCAL.__dict__.setdefault("connections", {})
    if way not in connections:
        address = urlsplit(server(way).listening_address)
        connections[way] = http.client.HTTPConnection(str(address.hostname), address.port)
    connection = connections[way]
    for opened_again in (False, True):
        try:
            connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (http.client.HTTPException, ConnectionError):
            connection.close()
            if opened_again:
                raise
    raise AssertionError


def body_of(asked: Request, seed: int, **more: Any) -> dict[str, Any]:
    """Return the JSON body of the request ``asked`` with this seed and further fields."""
    options = {**NEUTRAL, **dict(asked.options)}
    if letters := options.pop("letters", None):
        options["grammar"] = f"root ::= [{''.join(LETTERS[token] for token in letters)}]+"
    return {"prompt": asked.prompt, "return_tokens": True, "seed": seed, **options, **more}


class Answered(NamedTuple):
    """The text of one answer, and its numbers of drafted and of accepted tokens."""

    text: Tokens
    drafted: int
    accepted: int


def answered(way: ServerSetup, asked: Request, seed: int, **more: Any) -> Answered:
    """Return the answer of the server of ``way`` to ``asked`` with this seed: its text, and its counts of drafts.

    ``asked`` is the request, and ``more`` are further JSON fields of it.
    """
    answer = post(way, body_of(asked, seed, **more))
    timings = answer["timings"]
    return Answered(tuple(answer["tokens"]), timings.get("draft_n", 0), timings.get("draft_n_accepted", 0))


def answers(way: ServerSetup, asked: Request, drawing: Drawing, seed: int, number: int) -> Sequence[Answered]:
    """Return ``number`` answers to the request ``asked``, each with a seed derived from ``seed``.

    ``way`` is how the server is started. ``drawing`` states whether other requests run at the same time, and whether
    the answers are streamed.
    """
    numbers = np.random.default_rng(seed)
    more: dict[str, Any] = {"stream": True} if drawing.streamed else {}
    rows: list[tuple[Request, int, dict[str, Any]]] = [(asked, each, more) for each in seeds_of(seed, number)]
    if not drawing.beside:
        return [answered(way, one, each, **body) for one, each, body in rows]
    server(way)  # here, since each of several threads that ask first would start one
    rows += [(BESIDE[i], int(numbers.integers(2**31)), {}) for i in numbers.integers(len(BESIDE), size=number)]
    places = numbers.permutation(len(rows))
    together = [rows[i] for i in places]
    with ThreadPoolExecutor(SLOTS) as pool:
        done = list(pool.map(lambda row: answered(way, row[0], row[1], **row[2]), together))
    return [each for place, each in sorted(zip(places, done, strict=True), key=lambda pair: pair[0]) if place < number]


def texts(way: ServerSetup, asked: Request, drawing: Drawing = ALONE) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts for the request ``asked``.

    ``way`` is how the server is started, ``drawing`` states how the texts are drawn: alone or beside others, streamed
    or not.
    """

    def draw(seed: int, number: int) -> Sequence[Tokens]:
        return [each.text for each in answers(way, asked, drawing, seed, number)]

    return draw


def activity(way: ServerSetup, asked: Request, drawing: Drawing = ALONE) -> str:
    """Return a sentence such as "300 drafted, 120 accepted in 128 texts; 90 as plain by the same seed".

    The sentence is about texts for the request ``asked``, from a server started as ``way`` and ``drawing`` state. The
    last number counts texts that equal the text of plain decoding with the same seed.
    """
    done = answers(way, asked, drawing, 0, ACTIVE)
    drafted, accepted = sum(each.drafted for each in done), sum(each.accepted for each in done)
    if not drafted:
        return NOTHING_DRAFTED
    plain = answers(ServerSetup(), asked, ALONE, 0, ACTIVE)
    same = sum(one.text == other.text for one, other in zip(done, plain, strict=True))
    return f"{drafted} drafted, {accepted} accepted in {ACTIVE} texts; {same} as plain by the same seed"


Keep = Callable[[ServerSetup, Request, int], bool]


def promise(way: ServerSetup, asked: Request, keep: Keep) -> Texts:
    """Return a function of (seed, number) that tests a promise of the server on ``number`` texts.

    A promise is, for example, that equal seeds give equal texts. Each text has its own seed. ``keep(way, asked, seed)``
    returns whether the text of one seed keeps the promise. The function returns ``RIGHT`` or ``WRONG`` for each text.
    """

    def draw(seed: int, number: int) -> Sequence[Tokens]:
        return [RIGHT if keep(way, asked, each) else WRONG for each in seeds_of(seed, number)]

    return draw


def same_as_plain(way: ServerSetup, asked: Request, seed: int) -> bool:
    """Return whether the server of ``way`` decodes the same text as a server without speculation.

    Both get the request ``asked`` with the same ``seed``.
    """
    return answered(way, asked, seed).text == answered(ServerSetup(), asked, seed).text


def same_again(way: ServerSetup, asked: Request, seed: int) -> bool:
    """Return whether ``seed`` gives the same text for the request ``asked`` twice.

    Between the two texts the server answers another request; the second text begins with an empty cache.
    """
    first = answered(way, asked, seed)
    answered(way, BESIDE[seed % len(BESIDE)], seed + 1)
    return first.text == answered(way, asked, seed, cache_prompt=False).text


def right_logprobs(way: ServerSetup, asked: Request, seed: int) -> bool:
    """Return whether the log-probabilities in an answer to ``asked`` are those of the float64 model, at every token."""
    answer = post(way, body_of(asked, seed, n_probs=3))
    tokens, told = tuple(answer["tokens"]), answer.get("completion_probabilities", [])
    if len(told) != len(tokens):
        return False
    for place, each in enumerate(told):
        expected = raw_logprobs(asked.prompt + tokens[:place])
        pairs = [(each["id"], each["logprob"]), *((one["id"], one["logprob"]) for one in each["top_logprobs"])]
        if each["id"] != tokens[place] or len(each["top_logprobs"]) != 3:
            return False
        if max(abs(logprob - expected[token]) for token, logprob in pairs) > LOGPROB:
            return False
    return True
