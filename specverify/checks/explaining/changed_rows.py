"""Formulas of wrong rounds in which one row of p or q is changed: tempered, truncated, averaged, or of another place.

Every part of a round (``given_drafts``) uses a row of p, and the test and the replacement use a row of q too. A change
is named if the part follows the rule with the changed row in all observations, and if no other change does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from specverify.checks.explaining.given_drafts import GivenDrafts, expected, fits
from specverify.checks.explaining.round_rules import ModelRows, Row, excess, ratio, scaled
from specverify.checks.explaining.wording import short
from specverify.reference import Tokens

OPEN = 1e-6
LEAST_OPEN = 2
"""The least number of different observed probabilities that deviate from the rule and are neither 0 nor 1."""
TEMPERATURES = tuple(number / 20 for number in range(2, 61) if number != 20)
MOST_KEPT = 4
"""The largest k of a truncation to the k largest entries."""

Observation = tuple[GivenDrafts, int, Any]
"""A round, the position in it, and the observed probability or law."""
Change = Callable[[Sequence[Row], Tokens, int], Row]
"""``change(rows, drafts, i)`` returns the row that is used at position ``i`` in place of ``rows[i]``."""


class _Changed(NamedTuple):
    """A changed row: its ``words``, in which ``{m}`` is p or q."""

    words: str
    change: Change
    of_one_row: bool = True
    """Whether the result is a pmf that depends on the row alone, not on drafts or other positions."""


def _tempered(temperature: float, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return scaled([float(mass) ** (1 / temperature) if mass > 0 else 0.0 for mass in rows[i]])


def _top(count: int, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    least = sorted(rows[i])[-min(count, len(rows[i]))]
    return scaled([mass if mass >= least else 0 * mass for mass in rows[i]])


def _unscaled_top(count: int, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    least = sorted(rows[i])[-min(count, len(rows[i]))]
    return [mass if mass >= least else 0 * mass for mass in rows[i]]


def _mean(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def _mean_of_drafts(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return _mean(rows[: len(drafts)], drafts, i)


def _mean_with_next(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return _mean(rows[i : i + 2], drafts, i)


def _without_draft(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    if i >= len(drafts):
        return rows[i]
    return scaled([0 * mass if token == drafts[i] else mass for token, mass in enumerate(rows[i])])


def _late_inside(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return rows[min(i + 1, len(drafts) - 1)]


def _sorted(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return sorted(rows[i], reverse=True)


def _reversed(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return rows[i][::-1]


def _rolled(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return [rows[i][-1], *rows[i][:-1]]


CHANGES = (
    *(_Changed(f"{{m}} at temperature {value:g}", partial(_tempered, value)) for value in TEMPERATURES),
    *(
        _Changed(f"{{m}} cut to its {count} largest entries (as by top-k or top-p)", partial(_top, count))
        for count in range(1, MOST_KEPT + 1)
    ),
    *(
        _Changed(
            f"{{m}} cut to its {count} largest entries, not divided by their sum",
            partial(_unscaled_top, count),
            of_one_row=False,
        )
        for count in range(1, MOST_KEPT + 1)
    ),
    _Changed("the mean of the rows of {m} at all positions", _mean, of_one_row=False),
    _Changed("the mean of the rows of {m} before each draft", _mean_of_drafts, of_one_row=False),
    _Changed("the mean of the rows of {m} at this and the next position", _mean_with_next, of_one_row=False),
    _Changed("{m} without the draft, divided by its sum again", _without_draft, of_one_row=False),
    _Changed("the row of {m} one position late (at the last draft its own row)", _late_inside, of_one_row=False),
    _Changed("the entries of {m} sorted by size, no longer in the order of the tokens", _sorted),
    _Changed("the row of {m} in reversed order of the tokens", _reversed),
    _Changed("the row of {m} shifted by one token", _rolled),
)


def _models(one: _Changed) -> Iterator[tuple[str, Callable[[ModelRows, Tokens], ModelRows]]]:
    """Yield (words, function) for the change in p, in q, and in both; the function returns the changed rows."""

    def changed(rows: Sequence[Row], drafts: Tokens) -> tuple[Row, ...]:
        return tuple(one.change(rows, drafts, i) for i in range(len(rows)))

    yield one.words.format(m="p") + " in place of p", lambda rows, drafts: rows._replace(p=changed(rows.p, drafts))
    yield one.words.format(m="q") + " in place of q", lambda rows, drafts: rows._replace(q=changed(rows.q, drafts))
    both = " and ".join(one.words.format(m=m) for m in "pq")
    yield (
        f"{both} in place of p and q",
        lambda rows, drafts: ModelRows(changed(rows.p, drafts), changed(rows.q, drafts)),
    )


def deviating(seen: Sequence[Observation], part: str) -> list[float]:
    """Return the different open probabilities, neither 0 nor 1, in observations of ``part`` that deviate from the rule.

    ``part`` is "accept", "replace" or "bonus".
    """
    result = set[float]()
    for given, i, value in seen:
        if not fits(value, expected(given, part, i, given.rows), given.slack):
            masses = value.values() if isinstance(value, Mapping) else [value]
            result |= {round(float(mass), 9) for mass in masses if OPEN < mass < 1 - OPEN}
    return sorted(result)


def name_of_change(seen: Sequence[Observation], part: str) -> str:
    """Return words for the only changed row with which ``part`` follows the rule in all of ``seen``; "" if none.

    ``part`` is "accept", "replace" or "bonus". The words complete "drafts are accepted by", or "is drawn from".
    """
    if len(deviating(seen, part)) < LEAST_OPEN:
        return ""
    fitting = []
    for one in CHANGES:
        for words, change in _models(one):
            if part == "bonus" and (not words.endswith(" in place of p") or "not divided" in words):
                continue
            if all(_follows(given, part, i, value, change(given.rows, given.drafts)) for given, i, value in seen):
                fitting.append(words)
    if not fitting or len(fitting) > 1:
        return ""
    (words,) = fitting
    if part == "accept":
        return f"with probability min(1, p/q) with {words}"
    return words.removesuffix(" in place of p") if part == "bonus" else f"norm(max(p - q, 0)) with {words}"


def changed_row(seen: Row, rows: Mapping[str, Row], near: float) -> str:
    """Return the name of the only change of one of ``rows`` (name -> row) that gives the row ``seen``; "" if none does.

    Only changes of the row itself are compared: temperatures, truncations and other orders of the tokens. ``near`` is
    the rounding error. At least three entries of ``seen``, or two after a truncation, must be positive.
    """
    if len(seen) < 3 or sum(OPEN < mass < 1 - OPEN for mass in seen) < LEAST_OPEN:
        return ""
    return only_change(tuple(seen), tuple((name, tuple(row)) for name, row in rows.items()), near)


@lru_cache(maxsize=4096)
def only_change(seen: tuple[float, ...], rows: tuple[tuple[str, tuple[float, ...]], ...], near: float) -> str:
    """Return the name of the only change of one of ``rows``, (name, row), that gives ``seen``; "" if none does."""
    fitting = [
        words.format(m=name)
        for name, right in rows
        for words, row in changes_of(right)
        if len(row) == len(seen) and all(abs(a - b) < near for a, b in zip(seen, row, strict=True))
    ]
    return fitting[0] if len(fitting) == 1 else ""


@lru_cache(maxsize=1024)
def changes_of(row: tuple[float, ...]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return (words, changed row) for each change that concerns ``row`` alone."""
    return tuple((one.words, tuple(one.change([row], (), 0))) for one in CHANGES if one.of_one_row)


def kept_draft(seen: Sequence[Observation]) -> str:
    """Return the words that a rejected draft is kept with one probability, else replaced rightly; "" if it is not."""
    shares = list[float]()
    for given, i, law in seen:
        token, residual = given.drafts[i], excess(given.rows.p[i], given.rows.q[i])
        share = (float(law.get(token, 0)) - float(residual[token])) / (1 - float(residual[token]) or 1)
        said = [mass * (1 - share) + share * (other == token) for other, mass in enumerate(residual)]
        if not fits(law, said, 8 * given.slack):
            return ""
        shares.append(share)
    same = bool(shares) and max(shares) - min(shares) <= 16 * max(given.slack for given, _, _ in seen)
    different = {(given.drafts[i], tuple(given.rows.p[i])) for given, i, _ in seen}
    if not same or len(different) < LEAST_OPEN or not OPEN < shares[0] < 1 - OPEN:
        return ""
    return f"norm(max(p - q, 0)), mixed with a share {short(shares[0])} of the rejected draft itself"


def _follows(given: GivenDrafts, part: str, i: int, value: Any, rows: ModelRows) -> bool:
    return fits(value, expected(given, part, i, rows), 4 * given.slack)


# Residuals of several positions, and indices of other orders


def _flattened(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    """Return the law of the token index if one entry of all residuals from position ``i`` on is drawn."""
    total: list[Any] = [0 for _ in rows.p[i]]
    for k in range(i, len(drafts)):
        total = [mass + max(a - b, 0) for mass, a, b in zip(total, rows.p[k], rows.q[k], strict=True)]
    return scaled(total) if sum(total) > 0 else rows.p[i]


def _all_flattened(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    return _flattened(rows, drafts, 0)


def _top_of_residual(count: int, rows: ModelRows, drafts: Tokens, i: int) -> Row:
    return _top(count, [excess(rows.p[i], rows.q[i])], drafts, 0)


FURTHER_REPLACE: Mapping[str, Callable[[ModelRows, Tokens, int], Row]] = {
    "the residuals of all positions from the rejected draft on, taken together": _flattened,
    "the residuals of all positions taken together": _all_flattened,
    "the residual sorted from the largest entry to the smallest: the index in this order is taken for the token": (
        lambda rows, drafts, i: sorted(excess(rows.p[i], rows.q[i]), reverse=True)
    ),
    "the residual sorted from the smallest entry to the largest: the index in this order is taken for the token": (
        lambda rows, drafts, i: sorted(excess(rows.p[i], rows.q[i]))
    ),
    "the two largest entries of the residual (top-k after the residual)": partial(_top_of_residual, 2),
}
"""Message ending -> formula of the replacement."""


def _ratios(rows: ModelRows, drafts: Tokens) -> list[Any] | None:
    pairs = [(rows.p[k][token], rows.q[k][token]) for k, token in enumerate(drafts)]
    return None if any(q <= 0 for _, q in pairs) else [p / q for p, q in pairs]


def _by_all(combine: Callable[[Sequence[Any]], Any], rows: ModelRows, drafts: Tokens, i: int) -> Any:
    ratios = _ratios(rows, drafts)
    return None if ratios is None else min(1, combine(ratios))


def _once_for_all(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    return 1 if i else _by_all(math.prod, rows, drafts, i)


def _by_former_token(rows: ModelRows, drafts: Tokens, i: int) -> Any:
    return ratio(rows.p[i][drafts[max(i - 1, 0)]], rows.q[i][drafts[max(i - 1, 0)]])


FURTHER_ACCEPT: Mapping[str, Callable[[ModelRows, Tokens, int], Any]] = {
    "all together, by one test with the product of p/q over all drafts of the round": _once_for_all,
    "with the product of p/q over all drafts of the round, also those after them": partial(_by_all, math.prod),
    "with the mean of p/q over all drafts of the round": partial(_by_all, lambda ratios: sum(ratios) / len(ratios)),
    "with the smallest p/q of all drafts of the round": partial(_by_all, min),
    "with the largest p/q of all drafts of the round": partial(_by_all, max),
    "with the probabilities of the draft before them": _by_former_token,
}
"""Message ending -> formula of the acceptance; it uses all drafts of a round."""


def further_formula(seen: Sequence[Observation], part: str) -> str:
    """Return the name of the only further formula that fits all observations ``seen`` of ``part``; "" if none does.

    A formula of the acceptance that uses several drafts needs a deviating round of two drafts or more.
    """
    formulas: Mapping[str, Any] = {"accept": FURTHER_ACCEPT, "replace": FURTHER_REPLACE}.get(part, {})
    if part == "accept" and not any(len(given.drafts) > 1 for given, _, _ in seen):
        return ""
    if len(deviating(seen, part)) < LEAST_OPEN:
        return ""
    fitting = []
    for name, formula in formulas.items():
        values = [(given, value, formula(given.rows, given.drafts, i)) for given, i, value in seen]
        if all(said is None or fits(value, said, 4 * given.slack) for given, value, said in values):
            fitting.append(name)
    return fitting[0] if len(fitting) == 1 else ""


# Acceptance without a random number, or with a threshold


def step_rule(seen: Sequence[Observation]) -> str:
    """Return the rule that accepts by a threshold, in part or without a random number; "" if none fits ``seen``.

    The observations must determine the threshold: drafts on both sides of it deviate from the rule or follow it.
    """
    values = [
        (float(given.rows.p[i][given.drafts[i]]), float(given.rows.q[i][given.drafts[i]]), float(value), given.slack)
        for given, i, value in seen
        if given.rows.q[i][given.drafts[i]] > 0
    ]
    rules = [
        ("p/q", [(p / q, min(1.0, p / q), value, slack) for p, q, value, slack in values]),
        ("p", [(p, min(1.0, p / q), value, slack) for p, q, value, slack in values]),
        ("q", [(q, min(1.0, p / q), value, slack) for p, q, value, slack in values]),
    ]
    fitting = [said for name, observed in rules for said in _steps(name, observed)]
    return fitting[0] if len(fitting) == 1 else ""


def _steps(name: str, observed: Sequence[tuple[float, float, float, float]]) -> Iterator[str]:
    """Yield the threshold rules on one quantity that fit ``observed``: (quantity, rule, seen, rounding error)."""
    never = [key for key, rule, value, _ in observed if value < OPEN < rule]
    surely = [key for key, rule, value, _ in observed if value > 1 - OPEN > rule]
    as_rule = [key for key, rule, value, slack in observed if abs(value - rule) <= 4 * slack]
    other = len(observed) - sum(
        value < OPEN or value > 1 - OPEN or abs(value - rule) <= 4 * slack for _, rule, value, slack in observed
    )
    shown = len({round(key, 9) for key in (*never, *surely)})
    if other or shown < LEAST_OPEN or len(set(as_rule)) < LEAST_OPEN:
        return
    sure = [key for key, _, value, _ in observed if value > 1 - OPEN]
    is_step = all(value < OPEN or value > 1 - OPEN for _, _, value, _ in observed)
    if never and surely and sure and max(never) < min(sure) and is_step:
        if name == "p/q":
            yield f"without a random number, if {name} is at least {_between(max(never), min(sure))}"
        return
    open_rule = [key for key, rule, value, slack in observed if abs(value - rule) <= 4 * slack and value > OPEN]
    if never and not surely and open_rule and max(never) < min(open_rule) and name != "p/q":
        below = _between(max(never), min(open_rule))
        yield f"never if {name} is below {below}, and otherwise with probability min(1, p/q)"
    below_all = [key for key, rule, value, slack in observed if abs(value - rule) <= 4 * slack and rule < 1 - OPEN]
    if surely and not never and below_all and max(below_all) < min(surely):
        yield f"always if {name} is at least {_between(max(below_all), min(surely))}, and below by min(1, p/q)"


def _between(low: float, high: float) -> str:
    return f"c, with c between {low:.3g} and {high:.3g}"
