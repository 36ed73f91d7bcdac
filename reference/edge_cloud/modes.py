"""The modes of verification: the part of q that the edge sends, and the rule by which the cloud verifies.

Exact modes: ``sparse-q`` sends every row of q without its zeros; ``two-phase`` sends q(y) of each draft y, then the row
at the first rejection; ``match``, ``gumbel`` and ``greedy`` send nothing of q. Biased modes, from the edge-cloud guide
(Sections 3.1, 3.2, 6.2): ``scalar-q``, ``shortcut`` and ``likelier``, which all send q(y) alone. For three or more
tokens no verifier that receives only (p, y, q(y)) is both lossless for every q and better than ``match``.

``gumbel`` is ``match`` with all draws, drafts included, taken from noise that both sides share (``shared_noise``). The
seed is sent once, when the session is opened. A draft equals the cloud's draw with probability at least (1 - TV)/(1 +
TV). This can be more than under ``match``, because the cloud's draw is not independent of the draft.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, NamedTuple

from ..coupling import accept_probability
from ..pmf import as_pmf, one_hot
from ..types import Draft, Pmf, Verifier, chain
from ..verifiers.accept_or_replace import accept_or_replace
from ..verifiers.greedy_match import greedy_match
from ..verifiers.sample_and_match import sample_and_match
from ..verifiers.speculative_sampling import speculative_sampling
from .messages import SparsePmf, Verify


class Mode(NamedTuple):
    """A mode of verification: ``sends``, the part of q that is sent with the drafts, and ``verify``, the cloud's rule.

    The part is nothing, ``masses`` (q of each drafted token) or ``rows`` (the row of q for each draft). ``fetches``
    states whether the cloud requests a row of q after a rejection, ``shared_noise`` whether both sides draw from one
    noise.
    """

    sends: Literal["nothing", "masses", "rows"]
    verify: Verifier
    fetches: bool = False
    """Whether the cloud requests the row of q at the first rejection."""
    shared_noise: bool = False
    """Whether drafting and verification are Gumbel races over one shared noise; a session then needs a seed."""


MODES: dict[str, Mode] = {
    "sparse-q": Mode("rows", speculative_sampling),
    "two-phase": Mode("masses", speculative_sampling, fetches=True),
    "match": Mode("nothing", sample_and_match),
    "gumbel": Mode("nothing", sample_and_match, shared_noise=True),
    "greedy": Mode("nothing", greedy_match),
    "scalar-q": Mode("masses", speculative_sampling),
    "shortcut": Mode(
        "masses", accept_or_replace(lambda _, p, q, token: accept_probability(p, q, token), lambda p, q, token: p)
    ),
    "likelier": Mode(
        "masses", accept_or_replace(lambda _, p, q, token: int(p[token] >= q[token]), lambda p, q, token: p)
    ),
}


def find_mode(name: str) -> Mode:
    """Return the mode called ``name``. Raises ``ValueError`` if there is none."""
    if name not in MODES:
        raise ValueError(f"there is no mode {name!r}, expected one of {', '.join(MODES)}")
    return MODES[name]


def check_session_seed(name: str, seed: int | None) -> None:
    """Raise ``ValueError`` unless the mode ``name`` exists and ``seed`` is given exactly if the mode shares noise."""
    if find_mode(name).shared_noise != (seed is not None):
        wanted = "none, because its sides share no noise" if seed is not None else "the seed of the noise both hold"
        raise ValueError(f"a session in the mode {name!r} is opened with the seed {seed}, expected {wanted}")


def as_row(pmf: Pmf) -> SparsePmf:
    """Return the support of ``pmf`` ``[V]`` with its probabilities, exact ones as ``Fraction``."""
    values = pmf.tolist()
    tokens = tuple(token for token, mass in enumerate(values) if mass > 0)
    masses = tuple(values[token] for token in tokens)
    return SparsePmf(len(values), tokens, tuple(map(Fraction, masses)) if pmf.dtype == object else masses)


def from_row(row: SparsePmf) -> Pmf:
    """Return the pmf ``[size]`` that ``row`` describes: an object array of ``Fraction``, or float64."""
    values = [row.masses[0] * 0] * row.size
    for token, mass in zip(row.tokens, row.masses, strict=True):
        values[token] = mass
    return as_pmf(values)


def mass_of(row: SparsePmf, token: int) -> Any:
    """Return the probability of ``token`` in ``row``. Raises ``ValueError`` if the row does not contain it."""
    return row.masses[row.tokens.index(token)]


def received_draft(mode: Mode, request: Verify, p: Pmf) -> Draft:
    """Return the draft as the cloud receives it; ``p`` gives the vocabulary and the number type.

    If only q(y) of each draft y is sent, the row of y has q(y) at y and 0 elsewhere. Raises ``ValueError`` if the
    request lacks what the mode needs, or for a drafted token outside the vocabulary.
    """
    counts = {"masses": len(request.masses), "rows": len(request.rows)}
    if counts != dict.fromkeys(counts, 0) | ({mode.sends: len(request.draft)} if mode.sends != "nothing" else {}):
        raise ValueError(f"{len(request.draft)} drafts came with {counts} of q, expected {mode.sends} for each")
    if any(token >= len(p) for token in request.draft):
        raise ValueError(f"the draft {request.draft} leaves the vocabulary 0..{len(p) - 1}")
    if mode.sends == "rows":
        return chain(request.draft, tuple(from_row(row) for row in request.rows))
    if mode.sends == "masses":
        rows = tuple(one_hot(y, p) * mass for y, mass in zip(request.draft, request.masses, strict=True))
        return chain(request.draft, rows)
    return chain(request.draft, (None,) * len(request.draft))
