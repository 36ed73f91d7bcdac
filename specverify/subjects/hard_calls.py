"""Calls at a real vocabulary size that are hard for kernels: generated in any dtype, the same in every run.

Each covers one way in which code fails only at the vocabulary size that it is used with: token ids truncated to 8 or 16
bits, a last block that is not full, padded vocabularies, ties, sparse rows, entries too small for a low-precision
float, p and q that differ by rounding alone. Tokens next to the limits of 8-bit and 16-bit ids
(``laws.law_of_call.edges``) have a positive probability.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from specverify.base.arguments import check_choice, check_integer, check_seed
from specverify.laws.law_of_call import edges
from specverify.subjects.recorded_calls import TOLERANCES, Call, LogitsCall

Pair = tuple[Any, Any]
"""A row of p and a row of q, ``[vocabulary]`` each: weights that need not sum to 1."""
FORMS = ("row", "logits")
PADDED = 128
"""Vocabularies are padded to a multiple of this."""


class HardCall(NamedTuple):
    """The description of a hard call; its large arrays are generated only when ``call()`` runs.

    ``shape`` is the kind of its rows, a key of ``SHAPES``, and ``seed`` selects them. ``vocabulary`` is the number of
    tokens, ``gamma`` the number of drafts, ``dtype`` the name of the arrays' dtype, and ``form`` how the verifier is
    called, such as "row".
    """

    shape: str
    vocabulary: int
    gamma: int
    dtype: str
    form: str = "row"
    seed: int = 0

    @property
    def name(self) -> str:
        """Return the name of the call, such as ``edges, vocabulary 151936, gamma 4, float32``."""
        form = "" if self.form == "row" else f", {self.form}"
        return f"{self.shape}, vocabulary {self.vocabulary}, gamma {self.gamma}, {self.dtype}{form}"

    def call(self) -> Call | LogitsCall:
        """Generate and return the call."""
        return _made(self)


def hard_calls(
    vocabulary: int, gamma: int = 4, dtype: str = "float32", *, form: str = "row", seed: int = 0
) -> tuple[HardCall, ...]:
    """Return the hard calls of one size, for ``check_verifier(verify, cases=...)``.

    Args:
        vocabulary: Tokens, at least 64.
        gamma: Drafts, 1 to 64.
        dtype: ``"float64"``, ``"float32"``, ``"float16"`` or ``"bfloat16"`` (with torch).
        form: ``"row"`` for probabilities, ``"logits"`` for logits.
        seed: Seed of the rows.

    Returns:
        One call for each shape of rows.

    Raises:
        ValueError: For a size, dtype or form that is not supported.

    Examples:
        >>> hard_calls(151_936, gamma=2, dtype="float32")[0].vocabulary
        151936
    """
    check_integer(vocabulary, "the vocabulary", least=64)
    check_integer(gamma, "gamma", least=1, most=64)
    check_choice(dtype, "the dtype", tuple(TOLERANCES))
    check_choice(form, "the form", FORMS)
    check_seed(seed)
    return tuple(HardCall(shape, vocabulary, gamma, dtype, form, seed) for shape in SHAPES)


# The shapes


def at_edges(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights with half the mass of p, and less of q, at token ids next to the limits of narrow integer types.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    at = np.array(edges(vocabulary))
    p, q = rng.exponential(size=(2, vocabulary))
    p[at] += p.sum() / len(at) * rng.uniform(0.5, 1.5, len(at))
    q[at] += q.sum() / len(at) * rng.uniform(0.05, 0.5, len(at))
    return p, q


def peaked(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights like those of a confident model: one token has almost half of the mass.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """

    def row() -> Any:
        result = 1.0 / (1.0 + rng.permutation(vocabulary)) ** 1.5
        result[rng.integers(vocabulary)] += 2.0
        return result

    return row(), row()


def rarely_kept(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights for which p/q is about 2^-13 at most drafts; a 16-bit uniform accepts such drafts too often.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    p, q = rng.exponential(size=(2, vocabulary))
    drafted = rng.random(vocabulary) < 0.5
    drafted[-1] = True
    q[~drafted] /= 16
    p[drafted] = 2.0**-13 * p[~drafted].sum() * q[drafted] / q.sum()
    return p, q


def flat(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights like those of an uncertain model: all of one order of magnitude, half of them tied.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    p, q = rng.uniform(0.5, 1.5, size=(2, vocabulary))
    p[::2], q[::2] = 1.0, 0.75
    return p, q


def mostly_zero(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights like those after top-p: few tokens are possible, and not the same tokens under p and q.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """

    def row(first: int, last: int) -> Any:
        result = np.zeros(vocabulary)
        result[rng.choice(np.arange(first, last), max(vocabulary // 20, 4), replace=False)] = 1.0
        result *= rng.exponential(size=vocabulary)
        result[-1] = result.sum() / 8
        return result

    return row(vocabulary // 4, vocabulary), row(0, vocabulary // 2)


def padded(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights that are 0 from the last multiple of 128 on, as in a vocabulary padded to whole blocks.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    p, q = rng.exponential(size=(2, vocabulary)) ** 4
    real = (vocabulary - 1) // PADDED * PADDED if vocabulary > 2 * PADDED else vocabulary - 2
    p[real:] = q[real:] = 0.0
    return p, q


def small_residual(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights whose residual p - q is spread over many tokens, each too small for float16.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    p, q = np.zeros((2, vocabulary))
    heads = rng.choice(vocabulary, min(32, vocabulary // 2), replace=False)
    p[heads] = q[heads] = rng.uniform(0.5, 1.5, len(heads))
    rest = np.setdiff1d(np.arange(vocabulary), heads)
    p[rest] = p.sum() / 50 * min(1.0, len(rest) * 2.0e-6) * rng.uniform(0.5, 1.5, len(rest)) / len(rest)
    q[heads[0]] += p[rest].sum()
    return p, q


def apart_by_rounding(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return weights of p and q that differ by a factor within 2^-30 of 1, so that p - q consists of rounding only.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    weights = np.exp(rng.normal(0, 2, vocabulary))
    return weights, weights * (1 + rng.uniform(-1, 1, vocabulary) * 2.0**-30)


def equal(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return equal weights of p and q, as for a model that drafts for itself.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    weights = rng.exponential(size=vocabulary)
    return weights, weights


def points(rng: np.random.Generator, vocabulary: int) -> Pair:
    """Return one-hot p and q, as at temperature 0; they are equal with probability 1/2.

    The result has the weights of p and those of q, each ``[vocabulary]``; ``rng`` draws them.
    """
    p, q = np.zeros((2, vocabulary))
    token = int(rng.choice(edges(vocabulary)))
    p[token] = 1.0
    q[token if rng.random() < 0.5 else vocabulary - 1 - token] = 1.0
    return p, q


SHAPES: dict[str, Callable[[np.random.Generator, int], Pair]] = {
    "at edges": at_edges,
    "peaked": peaked,
    "rarely kept": rarely_kept,
    "flat": flat,
    "mostly zero": mostly_zero,
    "padded": padded,
    "small residual": small_residual,
    "apart by rounding": apart_by_rounding,
    "equal": equal,
    "points": points,
}


# The calls


def _made(spec: HardCall) -> Call | LogitsCall:
    rng = np.random.default_rng(zlib.crc32(repr((spec.shape, spec.vocabulary, spec.gamma, spec.seed)).encode()))
    pairs = [SHAPES[spec.shape](rng, spec.vocabulary) for _ in range(spec.gamma + 1)]
    p, q = (np.stack([row / row.sum() for row in rows]) for rows in zip(*pairs, strict=True))
    if spec.form == "logits":
        with np.errstate(divide="ignore"):
            target, drafter = (_stored(np.log(rows) + np.log(spec.vocabulary) / 2, spec.dtype) for rows in (p, q[:-1]))
        return LogitsCall(target, drafter, _tokens(_drafts(rng, p, q), spec.dtype), name=spec.name)
    stored = _stored(p, spec.dtype), _stored(q, spec.dtype)
    drafts = _drafts(rng, *(rows.double().numpy() if spec.dtype == "bfloat16" else np.float64(rows) for rows in stored))
    return Call(stored[0], stored[1][:-1], _tokens(drafts, spec.dtype), spec.name)


def _drafts(rng: np.random.Generator, p: Any, q: Any) -> Any:
    """Return drafts that q can draw, chosen by ``rng`` from the rows ``p`` and ``q``.

    If possible, one draft is the last token, one has p = 0, and one may be accepted.
    """
    gamma = len(q) - 1
    at_end = int(rng.integers(gamma))
    result = []
    for place, row in enumerate(q[:-1]):
        if place == at_end and row[-1] > 1e-6:
            result.append(len(row) - 1)
            continue
        ratio = p[place] / np.maximum(row, 1e-30)
        wanted = ratio == 0 if 0 < place == gamma - 1 else (ratio > 0.2) & (ratio < 0.8)
        weights = np.where(wanted, row, 0.0) if (wanted & (row > 1e-6)).any() else row
        result.append(int(rng.choice(len(row), p=weights / weights.sum())))
    return np.array(result)


def _stored(rows: Any, dtype: str) -> Any:
    """Return the rows in ``dtype``: as a NumPy array, or as a torch tensor if NumPy lacks the dtype."""
    if dtype == "bfloat16":
        torch = import_module("torch")
        return torch.from_numpy(np.ascontiguousarray(rows)).to(torch.bfloat16)
    return rows.astype(dtype)


def _tokens(drafts: Any, dtype: str) -> Any:
    return import_module("torch").from_numpy(drafts) if dtype == "bfloat16" else drafts
