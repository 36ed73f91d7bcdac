"""Read a certificate file and accept it, or name the first place that is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from specverify.certificates.checker import CertificateRefused, Polynomial, Ratio, Tables, check_place, key, require
from specverify.certificates.enumerations import ENUMERATION, check_enumerations
from specverify.certificates.replay import replay
from specverify.certificates.runs import check_refutation, run_beside

FORMAT = "specverify certificate of a proof, 1"
RANDOM_TABLES = 50
"""Number of random tables per position on which the algorithm's result is compared with the tree's."""
LONGEST_TEXT = 3
"""A round without a draft model is run after every text of up to this many tokens."""
OF_PROOF: Mapping[str, type] = {
    "algorithm": str,
    "options": dict,
    "any_length": bool,
    "what": str,
    "vocabulary": int,
    "gamma": int,
    "verdict": str,
}
"""Key in the head of the certificate of a proof -> type of its value."""
OF_ENUMERATIONS: Mapping[str, type] = {"subject": str, "certificates": list}
"""Key in the head of a file of certificates of enumerations -> type of its value."""
BEYOND: Mapping[str, int] = {"law": 0, "stopping": 0, "joint": 2}
"""Statement -> number of tokens beyond gamma + 1 at the longest position."""


class Checked(NamedTuple):
    """The result of checking a certificate.

    ``statement`` is the result in a sentence, and ``figures`` has the counts of what was checked.
    """

    statement: str
    figures: Mapping[str, int]


def check_certificate(file: Path, tables: int | None = None, *, replayed: bool = False) -> Checked:
    """Check the certificate in ``file`` and return its statement with the counts of what was checked.

    A proof is accepted if its tree is complete, if the paths of every tree add up to the target's law for all p and q,
    and if the algorithm really takes these paths: it is run on tables of p and q with random rational entries.

    Args:
        file: The file written by ``specverify prove`` or ``specverify verify`` with ``--certificate FILE``.
        tables: For a proof: how many tables of p and q the algorithm is run on at each place; 0: none, None:
            ``RANDOM_TABLES``.
        replayed: For an enumeration: also run the program under test on the random numbers that the file lists for some
            paths.

    Returns:
        The statement, and the number of places, paths, outcomes, cells and runs.

    Raises:
        CertificateRefused: A step is wrong; the message names the place.
        NothingToReplay: With ``replayed``, and the file lists no path.
        ValueError: ``file`` is no certificate, or one of the other kind than ``tables`` or ``replayed`` are for.
    """
    try:
        data = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise ValueError(f"the certificate {str(file)!r} cannot be read: {reason}") from error
    if not isinstance(data, dict) or data.get("format") not in {FORMAT, ENUMERATION}:
        raise ValueError(f"{file} is no certificate, expected JSON with the format {FORMAT!r} or {ENUMERATION!r}")
    of_proof = data["format"] == FORMAT
    if of_proof and replayed:
        raise ValueError("the certificate is that of a proof, and only those of enumerations are replayed")
    if not of_proof and tables is not None:
        raise ValueError("the certificate is that of enumerations, and only proofs are compared with runs on tables")
    try:
        _check_types(data, OF_PROOF if of_proof else OF_ENUMERATIONS)
        if not of_proof:
            statement, figures = check_enumerations(data)
            runs = {"replays": replay(data)} if replayed else {}
            return Checked(statement, {**figures, **runs})
        return _check(data, RANDOM_TABLES if tables is None else tables)
    except KeyError as error:
        raise CertificateRefused(f"the certificate is incomplete or malformed: a part has no {error}") from error
    except (IndexError, TypeError, ValueError, ZeroDivisionError, AttributeError, RecursionError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise CertificateRefused(f"the certificate is incomplete or malformed ({reason})") from error


def _check_types(data: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for name, wanted in types.items():
        value = data[name]
        fault = not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))
        require(fault, f"{name} is {str(value)[:60]}, expected a value of type {wanted.__name__}")


def _check(data: Mapping[str, Any], random_tables: int) -> Checked:
    what, vocabulary, gamma, verdict = data["what"], data["vocabulary"], data["gamma"], data["verdict"]
    meant = verdict in {"proved", "refuted"} and what in BEYOND and vocabulary >= 2 and gamma >= 0
    require(not meant or data["options"].get("gamma", gamma) != gamma, "the head states nothing that is known")
    options = ", ".join(f"{name}={value}" for name, value in data["options"].items())
    subject = f"{data['algorithm']} ({options})" if options else data["algorithm"]
    if verdict == "refuted":
        mass, expected = check_refutation(data)
        said = (
            f"{tuple(data['outcome'])} has mass {mass} after {tuple(data['text'])} and not {expected}, at these tables"
        )
        return Checked(f"{subject} does not have the target's law: {said}", {})
    polynomials = [_polynomial(item) for item in data["polynomials"]]
    ratios = [Ratio(polynomials[top], tuple(polynomials[one] for one in below)) for top, below in data["ratios"]]
    numbers = {key(polynomial): number for number, polynomial in enumerate(polynomials)}
    require(len(numbers) < len(polynomials), "a polynomial is listed twice")
    tables = Tables(polynomials, ratios, numbers)
    places = {(tuple(item["text"]), item["remaining"]): item for item in data["places"]}
    counted: Counter[str] = Counter()
    for text, remaining in _wanted(places, vocabulary, gamma + 1 + BEYOND[what]):
        where = f"the round after {text} with {remaining} tokens left"
        require((text, remaining) not in places, f"{where} is missing")
        place = places[text, remaining]
        counted += check_place(place, tables, vocabulary, where)
        counted["runs"] += run_beside(data, place, tables, random_tables, where)
        counted["places"] += 1
    tokens = (
        "the new tokens of whole decodes" if what == "joint" else "the tokens of one round, followed by the target,"
    )
    length = ", and every rule that decides before a token is drawn whether to draft it" if data["any_length"] else ""
    every = f"for every target and draft over {vocabulary} tokens{length}"
    statement = f"{every}, {tokens} by {subject}, at most {gamma} drafts deep, have the target's law"
    return Checked(statement, dict(counted))


def _wanted(places: Mapping[Any, Any], vocabulary: int, longest: int) -> Sequence[tuple[tuple[int, ...], int]]:
    """Return the places that a proof must contain, as pairs (text, number of remaining tokens).

    Every number of remaining tokens from 1 to ``longest`` is required, after each of some texts. If the algorithm reads
    the pmfs of a draft model, one text, (0,), is enough, because a proof for all pmfs does not depend on the text.
    Otherwise the drafts depend on the text itself, and all texts of at most ``LONGEST_TEXT`` tokens are required, with
    tokens below ``vocabulary``. ``places`` has the places of the certificate, which show whether draft pmfs are read.
    """
    first = [place for (text, _), place in places.items() if text == (0,)]
    reads_draft = any(kind == "draft" for place in first for kind, _, _ in place["rows"])
    sizes = range(1, LONGEST_TEXT + 1)
    texts = [(0,)] if reads_draft else [text for size in sizes for text in product(range(vocabulary), repeat=size)]
    return [(text, remaining) for text in texts for remaining in range(1, longest + 1)]


def _polynomial(written: Mapping[str, str]) -> Polynomial:
    terms = {tuple(map(int, name.split(","))) if name else (): Fraction(value) for name, value in written.items()}
    normal = all(terms.values()) and all(list(monomial) == sorted(monomial) for monomial in terms)
    require(not normal, f"{written} is no polynomial in normal form")
    return terms
