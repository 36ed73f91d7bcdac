"""The law of a request to ``/completion``: a float64 forward pass, and each sampler as the server documents it.

The samplers act in the order in which ``samplers`` lists them. Penalties count the prompt and the new tokens among the
last ``repeat_last_n``. A text ends at the end token, at a stop string or after ``n_predict`` tokens.

The parameter ``asked`` of the functions here is the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.engines.llamacpp.weights import END, LETTERS, target
from specverify.laws.llama import next_logits
from specverify.reference import Tokens, softmax
from specverify.subjects.request_laws import check_clear, law_of_texts, only, up_to_stop
from specverify.subjects.subject import UnusableSubject

PROMPT: Final[Tokens] = (3, 1, 2, 3, 1)
WRITTEN: Final = (*LETTERS[:END], "")
"""Token id -> its text; the end token is special and has the empty text."""
NEUTRAL: Final[Mapping[str, Any]] = {
    "temperature": 1.0,
    "dynatemp_range": 0.0,
    "dynatemp_exponent": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "top_n_sigma": -1.0,
    "xtc_probability": 0.0,
    "xtc_threshold": 0.1,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repeat_last_n": 64,
    "min_keep": 0,
    "mirostat": 0,
    "mirostat_tau": 5.0,
    "mirostat_eta": 0.1,
    "samplers": ("penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"),
}
"""Every option of the samplers at the value without effect, and their documented order."""


class Request(NamedTuple):
    """One request to the server: ``prompt``, and ``options``, the JSON fields whose values differ from ``NEUTRAL``.

    The values of ``NEUTRAL`` switch all sampling options off.
    """

    prompt: Tokens = PROMPT
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str) -> Any:
        """Return the value of the JSON field ``name``, by default the value that switches the option off."""
        return dict(self.options).get(name, NEUTRAL.get(name))


def request(prompt: Tokens = PROMPT, horizon: int = 3, **options: Any) -> Request:
    """Return a request for at most ``horizon`` new tokens after ``prompt``; ``options`` are JSON fields of the request.

    The option ``letters`` is no field: it lists the tokens that the request's grammar allows.
    """
    return Request(prompt, tuple(sorted({"n_predict": horizon, **options}.items())))


def law(asked: Request) -> dict[Tokens, float]:
    """Return the law of the new tokens of the request ``asked``, including an end token."""
    ends, stops = () if asked.option("ignore_eos") else (END,), asked.option("stop") or ()
    return law_of_texts(
        next_pmf(asked), asked.prompt, asked.option("n_predict"), ends, lambda text: up_to_stop(text, WRITTEN, stops)
    )


def raw_logprobs(tokens: Tokens) -> Any:
    """Return the log-probabilities ``[vocabulary]`` of the token after ``tokens``, before any sampler."""
    return np.log(softmax(_logits()(tokens)))


def next_pmf(asked: Request) -> Callable[[Tokens], Any]:
    """Return the function new tokens -> pmf ``[vocabulary]`` of the next token of the request ``asked``.

    The function raises ``UnusableSubject`` if two numbers that a sampler compares are so close that rounding could
    change which tokens it keeps.
    """
    samplers = [SAMPLERS[name] for name in asked.option("samplers") if name in SAMPLERS]

    @cache
    def pmf(new: Tokens) -> Any:
        logits = _biased(asked, _logits()(asked.prompt + new).copy())
        if asked.option("mirostat") == 2:
            return _mirostat(asked, new, _temperature(asked, new, logits))[0]
        branches = [(1.0, logits)]
        for sampler in samplers:
            branches = [
                (mass * share, after)
                for mass, before in branches
                for share, after in _branches(sampler(asked, new, before))
            ]
        return sum(mass * _allowed(asked, new, softmax(each)) for mass, each in branches)

    return pmf


def _branches(result: Any) -> list[tuple[float, Any]]:
    """Return the possible results of one sampler of the chain as pairs (probability, logits).

    A sampler that does not draw returns only the logits, ``result``, which get probability 1. A sampler that draws
    returns such pairs.
    """
    return result if isinstance(result, list) else [(1.0, result)]


@cache
def _logits() -> Callable[[Tokens], Any]:
    return next_logits(target())


def _biased(asked: Request, logits: Any) -> Any:
    if asked.option("ignore_eos"):
        logits[END] = -np.inf
    for token, bias in asked.option("logit_bias") or ():
        logits[token] += -np.inf if bias is False else bias
    return logits


def _allowed(asked: Request, new: Tokens, masses: Any) -> Any:
    """Return ``masses`` with 0 for the tokens that the grammar ``[letters]+`` of ``asked`` excludes after ``new``.

    ``masses``, the probabilities of the tokens, are normalised again; without a grammar they are unchanged. The end
    token is allowed after at least one letter. Raises ``UnusableSubject`` if no mass is left.
    """
    letters = asked.option("letters")
    if not letters:
        return masses
    kept = [*letters, END] if new else list(letters)
    if not masses[kept].sum():
        raise UnusableSubject(f"the samplers leave nothing that the grammar allows after {new}")
    return only(masses, np.isin(np.arange(len(masses)), kept))


def _penalties(asked: Request, new: Tokens, logits: Any) -> Any:
    last = (asked.prompt + new)[-asked.option("repeat_last_n") :]
    counts = np.bincount(np.array(last, int), minlength=len(logits))
    factor = asked.option("repeat_penalty")
    repeated = np.where(logits > 0, logits / factor, logits * factor)
    logits = np.where(counts > 0, repeated, logits)
    return logits - asked.option("frequency_penalty") * counts - asked.option("presence_penalty") * (counts > 0)


def _top_n_sigma(asked: Request, _: Tokens, logits: Any) -> Any:
    sigmas = asked.option("top_n_sigma")
    if sigmas <= 0:
        return logits
    finite = logits[np.isfinite(logits)]
    return _cut(logits, finite.max() - sigmas * finite.std(), "top-n-sigma", asked)


def _top_k(asked: Request, _: Tokens, logits: Any) -> Any:
    kept = asked.option("top_k")
    ranked = np.sort(logits)[::-1]
    if not 0 < kept < np.isfinite(ranked).sum():
        return logits
    return _cut(logits, (ranked[kept - 1] + ranked[kept]) / 2, "top-k", asked)


def _typical(asked: Request, _: Tokens, logits: Any) -> Any:
    share = asked.option("typical_p")
    if share >= 1:
        return logits
    masses = softmax(logits)
    finite = masses > 0
    surprise = np.where(finite, -np.log(np.where(finite, masses, 1)), np.inf)
    entropy = (masses[finite] * surprise[finite]).sum()
    return _first(logits, masses, np.argsort(np.abs(surprise - entropy)), share, "typical-p", asked)


def _top_p(asked: Request, _: Tokens, logits: Any) -> Any:
    share = asked.option("top_p")
    if share >= 1:
        return logits
    masses = softmax(logits)
    return _first(logits, masses, np.argsort(-masses), share, "top-p", asked)


def _first(logits: Any, masses: Any, order: Any, share: float, what: str, asked: Request) -> Any:
    """Return ``logits`` with only the first tokens of ``order`` whose ``masses`` add up to ``share``; others are -inf.

    ``order`` has all tokens in the order in which the sampler prefers them. At least ``min_keep`` tokens (an option of
    ``asked``), and at least one, are kept. ``what`` names the sampler in errors.
    """
    sums = np.cumsum(masses[order])
    check_clear(sums[:-1] - share, what, asked.prompt)
    number = max(int(np.argmax(sums >= share)) + 1, asked.option("min_keep"))
    return np.where(np.isin(np.arange(len(logits)), order[:number]), logits, -np.inf)


def _min_p(asked: Request, _: Tokens, logits: Any) -> Any:
    smallest = asked.option("min_p")
    return _cut(logits, logits.max() + np.log(smallest), "min-p", asked) if smallest else logits


def _xtc(asked: Request, _: Tokens, logits: Any) -> Any:
    """Return the possible logits after XTC with their probabilities, or ``logits`` if XTC changes nothing.

    The options are those of the request ``asked``. With probability ``xtc_probability``, XTC excludes every token of
    probability ``xtc_threshold`` or more, except the least likely of these; otherwise it excludes none.
    """
    share, threshold = asked.option("xtc_probability"), asked.option("xtc_threshold")
    if not share:
        return logits
    masses = softmax(logits)
    check_clear(masses - threshold, "xtc", asked.prompt)
    above = np.flatnonzero(masses >= threshold)
    if len(above) < 2:
        return logits
    excluded = logits.copy()
    excluded[above[np.argsort(-masses[above])][:-1]] = -np.inf
    return [(1 - share, logits), (share, excluded)]


def _temperature(asked: Request, _: Tokens, logits: Any) -> Any:
    temperature, width = asked.option("temperature"), asked.option("dynatemp_range")
    if temperature <= 0:
        ranked = np.sort(logits)
        check_clear(ranked[-1] - ranked[-2], "the argmax", asked.prompt)
        return np.where(logits == logits.max(), 0.0, -np.inf)
    if width > 0:
        masses = softmax(logits)
        masses = masses[masses > 0]
        share = -(masses * np.log(masses)).sum() / np.log(len(masses)) if len(masses) > 1 else 0.0
        low, high = max(0.0, temperature - width), temperature + width
        temperature = low + (high - low) * share ** asked.option("dynatemp_exponent")
    return logits / temperature


SAMPLERS: Final[Mapping[str, Callable[[Request, Tokens, Any], Any]]] = {
    "penalties": _penalties,
    "top_n_sigma": _top_n_sigma,
    "top_k": _top_k,
    "typ_p": _typical,
    "top_p": _top_p,
    "min_p": _min_p,
    "xtc": _xtc,
    "temperature": _temperature,
}
"""The samplers with a known law; ``dry`` and ``adaptive_p`` are compared with plain decoding."""


def _mirostat(asked: Request, new: Tokens, logits: Any) -> tuple[Any, float]:
    """Return the pmf of mirostat 2.0 (arXiv 2007.14966) for the token after ``new``, and mirostat's bound mu in bits.

    The pmf excludes tokens with -log2 p above mu, except the most probable one. ``asked`` has the options of mirostat,
    and ``logits`` are those before mirostat.
    """
    if new:
        before = _temperature(asked, new[:-1], _biased(asked, _logits()(asked.prompt + new[:-1]).copy()))
        drawn, bound = _mirostat(asked, new[:-1], before)
        seen = -np.log2(max(drawn[new[-1]], 1e-300))
        bound -= asked.option("mirostat_eta") * (seen - asked.option("mirostat_tau"))
    else:
        bound = 2 * asked.option("mirostat_tau")
    masses = softmax(logits)
    surprise = np.full(len(masses), np.inf)
    surprise[masses > 0] = -np.log2(masses[masses > 0])
    check_clear(surprise - bound, "mirostat", asked.prompt)
    kept = surprise <= bound
    kept[masses.argmax()] = True
    return only(masses, kept), bound


def _cut(logits: Any, least: float, what: str, asked: Request) -> Any:
    check_clear(logits[np.isfinite(logits)] - least, what, asked.prompt)
    return np.where(logits >= least, logits, -np.inf)


__all__: Sequence[str] = ["NEUTRAL", "PROMPT", "Request", "law", "next_pmf", "raw_logprobs", "request"]
