"""Enumerate every path of one call with a vocabulary of real size: draws with few outcomes branch, large ones do not.

A draw over few outcomes, such as an acceptance test, branches as in ``paths``. A draw over a large vocabulary whose
outcome is read gets one outcome, sampled here. ``call_law`` examines its other outcomes one by one, by running the path
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.draws import NotAFunctionOfItsDraws, Question
from specverify.laws.rounding import NEGLIGIBLE, Rounding, collected, drew, saw
from specverify.reference import Draws, Pmf, Site, Tokens, as_pmf, check_pmf

FEW = 32
"""A draw with at most this many outcomes is enumerated: every outcome is followed."""
MOST_PATHS = 4096
USUAL = 1e-3
"""With very many outcomes, one of the first tokens whose probability is at least this share of the largest is taken."""


class Ending(NamedTuple):
    """The tokens that one call of the program emits with given outcomes of its draws.

    If the program never read the last token, its possible values and their probabilities are given in place of the
    token.
    """

    tokens: Tokens
    """The emitted tokens whose values are concrete."""
    values: Any = None
    """``[outcomes]``: the last token for each outcome of its draw, if the program never read it; else None."""
    masses: Any = None
    """``[outcomes]``: the probability of each entry of ``values``; None without ``values``."""


Program = Callable[[Draws], Ending]


class WideDraw(NamedTuple):
    """A draw over a large vocabulary whose outcome the program read.

    It has the site (the name of the decision), the pmf ``[outcomes]``, and the ``outcome`` that the path follows.
    """

    site: Site
    pmf: Any
    outcome: int


class CallPath(NamedTuple):
    """One path of a call: the outcomes of its draws, its probability, and the tokens that the call emitted.

    A small draw is a draw over few outcomes. ``questions`` are the pmfs and names of the small draws, ``wide`` the
    draws over the vocabulary, ``ending`` the emitted tokens. ``rounding`` has the observations from which rounding
    errors are bounded.
    """

    ending: Ending
    weight: float
    """Probability of the outcomes of the small draws on this path."""
    choices: tuple[int, ...]
    """Outcomes of the small draws, in order."""
    questions: tuple[Question, ...]
    wide: tuple[WideDraw, ...]
    rounding: Rounding


class _OneRun:
    """A source of draws that answers one run with given outcomes, so that a path can be repeated.

    Draws over few outcomes get ``choices`` in order, and when these are used up, their first possible outcome. Draw
    number i over a large vocabulary gets ``outcomes[i]`` if there is such an entry, else a likely outcome.
    """

    def __init__(self, choices: tuple[int, ...], questions: tuple[Question, ...], outcomes: Mapping[int, int]) -> None:
        self.choices, self.questions, self.wide = list(choices), list(questions), list[WideDraw]()
        self._outcomes, self._depth = outcomes, 0
        self.failure: Exception | None = None

    def categorical(self, pmf: Pmf, site: Site) -> int:
        try:
            result = as_pmf(pmf)
            saw(result.dtype)
            possible = int(np.count_nonzero(np.asarray(result) > 0))
            drew(possible)
            return self._wide(result, site) if possible > FEW else self._followed(result, site)
        except Exception as error:
            self.failure = error
            raise

    def _followed(self, pmf: Pmf, site: Site) -> int:
        if self._depth < len(self.questions):
            self.questions[self._depth].check_repeated(pmf, site)
        else:
            self.questions.append(Question(pmf, site, self._depth))
            self.choices.append(self.questions[-1].possible[0])
        self._depth += 1
        return self.choices[self._depth - 1]

    def _wide(self, pmf: Pmf, site: Site) -> int:
        number, masses = len(self.wide), np.asarray(check_pmf(pmf, f"the pmf at {site}"), dtype=np.float64)
        result = self._outcomes.get(number, -1)
        if result >= 0 and not (result < len(masses) and masses[result] > 0):
            raise NotAFunctionOfItsDraws(f"outcome {result} of the draw {site} is impossible after other outcomes")
        if result < 0:
            usual = np.flatnonzero(masses > masses.max() * USUAL)
            result = int(usual[min(number + 1, len(usual) - 1)])
        self.wide.append(WideDraw(site, masses, result))
        return result

    def finished(self) -> None:
        """Raise an error if a draw of the finished run failed, or if draws are missing.

        If a draw raised an error and the program caught it, this error is raised again. ``NotAFunctionOfItsDraws`` is
        raised if a replay made fewer draws than the first run.
        """
        if self.failure is not None:
            raise self.failure
        if self._depth < len(self.questions):
            self.questions[self._depth].check_made(self._depth)


def likely(masses: Any, seed: int) -> int:
    """Return an outcome drawn from the pmf ``masses`` with the given seed, so a likely one."""
    return int(np.random.default_rng(seed).choice(len(masses), p=masses / masses.sum()))


def call_paths(program: Program) -> Iterator[CallPath]:
    """Yield the paths of a call, depth first: one for each combination of outcomes of its draws over few outcomes.

    ``program`` makes the call. A path that ends in an error is skipped if its probability is within rounding of 0. At
    most ``MOST_PATHS + 1`` paths are yielded, the last one only to show that there are too many.
    """
    choices: tuple[int, ...] = ()
    questions: tuple[Question, ...] = ()
    for _ in range(MOST_PATHS + 1):
        answered = _OneRun(choices, questions, {})
        try:
            result: CallPath | None = _ran(program, answered)
        except Exception:
            if answered.failure is not None or not _weight(answered) < NEGLIGIBLE:
                raise
            result = None
        if result is not None:
            yield result
        choices, questions = _next(tuple(answered.choices), tuple(answered.questions))
        if not questions:
            return


def again(program: Program, path: CallPath, outcomes: Mapping[int, int]) -> CallPath:
    """Run a path again with the same outcomes of the draws with few outcomes, and return the new path.

    ``outcomes`` maps the index of a draw over the vocabulary to its new outcome; other draws keep theirs. Raises
    ``NotAFunctionOfItsDraws`` if the program then makes other draws.
    """
    kept = {number: draw.outcome for number, draw in enumerate(path.wide)}
    answered = _OneRun(path.choices, path.questions, {**kept, **outcomes})
    result = _ran(program, answered)
    if len(result.questions) > len(path.questions) or [draw.site for draw in result.wide] != [
        d.site for d in path.wide
    ]:
        raise NotAFunctionOfItsDraws("it draws something else when the outcome of a draw is another")
    return result


def _ran(program: Program, answered: _OneRun) -> CallPath:
    with collected() as seen:
        ending = program(answered)
    answered.finished()
    choices, questions, wide = tuple(answered.choices), tuple(answered.questions), tuple(answered.wide)
    return CallPath(ending, _weight(answered), choices, questions, wide, seen.rounding())


def _weight(answered: _OneRun) -> float:
    weight = 1.0
    for question, choice in zip(answered.questions, answered.choices, strict=True):
        weight *= float(question.weights[choice])
    return weight


def _next(choices: tuple[int, ...], questions: tuple[Question, ...]) -> tuple[tuple[int, ...], tuple[Question, ...]]:
    """Return the outcomes of the next path in depth-first order, and its draws, for draws with few outcomes.

    ``choices`` are the outcomes on the current path, and ``questions`` its draws, each as the pmf and the name of the
    draw. After the last path both results are ().
    """
    while questions:
        later = [outcome for outcome in questions[-1].possible if outcome > choices[-1]]
        if later:
            return (*choices[:-1], later[0]), questions
        choices, questions = choices[:-1], questions[:-1]
    return (), ()
