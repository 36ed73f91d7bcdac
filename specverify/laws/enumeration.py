"""The exact output law of a program: run it under every outcome of every draw and multiply the probabilities.

``program_law`` adds up the paths of any program of draws. ``decoder_law`` computes a law round by round and merges
equal states, so that several rounds are affordable. Both require that a program is deterministic given the outcomes of
its draws; ``decoder_law`` also requires that the state contains everything on which the next round depends. A budget
bounds the runs; the total probability of the paths left out is returned as missing mass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from heapq import nlargest
from itertools import islice
from operator import itemgetter, ne, sub
from typing import Any, NamedTuple

from specverify.base.arguments import argument_error, check_integer
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.laws.law import Coverage, Law, continued, target_law
from specverify.laws.paths import Path, RunBudget, estimated_paths, has_more_paths, outcomes_of, paths
from specverify.laws.rounding import FLOAT64, Rounding, worst
from specverify.laws.rounding import after as one_after
from specverify.reference import Decoder, Draws, Round, State, Task, Tokens

DEFAULT_RUNS = 200_000
FIRST_PATHS = 256
"""Number of paths of the first round after which a few further runs estimate how many remain."""


class EnumerationTooLarge(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if an enumeration needs more runs than are permitted.

    Where the number of paths can be estimated, it is raised after a few runs.
    """


class _Reached(NamedTuple):
    """A state of the enumeration, and observations on the paths that lead to it.

    ``weight`` is the probability of the state over all these paths, and ``draws`` the largest number of draws on one of
    them. ``coverage`` has the numbers of rounds, drafts and acceptances, ``rounding`` the observations for the rounding
    bound.
    """

    weight: Any = 0
    draws: int = 0
    coverage: Coverage = Coverage()
    rounding: Rounding = Rounding()


_NOWHERE = _Reached()


def program_law(
    program: Callable[[Draws], Any],
    budget: int = DEFAULT_RUNS,
    first: tuple[int, ...] = (),
    on_path: Callable[[Path[Any]], None] = lambda path: None,
) -> Law:
    """Return the law of the (hashable) result of ``program``, within ``budget`` runs, as ``RunBudget`` counts them.

    The probability of paths that need more runs is ``missing`` in the law. ``on_path`` is called with each path. With
    ``first``, only paths whose first draws have these outcomes are enumerated; their probabilities are not rescaled.
    """
    check_integer(budget, "the budget")
    law: dict[Any, Any] = {}
    followed: list[Any] = []
    runs = decisions = 0
    share: Any = 1
    rounding = Rounding()
    spent = RunBudget(budget)
    for path in paths(program, first, rare=spent.leave_out):
        if runs == 0:
            share = math.prod(step.weights[step.outcome] for step in path.decisions[: len(first)])
        runs += 1
        spent.follow()
        on_path(path)
        for outcome, part in outcomes_of(path.outcome):
            mass = path.weight if isinstance(part, int) else path.weight * part  # the whole of it is 1
            law[outcome] = law[outcome] + mass if outcome in law else mass
        followed.append(path.weight)
        decisions = max(decisions, len(path.choices))
        rounding = worst(rounding, path.rounding)
        if spent.is_over:
            break
    missing = share - sum(followed) if spent.is_over else _shown(spent.lost, runs)
    return Law(law, missing, runs, max(decisions, len(spent.lost[:1])), rounding=rounding)


def far_exceeds(program: Callable[[Draws], Any], runs: int) -> bool:
    """Return whether a few random runs of ``program`` show that it has more than ``runs`` paths.

    The result is False if one of these runs raises an error; an enumeration meets and reports this error.
    """
    with suppress(Exception):
        return has_more_paths(program, runs)
    return False


def complete_law(program: Callable[[Draws], Any]) -> dict[Any, Any]:
    """Return the law of ``program`` as outcome -> probability, in the order of the outcomes.

    Raises ``EnumerationTooLarge`` if ``DEFAULT_RUNS`` runs do not cover every path; often a few runs show this.
    """
    if far_exceeds(program, DEFAULT_RUNS):
        raise EnumerationTooLarge(f"the call without speculation has more than {DEFAULT_RUNS} paths")
    law = program_law(program)
    if law.missing:
        raise EnumerationTooLarge(f"the call without speculation has more than {law.runs} paths")
    return {outcome: law.probabilities[outcome] for outcome in sorted(law.probabilities)}


def decoder_law(decoder: Decoder, prompt: Tokens, budget: int = DEFAULT_RUNS) -> Law:
    """Return the law of the new tokens of ``decoder`` after ``prompt``, round by round, with equal states merged.

    At most ``budget`` rounds are run, fewer if long paths are left out (``RunBudget``); the probability of the other
    paths is ``missing`` in the law. Raises ``EnumerationTooLarge`` if the first round alone is estimated to need more
    than ten times the budget.
    """
    if not isinstance(decoder, Decoder):
        raise argument_error("the decoder", decoder, "a Decoder, as an algorithm's build makes it")
    check_integer(budget, "the budget")
    start = decoder.init(prompt)
    few = min(FIRST_PATHS, budget)
    waiting: dict[int, dict[State, _Reached]] = defaultdict(dict)
    waiting[len(start.tokens)][start] = _Reached(1)
    law: dict[Tokens, Any] = {}
    missing: Any = 0
    runs = decisions = 0
    coverage, rounding = Coverage(), Rounding()
    spent = RunBudget(budget)
    while waiting:
        length = min(waiting)
        for state, (weight, drawn, seen, rounded) in waiting.pop(length).items():
            if state.remaining <= 0:
                new = state.tokens[len(prompt) :]
                law[new] = law.get(new, 0) + weight
                decisions, coverage = max(decisions, drawn), _wider(coverage, seen)
                rounding = worst(rounding, rounded)
                continue
            followed: list[Any] = []
            passed, cut = len(spent.lost), False
            for path in paths(lambda draws, state=state: decoder.step(draws, state), rare=spent.leave_out):  # type: ignore[misc]
                if runs == few and state == start:
                    _refuse_if_hopeless(decoder, start, budget)
                if spent.is_over:
                    cut = True
                    break
                runs += 1
                spent.follow()
                followed.append(path.weight)
                after, done = path.outcome
                if len(after.tokens) <= length and after.remaining > 0:
                    raise ValueError(f"a round committed no token after {state.tokens}, expected at least one")
                through = _after_round(seen, len(done.draft), done.accepted)
                there = waiting[len(after.tokens)]
                before = there.get(after, _NOWHERE)
                there[after] = _Reached(
                    before.weight + weight * path.weight,
                    max(before.draws, drawn + len(path.choices)),
                    _wider(before.coverage, through),
                    worst(before.rounding, one_after(rounded, path.rounding)),
                )
            left_out = spent.lost[passed:]
            cut = cut or (bool(left_out) and spent.is_over)
            missing = missing + weight * (reduce(sub, followed, 1) if cut else _shown(left_out, len(followed)))
    return Law(law, missing, runs, decisions, coverage, rounding)


def one_round_law(decoder: Decoder, task: Task, prompt: Tokens, budget: int = DEFAULT_RUNS) -> Law:
    """Return the law of the new tokens if ``decoder`` makes the first round and the target draws all later tokens.

    Suppose that this law is the target's after every prompt, and that a round depends only on the text so far. Then the
    law of whole decodes is the target's too. ``task`` is the task of the decoder, and ``budget`` bounds the runs of the
    round.
    """

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = decoder.step(draws, state)
        return (after if after.tokens == state.tokens else after._replace(remaining=0)), done

    def later(new: Tokens) -> Mapping[Tokens, Any]:
        left = 0 if new and new[-1] in task.eos else task.horizon - len(new)
        return target_law(task._replace(horizon=left), prompt + new)

    first = decoder_law(decoder._replace(step=step), prompt, budget)
    return first._replace(probabilities=continued(first.probabilities, later))


def whole_run(decoder: Decoder, prompt: Tokens) -> Callable[[Draws], Tokens]:
    """Return a program that decodes to the end by ``decoder`` and returns the new tokens.

    The program takes an interpreter of draws. The decode starts after ``prompt``, and each path is one whole decode.
    """

    def program(draws: Draws) -> Tokens:
        state = decoder.init(prompt)
        while state.remaining > 0:
            state, _ = decoder.step(draws, state)
        return state.tokens[len(prompt) :]

    return program


def heaviest_decodes(
    decoder: Decoder, prompt: Tokens, begin: Tokens, number: int, most: int, *, longer: bool = False
) -> list[tuple[Any, Path[Tokens]]]:
    """Return the ``number`` most probable paths of whole decodes from ``prompt`` whose new tokens are ``begin``.

    With ``longer``, other tokens may follow ``begin``. The result has pairs (probability, path), the most probable
    first. As in ``decoder_law``, the round from a state is enumerated once for all paths that lead to this state; at
    most ``most`` rounds are run. Each path is then repeated as one decode. If a repeated decode has other tokens or
    draws, a round depends on more than the state, and the result is empty.
    """
    start = decoder.init(prompt)
    waiting: dict[int, dict[State, list[tuple[Any, tuple[int, ...]]]]] = defaultdict(dict)
    waiting[len(start.tokens)][start] = [(1, ())]
    ends: list[tuple[Any, tuple[int, ...]]] = []
    runs = 0
    while waiting:
        for state, before in waiting.pop(min(waiting)).items():
            if state.remaining <= 0:
                missing = len(prompt) + len(begin) - len(state.tokens)
                ends += before if missing == 0 or (longer and missing < 0) else []
                continue
            for path in islice(paths(partial(_round_from, decoder, state)), most - runs):
                runs += 1
                after, new = path.outcome, path.outcome.tokens[len(prompt) :]
                if any(map(ne, new, begin)) or (len(new) > len(begin) and not longer):
                    continue
                if after.remaining > 0 and len(after.tokens) <= len(state.tokens):
                    continue
                extended = [(weight * path.weight, choices + path.choices) for weight, choices in before]
                there = waiting[len(after.tokens)]
                there[after] = nlargest(number, [*there.get(after, ()), *extended], key=itemgetter(0))
    result = []
    for _, choices in nlargest(number, ends, key=itemgetter(0)):
        try:
            whole = next(paths(whole_run(decoder, prompt), choices), None)
        except (NotAFunctionOfItsDraws, ValueError):  # another draw, or one without this outcome
            return []
        if whole is None or whole.choices != choices or whole.outcome[: len(begin)] != begin:
            return []
        result.append((whole.weight, whole))
    return result


def _round_from(decoder: Decoder, state: State, draws: Draws) -> State:
    """Return the state after one round of ``decoder`` from ``state``; ``draws`` chooses the outcomes of its draws."""
    return decoder.step(draws, state)[0]


def _shown(lost: Sequence[Any], runs: int) -> Any:
    """Return the sum of ``lost``, the probabilities of paths that an enumeration left out because they were rare.

    The sum is returned as 0 if the rounding errors of an enumeration of ``runs`` runs can explain it.
    """
    result = sum(lost)
    return result if result > FLOAT64 * runs else 0


def _refuse_if_hopeless(decoder: Decoder, start: State, budget: int) -> None:
    estimate = estimated_paths(lambda draws: decoder.step(draws, start))
    if estimate > 10 * budget:
        raise EnumerationTooLarge(
            f"one round from {start.tokens} has about {estimate:.2g} paths, and the budget is {budget} runs: "
            "use a smaller vocabulary or gamma, a larger budget, or sampling"
        )


def _after_round(coverage: Coverage, drafted: int, accepted: int) -> Coverage:
    return Coverage(
        coverage.rounds + 1, coverage.rounds_of_two + (drafted >= 2), coverage.outcomes | {(drafted, accepted)}
    )


def _wider(one: Coverage, other: Coverage) -> Coverage:
    return (
        one
        if one == other
        else Coverage(
            max(one.rounds, other.rounds), max(one.rounds_of_two, other.rounds_of_two), one.outcomes | other.outcomes
        )
    )
