"""The conditional law of a round given its drafts, and the values of the speculative-sampling rule.

The rule (2211.17192, Algorithm 1): draft x is accepted with probability min(1, p(x)/q(x)), a rejected draft is replaced
by a draw from norm(max(p - q, 0)), and after the last draft comes a bonus token from p. A round is enumerated with
every draft; ``GivenDrafts`` holds the three parts as numbers, with the rows of the models.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from specverify.checks.check import slack
from specverify.checks.explaining.drawn_trees import is_tree
from specverify.checks.explaining.round_rules import ModelRows, Row, excess, ratio, scaled
from specverify.intercept.caller import DrawLine
from specverify.laws.draws import AMONG, BELOW, TOGETHER, Decision
from specverify.laws.paths import paths
from specverify.laws.rounding import FLOAT32
from specverify.laws.scenarios import Scenario
from specverify.reference import Draft, LanguageModel, Pmf, Round, State, Tokens, chain
from specverify.reference.models import draft_model
from specverify.reference.warpers import min_p, top_k, top_p, warped
from specverify.subjects.subject import InScenario
from specverify.subjects.warped_tasks import Processed

MOST_PATHS = 3000
"""The largest number of paths of a round that is explained."""
MOST_STATES = 4
ERROR_OF_FLOATS = 1e-6
"""The rounding error of probabilities of a round that may mix floats with the rationals of the models."""
MOST_TOKENS = 16
"""The largest number of tokens of a round that is read by the labels of its draws."""
LARGEST_VOCABULARY = 8
GENERIC = (Scenario("generic", 3, (0, 1, 0), 4, seed=2),)
"""Further scenarios in which formulas are compared: with two tokens many formulas have the same values."""
WIDE = Scenario("generic", 5, (0,), 3, seed=2)
"""A scenario for formulas of rounds: its rows have small and large entries, and p/q is between 0.18 and 5.6."""

Law = Mapping[int, Any]


class GivenDrafts(NamedTuple):
    """A round, given its drafts: the laws of acceptance, replacement and bonus.

    ``prefix`` is the text before the round, and ``rows`` are the models' rows of p and q along the drafts.
    """

    prefix: Tokens
    drafts: Tokens
    rows: ModelRows
    raw: ModelRows | None
    """The rows before sampling parameters are applied; None if there are no parameters."""
    accept: tuple[Any, ...]
    """P(draft i is accepted | the earlier drafts are accepted), for each draft whose test is reached."""
    replace: Mapping[int, Law]
    """Position of the rejected draft -> law of the token that replaces it."""
    bonus: Law | None
    """Law of the token after the last draft; None if not all drafts can be accepted or no token follows."""
    has_bonus: bool
    """Whether a bonus token follows the last draft."""
    places: Mapping[tuple[str, int], str]
    """Program lines of ``("accept", i)``, ``("replace", i)`` and ``("bonus", gamma)``."""
    slack: float
    """The largest rounding error of one of these probabilities."""
    others: Mapping[str, ModelRows] = {}
    """Description -> rows that a wrong program may use instead of the right ones."""
    of_engine: bool = False
    """Whether the numbers come from the path of an engine."""
    is_padded: bool = False
    """Whether p has further rows after the drafts, up to the longest row of a batch."""
    goes_on: str = ""
    """A sentence that a token follows the replacement of a draft in the round; "" if none does."""
    elsewhere: bool = False
    """Whether the round belongs to another scenario than the one that is explained."""
    own_replacements: frozenset[tuple[Any, ...]] = frozenset()
    """Outcomes of the draws of each run whose last draft is rejected and replaced by the same token."""


@lru_cache(maxsize=512)
def rounds_given_drafts(here: InScenario, states: int = MOST_STATES) -> tuple[GivenDrafts, ...]:
    """Return the conditional laws of the first rounds of the decoder ``here``, one for each sequence of drafts.

    The rounds begin in at most ``states`` states. Returns () if the decoder has no ``propose`` function, for trees, and
    for rounds that are too large.
    """
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
    """Return the conditional laws of the round from ``state``, and all states in which the round can end.

    The lists are not parallel: the first has one entry for each sequence of drafts, the second each state once. Both
    are empty if the decoder has no ``propose`` function, for trees, and for rounds that are too large. ``here`` is the
    decoder in its scenario.
    """
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
    bonus = any(len(done.tokens) > len(tokens) for tokens, some in runs.items() for _, done in some)
    given = [
        _given(here, state, draft, runs[tokens], bonus=bonus) for tokens, draft in drafts.items() if tokens in runs
    ]
    return given, list(after)


def round_given(here: InScenario, state: State, drafts: Tokens) -> GivenDrafts | None:
    """Return the conditional law of the round from ``state`` that drafts ``drafts``; None if there is none.

    ``here`` is the decoder in its scenario.
    """
    return next((given for given in given_from_state(here, state)[0] if given.drafts == drafts), None)


@lru_cache(maxsize=512)
def rounds_by_labels(here: InScenario, state: State) -> tuple[GivenDrafts, ...]:
    """Return the rounds of the decoder ``here`` from ``state``, one for each sequence of drafts, read by draw labels.

    A decoder without a ``propose`` function may label the draws of its drafts ``("draft", ...)``. Returns () if its
    round cannot be read so (``labelled_round``), if the drafts are not drawn from the draft model, if the vocabulary is
    large, and if the round has too many paths.
    """
    decoder, scenario, q = here.decoder, here.scenario, here.task.draft
    if decoder.propose is not None or scenario.vocabulary > LARGEST_VOCABULARY or scenario.eos or q is None:
        return ()
    state = uncut(state)
    runs: dict[Tokens, list[Any]] = defaultdict(list)
    for number, path in enumerate(paths(lambda draws: decoder.step(draws, state))):
        done = labelled_round(path.decisions, path.outcome[1])
        if done is None or number == MOST_PATHS:
            return ()
        rows = [q(state.tokens + done.draft[:i]).tolist() for i in range(len(done.draft))]
        drawn = [decision.weights for decision in path.decisions if _is_draft(decision)]
        if any(deviation(dict(enumerate(one)), row) > ERROR_OF_FLOATS for one, row in zip(drawn, rows, strict=True)):
            return ()  # the drafts are not drawn from q
        runs[done.draft].append((path, done))
    given = (_given(here, state, chain(tokens, (None,) * len(tokens)), runs[tokens], bonus=True) for tokens in runs)
    return tuple(one._replace(slack=max(one.slack, ERROR_OF_FLOATS)) for one in given)


def uncut(state: State) -> State:
    """Return ``state`` with room for a whole round, so that its new tokens are not cut at the horizon."""
    return state._replace(remaining=state.remaining + MOST_TOKENS)


def labelled_round(decisions: Sequence[Decision], done: Round) -> Round | None:
    """Return the round ``done`` with its drafts and the number of accepted ones; None if the labels do not show them.

    ``decisions`` are the draws of the round. Those with the label "draft" must come first, and the new tokens must be
    the first of the drafts, followed by the outcome of the last draw.
    """
    drafts = tuple(decision.outcome for decision in decisions if _is_draft(decision))
    later, kept = decisions[len(drafts) :], len(done.tokens) - 1
    if not drafts or not later or not all(map(_is_draft, decisions[: len(drafts)])) or not 0 <= kept <= len(drafts):
        return None
    if done.tokens != (*drafts[:kept], later[-1].outcome) or len(later[-1].weights) != len(decisions[0].weights):
        return None
    return done._replace(draft=drafts, accepted=kept, reached=min(kept + 1, len(drafts)))


def _is_draft(decision: Decision) -> bool:
    return decision.site[:1] == ("draft",)


def _given(here: InScenario, state: State, draft: Draft, runs: Sequence[Any], *, bonus: bool) -> GivenDrafts:
    task, tokens, gamma = here.task, draft.tokens, len(draft.tokens)
    reached: dict[int, Any] = defaultdict(int)
    ends: dict[int, dict[int, Any]] = defaultdict(lambda: defaultdict(int))
    epsilon = FLOAT32
    own = _own_replacements(tokens, runs) if here.variant.intercepted and not bonus else frozenset[Any]()
    counts = [accepted_of(here, done, bonus=bonus) - (outcomes_of(path.decisions) in own) for path, done in runs]
    for (path, done), accepted in zip(runs, counts, strict=True):
        epsilon = max(epsilon, path.rounding.epsilon)
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
        _places([(*run, accepted) for run, accepted in zip(runs, counts, strict=True)], accept, gamma, laws),
        slack(here, 2 * gamma + 2, epsilon),
        _under_other_parameters(here, state.tokens, tokens) if raw is not None else {},
        is_padded="without drafts" in here.variant.label,
        goes_on=_goes_on(tokens, runs) if here.variant.intercepted and bonus else "",
        own_replacements=own,
    )


def outcomes_of(decisions: Sequence[Decision]) -> tuple[Any, ...]:
    """Return the outcomes of ``decisions``, which identify a run."""
    return tuple(decision.outcome for decision in decisions)


def _own_replacements(drafts: Tokens, runs: Sequence[Any]) -> frozenset[tuple[Any, ...]]:
    """Return the outcomes of each run that replaces the last of ``drafts`` by the same token, after a rejection.

    Without bonus tokens the tokens of such a run are those of an accepted round. Its last draw gives other tokens in
    other runs, and the runs that accept the draft have no such draw. ``runs`` has (path, round) of all rounds with
    these drafts.
    """
    kept = [path.decisions for path, done in runs if done.tokens == drafts]
    shortest = min(map(len, kept), default=0)
    others = {
        outcomes_of(path.decisions[:-1])
        for path, done in runs
        if len(done.tokens) == len(drafts) and done.tokens[:-1] == drafts[:-1] and done.tokens != drafts
    }
    return frozenset(
        outcomes_of(decisions)
        for decisions in kept
        if len(decisions) > shortest and outcomes_of(decisions[:-1]) in others
    )


def _goes_on(drafts: Tokens, runs: Sequence[Any]) -> str:
    """Return the sentence that a verifier emits a token after the replacement of a draft; "" if it does not.

    ``runs`` has (path, round) of all rounds with the drafts ``drafts``.
    """
    for path, done in runs:
        *before, last = done.tokens or (0,)
        changed = next((i for i, pair in enumerate(zip(drafts, before, strict=False)) if pair[0] != pair[1]), None)
        if changed is not None:
            place = place_of(path.decisions[-1]) if path.decisions else ""
            draft = f"draft {changed + 1} ({drafts[changed]}) is replaced by {before[changed]}"
            follows = " ".join(map(str, (*before[changed + 1 :], last)))
            at = f" ({place})" if place else ""
            said = "the round does not end with the token that replaces a rejected draft"
            return f"{said}: {draft}, and {follows} follows{at}"
    return ""


def _under_other_parameters(here: InScenario, prefix: Tokens, tokens: Tokens) -> dict[str, ModelRows]:
    """Return mistake -> the rows of p and q with this mistake in the sampling parameters.

    Keys are descriptions of the mistakes; examples are a parameter that is left out, and a top-k that is too large by
    one. Each value has the rows after ``prefix`` and after each of the drafts ``tokens``. Returns {} if the variant of
    ``here`` sets no sampling parameters.
    """
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
    for said, order in _other_orders(setting):
        wrong = _rows(_in_order(target, setting, order), _in_order(draft, setting, order), prefix, tokens)
        result |= _in_place(right, wrong, said)
    for name in sorted(set(setting) & {"top_k", "top_p", "min_p"}):
        less = {other: kept for other, kept in setting.items() if other != name}
        whole = _rows(_warped(target, less), _warped(draft, less), prefix, tokens)
        for said, cut in _CUTS.items():
            if "{name}" in said or said.startswith(name):
                wrong = ModelRows(*(_all_cut(cut, *pair, setting[name]) for pair in zip(whole, right, strict=True)))
                result |= _in_place(right, wrong, said.format(name=name))
    return result


def _other_orders(setting: Mapping[str, float]) -> Iterator[tuple[str, list[str]]]:
    """Yield (description, names) for orders of the parameters in ``setting`` in which one is applied too early.

    Nothing is yielded with a repetition penalty, which needs logits, or at temperature 0.
    """
    if "repetition_penalty" in setting or setting.get("temperature") == 0:
        return
    names = [name for name in _APPLIED if name in setting]
    for late, name in enumerate(names):
        for early in range(late):
            rest = [other for other in names if other != name]
            said = f"taken with {name}={setting[name]:g} applied before {names[early]}={setting[names[early]]:g}"
            yield said, [*rest[:early], name, *rest[early:]]


def _in_order(model: Processed, setting: Mapping[str, float], order: Sequence[str]) -> LanguageModel:
    """Return ``model`` with its sampling parameters ``setting`` applied in the given ``order``."""
    bare = _unprocessed(model)

    def pmf(tokens: Tokens) -> Pmf:
        row = bare(tokens)
        for name in order:
            row = _APPLIED[name](row, setting[name])
        return row

    return pmf


_APPLIED: Mapping[str, Callable[[Pmf, float], Pmf]] = {
    "temperature": lambda row, value: row ** (1 / value) / (row ** (1 / value)).sum(),
    "top_k": lambda row, value: top_k(row, int(value)),
    "top_p": top_p,
    "min_p": min_p,
}
"""Sampling parameter -> the function that applies it to a pmf, in the right order of application."""


def _all_cut(cut: Cut, whole: Sequence[Row], right: Sequence[Row], value: float) -> tuple[Row, ...]:
    return tuple(cut(row, by, value) for row, by in zip(whole, right, strict=True))


Cut = Callable[[Row, Row, float], Row]
_CUTS: Mapping[str, Cut] = {
    "not divided by its sum after {name}": lambda row, by, value: [
        mass if kept > 0 else 0 * mass for mass, kept in zip(row, by, strict=True)
    ],
    "cut by a mask of {name} that belongs to the sorted probabilities, applied to those in order of the tokens": (
        lambda row, by, value: _first_tokens(row, sum(kept > 0 for kept in by))
    ),
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
"""Description -> wrong truncation of a row, a function of the full row, the rightly truncated row, and the parameter.
"""


def _first_tokens(row: Row, number: int) -> Row:
    """Return ``row`` cut to its first ``number`` tokens and divided by its sum; unchanged if their sum is 0."""
    cut = [mass if token < number else 0 * mass for token, mass in enumerate(row)]
    return scaled(cut) if any(mass > 0 for mass in cut) else row


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
    """Return the sampling parameters and their values, parsed from the label of a variant."""
    found = re.findall(r"\b(temperature|top_k|top_p|min_p|repetition_penalty)=([0-9.e+-]+)", label)
    return {name: float(value) for name, value in found}


def _unprocessed(model: Processed) -> LanguageModel:
    """Return the pmfs of a model before sampling parameters, such as the temperature, are applied.

    If the model returns logits, the pmfs are their softmax.
    """

    def pmf(tokens: Tokens) -> Pmf:
        row = model.bare(tokens)
        if (row >= 0).all() and abs(float(row.sum()) - 1) < 1e-6:
            return row
        powers = np.exp(row - row.max())
        return powers / powers.sum()

    return pmf


def accepted_of(here: InScenario, done: Round, *, bonus: bool) -> int:
    """Return the number of accepted drafts of the round ``done``.

    A decoder reports this number, and it is returned unchanged. A verifier reports only tokens. If the rounds of a
    verifier can end with a ``bonus``, the number is that of the tokens, without the last one, which equal the drafts up
    to the first difference. ``here`` is the decoder or verifier in its scenario.
    """
    if not (here.variant.intercepted and bonus):
        return done.accepted
    pairs = enumerate(zip(done.draft, done.tokens[:-1], strict=False))
    return next((i for i, (draft, token) in pairs if draft != token), len(done.tokens) - 1)


def _rows(target: LanguageModel, draft: LanguageModel, prefix: Tokens, tokens: Tokens) -> ModelRows:
    texts = [prefix + tokens[:i] for i in range(len(tokens) + 1)]
    return ModelRows(
        tuple(tuple(target(text).tolist()) for text in texts), tuple(tuple(draft(text).tolist()) for text in texts)
    )


def _places(
    runs: Sequence[Any], accept: Sequence[Any], gamma: int, laws: Mapping[int, Law]
) -> dict[tuple[str, int], str]:
    """Return (role, position) -> program line, for the draws of rounds with given drafts.

    The role is "accept" (the test of a draft), "replace" or "bonus". A test is recognised by its probability; the last
    decision of a path is the replacement or the bonus, unless this token is certain and the last decision is a
    comparison: no comparison looks up a certain token.

    Args:
        runs: (path, round, number of accepted drafts) of each round.
        accept: The acceptance probability of each draft.
        gamma: The number of drafts.
        laws: Number of accepted drafts -> law of the token after them.
    """
    result: dict[tuple[str, int], str] = {}
    for path, _, accepted in runs:
        for i, mass in enumerate(accept[: accepted + 1]):
            for decision in path.decisions:
                if is_coin(decision, mass):
                    result.setdefault(("accept", i), place_of(decision))
    coins = set(result.values())
    for path, done, accepted in runs:
        last = next((decision for decision in reversed(path.decisions) if place_of(decision)), None)
        if last is None or accepted >= len(done.tokens) or place_of(last) in coins:
            continue
        if len(laws[accepted]) > 1 or last.site[-2:-1] not in COMPARISONS:
            result.setdefault(("replace" if accepted < gamma else "bonus", accepted), place_of(last))
    return result


def is_coin(decision: Decision, mass: Any) -> bool:
    """Return whether a decision is a test with the probability ``mass``: a uniform compared with this bound."""
    compared = decision.site[-2:-1] == (BELOW,) and bool(place_of(decision))
    return compared and abs(float(decision.weights[0]) - float(mass)) < 1e-6


COMPARISONS = {(BELOW,), (AMONG,), (TOGETHER,)}
"""The questions of decisions that compare random numbers."""
RACE = "race"
"""The beginning of the site of a draw by an argmax over noise; the site of the noise follows."""


def place_of(decision: Decision) -> str:
    """Return the file and line of a decision, such as "engine.py:9"; "" if unknown.

    If a function that draws is called from several lines, the line of the call is added.
    """
    site = decision.site[decision.site[:1] == (RACE,) :]
    where = site[1] if len(site) > 1 else ""
    if not isinstance(where, str) or ":" not in where:
        return ""
    return where.in_full() if isinstance(where, DrawLine) else where


# Its parts beside the rule

PARTS = ("accept", "replace", "bonus")


def values_of(given: GivenDrafts, part: str) -> Iterator[tuple[int, Any]]:
    """Yield (position, observed value) for one part of the round ``given``.

    ``part`` is "accept", "replace" or "bonus". The values of "accept" are probabilities, the others laws, token ->
    probability.
    """
    if part == "accept":
        yield from enumerate(given.accept)
    elif part == "replace":
        yield from given.replace.items()
    elif given.bonus is not None:
        yield len(given.drafts), given.bonus


def expected(given: GivenDrafts, part: str, i: int, rows: ModelRows) -> Any:
    """Return what speculative sampling (2211.17192, Algorithm 1) gives for one part of a round at position ``i``.

    ``part`` is "accept" (the result is min(1, p/q)), "replace" (norm(max(p - q, 0))) or "bonus" (p). ``given`` has the
    drafts. p and q are from ``rows``, which may be the models' rows or others that a wrong program may have used.
    """
    if part == "accept":
        return ratio(rows.p[i][given.drafts[i]], rows.q[i][given.drafts[i]])
    return excess(rows.p[i], rows.q[i]) if part == "replace" else scaled(rows.p[i])


def fits(seen: Any, said: Any, most: float) -> bool:
    """Return whether a rule explains an observation: ``seen`` and ``said`` differ by at most ``most`` in every entry.

    ``seen`` is the observed value, and ``said`` the value that the rule gives. Both are probabilities, or ``seen`` is a
    mapping token -> probability and ``said`` a row.
    """
    return deviation(seen, said) <= most


def deviation(seen: Any, said: Any) -> float:
    """Return the largest difference of an entry between an observation and a rule; the arguments are as in ``fits``."""
    if isinstance(seen, Mapping):
        inside = range(len(said))
        masses = [(seen.get(token, 0), mass) for token, mass in enumerate(said)]
        masses += [(mass, 0) for token, mass in seen.items() if token not in inside]
    else:
        masses = [(seen, said)]
    return max((float(abs(one - other)) for one, other in masses), default=0.0)


def is_wrong(given: GivenDrafts, part: str) -> bool:
    """Return whether one part of the round ``given`` differs from speculative sampling by more than rounding.

    ``part`` is "accept", "replace" or "bonus".
    """
    return any(
        not fits(seen, expected(given, part, i, given.rows), error_of(given, part, i))
        for i, seen in values_of(given, part)
    )


def error_of(given: GivenDrafts, part: str, i: int) -> float:
    """Return the rounding error that is permitted in an observed value of the round ``given``.

    It is the value of ``part`` ("accept", "replace" or "bonus") at position ``i``. A replacement is drawn from a
    residual that was divided by its sum, so the error of p - q is divided by this sum too.
    """
    if part != "replace" or not given.slack:
        return given.slack
    left = sum(max(float(p) - float(q), 0.0) for p, q in zip(given.rows.p[i], given.rows.q[i], strict=True))
    return given.slack / min(max(left, given.slack), 1.0)


def value_fits(given: GivenDrafts, part: str, i: int, value: Any, rows: ModelRows) -> bool:
    """Return whether speculative sampling explains an observed value if a program uses the changed ``rows`` of p and q.

    ``value`` is the observed value of ``part`` ("accept", "replace" or "bonus") at position ``i`` of the round
    ``given``. If a changed row leaves out the draft in both p and q, the program divides 0 by 0, so its test may have
    any outcome.
    """
    if part == "accept" and not rows.p[i][given.drafts[i]] and not rows.q[i][given.drafts[i]]:
        return bool(value in {0, 1})
    return fits(value, expected(given, part, i, rows), 4 * error_of(given, part, i))


def expected_accept(given: GivenDrafts, i: int) -> Any:
    """Return min(1, p/q), the right probability that draft ``i`` of the round ``given`` is accepted."""
    token = given.drafts[i]
    return ratio(given.rows.p[i][token], given.rows.q[i][token])
