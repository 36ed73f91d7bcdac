"""Check a certificate of an enumeration: add up its tree in rationals and compare the law with the stated one.

A certificate lists every draw of a program with the probability and the constraint of each outcome, the result of each
path, the law of the results, the law that they should have, and the distance of the two laws. The law that they should
have is the product of the target's pmfs, which the certificate lists, or the law of a second tree, of the program
without speculation. Only the standard library is used.

A draw is one of three kinds. (1) One library call; its key ``of`` is empty. (2) A comparison of one uniform number:
each outcome has an interval in ``cells``. The intervals must divide the interval in which the number lies, and each
probability must be the relative length of its interval. (3) A comparison of several numbers, such as u1 < u2.
Afterwards these numbers are no longer uniform; so for a later comparison of one of them, only the division into
intervals is checked, and the probabilities are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.certificates.checker import CertificateRefused, require

ENUMERATION = "specverify certificate of enumerations, 2"
SPACING = Fraction(1, 10**9)
"""Tolerance for sums of floats; sums of rationals are compared exactly."""
LARGEST_BOUND, QUARTER = Fraction(1, 1000), 4
"""A larger rounding bound is too weak for a verdict; a law holds if its distance times 4 is at most the bound."""

Tokens = tuple[Any, ...]
Law = dict[Tokens, Fraction]


class KnownInterval(NamedTuple):
    """The interval ``low`` to ``high`` in which one uniform number lies, given the draws so far.

    ``uniform`` states whether the number is uniform in this interval. After a comparison with other numbers it is not.
    """

    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)
    uniform: bool = True


def check_enumerations(data: Mapping[str, Any]) -> tuple[str, Counter[str]]:
    """Return the statement of a file of certificates, ``data``, in one sentence, and the counts of what was checked.

    Raises ``CertificateRefused`` if a certificate does not hold; the message names the place.
    """
    require(not data["certificates"], "there is no certificate in the file")
    counted = Counter[str]()
    for number, certificate in enumerate(data["certificates"]):
        counted += _check_one(certificate, f"certificate {number}, {certificate['scenario']}")
    refuted = sum(certificate["verdict"] == "refuted" for certificate in data["certificates"])
    holds = len(data["certificates"]) - refuted
    said = f"{data['subject']} has the promised law in {holds} scenarios"
    return (f"{said}, and another law in {refuted}" if refuted else said), counted


def _check_one(certificate: Mapping[str, Any], where: str) -> Counter[str]:
    exact, verdict, bound = certificate["exact"], certificate["verdict"], _rational(certificate["bound"])
    require(verdict not in {"holds", "refuted"} or not isinstance(exact, bool), f"{where}: the verdict is not known")
    require(not 0 <= bound <= LARGEST_BOUND or (exact and bound > 0), f"{where}: the bound is out of range")
    near = Fraction(0) if exact else SPACING
    law, omitted, counted = _added_up(certificate["tree"], near, bound, where)
    stated, promised = _law(certificate["law"]), _promised(certificate, near, bound, where)
    if verdict == "refuted" and "outcome" in certificate:
        outcome = _tokens(certificate["outcome"])
        mass, target = law.get(outcome, Fraction(0)), promised.get(outcome, Fraction(0))
        require(set(law) != {outcome}, f"{where}: the paths do not all end with the outcome of the refutation")
        require(abs(stated.get(outcome, 0) - mass) > near, f"{where}: the paths add up to {float(mass)}")
        require(not mass > target + bound + near, f"{where}: the outcome is not more likely than promised")
        return Counter({**counted, "refutations": 1})
    require(omitted > near, f"{where}: branches are left out")
    for outcome in sorted({*stated, *law}, key=repr):
        one, other = stated.get(outcome, Fraction(0)), law.get(outcome, Fraction(0))
        require(abs(one - other) > near, f"{where}: {outcome} has {float(one)}, the paths give {float(other)}")
    apart = (abs(law.get(each, Fraction(0)) - promised.get(each, 0)) for each in {*law, *promised})
    distance = sum(apart, Fraction(0)) / 2
    require(abs(_rational(certificate["distance"]) - distance) > near, f"{where}: the distance is another one")
    said = f"{where}: the laws are {float(distance)} apart"
    require(verdict == "holds" and distance > max(bound / QUARTER, near), f"{said}, more than rounding explains")
    require(verdict == "refuted" and distance <= bound + near, f"{said}, which rounding explains")
    return Counter({**counted, "outcomes": len(law)})


def _promised(certificate: Mapping[str, Any], near: Fraction, bound: Fraction, where: str) -> Law:
    """Return the law that the results should have: that of the certificate's second tree, else a product of pmfs.

    The second tree belongs to the call without speculation. Without it, the certificate lists the target's pmfs after
    every text. ``near`` is the tolerance of sums, and ``bound`` the largest rounding error that the certificate may
    state. ``where`` names the certificate in messages. Raises ``CertificateRefused`` if the tree or a pmf is invalid.
    """
    if "plain" in certificate:
        plain, omitted, _ = _added_up(certificate["plain"], near, bound, f"{where}, without speculation")
        require(omitted > near, f"{where}: branches of the call without speculation are left out")
        return plain
    rows = {_tokens(text): list(map(_rational, row)) for text, row in certificate["rows"]}
    require(len(rows) < len(certificate["rows"]), f"{where}: a row is listed twice")
    for text, row in rows.items():
        _check_sum(row, max(near, bound), f"{where}: the row after {text}")
    prompt, ends = _tokens(certificate["prompt"]), set(certificate["eos"])
    law: Law = {(): Fraction(1)}
    done: Law = {}
    for _ in range(certificate["horizon"]):
        longer: Law = {}
        for new, mass in law.items():
            require(prompt + new not in rows, f"{where}: the row after {prompt + new} is missing")
            for token, share in enumerate(rows[prompt + new]):
                if mass * share:
                    (done if token in ends else longer)[(*new, token)] = mass * share
        law = longer
    return {**done, **law}


def _added_up(tree: Any, near: Fraction, bound: Fraction, where: str) -> tuple[Law, Fraction, Counter[str]]:
    """Return the law of a tree, the probability of the branches that it leaves out, and its numbers of paths and draws.

    ``tree`` is the JSON data of its root, ``near`` the tolerance of sums, and ``bound`` the largest rounding error that
    a draw may state. Raises ``CertificateRefused`` for an invalid node; ``where`` names the tree in messages.
    """
    law, omitted, counted = Law(), Fraction(0), Counter[str]()
    waiting: list[tuple[Any, Fraction, Mapping[int, KnownInterval]]] = [(tree, Fraction(1), {})]
    while waiting:
        node, mass, known = waiting.pop()
        if node is None:
            omitted += mass
        elif "ends" in node:
            ends = [(_tokens(tokens), _rational(share)) for tokens, share in node["ends"]]
            _check_sum([share for _, share in ends], max(near, bound), f"{where}: shares of an end")
            require(len({tokens for tokens, _ in ends}) < len(ends), f"{where}: an end has an outcome twice")
            counted["paths"] += 1
            for tokens, share in ends:
                law[tokens] = law.get(tokens, Fraction(0)) + mass * share
        else:
            here, weights = f"{where}, the draw at {node['site']}", [_rational(weight) for weight in node["weights"]]
            _check_sum(weights, near, here)
            possible = {str(outcome) for outcome, weight in enumerate(weights) if weight > 0}
            require(set(node["next"]) != possible, f"{here}: its branches are not its possible answers")
            require(not 0 <= _rational(node["within"]) <= bound, f"{here}: it is less precise than the bound")
            after = _constrained(node, weights, known, near, here)
            counted.update(draws=1, cells=len(node.get("cells", ())))
            waiting += [(below, mass * weights[int(at)], after[int(at)]) for at, below in node["next"].items()]
    return {tokens: mass for tokens, mass in law.items() if mass}, omitted, counted


def _constrained(
    node: Mapping[str, Any], weights: Sequence[Fraction], known: Mapping[int, KnownInterval], near: Fraction, where: str
) -> Sequence[Mapping[int, KnownInterval]]:
    """Return, for each outcome of the draw ``node``, the intervals in which the uniform numbers lie after it.

    ``known`` maps the index of a number to its interval before the draw; ``weights`` are the probabilities of the
    outcomes. A comparison of several numbers does not change their intervals, but marks the numbers as no longer
    uniform. ``where`` names the draw in messages. Raises ``CertificateRefused`` if the intervals of the outcomes do not
    divide the interval of the number, or if a probability differs from the relative length of its interval by more than
    ``near``.
    """
    numbers = {number: known.get(number, KnownInterval()) for number in node["of"]}
    if "cells" not in node:
        require(node["site"][-2:-1] in (["below"], ["between"]), f"{where}: the intervals of its answers are missing")
        return [{**known, **{number: one._replace(uniform=False) for number, one in numbers.items()}}] * len(weights)
    ((number, one),) = numbers.items()
    cells = [(_rational(low), _rational(high)) for low, high in node["cells"]]
    ends = [one.low, *(high for _, high in cells)]
    divided = [low for low, _ in cells] == ends[:-1] and ends == sorted(ends) and ends[-1] == one.high
    require(not divided or len(cells) != len(weights), f"{where}: the intervals overlap, or do not cover all numbers")
    for weight, (low, high) in zip(weights, cells, strict=True):
        wrong = one.uniform and abs(weight - (high - low) / (one.high - one.low)) > near
        require(wrong, f"{where}: a probability of {float(weight)} is not the share of its interval")
    return [{**known, number: KnownInterval(*cell, one.uniform)} for cell in cells]


def _check_sum(masses: Sequence[Fraction], near: Fraction, where: str) -> None:
    wrong = any(mass < 0 for mass in masses) or abs(sum(masses, Fraction(0)) - 1) > near
    require(wrong, f"{where}: probabilities are negative or do not sum to 1")


def _law(written: Any) -> Law:
    law = {_tokens(tokens): _rational(mass) for tokens, mass in written}
    require(len(law) < len(written), "an outcome of the law is listed twice")
    return law


def _tokens(written: Any) -> Tokens:
    return tuple(_tokens(item) if isinstance(item, list) else item for item in written)


def _rational(written: Any) -> Fraction:
    if not isinstance(written, str):
        raise CertificateRefused(f"{written!r} is no rational in quotes")
    return Fraction(written)
