"""Formulas of wrong rounds in which a row of p or q is changed: tempered, truncated, averaged, or of another position.

A round has three parts: test, replacement and bonus. A changed row is named as the fault of a part if the part follows
speculative sampling with this row in all observations, and if no other changed row explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.given_drafts import GivenDrafts, expected, fits, value_fits
from specverify.checks.explaining.round_rules import ModelRows, Row, excess, mean, ratio, scaled, without
from specverify.checks.explaining.wording import short
from specverify.reference import Pmf, Tokens

OPEN = 1e-6
LEAST_OPEN = 2
"""The least number of different observed probabilities that deviate from the rule and are neither 0 nor 1."""
TEMPERATURES = tuple(number / 20 for number in range(2, 61) if number != 20)
MOST_KEPT = 4
"""The largest k of a truncation to the k largest entries."""
MOST_LEFT_OUT = 8
"""Only tokens below this number are tried as the one that a row leaves out."""

Observation = tuple[GivenDrafts, int, Any]
"""A round, the position in it, and the observed probability or law."""
Change = Callable[[Sequence[Row], Tokens, int], Row]
"""``change(rows, drafts, i)`` returns the row that is used at position ``i`` in place of ``rows[i]``."""


class _Changed(NamedTuple):
    """A way to change a row of p or q, for example by a temperature.

    ``words`` name the changed row; ``{m}`` in them stands for p or q.
    """

    words: str
    change: Change
    of_one_row: bool = True
    """Whether the result depends on the row alone, not on drafts or other positions."""
    is_pmf: bool = True
    """Whether the entries of the result sum to 1."""
    leaves_out: bool = False
    """Whether the result is the row without one fixed token, divided by its sum."""


def _tempered(temperature: float, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    powers = np.array(rows[i], dtype=np.float64) ** (1 / temperature)  # a row may have 150 000 tokens
    result: Row = (powers / (powers.sum() or 1.0)).tolist()
    return result


def _top(count: int, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    least = sorted(rows[i])[-min(count, len(rows[i]))]
    return scaled([mass if mass >= least else 0 * mass for mass in rows[i]])


def _unscaled_top(count: int, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    least = sorted(rows[i])[-min(count, len(rows[i]))]
    return [mass if mass >= least else 0 * mass for mass in rows[i]]


def _mean(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return mean(rows)


def _mean_of_drafts(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return mean(rows[: len(drafts)])


def _mean_with_next(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return mean(rows[i : i + 2])


def _without_draft(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    if i >= len(drafts):
        return rows[i]
    return scaled(without(rows[i], drafts[i]))


def _without_token(token: int, rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    left = without(rows[i], token)
    return scaled(left) if sum(left) > 0 else rows[i]


def _late_inside(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return rows[min(i + 1, len(drafts) - 1)]


def _last(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return rows[len(drafts) - 1]


def _sorted(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return sorted(rows[i], reverse=True)


def _reversed(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return rows[i][::-1]


def _rolled(rows: Sequence[Row], drafts: Tokens, i: int) -> Row:
    return [rows[i][-1], *rows[i][:-1]]


CHANGES = (
    *(_Changed(f"{{m}} at a further temperature of {value:g}", partial(_tempered, value)) for value in TEMPERATURES),
    *(
        _Changed(f"{{m}} cut to its {count} largest entries (as by top-k or top-p)", partial(_top, count))
        for count in range(1, MOST_KEPT + 1)
    ),
    *(
        _Changed(
            f"{{m}} cut to its {count} largest entries, not divided by their sum",
            partial(_unscaled_top, count),
            is_pmf=False,
        )
        for count in range(1, MOST_KEPT + 1)
    ),
    _Changed("the mean of the rows of {m} at all positions", _mean, of_one_row=False),
    _Changed("the mean of the rows of {m} before each draft", _mean_of_drafts, of_one_row=False),
    _Changed("the mean of the rows of {m} at this and the next position", _mean_with_next, of_one_row=False),
    _Changed("{m} without the draft, divided by its sum again", _without_draft, of_one_row=False),
    *(
        _Changed(
            f"{{m}} without token {token}, divided by its sum again",
            partial(_without_token, token),
            of_one_row=False,
            leaves_out=True,
        )
        for token in range(MOST_LEFT_OUT)
    ),
    _Changed("the row of {m} at the last draft", _last, of_one_row=False),
    _Changed("the row of {m} one position late (at the last draft its own row)", _late_inside, of_one_row=False),
    _Changed("the entries of {m} sorted by size, no longer in the order of the tokens", _sorted),
    _Changed("the row of {m} in reversed order of the tokens", _reversed),
    _Changed("the row of {m} shifted by one token", _rolled),
)


class _ChangedModels(NamedTuple):
    """A possible fault of a round: it uses changed rows in place of those of p, of q, or of both."""

    rows: str
    """The name of the changed rows, for example "p at a further temperature of 0.5"."""
    replaced: str
    """The rows that the changed rows replace: "p", "q" or "p and q"."""
    change: Callable[[ModelRows, Tokens], ModelRows]
    """``change(rows, drafts)`` returns the rows of p and q that such a round uses."""
    is_pmf: bool
    """Whether the entries of each changed row sum to 1."""
    leaves_out: bool
    """Whether each changed row is the row without one fixed token."""

    def draws_bonus(self) -> bool:
        """Return whether the changed row of p may also be the row from which a wrong program draws the bonus token.

        This requires that only p is changed, and that the changed row is a pmf.
        """
        return self.replaced == "p" and self.is_pmf


def _models(one: _Changed) -> Iterator[_ChangedModels]:
    """Yield the change ``one`` applied to p, to q, and to both."""

    def changed(rows: Sequence[Row], drafts: Tokens) -> tuple[Row, ...]:
        return tuple(one.change(rows, drafts, i) for i in range(len(rows)))

    def in_p(rows: ModelRows, drafts: Tokens) -> ModelRows:
        return rows._replace(p=changed(rows.p, drafts))

    def in_q(rows: ModelRows, drafts: Tokens) -> ModelRows:
        return rows._replace(q=changed(rows.q, drafts))

    def in_both(rows: ModelRows, drafts: Tokens) -> ModelRows:
        return in_p(in_q(rows, drafts), drafts)

    of_p, of_q = (one.words.format(m=m) for m in "pq")
    for rows, replaced, change in ((of_p, "p", in_p), (of_q, "q", in_q), (f"{of_p} and {of_q}", "p and q", in_both)):
        yield _ChangedModels(rows, replaced, change, one.is_pmf, one.leaves_out)


def deviating(seen: Sequence[Observation], part: str) -> list[float]:
    """Return the observed probabilities of one part of a round that speculative sampling does not explain.

    ``part`` is "accept", "replace" or "bonus", and ``seen`` has its observations. The probabilities are sorted, without
    duplicates. Those of 0 and 1 are left out, because many wrong formulas give them.
    """
    result = set[float]()
    for given, i, value in seen:
        if not fits(value, expected(given, part, i, given.rows), given.slack):
            masses = value.values() if isinstance(value, Mapping) else [value]
            result |= {round(float(mass), 9) for mass in masses if OPEN < mass < 1 - OPEN}
    return sorted(result)


def name_of_change(seen: Sequence[Observation], part: str) -> str:
    """Return words for the changed row that explains all observations ``seen`` of one part of a round.

    With this row in place of p or q, the part follows speculative sampling. Returns "" if no row or several rows do so;
    changes that give the same row in all observed rounds count as one, and the words name them all.
    Exception: a row without one token may also be cut to its largest entries; then the words state both.
    ``part`` is "accept", "replace" or "bonus". For "accept" the words complete the sentence "drafts are accepted ...",
    otherwise "the replacement (or bonus) is drawn from ...".
    """
    if len(deviating(seen, part)) < LEAST_OPEN:
        return ""
    models = (model for one in CHANGES for model in _models(one) if part != "bonus" or model.draws_bonus())
    fitting = [
        model
        for model in models
        if all(value_fits(given, part, i, value, model.change(given.rows, given.drafts)) for given, i, value in seen)
    ]
    fitting.sort(key=lambda model: not model.leaves_out)
    if len(fitting) == 2 and [model.leaves_out for model in fitting] == [True, False]:
        one, other = fitting
        fitting = [one._replace(rows=f"{one.rows}, or {other.rows}")] if one.replaced == other.replaced else []
    equal = _equal(fitting, seen)
    if not equal:
        return ""
    if part == "accept":
        return f"with probability min(1, p/q) with {_words(equal)}"
    return _rows_of(equal) if part == "bonus" else f"norm(max(p - q, 0)) with {_words(equal)}"


def _equal(fitting: Sequence[_ChangedModels], seen: Sequence[Observation]) -> Sequence[_ChangedModels]:
    """Return ``fitting`` if all its changes give the same rows in every round of ``seen``, otherwise an empty list.

    Two changes of several rows may give the same rows where rounds have few drafts.
    """
    for given, _, _ in seen:
        changed = [one.change(given.rows, given.drafts) for one in fitting]
        if any(rows != changed[0] for rows in changed):
            return []
    return fitting


def _rows_of(fitting: Sequence[_ChangedModels]) -> str:
    return ", or ".join(one.rows for one in fitting)


def _words(fitting: Sequence[_ChangedModels]) -> str:
    """Return words for changes that give the same rows: "the row of p at ..., or the row of p ... in place of p"."""
    return f"{_rows_of(fitting)} in place of {fitting[0].replaced}"


def change_of_rounds(seen: Mapping[str, Sequence[Observation]]) -> str:
    """Return words for the only changed row with which all observed rounds follow speculative sampling; "" if none.

    ``seen`` has the observations of each part: "accept", "replace" and "bonus". Returns "" if fewer than two parts
    differ from the rule, or if several changes explain them; such a part then has its own sentence.
    """
    if sum(bool(deviating(observed, part)) for part, observed in seen.items()) < 2:
        return ""
    fitting = [
        model
        for one in CHANGES
        for model in _models(one)
        if model.is_pmf
        and all(
            value_fits(given, part, i, value, model.change(given.rows, given.drafts))
            for part, observed in seen.items()
            for given, i, value in observed
        )
    ]
    equal = _equal(fitting, [each for observed in seen.values() for each in observed])
    return _words(equal) if equal else ""


def changed_row(seen: Row, rows: Mapping[str, Row], near: float) -> str:
    """Return the name of the one change (name of the row and change) of one of ``rows`` that gives the row ``seen``.

    ``rows`` maps names to rows. Returns "" if no change or several changes fit. The changes are temperatures,
    truncations such as top-k, and permutations of the tokens. Entries may differ by the rounding error ``near``. It
    returns "" also if ``seen`` has fewer than three entries, or fewer than ``LEAST_OPEN`` entries strictly between 0
    and 1: too many changes give such a row.
    """
    if not _may_show_change(np.array(seen)):
        return ""
    return only_change(tuple(seen), tuple((name, tuple(row)) for name, row in rows.items()), near)


@lru_cache(maxsize=4096)
def only_change(seen: tuple[float, ...], rows: tuple[tuple[str, tuple[float, ...]], ...], near: float) -> str:
    """Return words for the only change, such as a temperature, of one of ``rows`` that gives the row ``seen``.

    ``rows`` has (name, row) pairs. Returns "" if no change or several changes give ``seen`` within ``near``.
    """
    fitting = [
        words.format(m=name)
        for name, right in rows
        for words, row in changes_of(right)
        if len(row) == len(seen) and all(abs(a - b) < near for a, b in zip(seen, row, strict=True))
    ]
    return fitting[0] if len(fitting) == 1 else ""


def _may_show_change(seen: np.ndarray[Any, Any]) -> bool:
    """Return whether the row ``seen`` has three entries, and ``LEAST_OPEN`` entries strictly between 0 and 1."""
    return len(seen) >= 3 and int(np.count_nonzero((seen > OPEN) & (seen < 1 - OPEN))) >= LEAST_OPEN


def change_of_all(pairs: Sequence[tuple[Pmf, Pmf]], near: float) -> str:
    """Return words for the only change of p that gives every observed row; "" if no change or several changes do.

    ``pairs`` has (observed row, row of p) for each text, as arrays. A pair shows a change only if the observed row has
    at least ``LEAST_OPEN`` entries strictly between 0 and 1 and differs from p; without such a pair the result is "".
    Entries may differ by the rounding error ``near``.
    """

    def fits_change(words: str, seen: Pmf, row: Pmf) -> bool:
        changed = dict(changes_of(tuple(row.tolist())))[words]
        return all(abs(a - b) < near for a, b in zip(seen.tolist(), changed, strict=True))

    if any(np.count_nonzero(seen >= near) > np.count_nonzero(row) for seen, row in pairs):
        return ""  # a change removes or moves entries, it adds none
    may_show = ((seen, row.tolist()) for seen, row in pairs if _may_show_change(seen))
    shown = [row for seen, row in may_show if changed_row(seen.tolist(), {"p": row}, near)]
    if not shown:
        return ""
    fitting = [words for words, _ in changes_of(tuple(shown[0])) if all(fits_change(words, *pair) for pair in pairs)]
    return fitting[0].format(m="p") if len(fitting) == 1 else ""


@lru_cache(maxsize=1024)
def changes_of(row: tuple[float, ...]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return (words, changed row) for each change, such as a temperature, that can be computed from ``row`` alone."""
    return tuple((one.words, tuple(one.change([row], (), 0))) for one in CHANGES if one.of_one_row and one.is_pmf)


def kept_draft(seen: Sequence[Observation]) -> str:
    """Return words for the fault that a rejected draft is sometimes its own replacement; "" if it does not fit.

    It fits if the rejected draft is emitted with one probability in all of ``seen``, the observations of replacements,
    and the replacement is otherwise a draw from the right residual.
    """
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


# Residuals of several positions, and indices of other orders


def _flattened(rows: ModelRows, drafts: Tokens, i: int) -> Row:
    """Return the law of a replacement that a wrong program draws from all residuals from position ``i`` on.

    A wrong program flattens the array of these residuals, draws one entry with the probabilities max(p - q, 0), and
    keeps only the token of the entry. ``rows`` are the rows of p and q along ``drafts``.
    """
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
    """Return the name of the only wrong formula of ``part`` that fits all of ``seen``; "" if none or several do.

    The formulas are those of ``FURTHER_ACCEPT`` if ``part`` is "accept", and of ``FURTHER_REPLACE`` if it is "replace".
    ``seen`` are observations of this part of a round. For "accept" at least one observed round must have two drafts or
    more.
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
    """Return words for an acceptance rule with a threshold on p/q, p or q; "" if none or several fit ``seen``.

    Such a rule accepts always, never, or without a random number, on one side of the threshold. There must be
    observations on both sides of it.
    """
    tested = [
        _Tested(
            float(given.rows.p[i][given.drafts[i]]), float(given.rows.q[i][given.drafts[i]]), float(value), given.slack
        )
        for given, i, value in seen
        if given.rows.q[i][given.drafts[i]] > 0
    ]
    fitting = [rule for quantity in QUANTITIES for rule in _steps(quantity, tested)]
    return fitting[0] if len(fitting) == 1 else ""


class _Tested(NamedTuple):
    """One observed acceptance test of a draft.

    ``p`` and ``q`` (not 0) are the probabilities of the draft, ``accepted`` is the observed probability that the draft
    is accepted, and ``slack`` the error that rounding permits in it.
    """

    p: float
    q: float
    accepted: float
    slack: float

    def rule(self) -> float:
        """Return min(1, p/q), the probability with which the rule accepts the draft."""
        return min(1.0, self.p / self.q)

    def follows_rule(self) -> bool:
        return abs(self.accepted - self.rule()) <= 4 * self.slack


class _TestedNumber(NamedTuple):
    """A number that a wrong verifier may compare with a threshold: p/q, p or q of the draft.

    ``name`` is the number in words, and ``value(test)`` returns the number for an observed test.
    """

    name: str
    value: Callable[[_Tested], float]
    is_ratio: bool = False
    """Whether the number is p/q. A threshold of p/q alone then decides, in place of a random number."""


QUANTITIES = (
    _TestedNumber("p/q", lambda draft: draft.p / draft.q, is_ratio=True),
    _TestedNumber("p", lambda draft: draft.p),
    _TestedNumber("q", lambda draft: draft.q),
)


def _steps(quantity: _TestedNumber, tested: Sequence[_Tested]) -> Iterator[str]:
    """Yield the wrong acceptance rules with a threshold on ``quantity`` that explain all observations, in words.

    ``tested`` are the observed tests of drafts. A rule explains them if it gives the acceptance probability of every
    test. One such rule accepts without a random number if the quantity reaches the threshold; two others deviate from
    min(1, p/q) only on one side of the threshold. Nothing is yielded if too few different values were observed.
    """
    name, value = quantity.name, quantity.value
    never = [value(draft) for draft in tested if draft.accepted < OPEN < draft.rule()]
    surely = [value(draft) for draft in tested if draft.accepted > 1 - OPEN > draft.rule()]
    as_rule = [draft for draft in tested if draft.follows_rule()]
    certain = [draft for draft in tested if draft.accepted < OPEN or draft.accepted > 1 - OPEN]
    deviating_values = len({round(number, 9) for number in (*never, *surely)})
    if any(draft not in certain and draft not in as_rule for draft in tested) or deviating_values < LEAST_OPEN:
        return
    if len({value(draft) for draft in as_rule}) < LEAST_OPEN:
        return
    sure = [value(draft) for draft in tested if draft.accepted > 1 - OPEN]
    if never and surely and max(never) < min(sure) and len(certain) == len(tested):
        if quantity.is_ratio:
            yield f"without a random number, if {name} is at least {_between(max(never), min(sure))}"
        return
    open_rule = [value(draft) for draft in as_rule if draft.accepted > OPEN]
    if never and not surely and open_rule and max(never) < min(open_rule) and not quantity.is_ratio:
        below = _between(max(never), min(open_rule))
        yield f"never if {name} is below {below}, and otherwise with probability min(1, p/q)"
    below_all = [value(draft) for draft in as_rule if draft.rule() < 1 - OPEN]
    if surely and not never and below_all and max(below_all) < min(surely):
        yield f"always if {name} is at least {_between(max(below_all), min(surely))}, and below by min(1, p/q)"


def _between(low: float, high: float) -> str:
    return f"c, with c between {low:.3g} and {high:.3g}"
