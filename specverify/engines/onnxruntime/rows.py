"""The calls of onnxruntime-genai that are sampled, and the law that each must have.

An end token must always be configured, and is not part of the returned tokens. Drafts copied from the text are accepted
or rejected with the same random numbers as plain decoding uses, so a seed should give the same text as without
speculation; a note with the verdict reports whether it does.

The parameter ``decoding`` of the functions here is the call: its prompt, sampling options, end tokens and drafting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from specverify.engines.onnxruntime.adapter import APPENDED, Way, appended, draft, ngram, plain, rewound, text, texts
from specverify.laws.law import target_law
from specverify.reference import Task, Tokens
from specverify.subjects.decoding import VARIED, Decoding, EngineRow, decoding_law, next_pmf, without_ends

MINIMUM = 7
WAYS: Mapping[str, Way] = {"plain": plain, "draft": draft, "ngram": ngram}


def _with(kind: str, **options: Any) -> tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]:
    return ((kind, tuple(options.items())),)


def usual_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the tokens returned for ``decoding``, which do not include an end token."""
    return without_ends(decoding_law(decoding), decoding.eos)


def rewound_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of two concatenated, independent texts of two tokens each, in which no end is allowed.

    ``decoding`` has the prompt and the sampling options.
    """
    half = decoding_law(decoding._replace(horizon=2, eos=()))
    return {one + other: p * q for one, p in half.items() for other, q in half.items()}


def appended_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of five tokens: two sampled ones, the fixed token ``APPENDED``, and two more sampled ones.

    ``decoding`` has the prompt and the sampling options.
    """
    result = dict[Tokens, float]()
    for before, p in decoding_law(decoding._replace(horizon=2, eos=())).items():
        put = (*before, APPENDED)
        after = decoding_law(decoding._replace(horizon=2, eos=(), prompt=decoding.prompt + put))
        result |= {put + tokens: p * q for tokens, q in after.items()}
    return result


def minimum_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the returned tokens if no end is allowed among the first ``MINIMUM`` tokens.

    The tokens of the prompt of ``decoding`` count.
    """
    return _forbidding_law(decoding, lambda tokens: decoding.eos if len(tokens) < MINIMUM else ())


def unrepeated_law(decoding: Decoding) -> dict[Tokens, float]:
    """Return the law of the new tokens of ``decoding`` if no pair of successive tokens may occur twice in a text."""
    return _forbidding_law(decoding, lambda tokens: [b for a, b in pairwise(tokens) if a == tokens[-1]])


def _forbidding_law(decoding: Decoding, forbidden: Callable[[Tokens], Sequence[int]]) -> dict[Tokens, float]:
    free = next_pmf(decoding)

    def pmf(tokens: Tokens) -> Any:
        masses = free(tokens).copy()
        masses[list(forbidden(tokens))] = 0
        return masses / masses.sum()

    task = Task(target=pmf, horizon=decoding.horizon, eos=decoding.eos)
    return without_ends(target_law(task, decoding.prompt), decoding.eos)


Special = tuple[Decoding, Callable[[Way, Decoding, int], Tokens], Callable[[Decoding], dict[Tokens, float]]]
NARROW = Decoding(eos=(0,), top_k=2, horizon=6)
"""A request with two possible tokens at each position; the end token is never one of them."""
SPECIAL: Mapping[str, Special] = {
    "rewound to the prompt": (NARROW, rewound, rewound_law),
    "rewound, four drafts": (NARROW._replace(gamma=4), rewound, rewound_law),
    "a token appended": (NARROW, appended, appended_law),
    "a token appended, four drafts": (NARROW._replace(gamma=4), appended, appended_law),
    "minimum length": (Decoding(eos=(2,), more=_with("search", min_length=MINIMUM)), text, minimum_law),
    "no two tokens twice": (
        Decoding(eos=(0,), horizon=3, more=_with("search", no_repeat_ngram_size=2)),
        text,
        unrepeated_law,
    ),
    "top-k 0": (Decoding(eos=(0,), more=_with("search", top_k=0)), text, usual_law),
    "top-k 0, top-p 0.8": (Decoding(eos=(0,), top_p=0.8, more=_with("search", top_k=0)), text, usual_law),
}
REFUSED = {("draft", "no two tokens twice")}
"""Settings that the library rejects with a clear exception."""
DRAFTING: Mapping[str, Decoding] = {
    "adaptive width": Decoding(eos=(0,), more=_with("speculative", min_adaptive_k=1)),
    "cooldown": Decoding(eos=(0,), top_k=2, horizon=8, more=_with("speculative", min_adaptive_k=1, cooldown=True)),
}
COPYING: Mapping[str, Decoding] = {
    "chained lookup": Decoding(eos=(0,), more=_with("speculative", ngram_chained_lookup=True)),
    "the last two tokens": Decoding(eos=(0,), more=_with("speculative", ngram_size=3)),
}


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have; a name is ``SPECULATION/OPTIONS``."""
    result = dict[str, EngineRow]()
    usual = {name: decoding._replace(eos=decoding.eos or (0,)) for name, decoding in VARIED.items()}
    for name, decoding in {**usual, **DRAFTING, **COPYING}.items():
        law = partial(usual_law, decoding)
        if name in usual:
            result[f"plain/{name}"] = EngineRow(texts(plain, decoding), law)
        if name not in COPYING:
            result[f"draft/{name}"] = EngineRow(texts(draft, decoding), law)
        result[f"ngram/{name}"] = EngineRow(texts(ngram, decoding), law, texts(plain, decoding))
    for way, decode in WAYS.items():
        for name, (decoding, one, law_of) in SPECIAL.items():
            if (way, name) not in REFUSED:
                result[f"{way}/{name}"] = EngineRow(texts(decode, decoding, one), partial(law_of, decoding))
    return dict(sorted(result.items(), key=lambda item: list(WAYS).index(item[0].partition("/")[0])))
