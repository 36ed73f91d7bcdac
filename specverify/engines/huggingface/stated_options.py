"""Options of ``generate`` as their documentation describes them: steps on float64 arrays, without the library.

A step takes logits ``[vocabulary]``, the text and the number of its new tokens, and returns other logits. The text has
no padding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.reference import Pmf, Tokens, repetition_penalty
from specverify.reference.warpers import Logits, min_p, softmax, top_k, top_p

Step = Callable[[Logits, Tokens, int], Logits]
"""``step(logits, text, new)`` -> logits."""


def temperature(value: float) -> Step:
    """Divide the logits by the temperature."""
    return lambda logits, text, new: logits / value


def greedy() -> Step:
    """Keep the largest logit alone."""
    return _of_pmf(lambda pmf: pmf == pmf.max())


def most_likely(count: int) -> Step:
    """Keep the ``count`` most likely tokens (``top_k``)."""
    return _of_pmf(lambda pmf: top_k(pmf, count))


def nucleus(mass: float) -> Step:
    """Keep the smallest set of the most likely tokens that add up to ``mass`` (``top_p``)."""
    return _of_pmf(lambda pmf: top_p(pmf, mass))


def near_the_top(ratio: float) -> Step:
    """Keep tokens with at least ``ratio`` times the probability of the most probable token (``min_p``)."""
    return _of_pmf(lambda pmf: min_p(pmf, ratio))


def typical(mass: float) -> Step:
    """Keep the smallest set of tokens nearest to the entropy in surprise that add up to ``mass`` (``typical_p``)."""

    def kept(pmf: Pmf) -> Any:
        order = np.argsort(np.abs(_surprise(pmf) - _entropy(pmf)), kind="stable")
        before = np.cumsum(pmf[order]) - pmf[order]
        return np.isin(np.arange(len(pmf)), order[before < mass])

    return _of_pmf(kept)


def above(epsilon: float) -> Step:
    """Keep tokens with a probability of at least ``epsilon``, and the most probable token (``epsilon_cutoff``)."""
    return _of_pmf(lambda pmf: _or_the_top(pmf, pmf >= epsilon))


def above_either(epsilon: float) -> Step:
    """Keep tokens with a probability above epsilon or above ``sqrt(epsilon) * exp(-entropy)`` (``eta_cutoff``)."""
    return _of_pmf(lambda pmf: _or_the_top(pmf, pmf >= min(epsilon, np.sqrt(epsilon) * np.exp(-_entropy(pmf)))))


def within_entropy(share: float) -> Step:
    """Keep the most probable tokens up to a ``share`` of the whole entropy, renormalised (``top_h``)."""

    def kept(pmf: Pmf) -> Any:
        order, budget = np.argsort(-pmf, kind="stable"), share * _entropy(pmf)
        sizes = range(1, len(pmf) + 1)
        largest = max(size for size in sizes if size == 1 or _entropy(_whole(pmf[order[:size]])) <= budget)
        return np.isin(np.arange(len(pmf)), order[:largest])

    return _of_pmf(kept)


def repeated(penalty: float) -> Step:
    """Lower the logit of every token of the text (``repetition_penalty``)."""
    return lambda logits, text, new: repetition_penalty(logits, text, penalty)


def of_new_tokens(step: Step) -> Step:
    """Apply ``step`` to the new tokens alone: the tokens of a prompt of embeddings are not known."""
    return lambda logits, text, new: step(logits, text[len(text) - new :], new)


def of_the_prompt(reward: float) -> Step:
    """Raise the logit of every token of the prompt (``encoder_repetition_penalty``)."""
    return lambda logits, text, new: repetition_penalty(logits, text[: len(text) - new], 1 / reward)


def no_repeated_ngram(size: int, of_prompt: bool = False) -> Step:
    """Forbid tokens that would repeat an n-gram of the text, or of the prompt (``no_repeat_ngram_size``)."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        said = text[: len(text) - new] if of_prompt else text
        ngrams = {said[place : place + size] for place in range(len(said) - size + 1)}
        before = text[len(text) - size + 1 :]
        return _without(logits, [token for token in range(len(logits)) if (*before, token) in ngrams])

    return step


def biased(*sequences: tuple[Tokens, float]) -> Step:
    """Add to the logit of a token that completes a sequence (``sequence_bias``; -inf is ``bad_words_ids``)."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        result = logits.copy()
        for (*begin, last), bias in sequences:
            if not begin or text[-len(begin) :] == tuple(begin):
                result[last] += bias
        return result

    return step


def forbidden(*words: Tokens) -> Step:
    """Forbid tokens that complete one of ``words`` (``bad_words_ids``, ``suppress_tokens``)."""
    return biased(*((word, -np.inf) for word in words))


def at_first(step: Step) -> Step:
    """Apply ``step`` at the first new token alone (``begin_suppress_tokens``)."""
    return lambda logits, text, new: step(logits, text, new) if new == 0 else logits


def no_end_before(ends: Tokens, *, new_tokens: int = 0, length: int = 0) -> Step:
    """Forbid an end before a number of new tokens or a length of the text (``min_new_tokens``, ``min_length``)."""
    return lambda logits, text, new: _without(logits, ends) if new < new_tokens or len(text) < length else logits


def end_at(horizon: int, end: int) -> Step:
    """Force an end as the last token (``forced_eos_token_id``)."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        return (
            _without(logits, [token for token in range(len(logits)) if token != end]) if new == horizon - 1 else logits
        )

    return step


def sooner_ended(start: int, factor: float, end: int) -> Step:
    """Raise the end's logit by its size times ``factor ** n - 1``, n tokens after ``start``."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        result = logits.copy()
        result[end] += abs(result[end]) * (factor ** max(new - start, 0) - 1)
        return result

    return step


def guided(scale: float, model: Callable[[Tokens], Logits], negative: Tokens = ()) -> Step:
    """Apply guidance: move away from the logits of ``model`` after ``negative``, or after the prompt's last token."""

    def step(logits: Logits, text: Tokens, new: int) -> Logits:
        begin = len(text) - new
        other = np.log(softmax(model((negative or text[begin - 1 : begin]) + text[begin:])))
        return scale * (np.log(softmax(logits)) - other) + other

    return step


def _of_pmf(rule: Callable[[Pmf], Any]) -> Step:
    """Return the step that keeps the tokens with a positive entry in ``rule(pmf)``."""
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
