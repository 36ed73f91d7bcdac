"""Test vectors ``verify_chain``: one verification of a chain of drafts with all random numbers given.

For each convention there are rows of several shapes, drafts from these rows, and one vector for every possible path of
the verifier. The uniforms of a vector lie well inside the intervals that lead along its path. The coins after a
rejection would accept, so a program that goes on after a rejection gives a wrong answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.laws.paths import paths
from specverify.reference import Draft, Draws, Pmf, Site, Tokens, Verified, Verifier, chain
from specverify.reference.algorithms.typical_acceptance import typical_threshold
from specverify.reference.pmf import point_on_argmax
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.reference.verifiers.block_verification import block_verification
from specverify.reference.verifiers.greedy_match import greedy_match
from specverify.reference.verifiers.sample_and_match import sample_and_match
from specverify.reference.verifiers.speculative_sampling import speculative_sampling
from specverify.vectors.given import UNASKED, GivenKeys, GivenUniforms, race, uniform_for
from specverify.vectors.json_models import by_position, pmf_of, row_pairs, rows_of, support_of
from specverify.vectors.judging import judged_exactly
from specverify.vectors.vector import Answer, Kind, Vector, text, texts, valid

KIND = "verify_chain"
ACCEPTING, REJECTING = Fraction(1, 64), Fraction(61, 64)
"""Uniforms for decisions that a correct program does not make; they would accept or reject."""
TOWARDS = (Fraction(1, 2), Fraction(1, 8), Fraction(7, 8))
"""Relative positions of uniforms in their intervals, used in turn."""
Inputs = Mapping[str, Any]


class DrawConvention(NamedTuple):
    """A convention of how a verifier uses its random numbers.

    * ``flag``: The name of the convention.
    * ``verifier(inputs)`` returns the rule for the inputs of a vector.
    * ``draws(inputs)`` returns the interpreter that answers draws by the random numbers in these inputs.
    * ``notes``: Keys of ``notes.NOTES``.
    * ``deterministic``: Whether drafts are declared as point masses.
    * ``parameters``: Further inputs, name -> value.
    """

    flag: str
    verifier: Callable[[Inputs], Verifier]
    draws: Callable[[Inputs], Draws]
    numbers: Callable[[dict[Site, Fraction], int, random.Random, Sequence[tuple[Any, int]]], dict[str, Any]]
    """``numbers(uniforms, gamma, rng, last)`` returns the random numbers of a vector's inputs, by name.

    ``uniforms`` maps the site of a draw to its uniform, and ``last`` lists (weights, outcome) of the last draw.
    """
    notes: tuple[str, ...]
    deterministic: bool = False
    parameters: Mapping[str, str] = {}


def answer_of(convention: DrawConvention, inputs: Inputs) -> Answer:
    """Return the right answer to the inputs of a vector under a convention, computed by ``reference``."""
    verified = verified_by(convention.verifier(inputs), inputs, convention.draws(inputs))
    return {"accepted": verified.accepted, "tokens": list(verified.tokens)}


def verified_by(verify: Verifier, inputs: Inputs, draws: Draws) -> Verified:
    """Return the result of the verifier ``verify`` on the inputs of a vector, with the given draws."""
    return verify(draws, by_position([pmf_of(row) for row in inputs["p"]]), (), draft_of(inputs))


def draft_of(inputs: Inputs) -> Draft:
    """Return the chain of drafts in a vector's inputs; a token without a pmf is from a deterministic drafter."""
    pmfs = tuple(None if row is None else pmf_of(row) for row in inputs["q"])
    return chain(tuple(inputs["draft"]), pmfs)


def uniform_of(inputs: Inputs) -> Callable[[Site], Fraction]:
    """Return the function that maps the site of a decision to its uniform number in a vector's inputs."""

    def uniform(site: Site) -> Fraction:
        if site[0] == "accept":
            return Fraction(inputs["coins"][site[1]]) if "coins" in inputs else UNASKED
        if site[0] == "target":
            return Fraction(inputs["uniforms"][site[1]])
        return Fraction(inputs.get("final", UNASKED))

    return uniform


def _by_uniforms(inputs: Inputs) -> Draws:
    return GivenUniforms(uniform_of(inputs))


def _by_keys(inputs: Inputs) -> Draws:
    return GivenKeys(_by_uniforms(inputs), [Fraction(key) for key in inputs["keys"]])


def _coins(found: dict[Site, Fraction], gamma: int, unasked: Fraction = ACCEPTING) -> list[str]:
    return [text(found.get(("accept", i), unasked)) for i in range(gamma)]


def _last(found: dict[Site, Fraction]) -> str:
    return text(next((uniform for site, uniform in found.items() if site[0] != "accept"), UNASKED))


def _coins_and_final(found: dict[Site, Fraction], gamma: int, *_: Any) -> dict[str, Any]:
    return {"coins": _coins(found, gamma), "final": _last(found)}


def _block_coins(found: dict[Site, Fraction], gamma: int, *_: Any) -> dict[str, Any]:
    return {"coins": _coins(found, gamma, REJECTING), "final": _last(found)}


def _coins_and_keys(found: dict[Site, Fraction], gamma: int, rng: random.Random, final: Any) -> dict[str, Any]:
    ((weights, outcome),) = final
    keys: list[Fraction] = []
    while not keys or race(weights, keys)[0] != outcome or 0 < race(weights, keys)[1] < Fraction(9, 8):
        keys = [Fraction(rng.randint(1, 160), 32) for _ in weights]
    return {"coins": _coins(found, gamma), "keys": texts(keys)}


def _row_uniforms(found: dict[Site, Fraction], gamma: int, *_: Any) -> dict[str, Any]:
    return {"uniforms": [text(found.get(("target", i), Fraction(1, 2))) for i in range(gamma + 1)]}


def _none(*_: Any) -> dict[str, Any]:
    return {}


def _typical(inputs: Inputs) -> Verifier:
    epsilon, delta = float(Fraction(inputs["epsilon"])), float(Fraction(inputs["delta"]))
    return accept_or_replace(
        lambda prefix, p, q, token: int(p[token] > typical_threshold(p, epsilon, delta)),
        lambda p, q, token: point_on_argmax(p),
        bonus=point_on_argmax,
    )


_USUAL = ("residual", "residual-row", "bonus", "coin", "after-a-rejection", "reused-uniform")
CONVENTIONS = (
    DrawConvention("inverse-cdf", lambda _: speculative_sampling, _by_uniforms, _coins_and_final, _USUAL),
    DrawConvention("exponential-race", lambda _: speculative_sampling, _by_keys, _coins_and_keys, _USUAL),
    DrawConvention(
        "point-mass-drafts", lambda _: speculative_sampling, _by_uniforms, _coins_and_final, ("proposal", "coin"), True
    ),
    DrawConvention(
        "block-verification", lambda _: block_verification, _by_uniforms, _block_coins, ("block", "residual")
    ),
    DrawConvention(
        "sample-and-match", lambda _: sample_and_match, _by_uniforms, _row_uniforms, ("argmax", "bonus"), True
    ),
    DrawConvention("greedy", lambda _: greedy_match, _by_uniforms, _none, ("argmax", "bonus"), True),
    DrawConvention(
        "typical-acceptance",
        _typical,
        _by_uniforms,
        _none,
        ("coin", "argmax"),
        parameters={"epsilon": "23/64", "delta": "3/4"},
    ),
)
SIZES = ((1, 3), (2, 3), (3, 4))
"""Pairs of the number of drafts and the vocabulary size."""
ON_REJECTION, ON_BONUS = frozenset({"residual", "residual-row", "after-a-rejection"}), frozenset({"bonus"})
"""Notes only for vectors in which a draft is rejected, and only for vectors in which all drafts are accepted."""
CLEAR = 1e-3
"""Least distance of a probability from a threshold, which floats round because it is a logarithm."""
SHAPES = ("generic", "peaked", "zeros", "disjoint", "equal", "point_target", "point_draft", "ties")


def vectors() -> tuple[Vector, ...]:
    """Return all test vectors of the kind ``verify_chain``."""
    result: dict[str, Vector] = {}
    for convention in CONVENTIONS:
        for gamma, vocabulary in SIZES[:2] if convention.deterministic else SIZES:
            for shape in SHAPES:
                result |= {vector.id: vector for vector in _of_shape(convention, shape, gamma, vocabulary)}
    return tuple(result.values())


def _of_shape(convention: DrawConvention, shape: str, gamma: int, vocabulary: int) -> Iterator[Vector]:
    p, q = row_pairs(shape, vocabulary, gamma + 1, KIND)
    for draft in _drafts(q[:gamma]):
        given: dict[str, Any] = {"p": rows_of(p), "q": rows_of(q[:gamma]), "draft": list(draft)}
        if convention.deterministic:
            given["q"] = [None] * gamma
        given |= convention.parameters
        if convention.numbers is _none and not _clear(given, p):
            continue
        for place, path in enumerate(_ways(convention, given)):
            rng = random.Random(f"{convention.flag}/{shape}/{draft}/{place}")  # noqa: S311 - no secrets
            inputs = given | _numbers(convention, path, gamma, rng)
            answer = answer_of(convention, inputs)
            name = f"{convention.flag}/{shape}-g{gamma}-d{_joined(draft)}-e{_joined(answer['tokens'])}"
            other = ON_BONUS if answer["accepted"] < gamma else ON_REJECTION
            notes = [note for note in convention.notes if note not in other]
            yield valid(name, KIND, inputs, answer, convention.flag, notes=notes)


def _ways(convention: DrawConvention, inputs: Inputs) -> list[Any]:
    """Return every possible path of the convention's verifier for the inputs of a vector.

    Each path is the list of its draws, which have a site, weights and an outcome.
    """
    verify = convention.verifier(inputs)
    return [path.decisions for path in paths(lambda draws: verified_by(verify, inputs, draws))]


def _clear(inputs: Inputs, p: Sequence[Pmf]) -> bool:
    """Return whether rounding can change no decision of a verifier on the rows ``p``.

    No row may have a tied argmax. For typical acceptance (``inputs`` has ``epsilon`` and ``delta``), no probability may
    be near the threshold of its row.
    """
    if any(row.tolist().count(row.max()) > 1 for row in p):
        return False
    if "epsilon" not in inputs:
        return True
    bounds = [typical_threshold(row, float(Fraction(inputs["epsilon"])), float(Fraction(inputs["delta"]))) for row in p]
    return all(abs(float(mass) - bound) > CLEAR for row, bound in zip(p, bounds, strict=True) for mass in row)


def _numbers(convention: DrawConvention, decisions: Any, gamma: int, rng: random.Random) -> dict[str, Any]:
    """Return the random numbers for a vector's inputs, by name, with which the verifier makes the ``decisions``.

    ``decisions`` are the draws of one path of the verifier, each with its site, weights and outcome. ``gamma`` is the
    number of drafts. ``rng`` draws the numbers that the ``convention`` needs in addition, such as keys.
    """
    result = {
        step.site: uniform_for(step.weights, step.outcome, TOWARDS[place % len(TOWARDS)])
        for place, step in enumerate(decisions)
        if 0 < step.weights[step.outcome] < 1 or step.site[0] == "accept"
    }
    final = [(step.weights, step.outcome) for step in decisions[-1:]]
    return convention.numbers(result, gamma, rng, final)


def _drafts(q: Sequence[Pmf]) -> list[Tokens]:
    """Return the fewest sequences of drafts that contain every token of positive probability, of every row of ``q``.

    A sequence has one token of positive probability for each row.
    """
    supports = [support_of(row) for row in q]
    most = max(map(len, supports))
    return list(
        dict.fromkeys(tuple(tokens[(k + i) % len(tokens)] for i, tokens in enumerate(supports)) for k in range(most))
    )


def _joined(tokens: Sequence[int]) -> str:
    return "".join(map(str, tokens))


CHAIN = Kind(
    KIND,
    "one verification of a chain of drafts with given random numbers",
    vectors,
    {"accepted": "how many drafts are accepted", "tokens": "the accepted drafts and the token after them"},
    judged_exactly,
)
