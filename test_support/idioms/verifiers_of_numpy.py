"""Whole rejection samplers of one row with NumPy and ``random``."""

from __future__ import annotations

import hashlib
import random

import numpy as np

from test_support.idioms.idiom import verifier

RNG = np.random.default_rng(0)


def owed(p, q):
    left = np.maximum(p - q, 0)
    return left / left.sum() if left.any() else p


@verifier("NumPy", wrong=("rows[count]", "rows[0]"))
def vectorised(p, q, draft_tokens):
    """All coins at once; the token is drawn from one of the prepared rows."""
    places = np.arange(len(draft_tokens))
    kept = RNG.random(len(places)) < p[places, draft_tokens] / q[places, draft_tokens]
    count = int(np.cumprod(kept).sum())
    rows = [*map(owed, p[:-1], q), p[-1]]
    return np.append(draft_tokens[:count], RNG.choice(p.shape[1], p=rows[count]))


@verifier("NumPy", wrong=("emitted[: count + 1]", "emitted[::-1][: count + 1]"))
def prepared_at_every_position(p, q, draft_tokens):
    """Gumbel noise for every position; the row of tokens is cut."""
    places = np.arange(len(draft_tokens))
    kept = RNG.random(len(places)) < p[places, draft_tokens] / q[places, draft_tokens]
    rows = np.stack([*map(owed, p[:-1], q), p[-1]])
    with np.errstate(divide="ignore"):
        recovered = (np.log(rows) + RNG.gumbel(size=rows.shape)).argmax(axis=-1)
    count = int(np.cumprod(kept).sum())
    emitted = np.append(draft_tokens, 0)
    emitted[count] = recovered[count]
    return emitted[: count + 1]


@verifier("NumPy", wrong=("u -= mass", "u -= mass / 2"))
def one_pass(p, q, draft_tokens):
    """A lookup by hand after the coins, without an array of sums."""
    rng = np.random.default_rng()
    for i, token in enumerate(draft_tokens):
        if rng.random() * q[i, token] >= p[i, token]:
            row = owed(p[i], q[i])
            break
    else:
        i, row = len(draft_tokens), p[-1]
    u, last = rng.random() * row.sum(), int(np.flatnonzero(row)[-1])
    for found, mass in enumerate(row):
        u -= mass
        if u < 0:
            return [*draft_tokens[:i], found]
    return [*draft_tokens[:i], last]


@verifier("NumPy", wrong=("rng.random() >=", "rng.random() / 2 >="))
def seed_of_the_request(p, q, draft_tokens):
    """A generator with a seed drawn for the request."""
    seed = int(RNG.integers(2**63))
    rng = np.random.default_rng(seed)
    for i, token in enumerate(draft_tokens):
        if rng.random() >= p[i, token] / q[i, token]:
            return [*draft_tokens[:i], rng.choice(p.shape[1], p=owed(p[i], q[i]))]
    return [*draft_tokens, rng.choice(p.shape[1], p=p[-1])]


@verifier(
    "NumPy",
    wrong=("< p[i, token] / q[i, token]", "< p[i, token]"),
    unknown="seen: a number of 9223372036854775808 outcomes at verifiers_of_numpy.py",
)
def hash_of_a_drawn_seed(p, q, draft_tokens):
    """Uniforms by a hash of a drawn seed and a counter."""
    seed = int(RNG.integers(2**63))
    for i, token in enumerate(draft_tokens):
        digest = hashlib.sha256(f"{seed}:{i}".encode()).digest()
        if not int.from_bytes(digest[:8], "big") / 2**64 < p[i, token] / q[i, token]:
            return [*draft_tokens[:i], RNG.choice(p.shape[1], p=owed(p[i], q[i]))]
    return [*draft_tokens, RNG.choice(p.shape[1], p=p[-1])]


@verifier("NumPy", wrong=("accepted and RNG.random() < ratio", "accepted or RNG.random() < ratio"))
def mask_by_hand(p, q, draft_tokens):
    """A mask made by hand, its ``argmin``, and the row at this index."""
    accepted, mask = True, []
    for i, token in enumerate(draft_tokens):
        ratio = p[i, token] / q[i, token]
        accepted = bool(accepted and RNG.random() < ratio)
        mask.append(accepted)
    count = int(np.argmin([*mask, False]))
    row = p[-1] if count == len(draft_tokens) else owed(p[count], q[count])
    return [*draft_tokens[:count], RNG.choice(len(row), p=row)]


@verifier("random", wrong=("random.choices(tokens, owed(p[i], q[i]))", "random.choices(tokens, p[i])"))
def standard_library(p, q, draft_tokens):
    """``random.random`` and ``random.choices``."""
    tokens = range(p.shape[1])
    for i, token in enumerate(draft_tokens.tolist()):
        if not random.random() < p[i, token] / q[i, token]:
            return [*draft_tokens[:i].tolist(), *random.choices(tokens, owed(p[i], q[i]))]
    return [*draft_tokens.tolist(), *random.choices(tokens, p[-1])]


@verifier("random", wrong=("_tokens(p, q, draft_tokens)", "_tokens(p[::-1], q, draft_tokens)"))
def generator_function(p, q, draft_tokens):
    """Tokens come from a Python generator."""
    return list(_tokens(p, q, draft_tokens))


def _tokens(p, q, draft_tokens):
    for i, token in enumerate(draft_tokens.tolist()):
        if random.random() >= p[i, token] / q[i, token]:
            yield from random.choices(range(p.shape[1]), owed(p[i], q[i]))
            return
        yield token
    yield from random.choices(range(p.shape[1]), p[-1])


@verifier("random", wrong=("if not u < ratio", "if not u < ratio * ratio"))
def float_of_a_number(p, q, draft_tokens):
    """``float(u)``, which makes a plain float of any number."""
    for i, token in enumerate(draft_tokens.tolist()):
        u, ratio = float(random.random()), p[i, token] / q[i, token]
        if not u < ratio:
            return [*draft_tokens[:i].tolist(), *random.choices(range(p.shape[1]), owed(p[i], q[i]))]
    return [*draft_tokens.tolist(), *random.choices(range(p.shape[1]), p[-1])]
