"""Build counterexamples of decoders: the texts that show a fault, and the most probable paths to it in words.

A *reading* of a path describes its draws as rounds of speculative decoding: each is a draft, a test, a replacement or a
bonus (``round_readings``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice, pairwise
from operator import eq
from typing import Any

from specverify.base.verdict import Counterexample
from specverify.checks.check import is_law_of_one_round
from specverify.checks.explaining.counterexample_parts import (
    EVIDENCE,
    MOST_TREE_PATHS,
    SEARCHED,
    SEARCHED_TREES,
    SHOWN,
    described,
    lines_of_paths,
    lines_of_rows,
    most_beyond,
    or_none,
    with_contexts,
    words_of_rounds,
)
from specverify.checks.explaining.drawn_candidates import rule_of_candidates
from specverify.checks.explaining.drawn_trees import trees_of_run
from specverify.checks.explaining.engine_paths import (
    OF_A_COIN,
    SEARCHED_PATHS,
    PathDraw,
    describe_draws,
    draws_of,
)
from specverify.checks.explaining.engine_rounds import engine_rounds
from specverify.checks.explaining.first_difference import first_difference
from specverify.checks.explaining.given_drafts import GENERIC
from specverify.checks.explaining.readings import ROLES, Models, Reading, items_of_decisions
from specverify.checks.explaining.round_faults import RoundFault, fault_of_labelled_blocks, fault_of_rounds
from specverify.checks.explaining.round_readings import reading_of
from specverify.checks.explaining.round_stories import given_of_path, impossible_step, rounds_of_path
from specverify.checks.explaining.tree_readings import tree_reading
from specverify.checks.explaining.tree_rules import TreeRound, has_tree_rule, name_of_tree_rule
from specverify.checks.explaining.wording import short
from specverify.laws.draws import Decision, Replayed
from specverify.laws.enumeration import heaviest_decodes, whole_run
from specverify.laws.paths import Path, heaviest_paths, paths
from specverify.reference import Decoder, LanguageModel, Pmf, Task, Tokens
from specverify.subjects.emitted import no_token
from specverify.subjects.subject import InScenario
from specverify.subjects.warped_tasks import Processed

SEARCHED_BLOCKS = 200
"""The number of paths that are searched for a wrong draw of a verifier of blocks."""
SEARCHED_TESTS = 50
"""Number of paths on which the outcomes of tests of drafts are compared with what follows them."""
_PHRASES: dict[object, Callable[[Decision], str]] = {
    "draft": lambda d: f"draft {d.outcome}",
    "accept": lambda d: "accepted" if d.outcome == 0 else "rejected",
    "residual": lambda d: f"resampled {d.outcome}",
    "bonus": lambda d: f"bonus {d.outcome}",
    "target": lambda d: f"target draws {d.outcome}",
}


def law_counterexample(here: InScenario, law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> Counterexample:
    """Return a counterexample for the decoder ``here``, whose ``law`` differs from ``expected``.

    The counterexample shows the outcome with the largest excess of probability, paths to this outcome, and the fault of
    the rounds.
    """
    beyond = most_beyond(law, expected)
    worst, then = beyond.outcome, beyond.sentence
    readings: list[Reading] = []
    example = outcome_counterexample(here, worst, then, readings)
    difference = first_difference(law, expected)
    fault = or_none(fault_of_rounds, here) or or_none(_fault_of_path, here, worst)
    if fault is None and here.decoder.propose is None:
        fault = or_none(fault_of_labelled_blocks, here) or or_none(_fault_of_candidates, here)
        fault = fault or or_none(_fault_of_named_draws, here)
    read = next((reading.fault for reading in readings if reading.fault), "")
    if difference is None:
        return example if fault is None else example._replace(fault=fault.sentence)
    row = here.variant.label.partition(", ")[2]
    where = f"{row}: " if row.startswith("row") else ""
    named = _outside(law, here.scenario.vocabulary) + (fault.sentence if fault else where + (read or difference.fault))
    rows = (difference.fault, *difference.rows) if read and not fault else difference.rows
    example = example._replace(let=with_contexts(example.let, fault.contexts if fault else ()))
    return example._replace(fault=named, rows=rows, sure=fault is not None and fault.named)


def _outside(law: Mapping[Any, Any], vocabulary: int) -> str:
    """Return the beginning of a sentence that names an emitted number which is no token; "" if there is none."""
    emitted = {token for new, mass in law.items() if mass > 0 for token in new}
    said = next(filter(None, (no_token(token, vocabulary) for token in sorted(emitted))), "")
    return said and f"{said}: "


def _fault_of_path(here: InScenario, outcome: Tokens) -> RoundFault | None:
    """Return how the rounds of the decoder ``here`` differ from speculative sampling; None if this is not recognised.

    The first rounds are examined, and the rounds on the most probable paths that emit ``outcome``.
    """
    heaviest = _paths_to(outcome, here, here.variant.build(here.task), SHOWN)
    later = [given for _, path in heaviest for given in given_of_path(here, path.choices)]
    return fault_of_rounds(here, later)


def _fault_of_named_draws(here: InScenario) -> RoundFault | None:
    """Return the fault of the decoder ``here``, which labels its draws but has no separate ``propose`` step.

    Its most probable paths are read as rounds, by the labels of their draws. Returns None if no fault is recognised, or
    if a path has no labels.
    """
    read = []
    for place in (here, *(here._replace(scenario=scenario) for scenario in GENERIC)):
        program = whole_run(place.variant.build(place.task), place.prompt)
        for _, path in heaviest_paths(program, lambda _: 1, EVIDENCE, SEARCHED_PATHS):
            models = _models_of_decoder(place, path)
            if models is None:
                return None
            read.append((items_of_decisions(_with_usual_tests(here, path.decisions)), path.outcome, models))
    rounds = engine_rounds(read)
    return RoundFault(rounds.fault, frozenset(), rounds.named) if rounds.fault else None


def _fault_of_candidates(here: InScenario) -> RoundFault | None:
    """Return the fault of the decoder ``here``, which draws several candidates for one position; None if it does not.

    Its draws may have labels of its own. A draw with two outcomes is read as a coin; which of them accepts a candidate
    is not known, so both are tried. Scenarios with two tokens, in which such a draw may choose a token, do not count.
    """
    for scenario in (here.scenario, *GENERIC):
        size, place = scenario.vocabulary, here._replace(scenario=scenario._replace(horizon=1))
        if size <= OF_A_COIN:
            continue
        program = whole_run(place.variant.build(place.task), place.prompt)
        heaviest = heaviest_paths(program, lambda _: 1, MOST_TREE_PATHS, SEARCHED_PATHS)
        for accepting in range(OF_A_COIN):
            read = [(_labelled(path.decisions, size, accepting), path.outcome) for _, path in heaviest]
            sentence = rule_of_candidates(read, place.task.target, place.prompt)
            if sentence:
                return RoundFault(sentence, frozenset())
    return None


def _labelled(decisions: Sequence[Decision], size: int, accepting: int) -> list[PathDraw]:
    """Return the draws of ``decisions`` with their labels in place of lines; draws with two outcomes become coins.

    ``size`` is the vocabulary size, and ``accepting`` the outcome of a coin that accepts a candidate.
    """
    result = []
    for item in draws_of(decisions):
        draw = item._replace(place=item.place or item.call)
        if len(item.pmf) == OF_A_COIN < size:
            bound = item.pmf[accepting]
            low, high = (0.0, bound) if item.outcome == accepting else (bound, 1.0)
            draw = draw._replace(low=low, high=high, outcome=None, pmf=())
        result.append(draw)
    return result


def outcome_counterexample(
    here: InScenario, outcome: Tokens, then: str, readings: list[Reading] | None = None
) -> Counterexample:
    """Return a counterexample with the most probable paths of the decoder ``here`` to the forbidden ``outcome``.

    Three paths are shown, or only one if it deviates from the rule. ``then`` is the last sentence of the
    counterexample. The readings of the paths, which describe their draws as rounds, are appended to ``readings``.
    """
    seen: dict[Tokens, dict[str, Pmf]] = {}
    decoder = here.variant.build(_recording(here.task, seen))
    of_blocks = here.decoder.propose is None and or_none(fault_of_labelled_blocks, here) is not None
    number = SEARCHED_BLOCKS if of_blocks else SEARCHED
    heaviest = [path for _, path in _paths_to(outcome, here, decoder, number)]
    if any(or_none(tree_reading, here, path.choices) is not None for path in heaviest):
        return _tree_counterexample(here, outcome, then, readings)
    weights: dict[str, Any] = {}
    paths_of = dict[str, list[Path[Any]]]()
    for path in heaviest:
        line = _describe_path(here, path, readings)
        weights[line] = weights.get(line, 0) + path.weight
        paths_of.setdefault(line, []).append(path)
    lines = sorted(weights, key=lambda line: ("expected" not in line, -weights[line]))[:SHOWN]
    lines = lines[:1] if lines and "expected" in lines[0] else lines
    seen.clear()
    for line in lines:
        for path in paths_of[line]:
            whole_run(decoder, here.prompt)(Replayed(path.choices))
    let = (described(here), *lines_of_rows(seen))
    return Counterexample(let=let, then=then, because=lines_of_paths(lines, weights))


def _paths_to(outcome: Tokens, here: InScenario, decoder: Decoder, number: int) -> list[tuple[Any, Path[Tokens]]]:
    """Return (weight, path) of the ``number`` most probable paths to the tokens ``outcome``.

    The paths are those of ``decoder`` in the scenario of ``here``. There may be no such path. If ``outcome`` is one
    round followed by tokens of the target, the returned paths then emit as many of its first tokens as possible.
    Otherwise all decodes are searched, because a decoder may change earlier tokens or depend on more than its state.
    """
    found = heaviest_decodes(decoder, here.prompt, outcome, number, SEARCHED_PATHS)
    if found or not is_law_of_one_round(here):
        equal = partial(eq, outcome)
        return found or heaviest_paths(whole_run(decoder, here.prompt), equal, number, SEARCHED_PATHS)
    begins = (outcome[:length] for length in range(len(outcome) - 1, 0, -1))
    searches = (heaviest_decodes(decoder, here.prompt, it, number, SEARCHED_PATHS, longer=True) for it in begins)
    return next(filter(None, searches), [])


def impossible_token(here: InScenario, outcome: Tokens) -> str:
    """Describe the step by which the decoder ``here`` emits a token with p = 0; "" if there is none.

    The most probable path to ``outcome`` is examined.
    """
    heaviest = _paths_to(outcome, here, here.variant.build(here.task), 1)
    return (or_none(impossible_step, here, heaviest[0][1].choices) if heaviest else "") or ""


def _tree_counterexample(
    here: InScenario, outcome: Tokens, then: str, readings: list[Reading] | None
) -> Counterexample:
    """Return a counterexample with paths of draft trees of the decoder ``here`` to the forbidden ``outcome``.

    If a path deviates from the rule, it alone is shown. ``then`` is the last sentence of the counterexample. The
    readings of the paths, which describe their draws as rounds, are appended to ``readings``.
    """
    seen: dict[Tokens, dict[str, Pmf]] = {}
    decoder = here.variant.build(_recording(here.task, seen))
    heaviest = _paths_to(outcome, here, decoder, SEARCHED_TREES)
    weights: dict[str, Any] = {}
    paths_of, faults = dict[str, Path[Any]](), dict[str, str]()
    rounds, deviation, method, end = list[TreeRound](), "", "", ""
    for weight, path in heaviest:
        result = or_none(tree_reading, here, path.choices)
        rounds += result.rounds if result else ()
        if result and result.example and not deviation:
            deviation, method = result.example, result.method
        end = end or (result.end if result else "")
        line = result.words if result else _describe_path(here, path, None)
        weights[line] = weights.get(line, 0) + weight
        paths_of.setdefault(line, path)
        faults[line] = (result.fault or result.example or result.last) if result else ""
    rule = or_none(_rule_of_trees, here, rounds) or ""
    if method and not rule:
        deviation += f" by {method}"
    named = ":".join(filter(None, (rule, deviation))).strip() or end
    lines = sorted(weights, key=lambda line: (not faults[line], -weights[line]))[:SHOWN]
    seen.clear()
    for line in lines:
        whole_run(decoder, here.prompt)(Replayed(paths_of[line].choices))
    if readings is not None:
        unseen = bool(rule) and not any(faults.values())  # the rule shows on other paths
        readings += [Reading((line,), named if faults[line] or unseen else "", (), 0.0) for line in lines]
    lines = lines[:1] if faults[lines[0]] else lines
    said = lines_of_paths(lines, weights)
    return Counterexample(let=(described(here), *lines_of_rows(seen)), then=then, because=said)


def _rule_of_trees(here: InScenario, rounds: Sequence[TreeRound]) -> str:
    """Return the name of the wrong rule that the rounds of the decoder ``here`` follow; "" if none fits all.

    ``rounds`` and further rounds are examined, also with a vocabulary of three.
    """
    seen = list(rounds)
    for place in (here, *(here._replace(scenario=scenario) for scenario in GENERIC)):
        if not has_tree_rule(seen):
            return ""
        program = whole_run(place.variant.build(place.task), place.prompt)
        for _, path in heaviest_paths(program, lambda _: 1, SEARCHED_TREES, MOST_TREE_PATHS):
            result = tree_reading(place, path.choices)
            seen += result.rounds if result else ()
    return name_of_tree_rule(seen)


def _describe_path(here: InScenario, path: Path[Any], readings: list[Reading] | None) -> str:
    """Describe a path of the decoder ``here`` round by round, or, if that is not possible, by its trees and decisions.

    If the path can be read as rounds, the reading is appended to ``readings``.
    """
    trees = trees_of_run(here.decoder, here.prompt, path.choices)
    rounds = None if trees else or_none(rounds_of_path, here, path.choices)
    if rounds or trees:
        return rounds or "; ".join([*trees, _story(path.decisions)])
    reading = or_none(_read_decoder, here, path)
    if reading is None:
        return _story(_with_usual_tests(here, path.decisions))
    if readings is not None:
        readings.append(reading)
    return words_of_rounds(reading)


def _read_decoder(here: InScenario, path: Path[Any]) -> Reading | None:
    """Describe a path of the decoder ``here`` as rounds of speculative decoding, with a role for each draw.

    Returns None if that fails, or if the draws of the decoder have no labels such as "accept".
    """
    models = _models_of_decoder(here, path)
    if models is None:
        return None
    return reading_of(items_of_decisions(_with_usual_tests(here, path.decisions)), models, path.outcome)


def _with_usual_tests(here: InScenario, decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    """Return ``decisions`` of the decoder ``here``, such that outcome 0 of each test of a draft means acceptance.

    A decoder may also draw its tests from (1 - a, a), where outcome 1 means acceptance. Their outcomes are exchanged.
    """
    if not _accepts_by_one(here):
        return decisions
    return tuple(Decision(one.site, one.weights[::-1], 1 - one.outcome) if _is_test(one) else one for one in decisions)


def _accepts_by_one(here: InScenario) -> bool:
    """Return whether outcome 1 of a test of the decoder ``here`` means that a draft is accepted.

    The draw after a test shows what the outcome meant: a further test or a bonus follows an acceptance, and a
    replacement follows a rejection. The result is True if such draws follow on some paths, and all of them agree that
    outcome 1 is an acceptance.
    """
    seen = set()
    for path in islice(paths(whole_run(here.decoder, here.prompt)), SEARCHED_TESTS):
        for test, following in pairwise(path.decisions):
            if _is_test(test) and following.site[0] in {"accept", "bonus", "residual"}:
                seen.add(test.outcome if following.site[0] != "residual" else 1 - test.outcome)
    return seen == {1}


def _is_test(decision: Decision) -> bool:
    return decision.site[:1] == ("accept",) and len(decision.weights) == 2


def _models_of_decoder(here: InScenario, path: Path[Any]) -> Models | None:
    if here.task.draft is None or not any(
        decision.site[:1] in {("draft",), ("accept",)} for decision in path.decisions
    ):
        return None
    horizon = here.scenario.horizon
    return Models(here.task.target, here.task.draft, here.prompt, horizon, roles=ROLES, guesses=False, open_end=False)


def _story(decisions: tuple[Decision, ...]) -> str:
    """Return the decisions of a path in words.

    A draw with a label (draft, accept, ...) is described by it, and another draw as a draw or a coin.
    """
    parts, rest = [], list[Decision]()

    def describe_rest() -> list[str]:
        said = (
            [describe_draws(draws_of(rest))]
            if any(decision.weights[decision.outcome] != 1 for decision in rest)
            else []
        )
        rest.clear()
        return said

    for decision in decisions:
        name = decision.site[0] if decision.site else None
        if name not in _PHRASES:
            rest.append(decision)
            continue
        parts += describe_rest()
        weight = decision.weights[decision.outcome]
        parts.append(_PHRASES[name](decision) + (f" ({short(weight)})" if weight != 1 else ""))
    return ", ".join([*parts, *describe_rest()]) or "without any draw"


def _recording(task: Task, seen: dict[Tokens, dict[str, Pmf]]) -> Task:
    """Return ``task`` with models that store in ``seen`` the row after each text that they are queried with.

    A subject that applies the sampling parameters itself queries a processed model for its bare row. Then the processed
    row is stored too.
    """

    def record(model: LanguageModel, letter: str) -> LanguageModel:
        def answer(tokens: Tokens) -> Pmf:
            pmf = model(tokens)
            seen.setdefault(tokens, {})[letter] = pmf
            return pmf

        if not isinstance(model, Processed):
            return answer

        def bare(tokens: Tokens) -> Any:
            answer(tokens)
            return model.bare(tokens)

        return Processed(bare, answer)

    return task._replace(target=record(task.target, "p"), draft=None if task.draft is None else record(task.draft, "q"))
