"""What a round does given its drafts, beside the rule of speculative sampling, and the name of the difference.

The rule (2211.17192, Algorithm 1): draft x is accepted with probability min(1, p(x)/q(x)), a rejected one is replaced
by a draw from norm(max(p - q, 0)), and after the last draft comes a bonus token from p. A round is enumerated with
every draft. Each of the three parts is compared with the rule and, where it differs, with other formulas. A name stands
here only if a formula fits every number that was computed: as rationals, or within the rounding of floats.

This explains a refutation and refutes nothing: a lossless round may follow another rule.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.check import slack
from specverify.checks.explaining.drawn_trees import is_tree
from specverify.checks.explaining.round_rules import (
    ACCEPT,
    BONUS,
    REPLACE,
    REPLACE_WITH_NAN,
    ModelRows,
    Row,
    RowFormula,
    excess,
    ratio,
    scaled,
)
from specverify.checks.explaining.wording import apart, short, short_row
from specverify.laws.draws import BELOW, Decision
from specverify.laws.paths import paths
from specverify.laws.rounding import FLOAT32
from specverify.laws.scenarios import Scenario
from specverify.reference import Draft, LanguageModel, Pmf, Round, State, Tokens
from specverify.reference.models import draft_model
from specverify.reference.warpers import warped
from specverify.subjects.subject import InScenario
from specverify.subjects.warped_tasks import Processed

MOST_PATHS = 3000
"""Of a round; one that has more is not explained."""
MOST_STATES = 4
LARGEST_VOCABULARY = 8
GENERIC = (Scenario("generic", 3, (0, 1, 0), 4, seed=2),)
"""Where a formula is looked for besides: with two tokens many formulas are one."""
PADDED_ROW = "(1, 0, ...), the row that p has at padded positions"
GUESSED = ", as it is not drawn"
"""What stands behind q = 1 of a draft for which an engine draws nothing."""

Law = Mapping[int, Any]


class GivenDrafts(NamedTuple):
    """What a round does once its drafts are known."""

    prefix: Tokens
    drafts: Tokens
    rows: ModelRows
    raw: ModelRows | None
    """The same rows before the sampling parameters are applied, where there are such."""
    accept: tuple[Any, ...]
    """P(draft i is accepted), given that those before it are; as far as that is reached."""
    replace: Mapping[int, Law]
    """Rejected draft -> the law of the token in its place."""
    bonus: Law | None
    """The law of the token behind the last draft, where all can be accepted and one follows."""
    has_bonus: bool
    """Whether a token comes behind the last draft."""
    places: Mapping[tuple[str, int], str]
    """Lines of the program: ``("accept", i)``, ``("replace", i)``, ``("bonus", gamma)``."""
    slack: float
    """How far rounding can move one of these probabilities."""
    others: Mapping[str, ModelRows] = {}
    """Rows that may stand in the place of the right ones, by the sentence about them."""
    of_engine: bool = False
    """Whether this was read off the path of an engine."""
    is_padded: bool = False
    """Whether the rows of p go on behind the drafts, up to the longest row of a batch."""


class RoundFault(NamedTuple):
    """What is wrong with the rounds of a decoder."""

    sentence: str
    parts: frozenset[str]
    """Which of ``accept``, ``replace`` and ``bonus``."""
    named: bool = True
    """Whether another rule fits all of it; else numbers are told."""


def expected_accept(given: GivenDrafts, i: int) -> Any:
    """Return what the rule says of draft i."""
    token = given.drafts[i]
    return ratio(given.rows.p[i][token], given.rows.q[i][token])


# What a round does


def fault_of_rounds(here: InScenario) -> RoundFault | None:
    """Return what the rounds of a decoder do otherwise than the rule says, or None where nothing or too much does."""
    mine = rounds_given_drafts(here)
    if not mine or not any(_is_wrong(given, part) for given in mine for part in PARTS):
        return None
    others: list[GivenDrafts] = []
    for scenario in GENERIC:
        if scenario != here.scenario:
            others += _elsewhere(here._replace(scenario=scenario))
    parameters = _parameters(here.variant.label)
    fault = _named([*mine, *others], parameters)
    if parameters and parameters.partition(",")[0] not in fault.sentence:
        fault = fault._replace(sentence=f"{fault.sentence} (under {parameters})")
    row = here.variant.label.partition(", ")[2]
    return fault._replace(sentence=f"{fault.sentence}, in {row}") if row.startswith("row") else fault


def _parameters(label: str) -> str:
    """Return the sampling parameters that are set, as they stand in the label of a variant."""
    return ", ".join(re.findall(r"\b(?:temperature|top_k|top_p|min_p|typical_p|penalty)=[^,\s]+", label))


def _elsewhere(here: InScenario) -> tuple[GivenDrafts, ...]:
    try:
        return rounds_given_drafts(here, states=1)
    except Exception:  # noqa: BLE001 - a round that fails elsewhere adds nothing to what was seen
        return ()


@lru_cache(maxsize=512)
def rounds_given_drafts(here: InScenario, states: int = MOST_STATES) -> tuple[GivenDrafts, ...]:
    """Return what the first rounds of a decoder do given each of their drafts; nothing for trees and large rounds."""
    decoder = here.decoder
    if decoder.propose is None or here.scenario.vocabulary > LARGEST_VOCABULARY:
        return ()
    result: list[GivenDrafts] = []
    open_states, seen = [decoder.init(here.prompt)], set[State]()
    while open_states and len(seen) < states:
        state = open_states.pop(0)
        if state in seen or state.remaining <= 0:
            continue
        seen.add(state)
        here_found, after = given_from_state(here, state)
        result += here_found
        open_states += after
    return tuple([given for given in result if given.drafts] or result)


@lru_cache(maxsize=512)
def given_from_state(here: InScenario, state: State) -> tuple[list[GivenDrafts], list[State]]:
    """Return what the round from a state does given each of its drafts, and the states behind it."""
    decoder = here.decoder
    if (propose := decoder.propose) is None:
        return [], []
    drafts: dict[Tokens, Draft] = {}
    for proposed in islice(paths(lambda draws: propose(draws, state)), MOST_PATHS):
        drafts[proposed.outcome.tokens] = proposed.outcome
    if any(is_tree(draft) for draft in drafts.values()):
        return [], []
    runs: dict[Tokens, list[Any]] = defaultdict(list)
    after: dict[State, None] = {}
    for number, path in enumerate(paths(lambda draws: decoder.step(draws, state))):
        if number == MOST_PATHS:
            return [], []
        reached, done = path.outcome
        runs[done.draft].append((path, done))
        after[reached] = None
    given = [_given(here, state, draft, runs[tokens]) for tokens, draft in drafts.items() if tokens in runs]
    return given, list(after)


def round_given(here: InScenario, state: State, drafts: Tokens) -> GivenDrafts | None:
    """Return what the round from a state does given its drafts, or None where it is too large or drafts a tree."""
    return next((given for given in given_from_state(here, state)[0] if given.drafts == drafts), None)


def _given(here: InScenario, state: State, draft: Draft, runs: Sequence[Any]) -> GivenDrafts:
    task, tokens, gamma = here.task, draft.tokens, len(draft.tokens)
    reached: dict[int, Any] = defaultdict(int)
    ends: dict[int, dict[int, Any]] = defaultdict(lambda: defaultdict(int))
    epsilon = FLOAT32
    bonus = any(len(done.tokens) > gamma for _, done in runs)
    for path, done in runs:
        epsilon, accepted = max(epsilon, path.rounding.epsilon), accepted_of(here, done, bonus=bonus)
        for i in range(accepted + 1):
            reached[i] += path.weight
        if len(done.tokens) > accepted:
            ends[accepted][done.tokens[accepted]] += path.weight
    total = reached[0]
    accept = tuple(reached[i + 1] / reached[i] for i in range(gamma) if reached[i] > 1e-9 * float(total))
    laws = {i: {token: mass / sum(law.values()) for token, mass in law.items()} for i, law in ends.items()}
    lasts = {i: laws[i] for i in laws if i < gamma and float(sum(ends[i].values())) > 1e-9 * float(total)}
    raw = None
    if isinstance(task.target, Processed) and isinstance(task.draft, Processed):
        raw = _rows(_unprocessed(task.target), _unprocessed(task.draft), state.tokens, tokens)
    return GivenDrafts(
        state.tokens,
        tokens,
        _rows(task.target, draft_model(task), state.tokens, tokens),
        raw,
        accept,
        lasts,
        laws.get(gamma),
        bonus,
        _places([(path, done, accepted_of(here, done, bonus=bonus)) for path, done in runs], accept, gamma),
        slack(here, 2 * gamma + 2, epsilon),
        _under_other_parameters(here, state.tokens, tokens) if raw is not None else {},
        is_padded="without drafts" in here.variant.label,
    )


def _under_other_parameters(here: InScenario, prefix: Tokens, tokens: Tokens) -> dict[str, ModelRows]:
    """Return the rows under sampling parameters of which one is missing, by the sentence about it."""
    setting = _setting(here.variant.label)
    target, draft = here.task.target, here.task.draft
    if not setting or not isinstance(target, Processed) or not isinstance(draft, Processed):
        return {}
    right, result = _rows(target, draft, prefix, tokens), dict[str, ModelRows]()
    for name, value in setting.items() if len(setting) > 1 else ():
        less = {other: kept for other, kept in setting.items() if other != name}
        wrong = _rows(_warped(target, less), _warped(draft, less), prefix, tokens)
        result |= _in_place(right, wrong, f"taken before {name}={value:g} is applied")
    for other_k in (setting["top_k"] + 1, setting["top_k"] - 1) if setting.get("top_k", 0) > 1 else ():
        other = {**setting, "top_k": other_k}
        wrong = _rows(_warped(target, other), _warped(draft, other), prefix, tokens)
        result |= _in_place(right, wrong, f"taken with top_k={other_k:g} in the place of {setting['top_k']:g}")
    for name in sorted(set(setting) & {"top_k", "top_p", "min_p"}):
        less = {other: kept for other, kept in setting.items() if other != name}
        whole = _rows(_warped(target, less), _warped(draft, less), prefix, tokens)
        for said, cut in _CUTS.items():
            if said.startswith(("not", name)):
                wrong = ModelRows(*(_all_cut(cut, *pair, setting[name]) for pair in zip(whole, right, strict=True)))
                result |= _in_place(right, wrong, said.format(name=name))
    return result


def _all_cut(cut: Cut, whole: Sequence[Row], right: Sequence[Row], value: float) -> tuple[Row, ...]:
    return tuple(cut(row, by, value) for row, by in zip(whole, right, strict=True))


Cut = Callable[[Row, Row, float], Row]
_CUTS: Mapping[str, Cut] = {
    "not divided by its sum after {name}": lambda row, by, value: [
        mass if kept > 0 else 0 * mass for mass, kept in zip(row, by, strict=True)
    ],
    "min_p compared with the probabilities themselves, not with the share of the largest one": lambda row, by, value: (
        scaled([mass if mass >= min(value, max(row)) else 0 * mass for mass in row])
    ),
    "top_p without the token that reaches it": lambda row, by, value: scaled(
        [
            mass if sum(other for other in row if other >= mass) <= value or mass == max(row) else 0 * mass
            for mass in row
        ]
    ),
}
"""How a row is truncated otherwise: ``p is ...``, by the row before it, the right one, and the parameter's value."""


def _in_place(right: ModelRows, wrong: ModelRows, said: str) -> dict[str, ModelRows]:
    if said.startswith(("min_p", "top_p")):
        said = f"taken with {said}"
    return {
        f"p is {said}": right._replace(p=wrong.p),
        f"q is {said}": right._replace(q=wrong.q),
        f"p and q are {said}": wrong,
    }


def _warped(model: Processed, parameters: Mapping[str, float]) -> LanguageModel:
    values: dict[str, Any] = {name: int(value) if name == "top_k" else value for name, value in parameters.items()}
    return warped(model.bare, **values)


def _setting(label: str) -> dict[str, float]:
    """Return the sampling parameters in the label of a variant."""
    found = re.findall(r"\b(temperature|top_k|top_p|min_p|repetition_penalty)=([0-9.e+-]+)", label)
    return {name: float(value) for name, value in found}


def _unprocessed(model: Processed) -> LanguageModel:
    """Return the pmfs of a model before its sampling parameters: what it was made of may be logits."""

    def pmf(tokens: Tokens) -> Pmf:
        row = model.bare(tokens)
        if (row >= 0).all() and abs(float(row.sum()) - 1) < 1e-6:
            return row
        powers = np.exp(row - row.max())
        return powers / powers.sum()

    return pmf


def accepted_of(here: InScenario, done: Round, *, bonus: bool) -> int:
    """Return how many drafts were accepted; of a verifier, which returns tokens alone, it is inferred.

    Where a bonus follows other accepted drafts, a round that emits its drafts and nothing more rejected the last one,
    and replaced it by the same token.
    """
    return len(done.tokens) - 1 if here.variant.intercepted and bonus else done.accepted


def _rows(target: LanguageModel, draft: LanguageModel, prefix: Tokens, tokens: Tokens) -> ModelRows:
    texts = [prefix + tokens[:i] for i in range(len(tokens) + 1)]
    return ModelRows(
        tuple(tuple(target(text).tolist()) for text in texts), tuple(tuple(draft(text).tolist()) for text in texts)
    )


def _places(runs: Sequence[Any], accept: Sequence[Any], gamma: int) -> dict[tuple[str, int], str]:
    """Return the lines of decisions: a coin is known by its probability, a token by being what is decided last."""
    result: dict[tuple[str, int], str] = {}
    for path, _, accepted in runs:
        for i, mass in enumerate(accept[: accepted + 1]):
            for decision in path.decisions:
                if is_coin(decision, mass):
                    result.setdefault(("accept", i), place_of(decision))
    coins = set(result.values())
    for path, done, accepted in runs:
        own = [place for decision in path.decisions if (place := place_of(decision))]
        if own and accepted < len(done.tokens) and own[-1] not in coins:
            result.setdefault(("replace" if accepted < gamma else "bonus", accepted), own[-1])
    return result


def is_coin(decision: Decision, mass: Any) -> bool:
    """Return whether a decision is a uniform compared with a bound, below which it lies with this probability."""
    compared = decision.site[-2:-1] == (BELOW,) and bool(place_of(decision))
    return compared and abs(float(decision.weights[0]) - float(mass)) < 1e-6


def place_of(decision: Decision) -> str:
    """Return the file and line at which a decision is made, or nothing."""
    where = decision.site[1] if len(decision.site) > 1 else ""
    return where if isinstance(where, str) and ":" in where else ""


# Names

PARTS = ("accept", "replace", "bonus")


def _values(given: GivenDrafts, part: str) -> Iterator[tuple[int, Any]]:
    """Yield the position and what is seen of one part."""
    if part == "accept":
        yield from enumerate(given.accept)
    elif part == "replace":
        yield from given.replace.items()
    elif given.bonus is not None:
        yield len(given.drafts), given.bonus


def _expected(given: GivenDrafts, part: str, i: int, rows: ModelRows) -> Any:
    if part == "accept":
        return ratio(rows.p[i][given.drafts[i]], rows.q[i][given.drafts[i]])
    return excess(rows.p[i], rows.q[i]) if part == "replace" else scaled(rows.p[i])


def _fits(seen: Any, said: Any, most: float) -> bool:
    if isinstance(seen, Mapping):
        inside = range(len(said))
        masses = [(seen.get(token, 0), mass) for token, mass in enumerate(said)]
        masses += [(mass, 0) for token, mass in seen.items() if token not in inside]
    else:
        masses = [(seen, said)]
    return all(abs(one - other) <= most for one, other in masses)


def _is_wrong(given: GivenDrafts, part: str) -> bool:
    return any(not _fits(seen, _expected(given, part, i, given.rows), given.slack) for i, seen in _values(given, part))


def named_fault(all_given: Sequence[GivenDrafts], parameters: str) -> RoundFault | None:
    """Return what is wrong with rounds, or None where each follows the rule."""
    return (
        _named(all_given, parameters) if any(_is_wrong(given, part) for given in all_given for part in PARTS) else None
    )


def _named(all_given: Sequence[GivenDrafts], parameters: str) -> RoundFault:
    wrong = [part for part in PARTS if any(_is_wrong(given, part) for given in all_given)]
    other = _other_rows(all_given, parameters)
    if other:
        return RoundFault(f"{other}: {_example(all_given, wrong[0])}", frozenset(wrong))
    names = [part for part in wrong if _rule_sentence(all_given, part)]
    said = "; ".join(_sentence(all_given, part) for part in (names or wrong[:1])[:2])
    return RoundFault(said, frozenset(wrong), bool(names))


def _sentence(all_given: Sequence[GivenDrafts], part: str) -> str:
    rule = _rule_sentence(all_given, part)
    return f"{rule}: {_example(all_given, part, briefly=True)}" if rule else _example(all_given, part)


def _rule_sentence(all_given: Sequence[GivenDrafts], part: str) -> str:
    """Return what one part of the rounds follows in the place of the rule, or nothing."""
    name = _name(all_given, part)
    if part == "accept":
        name = name or ("" if all_given[0].of_engine else _depends_on_later(all_given))
        return f"drafts are accepted {name}, expected min(1, p/q)" if name else ""
    if part == "replace":
        return f"a rejected draft is replaced by a draw from {name}, expected norm(max(p - q, 0))" if name else ""
    return f"the bonus token is drawn from {name}, expected p after the last draft" if name else ""


def _name(all_given: Sequence[GivenDrafts], part: str) -> str:
    """Return the name of the one formula that fits all that was seen of a part, or nothing."""
    if all_given[0].of_engine and not _tells(all_given, (part,)):
        return ""
    seen = [(given, i, value) for given in all_given for i, value in _values(given, part)]
    fitting = []
    formulas: dict[str, Any] = dict({"accept": ACCEPT, "replace": REPLACE, "bonus": BONUS}[part])
    if part == "bonus" and all_given[0].is_padded:
        formulas[PADDED_ROW] = lambda rows, drafts, i: [1, *(0 for _ in rows.p[i][1:])]
    for name, formula in formulas.items():
        if all(_fits(value, formula(given.rows, given.drafts, i), given.slack) for given, i, value in seen):
            fitting.append(name)
    if part == "accept" and not fitting:
        return _family(seen)
    if part == "replace" and not fitting:
        with_nan = (name for name, formula in REPLACE_WITH_NAN.items() if _is_replaced_by(seen, formula))
        return next(with_nan, "") or _floor(seen)
    several_tokens = any(len(given.rows.p[0]) > 2 for given in all_given)  # with two tokens many formulas are one
    return fitting[0] if len(fitting) == 1 or (fitting and several_tokens) else ""


def _family(seen: Sequence[tuple[GivenDrafts, int, Any]]) -> str:
    """Return the acceptance of a family with one free number, where one number fits everything."""
    open_ones = []
    for given, i, value in seen:
        p, q = (float(row[given.drafts[i]]) for row in (given.rows.p[i], given.rows.q[i]))
        if 1e-6 < value < 1 - 1e-6 and p > 0 and q > 0 and abs(p - q) > 1e-6:
            open_ones.append((p, q, float(value)))
    if len(open_ones) < 2:
        return ""
    for said, solve, formula in _FAMILIES:
        number = solve(*open_ones[0])
        if number > 0 and all(_fits_family(one, number, formula) for one in seen):
            return said.format(c=short(number))
    return ""


def _fits_family(one: tuple[GivenDrafts, int, Any], number: float, formula: Callable[..., float]) -> bool:
    given, i, value = one
    p, q = (float(row[given.drafts[i]]) for row in (given.rows.p[i], given.rows.q[i]))
    return q <= 0 or abs(float(value) - min(1.0, formula(p, q, number))) <= 8 * given.slack * max(1.0, number)


_FAMILIES: tuple[tuple[str, Callable[..., float], Callable[..., float]], ...] = (
    ("with probability min(1, {c} p/q)", lambda p, q, value: value * q / p, lambda p, q, c: c * p / q),
    (
        "with probability min(1, (p/q)^{c})",
        lambda p, q, value: math.log(value) / math.log(p / q),
        lambda p, q, c: (p / q) ** c,
    ),
    ("with probability min(1, p/(q + {c}))", lambda p, q, value: p / value - q, lambda p, q, c: p / (q + c)),
    ("with probability min(1, p/q + {c})", lambda p, q, value: value - p / q, lambda p, q, c: p / q + c),
)
"""Words, the number that fits one acceptance, and the acceptance by it."""


def _is_replaced_by(seen: Sequence[tuple[GivenDrafts, int, Any]], formula: RowFormula) -> bool:
    return all(_fits(law, formula(given.rows, given.drafts, i), given.slack) for given, i, law in seen)


def _floor(seen: Sequence[tuple[GivenDrafts, int, Mapping[int, Any]]]) -> str:
    """Return the replacement with one free number, the least entry of max(p - q, 0), where one fits everything."""
    for said, solve, formula in _FLOORS:
        number = 0.0
        for given, i, law in seen:
            left = [a - b for a, b in zip(given.rows.p[i], given.rows.q[i], strict=True)]
            most, least = max(range(len(left)), key=left.__getitem__), min(range(len(left)), key=left.__getitem__)
            share = float(law.get(least, 0)) / float(law.get(most, 1) or 1)
            if left[least] < 0 and 1e-9 < share < 1 - 1e-6:
                number = solve(float(left[most]), share)
                break
        if number > 0 and all(
            _fits(law, formula(given.rows.p[i], given.rows.q[i], number), 8 * given.slack / min(1.0, number))
            for given, i, law in seen
        ):
            return said.format(c=short(number))
    return ""


_FLOORS: tuple[tuple[str, Callable[..., float], Callable[..., Row]], ...] = (
    (
        "norm(max(p - q, {c}))",
        lambda most, share: share * most,
        lambda p, q, c: scaled([max(a - b, c) for a, b in zip(p, q, strict=True)]),
    ),
    (
        "norm(max(p - q, 0) + {c})",
        lambda most, share: share * most / (1 - share),
        lambda p, q, c: scaled([max(a - b, 0) + c for a, b in zip(p, q, strict=True)]),
    ),
)
"""Words, the number by the largest p - q and the share that the least entry has of it, and the row by it."""


def _depends_on_later(all_given: Sequence[GivenDrafts]) -> str:
    """Return what to say where the same draft is accepted otherwise with other drafts behind it."""
    first: dict[Any, GivenDrafts] = {}
    for given in all_given:
        for i, value in enumerate(given.accept):
            known = first.setdefault((given.prefix, given.drafts[: i + 1], given.rows.p[0]), given)
            if not _fits(value, known.accept[i], given.slack):
                return f"by what is drafted behind them: whether draft {i + 1} is accepted depends on draft {i + 2}"
    return ""


def _other_rows(all_given: Sequence[GivenDrafts], parameters: str) -> str:
    """Return a sentence where the round follows the rule with other rows in the place of p, of q or of both."""
    if not _tells(all_given):
        return ""
    before = f"taken before {parameters or 'the sampling parameters'} is applied"
    for said, change in (
        (f"p is {before}", _raw_p),
        (f"q is {before}", _raw_q),
        (f"p and q are {before}", _raw_both),
        ("p and q are exchanged", lambda given: ModelRows(given.rows.q, given.rows.p)),
    ):
        if _follows(all_given, change):
            return said
    fitting = [
        said
        for said in all_given[0].others
        if _follows(all_given, lambda given, said=said: given.others.get(said))  # type: ignore[misc]
    ]
    if fitting:
        verb = " are " if " are " in fitting[0] else " is "
        model, _, first = fitting[0].partition(verb)
        same = [said.removeprefix(f"{model}{verb}") for said in fitting[1:] if said.startswith(f"{model}{verb}")]
        return f"{model}{verb}{', or '.join([first, *same])}"
    power = _power(all_given)
    if power and _follows(
        all_given, lambda given: given.rows._replace(p=tuple(powered(row, power) for row in given.rows.p))
    ):
        value = short(1 / power)
        twice = f"temperature={value}" in parameters
        return f"the temperature {value} is applied twice to p" if twice else f"p has a further temperature of {value}"
    return ""


def _tells(all_given: Sequence[GivenDrafts], parts: Sequence[str] = PARTS) -> bool:
    """Return whether a number that deviates is no certainty: one that is fits too many rows."""
    for given in all_given:
        for part in parts:
            for i, seen in _values(given, part):
                masses = [float(mass) for mass in (seen.values() if isinstance(seen, Mapping) else [seen])]
                if not _fits(seen, _expected(given, part, i, given.rows), given.slack) and any(
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


def _follows(all_given: Sequence[GivenDrafts], change: Callable[[GivenDrafts], ModelRows | None]) -> bool:
    for given in all_given:
        rows = change(given)
        if rows is None:
            return False
        for part in PARTS:
            for i, seen in _values(given, part):
                if not _fits(seen, _expected(given, part, i, rows), 4 * given.slack):
                    return False
    return True


def _power(all_given: Sequence[GivenDrafts]) -> float:
    """Return c where the rounds have norm(p^c) in the place of p, as a bonus or an acceptance tells it; else 0."""
    for given in all_given:
        for i, seen in enumerate(given.accept):
            p, token = [float(mass) for mass in given.rows.p[i]], given.drafts[i]
            wanted = float(seen) * float(given.rows.q[i][token])
            extreme = p[token] in {min(p), max(p)} and min(p) > 0
            if _is_wrong(given, "accept") and 1e-6 < seen < 1 - 1e-6 and extreme and min(p) < max(p):
                return _power_with(p, token, wanted)
        if given.bonus is None:
            continue
        row = [(float(mass), float(given.bonus.get(token, 0))) for token, mass in enumerate(given.rows.p[-1])]
        (low, seen_low), (high, seen_high) = min(row), max(row)
        if 0 < low < high and seen_low > 0 and seen_high > 0:
            return math.log(seen_high / seen_low) / math.log(high / low)
    return 0.0


def further_temperature(all_given: Sequence[GivenDrafts]) -> tuple[float, str]:
    """Return c where norm(p^c) may stand in the place of p, as one number tells it, and the sentence; else 0."""
    power = _power(all_given)
    if not power:
        return 0.0, ""
    p = all_given[0].rows.p[0]
    rows = f"{short_row(powered(p, power))} in the place of p = {short_row(p)} after {all_given[0].prefix}"
    return power, f"p has a further temperature of {short(1 / power)}: {rows}"


def _power_with(p: Sequence[float], token: int, wanted: float) -> float:
    """Return c where norm(p^c) has this mass on its least or its largest token; else 0."""
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
    """Return norm(row^power)."""
    return scaled([float(mass) ** power if mass > 0 else 0.0 for mass in row])


def _example(all_given: Sequence[GivenDrafts], part: str, *, briefly: bool = False) -> str:
    """Return the first numbers that differ; ``briefly`` where the rule has been named."""
    found = [
        (given, i, seen, said)
        for given in all_given
        for i, seen in _values(given, part)
        if not _fits(seen, said := _expected(given, part, i, given.rows), given.slack)
    ]
    shows = [one for one in found if part != "replace" or all(mass > 0 for mass in one[0].rows.q[one[1]])]
    if not found:
        return ""
    given, i, seen, said = (shows if briefly and shows else found)[0]
    told = _numbers(given, part, i, seen, said, briefly=briefly)
    same = len(given.rows.p[0]) == len(all_given[0].rows.p[0]) and given.rows.p[0] == all_given[0].rows.p[0]
    if same or part != "replace" or given.of_engine:
        return told
    return f"{told}, where p = {short_row(given.rows.p[i])} and q = {short_row(given.rows.q[i])}"


def _numbers(given: GivenDrafts, part: str, i: int, seen: Any, said: Any, *, briefly: bool) -> str:
    place = given.places.get((part, i), "")
    at = f" ({place})" if place else ""
    draft = f"draft {i + 1}, token {given.drafts[i]}" if i < len(given.drafts) else ""
    if part == "accept":
        p, q = given.rows.p[i][given.drafts[i]], given.rows.q[i][given.drafts[i]]
        does, ought = apart(seen, said)
        guessed = q == 1 and given.of_engine and ("draft", i) not in given.places
        which = f"{draft} (p = {short(p)}, q = {short(q)}{GUESSED if guessed else ''})"
        if briefly:
            return f"{which} with {does} instead of {ought}{at}"
        return f"{which} is accepted with probability {does}{at}, expected {ought} = min(1, p/q)"
    size = len(given.rows.p[0])
    outside = sorted(set(seen) - set(range(size)))
    more = f", and token {outside[0]} outside of the vocabulary" if outside else ""
    does, ought = short_row([seen.get(token, 0) for token in range(size)]) + more, short_row(said)
    if briefly:
        which = f"in place of {draft}: " if part == "replace" else "" if given.drafts else "without drafts "
        return f"{which}{does} instead of {ought}{at}"
    if part == "replace":
        return f"{draft}, is rejected and replaced by a draw from {does}{at}, expected {ought} = norm(max(p - q, 0))"
    if not given.drafts:
        return f"the token of a row without drafts is drawn from {does}{at}, expected {ought} = p"
    return f"after the last draft the bonus token is drawn from {does}{at}, expected {ought} = p"
