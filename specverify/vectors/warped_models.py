"""Apply sampling parameters to models in exact rationals; a decoded text must follow the law of the result.

Forbidden tokens are removed first. Then penalties and biases multiply the probabilities: a factor f adds ln f to a
logit. Then follow temperature, top-k, top-p and min-p, each applied to the renormalised result of the previous step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from specverify.reference import LanguageModel, Pmf, Tokens, as_pmf, min_p, point_on_argmax, top_k, top_p
from specverify.vectors.vector import text

Parameters = Mapping[str, Any]
NO_STATE = -1
"""State of a grammar in which every token is allowed."""


def processed(model: LanguageModel, parameters: Parameters, prompt: Tokens, eos: Tokens = ()) -> LanguageModel:
    """Return the model that results from ``model`` by applying sampling parameters to every pmf.

    ``parameters`` maps the names of the parameters, which are those of a vector's inputs, to their values. A minimum
    length counts the tokens after ``prompt`` and forbids the tokens ``eos`` before it is reached.
    """

    def row(tokens: Tokens) -> Pmf:
        pmf = _without(model(tokens), _banned(parameters, tokens, prompt, eos))
        pmf = warped(_factored(pmf, parameters, tokens), parameters)
        return _scaled(pmf)

    return row


def warped(pmf: Pmf, parameters: Parameters) -> Pmf:
    """Return ``pmf`` after temperature, top-k, top-p and min-p, in this order, as far as ``parameters`` has them."""
    pmf = _scaled(pmf)
    for name, apply in _WARPERS.items():
        if name in parameters:
            value = parameters[name]
            pmf = apply(pmf, value if isinstance(value, int) else Fraction(value))
    return pmf


def tempered(pmf: Pmf, temperature: Fraction) -> Pmf:
    """Return ``pmf`` at a temperature of 0, n or 1/n for an integer n, exactly.

    Raises ``ValueError`` if the result is not rational.
    """
    if temperature == 0:
        return point_on_argmax(pmf)
    most = max(pmf)
    weights = [_root((mass / most) ** temperature.denominator, temperature.numerator) for mass in pmf]
    return _scaled(as_pmf(weights))


_WARPERS: dict[str, Callable[[Pmf, Any], Pmf]] = {
    "temperature": tempered,
    "top_k": top_k,
    "top_p": top_p,
    "min_p": min_p,
}


def _factored(pmf: Pmf, parameters: Parameters, tokens: Tokens) -> Pmf:
    """Return ``pmf`` after biases and penalties, not normalised: each probability is multiplied by factors.

    ``parameters`` has the factors. A bias applies to its token; the penalties apply to the tokens that occur in the
    text ``tokens``, once (presence) or once per occurrence (frequency).
    """
    masses = pmf.tolist()
    for token, factor in parameters.get("bias", {}).items():
        masses[int(token)] *= Fraction(factor)
    presence, frequency = (Fraction(parameters.get(name, 1)) for name in ("presence", "frequency"))
    for token, count in Counter(tokens).items():
        masses[token] *= presence * frequency**count
    return as_pmf(masses)


def _banned(parameters: Parameters, tokens: Tokens, prompt: Tokens, eos: Tokens) -> frozenset[int]:
    """Return the tokens that must not come next after ``tokens``, which begin with ``prompt``.

    ``parameters`` may forbid them by bad words, a minimum length (then ``eos`` is forbidden), allowed tokens or a
    grammar.
    """
    new = tokens[len(prompt) :]
    words = list(map(tuple, parameters.get("bad_words", ())))
    banned = {word[-1] for word in words if tokens[len(tokens) - len(word) + 1 :] == word[:-1]}
    if len(new) < parameters.get("min_new", 0):
        banned |= set(eos)
    return frozenset(banned | _against(parameters, new))


def _against(parameters: Parameters, new: Tokens) -> set[int]:
    """Return the tokens that the allowed tokens or the grammar in ``parameters`` forbid after ``new``."""
    banned: set[int] = set()
    if "allowed" in parameters:
        banned |= set(range(parameters["vocabulary"])) - set(parameters["allowed"])
    if "grammar" in parameters:
        edges = {(state, token): after for state, token, after in parameters["grammar"]}
        trigger = parameters.get("trigger")
        behind = new if trigger is None else new[new.index(trigger) + 1 :] if trigger in new else None
        state = NO_STATE if behind is None else 0
        for token in behind or ():
            state = edges.get((state, token), NO_STATE)
        if state != NO_STATE:
            banned |= set(range(parameters["vocabulary"])) - {token for at, token in edges if at == state}
    return banned


def _without(pmf: Pmf, banned: frozenset[int]) -> Pmf:
    return as_pmf([Fraction(0) if token in banned else mass for token, mass in enumerate(pmf)])


def _scaled(pmf: Pmf) -> Pmf:
    total = sum(pmf)
    return as_pmf([mass / total for mass in pmf])


def _root(value: Fraction, degree: int) -> Fraction:
    """Return the exact root of ``value`` of this ``degree``. Raises ``ValueError`` if the root is not rational."""
    if degree < 0:
        raise ValueError(f"a temperature of sign {degree} was requested, expected one >= 0")
    if degree == 1:
        return value
    result = Fraction(*(round(part ** (1 / degree)) for part in (value.numerator, value.denominator)))
    if result**degree != value:
        raise ValueError(f"{text(value)} has no rational root of degree {degree}, expected a power")
    return result
