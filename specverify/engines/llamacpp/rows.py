"""The subjects of llama.cpp's server: every kind of speculation with its samplers, and tests of its other promises.

Such a promise is, for example, that a seed gives one text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from specverify.engines.llamacpp.adapter import (
    ALONE,
    RIGHT,
    Drawing,
    Keep,
    ServerSetup,
    activity,
    promise,
    right_logprobs,
    same_again,
    same_as_plain,
    texts,
)
from specverify.engines.llamacpp.chain import NEUTRAL, PROMPT, Request, law, request
from specverify.subjects.decoding import EngineRow

COARSE: Final = 0.15
COARSER: Final = 0.25
FINER: Final = 0.1
FINE: Final = 0.07


class Asked(NamedTuple):
    """A request with one option, or with several that interact, and how its texts are sampled.

    ``drawing`` states whether other requests run at the same time. ``detect`` is the total variation that the samples
    must detect.
    """

    request: Request
    drawing: Drawing = ALONE
    detect: float = COARSE
    lawful: bool = True
    """Whether its law is known; if not, the texts are compared with those of plain decoding."""


NARROW: Final = request(horizon=4, top_k=2)
OPTIONS: Final[Mapping[str, Asked]] = {
    "temperature 1": Asked(request(), detect=COARSER),
    "top-k 2": Asked(NARROW),
    "temperature 0.7, top-k 3": Asked(request(horizon=4, temperature=0.7, top_k=3)),
    "top-p 0.7": Asked(request(top_p=0.7)),
    "top-p 0.1, at least two kept": Asked(request(horizon=4, top_p=0.1, min_keep=2)),
    "min-p 0.3": Asked(request(min_p=0.3)),
    "typical-p 0.6": Asked(request(typical_p=0.6)),
    "top-n-sigma 1": Asked(request(top_n_sigma=1.0)),
    "xtc": Asked(request(horizon=3, xtc_probability=0.5, xtc_threshold=0.12), detect=COARSER),
    "xtc, one token": Asked(request(horizon=1, xtc_probability=0.5, xtc_threshold=0.12)),
    "xtc always": Asked(request(horizon=3, xtc_probability=1.0, xtc_threshold=0.12), detect=COARSER),
    "dynamic temperature": Asked(request(top_k=4, dynatemp_range=0.6)),
    "temperature before top-p": Asked(request(temperature=1.5, top_p=0.6, samplers=("temperature", "top_p"))),
    "all penalties": Asked(
        request(horizon=4, top_k=2, repeat_penalty=1.3, presence_penalty=0.8, frequency_penalty=0.4)
    ),
    "penalties of the last three": Asked(request(horizon=4, top_k=2, repeat_penalty=2.0, repeat_last_n=3)),
    "mirostat 2": Asked(request(horizon=4, mirostat=2, mirostat_tau=1.5, mirostat_eta=1.0), detect=FINER),
    "logit bias": Asked(request(horizon=4, top_k=2, logit_bias=((0, 2.0), (6, False)))),
    "no end": Asked(request(horizon=4, top_k=2, ignore_eos=True)),
    "grammar": Asked(request(horizon=3, letters=(0, 1, 6)), detect=FINE),
    "stop strings": Asked(request(horizon=5, top_k=2, ignore_eos=True, stop=("gf", "ca", "ef", "b"))),
    "streamed": Asked(NARROW, Drawing(streamed=True)),
    "others beside": Asked(NARROW, Drawing(beside=True), COARSER),
    "others beside, mirostat 2": Asked(
        request(horizon=4, mirostat=2, mirostat_tau=1.5, mirostat_eta=1.0), Drawing(beside=True), FINER
    ),
    "others beside, grammar": Asked(request(letters=(0, 1, 6)), Drawing(beside=True)),
    "one token": Asked(request(horizon=1)),
    "greedy": Asked(request(horizon=8, temperature=0.0, ignore_eos=True)),
    "greedy, penalties": Asked(
        request(horizon=8, temperature=0.0, ignore_eos=True, repeat_penalty=1.3, presence_penalty=0.5)
    ),
    "greedy, others beside": Asked(request(horizon=8, temperature=0.0, ignore_eos=True), Drawing(beside=True)),
}
WITHOUT_LAW: Final[Mapping[str, Asked]] = {
    "dry": Asked(request(horizon=4, top_k=3, dry_multiplier=1.0, dry_allowed_length=1), lawful=False),
    "mirostat 1": Asked(request(mirostat=1, mirostat_tau=1.2), lawful=False, detect=COARSER),
    "adaptive-p": Asked(
        request(adaptive_target=0.3, samplers=(*NEUTRAL["samplers"], "adaptive_p")), lawful=False, detect=COARSER
    ),
}
"""Samplers without a known law: texts with speculation are compared with texts without it."""
AGAIN: Final = (3, 1, 2, 3, 1, 3, *(6,) * 5, 2, 5, *(6,) * 5, 2, 5, *(6,) * 4)
"""A prompt with repeated n-grams, for drafters that look n-grams up."""
SIZES_OF_NGRAMS: Final = (
    ("speculative.ngram_simple.size_n", 2),
    ("speculative.ngram_simple.size_m", 2),
    ("speculative.ngram_simple.min_hits", 1),
    ("speculative.ngram_map_k.size_n", 2),
    ("speculative.ngram_map_k.size_m", 2),
    ("speculative.ngram_map_k.min_hits", 1),
    ("speculative.ngram_map_k4v.size_n", 2),
    ("speculative.ngram_map_k4v.size_m", 2),
    ("speculative.ngram_map_k4v.min_hits", 1),
    ("speculative.ngram_mod.n_match", 2),
    ("speculative.ngram_mod.n_min", 1),
    ("speculative.ngram_mod.n_max", 3),
)
PROBABLE: Final = (("speculative.draft.probabilistic", True),)
WAYS: Final[Mapping[str, ServerSetup]] = {
    "plain": ServerSetup(),
    "draft": ServerSetup(("DRAFT_SIMPLE",)),
    "draft, probabilistic": ServerSetup(("DRAFT_SIMPLE",), PROBABLE),
}
"""Kinds of speculation that are examined with all options."""
LOOKUPS: Final[Mapping[str, ServerSetup]] = {
    "n-gram simple": ServerSetup(("NGRAM_SIMPLE",), SIZES_OF_NGRAMS),
    "n-gram map": ServerSetup(("NGRAM_MAP_K",), SIZES_OF_NGRAMS),
    "n-gram map of four": ServerSetup(("NGRAM_MAP_K4V",), SIZES_OF_NGRAMS),
    "n-gram mod": ServerSetup(("NGRAM_MOD",), SIZES_OF_NGRAMS),
    "n-gram cache": ServerSetup(("NGRAM_CACHE",), SIZES_OF_NGRAMS),
}
LONG: Final = request(AGAIN, 6, top_k=2, ignore_eos=True)
LOOKED_UP: Final[Mapping[str, Asked]] = {
    "top-k 2": Asked(LONG),
    "temperature 0.7, top-k 3": Asked(request(AGAIN, 4, temperature=0.7, top_k=3, ignore_eos=True)),
    "all penalties": Asked(
        request(AGAIN, 6, top_k=2, repeat_penalty=1.3, presence_penalty=0.8, frequency_penalty=0.1, ignore_eos=True)
    ),
    "mirostat 2": Asked(request(AGAIN, 5, mirostat=2, mirostat_tau=1.0, mirostat_eta=0.3), detect=COARSER),
    "grammar": Asked(request(AGAIN, 4, letters=(2, 5, 6))),
    "stop strings": Asked(request(AGAIN, 6, top_k=2, ignore_eos=True, stop=("gf", "gc", "ef"))),
    "streamed": Asked(LONG, Drawing(streamed=True)),
    "others beside": Asked(LONG, Drawing(beside=True), COARSER),
    "greedy": Asked(request(AGAIN, 12, temperature=0.0, ignore_eos=True)),
    "greedy, penalties": Asked(
        request(AGAIN, 12, temperature=0.0, ignore_eos=True, repeat_penalty=1.1, frequency_penalty=0.1)
    ),
}
"""Requests for drafters that look n-grams up, with texts long enough to repeat some."""
OTHERS: Final[Mapping[str, ServerSetup]] = {
    "draft, likely tokens": ServerSetup(("DRAFT_SIMPLE",), (("speculative.draft.p_min", 0.5),)),
    "draft, probabilistic, likely tokens": ServerSetup(
        ("DRAFT_SIMPLE",), (("speculative.draft.p_min", 0.5), *PROBABLE)
    ),
    "draft, one token": ServerSetup(("DRAFT_SIMPLE",), (("speculative.draft.n_max", 1),)),
    "draft, probabilistic, one cache": ServerSetup(("DRAFT_SIMPLE",), (("kv_unified", True), *PROBABLE)),
}
OF_OTHERS: Final = ("temperature 1", "top-k 2", "others beside", "greedy")
PROMISES: Final[Mapping[str, Keep]] = {
    "log-probabilities": right_logprobs,
    "a seed again": same_again,
}
SEED_BY_SEED: Final[Mapping[str, Keep]] = {"texts of plain seeds": same_as_plain}
"""Behaviour that no documentation promises: with drafts compared to sampled tokens, a seed gives the text of plain
decoding."""


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have.

    A name is ``SPECULATION/OPTIONS``, or ``SPECULATION/PROMISE`` for a test of another promise than the law.
    """
    result = dict[str, EngineRow]()
    for name, way in WAYS.items():
        options = {**OPTIONS, **WITHOUT_LAW} if way.kinds else OPTIONS
        result |= {f"{name}/{option}": _row(way, asked) for option, asked in options.items()}
    for name, way in LOOKUPS.items():
        result |= {f"{name}/{option}": _row(way, asked) for option, asked in LOOKED_UP.items()}
    result |= {f"{name}/{option}": _row(way, OPTIONS[option]) for name, way in OTHERS.items() for option in OF_OTHERS}
    for name, way in {**WAYS, **LOOKUPS}.items():
        drawn = not way.kinds or dict(way.options).get(PROBABLE[0][0])
        for promised, keep in (PROMISES if drawn else {**PROMISES, **SEED_BY_SEED}).items():
            promising = request(AGAIN if name in LOOKUPS else PROMPT, 16 if name in LOOKUPS else 8, top_k=4)
            result[f"{name}/{promised}"] = _promise(way, promising, keep)
    return result


def _row(way: ServerSetup, asked: Asked) -> EngineRow:
    drawn = texts(way, asked.request, asked.drawing)
    counted = partial(activity, way, asked.request, asked.drawing) if way.kinds else None
    if not asked.lawful:
        return EngineRow(drawn, plain=texts(ServerSetup(), asked.request), detect=asked.detect, activity=counted)
    return EngineRow(drawn, partial(law, asked.request), detect=asked.detect, activity=counted)


def _promise(way: ServerSetup, asked: Request, keep: Keep) -> EngineRow:
    counted = partial(activity, way, asked) if way.kinds else None
    return EngineRow(promise(way, asked, keep), _kept, detect=0.05, activity=counted)


def _kept() -> dict[Any, float]:
    return {RIGHT: 1.0}
