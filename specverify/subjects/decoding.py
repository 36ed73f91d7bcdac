"""One decoding call of a library whose texts can only be sampled: its options, the law of its texts, and a subject.

The library gets a small model with known weights and draws its own random numbers. The law of the texts is computed in
float64 from the same weights. The subject compares samples of the library with this law.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.laws.law import target_law
from specverify.laws.llama import Llama, next_logits, random_llama
from specverify.reference import Claim, Task, Tokens, repetition_penalty, warped
from specverify.subjects.subject import SampledPair, SampledSetting, Subject, UnusableSubject

TARGET_SEED: Final = 1
DRAFT_SEED: Final = 2
CLEAR: Final = 1e-4
"""The least distance of every decision of a law from a tie; float32 engines have errors below a tenth of it."""
SEEDS: Final = 300
"""The number of seeds with which texts with and without speculation are compared."""
DETECT: Final = 0.05
"""Total variation that a sample detects."""
NOTHING_DRAFTED: Final = "nothing was drafted"
"""The beginning of ``activity`` if nothing was drafted, so that the sample is no evidence about speculation."""
Texts = Callable[[int, int], Sequence[Tokens]]
"""``texts(seed, number)`` returns ``number`` independent texts of an engine, drawn with its own random numbers."""


class Decoding(NamedTuple):
    """One call of an engine: its prompt, sampling options, end tokens and drafting.

    ``horizon`` is the largest number of new tokens, ``gamma`` that of drafts in a round, and ``eos`` are the tokens
    that end a text. ``top_k``, ``top_p`` and ``min_p`` truncate p; None means no truncation. ``repetition_penalty``
    lowers the logits of tokens that have occurred; 1 leaves them unchanged.
    """

    prompt: Tokens = (3, 1, 2, 3, 1)
    horizon: int = 4
    temperature: float = 1.0
    """The sampling temperature; 0 means greedy decoding."""
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    eos: Tokens = ()
    gamma: int = 2
    more: tuple[tuple[str, Any], ...] = ()
    """(name, value) of further options that only one engine has."""


VARIED: Final[Mapping[str, Decoding]] = {
    "temperature 1": Decoding(),
    "temperature 0.7": Decoding(temperature=0.7),
    "temperature 1.5": Decoding(temperature=1.5),
    "top-k 2": Decoding(top_k=2),
    "top-p 0.8": Decoding(top_p=0.8),
    "top-k 3, top-p 0.8, temperature 1.3": Decoding(top_k=3, top_p=0.8, temperature=1.3),
    "repetition penalty 1.3": Decoding(repetition_penalty=1.3),
    "an end": Decoding(eos=(2,)),
    "two ends, top-k 4": Decoding(eos=(0, 2), top_k=4),
    "one draft": Decoding(gamma=1),
    "more drafts than tokens": Decoding(gamma=6, horizon=3),
    "one token": Decoding(horizon=1),
    "five tokens": Decoding(horizon=5, top_k=2, gamma=3),
    "prompt of one token": Decoding(prompt=(4,), horizon=3),
    "long prompt": Decoding(prompt=(3, 1, 2, 3, 1, 0, 4, 4, 2, 3, 1, 0, 2, 2, 4, 1, 3, 0, 1, 2), horizon=3),
    "greedy": Decoding(temperature=0.0, horizon=8),
    "greedy, an end": Decoding(temperature=0.0, horizon=8, eos=(2,), gamma=4),
}
"""Name -> a call that most engines support. Four tokens with gamma 2 need at least two rounds."""


@lru_cache(maxsize=8)
def tiny_llama(seed: int) -> Llama:
    """Return the small random Llama model with this ``seed``: ``TARGET_SEED`` or ``DRAFT_SEED``."""
    return random_llama(seed)


def next_pmf(decoding: Decoding, model: Llama | None = None) -> Callable[[Tokens], Any]:
    """Return the function from tokens to the pmf ``[vocabulary]`` of the next token, after the sampling options.

    The options of ``decoding`` are applied in the order penalty, temperature, top-k, top-p, min-p. ``model`` gives the
    logits; None: the small model with ``TARGET_SEED``. The function raises ``UnusableSubject`` if a truncation or an
    argmax is within ``CLEAR`` of a tie.
    """
    logits = next_logits(model or tiny_llama(TARGET_SEED))
    until = partial(warped, logits, temperature=decoding.temperature, repetition_penalty=decoding.repetition_penalty)
    whole, ranked = until(), until(top_k=decoding.top_k)
    final = until(top_k=decoding.top_k, top_p=decoding.top_p, min_p=decoding.min_p)

    def pmf(tokens: Tokens) -> Any:
        if decoding.temperature == 0:
            penalised = repetition_penalty(logits(tokens), tokens, decoding.repetition_penalty)
            _check_clear(np.diff(np.sort(penalised)[-2:]), "the argmax", tokens)
        elif decoding.top_k is not None and decoding.top_k < len(whole(tokens)):
            masses = np.sort(whole(tokens))[::-1]
            _check_clear(masses[decoding.top_k - 1] - masses[decoding.top_k], "top-k", tokens)
        if decoding.top_p is not None:
            _check_clear(np.cumsum(np.sort(ranked(tokens))[::-1]) - decoding.top_p, "top-p", tokens)
        if decoding.min_p is not None:
            _check_clear(ranked(tokens) - decoding.min_p * ranked(tokens).max(), "min-p", tokens)
        return final(tokens)

    return pmf


def decoding_law(decoding: Decoding, model: Llama | None = None) -> dict[Tokens, float]:
    """Return the law of the new tokens of the call ``decoding`` without speculation, in float64.

    ``model`` gives the logits; None: the small model with ``TARGET_SEED``.
    """
    task = Task(target=next_pmf(decoding, model), horizon=decoding.horizon, eos=decoding.eos)
    law = target_law(task, decoding.prompt)
    total = sum(law.values())
    return {text: float(mass / total) for text, mass in law.items()}


def without_ends(law: Mapping[Tokens, float], eos: Tokens) -> dict[Tokens, float]:
    """Return the law of texts without a final end token (one of ``eos``), which many engines do not return."""
    result = defaultdict[Tokens, float](float)
    for text, mass in law.items():
        result[text[:-1] if text and text[-1] in eos else text] += mass
    return dict(result)


def seeds_of(seed: int, number: int) -> Sequence[int]:
    """Return ``number`` seeds below 2**31, selected by ``seed``, for calls of an engine.

    They are spread out because generators with neighbouring seeds may be correlated.
    """
    result: Sequence[int] = np.random.default_rng(seed).integers(0, 2**31, number).tolist()
    return result


class EngineRow(NamedTuple):
    """One examination of an engine by samples: the function that samples texts, and what they are compared with.

    The texts are compared with a known law, or with texts of the same call without speculation. ``detect`` is the total
    variation that the samples must detect.
    """

    texts: Texts
    law: Callable[[], Mapping[Tokens, float]] | None = None
    """Returns the law that the texts must have; None if it is unknown."""
    plain: Texts | None = None
    """Texts of the same call without speculation. Without a known law, the examined texts must have their law;
    otherwise they only serve to report how many texts are equal for equal seeds, which no engine promises."""
    detect: float = DETECT
    activity: Callable[[], str] | None = None
    """Returns a phrase about how much was drafted and accepted; None if the engine does not count it."""


def row_subject(name: str, summary: str, row: EngineRow) -> Subject:
    """Return the subject called ``name`` for an engine that can only be sampled.

    ``row`` has the texts to sample, and the law that they must have or the plain call with which they are compared.
    ``summary`` describes the subject in a sentence.
    """
    subject = Subject(name, summary, frozenset({Claim.LOSSLESS}), rational=False)
    sample = partial(_counts, row.texts)
    if row.law is None:
        assert row.plain is not None
        return subject.with_situations(
            SampledPair, (SampledPair(name, sample, partial(_counts, row.plain), row.detect),)
        )
    activity = row.activity or (partial(_alike, row.texts, row.plain) if row.plain is not None else None)
    return subject.with_situations(
        SampledSetting, (SampledSetting(name, sample, row.law, row.detect, activity=activity),)
    )


def _alike(texts: Texts, plain: Texts) -> str:
    same = sum(one == other for one, other in zip(texts(0, SEEDS), plain(0, SEEDS), strict=True))
    return f"{same} of {SEEDS} texts are those of the same seed without speculation"


def _counts(texts: Texts, number: int, seed: int) -> Counter[Tokens]:
    return Counter(tuple(map(int, text)) for text in texts(seed, number))


def _check_clear(distance: Any, what: str, tokens: Tokens) -> None:
    if np.abs(distance).min() < CLEAR:
        raise UnusableSubject(
            f"{what} after {tokens} is decided by {np.abs(distance).min():.1g}, expected {CLEAR:g} at least: "
            "another prompt or parameter has a law that rounding cannot change"
        )
