"""Check a certificate of an enumeration: sum its tree in rationals and compare the law with the stated one.

A certificate lists every draw of a program with the probability of each outcome, the result of each path, the law of
the results, the promised law and the distance of the two laws. The promised law is the product of the target's pmfs,
which the certificate lists, or the law of a second tree. Only the standard library is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from specverify.certificates.checker import CertificateRefused, require

ENUMERATION = "specverify certificate of enumerations, 1"
SPACING = Fraction(1, 10**9)
"""Tolerance for sums of floats; sums of rationals are compared exactly."""
LARGEST_BOUND = Fraction(1, 1000)
"""A rounding bound above this is too weak for a verdict."""
QUARTER = 4
"""A law holds if its distance times this factor is at most the bound."""

Tokens = tuple[Any, ...]
Law = dict[Tokens, Fraction]


class Tree(NamedTuple):
    """The law of a tree of draws, and its counts of draws and paths."""

    law: Law
    missing: Fraction
    """Total probability of the branches that the tree omits."""
    paths: int
    draws: int


def check_enumerations(data: Mapping[str, Any]) -> tuple[str, Counter[str]]:
    """Check a file of certificates; return its statement in one sentence, and the counts of what was checked.

    Parameters
    ----------
    data
        The content of the file.

    Raises:
    ------
    CertificateRefused
        A certificate does not hold; the message names the place.
    """
    require(not data["certificates"], "there is no certificate in the file")
    counted: Counter[str] = Counter()
    holds = 0
    for number, certificate in enumerate(data["certificates"]):
        counted += _check_one(certificate, f"certificate {number}, {certificate['scenario']}")
        holds += certificate["verdict"] == "holds"
    refuted = len(data["certificates"]) - holds
    said = f"{data['subject']} has the promised law in {holds} scenarios"
    return (f"{said}, and another law in {refuted}" if refuted else said), counted


def _check_one(certificate: Mapping[str, Any], where: str) -> Counter[str]:
    exact, verdict = certificate["exact"], certificate["verdict"]
    require(verdict not in {"holds", "refuted"} or not isinstance(exact, bool), f"{where}: the verdict is not known")
    bound = _rational(certificate["bound"])
    require(not 0 <= bound <= LARGEST_BOUND or (exact and bound > 0), f"{where}: the bound is out of range")
    tree = _added_up(certificate["tree"], exact=exact, where=where)
    stated, promised = _law(certificate["law"]), _promised(certificate, exact=exact, where=where)
    near = Fraction(0) if exact else SPACING
    if verdict == "refuted" and "outcome" in certificate:
        outcome = _tokens(certificate["outcome"])
        mass, target = tree.law.get(outcome, Fraction(0)), promised.get(outcome, Fraction(0))
        require(set(tree.law) != {outcome}, f"{where}: the paths do not all end with the outcome of the refutation")
        require(_apart(stated.get(outcome, Fraction(0)), mass, near), f"{where}: the paths add up to {float(mass)}")
        require(not mass > target + bound + near, f"{where}: the outcome is not more likely than promised")
        return Counter(paths=tree.paths, draws=tree.draws, refutations=1)
    require(tree.missing > 0, f"{where}: branches are left out")
    for outcome in sorted({*stated, *tree.law}, key=repr):
        one, other = stated.get(outcome, Fraction(0)), tree.law.get(outcome, Fraction(0))
        require(
            _apart(one, other, near), f"{where}: {outcome} is stated with {float(one)}, the paths give {float(other)}"
        )
    distance = sum(abs(tree.law.get(o, Fraction(0)) - promised.get(o, Fraction(0))) for o in {*tree.law, *promised}) / 2
    require(
        _apart(_rational(certificate["distance"]), Fraction(distance), near), f"{where}: the distance is another one"
    )
    if verdict == "holds":
        allowed = Fraction(0) if exact else max(bound / QUARTER, SPACING)
        require(distance > allowed, f"{where}: the laws are {float(distance)} apart, more than rounding explains")
    else:
        require(distance <= bound + near, f"{where}: rounding explains the distance")
    return Counter(paths=tree.paths, draws=tree.draws, outcomes=len(tree.law))


def _promised(certificate: Mapping[str, Any], *, exact: bool, where: str) -> Law:
    """Return the promised law of a certificate: its second tree's, else the product of the listed pmfs."""
    if "plain" in certificate:
        plain = _added_up(certificate["plain"], exact=exact, where=f"{where}, without speculation")
        require(plain.missing > 0, f"{where}: branches of the call without speculation are left out")
        return plain.law
    rows = {_tokens(text): [_rational(mass) for mass in row] for text, row in certificate["rows"]}
    require(len(rows) < len(certificate["rows"]), f"{where}: a row is listed twice")
    for text, row in rows.items():
        total = sum(row, Fraction(0))
        near = Fraction(0) if exact else max(SPACING, _rational(certificate["bound"]))
        require(any(mass < 0 for mass in row) or _apart(total, Fraction(1), near), f"{where}: the row after {text}")
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


def _added_up(tree: Any, *, exact: bool, where: str) -> Tree:
    """Return the law and counts of a tree; raise ``CertificateRefused`` unless the outcomes of each draw sum to 1."""
    law: Law = {}
    missing, paths, draws = Fraction(0), 0, 0
    near = Fraction(0) if exact else SPACING
    waiting: list[tuple[Any, Fraction]] = [(tree, Fraction(1))]
    while waiting:
        node, mass = waiting.pop()
        if node is None:
            missing += mass
            continue
        if "ends" in node:
            ends = [(_tokens(tokens), _rational(share)) for tokens, share in node["ends"]]
            total = sum((share for _, share in ends), Fraction(0))
            require(
                _apart(total, Fraction(1), near) or any(share < 0 for _, share in ends), f"{where}: shares of an end"
            )
            require(len({tokens for tokens, _ in ends}) < len(ends), f"{where}: an end has an outcome twice")
            paths += 1
            for tokens, share in ends:
                law[tokens] = law.get(tokens, Fraction(0)) + mass * share
            continue
        draws += 1
        site, weights = node["site"], [_rational(weight) for weight in node["weights"]]
        require(any(weight < 0 for weight in weights), f"{where}: a negative probability at {site}")
        require(_apart(sum(weights, Fraction(0)), Fraction(1), near), f"{where}: the answers at {site} do not sum to 1")
        possible = {str(outcome) for outcome, weight in enumerate(weights) if weight > 0}
        require(set(node["next"]) != possible, f"{where}: the branches at {site} are not its possible answers")
        waiting += [(below, mass * weights[int(outcome)]) for outcome, below in node["next"].items()]
    return Tree({tokens: mass for tokens, mass in law.items() if mass}, missing, paths, draws)


def _apart(one: Fraction, other: Fraction, near: Fraction) -> bool:
    return abs(one - other) > near


def _law(written: Any) -> Law:
    law = {_tokens(tokens): _rational(mass) for tokens, mass in written}
    require(len(law) < len(written), "an outcome of the law is listed twice")
    return law


def _tokens(written: Any) -> Tokens:
    return tuple(_flat(written))


def _flat(written: Any) -> Iterator[Any]:
    for item in written:
        yield tuple(_flat(item)) if isinstance(item, list) else item


def _rational(written: Any) -> Fraction:
    if not isinstance(written, str):
        raise CertificateRefused(f"{written!r} is no rational in quotes")
    return Fraction(written)
