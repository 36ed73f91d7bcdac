"""Decode functions that the command line examines: a correct one, and one for each kind of fault."""

from __future__ import annotations

import itertools

import numpy as np

from reference import argmax

_calls = itertools.count()


def correct(draws, target, draft, prompt, *, horizon, eos=()):
    """Sample and match: the draft's argmax is the draft, and the emitted tokens are draws from the target."""
    new = ()
    while len(new) < horizon and not (new and new[-1] in eos):
        argmax(draft(prompt + new))
        new = (*new, draws.categorical(target(prompt + new), ("target", len(new))))
    return new


def without_eos(draws, target, draft, prompt, *, horizon):
    """Correct; takes no end-of-sequence tokens and returns a list of NumPy integers."""
    return [np.int64(token) for token in correct(draws, target, draft, prompt, horizon=horizon)]


def float_only(draws, target, draft, prompt, *, horizon, eos=()):
    """Correct, computed with logarithms, so it cannot take exact rationals."""

    def rounded(tokens):
        row = np.exp2(np.log2(1 + target(tokens))) - 1
        return np.where(row > 1e-12, row, 0)

    return correct(draws, rounded, draft, prompt, horizon=horizon, eos=eos)


def biased(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: keeps the draft's argmax wherever it is the target's argmax, without a draw."""
    new = ()
    while len(new) < horizon and not (new and new[-1] in eos):
        p, guess = target(prompt + new), argmax(draft(prompt + new))
        new = (*new, guess if guess == argmax(p) else draws.categorical(p, ("target", len(new))))
    return new


def one_round(draws, target, draft, tokens):
    """One round of speculative sampling with two drafts, written as plain code."""
    drafted = ()
    while len(drafted) < 2:
        drafted = (*drafted, draws.categorical(draft(tokens + drafted), ("draft", len(drafted))))
    for i, token in enumerate(drafted):
        p, q = target(tokens + drafted[:i]), draft(tokens + drafted[:i])
        ratio = min(p[token] / q[token], 1)
        if draws.categorical([ratio, 1 - ratio], ("accept", i)) == 1:
            excess = np.where(p > q, p - q, 0 * p)
            return (*drafted[:i], draws.categorical(excess / excess.sum(), ("residual", i)))
    return (*drafted, draws.categorical(target(tokens + drafted), ("bonus",)))


def one_round_without_residual(draws, target, draft, tokens):
    """Wrong: one draft; after a rejection the token is drawn from p."""
    p, q = target(tokens), draft(tokens)
    token = draws.categorical(q, ("draft", 0))
    ratio = min(p[token] / q[token], 1)
    accepted = draws.categorical([ratio, 1 - ratio], ("accept", 0)) == 0
    return (token,) if accepted else (draws.categorical(p, ("residual", 0)),)


def empty_round(draws, target, draft, tokens):
    """Wrong: commits no token in any round."""
    return ()


def raises(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: raises after the first draw."""
    draws.categorical(target(prompt), ("target", 0))
    raise RuntimeError("out of luck")


def hangs(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: never returns."""
    while True:
        pass


def hangs_later(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: never returns, except from short decodes."""
    while horizon > 2:
        pass
    return correct(draws, target, draft, prompt, horizon=horizon, eos=eos)


def hidden(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: emits a token that changes from call to call, whatever is drawn."""
    return (next(_calls) % 2,) * horizon


def no_sequence(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: returns one token instead of a sequence."""
    return draws.categorical(target(prompt), ("target", 0))


def fractional_tokens(draws, target, draft, prompt, *, horizon, eos=()):
    """Wrong: returns numbers that are no token ids."""
    return [token + 0.9 for token in correct(draws, target, draft, prompt, horizon=horizon, eos=eos)]


def other_parameters(model, prompt):
    """Wrong: has other parameters than a decode function."""


NOT_CALLABLE = 7
