"""Describe a path of a decode round by round: drafts, tests, replacements, each with its actual and expected value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from specverify.checks.explaining.block_rules import block_fault, block_round, follows_blocks
from specverify.checks.explaining.engine_paths import OF_A_COIN
from specverify.checks.explaining.given_drafts import (
    LARGEST_VOCABULARY,
    GivenDrafts,
    accepted_of,
    expected_accept,
    is_coin,
    labelled_round,
    outcomes_of,
    place_of,
    round_given,
    rounds_by_labels,
    rounds_given_drafts,
    uncut,
)
from specverify.checks.explaining.round_faults import fault_of_labelled_blocks, rounds_elsewhere
from specverify.checks.explaining.round_rules import Row, excess
from specverify.checks.explaining.wording import apart, short
from specverify.laws.draws import Decision, Narrated, NotAFunctionOfItsDraws, Replayed
from specverify.reference import Round, State
from specverify.subjects.subject import InScenario

NEAR = 1e-6
"""Probabilities that differ by less than this are reported as equal."""


def rounds_of_path(here: InScenario, choices: tuple[int, ...]) -> str:
    """Describe the rounds of one decode, in which the draws have the outcomes ``choices``.

    ``here`` is the decoder in its scenario. Returns "" in three cases: the decoder has no method ``propose``, which
    returns its drafts; the vocabulary is larger than ``LARGEST_VOCABULARY``; or the law of a round given its drafts
    cannot be computed, for example for trees. Without ``propose``, rounds of block verification are described if the
    labels of the draws show them.
    """
    if here.scenario.vocabulary > LARGEST_VOCABULARY:
        return ""
    if here.decoder.propose is None:
        return _blocks_of_path(here, choices) if fault_of_labelled_blocks(here) else ""
    decoder, replayed, told = here.decoder, Replayed(choices), list[str]()
    rounds = [*rounds_given_drafts(here), *rounds_elsewhere(here)]
    rule = _block_rule if block_fault(rounds) or follows_blocks(rounds) else _rule_of_drafts
    state = decoder.init(here.prompt)
    with suppress(NotAFunctionOfItsDraws):
        while state.remaining > 0:
            narrated, start = Narrated(replayed), state
            state, done = decoder.step(narrated, state)
            if not done.draft:
                told.append(_without_draft(here, start, done.tokens[0]))
                continue
            given = round_given(here, start, done.draft)
            if given is None:
                return ""
            told.append(_round(here, given, done, narrated.decisions, rule(given)))
        return _numbered(told)
    return ""


def _numbered(told: Sequence[str]) -> str:
    return "\n".join(told if len(told) == 1 else [f"round {i}: {words}" for i, words in enumerate(told, 1)])


def _blocks_of_path(here: InScenario, choices: tuple[int, ...]) -> str:
    """Describe the rounds of a decode with the outcomes ``choices`` by the rule of block verification.

    The decoder ``here`` labels its draws. Returns "" if a round cannot be read by the labels.
    """
    decoder, replayed, told = here.decoder, Replayed(choices), list[str]()
    state = decoder.init(here.prompt)
    while state.remaining > 0:
        narrated, start = Narrated(replayed), state
        state, done = decoder.step(narrated, start)
        _, whole = decoder.step(Replayed([decision.outcome for decision in narrated.decisions]), uncut(start))
        block = labelled_round(narrated.decisions, whole)
        some = rounds_by_labels(here, start) if block else ()
        given = next((given for given in some if block and given.drafts == block.draft), None)
        if block is None or given is None:
            return ""
        block = block._replace(tokens=done.tokens, accepted=min(block.accepted, len(done.tokens)))
        told.append(_round(here, given, block, narrated.decisions, _block_rule(given)))
    return _numbered(told)


def given_of_path(here: InScenario, choices: tuple[int, ...]) -> list[GivenDrafts]:
    """Return the laws of the rounds of a decode by ``here``, each given its drafts.

    ``choices`` are the outcomes of the draws. Returns [] without a ``propose`` step and for large vocabularies. Rounds
    without drafts or with trees are left out.
    """
    decoder, replayed, result = here.decoder, Replayed(choices), list[GivenDrafts]()
    if decoder.propose is None or here.scenario.vocabulary > LARGEST_VOCABULARY:
        return result
    state = decoder.init(here.prompt)
    while state.remaining > 0:
        start = state
        state, done = decoder.step(replayed, state)
        given = round_given(here, start, done.draft) if done.draft else None
        result += [] if given is None else [given]
    return result


def impossible_step(here: InScenario, choices: tuple[int, ...]) -> str:
    """Describe the first step by which the decoder ``here`` emits a token with p = 0; "" if there is none.

    ``choices`` are the outcomes of the draws on the path. Returns "" also if the rounds cannot be examined, or if the
    token may be either an accepted draft or its replacement.
    """
    if here.decoder.propose is None or here.scenario.vocabulary > LARGEST_VOCABULARY:
        return ""
    decoder, replayed = here.decoder, Replayed(choices)
    state = decoder.init(here.prompt)
    while state.remaining > 0:
        start = state
        state, done = decoder.step(replayed, state)
        given = round_given(here, start, done.draft)
        if given is None:
            return ""
        accepted = accepted_of(here, done, bonus=given.has_bonus)
        for i, token in enumerate(done.tokens[: len(given.rows.p)]):
            if not 0 <= token < len(given.rows.p[i]):
                return ""
            if given.rows.p[i][token] == 0:
                is_open = not given.has_bonus and i == accepted - 1 and i == len(done.tokens) - 1
                return "" if is_open and here.variant.intercepted else _impossible(given, i, token, accepted)
    return ""


def _impossible(given: GivenDrafts, i: int, token: int, accepted: int) -> str:
    """Describe how a round emits ``token`` at position ``i``, although its p is 0.

    ``given`` has the observed laws of the round, and ``accepted`` is its number of accepted drafts. Returns "" if the
    observed law gives this step probability 0.
    """
    part = "accept" if i < accepted else "replace" if i < len(given.drafts) else "bonus"
    law = given.replace.get(i, {}) if part == "replace" else given.bonus or {}
    mass = given.accept[i] if part == "accept" else law.get(token, 0)
    if not mass > 0:
        return ""
    place = given.places.get((part, i), "")
    at = f" ({place})" if place else ""
    if part == "accept":
        return f"draft {i + 1}, token {token} (p = 0), is accepted with probability {short(mass)}{at}, expected 0"
    if part == "replace":
        residual = f"the residual of the rejected draft {i + 1} gives token {token} probability {short(mass)}{at}"
        return f"{residual}, expected 0 by norm(max(p - q, 0))"
    which = "bonus token" if given.drafts else "token of a round without drafts"
    return f"the {which} is {token} with probability {short(mass)}{at}, expected 0 = p"


def _without_draft(here: InScenario, start: State, token: int) -> str:
    """Describe the ``token`` that a round without drafts emits, and its probability; p is added if it differs.

    ``start`` is the state before the round, and ``here`` the decoder in its scenario.
    """
    p = here.task.target(start.tokens).tolist()
    given = round_given(here, start, ())
    law = given.bonus if given else None
    if law is None or abs(law.get(token, 0) - p[token]) <= NEAR:
        return f"next token {token} (p = {short(p[token])})"
    seen, said = apart(law.get(token, 0), p[token])
    return f"next token {token} (probability {seen}; expected {said} = p)"


class _RoundRule(NamedTuple):
    """The probabilities that a rule gives for one round with known drafts, and the formulas that stand for them.

    ``test`` is the formula of the acceptance probability, ``residual`` that of the pmf of a replacement.
    """

    accept: Sequence[Any]
    """P(draft i is accepted | the earlier drafts are accepted)."""
    replace: Mapping[int, Row]
    """Number of accepted drafts, if not all -> pmf of the next token."""
    test: str
    residual: str
    sure: tuple[str, str]
    """What the rule states about a draft that it never accepts, and about one that it always accepts."""


def _rule_of_drafts(given: GivenDrafts) -> _RoundRule:
    """Return how probable the tests and replacements of the round ``given`` are if each draft is tested alone.

    These are the acceptance probability of each draft and the law of its replacement (2211.17192, Algorithm 1).
    """
    places = range(len(given.drafts))
    accept = [expected_accept(given, i) for i in places]
    replace = {i: excess(given.rows.p[i], given.rows.q[i]) for i in places}
    sure = "never accepted, as p = 0", "always accepted, as p >= q"
    return _RoundRule(accept, replace, "= min(1, p/q)", "norm(max(p - q, 0))", sure)


def _block_rule(given: GivenDrafts) -> _RoundRule:
    """Return ``_rule_of_drafts(given)`` with block verification (2403.10444, Algorithm 2) in place of single tests."""
    block = block_round(given)
    sure = "never accepted by block verification", "always accepted by block verification"
    return _RoundRule(block.accept, block.replace, "by block verification", "norm(max(w p - q, 0))", sure)


def _round(here: InScenario, given: GivenDrafts, done: Round, decisions: Sequence[Decision], rule: _RoundRule) -> str:
    parts = [_drafted(given)]
    accepted = accepted_of(here, done, bonus=given.has_bonus) - (outcomes_of(decisions) in given.own_replacements)
    decided = accepted + (len(done.tokens) > accepted and accepted < len(given.drafts))
    parts += [_decided(given, i, decisions, rule, accepted=i < accepted) for i in range(decided)]
    if len(done.tokens) > accepted:
        parts.append(_behind(given, accepted, done.tokens[accepted], rule))
    if follow := done.tokens[accepted + 1 :]:
        parts.append(f"then {' '.join(map(str, follow))}")
    return ", ".join(parts)


def _drafted(given: GivenDrafts) -> str:
    masses = [given.rows.q[i][token] for i, token in enumerate(given.drafts)]
    open_ones = [short(mass) for mass in masses] if any(mass != 1 for mass in masses) else []
    q = f" (q = {', '.join(open_ones)})" if open_ones else ""
    return f"drafted {' '.join(map(str, given.drafts))}{q}"


def _decided(given: GivenDrafts, i: int, decisions: Sequence[Decision], rule: _RoundRule, *, accepted: bool) -> str:
    """Describe the test of draft ``i`` of the round ``given``: its result and its acceptance probability.

    The probability of the rule is added if it differs. ``accepted`` is the result, and ``decisions`` are those of the
    path.
    """
    does, ought = given.accept[i], rule.accept[i]
    word = "accepted" if accepted else "rejected"
    which = f"draft {i + 1} ({given.drafts[i]}) {word}" if len(given.drafts) > 1 else word
    place = next((place_of(decision) for decision in decisions if is_coin(decision, does)), "")
    sign = "<" if accepted else ">="
    if abs(does - ought) > NEAR:
        seen, said = apart(does, ought)
        if place and ought in {0, 1}:
            return f"{which} (u {sign} {seen}, {place}; expected {rule.sure[int(ought)]})"
        if place:
            return f"{which} (u {sign} {seen}, {place}; expected u {sign} {said} {rule.test})"
        return f"{which} (P(accept) = {seen}, expected {said} {rule.test})"
    if does in {0, 1}:
        return which
    if not place and not any(_has_probability(decision, does) for decision in decisions):
        return f"{which} (P(accept) = {short(does)})"  # several draws decide
    return f"{which} (u {sign} {short(does)}{f', {place}' if place else ''})"


def _has_probability(decision: Decision, mass: Any) -> bool:
    """Return whether ``decision`` has two outcomes, and one of them the probability ``mass``."""
    return len(decision.weights) == OF_A_COIN and any(abs(weight - mass) <= NEAR for weight in decision.weights)


def _behind(given: GivenDrafts, accepted: int, token: int, rule: _RoundRule) -> str:
    """Describe the ``token`` that the round ``given`` emits after ``accepted`` accepted drafts, with its probability.

    The probability of the rule is added if it differs.
    """
    rejected = accepted < len(given.drafts)
    law = given.replace.get(accepted, {}) if rejected else given.bonus or {}
    row = rule.replace[accepted] if rejected else given.rows.p[accepted]
    does, ought = law.get(token, 0), row[token] if 0 <= token < len(row) else 0
    place = given.places.get(("replace" if rejected else "bonus", accepted), "")
    word = f"replaced by {token}" if rejected else f"bonus {token}"
    seen: Any = short(does)
    inside = [] if does == 1 and abs(does - ought) <= NEAR else [f"probability {seen}"]
    if place and inside:
        inside.append(place)
    told = ", ".join(inside)
    if abs(does - ought) > NEAR:
        seen, said = apart(does, ought)
        told = f"probability {seen}{f', {place}' if place else ''}; expected {said}"
        told += f" by {rule.residual}" if rejected else " = p"
    return f"{word} ({told})" if told else word
