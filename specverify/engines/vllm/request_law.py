"""The law of a request, by the documentation of ``SamplingParams`` and a float64 forward pass.

Options act in the order that ``Sampler`` documents: allowed tokens, bad words, minimum of tokens, bias, penalties, then
temperature, min-p, top-k, top-p. Repetition counts the prompt and the new tokens, frequency and presence the new ones.
Once the thinking budget is spent, the token that ends thinking is the only one that can be drawn.

The parameter ``asked`` of the functions here is the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.engines.vllm.tiny_checkpoints import END, LETTERS, THINKING, target
from specverify.laws.llama import next_logits
from specverify.reference import Tokens, softmax
from specverify.subjects.request_laws import check_clear, law_of_texts, only, up_to_stop

PROMPT: Final[Tokens] = (3, 1, 2, 3, 1)
WRITTEN: Final = (*LETTERS[:END], "")
"""Token id -> its text; the end token is special and has the empty text."""


class Request(NamedTuple):
    """One request to the engine.

    ``options`` has the (name, value) of each field of ``SamplingParams`` that differs from its default.
    """

    prompt: Tokens = PROMPT
    options: tuple[tuple[str, Any], ...] = ()

    def option(self, name: str, default: Any = None) -> Any:
        """Return the value of option ``name``, or ``default``."""
        return dict(self.options).get(name, default)


def request(prompt: Tokens = PROMPT, horizon: int = 3, **options: Any) -> Request:
    """Return a request for ``horizon`` new tokens after ``prompt``.

    The end token ends the text only if the option ``ends`` is set. The option ``letters`` lists the tokens that a
    structured output may contain. The other ``options`` are fields of ``SamplingParams``.
    """
    ends = options.pop("ends", False)
    given = {"max_tokens": horizon, "ignore_eos": not ends, **options}
    return Request(prompt, tuple(sorted((name, _frozen(value)) for name, value in given.items())))


def law(asked: Request) -> dict[Tokens, float]:
    """Return the law of the new tokens of the request ``asked``, including an end token."""
    stops = asked.option("stop", ())
    return law_of_texts(
        next_pmf(asked),
        asked.prompt,
        asked.option("max_tokens"),
        ends(asked),
        lambda text: up_to_stop(text, WRITTEN, stops),
    )


def next_pmf(asked: Request) -> Callable[[Tokens], Any]:
    """Return the function new tokens -> pmf ``[vocabulary]`` of the next token of the request ``asked``.

    The function raises ``UnusableSubject`` if two numbers that the sampler compares are so close that rounding could
    change which tokens can be drawn.
    """
    logits = _logits()

    @cache
    def pmf(new: Tokens) -> Any:
        if budget_is_spent(asked, new):
            return np.eye(len(logits(asked.prompt)))[THINKING[1]]
        changed = _penalised(asked, new, _masked(asked, new, logits(asked.prompt + new).copy()))
        return _drawn_from(asked, changed)

    return pmf


def budget_is_spent(asked: Request, new: Tokens) -> bool:
    """Return whether thinking must end after the tokens ``new``: the text has spent its budget of thinking tokens.

    The budget is the option of ``asked`` called ``thinking_token_budget``; without it the result is False. Thinking is
    between the two tokens of ``THINKING``.
    """
    tokens, budget = asked.prompt + new, asked.option("thinking_token_budget")
    marks = [place for place, token in enumerate(tokens) if token in THINKING]
    if budget is None or not marks or tokens[marks[-1]] == THINKING[1]:
        return False
    return len(tokens) - 1 - marks[-1] >= int(budget)


def raw_logprobs(tokens: Tokens) -> Any:
    """Return the log-probabilities ``[vocabulary]`` of the next token, before any option."""
    logits = _logits()(tokens)
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


@cache
def _logits() -> Callable[[Tokens], Any]:
    return next_logits(target())


def ends(asked: Request) -> Tokens:
    """Return the tokens that end a text of the request ``asked``."""
    own = () if asked.option("ignore_eos") else (END,)
    return (*own, *asked.option("stop_token_ids", ()))


def _masked(asked: Request, new: Tokens, logits: Any) -> Any:
    """Return ``logits`` with the bias of ``asked`` added, and -inf for the tokens that cannot follow ``new``.

    These are tokens that are not allowed, that complete a bad word, or that would end the text too early.
    """
    if allowed := asked.option("allowed_token_ids") or asked.option("letters"):
        logits[np.setdiff1d(np.arange(len(logits)), allowed)] = -np.inf
    for word in asked.option("_bad_words_token_ids", ()):
        *before, last = word
        if len(new) >= len(before) and list(new[len(new) - len(before) :]) == before:
            logits[last] = -np.inf
    if len(new) < asked.option("min_tokens", 0):
        logits[[END, *asked.option("stop_token_ids", ())]] = -np.inf
    for token, bias in dict(asked.option("logit_bias", ())).items():
        logits[token] += bias
    return logits


def _penalised(asked: Request, new: Tokens, logits: Any) -> Any:
    counts = np.bincount(np.array(new, int), minlength=len(logits))
    seen = list(set(asked.prompt) | set(new))
    factor = asked.option("repetition_penalty", 1.0)
    logits[seen] = np.where(logits[seen] > 0, logits[seen] / factor, logits[seen] * factor)
    return (
        logits - asked.option("frequency_penalty", 0.0) * counts - asked.option("presence_penalty", 0.0) * (counts > 0)
    )


def _drawn_from(asked: Request, logits: Any) -> Any:
    temperature = asked.option("temperature", 1.0)
    if temperature == 0:
        ranked = np.sort(logits)
        check_clear(ranked[-1] - ranked[-2], "the argmax", asked.prompt)
        return np.eye(len(logits))[logits.argmax()]
    masses = softmax(logits / temperature)
    if smallest := asked.option("min_p", 0.0):
        check_clear(masses - smallest * masses.max(), "min-p", asked.prompt)
        masses = only(masses, masses >= smallest * masses.max())
    if (kept := asked.option("top_k", 0)) and kept < np.count_nonzero(masses):
        ranked = np.sort(masses)[::-1]
        check_clear(ranked[kept - 1] - ranked[kept], "top-k", asked.prompt)
        masses = only(masses, masses >= ranked[kept - 1])
    if (share := asked.option("top_p", 1.0)) < 1:
        order = np.argsort(-masses)
        before = np.cumsum(masses[order]) - masses[order]
        check_clear(before[before > 0] - share, "top-p", asked.prompt)
        masses = only(masses, np.isin(np.arange(len(masses)), order[before < share]))
    return masses


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
