"""Proofs for all p and q: the reference functions run on symbolic reals, where exact checks cover only some p and q.

The mass of every possible text is a sum over paths of quotients of polynomials, each with conditions.
``sums.decide_sign`` shows that the sum equals the expected mass for all valid pmfs. A refutation consists of rational
pmfs. It counts only after the ordinary enumeration, with fractions, gives the same two masses.

The proof covers one round, for every number of remaining tokens from 1 to gamma + 1; a larger number changes nothing
for a decoder that drafts at most gamma tokens. If the rounds depend on the text only through the pmfs of the models,
the first text does not matter, since all pmfs are free. The joint law over any number of rounds is then the target's,
by induction on the round. If a drafter reads the text itself (n-grams), every text of up to three tokens is covered,
and the statement mentions this limit. One round from a fresh state does not cover data that a decoder keeps between
rounds, such as a cache. ``joint`` proves whole decodes of up to gamma + 3 tokens in several rounds. Not covered:
end-of-sequence tokens, which cut the committed text; the exact checks cover them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from specverify.proof.certificate import CERTIFIED, NoCertificate, write_certificate
from specverify.proof.kept_proofs import kept_proof
from specverify.proof.linear import LINEAR, prove_linear
from specverify.proof.proved_subject import ANY_LENGTH, COUPLING, DROPPING, OWN, find_rule
from specverify.proof.result import Proof, ProofStatus, ReplayFailed
from specverify.proof.search import ProofSearch
from specverify.proof.statements import STATEMENTS

__all__ = [
    "COUPLING",
    "DEFAULT_SECONDS",
    "LINEAR",
    "STATEMENTS",
    "NoCertificate",
    "Proof",
    "ProofStatus",
    "ReplayFailed",
    "certify",
    "prove",
]

DEFAULT_SECONDS = 300.0
_LENGTHS = {"stopping": ANY_LENGTH, "dropping": DROPPING}


def prove(
    algorithm_name: str,
    vocabulary: int,
    gamma: int,
    what: str = "law",
    timeout: float = DEFAULT_SECONDS,
    options: Mapping[str, Any] | None = None,
    cache: Path | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> Proof:
    """Prove or refute a statement about an algorithm, for all target and draft pmfs over ``vocabulary`` tokens.

    If the length rule of the algorithm computes with floats, an arbitrary length rule replaces it, and the statement of
    the result mentions this.

    Args:
        algorithm_name: A registry name, ``mutant:NAME``, or ``coupling`` for the statements that concern no decoder.
        vocabulary: The number of tokens.
        gamma: The number of drafts.
        what: The statement, a key of ``STATEMENTS`` or ``LINEAR``.
        timeout: Time limit in seconds, after which the result is UNKNOWN.
        options: Options of the algorithm that replace those of its first example.
        cache: A folder of earlier proofs; None: there is none.
        progress: Called with a description of the work done.

    Returns:
        The proof, the refutation, or the reason why the statement is open.

    Raises:
        ValueError: For an unknown name, a vocabulary below 2 or a negative gamma.
    """
    if vocabulary < 2 or gamma < 0:
        raise ValueError(f"vocabulary is {vocabulary} and gamma {gamma}, expected at least 2 tokens and gamma >= 0")
    if what not in STATEMENTS and what not in LINEAR:
        raise ValueError(f"there is no statement {what!r}, expected one of {', '.join((*STATEMENTS, *LINEAR))}")
    if what == "residual":
        algorithm_name = COUPLING
    if cache is not None:
        asked = dict(name=algorithm_name, vocabulary=vocabulary, gamma=gamma, what=what, options=repr(options))
        now = partial(prove, algorithm_name, vocabulary, gamma, what, timeout, options, progress=progress)
        return kept_proof(cache, asked, now)
    if what in LINEAR:
        return prove_linear(what, vocabulary, timeout)
    length = _LENGTHS.get(what, OWN)
    result = _attempt(algorithm_name, vocabulary, gamma, what, timeout, options, length, progress)
    if result.figures.get("needs_number") and what in {"law", "acceptance"}:
        try:
            other = _attempt(algorithm_name, vocabulary, gamma, what, timeout, options, ANY_LENGTH, progress)
        except ValueError:
            return result
        any_length = other._replace(figures={**other.figures, "any_length": True})
        return result if other.status is ProofStatus.UNKNOWN else any_length
    return result


def certify(
    proof: Proof,
    file: Path,
    timeout: float = DEFAULT_SECONDS,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> None:
    """Write the certificate of ``proof`` into ``file``, for ``specverify.certificates.check_certificate``.

    Args:
        proof: The result of ``prove`` for the statement law, stopping or joint of an algorithm.
        file: Where the certificate is written, as JSON.
        timeout: Time limit in seconds.
        options: The options that ``prove`` was given.
        progress: Called with a short text on how many starts of a round (places) and polynomials are done.

    Raises:
        NoCertificate: The statement has no certificates, the proof is open, or no sum of products was found
            that proves a step.
    """
    if proof.what not in CERTIFIED:
        raise NoCertificate(f"there are no certificates of {proof.what!r}, expected {', '.join(CERTIFIED)}")
    length = ANY_LENGTH if proof.figures.get("any_length") else _LENGTHS.get(proof.what, OWN)
    write_certificate(file, proof, find_rule(proof.subject, proof.gamma, options, length), timeout, progress)


def _attempt(
    name: str,
    vocabulary: int,
    gamma: int,
    what: str,
    seconds: float,
    options: Mapping[str, Any] | None,
    length: str,
    progress: Callable[[str], None],
) -> Proof:
    rule = find_rule(name, gamma, options, length)
    if what == "declared" and rule.declared_law is None:
        raise ValueError(f"{rule.name} declares no biased law, expected a row with a declared bias")
    if name == COUPLING and what != "residual":
        known = ", ".join(("residual", *LINEAR))
        raise ValueError(f"the coupling is no decoder, so it has no statement {what!r}, expected one of {known}")
    return ProofSearch(STATEMENTS[what], rule, vocabulary, gamma, seconds, progress).run(what)
