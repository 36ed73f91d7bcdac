"""Test vectors ``boundary``: one verification of drafts at the limits of floats and uniforms.

Rows are sparse: token -> probability. All numbers are dyadic. Float32 holds them, and the products and sums that
decide, exactly. So a correct program in float32 gives these answers. In vectors ``of-3-equal`` a row has equal parts
whose sums are rounded; there the last token is expected. Tokens are drawn by inverse CDF; the conventions are those of
the vectors ``verify_chain`` with the flag ``inverse-cdf``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from specverify.reference import chain
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.vectors.given import GivenUniforms
from specverify.vectors.json_models import by_position, sparse_pmf_of
from specverify.vectors.judging import judged_exactly
from specverify.vectors.kinds.verify_chain import uniform_of
from specverify.vectors.vector import REFUSED, Answer, Kind, Vector, by_convention, invalid, valid

KIND = "boundary"
FLAG = "inverse-cdf"
ZERO, LARGEST = "0", str(1 - Fraction(1, 2**24))
"""The smallest uniform, and the largest below 1 that float32 holds."""
Row = Mapping[int, str]
SIZES = (8191, 8192, 8193, 32770)
"""Vocabulary sizes: around the block size 8192 of GPU kernels, and one with token ids beyond signed 16 bits."""


def answer_of(inputs: Mapping[str, Any]) -> Answer:
    """Return the right answer to the inputs of a vector, computed by the verifier of ``reference``."""
    p, q = ([sparse_pmf_of(row, inputs["vocabulary"]) for row in inputs[name]] for name in ("p", "q"))
    draft = chain(tuple(inputs["draft"]), tuple(q))
    verified = speculative_sampling(GivenUniforms(uniform_of(inputs)), by_position(p), (), draft)
    return {"accepted": verified.accepted, "tokens": list(verified.tokens)}


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``boundary``."""
    return (*_zero_coins(), *_largest(), *_equalities(), *_points(), *_underflow(), *_large(), *_broken())


def _given(
    p: Sequence[Row], q: Sequence[Row], draft: Sequence[int], coins: Sequence[str], final: str, vocabulary: int = 4
) -> dict[str, Any]:
    rows = {
        name: [{str(token): mass for token, mass in row.items()} for row in side] for name, side in (("p", p), ("q", q))
    }
    return {"vocabulary": vocabulary, **rows, "draft": list(draft), "coins": list(coins), "final": final}


def _vector(name: str, inputs: Mapping[str, Any], *notes: str) -> Vector:
    return valid(f"{FLAG}/{name}", KIND, inputs, answer_of(inputs), FLAG, notes=notes)


HALVES: Row = {1: "1/2", 2: "1/2"}
EVEN: Row = {0: "1/4", 1: "1/4", 2: "1/4", 3: "1/4"}


def _zero_coins() -> Iterator[Vector]:
    """Yield vectors with u = 0: a token of probability 0 must be neither accepted nor drawn."""
    for place in (0, 1):
        p = [EVEN] * place + [HALVES] * (3 - place)
        inputs = _given(p, [EVEN, EVEN], [3] * 2, [ZERO, ZERO], ZERO)
        yield _vector(f"zero-coin-at{place}", inputs, "zero-coin")
    yield _vector("zero-final-bonus", _given([EVEN, HALVES], [EVEN], [1], [ZERO], ZERO), "zero-coin", "bonus")
    residual = _given([{0: "1/4", 2: "3/4"}, EVEN], [{0: "1/2", 1: "1/2"}], [1], ["1/2"], ZERO)
    yield _vector("zero-final-residual", residual, "zero-coin", "residual-floor")


def _largest() -> Iterator[Vector]:
    """Yield vectors with u = 1 - 2^-24 in the draw of a token, or in an acceptance test with p = q.

    In the draw, the last token of positive mass must come out, and no token after it. The test must accept the draft.
    """
    bonus = _given([EVEN, {0: "1/2", 2: "1/2"}], [EVEN], [1], [ZERO], LARGEST)
    yield _vector("largest-final-bonus", bonus, "largest-uniform", "padded-vocabulary")
    residual = _given([HALVES, EVEN], [{1: "1/4", 3: "3/4"}], [3], ["1/2"], LARGEST)
    yield _vector("largest-final-residual", residual, "largest-uniform", "residual-floor")
    for parts in (3, 7, 10):
        equal: Row = dict.fromkeys(range(parts), f"1/{parts}")
        inputs = _given([equal, equal], [equal], [0], [LARGEST], LARGEST, parts)
        yield _vector(f"largest-final-of-{parts}-equal", inputs, "largest-uniform", "padded-vocabulary")
    for name, row in (("even", EVEN), ("halves", HALVES), ("point", {2: "1"})):
        inputs = _given([row, EVEN], [row], [2], [LARGEST], "3/8")
        yield _vector(f"largest-coin-equal-{name}", inputs, "coin", "low-precision")


def _equalities() -> Iterator[Vector]:
    """Yield vectors whose uniform equals an accept ratio or a cumulative mass, or is just below or above it.

    At equality the answer depends on a convention.
    """
    ulp = Fraction(1, 2**24)
    p, q = [{0: "1/4", 1: "3/4"}, EVEN], [{0: "1/2", 1: "1/2"}]
    for name, uniform in (("below", Fraction(1, 2) - ulp), ("above", Fraction(1, 2) + ulp)):
        inputs = _given(p, q, [0], [str(uniform)], "1/8")
        yield _vector(f"coin-{name}-ratio", inputs, "coin", "low-precision")
    at = _given(p, q, [0], ["1/2"], "1/8")
    before = _given(p, q, [0], [str(Fraction(1, 2) - ulp)], "1/8")
    answers = {"strict-coin": answer_of(at), "inclusive-coin": answer_of(before)}
    yield by_convention(f"{FLAG}/coin-at-ratio", KIND, at, answers, FLAG, notes=("coin",))
    for edge in (1, 2, 3):
        below, exactly, above = (
            _given([EVEN, EVEN], [EVEN], [0], [ZERO], str(Fraction(edge, 4) + shift)) for shift in (-ulp, 0, ulp)
        )
        yield _vector(f"final-below-edge{edge}", below, "low-precision")
        yield _vector(f"final-above-edge{edge}", above, "low-precision")
        answers = {"cdf-open": answer_of(exactly), "cdf-closed": answer_of(below)}
        yield by_convention(f"{FLAG}/final-at-edge{edge}", KIND, exactly, answers, FLAG, notes=("bonus",))


def _points() -> Iterator[Vector]:
    """Yield vectors of one-hot pmfs, as at temperature 0. Their answers do not depend on the uniforms."""
    for coin in (ZERO, "1/2", LARGEST):
        word = {ZERO: "zero", LARGEST: "largest"}.get(coin, "half")
        same = _given([{2: "1"}, {0: "1"}], [{2: "1"}], [2], [coin], coin)
        yield _vector(f"points-equal-{word}", same, "small-temperature", "empty-row")
        other = _given([{2: "1"}, {0: "1"}], [{1: "1"}], [1], [coin], coin)
        yield _vector(f"points-apart-{word}", other, "small-temperature", "zero-coin")
        soft = _given([{2: "1"}, {3: "1"}], [EVEN], [2], [coin], coin)
        yield _vector(f"point-target-{word}", soft, "small-temperature", "coin")


def _underflow() -> Iterator[Vector]:
    """Yield vectors with probabilities that float16 rounds to 0, or to equal values."""
    tiny = Fraction(1, 2**26)
    p, q = ({3: n * tiny, 2: n * tiny, 1: 2 * n * tiny, 0: 1 - 4 * n * tiny} for n in (2, 1))
    yield _vector(
        "float16-underflow-accepts", _given([_row(p), EVEN], [_row(q)], [3], [LARGEST], "3/8"), "low-precision"
    )
    step = Fraction(1, 2**20)
    close, other = _row({0: Fraction(1, 2) - step, 1: Fraction(1, 2) + step}), {0: "1/2", 1: "1/2"}
    rejects = _given([close, EVEN], [other], [0], [LARGEST], "3/8")
    yield _vector("float16-equal-rejects", rejects, "low-precision", "empty-row")


def _row(masses: Mapping[int, Fraction]) -> Row:
    return {token: str(mass) for token, mass in masses.items()}


def _large() -> Iterator[Vector]:
    """Yield vectors with vocabularies near a block size of GPU kernels, and one with ids that 16 bits cannot hold.

    In most of them the last token of the vocabulary has mass, and is drafted, accepted or drawn. In the vectors
    ``padding-without-mass`` the tokens at the end have none, and must not be drawn.
    """
    for size in SIZES:
        last = size - 1
        ends: Row = {0: "1/2", last: "1/2"}
        spread: Row = {0: "3/8", last - 1: "1/8", last: "1/2"}
        recovers = _given([spread, ends], [{last - 1: "1"}], [last - 1], ["1/2"], "3/4", size)
        yield _vector(f"v{size}-recovery-at-the-end", recovers, "padded-vocabulary", "residual")
    for size in SIZES[:-1]:
        last = size - 1
        ends, likely, unlikely = {0: "1/2", last: "1/2"}, {0: "1/4", last: "3/4"}, {0: "3/4", last: "1/4"}
        accepts = _given([unlikely, ends], [ends], [last], ["1/4"], "3/4", size)
        yield _vector(f"v{size}-draft-and-bonus-at-the-end", accepts, "padded-vocabulary")
        first = _given([unlikely, ends], [likely], [last], ["1/2"], LARGEST, size)
        yield _vector(f"v{size}-recovery-at-the-start", first, "padded-vocabulary", "residual")
        edge: Row = {min(8190, last): "1/4", last - 2: "3/4"} if last != 8192 else {8191: "1/4", 8192: "3/4"}
        block = _given([likely, edge], [ends], [0], ["1/4"], LARGEST, size)
        yield _vector(f"v{size}-bonus-at-a-block", block, "padded-vocabulary", "largest-uniform")
        some, other = {5: "1/4", 7: "3/4"}, {5: "3/4", 7: "1/4"}
        padded = _given([some, some], [other], [5], ["1/8"], LARGEST, size)
        yield _vector(f"v{size}-padding-without-mass", padded, "padded-vocabulary", "largest-uniform")


def _broken() -> Iterator[Vector]:
    """Yield vectors with invalid inputs, such as NaN.

    A program must refuse them, or at least not give a forbidden answer.
    """
    never = {"accepted": 1}
    impossible = _given([HALVES, EVEN], [{0: "1/2", 1: "1/2"}], [3], [ZERO], "1/8")
    yield invalid(
        f"{FLAG}/draft-of-no-mass", KIND, impossible, FLAG, notes=("zero-coin", "empty-row"), must_not=(never,)
    )
    undrawn = _given([HALVES, EVEN], [{0: "1/2", 1: "1/2"}], [2], ["1/2"], "7/8")
    answers = {
        "ratio-taken-as-one": answer_of(undrawn),
        "ratio-taken-as-zero": {
            "accepted": 0,
            "tokens": answer_of(undrawn | {"draft": [0], "coins": ["1/2"]})["tokens"],
        },
        "impossible-draft-refused": REFUSED,
    }
    yield by_convention(f"{FLAG}/draft-that-q-cannot-draw", KIND, undrawn, answers, FLAG, notes=("coin", "empty-row"))
    empty = _given([{}, EVEN], [EVEN], [1], ["1/2"], "1/2")
    some = tuple({"tokens": [token]} for token in range(4))
    yield invalid(f"{FLAG}/row-without-mass", KIND, empty, FLAG, notes=("empty-row",), must_not=(never, *some))
    nan = dict.fromkeys(range(4), "nan")
    of_p = _given([nan, EVEN], [EVEN], [1], ["1/2"], "1/2")
    beyond = {"accepted": 0, "tokens": [4]}
    yield invalid(f"{FLAG}/nan-in-p", KIND, of_p, FLAG, notes=("not-a-number",), must_not=(beyond, never))
    of_q = _given([{1: "1/2", 2: "1/2"}, EVEN], [nan], [0], ["1/2"], "1/2")
    dropped = {"tokens": [0]}
    yield invalid(f"{FLAG}/nan-in-q", KIND, of_q, FLAG, notes=("not-a-number",), must_not=(dropped, never))
    for token, word in ((-1, "placeholder"), (4, "beyond-the-vocabulary")):
        inputs = _given([{3: "1"}, EVEN], [EVEN], [token], [ZERO], "1/2")
        yield invalid(f"{FLAG}/draft-{word}", KIND, inputs, FLAG, notes=("placeholder",), must_not=(never,))


BOUNDARY = Kind(
    KIND,
    "one verification with extreme floats and uniforms, such as a uniform of 0",
    vectors,
    {"accepted": "how many drafts are accepted", "tokens": "the accepted drafts and the token after them"},
    judged_exactly,
)
