"""The calls of vLLM that are sampled: every kind of speculation with every option that has a known law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from specverify.engines.vllm.adapter import (
    RIGHT,
    EngineSetup,
    activity,
    promises,
    repeated_seeds,
    texts,
    told_logprobs,
)
from specverify.engines.vllm.asked import OF_THINKING, OPTIONS, PLAIN_ONLY, Asked, repeating
from specverify.engines.vllm.request_law import Request, law, request
from specverify.reference import Tokens
from specverify.subjects.decoding import DETECT, EngineRow


def _speculation(method: str, number: int = 2, **more: Any) -> tuple[tuple[str, Any], ...]:
    model = {"draft_model": "draft"}.get(method, method)
    named = {} if method == "ngram" else {"model": model}
    return tuple({"method": method, "num_speculative_tokens": number, **named, **more}.items())


NGRAM: Final = _speculation("ngram", prompt_lookup_max=2, prompt_lookup_min=1)
DRAFT: Final = _speculation("draft_model")
PROBABLE: Final = _speculation("draft_model", draft_sample_method="probabilistic")
FEW_TOKENS: Final = (("max_num_batched_tokens", 40), ("max_num_seqs", 32))
FEW_BLOCKS: Final = (("num_gpu_blocks_override", 24),)
WAYS: Final[Mapping[str, EngineSetup]] = {
    "plain": EngineSetup(),
    "draft": EngineSetup(DRAFT),
    "draft, probabilistic": EngineSetup(PROBABLE),
    "n-gram": EngineSetup(NGRAM),
    "EAGLE": EngineSetup(_speculation("eagle")),
    "EAGLE-3, five tokens": EngineSetup(_speculation("eagle3", model="eagle3 of five tokens")),
    "Medusa": EngineSetup(_speculation("medusa")),
}
"""Kinds of speculation examined with all options; faults that only the CPU build has are fixed."""
OF_SCHEDULES: Final = (
    "top-k 2",
    "others beside",
    "others beside, penalties",
    "up to the last position",
    "greedy, others beside",
)
SCHEDULES: Final[Mapping[str, EngineSetup]] = {
    "plain, few tokens a step": EngineSetup(arguments=FEW_TOKENS),
    "plain, few blocks": EngineSetup(arguments=FEW_BLOCKS),
    "draft, four tokens": EngineSetup(_speculation("draft_model", 4)),
    "draft, few tokens a step": EngineSetup(DRAFT, FEW_TOKENS),
    "draft, probabilistic, few tokens a step": EngineSetup(PROBABLE, FEW_TOKENS),
    "draft, probabilistic, few blocks": EngineSetup(PROBABLE, FEW_BLOCKS),
    "draft, probabilistic, no prefix caching": EngineSetup(PROBABLE, (("enable_prefix_caching", False),)),
    "n-gram, few tokens a step": EngineSetup(NGRAM, FEW_TOKENS),
    "EAGLE, probabilistic": EngineSetup(_speculation("eagle", draft_sample_method="probabilistic")),
    "EAGLE-3": EngineSetup(_speculation("eagle3")),
}
"""Configurations with other numbers of tokens per scheduler step, of cache blocks and of drafts."""
AS_IT_IS: Final[Mapping[str, EngineSetup]] = {
    "draft, as it is": EngineSetup(DRAFT, mended=False),
    "n-gram, as it is": EngineSetup(NGRAM, mended=False),
}
OF_AS_IT_IS: Final = ("temperature 1", "top-p 0.7", "greedy", "greedy, penalties", "top-k 2")
"""Names of the options examined with ``AS_IT_IS``; the last one raises an error that ends its process."""
THINKING_WAYS: Final[Mapping[str, EngineSetup]] = {
    "plain, thinking": EngineSetup(thinking=True),
    "draft, thinking": EngineSetup(DRAFT, thinking=True),
}
"""Configurations in which two tokens start and end thinking."""


PROMISES: Final = {"log-probabilities": told_logprobs, "a seed again": repeated_seeds}
"""Promises other than the law, tested on each text by itself."""


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have.

    A name is ``SPECULATION/OPTIONS``, or ``SPECULATION/PROMISE`` for a test of another promise than the law. Rows of
    one configuration are adjacent and share a process.
    """
    result = dict[str, EngineRow]()
    for name, way in WAYS.items():
        options = repeating(OPTIONS) if way == WAYS["n-gram"] else OPTIONS
        options = options if way.speculation else {**options, **PLAIN_ONLY}
        result |= {f"{name}/{option}": _row(way, asked) for option, asked in options.items()}
        result |= {f"{name}/{promise}": _promise(way, keep) for promise, keep in PROMISES.items()}
    plain = EngineSetup(arguments=FEW_TOKENS, mended=False)
    result["plain, few tokens a step, as it is/others beside"] = _row(plain, OPTIONS["others beside"])
    for name, way in THINKING_WAYS.items():
        result |= {f"{name}/{option}": _row(way, asked) for option, asked in OF_THINKING.items()}
    for ways, names in ((SCHEDULES, OF_SCHEDULES), (AS_IT_IS, OF_AS_IT_IS)):
        result |= {f"{name}/{option}": _row(way, OPTIONS[option]) for name, way in ways.items() for option in names}
    return result


def _promise(way: EngineSetup, keep: Callable[[EngineSetup, Request, Sequence[int]], Sequence[Tokens]]) -> EngineRow:
    drawn = promises(way, request(horizon=8, top_k=4, logprobs=3), keep)
    counted = partial(activity, way, drawn) if way.speculation else None
    return EngineRow(drawn, lambda: {RIGHT: 1.0}, detect=DETECT, activity=counted)


def _row(way: EngineSetup, asked: Asked) -> EngineRow:
    drawn = texts(way, asked.request, asked.drawing)
    counted = partial(activity, way, drawn) if way.speculation else None
    return EngineRow(drawn, partial(law, asked.request), detect=asked.detect, activity=counted)
