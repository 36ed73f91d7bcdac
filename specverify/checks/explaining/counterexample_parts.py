"""Parts that counterexamples of decoders and of engines share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, ParamSpec, TypeVar

from specverify.checks.explaining.readings import UNDRAFTED, Reading, ReadRound
from specverify.checks.explaining.round_faults import Context
from specverify.checks.explaining.wording import LONG_ROW, apart, short, short_row
from specverify.reference import Pmf, Tokens
from specverify.subjects.subject import EngineProgram, InScenario

Found = TypeVar("Found")
Given = ParamSpec("Given")
SHOWN = 3
"""The largest number of paths in a counterexample."""
SEARCHED = 8
"""The number of paths that are searched for the fault."""
EVIDENCE = 16
"""The number of further paths that are read as evidence of a fault."""
SEARCHED_TREES = 40
"""The number of paths that are searched for the fault of a verifier of trees."""
MOST_TREE_PATHS = 400
"""The largest number of paths that are read as rounds with trees or with several candidates."""
NEAR = 1e-9
"""The rounding error of the entries of a row."""
NEAR_LAW = 1e-6
"""The rounding error of probabilities that are sums over paths."""


def or_none(explain: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found | None:
    """Return ``explain(*given, **named)``, or None if it raises: a failed explanation must not lose the refutation."""
    try:
        return explain(*given, **named)
    except Exception:  # noqa: BLE001 - an explanation runs the program once more, and that may raise anything
        return None


def described(here: InScenario | EngineProgram) -> str:
    """Return one line that identifies the checked case ``here``.

    For a decoder, the line has the vocabulary, options, prompt and limits. For an engine, it has the name of its
    setting (requests, models and limits).
    """
    if isinstance(here, EngineProgram):
        return f"setting {here.name}"
    scenario = here.scenario
    first, last = range(min(scenario.vocabulary, LONG_ROW)), scenario.vocabulary - 1
    tokens = ", ".join(map(str, first)) + (f", ..., {last}" if last > first[-1] else "")
    line = f"vocabulary {{{tokens}}}, {here.variant.label}, prompt {scenario.prompt}, horizon {scenario.horizon}"
    return line + (f", end-of-sequence {scenario.eos}" if scenario.eos else "")


def laws_differ(law: Mapping[Any, float], expected: Mapping[Any, Any]) -> bool:
    """Return whether a probability in ``law`` differs from the one in ``expected`` by more than rounding."""
    return any(abs(law.get(key, 0) - float(expected.get(key, 0))) > NEAR_LAW for key in law.keys() | expected)


def readable(value: Any) -> str:
    """Format the probability ``value``: a rational unchanged, a float with six digits."""
    return str(value) if isinstance(value, (Fraction, int)) else f"{value:.6g}"


def shown_pmf(pmf: Pmf) -> str:
    """Format a pmf as ``(1/2, 1/2)``."""
    return short_row(pmf.tolist())


class BeyondOutcome(NamedTuple):
    """The outcome that exceeds its expected probability the most.

    ``does`` and ``should`` are its observed and its expected probability in words.
    """

    outcome: Any
    does: str
    """The observed probability."""
    should: str
    """The expected probability."""

    @property
    def sentence(self) -> str:
        """Return a sentence about the outcome as new tokens."""
        return f"the new tokens should be {self.outcome} with probability {self.should}, but are with {self.does}"


def most_beyond(law: Mapping[Any, Any], expected: Mapping[Any, Any]) -> BeyondOutcome:
    """Return the outcome that exceeds its expected probability the most.

    ``law`` and ``expected`` map outcomes to their observed and expected probabilities.
    """
    worst = max(law.keys() | expected.keys(), key=lambda key: (law.get(key, 0) - expected.get(key, 0), key))
    return BeyondOutcome(worst, *apart(law.get(worst, 0), expected.get(worst, 0)))


def lines_of_paths(lines: Sequence[str], weights: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the output lines for descriptions of paths: for each, a line with its probability, then its own lines.

    ``lines`` are the descriptions, each with a line for each round; ``weights`` maps a description to its probability.
    """
    return tuple(part for line in lines for part in (f"with probability {short(weights[line])}:", *line.split("\n")))


def words_of_rounds(reading: Reading) -> str:
    """Return the rounds of a path in words, one line for each, with an arrow at the first round that deviates.

    ``reading`` is the path, described as rounds. The lines end with the deviating round, and state how many rounds are
    left out. If the deviation belongs to no round, all rounds are listed without an arrow. A token without drafts may
    belong to the round of the tokens behind it, if no draw shows its draft; then the lines have the numbers of new
    tokens in place of those of rounds.
    """
    words = list(reading.words)
    number = next((i for i, one in enumerate(reading.rounds) if one.fault), None)
    if number is not None and reading.rounds[number].fault == reading.fault:
        left_out = len(words) - number - 1
        more = f"; {left_out} more round{'s' if left_out > 1 else ''}" if left_out else ""
        words = [*words[:number], f"{words[number]}   <- here{more}"]
    if len(reading.words) < 2:
        return "\n".join(words)
    if all(one.drafts for one in reading.rounds[:-1]):
        return "\n".join(f"round {i}: {one}" for i, one in enumerate(words, 1))
    return "\n".join(_at_new_tokens(reading.rounds[: len(words)], words))


def _at_new_tokens(rounds: Sequence[ReadRound], words: Sequence[str]) -> list[str]:
    """Return the lines ``words`` about ``rounds``, each with the number of its first new token in front.

    Certain tokens in a row share a line.
    """
    result, certain = list[str](), list[tuple[int, int]]()
    for one, said in zip(rounds, words, strict=True):
        number, (role, row) = len(one.text) - len(rounds[0].text) + 1, one.end
        is_token = role == "plain" and one.dropped is None
        if is_token and not one.fault and max(row) > 1 - NEAR:
            certain.append((number, list(row).index(max(row))))
            continue
        result += _certain_tokens(certain)
        certain = []
        from_here = f"new token {number}: {said.removeprefix(UNDRAFTED)}"
        result.append(from_here if is_token else f"from new token {number} on: {said}")
    return [*result, *_certain_tokens(certain)]


def _certain_tokens(tokens: Sequence[tuple[int, int]]) -> list[str]:
    """Return one line about ``tokens``, which has (number, token) of certain tokens in a row; [] if there is none."""
    if not tokens:
        return []
    first, last = tokens[0][0], tokens[-1][0]
    numbers = f"new token {first}" if first == last else f"new tokens {first} to {last}"
    return [f"{numbers}: {' '.join(str(token) for _, token in tokens)} (p = 1)"]


def lines_of_rows(seen: Mapping[Tokens, Mapping[str, Pmf]], shown: Sequence[Reading] = ()) -> list[str]:
    """Return lines of a counterexample that give the rows of p and q after each text in ``seen``.

    ``seen`` maps a text to its rows. ``shown`` are the paths in the counterexample, described as rounds. If some of
    their rounds deviate from the rule, only the rows of these rounds are returned.
    """
    decide = {
        one.text + one.drafts[:i]
        for reading in shown
        for one in reading.rounds
        if one.fault
        for i in range(len(one.drafts) + 1)
    }
    kept = {text: rows for text, rows in seen.items() if text in decide}
    ordered = sorted((kept or seen).items(), key=lambda item: (len(item[0]), item[0]))
    return [
        f"after {tokens}: " + "   ".join(f"{letter} = {shown_pmf(rows[letter])}" for letter in sorted(rows))
        for tokens, rows in ordered
    ]


def with_contexts(let: tuple[str, ...], contexts: Sequence[Context]) -> tuple[str, ...]:
    """Return the lines ``let`` of a counterexample, with a line added for each of ``contexts`` that has none yet.

    A context is (text, row of p, row of q). Its line has the form ``after (0, 1): p = (0.5, 0.5)   q = (1, 0)``.
    """
    lines = list(let)
    for text, p, q in contexts:
        if not any(line.startswith(f"after {text}:") for line in lines):
            lines.append(f"after {text}: p = {short_row(p)}" + (f"   q = {short_row(q)}" if q else ""))
    return tuple(lines)
