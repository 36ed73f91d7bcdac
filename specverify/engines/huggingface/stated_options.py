"""The documented effect of options of ``generate``: steps on float64 arrays, without the library.

A step takes logits ``[vocabulary]``, the text and the number of its new tokens, and returns other logits. The text has
no padding. A step that keeps some tokens, or forbids others, sets the logits of the excluded ones to minus infinity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.reference import Pmf, Tokens, repetition_penalty
from specverify.reference.warpers import Logits, min_p, softmax, top_k, top_p

Step = Callable[[Logits, Tokens, int], Logits]
"""``step(logits, text, new)`` returns the changed logits; ``new`` is the number of new tokens in ``text``."""


def temperature(value: float) -> Step:
    """Return the step that divides the logits by the temperature ``value``."""
    return lambda logits, text, new: logits / value


def greedy() -> Step:
    """Return the step that keeps only the largest logit."""
    return _of_pmf(lambda pmf: pmf == pmf.max())


def most_likely(count: int) -> Step:
    """Return the step that keeps the ``count`` most probable tokens (``top_k``)."""
    return _of_pmf(lambda pmf: top_k(pmf, count))


def nucleus(mass: float) -> Step:
    """Return the step that keeps the fewest most probable tokens with total probability ``mass`` (``top_p``)."""
    return _of_pmf(lambda pmf: top_p(pmf, mass))


def near_the_top(ratio: float) -> Step:
    """Return the step that keeps tokens with at least ``ratio`` times the largest probability (``min_p``)."""
    return _of_pmf(lambda pmf: min_p(pmf, ratio))


def typical(mass: float) -> Step:
    """Return the step of ``typical_p``: tokens are sorted by the distance of -log p from the entropy.

    The first tokens whose probabilities add up to ``mass`` are kept.
    """

    def kept(pmf: Pmf) -> Any:
        order = np.argsort(np.abs(_surprise(pmf) - _entropy(pmf)), kind="stable")
        before = np.cumsum(pmf[order]) - pmf[order]
        return np.isin(np.arange(len(pmf)), order[before < mass])

    return _of_pmf(kept)


def above(epsilon: float) -> Step:
    """Return the step that keeps tokens of probability ``epsilon`` or more (``epsilon_cutoff``).

    The most probable token is always kept.
    """
    return _of_pmf(lambda pmf: _or_the_top(pmf, pmf >= epsilon))


def above_either(epsilon: float) -> Step:
    """Return the step of ``eta_cutoff``: it keeps tokens of probability at least min(e, ``sqrt(e) * exp(-entropy)``).

    Here e is ``epsilon``. The most probable token is always kept.
    """
    return _of_pmf(lambda pmf: _or_the_top(pmf, pmf >= min(epsilon, np.sqrt(epsilon) * np.exp(-_entropy(pmf)))))


def within_entropy(share: float) -> Step:
    """Return the step of ``top_h``: it keeps the most probable tokens within an entropy budget.

    The entropy of the kept tokens, renormalised, is at most ``share`` times the entropy of the whole pmf.
    """

    def kept(pmf: Pmf) -> Any:
        order, budget = np.argsort(-pmf, kind="stable"), share * _entropy(pmf)
        sizes = range(1, len(pmf) + 1)
        largest = max(size for size in sizes if size == 1 or _entropy(_whole(pmf[order[:size]])) <= budget)
        return np.isin(np.arange(len(pmf)), order[:largest])

    return _of_pmf(kept)


def repeated(penalty: float) -> Step:
    """Return the step that lowers the logit of every token of the text (``repetition_penalty``, here ``penalty``)."""
    return lambda logits, text, new: repetition_penalty(logits, text, penalty)


def of_new_tokens(step: Step) -> Step:
    """Return the step that applies ``step`` to a text of the new tokens alone.

    ``generate`` does so if the prompt is given as embeddings, because its tokens are not known then.
    """
    return lambda logits, text, new: step(logits, text[len(text) - new :], new)


def of_the_prompt(reward: float) -> Step:
    """Return the step that raises the logit of every token of the prompt.

    ``reward`` is the value of the option ``encoder_repetition_penalty``.
    """
    return lambda logits, text, new: repetition_penalty(logits, text[: len(text) - new], 1 / reward)


def no_repeated_ngram(size: int, of_prompt: bool = False) -> Step:
    """Return the step that forbids tokens that would repeat an n-gram of ``size`` tokens (``no_repeat_ngram_size``).

    With ``of_prompt`` only n-grams of the prompt count.
    """

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        said = text[: len(text) - new] if of_prompt else text
        ngrams = {said[place : place + size] for place in range(len(said) - size + 1)}
        before = text[len(text) - size + 1 :]
        return _without(logits, [token for token in range(len(logits)) if (*before, token) in ngrams])

    return step


def biased(*sequences: tuple[Tokens, float]) -> Step:
    """Return the step of ``sequence_bias``: it adds a bias to tokens that would complete one of ``sequences``.

    Each element of ``sequences`` is (tokens, bias). With a bias of -inf this is the option ``bad_words_ids``.
    """

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        result = logits.copy()
        for (*begin, last), bias in sequences:
            if not begin or text[-len(begin) :] == tuple(begin):
                result[last] += bias
        return result

    return step


def forbidden(*words: Tokens) -> Step:
    """Return the step that forbids tokens that complete one of ``words`` (``bad_words_ids``, ``suppress_tokens``)."""
    return biased(*((word, -np.inf) for word in words))


def at_first(step: Step) -> Step:
    """Return the step that applies ``step`` only before the first new token (``begin_suppress_tokens``)."""
    return lambda logits, text, new: step(logits, text, new) if new == 0 else logits


def no_end_before(ends: Tokens, *, new_tokens: int = 0, length: int = 0) -> Step:
    """Return the step that forbids the tokens ``ends`` in a short text (``min_new_tokens`` and ``min_length``).

    They are forbidden before ``new_tokens`` new tokens, and before a text of ``length`` tokens.
    """
    return lambda logits, text, new: _without(logits, ends) if new < new_tokens or len(text) < length else logits


def end_at(horizon: int, end: int) -> Step:
    """Return the step that forces the token ``end`` as the last of ``horizon`` new tokens (``forced_eos_token_id``)."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        return (
            _without(logits, [token for token in range(len(logits)) if token != end]) if new == horizon - 1 else logits
        )

    return step


def sooner_ended(start: int, factor: float, end: int) -> Step:
    """Return the step of ``exponential_decay_length_penalty``, which makes the end token more probable in long texts.

    After ``start`` + n new tokens, the logit x of ``end`` is raised by ``|x| * (factor ** n - 1)``.
    """

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        result = logits.copy()
        result[end] += abs(result[end]) * (factor ** max(new - start, 0) - 1)
        return result

    return step


def guided(scale: float, model: Callable[[Tokens], Logits], negative: Tokens = ()) -> Step:
    """Return the step of classifier-free guidance, which moves the logits away from those after another text.

    ``model`` computes these logits, and ``scale`` is the strength. The other text is ``negative``, or the last token of
    the prompt, followed by the new tokens.
    """

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        begin = len(text) - new
        other = np.log(softmax(model((negative or text[begin - 1 : begin]) + text[begin:])))
        return scale * (np.log(softmax(logits)) - other) + other

    return step


def _of_pmf(rule: Callable[[Pmf], Any]) -> Step:
    """Return the step that keeps the tokens at which ``rule(pmf)`` is positive.

    ``pmf`` is the softmax of the logits. The logits of the other tokens become minus infinity.
    """
    return lambda logits, text, new: np.where(rule(softmax(logits)) > 0, logits, -np.inf)


def _or_the_top(pmf: Pmf, kept: Any) -> Any:
    return kept if kept.any() else pmf == pmf.max()


def _without(logits: Logits, tokens: Any) -> Logits:
    result = logits.copy()
    result[list(tokens)] = -np.inf
    return result


def _whole(masses: Any) -> Pmf:
    return masses / masses.sum()


def _surprise(pmf: Pmf) -> Any:
    return -np.log(np.maximum(pmf, np.finfo(float).tiny))


def _entropy(pmf: Pmf) -> float:
    return float(pmf @ _surprise(pmf))
