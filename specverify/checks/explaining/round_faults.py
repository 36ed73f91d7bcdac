"""Name the difference between the rounds of a decoder and the rule of speculative sampling.

The three parts of a round are the acceptance of each draft, the replacement of a rejected draft, and the bonus token.
Each part is compared with the rule and, if it differs, with other formulas.
A formula is named only if it fits every computed number: exactly for rationals, within rounding for floats. This
explains a refutation and refutes nothing: a lossless round may follow another rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.explaining.block_rules import block_fault, depends_on_later, follows_blocks
from specverify.checks.explaining.changed_rows import (
    change_of_rounds,
    further_formula,
    kept_draft,
    name_of_change,
    step_rule,
)
from specverify.checks.explaining.counted_drafts import counted_drafts
from specverify.checks.explaining.first_difference import SHARE
from specverify.checks.explaining.given_drafts import (
    GENERIC,
    PARTS,
    WIDE,
    GivenDrafts,
    deviation,
    error_of,
    expected,
    fits,
    is_wrong,
    rounds_by_labels,
    rounds_given_drafts,
    value_fits,
    values_of,
)
from specverify.checks.explaining.one_number_rules import (
    Accepted,
    Replaced,
    accept_rule,
    further_power,
    further_power_of_q,
    powered,
    replace_rule,
)
from specverify.checks.explaining.round_rules import (
    ACCEPT,
    ACCEPT_OF_ROW,
    BONUS,
    ONE_NUMBER,
    POINTS,
    REPLACE,
    REPLACE_OF_ROW,
    REPLACE_WITH_NAN,
    ModelRows,
    Row,
    RowFormula,
    excess,
    scaled,
    without,
)
from specverify.checks.explaining.wording import apart, rows_apart, short, short_row
from specverify.reference import Tokens
from specverify.reference.warpers import min_p, top_k, top_p
from specverify.subjects.subject import InScenario

PADDED_RESIDUAL = "norm(max(p - q, 0)) with q = (0.75, 0, ..., 0.25), the row that q has at padded positions"
PADDED_ROW = "(1, 0, ...), the row that p has at padded positions"
LEAST_OPEN_DRAFTS = 3
MOST_NAMES = 3
"""The largest number of formulas that a sentence names if several fit all observations."""
GUESSED = " because no draw chooses the draft"
"""Follows "q = 1" in a message about a draft for which an engine draws nothing."""


class Context(NamedTuple):
    """A text, with the rows of p and q after it. ``q`` is None if q is not used there."""

    text: Tokens
    p: Row
    q: Row | None = None


class RoundFault(NamedTuple):
    """A sentence about how the rounds of a decoder differ from speculative sampling, and the parts that differ."""

    sentence: str
    parts: frozenset[str]
    """The wrong parts: a subset of ``accept``, ``replace`` and ``bonus``."""
    named: bool = True
    """Whether another rule that fits all numbers is named; else the sentence only quotes numbers."""
    contexts: tuple[Context, ...] = ()
    """The texts of the numbers in the sentence, with their rows of p and q."""
    whole: bool = True
    """Whether the named rules explain all wrong parts; else other parts differ for another reason."""


def fault_of_rounds(here: InScenario, later: Sequence[GivenDrafts] = ()) -> RoundFault | None:
    """Return how the rounds of the decoder ``here`` differ from the rule; None if they follow it.

    The first rounds and the rounds ``later`` are examined. To name the formula of a wrong decoder, rounds in the
    scenarios ``GENERIC`` are used too.
    """
    mine = (*rounds_given_drafts(here), *later)
    if not any(given.goes_on or any(is_wrong(given, part) for part in PARTS) for given in mine):
        return None
    parameters = _parameters(here.variant.label)
    fault = _named([*mine, *rounds_elsewhere(here)], parameters)
    if parameters and parameters.partition(",")[0] not in fault.sentence:
        fault = fault._replace(sentence=f"{fault.sentence} (under {parameters})")
    row = here.variant.label.partition(", ")[2]
    if not row.startswith("row"):
        return fault
    if not fault.named and _is_right_alone(here):
        sentence = f"{row.replace(' beside', ' is right alone and wrong beside', 1)}: {fault.sentence}"
        return fault._replace(sentence=sentence)
    return fault._replace(sentence=f"{fault.sentence}, in {row}")


@lru_cache(maxsize=64)
def fault_of_labelled_blocks(here: InScenario) -> RoundFault | None:
    """Return the fault of the decoder ``here`` if it follows a part of block verification; None if it does not.

    The decoder has no ``propose`` function, but labels the draws of its drafts. Its first rounds are examined, here and
    in further scenarios.
    """
    places = [here, *(here._replace(scenario=scenario) for scenario in (*GENERIC, WIDE))]
    rounds = [given for place in places for given in rounds_by_labels(place, place.decoder.init(place.prompt))]
    if not (sentence := block_fault(rounds)):
        return None
    wrong = frozenset(part for part in PARTS if any(is_wrong(given, part) for given in rounds))
    return RoundFault(sentence, wrong, contexts=_contexts(rounds, ("replace",)))


def _is_right_alone(here: InScenario) -> bool:
    """Return whether the first rounds of the decoder ``here`` follow the rule if its row is alone in the batch."""
    if here.variant.alone is None:
        return False
    alone = rounds_given_drafts(here._replace(variant=here.variant._replace(build=here.variant.alone)))
    return bool(alone) and not any(is_wrong(given, part) for given in alone for part in PARTS)


def rounds_elsewhere(here: InScenario) -> list[GivenDrafts]:
    """Return the rounds of the decoder ``here`` in further scenarios, in which wrong formulas give different numbers.

    So these rounds show which of several formulas the decoder uses.
    """
    result: list[GivenDrafts] = []
    for scenario in (*GENERIC, WIDE):
        if scenario != here.scenario:
            result += (given._replace(elsewhere=True) for given in _elsewhere(here._replace(scenario=scenario)))
    return result


def _parameters(label: str) -> str:
    """Return the sampling parameters in the label of a variant, separated by commas."""
    return ", ".join(re.findall(r"\b(?:temperature|top_k|top_p|min_p|typical_p|penalty)=[^,\s]+", label))


def _temperature(parameters: str) -> float:
    """Return the temperature in a text of sampling parameters; 1 if none is set."""
    value = re.search(r"\btemperature=([0-9.e+-]+)", parameters)
    return float(value[1]) if value else 1.0


FEW_ROUNDS = 9
"""With fewer sequences of drafts after the prompt of a scenario, the rounds of two later states are examined too."""


def _elsewhere(here: InScenario) -> tuple[GivenDrafts, ...]:
    try:
        result = rounds_given_drafts(here, states=1)
        return result if len(result) >= FEW_ROUNDS else rounds_given_drafts(here, states=3)
    except Exception:  # noqa: BLE001 - a round that fails elsewhere adds nothing to what was seen
        return ()


def named_fault(all_given: Sequence[GivenDrafts], parameters: str) -> RoundFault | None:
    """Return how the rounds ``all_given`` differ from the rule; None if each round follows it.

    ``parameters`` are the sampling parameters as text.
    """
    return (
        _named(all_given, parameters) if any(is_wrong(given, part) for given in all_given for part in PARTS) else None
    )


def _named(all_given: Sequence[GivenDrafts], parameters: str) -> RoundFault:
    wrong = [part for part in PARTS if any(is_wrong(given, part) for given in all_given)]
    if goes_on := next((given.goes_on for given in all_given if given.goes_on), ""):
        return RoundFault(goes_on, frozenset(wrong))
    if not all_given[0].of_engine and (blocks := block_fault(all_given)):
        return RoundFault(blocks, frozenset(wrong), contexts=_contexts(all_given, ("replace",)))
    if "bonus" in wrong and not all_given[0].of_engine and follows_blocks(all_given):
        wrong = ["bonus"]
    hidden = _all_values_fit(all_given, lambda given: given.rows)  # rounding may be as large as the difference
    other = "" if hidden else _other_rows(all_given, parameters)
    if other:
        contexts = _contexts(all_given, wrong[:1])
        return RoundFault(f"{other}: {_example(all_given, wrong[0])}", frozenset(wrong), contexts=contexts)
    if (alike := _same_row_twice(all_given, wrong, parameters) or _same_number_twice(all_given, wrong)) is not None:
        return RoundFault(alike, frozenset(wrong), contexts=_contexts(all_given, ("replace", "bonus"), briefly=True))
    names = [part for part in wrong if _rule_sentence(all_given, part, parameters)]
    told = (names or wrong[:1])[:2]
    said = "; ".join(_sentence(all_given, part, parameters) for part in told)
    contexts = _contexts(all_given, told, briefly=bool(names))
    return RoundFault(said, frozenset(wrong), bool(names), contexts, whole=set(names) == set(wrong))


def _same_row_twice(all_given: Sequence[GivenDrafts], wrong: Sequence[str], parameters: str) -> str | None:
    """Return the sentence that replacement and bonus follow the same wrong formula; None if they do not.

    ``wrong`` are the parts ("accept", "replace", "bonus") that differ from the rule in the rounds ``all_given``.
    ``parameters`` are the sampling parameters as text.
    """
    if not {"replace", "bonus"} <= set(wrong):
        return None
    name = _name(all_given, "replace", parameters)
    if not name or name != _name(all_given, "bonus", parameters):
        return None
    ought = "norm(max(p - q, 0)) after a rejection and p after the last draft"
    return f"each token that is not a draft is drawn from {name}, expected {ought}: " + "; ".join(
        _example(all_given, part, briefly=True) for part in ("replace", "bonus")
    )


def _same_number_twice(all_given: Sequence[GivenDrafts], wrong: Sequence[str]) -> str | None:
    """Return the sentence that one formula with a free number gives replacement and bonus; None if none does.

    For a bonus the formula is used with q = 0. ``wrong`` are the parts ("accept", "replace", "bonus") that differ from
    the rule in the rounds ``all_given``.
    """
    if not {"replace", "bonus"} <= set(wrong):
        return None
    rule = replace_rule([*_replaced(all_given), *_bonuses(all_given)])
    if not rule:
        return None
    ought = "norm(max(p - q, 0)) after a rejection and p after the last draft, where q is 0"
    return f"each token that is not a draft is drawn from {rule}, expected {ought}: " + "; ".join(
        _example(all_given, part, briefly=True) for part in ("replace", "bonus")
    )


def _replaced(all_given: Sequence[GivenDrafts]) -> list[Replaced]:
    return [
        Replaced(given.rows.p[i], given.rows.q[i], law, error_of(given, "replace", i))
        for given in all_given
        for i, law in values_of(given, "replace")
    ]


def _bonuses(all_given: Sequence[GivenDrafts]) -> list[Replaced]:
    """Return the observed laws of bonus tokens in ``all_given``, in the form of replacements with q = 0.

    So the formulas for a replacement, such as norm(max(p - q, 0)), can be tried on a bonus too.
    """
    return [
        Replaced(given.rows.p[i], [0] * len(given.rows.p[i]), law, given.slack)
        for given in all_given
        for i, law in values_of(given, "bonus")
    ]


def _sentence(all_given: Sequence[GivenDrafts], part: str, parameters: str) -> str:
    rule = _rule_sentence(all_given, part, parameters)
    return f"{rule}: {_example(all_given, part, briefly=True)}" if rule else _example(all_given, part)


def _rule_sentence(all_given: Sequence[GivenDrafts], part: str, parameters: str) -> str:
    """Return the sentence about the wrong formula that one part of the rounds follows; "" if none fits.

    ``part`` is "accept", "replace" or "bonus", ``all_given`` are the rounds, and ``parameters`` the sampling parameters
    as text.
    """
    name = _name(all_given, part, parameters)
    if part == "accept":
        name = name or ("" if all_given[0].of_engine else depends_on_later(all_given))
        at = _line_of_test(all_given) if name == ONE_NUMBER else ""
        return f"drafts are accepted {name}{at}, expected min(1, p/q)" if name else ""
    if name in POINTS:
        if part == "replace":
            return f"a rejected draft is replaced by {name}, expected a draw from norm(max(p - q, 0))"
        row = _row_of_bonus(all_given)
        drawn = f", or is drawn from {row}" if row else ""
        return f"the bonus token is {name}{drawn}, expected a draw from p after the last draft"
    if part == "replace":
        return f"a rejected draft is replaced by a draw from {name}, expected norm(max(p - q, 0))" if name else ""
    return f"the bonus token is drawn from {name}, expected p after the last draft" if name else ""


def _line_of_test(all_given: Sequence[GivenDrafts]) -> str:
    """Return the program line that tests drafts, in brackets, for a message; "" if there is not exactly one.

    ``all_given`` are the observed rounds.
    """
    lines = {place for given in all_given for (role, _), place in given.places.items() if role == "accept" and place}
    return f" ({lines.pop()})" if len(lines) == 1 else ""


def _row_of_bonus(all_given: Sequence[GivenDrafts]) -> str:
    """Return the name of a wrong row from which every observed bonus may be drawn; "" if there is none.

    The rows of ``BONUS`` are tried in order, without the formulas in ``POINTS``, which give one token with certainty.
    ``all_given`` are the rounds.
    """
    seen = [(given, i, law) for given in all_given for i, law in values_of(given, "bonus")]
    rows = (name for name in BONUS if name not in POINTS and "row" in name)
    return next((name for name in rows if _is_drawn_by(seen, BONUS[name])), "")


_WARPERS: Mapping[str, tuple[Callable[[Any, Any], Any], type[int | float]]] = {
    "top_k": (top_k, int),
    "top_p": (top_p, float),
    "min_p": (min_p, float),
}
"""Sampling parameter -> the warper of a pmf, and the type of its argument."""


def _warped_residuals(parameters: str) -> dict[str, Any]:
    """Return name -> formula of a residual to which one of the sampling ``parameters`` is applied again."""

    def formula(warper: Callable[[Any, Any], Any], value: float, rows: ModelRows, drafts: Tokens, i: int) -> Row:
        residual = np.array([float(mass) for mass in excess(rows.p[i], rows.q[i])])
        result: Row = warper(residual, value).tolist()
        return result

    result: dict[str, Any] = {}
    for name, value in re.findall(rf"\b({'|'.join(_WARPERS)})=([0-9.]+)", parameters):
        warper, number = _WARPERS[name]
        result[f"the residual with {name}={value} applied a second time"] = partial(formula, warper, number(value))
    return result


def _name(all_given: Sequence[GivenDrafts], part: str, parameters: str) -> str:
    """Return the name of a formula that fits all observed values of ``part`` in the rounds; "" if none fits.

    ``part`` is "accept", "replace" or "bonus", and ``all_given`` are the rounds. If several formulas fit, ``_joined``
    selects the names; but if all rows then have only two tokens, the result is "", because too many formulas agree on
    such rows. ``parameters`` are the sampling parameters as text.
    """
    if all_given[0].of_engine and not _tells(all_given, (part,)):
        return _one_token(all_given, part)
    seen = [(given, i, value) for given in all_given for i, value in values_of(given, part)]
    fitting = []
    formulas: dict[str, Any] = dict({"accept": ACCEPT, "replace": REPLACE, "bonus": BONUS}[part])
    if part == "replace" and not _tells(all_given, (part,)):  # a certain token fits too many rows
        formulas = dict(REPLACE_OF_ROW)
    if part == "replace":
        formulas = {**_warped_residuals(parameters), **formulas}
    if part == "bonus" and all_given[0].is_padded:
        formulas[PADDED_ROW] = lambda rows, drafts, i: [1, *(0 for _ in rows.p[i][1:])]
        formulas[PADDED_RESIDUAL] = lambda rows, drafts, i: excess(rows.p[i], [0.75, *(0 for _ in rows.p[i][2:]), 0.25])
    for name, formula in formulas.items():
        if all(fits(value, formula(given.rows, given.drafts, i), error_of(given, part, i)) for given, i, value in seen):
            fitting.append(name)
    if not fitting and (of_parameters := _fault_of_parameters(all_given, part, parameters)):
        return of_parameters
    if not fitting:
        return _further_rule(seen, part, parameters)
    return _joined(fitting, part) if len(fitting) == 1 or any(len(given.rows.p[0]) > 2 for given in all_given) else ""


def _further_rule(seen: Sequence[tuple[GivenDrafts, int, Any]], part: str, parameters: str) -> str:
    """Return the name of a wrong rule that fits all observations ``seen`` of one part of a round; "" if none fits.

    The rules tried here have a free number, use a changed row, or are wrong in some rounds only. ``seen`` has (round,
    position, observed value), ``part`` is "accept", "replace" or "bonus", and ``parameters`` are the sampling
    parameters as text.
    """
    changed = further_formula(seen, part) or name_of_change(seen, part)
    if part == "accept":
        return changed or accept_rule([_accepted(*one) for one in seen]) or step_rule(seen)
    if part == "bonus":
        rule = replace_rule(_bonuses([given for given, _, _ in seen])).replace("max(p - q, 0)", "p")
        named = changed or (rule if rule and " q" not in rule else _after_several_drafts(seen))
        return named or _bonus_less_q(seen)
    if changed or (changed := kept_draft(seen)):
        return changed
    with_nan = (name for name, formula in REPLACE_WITH_NAN.items() if _is_drawn_by(seen, formula))
    laws = [Replaced(given.rows.p[i], given.rows.q[i], law, error_of(given, part, i)) for given, i, law in seen]
    return next(with_nan, "") or replace_rule(laws, _temperature(parameters))


def _bonus_less_q(seen: Sequence[tuple[GivenDrafts, int, Any]]) -> str:
    """Return the formula of a bonus from which a multiple of q at the last draft is subtracted; "" if it does not fit.

    ``seen`` are (round, position, observed law).
    """
    laws = [Replaced(given.rows.p[i], given.rows.q[i - 1], law, given.slack) for given, i, law in seen if i]
    rule = replace_rule(laws)
    return f"{rule} with q before the last draft" if rule.startswith("norm(max(p - ") and " q, 0))" in rule else ""


def _one_token(all_given: Sequence[GivenDrafts], part: str) -> str:
    """Return the name of the only formula in ``POINTS`` that gives every observed token of ``part``; "" if none does.

    These formulas, such as an argmax, give one token with certainty. The result is "" too if fewer than two different
    wrong tokens are observed, because several formulas give the same single token. ``part`` is "accept", "replace" or
    "bonus"; for "accept", which has no token, the result is that of ``_without_number``. ``all_given`` are the rounds.
    """
    seen = [(given, i, law) for given in all_given for i, law in values_of(given, part)]
    if part == "accept":
        return _without_number(seen)
    if not all(max(map(float, law.values())) > 1 - 1e-6 for _, _, law in seen):
        return ""
    formulas = REPLACE if part == "replace" else BONUS
    wrong = {
        max(law, key=law.__getitem__)
        for given, i, law in seen
        if not fits(law, expected(given, part, i, given.rows), error_of(given, part, i))
    }
    fitting = [name for name in sorted(POINTS & formulas.keys()) if _is_drawn_by(seen, formulas[name])]
    return fitting[0] if len(wrong) > 1 and len(fitting) == 1 else ""


def _without_number(seen: Sequence[tuple[GivenDrafts, int, Any]]) -> str:
    """Return the only known acceptance rule that gives the acceptances ``seen``; "" if none or several do.

    The function is called if every wrong acceptance probability in ``seen`` is 0 or 1. A rule without a random number
    gives such values, for example "accept if p is at least q". For at least ``LEAST_OPEN_DRAFTS`` different drafts, the
    right probability min(1, p/q) must be strictly between 0 and 1. If no known rule fits, a rule with a threshold is
    searched (``step_rule``).
    """
    open_ones = {
        (given.rows.p[i], given.drafts[i])
        for given, i, _ in seen
        if 1e-6 < expected(given, "accept", i, given.rows) < 1 - 1e-6
    }
    if len(open_ones) < LEAST_OPEN_DRAFTS:
        return ""
    fitting = [
        name
        for name, formula in ACCEPT_OF_ROW.items()
        if all(fits(value, formula(given.rows, given.drafts, i), given.slack) for given, i, value in seen)
    ]
    return fitting[0] if len(fitting) == 1 else "" if fitting else step_rule(seen)


def _after_several_drafts(seen: Sequence[tuple[GivenDrafts, int, Any]]) -> str:
    """Return the name of a wrong formula for the bonus after two drafts or more; "" if none fits.

    The bonus after one draft must be observed, and be right. ``seen`` has (round, position, observed law).
    """
    several = [one for one in seen if len(one[0].drafts) > 1]
    single = [one for one in seen if len(one[0].drafts) == 1]
    if not several or not single or not _is_drawn_by(single, lambda rows, drafts, i: scaled(rows.p[i])):
        return ""
    name = next((name for name, formula in BONUS.items() if _is_drawn_by(several, formula)), "")
    return name and f"{name} (after a single draft it is right)"


def _joined(fitting: Sequence[str], part: str) -> str:
    """Return words that name the wrong formula of ``part``, if all formulas called ``fitting`` fit the observations.

    ``part`` is "accept", "replace" or "bonus". The words are the first name. Exception: for "accept" and "replace", if
    the first formula uses rows of other positions than the draft's, up to ``MOST_NAMES`` names are joined by "or".
    """
    other_rows = part != "bonus" and fitting and fitting[0] not in {**ACCEPT_OF_ROW, **REPLACE_OF_ROW}
    return ", or ".join(fitting[: MOST_NAMES if other_rows else 1])


def _fault_of_parameters(all_given: Sequence[GivenDrafts], part: str, parameters: str) -> str:
    """Name a mistake in sampling parameters that explains how ``part`` differs from the rule; "" if none does.

    ``part`` is the part of a round: "accept", "replace" or "bonus". A mistake changes p or q, for example if top-k is
    left out. It explains the part if the rule with the changed p or q gives all its observed values. Mistakes are not
    tried for "accept". ``all_given`` are the rounds, and ``parameters`` the right parameters as text.
    """
    if part == "accept" or not _tells(all_given, (part,)):
        return ""
    before = f"taken before {parameters or 'the sampling parameters'} is applied"
    tries: list[tuple[str, Callable[[GivenDrafts], ModelRows | None]]] = [
        (f"p is {before}", _raw_p),
        (f"q is {before}", _raw_q),
        (f"p and q are {before}", _raw_both),
        *((said, partial(_other, said)) for said in all_given[0].others),
    ]
    values = [(given, i, seen) for given in all_given for i, seen in values_of(given, part)]
    if all(value_fits(given, part, i, seen, given.rows) for given, i, seen in values):
        return ""  # rows so near the right ones that rounding hides the difference would fit too
    for said, change in tries:
        if all(
            (rows := change(given)) is not None and value_fits(given, part, i, seen, rows) for given, i, seen in values
        ):
            rows_said = said.replace(" is ", " ", 1).replace(" are ", " ", 1)
            return rows_said if part == "bonus" else f"norm(max(p - q, 0)) with {rows_said}"
    return ""


def _other(said: str, given: GivenDrafts) -> ModelRows | None:
    return given.others.get(said)


def _accepted(given: GivenDrafts, i: int, value: Any) -> Accepted:
    p, q = (float(row[given.drafts[i]]) for row in (given.rows.p[i], given.rows.q[i]))
    return Accepted(p, q, float(value), given.slack, tuple(float(mass) for mass in given.rows.p[i]))


def _is_drawn_by(seen: Sequence[tuple[GivenDrafts, int, Any]], formula: RowFormula) -> bool:
    return all(
        fits(
            law,
            formula(given.rows, given.drafts, i),
            error_of(given, "replace" if i < len(given.drafts) else "bonus", i),
        )
        for given, i, law in seen
    )


def _other_rows(all_given: Sequence[GivenDrafts], parameters: str) -> str:
    """Return the sentence about wrong rows of p or q with which the rounds follow the rule; "" if none fit.

    ``all_given`` are the rounds, and ``parameters`` the sampling parameters as text.
    """
    if not _tells(all_given):
        return _only_fault_of_parameters(all_given)
    before = f"taken before {parameters or 'the sampling parameters'} is applied"
    for said, change in (
        (f"p is {before}", _raw_p),
        (f"q is {before}", _raw_q),
        (f"p and q are {before}", _raw_both),
        ("p and q are exchanged", lambda given: ModelRows(given.rows.q, given.rows.p)),
    ):
        if _all_values_fit(all_given, change):
            return said
    fitting = [said for said in all_given[0].others if _all_values_fit(all_given, partial(_other, said))]
    if fitting:
        verb = " are " if " are " in fitting[0] else " is "
        model, _, first = fitting[0].partition(verb)
        same = [said.removeprefix(f"{model}{verb}") for said in fitting[1:] if said.startswith(f"{model}{verb}")]
        return f"{model}{verb}{', or '.join([first, *same])}"
    power = further_power(all_given)
    if power and _all_values_fit(
        all_given, lambda given: given.rows._replace(p=tuple(powered(row, power) for row in given.rows.p))
    ):
        value = short(1 / power)
        twice = f"temperature={value}" in parameters
        return f"the temperature {value} is applied twice to p" if twice else f"p has a further temperature of {value}"
    power = further_power_of_q(all_given)
    if (
        power
        and short(power) != "1"
        and _all_values_fit(
            all_given, lambda given: given.rows._replace(q=tuple(powered(row, power) for row in given.rows.q))
        )
    ):
        value = f"without a temperature of {short(power)}" if power < 1 else f"with a temperature of {short(1 / power)}"
        return f"q is used {value} in tests and replacements, other than in the draws of drafts"
    changed = change_of_rounds(
        {part: [(given, i, value) for given in all_given for i, value in values_of(given, part)] for part in PARTS}
    )
    return f"the rounds use {changed}" if changed else counted_drafts(all_given)


def _only_fault_of_parameters(all_given: Sequence[GivenDrafts]) -> str:
    """Return the one mistake in the sampling parameters that explains the rounds; "" if none or several do.

    A mistake explains the rounds if they follow the rule with these wrong parameters. The same mistake in p alone, and
    in p and q, counts as one. ``all_given`` are rounds whose wrong values are all 0 or 1.
    """
    fitting = [said for said in all_given[0].others if _all_values_fit(all_given, partial(_other, said))]
    return fitting[0] if len({said.partition(" taken ")[2] for said in fitting}) == 1 else ""


def _tells(all_given: Sequence[GivenDrafts], parts: Sequence[str] = PARTS) -> bool:
    """Return whether the wrong values in the rounds ``all_given`` can tell formulas apart: one lies between 0 and 1.

    If all wrong values are 0 or 1, too many formulas fit them. Only the ``parts`` ("accept", "replace", "bonus") count.
    """
    for given in all_given:
        for part in parts:
            for i, seen in values_of(given, part):
                masses = [float(mass) for mass in (seen.values() if isinstance(seen, Mapping) else [seen])]
                if not fits(seen, expected(given, part, i, given.rows), error_of(given, part, i)) and any(
                    1e-6 < mass < 1 - 1e-6 for mass in masses
                ):
                    return True
    return False


def _raw_p(given: GivenDrafts) -> ModelRows | None:
    return given.raw and given.rows._replace(p=given.raw.p)


def _raw_q(given: GivenDrafts) -> ModelRows | None:
    return given.raw and given.rows._replace(q=given.raw.q)


def _raw_both(given: GivenDrafts) -> ModelRows | None:
    return given.raw


def _all_values_fit(all_given: Sequence[GivenDrafts], change: Callable[[GivenDrafts], ModelRows | None]) -> bool:
    for given in all_given:
        rows = change(given)
        if rows is None:
            return False
        for part in PARTS:
            for i, seen in values_of(given, part):
                if not value_fits(given, part, i, seen, rows):
                    return False
    return True


def _example(all_given: Sequence[GivenDrafts], part: str, *, briefly: bool = False) -> str:
    """Return a sentence with an observed value of ``part`` that differs from the rule; "" if none does.

    ``part`` is "accept", "replace" or "bonus", and ``all_given`` are the rounds. ``briefly``: leave out what another
    sentence already states about the wrong formula.
    """
    first = _first_wrong(all_given, part, briefly=briefly)
    if first is None:
        return ""
    given, i, seen, said = first
    told = _numbers(given, part, i, seen, said, briefly=briefly)
    same = len(given.rows.p[0]) == len(all_given[0].rows.p[0]) and given.rows.p[0] == all_given[0].rows.p[0]
    if same or part != "replace" or given.of_engine:
        return told
    rows = f"p = {short_row(given.rows.p[i])} and q = {short_row(given.rows.q[i])}"
    return f"{told}, {'in another case, with' if given.elsewhere else 'where'} {rows}"


def _first_wrong(
    all_given: Sequence[GivenDrafts], part: str, *, briefly: bool
) -> tuple[GivenDrafts, int, Any, Any] | None:
    """Return the observation of ``part`` that ``_example`` quotes as wrong; None if all are right.

    ``part`` is "accept", "replace" or "bonus", and ``all_given`` are the rounds. The result is (round, position,
    observed value, expected value). A deviation is left out if it is much smaller than the largest one. With
    ``briefly``, an instructive observation is preferred to the first one (``_is_telling``).
    """
    found = [
        (given, i, seen, said)
        for given in all_given
        for i, seen in values_of(given, part)
        if not fits(seen, said := expected(given, part, i, given.rows), error_of(given, part, i))
    ]
    largest = max((deviation(seen, said) for _, _, seen, said in found), default=0.0)
    found = [one for one in found if deviation(one[2], one[3]) >= SHARE * largest]
    shows = [one for one in found if part == "bonus" or _is_telling(one[0], part, one[1])]
    placed = [one for one in shows if (part, one[1]) in one[0].places]
    if part == "accept" and placed and placed[0][0].of_engine:  # a test that surely passes has no line
        shows = placed
    return next(iter(shows if briefly and shows else found), None)


def _contexts(all_given: Sequence[GivenDrafts], parts: Sequence[str], *, briefly: bool = False) -> tuple[Context, ...]:
    """Return the rows of p and q with which a reader can check the examples of a message by hand.

    There is a text with its rows for each quoted observation of ``parts``. Observations of other scenarios are left
    out. A bonus has no row of q. ``all_given`` are the rounds, and ``briefly`` is as in ``_first_wrong``.
    """
    result = []
    for part in parts:
        first = _first_wrong(all_given, part, briefly=briefly)
        if first is not None and not first[0].elsewhere:
            given, i, _, _ = first
            q = given.rows.q[i] if i < len(given.drafts) else None
            result.append(Context(given.prefix + given.drafts[:i], given.rows.p[i], q))
    return tuple(result)


def _is_telling(given: GivenDrafts, part: str, i: int) -> bool:
    """Return whether an observed value is a good example of a fault: it shows more than a trivial value such as 1.

    It is the value of ``part`` ("accept", "replace" or "bonus") at position ``i`` of the round ``given``. A replacement
    needs a q without zeros, an acceptance a q below 1.
    """
    q = given.rows.q[i]
    return all(mass > 0 for mass in q) if part == "replace" else q[given.drafts[i]] < 1


def _numbers(given: GivenDrafts, part: str, i: int, seen: Any, said: Any, *, briefly: bool) -> str:
    place = given.places.get((part, i), "")
    place += ", which drew the draft too" * (part == "replace" and place == given.places.get(("draft", i)) != "")
    at = f" ({place})" if place else ""
    draft = f"draft {i + 1}, token {given.drafts[i]}" if i < len(given.drafts) else ""
    guessed = bool(draft) and given.of_engine and ("draft", i) not in given.places
    guessed = guessed and given.rows.q[i][given.drafts[i]] == 1
    if guessed:  # a certain token before it may be an earlier draft of the round: it has no number
        draft = f"the draft {given.drafts[i]} after {given.prefix + given.drafts[:i]}"
    if part == "accept":
        p, q = given.rows.p[i][given.drafts[i]], given.rows.q[i][given.drafts[i]]
        does, ought = apart(seen, said)
        which = f"{draft} (p = {short(p)}, q = {short(q)}{GUESSED if guessed else ''})"
        if briefly:
            return f"{which} with {does} instead of {ought}{at}"
        return f"{which} is accepted with probability {does}{at}, expected {ought} = min(1, p/q)"
    size = len(given.rows.p[0])
    outside = sorted(set(seen) - set(range(size)))
    more = f", and token {outside[0]} outside of the vocabulary" if outside else ""
    does, ought = rows_apart([seen.get(token, 0) for token in range(size)], said)
    does += more
    if briefly:
        which = f"in place of {draft}: " if part == "replace" else "" if given.drafts else "without drafts "
        return f"{which}drawn from {does} instead of {ought}{at}"
    if part == "replace":
        p, q = given.rows.p[i], given.rows.q[i]
        near = error_of(given, part, i)
        known = [("p", p), ("q", q)]
        if guessed:  # the residual is p without the draft
            others = (token for token in range(size) if token != given.drafts[i])
            known += [(f"p without token {token}", scaled(without(p, token))) for token in others if p[token] > 0]
        telling = [(name, row) for name, row in known if max(row) < 1]  # many rules draw one certain token
        row = next((name for name, row in telling if not outside and fits(seen, row, near)), "")
        does += f" = {row}" if row else ""
        which = draft if guessed else f"{draft},"
        return f"{which} is rejected and replaced by a draw from {does}{at}, expected {ought} = norm(max(p - q, 0))"
    if not given.drafts:
        return f"the token of a row without drafts is drawn from {does}{at}, expected {ought} = p"
    return f"after the last draft the bonus token is drawn from {does}{at}, expected {ought} = p"
