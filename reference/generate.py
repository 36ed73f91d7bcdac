"""Functions that generate tokens from callables, with sensible defaults."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .algorithms import autoregressive, egag, nasd, speculative_sampling
from .pmf import check_pmf, is_plainly_pmf
from .rounds import AcceptanceStatistics, acceptance_statistics
from .types import Decoder, Draws, LanguageModel, Pmf, Round, Site, Task, Tokens
from .validation import argument_error, check_integer, check_integers, checked_tokens


class Sampled:
    """Ordinary sampling: draws answered by a NumPy generator, by inverse CDF."""

    def __init__(self, rng: np.random.Generator | int) -> None:
        """``rng`` is a generator, or a seed for one."""
        self._uniform = np.random.default_rng(rng).random

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return an outcome of ``pmf``; raises ``ValueError`` if it is not a probability vector."""
        checked = pmf if is_plainly_pmf(pmf) else check_pmf(pmf, f"the pmf at {site}")
        return inverse_cdf(checked, self._uniform())


def inverse_cdf(pmf: Pmf, uniform: float) -> int:
    """Return the outcome whose interval of the cumulative pmf holds ``uniform`` in [0, 1).

    Outcomes of probability 0 are never returned, not even at uniform = 0 or where the pmf sums to a little under 1.
    Raises ``ValueError`` for another uniform, and where no outcome has a positive probability.
    """
    if not 0 <= uniform < 1:
        raise argument_error("the uniform", uniform, "a number in [0, 1)")
    if isinstance(pmf, np.ndarray) and pmf.dtype != object:
        cumulative = pmf.cumsum()
        if not (len(pmf) and cumulative[-1] > 0):
            raise argument_error("the pmf", pmf.tolist(), "an outcome of positive probability")
        outcome = int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
        return outcome if outcome < len(pmf) and pmf[outcome] > 0 else int(pmf.nonzero()[0][-1])
    total, last = 0, -1
    for outcome, mass in enumerate(pmf.tolist()):
        if mass > 0:
            total, last = total + mass, outcome
            if uniform < total:
                break
    if last < 0:
        raise argument_error("the pmf", pmf.tolist(), "an outcome of positive probability")
    return last


class Generation(NamedTuple):
    """The new tokens, and a record of each round."""

    tokens: Tokens
    rounds: tuple[Round, ...]

    @property
    def statistics(self) -> AcceptanceStatistics:
        """Totals and rates over the rounds."""
        return acceptance_statistics(self.rounds)


def generate(decoder: Decoder, prompt: Tokens, draws: Draws) -> Generation:
    """Run ``decoder`` from ``prompt`` until it has finished."""
    state, rounds = decoder.init(prompt), []
    while state.remaining:
        state, done = decoder.step(draws, state)
        rounds.append(done)
    return Generation(state.tokens[len(prompt) :], tuple(rounds))


def autoregressive_generate(
    target: LanguageModel, prompt: Tokens, *, max_new_tokens: int, eos: Tokens = (), seed: int | None = None
) -> Generation:
    """Sample from the target alone. Raises ``ValueError`` for an invalid prompt, limit or seed."""
    task = _task(target, None, None, eos, max_new_tokens)
    return generate(autoregressive.build(task), prompt, _sampled(seed))


def speculative_generate(
    target: LanguageModel,
    draft: LanguageModel,
    prompt: Tokens,
    *,
    max_new_tokens: int,
    gamma: int = 4,
    eos: Tokens = (),
    seed: int | None = None,
) -> Generation:
    """Speculative sampling (2211.17192): target and draft are callables from all tokens to a pmf.

    Raises ``ValueError`` as ``autoregressive_generate``, and unless ``gamma`` is an integer >= 0.
    """
    task = _task(target, draft, None, eos, max_new_tokens)
    return generate(speculative_sampling.build(task, gamma), prompt, _sampled(seed))


def nasd_generate(
    target: LanguageModel,
    prompt: Tokens,
    *,
    max_new_tokens: int,
    eos: Tokens = (),
    seed: int | None = None,
    **options: Any,
) -> Generation:
    """N-gram assisted decoding, lossless. Options: order, gamma, filler_top_k, backoff."""
    task = _task(target, None, None, eos, max_new_tokens)
    return generate(nasd.build(task, **options), prompt, _sampled(seed))


def egag_generate(
    target: LanguageModel,
    draft: LanguageModel,
    prompt: Tokens,
    *,
    max_new_tokens: int,
    raw_draft: LanguageModel | None = None,
    eos: Tokens = (),
    seed: int | None = None,
    **options: Any,
) -> Generation:
    """Speculative sampling with entropy-adaptive gamma. Options: gamma_min, gamma_max, beta."""
    task = _task(target, draft, raw_draft, eos, max_new_tokens)
    return generate(egag.build(task, **options), prompt, _sampled(seed))


def _task(
    target: LanguageModel, draft: LanguageModel | None, raw_draft: LanguageModel | None, eos: Tokens, horizon: int
) -> Task:
    """Return the validated task."""
    for name, model in (("target", target), ("draft", draft), ("raw_draft", raw_draft)):
        if not callable(model) and (model is not None or name == "target"):
            raise argument_error(name, model, "a callable from a tuple of tokens to a pmf")
    check_integers(max_new_tokens=horizon)
    return Task(target, draft, raw_draft, checked_tokens(eos, "eos"), horizon)


def _sampled(seed: int | None) -> Sampled:
    if seed is not None:
        check_integer(seed, "the seed", least=0)
    return Sampled(np.random.default_rng(seed))
