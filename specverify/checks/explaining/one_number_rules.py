"""Wrong formulas with one free number, such as norm(max(p - q, 0)^c), that may explain observed rounds.

A formula is solved for the number with one observation, and then tested on all others. It is named only if the
observations determine the number at least twice, by different probabilities, so that a coincidence is excluded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from specverify.checks.explaining.given_drafts import GivenDrafts, is_wrong
from specverify.checks.explaining.round_rules import Row, scaled
from specverify.checks.explaining.wording import short, short_row

OPEN = 1e-6
"""A probability nearer than this to 0 or 1 does not determine the free number."""
MOST_MIXED = 0.999
"""A row that is mixed with a larger share of another row is rather this other row."""
MOST_ERROR = 0.01
"""An observation whose rounding changes the free number by more than this does not determine it."""
LEAST_NUMBERS = 2
LEAST_POWER = 0.01
"""A power p^c with c nearer than this to 1 is no further temperature: rounding of p, say, looks like it."""


class Accepted(NamedTuple):
    """The observed acceptance test of one draft.

    ``p`` and ``q`` are the probabilities of the draft, ``seen`` is the observed probability that it is accepted, and
    ``slack`` the rounding error of ``seen``.
    """

    p: float
    q: float
    seen: float
    slack: float
    row: tuple[float, ...] = ()
    """The row of p."""


class Replaced(NamedTuple):
    """An observed replacement of a rejected draft.

    ``p`` and ``q`` are the rows at this draft, and ``law`` maps each replacement to its observed probability. Each of
    these probabilities has the rounding error ``slack``.
    """

    p: Row
    q: Row
    law: Mapping[int, Any]
    slack: float


class _AcceptFamily(NamedTuple):
    words: str
    solve: Callable[[float, float, float], float]
    """``solve(p, q, acceptance)`` returns the free number."""
    formula: Callable[[float, float, float], float]
    """``formula(p, q, number)`` returns the acceptance probability, before it is limited to 1."""
    is_constant: bool = False
    """Whether the formula uses neither p nor q. Two rows of p must show it: in one row, another draft may be tested."""


_ACCEPT = (
    _AcceptFamily("with probability min(1, {c} p/q)", lambda p, q, seen: seen * q / p, lambda p, q, c: c * p / q),
    _AcceptFamily(
        "with probability min(1, (p/q)^{c})",
        lambda p, q, seen: math.log(seen) / math.log(p / q),
        lambda p, q, c: (p / q) ** c,
    ),
    _AcceptFamily("with probability min(1, p/(q + {c}))", lambda p, q, seen: p / seen - q, lambda p, q, c: p / (q + c)),
    _AcceptFamily("with probability min(1, p/q + {c})", lambda p, q, seen: seen - p / q, lambda p, q, c: p / q + c),
    _AcceptFamily(
        "with the constant probability {c}, whatever p and q are",
        lambda p, q, seen: seen,
        lambda p, q, c: c,
        is_constant=True,
    ),
    _AcceptFamily(
        "with probability {c} + (1 - {c}) min(1, p/q): a share {c} of the drafts is kept without a test",
        lambda p, q, seen: (seen - p / q) / (1 - p / q) if p < q else 0.0,
        lambda p, q, c: c + (1 - c) * min(1.0, p / q),
    ),
    _AcceptFamily(
        "with probability {c} min(1, p/q): also a draft that passes the test is thrown away with probability 1 - {c}",
        lambda p, q, seen: seen / min(1.0, p / q),
        lambda p, q, c: c * min(1.0, p / q),
    ),
)


def accept_rule(observed: Sequence[Accepted]) -> str:
    """Return a description of the acceptance formula with one free number that fits ``observed``; "" if none does."""
    told = [
        one for one in observed if OPEN < one.seen < 1 - OPEN and one.p > 0 and one.q > 0 and abs(one.p - one.q) > OPEN
    ]
    if len({(one.p, one.q) for one in told}) < LEAST_NUMBERS:
        return _limited_ratio(observed)
    for family in _ACCEPT:
        if family.is_constant and len({one.row for one in told}) < LEAST_NUMBERS:
            continue
        number = family.solve(told[0].p, told[0].q, told[0].seen)
        is_shown = short(number) not in {"0", "1"}  # else the sentence would state the right rule
        if not (number > 0 and is_shown and any(_matters(one, family, number) for one in told)):
            continue
        if all(_is_accepted_by(one, family, number) for one in observed):
            return family.words.format(c=short(number))
    return _limited_ratio(observed) or _cut_rule(observed) or _coarse_coin(observed)


def _limited_ratio(observed: Sequence[Accepted]) -> str:
    """Return a description of the rule that limits min(1, p/q) from below or from above; "" if it does not.

    ``observed`` has drafts with their acceptance probabilities. Drafts in at least two rows of p, with different q,
    must be accepted with the limit instead of p/q. If all of them have p = 0, another rule may make an exception of p =
    0, so the description states this case first.
    """
    rules = [(min(1.0, one.p / one.q), one) for one in observed if one.q > 0]
    wrong = [(rule, one) for rule, one in rules if abs(rule - one.seen) > 8 * one.slack + OPEN]
    if min(len({one.q for _, one in wrong}), len({one.row for _, one in wrong})) < LEAST_NUMBERS:
        return ""
    limit, ratios = wrong[0][1].seen, {rule for rule, _ in wrong}
    below = "with probability {c} if p is 0, as with the lower limit max({c}, p/q)"
    if ratios != {0.0}:
        below = "with probability max({c}, min(1, p/q)): never less than {c}" if len(ratios) > 1 else ""
    above = "with probability min({c}, p/q): never more than {c}" if len(ratios) > 1 else ""
    for words, limited in ((below, max), (above, min)):
        fits = all(abs(limited(limit, rule) - one.seen) <= 8 * one.slack for rule, one in rules)
        if words and fits and OPEN < limit < 1 - OPEN:
            return words.format(c=short(limit))
    return ""


def _cut_rule(observed: Sequence[Accepted]) -> str:
    """Return a description of the rule min(1, min(p, c)/q), which cuts p at c; "" if it does not fit.

    Each row of p in ``observed`` may have its own c. At least two tokens with different p in one row must be accepted
    more rarely than by min(1, p/q).
    """
    cuts: dict[tuple[float, ...], list[float]] = {}
    for one in observed:
        if one.q > 0 and OPEN < one.seen < min(1.0, one.p / one.q) - 8 * one.slack:
            cuts.setdefault(one.row, []).append(one.seen * one.q)
    shown = next((row for row, values in cuts.items() if len(set(row)) > 1 and _are_two(observed, row)), None)
    if shown is None:
        return ""
    least = {row: min(values) for row, values in cuts.items()}
    if all(
        abs(one.seen - min(1.0, min(one.p, least.get(one.row, 1.0)) / one.q)) <= 8 * one.slack
        for one in observed
        if one.q > 0
    ):
        return f"with probability min(1, min(p, {short(least[shown])})/q): p is cut in the row p = {short_row(shown)}"
    return ""


def _are_two(observed: Sequence[Accepted], row: tuple[float, ...]) -> bool:
    """Return whether at least two drafts, with different values of p, are accepted more rarely than min(1, p/q).

    Only those of the observations ``observed`` count whose row of p is ``row``. A single value would fit many formulas.
    """
    return len({one.p for one in observed if one.row == row and OPEN < one.seen * one.q < min(one.p, one.q) - OPEN}) > 1


def _coarse_coin(observed: Sequence[Accepted]) -> str:
    """Return a description of the rule whose coin has few values, such as 256; "" if no such number fits ``observed``.

    A coin with c values is one of 0/c, 1/c, ...; the draft is accepted if the coin is below p/q.
    """
    rules = [(min(1.0, one.p / one.q), one) for one in observed if one.q > 0]
    for values in sorted([*(2**k for k in range(1, 17)), *(10**k for k in range(1, 6))]):
        said = [(math.ceil(rule * values - 1e-9) / values, rule, one) for rule, one in rules]
        wrong = {coin for coin, rule, one in said if abs(coin - rule) > max(OPEN, 8 * one.slack)}
        if len(wrong) >= LEAST_NUMBERS and all(abs(coin - one.seen) <= 8 * one.slack for coin, _, one in said):
            return f"by a coin with {values} values only"
    return ""


def _is_accepted_by(one: Accepted, family: _AcceptFamily, number: float) -> bool:
    if one.q <= 0:
        return True
    return abs(one.seen - min(1.0, family.formula(one.p, one.q, number))) <= 8 * one.slack * max(1.0, number)


def _matters(one: Accepted, family: _AcceptFamily, number: float) -> bool:
    """Return whether the formula of ``family`` with ``number`` differs from min(1, p/q) for the draft ``one``."""
    differs = abs(min(1.0, family.formula(one.p, one.q, number)) - min(1.0, one.p / one.q))
    return differs > 8 * one.slack


class _ReplaceFamily(NamedTuple):
    words: str
    solve: Callable[[Sequence[float], Sequence[float], Sequence[float]], float]
    """``solve(p, q, law)`` returns the free number; 0 if this law does not determine it."""
    formula: Callable[[Sequence[float], Sequence[float], float], Row]
    """``formula(p, q, number)`` returns the law of the replacement."""


def _left(p: Sequence[float], q: Sequence[float]) -> list[float]:
    return [max(a - b, 0.0) for a, b in zip(p, q, strict=True)]


def _least_entry(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    """Return c if the observed ``law`` of a replacement can be norm(max(p - q, c)); 0 if it cannot.

    Two entries of ``law`` determine c: the entry with the largest p - q is proportional to p - q, and the entry with
    the smallest p - q is proportional to c.
    """
    differences = [a - b for a, b in zip(p, q, strict=True)]
    tokens = range(len(law))
    most, least = max(tokens, key=differences.__getitem__), min(tokens, key=differences.__getitem__)
    if differences[least] >= 0 or law[most] <= law[least]:
        return 0.0
    return law[least] / law[most] * differences[most]


def _added(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    entry, most = _least_entry(p, q, law), max(a - b for a, b in zip(p, q, strict=True))
    return entry * most / (most - entry) if most > entry else 0.0


def _two_open(law: Sequence[float]) -> tuple[int, int] | None:
    tokens = sorted(range(len(law)), key=lambda token: -law[token])[:2]
    return (tokens[0], tokens[1]) if len(tokens) > 1 and law[tokens[1]] > OPEN else None


def _share_of_q(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    two = _two_open(law)
    if two is None:
        return 0.0
    share = law[two[0]] / law[two[1]]
    below = q[two[0]] - share * q[two[1]]
    part = (p[two[0]] - share * p[two[1]]) / below if abs(below) > OPEN else 0.0
    return part if abs(part) > 1 - MOST_MIXED else 0.0


def _exponent(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    two, left = _two_open(law), _left(p, q)
    if two is None or min(left[two[0]], left[two[1]]) <= 0 or abs(left[two[0]] - left[two[1]]) < OPEN:
        return 0.0
    power = math.log(law[two[0]] / law[two[1]]) / math.log(left[two[0]] / left[two[1]])
    return power if abs(power - 1) > OPEN else 0.0


def _share_of_q_added(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    left = _left(p, q)
    share = next((law[token] / q[token] for token in range(len(p)) if left[token] <= 0 < q[token]), 0.0)
    return share if share < MOST_MIXED else 0.0


def _share_of_p(p: Sequence[float], q: Sequence[float], law: Sequence[float]) -> float:
    left = _left(p, q)
    share = next((law[token] / p[token] for token in range(len(p)) if left[token] <= 0 < p[token]), 0.0)
    return share if share < MOST_MIXED else 0.0


_REPLACE = (
    _ReplaceFamily(
        "norm(max(p - q, {c}))",
        _least_entry,
        lambda p, q, c: scaled([max(a - b, c) for a, b in zip(p, q, strict=True)]),
    ),
    _ReplaceFamily("norm(max(p - q, 0) + {c})", _added, lambda p, q, c: scaled([mass + c for mass in _left(p, q)])),
    _ReplaceFamily(
        "norm(max(p - {c} q, 0))",
        _share_of_q,
        lambda p, q, c: scaled([max(a - c * b, 0.0) for a, b in zip(p, q, strict=True)]),
    ),
    _ReplaceFamily("norm(max(p - q, 0)^{c})", _exponent, lambda p, q, c: powered(_left(p, q), c)),
    _ReplaceFamily(
        "norm(max(p - q, 0)), mixed with a share {c} of p",
        _share_of_p,
        lambda p, q, c: [(1 - c) * left + c * mass for left, mass in zip(scaled(_left(p, q)), p, strict=True)],
    ),
    _ReplaceFamily(
        "norm(max(p - q, 0)), mixed with a share {c} of q",
        _share_of_q_added,
        lambda p, q, c: [(1 - c) * left + c * mass for left, mass in zip(scaled(_left(p, q)), q, strict=True)],
    ),
)


def replace_rule(observed: Sequence[Replaced], temperature: float = 1.0) -> str:
    """Return the replacement formula with one free number that fits all of ``observed``; "" if none does.

    The result is a description with the number, such as "norm(max(p - q, 0)^2)". ``temperature``, that of the examined
    call, changes only the words: the exponent 1/``temperature`` is described as the temperature applied twice.
    Observations without any p > q are skipped.
    """
    told = [
        one._replace(p=list(map(float, one.p)), q=list(map(float, one.q)), law=dict(one.law))
        for one in observed
        if any(a > b for a, b in zip(one.p, one.q, strict=True))
    ]
    laws = [[float(one.law.get(token, 0)) for token in range(len(one.p))] for one in told]
    different = {tuple(round(mass, 9) for mass in law) for law in laws}
    if sum(max(sum(OPEN < mass < 1 - OPEN for mass in law) - 1, 0) for law in different) < LEAST_NUMBERS:
        return ""

    def fits_all(family: _ReplaceFamily, number: float, error: float) -> bool:
        return all(_is_replaced_by(family, one, law, number, error) for one, law in zip(told, laws, strict=True))

    for family in _REPLACE:
        numbers = (
            (number, error)
            for one, law in zip(told, laws, strict=True)
            if (number := family.solve(one.p, one.q, law)) > OPEN
            and (error := _error(family, one, law, number)) < MOST_ERROR
        )
        number, error = next(numbers, (0.0, 0.0))
        is_shown = short(number) not in {"0", "1"}  # else the sentence would state another rule
        if (
            number
            and is_shown
            and fits_all(family, number, error)
            and any(_is_another(family, one, number) for one in told)
        ):
            if family.solve is _exponent and temperature != 1 and fits_all(family, 1 / temperature, error):
                said = f"temperature {short(temperature)} applied a second time"
                return f"the residual with the {said}, {family.words.format(c=f'(1/{short(temperature)})')}"
            return family.words.format(c=short(number))
    return ""


def _error(family: _ReplaceFamily, one: Replaced, law: Sequence[float], number: float) -> float:
    """Return how far rounding may change the free number that a formula is solved for.

    ``number`` is the number that the formula ``family`` gives for the observation ``one`` with the law ``law``. The
    error is the change of the number if the entries of the law change by their rounding errors.
    """
    moved = [[*law[:token], mass + one.slack, *law[token + 1 :]] for token, mass in enumerate(law) if mass > OPEN]
    return sum(abs(family.solve(one.p, one.q, other) - number) for other in moved)


def _is_replaced_by(family: _ReplaceFamily, one: Replaced, law: Sequence[float], number: float, error: float) -> bool:
    row, other = (family.formula(one.p, one.q, value) for value in (number, number + error))
    return all(
        abs(mass - said) <= 4 * one.slack + 4 * abs(moved - said)
        for mass, said, moved in zip(law, row, other, strict=True)
    )


def _is_another(family: _ReplaceFamily, one: Replaced, number: float) -> bool:
    """Return whether the formula of ``family`` with ``number`` differs from norm(max(p - q, 0)) for ``one``."""
    rows = zip(family.formula(one.p, one.q, number), scaled(_left(one.p, one.q)), strict=True)
    return any(abs(does - right) > 8 * one.slack for does, right in rows)


# A further temperature


def further_power(all_given: Sequence[GivenDrafts]) -> float:
    """Return c if a wrong program seems to use norm(p^c) instead of p, as by a second temperature; 0 if no c is found.

    The first probability of a test or of a bonus in ``all_given`` that determines c gives the result. The caller must
    compare c with the other observations.
    """
    power = _first_power(all_given)
    return power if abs(power - 1) >= LEAST_POWER else 0.0


def _first_power(all_given: Sequence[GivenDrafts]) -> float:
    for given in all_given:
        for i, seen in enumerate(given.accept):
            p, token = [float(mass) for mass in given.rows.p[i]], given.drafts[i]
            wanted = float(seen) * float(given.rows.q[i][token])
            extreme = p[token] in {min(p), max(p)} and min(p) > 0
            if is_wrong(given, "accept") and 1e-6 < seen < 1 - 1e-6 and extreme and min(p) < max(p):
                return _power_with(p, token, wanted)
        if given.bonus is None:
            continue
        row = [(float(mass), float(given.bonus.get(token, 0))) for token, mass in enumerate(given.rows.p[-1])]
        (low, seen_low), (high, seen_high) = min(row), max(row)
        if 0 < low < high and seen_low > 0 and seen_high > 0:
            return math.log(seen_high / seen_low) / math.log(high / low)
    return 0.0


def further_power_of_q(all_given: Sequence[GivenDrafts]) -> float:
    """Return c if the rounds ``all_given`` seem to use norm(q^c) instead of q; 0 if no c is found.

    The first wrong probability of a test that determines c gives the result; at least two must determine it. The caller
    must compare c with the other observations.
    """
    wanted = dict[tuple[tuple[float, ...], int], float]()
    for given in all_given:
        for i, seen in enumerate(given.accept):
            q, token = tuple(float(mass) for mass in given.rows.q[i]), given.drafts[i]
            p = float(given.rows.p[i][token])
            is_open = OPEN < seen < 1 - OPEN and p < seen and abs(seen * q[token] - p) > 8 * given.slack
            if is_open and 0 < min(q) < max(q) and q[token] in {min(q), max(q)}:
                wanted.setdefault((q, token), p / float(seen))
    if len(wanted) < LEAST_NUMBERS:
        return 0.0
    (q, token), mass = next(iter(wanted.items()))
    return _power_with(q, token, mass)


def further_temperature(all_given: Sequence[GivenDrafts]) -> tuple[float, str]:
    """Return c and a sentence if a wrong program seems to use norm(p^c) instead of p; (0, "") if it does not.

    ``all_given`` are its observed rounds. Such a program applies a temperature of 1/c to p a second time.
    """
    power = further_power(all_given)
    if not power:
        return 0.0, ""
    p = all_given[0].rows.p[0]
    rows = f"{short_row(powered(p, power))} in the place of p = {short_row(p)} after {all_given[0].prefix}"
    return power, f"p has a further temperature of {short(1 / power)}: {rows}"


def _power_with(p: Sequence[float], token: int, wanted: float) -> float:
    """Return c such that norm(p^c) has probability ``wanted`` at ``token``; 0 if there is none.

    ``token`` must be the least or the most probable one.
    """
    low, high = 0.01, 100.0
    rises = p[token] == max(p)
    for _ in range(200):
        middle = (low * high) ** 0.5
        if (powered(p, middle)[token] < wanted) == rises:
            low = middle
        else:
            high = middle
    return middle if abs(powered(p, middle)[token] - wanted) < 1e-9 else 0.0


def powered(row: Row, power: float) -> Row:
    """Return the pmf proportional to the entries of ``row``, each raised to ``power``."""
    return scaled([float(mass) ** power if mass > 0 else 0.0 for mass in row])
