"""The calls of lucidrains' speculative-decoding that are sampled: one row at a time, and batches.

In a batch the library shifts the rows after each round so that all texts end in the same column.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from specverify.engines.lucidrains.adapter import draft, next_pmf, plain, texts
from specverify.laws.law import target_law
from specverify.reference import Task, Tokens
from specverify.subjects.decoding import Decoding, EngineRow

NARROW = Decoding(top_k=2)
DECODINGS: Mapping[str, Decoding] = {
    "temperature 1": Decoding(horizon=3),
    "temperature 0.7, top-k 3": Decoding(temperature=0.7, top_k=3, horizon=3),
    "top-k 2": NARROW,
    "one draft": NARROW._replace(gamma=1),
    "five drafts": NARROW._replace(gamma=5),
    "one token": Decoding(horizon=1),
    "five tokens": NARROW._replace(horizon=5),
    "prompt of one token": NARROW._replace(prompt=(4,)),
    "greedy": Decoding(temperature=0.0, horizon=8),
}
BATCH = 64
COARSE = 0.15
"""Total variation to detect. It is large because single rows are decoded only about twenty times a second."""


def law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the new tokens of one row with the options of ``decoding``."""
    return target_law(Task(target=next_pmf(decoding), horizon=decoding.horizon), decoding.prompt)


def law_of_two(decoding: Decoding) -> dict[Tokens, float]:
    """Return the joint law of two independent rows of one call with the options of ``decoding``.

    An outcome is their two texts, concatenated.
    """
    one = law(decoding)
    return {left + right: p * q for left, p in one.items() for right, q in one.items()}


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have.

    A name is ``CALL/OPTIONS``, with a kind of call such as ``draft, one row``.
    """
    result = dict[str, EngineRow]()
    for name, decoding in DECODINGS.items():
        exact = partial(law, decoding)
        result[f"plain/{name}"] = EngineRow(texts(plain, decoding, BATCH), exact, detect=COARSE)
        result[f"draft, one row/{name}"] = EngineRow(texts(draft, decoding, 1), exact, detect=COARSE)
        result[f"draft, rows of 64/{name}"] = EngineRow(texts(draft, decoding, BATCH), exact, detect=COARSE)
    result["plain, one row/top-k 2"] = EngineRow(texts(plain, NARROW, 1), partial(law, NARROW), detect=COARSE)
    two = NARROW._replace(horizon=3)
    for way in (plain, draft):
        result[f"{way.__name__}, two rows/top-k 2"] = EngineRow(
            texts(way, two, 2, 2), partial(law_of_two, two), detect=COARSE
        )
    return dict(sorted(result.items(), key=lambda item: not item[0].startswith("plain")))
