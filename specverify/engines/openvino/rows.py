"""The calls of openvino-genai that are sampled, and the law that each must have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from specverify.engines.openvino.adapter import (
    Open,
    draft,
    draft_without_prefixes,
    lookup,
    lookup_as_it_comes,
    plain,
    plain_as_it_comes,
    texts,
)
from specverify.subjects.decoding import VARIED, Decoding, EngineRow, decoding_law

COARSE = 0.15
WAYS: Mapping[str, Open] = {
    "plain": plain,
    "lookup": lookup,
    "draft": draft,
    "draft, prefixes not cached": draft_without_prefixes,
}
DECODINGS: Mapping[str, Decoding] = {
    "temperature 1": Decoding(horizon=3),
    "top-k 2": VARIED["top-k 2"],
    "top-p 0.8": Decoding(top_p=0.8, horizon=3),
    "top-k 3, top-p 0.8, temperature 1.3": Decoding(top_k=3, top_p=0.8, temperature=1.3, horizon=3),
    "repetition penalty 1.3": Decoding(repetition_penalty=1.3, horizon=3),
    "two ends": Decoding(eos=(0, 2), horizon=3),  # 0 is one in the configuration of the model
    "one draft": VARIED["top-k 2"]._replace(gamma=1),
    "more drafts than tokens": VARIED["more drafts than tokens"]._replace(top_k=2),
    "one token": VARIED["one token"],
    "long prompt": VARIED["long prompt"]._replace(top_k=2),
    "greedy": VARIED["greedy"],
    "greedy, two ends": VARIED["greedy, an end"]._replace(eos=(0, 2)),
}
PENALISED: Mapping[str, Decoding] = {
    "presence penalty 1": Decoding(horizon=2, more=(("presence_penalty", 1.0),)),
}
"""Penalties on new tokens only; speculation is compared with plain decoding."""


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have; a name is ``SPECULATION/OPTIONS``."""
    result = dict[str, EngineRow]()
    for way, pipeline in WAYS.items():
        for name, decoding in DECODINGS.items():
            same = texts(plain, decoding) if pipeline is lookup else None
            result[f"{way}/{name}"] = EngineRow(
                texts(pipeline, decoding), partial(decoding_law, decoding), same, COARSE
            )
        for name, decoding in PENALISED.items() if pipeline is lookup else ():
            result[f"{way}/{name}"] = EngineRow(texts(pipeline, decoding), plain=texts(plain, decoding), detect=COARSE)
    narrow = VARIED["top-k 2"]
    law = partial(decoding_law, narrow)
    result["plain, cache as it comes/top-k 2"] = EngineRow(texts(plain_as_it_comes, narrow), law, detect=0.1)
    result["lookup, cache as it comes/top-k 2"] = EngineRow(
        texts(lookup_as_it_comes, narrow), plain=texts(plain_as_it_comes, narrow), detect=COARSE
    )
    return result
