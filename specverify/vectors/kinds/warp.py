"""Test vectors ``warp``: sampling parameters applied to one row, with ties and with probabilities equal to a threshold.

A row is given by its probabilities; logits are their logarithms. Everything is rational: a temperature of 1/2 squares
the probabilities, one of 2 takes the roots of squares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from specverify.reference import Pmf, min_p, top_k, top_p
from specverify.vectors.json_models import pmf_of
from specverify.vectors.judging import judged_as_row
from specverify.vectors.vector import REFUSED, Answer, Kind, Vector, by_convention, invalid, texts
from specverify.vectors.warped_models import tempered, warped

KIND = "warp"
TEMPERATURE, TOP_K, TOP_P, MIN_P, BOTH = "temperature", "top-k", "top-p", "min-p", "top-k and top-p"
ROWS: dict[str, str] = {
    "apart": "1/2 1/4 1/8 1/8",
    "tied": "1/4 1/4 1/4 1/4",
    "tied-behind": "1/8 3/8 1/8 3/8",
    "three-tied": "1/8 1/8 1/8 5/8",
    "point": "0 0 1 0",
    "zeros": "1/2 0 1/4 1/4 0",
    "long-tail": "1/16 1/2 1/16 1/4 1/16 1/16",
}
"""Name -> row of probabilities that float32 holds exactly, so that sums equal thresholds in every precision."""
SQUARES: dict[str, str] = {"squares": "9/26 16/26 1/26", "even-squares": "1/6 1/6 4/6", "squares-and-zero": "1/5 0 4/5"}


def kept(pmf: Pmf, tokens: Sequence[int]) -> list[str]:
    """Return ``pmf`` restricted to ``tokens`` and renormalised, as a list of strings."""
    mass = sum(pmf[token] for token in tokens)
    return texts([pmf[token] / mass if token in tokens else Fraction(0) for token in range(len(pmf))])


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``warp``."""
    return (*_temperatures(), *_top_k(), *_top_p(), *_min_p(), *_both(), *_refused())


def _temperatures() -> Iterator[Vector]:
    for name, row in ROWS.items():
        for temperature in ("0", "1/2", "1/3", "1"):
            yield _tempered(name, row, temperature)
    for name, row in SQUARES.items():
        yield _tempered(name, row, "2")


def _tempered(name: str, row: str, temperature: str) -> Vector:
    pmf = _row(row)
    inputs = {"pmf": texts(pmf), "temperature": temperature}
    answers = {"argmax-lowest-id": {"pmf": texts(tempered(pmf, Fraction(temperature)))}}
    if temperature == "0":
        answers |= {
            "argmax-highest-id": {"pmf": kept(pmf, _ranked(pmf, highest_first=True)[:1])},
            "argmax-shared": {"pmf": kept(pmf, [token for token, mass in enumerate(pmf) if mass == max(pmf)])},
        }
    notes = ("small-temperature", "parameters") if temperature == "0" else ("parameters",)
    word = temperature.replace("/", "over")
    return by_convention(f"{TEMPERATURE}/{name}-t{word}", KIND, inputs, answers, TEMPERATURE, notes=notes)


def _top_k() -> Iterator[Vector]:
    for name, row in ROWS.items():
        pmf = _row(row)
        for k in range(1, len(pmf) + 1):
            answers = {
                "ties-kept": {"pmf": texts(top_k(pmf, k))},
                "ties-lowest-id": {"pmf": kept(pmf, _ranked(pmf)[:k])},
                "ties-highest-id": {"pmf": kept(pmf, _ranked(pmf, highest_first=True)[:k])},
            }
            inputs = {"pmf": texts(pmf), "top_k": k}
            yield by_convention(f"{TOP_K}/{name}-k{k}", KIND, inputs, answers, TOP_K, notes=("ties", "parameters"))


def nucleus(pmf: Pmf, mass: Fraction, *, exclusive: bool = False, highest_first: bool = False) -> list[int]:
    """Return the tokens that top-p keeps of ``pmf``: the most likely ones, until their total reaches ``mass``.

    With ``exclusive`` the total must exceed ``mass``. Among tokens with equal probabilities the lowest id comes first;
    with ``highest_first`` the highest.
    """
    result: list[int] = []
    total = Fraction(0)
    for token in _ranked(pmf, highest_first=highest_first):
        if total > mass or (total == mass and not exclusive):
            break
        result.append(token)
        total += pmf[token]
    return result


def _top_p() -> Iterator[Vector]:
    """Yield top-p vectors whose answer depends on at most one convention.

    In one kind of vectors the last kept token is as probable as a token that is left out: a tie. In the other kind the
    total of the kept tokens may equal ``top_p``. No vector has both.
    """
    for name, row in ROWS.items():
        pmf = _row(row)
        for mass in ("1/8", "1/4", "5/16", "3/8", "1/2", "9/16", "3/4", "7/8", "1"):
            low, high = (nucleus(pmf, Fraction(mass), highest_first=first) for first in (False, True))
            exclusive = nucleus(pmf, Fraction(mass), exclusive=True)
            inputs = {"pmf": texts(pmf), "top_p": mass}
            word = f"{TOP_P}/{name}-p{mass.replace('/', 'over')}"
            if set(low) != set(high) and set(low) == set(exclusive):
                answers = {
                    "nucleus-lowest-id": {"pmf": texts(top_p(pmf, Fraction(mass)))},
                    "nucleus-highest-id": {"pmf": kept(pmf, high)},
                    "nucleus-ties-kept": {
                        "pmf": kept(pmf, [t for t, value in enumerate(pmf) if value >= pmf[low[-1]]])
                    },
                }
            elif set(low) == set(high):
                least = texts(top_p(pmf, Fraction(mass)))
                answers = {"top-p-inclusive": {"pmf": least}, "top-p-exclusive": {"pmf": kept(pmf, exclusive)}}
                if set(exclusive) != set(nucleus(pmf, Fraction(mass), exclusive=True, highest_first=True)):
                    continue  # the one more token would be a tie
            else:
                continue
            yield by_convention(word, KIND, inputs, answers, TOP_P, notes=("ties", "parameters"))


def _min_p() -> Iterator[Vector]:
    for name, row in ROWS.items():
        pmf = _row(row)
        for ratio in ("0", "1/8", "1/4", "1/2", "3/4", "1"):
            bound = max(pmf) * Fraction(ratio)
            above = [token for token, mass in enumerate(pmf) if mass > bound]
            answers: dict[str, Answer] = {"min-p-inclusive": {"pmf": texts(min_p(pmf, Fraction(ratio)))}}
            if above:
                answers["min-p-exclusive"] = {"pmf": kept(pmf, above)}
            inputs = {"pmf": texts(pmf), "min_p": ratio}
            word = f"{MIN_P}/{name}-r{ratio.replace('/', 'over')}"
            yield by_convention(word, KIND, inputs, answers, MIN_P, notes=("ties", "parameters"))


def _both() -> Iterator[Vector]:
    """Yield vectors of top-k with top-p without ties or equality, so that only the order of the two matters."""
    for name, row in {"steps": "5/16 1/4 3/16 1/8 1/16 1/16", "steep": "1/2 1/4 3/16 1/16"}.items():
        pmf = _row(row)
        for k in (2, 3):
            for mass in ("7/16", "2/5", "3/5", "11/16", "9/10"):
                share = Fraction(mass)
                both = sorted(set(_ranked(pmf)[:k]) & set(nucleus(pmf, share)))
                answers = {
                    "top-p-of-what-top-k-left": {"pmf": texts(top_p(top_k(pmf, k), share))},
                    "top-p-of-the-whole-law": {"pmf": kept(pmf, both)},
                }
                inputs = {"pmf": texts(pmf), "top_k": k, "top_p": mass}
                word = f"{BOTH}/{name}-k{k}-p{mass.replace('/', 'over')}"
                yield by_convention(word, KIND, inputs, answers, BOTH, notes=("parameters",))


def _refused() -> Iterator[Vector]:
    row = _row(ROWS["apart"])
    for flag, parameter in (
        (TEMPERATURE, {"temperature": "-1"}),
        (MIN_P, {"min_p": "3/2"}),
        (TOP_P, {"top_p": "-1/2"}),
    ):
        word = f"{flag}/refused-{next(iter(parameter))}"
        yield invalid(word, KIND, {"pmf": texts(row), **parameter}, flag, notes=("parameters",))


def answer_of(inputs: Mapping[str, Any]) -> Answer:
    """Return the answer of ``reference`` to a vector's inputs: the pmf after the sampling parameters, or a refusal.

    Where correct programs may answer differently, it is the answer of ``vectors.warped_models``.
    """
    try:
        return {"pmf": texts(warped(pmf_of(inputs["pmf"]), inputs))}
    except ValueError:
        return REFUSED


def _row(row: str) -> Pmf:
    return pmf_of(row.split())


def _ranked(pmf: Pmf, *, highest_first: bool = False) -> list[int]:
    return sorted(range(len(pmf)), key=lambda token: (-pmf[token], -token if highest_first else token))


WARP = Kind(
    KIND,
    "temperature, top-k, top-p and min-p, applied to one row, which may have ties",
    vectors,
    {"pmf": "the pmf from which the token is drawn: rationals as strings, or numbers"},
    judged_as_row,
)
