"""The subjects of node-llama-cpp: its drafters with the samplers of ``evaluate``, and tests of its other promises.

Such a promise is, for example, that a seed gives one text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.engines.node_llamacpp.adapter import (
    CONFIDENCE,
    RIGHT,
    Asked,
    Keep,
    ProcessSetup,
    activity,
    all_accepted,
    answers,
    promise,
    same_again,
    texts,
)
from specverify.laws.llama import next_logits
from specverify.reference import Tokens, softmax
from specverify.subjects.decoding import TARGET_SEED, EngineRow, tiny_llama
from specverify.subjects.request_laws import check_clear, law_of_texts, only

END: Final = 4
PROMPT: Final = (3, 1, 2, 3, 1)
REPEATING: Final = (0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1)
"""A prompt with repeated n-grams, for the drafter that looks n-grams up."""
LETTERS: Final = ("a", "b", "ab", "c")
"""The string of each token; the end token has none."""
COARSE: Final = 0.15
COARSER: Final = 0.25


def asked(horizon: int = 4, temperature: float = 1.0, **options: Any) -> Asked:
    """Return a request with the prompt ``PROMPT`` for ``horizon`` new tokens at ``temperature``.

    ``options`` are further options of ``evaluate``.
    """
    return Asked(PROMPT, horizon, temperature, tuple(options.items()))


class Option(NamedTuple):
    """A request with options (``asked``) to examine, and how its texts are tested.

    ``detect`` is the total variation that the samples must detect.
    """

    asked: Asked
    detect: float = COARSE
    lawful: bool = True
    """Whether its law is known; if not, the texts are compared with those of plain decoding."""


def penalty(**numbers: float) -> dict[str, Any]:
    """Return the options of a request that add a repeat penalty on prompt and new tokens.

    ``numbers`` are the strengths of the penalty, by the library's names.
    """
    return {"repeatPenalty": {"penalty": 1.0, **numbers}}


OPTIONS: Final[Mapping[str, Option]] = {
    "temperature 1": Option(asked(3), COARSER),
    "temperature 0.7, top-k 4": Option(asked(3, temperature=0.7, topK=4)),
    "top-k 2": Option(asked(topK=2)),
    "top-p 0.8": Option(asked(3, topP=0.8)),
    "min-p 0.3": Option(asked(3, minP=0.3)),
    "repetition penalty 1.8, top-k 3": Option(asked(topK=3, **penalty(penalty=1.8))),
    "frequency penalty 0.7, top-k 2": Option(asked(topK=2, **penalty(frequencyPenalty=0.7))),
    "presence penalty 1, top-k 2": Option(asked(topK=2, **penalty(presencePenalty=1.0))),
    "token bias": Option(asked(topK=2, tokenBias=((0, 3.0), (3, "never")))),
    "grammar": Option(asked(grammar="root ::= [ab]+")),
    "one token": Option(asked(1)),
    "greedy": Option(asked(8, 0.0)),
    "greedy, frequency penalty": Option(asked(8, 0.0, **penalty(frequencyPenalty=0.7))),
    "xtc": Option(asked(3, xtc={"probability": 0.5, "threshold": 0.1}), COARSER),
    "xtc, one token": Option(asked(1, xtc={"probability": 0.5, "threshold": 0.1})),
}
WITHOUT_LAW: Final[Mapping[str, Option]] = {
    "dry": Option(asked(topK=3, dryRepeatPenalty={"strength": 1.0, "allowedLength": 1}), lawful=False),
    "temperature 1.5, top-p 0.6": Option(asked(temperature=1.5, topP=0.6), lawful=False),
}
DRAFT: Final = ("--draft", "draft")
ITSELF: Final = "draft of the model itself"
WAYS: Final[Mapping[str, ProcessSetup]] = {
    "plain": ProcessSetup(),
    "plain, four at once": ProcessSetup(("--sequences", "4")),
    "draft": ProcessSetup(DRAFT),
    "draft, four at once": ProcessSetup((*DRAFT, "--sequences", "4")),
    "draft, as it comes": ProcessSetup(DRAFT, (("minTokens", 1), ("maxTokens", 16), ("minConfidence", 0.6))),
    ITSELF: ProcessSetup(("--draft", "target")),
    "lookup": ProcessSetup(("--lookup",)),
}
SHORT: Final = ("temperature 1", "top-k 2", "frequency penalty 0.7, top-k 2", "greedy", "greedy, frequency penalty")
"""Names of the options that are examined with ``VARIANTS``, which differ little from other kinds of speculation."""
VARIANTS: Final = ("plain, four at once", "draft, four at once", "draft, as it comes")


def rows() -> dict[str, EngineRow]:
    """Return name -> the texts to sample and the law that they must have.

    A name is ``SPECULATION/OPTIONS``, or ``SPECULATION/PROMISE`` for a test of another promise than the law.
    """
    result = dict[str, EngineRow]()
    for name, way in WAYS.items():
        options = {**OPTIONS, **(WITHOUT_LAW if name not in ("plain", *VARIANTS) else {})}
        chosen = {option: options[option] for option in (SHORT if name in VARIANTS else options)}
        result |= {f"{name}/{option}": _row(way, _of(way, each)) for option, each in chosen.items()}
        promises: dict[str, Keep] = {"a seed again": same_again, "confidences": right_confidences}
        result |= {f"{name}/{promised}": _promise(way, asked(8), keep) for promised, keep in promises.items()}
    result[f"{ITSELF}/all drafts of the greedy model"] = _promise(WAYS[ITSELF], asked(8, 0.0), all_accepted)
    return result


def _of(way: ProcessSetup, option: Option) -> Option:
    return option._replace(asked=option.asked._replace(prompt=REPEATING)) if way.words == ("--lookup",) else option


def _row(way: ProcessSetup, option: Option) -> EngineRow:
    counted = None if way.words[:1] not in (DRAFT[:1], ("--lookup",)) else partial(activity, way, option.asked)
    drawn = texts(way, option.asked)
    if not option.lawful:
        return EngineRow(drawn, plain=texts(ProcessSetup(), option.asked), detect=option.detect, activity=counted)
    return EngineRow(drawn, partial(law, option.asked), detect=option.detect, activity=counted)


def _promise(way: ProcessSetup, request: Asked, keep: Keep) -> EngineRow:
    return EngineRow(promise(way, request, keep), lambda: {RIGHT: 1.0}, detect=0.05)


def law(request: Asked) -> dict[Tokens, float]:
    """Return the law of the new tokens of ``request``, including an end token."""
    return law_of_texts(next_pmf(request), request.prompt, request.horizon, (END,), lambda text: text)


def next_pmf(request: Asked) -> Callable[[Tokens], Any]:
    """Return the function new tokens -> pmf ``[vocabulary]`` of the next token of ``request``.

    It applies bias, penalties, top-k, top-p, min-p, XTC, temperature and grammar, in this order.
    """
    logits_after, options = next_logits(tiny_llama(TARGET_SEED)), dict(request.options)

    @cache
    def pmf(new: Tokens) -> Any:
        tokens = request.prompt + new
        logits = np.array(logits_after(tokens), dtype=float)
        for token, bias in options.get("tokenBias", ()):
            logits[token] += -np.inf if bias == "never" else bias
        logits = _penalised(logits, tokens, **options.get("repeatPenalty", {}))
        if request.temperature == 0:
            ranked = np.sort(logits)
            check_clear(ranked[-1] - ranked[-2], "the argmax", request.prompt)
            return (logits == logits.max()).astype(float)
        result = 0.0
        for share, masses in _truncated(softmax(logits), options, request.prompt):
            powers = masses ** (1 / request.temperature)
            result = result + share * powers / powers.sum()
        return _in_grammar(result, options.get("grammar"), new)

    return pmf


def _penalised(logits: Any, tokens: Tokens, **options: float) -> Any:
    counts = np.bincount(tokens, minlength=len(logits))
    factor = options.get("penalty", 1.0)
    logits = np.where(counts > 0, np.where(logits > 0, logits / factor, logits * factor), logits)
    return logits - options.get("frequencyPenalty", 0) * counts - options.get("presencePenalty", 0) * (counts > 0)


def _truncated(masses: Any, options: dict[str, Any], prompt: Tokens) -> list[tuple[float, Any]]:
    """Return the possible pmfs after top-k, top-p, min-p and XTC, as pairs (probability, pmf).

    ``masses`` is the pmf before, ``options`` are those of the request. There are two results if XTC, which acts at
    random, can exclude a token, else one.
    """
    ranked = np.sort(masses)[::-1]
    if kept := options.get("topK"):
        check_clear(ranked[kept - 1] - ranked[kept], "top-k", prompt)
        masses = only(masses, masses >= ranked[kept - 1])
    if share := options.get("topP"):
        before = np.cumsum(np.sort(masses)[::-1])
        check_clear(before[:-1] - share, "top-p", prompt)
        masses = only(masses, masses >= np.sort(masses)[::-1][np.argmax(before >= share)])
    if least := options.get("minP"):
        check_clear(masses - least * masses.max(), "min-p", prompt)
        masses = only(masses, masses >= least * masses.max())
    if not (xtc := options.get("xtc")):
        return [(1.0, masses)]
    check_clear(masses - xtc["threshold"], "xtc", prompt)
    likely = masses >= xtc["threshold"]
    if likely.sum() < 2:
        return [(1.0, masses)]
    excluded = only(masses, ~likely | (masses == masses[likely].min()))
    return [(1 - xtc["probability"], masses), (xtc["probability"], excluded)]


def _in_grammar(masses: Any, grammar: str | None, new: Tokens) -> Any:
    if grammar is None:
        return masses
    return only(masses, [True, True, True, False, bool(new)])


def right_confidences(way: ProcessSetup, request: Asked, seed: int, number: int) -> list[bool]:
    """Return for each of ``number`` texts of ``request`` whether the reported confidences are right.

    The confidence of a token must equal the token's probability.
    """
    done, pmf = answers(way, request, seed, number), next_pmf(request)
    return [
        all(
            abs(confidence - pmf(text[:place])[text[place]]) < CONFIDENCE
            for place, confidence in enumerate(confidences)
        )
        for text, confidences in zip(done.texts, done.confidences, strict=True)
    ]
