"""Decode functions for the command line to examine: a correct one, and one for every way to go wrong."""

from __future__ import annotations

import itertools

import numpy as np

from reference import argmax

_calls = itertools.count()


def correct(draws, target, draft, prompt, *, horizon, eos=()):
    """Sample and match: the argmax of the draft is guessed, the target's own draw comes out."""
    new = ()
    while len(new) < horizon and not (new and new[-1] in eos):
        argmax(draft(prompt + new))
        new = (*new, draws.categorical(target(prompt + new), ("target", len(new))))
    return new


def without_eos(draws, target, draft, prompt, *, horizon):
    """Right, and told nothing of end-of-sequence tokens; answers a list of NumPy integers."""
    return [np.int64(token) for token in correct(draws, target, draft, prompt, horizon=horizon)]


def float_only(draws, target, draft, prompt, *, horizon, eos=()):
    """Right, through logarithms: exact rationals are beyond it."""

    def rounded(tokens):
        row = np.exp2(np.log2(1 + target(tokens))) - 1
        return np.where(row > 1e-12, row, 0)

    return correct(draws, rounded, draft, prompt, horizon=horizon, eos=eos)


def biased(draws, target, draft, prompt, *, horizon, eos=()):
    """The draft's argmax is kept wherever it is the target's, without a draw."""
    new = ()
    while len(new) < horizon and not (new and new[-1] in eos):
        p, guess = target(prompt + new), argmax(draft(prompt + new))
        new = (*new, guess if guess == argmax(p) else draws.categorical(p, ("target", len(new))))
    return new


def one_round(draws, target, draft, tokens):
    """Speculative sampling of two drafted tokens, written out."""
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
    """One drafted token; after a rejection the target is sampled."""
    p, q = target(tokens), draft(tokens)
    token = draws.categorical(q, ("draft", 0))
    ratio = min(p[token] / q[token], 1)
    accepted = draws.categorical([ratio, 1 - ratio], ("accept", 0)) == 0
    return (token,) if accepted else (draws.categorical(p, ("residual", 0)),)


def empty_round(draws, target, draft, tokens):
    """Emit nothing, again and again."""
    return ()


def raises(draws, target, draft, prompt, *, horizon, eos=()):
    """Fail after the first draw."""
    draws.categorical(target(prompt), ("target", 0))
    raise RuntimeError("out of luck")


def hangs(draws, target, draft, prompt, *, horizon, eos=()):
    """Never come back."""
    while True:
        pass


def hangs_later(draws, target, draft, prompt, *, horizon, eos=()):
    """Never come back, except from short decodes."""
    while horizon > 2:
        pass
    return correct(draws, target, draft, prompt, horizon=horizon, eos=eos)


def hidden(draws, target, draft, prompt, *, horizon, eos=()):
    """Emit something that changes from call to call, whatever is drawn."""
    return (next(_calls) % 2,) * horizon


def no_sequence(draws, target, draft, prompt, *, horizon, eos=()):
    """Answer one token instead of a sequence."""
    return draws.categorical(target(prompt), ("target", 0))


def fractional_tokens(draws, target, draft, prompt, *, horizon, eos=()):
    """Answer numbers that are no token ids."""
    return [token + 0.9 for token in correct(draws, target, draft, prompt, horizon=horizon, eos=eos)]


def other_parameters(model, prompt):
    """Take something else."""


NOT_CALLABLE = 7
