"""Exact laws of ``LLM.generate``: random numbers are intercepted; scheduler, caches and samplers run unmodified.

Two parts of the CPU build pass random numbers to compiled code, which cannot be intercepted. (1) The rejection kernels
are replaced by PyTorch functions (``kernel_statements``), which ``test_stand_ins`` and ``test_exact`` compare with the
compiled ones. (2) The compiled sampler of plain tokens is replaced by vLLM's own ``forward_native``, which GPUs run.

In the functions here, the parameter ``way`` is the configuration of the engine, and ``asked`` the request or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from specverify.engines.vllm.adapter import EngineSetup, engine, generate, parameters
from specverify.engines.vllm.asked import OPTIONS
from specverify.engines.vllm.kernel_statements import STATEMENTS
from specverify.engines.vllm.mends import in_place_of
from specverify.engines.vllm.request_law import PROMPT, Request, ends, law, next_pmf, request
from specverify.engines.vllm.rows import DRAFT, NGRAM, PROBABLE, WAYS
from specverify.engines.vllm.tiny_checkpoints import SIZES
from specverify.reference import Draws, Tokens
from specverify.subjects.engine import engine_subject, watched
from specverify.subjects.observer import Observer
from specverify.subjects.subject import Forward, Observed, Subject, Watched

NARROW: Final = tuple((dict(PROBABLE) | {"model": "narrow draft"}).items())
"""Drafts drawn from three tokens and not from all eight, so that a round has fewer paths."""
EXACT_WAYS: Final[Mapping[str, EngineSetup]] = {
    "draft": EngineSetup(DRAFT),
    "n-gram": EngineSetup(NGRAM),
    "EAGLE": WAYS["EAGLE"],
    "draft, probabilistic, one a round": EngineSetup(tuple((dict(NARROW) | {"num_speculative_tokens": 1}).items())),
    "draft, probabilistic": EngineSetup(NARROW),
}
ONLY_SHORT: Final = frozenset({"draft, probabilistic"})
"""Ways of which only calls of one request and two tokens are enumerated: each round has hundreds of paths."""
EXACT_OPTIONS: Final = (
    "top-k 2",
    "temperature 0.7, top-k 3",
    "top-p 0.7",
    "all penalties",
    "bad words",
    "stop tokens",
)
"""Names in ``OPTIONS`` with only two or three possible tokens per position, so that all texts can be enumerated."""
LENGTHS: Final = {"two tokens": 2, "three tokens": 3}
BESIDE: Final[Mapping[int, Request]] = {
    2: request((6, 5, 4), 2, top_k=2),
    3: request((6, 5, 4), 1, temperature=0.0),
}
"""Number of new tokens of the first request -> the second request of the same call: two sampled tokens, or one greedy
token. It is short because the runs of two requests multiply."""
MATCHED: Final[Tokens] = (1, 5, 4, 3, 6, 0, 1)
"""A prompt after which n-gram lookup drafts: its likely next tokens, 1 and 5, occur in it."""
NO_TOKEN: Final = SIZES.vocabulary
"""Pads a text that ended early, if the texts of two requests are concatenated."""


def exact_names() -> list[str]:
    """Return the names of all calls of ``LLM.generate`` whose law is enumerated.

    A name is ``WAY/OPTIONS/LENGTH``: the kind of speculation, the options of the request and its number of new tokens.
    ``, two requests`` follows if the call has two.
    """
    return [
        f"{way}/{options}/{length}{requests}"
        for way in EXACT_WAYS
        for requests in ("", ", two requests")
        for length in LENGTHS
        for options in EXACT_OPTIONS
        if way not in ONLY_SHORT or (not requests and LENGTHS[length] == 2)
    ]


def exact_subject(name: str) -> Subject:
    """Return the call called ``name``, one of ``exact_names``, as a subject of the exact checks."""
    way_name, options, ending = name.split("/")
    length, two, _ = ending.partition(", two requests")
    first = shortened(OPTIONS[options].request, LENGTHS[length], MATCHED if way_name == "n-gram" else PROMPT)
    return call_subject(EXACT_WAYS[way_name], (first, BESIDE[LENGTHS[length]]) if two else (first,), name)


def shortened(asked: Request, tokens: int, prompt: Tokens) -> Request:
    """Return the request ``asked`` with another prompt and ``tokens`` new tokens."""
    return asked._replace(prompt=prompt, options=tuple((dict(asked.options) | {"max_tokens": tokens}).items()))


def call_subject(way: EngineSetup, asked: tuple[Request, ...], name: str) -> Subject:
    """Return the call of the requests ``asked``, by an engine with the configuration ``way``, as the subject ``name``.

    If there is a single request, the inputs and caches of the forward passes are also compared with plain decoding.
    """

    def decode() -> list[int]:
        with random_numbers_followed(way):
            answers = generate(way, asked, [parameters(each) for each in asked])
        texts = [tuple(answer.outputs[0].token_ids) for answer in answers]
        return list(texts[0] if len(asked) == 1 else _joined(asked, texts))

    if len(asked) > 1:
        return engine_subject(decode, _joint_law(asked), name)
    subject = engine_subject(decode, law(asked[0]), name)
    (program,) = subject.programs
    look = observer(way, asked[0])
    watch = partial(_watched, look, decode, asked[0])
    return subject.with_programs((program._replace(watch=watch, tells=look.tells),))


@contextmanager
def _watched(look: Observer, decode: Callable[[], Any], asked: Request) -> Iterator[Watched]:
    with watched(look, decode, None, ()) as seen:
        yield seen._replace(plain=partial(plain, asked))


def plain(asked: Request, draws: Draws) -> Observed:
    """Decode the request ``asked`` without speculation and without vLLM, and return the expected record of a run.

    ``draws`` chooses the tokens from the expected pmfs. The record has the new tokens, and for each forward pass its
    input and the cache contents before it.
    """
    pmf, new, forwards = next_pmf(asked), tuple[int, ...](), list[Forward]()
    while len(new) < asked.option("max_tokens") and not (new and new[-1] in ends(asked)):
        tokens = asked.prompt + new
        held = len(tokens) - 1 if new else 0
        entries = (_entries(list(zip(tokens, range(held), strict=False))),)
        forwards.append(Forward(held, tokens[held:], entries if held else ()))
        new = (*new, draws.categorical(pmf(new), ("plain", len(new))))
    return Observed(new, tuple(forwards))


@contextmanager
def random_numbers_followed(way: EngineSetup) -> Iterator[None]:
    """In the ``with`` block, run the rejection kernels and the sampler of plain tokens as PyTorch code.

    Their random calls can then be intercepted.
    """
    sampler = model_runner(way).sampler.topk_topp_sampler
    held, sampler.forward = sampler.forward, sampler.forward_native
    try:
        with in_place_of(STATEMENTS):
            yield
    finally:
        sampler.forward = held


def model_runner(way: EngineSetup) -> Any:
    """Return the model runner of the vLLM engine with configuration ``way``, which runs in this process."""
    return engine(way).llm_engine.engine_core.engine_core.model_executor.driver_worker.worker.model_runner


def _joined(asked: tuple[Request, ...], texts: list[Tokens]) -> Tokens:
    lengths = (each.option("max_tokens") for each in asked)
    filled = (text + (NO_TOKEN,) * (length - len(text)) for text, length in zip(texts, lengths, strict=True))
    return tuple(token for text in filled for token in text)


def _joint_law(asked: tuple[Request, ...]) -> dict[Tokens, float]:
    """Return the joint law of the concatenated, independent texts of the requests ``asked``."""
    result: dict[tuple[Tokens, ...], float] = {(): 1.0}
    for each in asked:
        own = law(each)
        result = {(*texts, text): mass * other for texts, mass in result.items() for text, other in own.items()}
    return {_joined(asked, list(texts)): mass for texts, mass in result.items()}


def observer(way: EngineSetup, asked: Request) -> Observer:
    """Return an observer that records, before each pass of the target, its input tokens and the cache that it reads.

    ``way`` is the configuration of the engine, ``asked`` the request. For each slot of the cache that the pass reads,
    the observer records the pair (token, position) that was last written to the slot. The pairs of a pass are one array
    ``[1, 1, held, 2]``, where ``held`` is the number of cached tokens.
    """
    written = dict[int, tuple[int, int]]()

    def read(_: Any, given: Mapping[str, Any]) -> Forward | None:
        metadata = _attention(way)
        if metadata is None:
            return None
        number = int(metadata.query_start_loc[1])
        fed, positions, slots = (
            values[:number].tolist() for values in (given["input_ids"], given["positions"], metadata.slot_mapping)
        )
        held = positions[0]
        size = way_block_size(way)
        own = [int(metadata.block_table[0, place // size]) * size + place % size for place in range(held)]
        entries = _entries([written.get(slot, (-1, -1)) for slot in own])
        written.update(zip(slots, zip(fed, positions, strict=True), strict=True))
        return Forward(held, tuple(fed), (entries,))

    return Observer(asked.prompt, target=model_runner(way).model, read=read)


def _entries(written: list[tuple[int, int]]) -> Any:
    return np.array(written, float).reshape(1, 1, -1, 2)


def _attention(way: EngineSetup) -> Any:
    from vllm.forward_context import get_forward_context  # noqa: PLC0415 - after its environment

    metadata = get_forward_context().attn_metadata
    return next(iter(metadata.values())) if metadata else None


def way_block_size(way: EngineSetup) -> int:
    """Return the number of tokens in a block of the KV cache of an engine with the configuration ``way``."""
    return int(engine(way).llm_engine.vllm_config.cache_config.block_size)
