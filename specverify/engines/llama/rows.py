"""The calls of llama-cpp-python that are sampled: plain decoding, the library's drafter, and scripted drafters.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from specverify.engines.llama.adapter import MINIMUM, constant, lookup, nothing, texts, unlikely, wandering
from specverify.laws.law import target_law
from specverify.reference import Task, Tokens
from specverify.subjects.decoding import VARIED, Decoding, EngineRow, decoding_law, next_pmf

WAYS = {
    "plain": nothing,
    "lookup": lookup,
    "one token drafted": constant,
    "wrong drafts": unlikely,
    "drafts": wandering,
}
COARSE = 0.1
DECODINGS: Mapping[str, Decoding] = {
    "temperature 1": Decoding(horizon=3),
    "top-k 2, temperature 1.5": Decoding(top_k=2, temperature=1.5),
    "top-p 0.8": Decoding(top_p=0.8, horizon=3),
    "min-p 0.3": Decoding(min_p=0.3, horizon=3),
    "an end": Decoding(eos=(2,), horizon=3),
    "more drafts than tokens": VARIED["more drafts than tokens"],
    "five tokens": VARIED["five tokens"],
    "long prompt": VARIED["long prompt"]._replace(top_k=2),
    "greedy": VARIED["greedy"],
    "greedy, an end": VARIED["greedy, an end"],
}
PENALISED: Mapping[str, Decoding] = {
    "repeat penalty 1.3": Decoding(repetition_penalty=1.3, horizon=3),
    "presence penalty 1": Decoding(horizon=3, more=(("options", (("presence_penalty", 1.0),)),)),
    "frequency penalty 1": Decoding(horizon=3, more=(("options", (("frequency_penalty", 1.0),)),)),
    "typical-p 0.7": Decoding(horizon=3, more=(("options", (("typical_p", 0.7),)),)),
    "mirostat 2": Decoding(horizon=3, more=(("options", (("mirostat_mode", 2),)),)),
}
"""Penalties on new tokens only, and samplers without a known law; speculation is compared with plain decoding."""
SHORTEST = Decoding(eos=(2,), horizon=3, more=(("minimum", True),))


def shortest_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the new tokens of ``decoding`` if no end is allowed among the first ``MINIMUM`` new tokens."""
    free = next_pmf(decoding)

    def pmf(tokens: Tokens) -> Any:
        masses = free(tokens).copy()
        if len(tokens) < len(decoding.prompt) + MINIMUM:
            masses[list(decoding.eos)] = 0
        return masses / masses.sum()

    return target_law(Task(target=pmf, horizon=decoding.horizon, eos=decoding.eos), decoding.prompt)


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have; a name is ``DRAFTER/OPTIONS``."""
    result = dict[str, EngineRow]()
    for way, drafter in WAYS.items():
        same = None if drafter is nothing else nothing
        for name, decoding in DECODINGS.items():
            plain = texts(same, decoding) if same else None
            result[f"{way}/{name}"] = EngineRow(
                texts(drafter, decoding), partial(decoding_law, decoding), plain, COARSE
            )
        for name, decoding in PENALISED.items() if same else ():
            result[f"{way}/{name}"] = EngineRow(texts(drafter, decoding), plain=texts(nothing, decoding), detect=COARSE)
        result[f"{way}/at least two tokens"] = EngineRow(
            texts(drafter, SHORTEST), partial(shortest_law, SHORTEST), detect=COARSE
        )
    half = VARIED["top-k 2"]
    result["plain/top-k 2, cache in float16"] = EngineRow(
        texts(nothing, half, precise=False), partial(decoding_law, half)
    )
    result["lookup/top-k 2, cache in float16"] = EngineRow(
        texts(lookup, half, precise=False), partial(decoding_law, half)
    )
    return result
