"""Functions that generate tokens from callables, with default parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .algorithms import autoregressive, egag, nasd, speculative_sampling
from .pmf import as_row, check_pmf, is_plainly_pmf
from .rounds import AcceptanceStatistics, acceptance_statistics
from .types import Decoder, Draws, LanguageModel, Pmf, Round, Site, Task, Tokens
from .validation import argument_error, check_callable, check_instance, check_integer, check_integers, checked_tokens


class Sampled:
    """Ordinary sampling: every draw is decided by inverse CDF from a NumPy generator."""

    def __init__(self, rng: np.random.Generator | int) -> None:
        """Store the generator; ``rng`` is a generator, or a seed for one. Raises ``ValueError`` for anything else."""
        seed: Any = str(rng) if isinstance(rng, bool) else rng  # NumPy would take True for 1
        try:
            self._uniform = np.random.default_rng(seed).random
        except (TypeError, ValueError):
            raise argument_error("rng", rng, "a generator of NumPy, or an integer of at least 0") from None

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return an outcome of ``pmf``, drawn with the next uniform of the generator; ``site`` is only used in errors.

        Raises ``ValueError`` if ``pmf`` is not a probability vector.
        """
        checked = pmf if is_plainly_pmf(pmf) else check_pmf(pmf, f"the pmf at {site}")
        return inverse_cdf(checked, self._uniform())


def inverse_cdf(pmf: Pmf, uniform: float) -> int:
    """Return the outcome whose interval of the cumulative pmf contains ``uniform`` in [0, 1).

    An outcome of probability 0 is never returned. Raises ``ValueError`` for a ``uniform`` outside [0, 1), for a
    negative probability or NaN, and if no outcome has a positive probability.
    """
    try:
        inside = 0 <= uniform < 1
    except TypeError:
        inside = False
    if not inside:
        raise argument_error("the uniform", uniform, "a number in [0, 1)")
    if isinstance(pmf, np.ndarray) and pmf.dtype.kind in "fiub" and pmf.ndim == 1:
        cumulative = pmf.cumsum()
        _check_weights(pmf, valid=pmf.min(initial=0) >= 0)
        if not (len(pmf) and cumulative[-1] > 0):
            raise argument_error("the pmf", pmf.tolist(), "an outcome of positive probability")
        outcome = int(cumulative.searchsorted(uniform * cumulative[-1], side="right"))
        return outcome if outcome < len(pmf) and pmf[outcome] > 0 else int(pmf.nonzero()[0][-1])
    values, total, last = as_row(pmf, "the pmf").tolist(), 0, -1
    _check_weights(pmf, valid=all(mass >= 0 for mass in values))
    for outcome, mass in enumerate(values):
        if mass > 0:
            total, last = total + mass, outcome
            if uniform < total:
                break
    if last < 0:
        raise argument_error("the pmf", values, "an outcome of positive probability")
    return last


def _check_weights(pmf: Pmf, *, valid: bool | np.bool_) -> None:
    if not valid:
        raise argument_error("the pmf", np.asarray(pmf).tolist(), "probabilities of at least 0")


class Generation(NamedTuple):
    """The result of a generation: the new tokens, and ``rounds``, the record of each round."""

    tokens: Tokens
    rounds: tuple[Round, ...]

    @property
    def statistics(self) -> AcceptanceStatistics:
        """Return totals and rates over the rounds."""
        return acceptance_statistics(self.rounds)


def generate(decoder: Decoder, prompt: Tokens, draws: Draws) -> Generation:
    """Run ``decoder`` from ``prompt`` until it has finished; return the new tokens and the record of each round.

    Raises ``ValueError`` if ``decoder`` is no decoder or ``draws`` no source of draws.
    """
    check_instance(decoder, "decoder", Decoder)
    check_callable(getattr(draws, "categorical", None), "draws.categorical", "a function, as that of Sampled(seed)")
    state, rounds = decoder.init(prompt), []
    while state.remaining:
        state, done = decoder.step(draws, state)
        rounds.append(done)
    return Generation(state.tokens[len(prompt) :], tuple(rounds))


def autoregressive_generate(
    target: LanguageModel, prompt: Tokens, *, max_new_tokens: int, eos: Tokens = (), seed: int | None = None
) -> Generation:
    """Return tokens sampled from the target alone, at most ``max_new_tokens``.

    The text ends after a token in ``eos``. ``seed`` is the seed of the random numbers; None gives other numbers in each
    call. Raises ``ValueError`` for an invalid prompt, limit or seed.
    """
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
    """Return tokens generated by speculative sampling (2211.17192) with ``gamma`` drafts a round.

    ``target`` and ``draft`` are callables from all tokens to a pmf; the other parameters are those of
    ``autoregressive_generate``. Raises ``ValueError`` as that function does, and unless ``gamma`` is an integer >= 0.
    """
    task = _task(target, draft, None, eos, max_new_tokens)
    return generate(speculative_sampling.build(task, gamma), prompt, _sampled(seed))


def nasd_generate(
    target: LanguageModel,
    prompt: Tokens,
    *,
    max_new_tokens: int,
    order: int = 3,
    gamma: int = 4,
    filler_top_k: int = 1,
    backoff: bool = True,
    eos: Tokens = (),
    seed: int | None = None,
) -> Generation:
    """Return tokens generated from ``target`` by n-gram assisted decoding, lossless.

    ``order``, ``gamma``, ``filler_top_k`` and ``backoff`` are the options of ``algorithms.nasd``. The other parameters
    are those of ``autoregressive_generate``.
    """
    task = _task(target, None, None, eos, max_new_tokens)
    return generate(nasd.build(task, order, gamma, filler_top_k, backoff), prompt, _sampled(seed))


def egag_generate(
    target: LanguageModel,
    draft: LanguageModel,
    prompt: Tokens,
    *,
    max_new_tokens: int,
    raw_draft: LanguageModel | None = None,
    gamma_min: int = 1,
    gamma_max: int = 8,
    beta: float = 0.0,
    eos: Tokens = (),
    seed: int | None = None,
) -> Generation:
    """Return tokens generated from ``target`` by speculative sampling with entropy-adaptive gamma.

    ``gamma_min``, ``gamma_max`` and ``beta`` are the options of ``algorithms.egag``. ``raw_draft`` is the drafter at
    temperature 1 before truncation; by default it is ``draft``. The other parameters are those of
    ``autoregressive_generate``.
    """
    task = _task(target, draft, raw_draft, eos, max_new_tokens)
    return generate(egag.build(task, gamma_min, gamma_max, beta), prompt, _sampled(seed))


def _task(
    target: LanguageModel, draft: LanguageModel | None, raw_draft: LanguageModel | None, eos: Tokens, horizon: int
) -> Task:
    """Return the task of these models: ``raw_draft`` is the drafter at temperature 1 before truncation.

    ``draft`` and ``raw_draft`` may be None. Raises ``ValueError`` for a model that is not callable, for invalid
    ``eos``, and unless ``horizon`` is an integer.
    """
    for name, model in (("target", target), ("draft", draft), ("raw_draft", raw_draft)):
        if model is not None or name == "target":
            check_callable(model, name)
    check_integers(max_new_tokens=horizon)
    return Task(target, draft, raw_draft, checked_tokens(eos, "eos"), horizon)


def _sampled(seed: int | None) -> Sampled:
    if seed is not None:
        check_integer(seed, "the seed", least=0)
    return Sampled(np.random.default_rng(seed))
