"""The calls of mlx-lm that are sampled, and the law that each must have.

The library's samplers truncate before the temperature is applied.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from specverify.engines.mlx.adapter import draft, plain, texts
from specverify.laws.law import target_law
from specverify.laws.llama import next_logits
from specverify.reference import Task, Tokens, min_p, softmax, top_k, top_p
from specverify.subjects.decoding import TARGET_SEED, Decoding, EngineRow, decoding_law, tiny_llama

COARSE = 0.2
"""Total variation to detect. It is large because only about fifty texts are decoded per second."""
XTC = (("sampler", (("xtc_probability", 0.5), ("xtc_threshold", 0.1))),)
NARROW = Decoding(top_k=2)


def bias(**values: Any) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    """Return a value for ``Decoding.more``, the further options of a call, that adds logits processors.

    ``values`` has the arguments of the library's ``make_logits_processors`` by name, such as ``logit_bias``.
    """
    return (("processors", tuple(values.items())),)


def truncated_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the new tokens of ``decoding`` in the library's order of sampling options.

    Top-p, min-p and top-k are applied at temperature 1, and the temperature is applied last.
    """
    logits = next_logits(tiny_llama(TARGET_SEED))

    def pmf(tokens: Tokens) -> Any:
        masses = softmax(logits(tokens))
        masses = masses if decoding.top_p is None else top_p(masses, decoding.top_p)
        masses = masses if decoding.min_p is None else min_p(masses, decoding.min_p)
        masses = masses if decoding.top_k is None else top_k(masses, decoding.top_k)
        powers = masses ** (1 / decoding.temperature)
        return powers / powers.sum()

    return _law(decoding, pmf)


def xtc_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law, new tokens -> probability, of ``decoding`` with the sampler option XTC.

    At every position, with probability 1/2, XTC excludes all likely tokens (p > 0.1) except the least likely of them.
    """
    logits = next_logits(tiny_llama(TARGET_SEED))

    def pmf(tokens: Tokens) -> Any:
        masses = softmax(logits(tokens))
        likely = masses > 0.1
        kept = masses * ~(likely & (masses > masses[likely].min(initial=np.inf)))
        whole, without = (part ** (1 / decoding.temperature) for part in (masses, kept))
        return (whole / whole.sum() + without / without.sum()) / 2

    return _law(decoding, pmf)


def processed_law(decoding: Decoding, process: Callable[[Any, Tokens], Any]) -> dict[Tokens, float]:
    """Return the law, new tokens -> probability, of ``decoding`` with a logits processor.

    ``process(logits, tokens)`` returns the processed logits of the token after ``tokens``; it may change ``logits``.
    """
    logits = next_logits(tiny_llama(TARGET_SEED))
    return _law(decoding, lambda tokens: softmax(process(logits(tokens).copy(), tokens)))


def _law(decoding: Decoding, pmf: Callable[[Tokens], Any]) -> dict[Tokens, float]:
    law = target_law(Task(target=pmf, horizon=decoding.horizon, eos=decoding.eos), decoding.prompt)
    total = sum(law.values())
    return {text: float(mass / total) for text, mass in law.items()}


def _present(logits: Any, tokens: Tokens) -> Any:
    logits[list(set(tokens))] -= 1.0
    return logits


def _frequent(logits: Any, tokens: Tokens) -> Any:
    return logits - 0.5 * np.bincount(tokens, minlength=len(logits))


def _biased(logits: Any, tokens: Tokens) -> Any:
    logits[0] += 2.0
    return logits


Described = tuple[Decoding, Callable[[Decoding], Mapping[Tokens, float]]]
DESCRIBED: Mapping[str, Described] = {
    "temperature 1": (Decoding(horizon=3), decoding_law),
    "temperature 0.7": (Decoding(horizon=3, temperature=0.7), decoding_law),
    "top-k 2": (NARROW, decoding_law),
    "top-k 2, temperature 1.5": (NARROW._replace(temperature=1.5), decoding_law),
    "top-p 0.8": (Decoding(horizon=3, top_p=0.8), truncated_law),
    "top-p 0.8, temperature 1.5": (Decoding(horizon=3, top_p=0.8, temperature=1.5), truncated_law),
    "min-p 0.3": (Decoding(horizon=3, min_p=0.3), truncated_law),
    "an end": (Decoding(horizon=3, eos=(2,)), decoding_law),
    "one draft": (NARROW._replace(gamma=1), decoding_law),
    "more drafts than tokens": (NARROW._replace(gamma=6, horizon=3), decoding_law),
    "one token": (Decoding(horizon=1), decoding_law),
    "prompt of one token": (NARROW._replace(prompt=(4,)), decoding_law),
    "greedy": (Decoding(temperature=0.0, horizon=8), decoding_law),
    "xtc": (Decoding(horizon=3, more=XTC), xtc_law),
    "xtc, temperature 0.1": (Decoding(horizon=3, temperature=0.1, more=XTC), xtc_law),
    "repetition penalty 1.3": (Decoding(horizon=3, repetition_penalty=1.3), decoding_law),
    "presence penalty 1": (
        Decoding(horizon=2, more=bias(presence_penalty=1.0)),
        partial(processed_law, process=_present),
    ),
    "frequency penalty 0.5": (
        Decoding(horizon=2, more=bias(frequency_penalty=0.5)),
        partial(processed_law, process=_frequent),
    ),
    "logit bias": (Decoding(horizon=3, more=bias(logit_bias={0: 2.0})), partial(processed_law, process=_biased)),
}


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have.

    A name is ``plain/OPTIONS``, or ``draft/OPTIONS`` with a draft model.
    """
    ways = {"plain": plain, "draft": draft}
    return {
        f"{name}/{told}": EngineRow(texts(way, decoding), partial(law, decoding), detect=COARSE)
        for name, way in ways.items()
        for told, (decoding, law) in DESCRIBED.items()
    }
