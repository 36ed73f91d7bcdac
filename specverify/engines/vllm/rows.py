"""What is examined of vLLM: every way to speculate, by every option that has a law; what is left out is in coverage."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from specverify.engines.vllm.adapter import Drawing, Way, activity, texts
from specverify.engines.vllm.options import Request, law, request
from specverify.subjects.decoding import Row

COARSE: Final = 0.15
COARSER: Final = 0.25


class Asked(NamedTuple):
    """One option, or several that act together: the request, how its texts are drawn, what the sample must see."""

    request: Request
    drawing: Drawing = Drawing()
    detect: float = COARSE


NARROW: Final = request(horizon=4, top_k=2)
ENDING: Final = request(horizon=4, top_k=3, stop_token_ids=(5, 6), ends=True)
LONGEST: Final = 64
LATE: Final = tuple((3 * place * place + place) % 7 for place in range(LONGEST - 4))
PENALISED: Final = request(horizon=4, top_k=2, presence_penalty=0.8, frequency_penalty=0.4, repetition_penalty=1.2)
OPTIONS: Final[Mapping[str, Asked]] = {
    "temperature 1": Asked(request(horizon=3), detect=COARSER),
    "temperature 0.7, top-k 3": Asked(request(horizon=4, temperature=0.7, top_k=3)),
    "temperature 1.5, top-k 2": Asked(request(horizon=4, temperature=1.5, top_k=2)),
    "top-k 2": Asked(NARROW),
    "top-p 0.7": Asked(request(horizon=4, top_p=0.7)),
    "repetition penalty 1.5": Asked(request(horizon=4, top_k=2, repetition_penalty=1.5)),
    "presence penalty 2": Asked(request(horizon=4, top_k=2, presence_penalty=2.0)),
    "frequency penalty 1": Asked(request(horizon=4, top_k=2, frequency_penalty=1.0)),
    "all penalties": Asked(PENALISED),
    "bad words": Asked(request(horizon=4, top_k=2, _bad_words_token_ids=((6,), (2, 4), (1, 2)))),
    "allowed tokens": Asked(request(horizon=3, allowed_token_ids=(1, 4, 6))),
    "stop tokens": Asked(request(horizon=4, top_k=3, stop_token_ids=(5, 6))),
    "an end": Asked(request(horizon=4, top_k=3, ends=True)),
    "at least three tokens": Asked(
        request(horizon=5, top_k=4, min_tokens=3, stop_token_ids=(5, 6), ends=True), detect=0.5
    ),
    "seeds": Asked(NARROW, Drawing(seeded=True)),
    "four texts a request": Asked(NARROW, Drawing(copies=4)),
    "others beside": Asked(NARROW, Drawing(beside=True), COARSER),
    "others beside, seeds": Asked(NARROW, Drawing(beside=True, seeded=True), COARSER),
    "others beside, penalties": Asked(PENALISED, Drawing(beside=True), COARSER),
    "one token": Asked(request(horizon=1)),
    "prompt of one token": Asked(request((4,), horizon=4, top_k=2)),
    "up to the last position": Asked(request(LATE, horizon=4, top_k=2)),
    "log-probabilities asked for": Asked(request(horizon=4, top_k=2, logprobs=3)),
    "greedy": Asked(request(horizon=8, temperature=0.0)),
    "greedy, penalties": Asked(
        request(horizon=8, temperature=0.0, presence_penalty=1.0, frequency_penalty=0.5, repetition_penalty=1.2)
    ),
    "greedy, at least five tokens": Asked(
        request(horizon=8, temperature=0.0, min_tokens=5, stop_token_ids=(2, 5), ends=True)
    ),
    "greedy, bad words": Asked(request(horizon=8, temperature=0.0, _bad_words_token_ids=((0,), (2, 4), (1, 2)))),
    "greedy, others beside": Asked(request(horizon=8, temperature=0.0), Drawing(beside=True)),
}
PLAIN_ONLY: Final[Mapping[str, Asked]] = {
    "min-p 0.27": Asked(request(horizon=4, min_p=0.27)),
    "logit bias": Asked(request(horizon=4, top_k=2, logit_bias={0: 2.0, 4: -1.0})),
}
"""What vLLM refuses beside speculation."""


def _speculation(method: str, number: int = 2, **more: Any) -> tuple[tuple[str, Any], ...]:
    model = {"draft_model": "draft"}.get(method, method)
    named = {} if method == "ngram" else {"model": model}
    return tuple({"method": method, "num_speculative_tokens": number, **named, **more}.items())


NGRAM: Final = _speculation("ngram", prompt_lookup_max=2, prompt_lookup_min=1)
DRAFT: Final = _speculation("draft_model")
PROBABLE: Final = _speculation("draft_model", draft_sample_method="probabilistic")
FEW_TOKENS: Final = (("max_num_batched_tokens", 40), ("max_num_seqs", 32))
FEW_BLOCKS: Final = (("num_gpu_blocks_override", 24),)
WAYS: Final[Mapping[str, Way]] = {
    "plain": Way(),
    "draft": Way(DRAFT),
    "draft, probabilistic": Way(PROBABLE),
    "n-gram": Way(NGRAM),
    "EAGLE": Way(_speculation("eagle")),
    "EAGLE-3, five tokens": Way(_speculation("eagle3", model="eagle3 of five tokens")),
    "Medusa": Way(_speculation("medusa")),
}
"""Examined by all options, with the faults of the CPU build alone mended."""
OF_SCHEDULES: Final = (
    "top-k 2",
    "others beside",
    "others beside, penalties",
    "up to the last position",
    "greedy, others beside",
)
SCHEDULES: Final[Mapping[str, Way]] = {
    "plain, few tokens a step": Way(arguments=FEW_TOKENS),
    "plain, few blocks": Way(arguments=FEW_BLOCKS),
    "plain, no asynchronous scheduling": Way(arguments=(("async_scheduling", False),)),
    "draft, four tokens": Way(_speculation("draft_model", 4)),
    "draft, few tokens a step": Way(DRAFT, FEW_TOKENS),
    "draft, probabilistic, few tokens a step": Way(PROBABLE, FEW_TOKENS),
    "draft, probabilistic, few blocks": Way(PROBABLE, FEW_BLOCKS),
    "draft, probabilistic, no prefix caching": Way(PROBABLE, (("enable_prefix_caching", False),)),
    "n-gram, few tokens a step": Way(NGRAM, FEW_TOKENS),
    "EAGLE, probabilistic": Way(_speculation("eagle", draft_sample_method="probabilistic")),
    "EAGLE-3": Way(_speculation("eagle3")),
}
"""Examined where steps, blocks and drafts are cut otherwise."""
AS_IT_IS: Final[Mapping[str, Way]] = {
    "draft, as it is": Way(DRAFT, mended=False),
    "n-gram, as it is": Way(NGRAM, mended=False),
}
OF_AS_IT_IS: Final = ("temperature 1", "top-p 0.7", "greedy", "greedy, penalties", "top-k 2")
"""The last raises, and ends its process."""


def rows() -> dict[str, Row]:
    """Return name -> row; those of one way stand together, and share a process."""
    found = dict[str, Row]()
    for name, way in WAYS.items():
        options = OPTIONS if way.speculation else {**OPTIONS, **PLAIN_ONLY}
        found |= {f"{name}/{option}": _row(way, asked) for option, asked in options.items()}
    for ways, options in ((SCHEDULES, OF_SCHEDULES), (AS_IT_IS, OF_AS_IT_IS)):
        found |= {f"{name}/{option}": _row(way, OPTIONS[option]) for name, way in ways.items() for option in options}
    return found


def _row(way: Way, asked: Asked) -> Row:
    drawn = texts(way, asked.request, asked.drawing)
    counted = partial(activity, way, drawn) if way.speculation else None
    return Row(drawn, partial(law, asked.request), detect=asked.detect, activity=counted)
