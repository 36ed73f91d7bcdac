"""Check that each value returned with the tokens is a function of the tokens, and the promised one.

On every path of the enumeration, the log-probability of a token must be that of the pmf after the tokens before it,
whether the token was an accepted draft, a replacement or a bonus token. Without any statement of the caller two things
are checked: equal tokens have equal values, however they were drafted, and the values are those of the call without
speculation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.checks.explaining.wording import listed, short_row
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.paths import paths
from specverify.promises.known_values import (
    OF_ROWS,
    PLAIN,
    PROCESSED,
    RAW,
    Kind,
    KnownValues,
    WrongValue,
    are_alike,
    compare_plain,
    shown_value,
)
from specverify.promises.logprobs import (
    compare_cumulative,
    compare_logprobs,
    compare_prompt,
    compare_rows,
    compare_top,
)
from specverify.promises.texts import WHOLE_TEXT_OF, compare_finish, compare_text
from specverify.reference import LanguageModel, Tokens
from specverify.subjects.answering import Answering, Facts, Run, Value
from specverify.subjects.beside import NAMES, OF_TOKENS, Answer, Unreadable
from specverify.subjects.subject import EngineProgram, Subject, UnusableSubject

MOST_PATHS = 4000


def examine(answering: Answering, promises: Mapping[str, Kind], conditions: Conditions) -> Examination:
    """Compare every value that the engine program ``answering`` returns, on every path, with its promise.

    ``promises`` maps the name of each value to its promise.

    * A wrong value refutes, and so does a value that only some answers have.
    * A wrong value on a path with a draw less probable than ``conditions.edge`` becomes a note.
    * The result is unknown if rounding may explain every difference, or if a value has no known expected value.

    Raises ``UnusableSubject`` if no answer has one of the values, and ``EnumerationTooLarge`` for more than
    ``MOST_PATHS`` paths.
    """
    known, seen, runs, edges = _known(answering, promises), dict[Any, Any](), 0, list[Mapping[str, Any]]()
    undecided: WrongValue | None = None
    lacking: dict[str, tuple[Answer, KnownValues]] = {}
    present: set[str] = set()
    for answers, rarest in followed(answering.open()):
        runs += 1
        for place, answer in enumerate(answers):
            against = known[place] if place < len(known) else known[-1]
            if rarest < conditions.edge:
                edges += edges_of(answering, fault_of_values(answer, against), rarest)
                continue
            present |= answer.values.keys()
            for name in promises.keys() - answer.values.keys():
                lacking.setdefault(name, (answer, against))
            wrong = fault_of_values(answer, against) or changed_value(answer, place, seen, promises)
            if wrong is not None and not wrong.undecided:
                return _refuted(answering, answer, against, wrong, runs)
            undecided = undecided or wrong
    for name, (answer, against) in lacking.items():
        if name in present:
            return _refuted(answering, answer, against, WrongValue(f"{name} is missing on some paths"), runs)
        raise UnusableSubject(absent(name))
    said = f"{answering.name}: {undecided.fault}" if undecided else nothing_says(known[0])
    if said:
        return Examination(said, unknown=True, rational=False, figures={"runs": runs})
    return Examination(
        f"on every path the {listed_names(promises)} are those promised",
        rational=False,
        figures=figures_of(runs, edges),
    )


def figures_of(runs: int, edges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a check that holds: the number of runs, and the first of ``edges`` if there is one.

    An edge is a fault that needs a very improbable random number; it becomes a note of the verdict.
    """
    return {"runs": runs, **({"edges": edges[:1]} if edges else {})}


def edges_of(answering: Answering, wrong: WrongValue | None, rarest: float) -> list[Mapping[str, Any]]:
    """Return the fault of the returned value ``wrong`` as a list of one edge: a fault that needs an improbable draw.

    The list is empty if ``wrong`` is None, or if rounding may explain the value. ``rarest`` is the probability of the
    least probable draw on the path of the engine program ``answering`` on which the value was returned.
    """
    if wrong is None or wrong.undecided:
        return []
    when = "a random number falls into an interval as rare as this"
    return [edge_of(f"{answering.name}: {wrong.fault}", when, rarest)]


def nothing_says(known: KnownValues) -> str:
    """Return a sentence that lists the promised values for which no expected value is known; "" if there are none."""
    plain = {name for values in known.plain.values() for name in values}
    facts = known.facts
    open_names = [
        name
        for name, kind in known.promises.items()
        if not (callable(kind) or name in plain or _is_said(name, kind, facts, known.promises))
    ]
    if not open_names:
        return ""
    return (
        f"no expected value is known for {listed(open_names)}, except that equal tokens have equal ones: let the call "
        f"without speculation return them too, or state a function, returns={{{open_names[0]!r}: function}}"
    )


def _is_said(name: str, kind: Kind, facts: Facts | None, promises: Mapping[str, Kind]) -> bool:
    """Return whether the value ``name`` can be checked without a result of the call without speculation.

    ``kind`` is the promise for this value, and ``promises`` are those for all values. ``facts`` is what is known about
    the request. Chunks and snapshots can be checked if the text is promised too. If ``kind`` is "plain" (the value
    equals that of the call without speculation), no other value can be checked. For all other kinds:

    * The finish reason can be checked if ``facts`` has the requested number of tokens.
    * Log-probabilities of the prompt can be checked if ``facts`` has the target and ``kind`` is not "processed".
    * Values of ``OF_ROWS``, such as log-probabilities, need the target if ``kind`` is "raw". Otherwise they need the
      law of the tokens.
    """
    if name in {"chunks", "snapshots"} and "text" in promises:
        return True
    if facts is None or kind == PLAIN:
        return False
    if name == "finish_reason":
        return facts.horizon > 0
    if name == "prompt_logprobs":
        return kind != PROCESSED and facts.target is not None
    return name in OF_ROWS and (facts.target is not None if kind == RAW else facts.law is not None)


def absent(name: str) -> str:
    """Return the sentence about the promised value ``name`` that no answer contains."""
    where = NAMES.get(name)
    looked = f", or under {', '.join(where[1:])}" if where and where[1:] else ""
    return (
        f"{name} was not found beside its tokens: return (tokens, {{{name!r}: ...}}), or an object that has them under "
        f"{(where or (name,))[0]}{looked}"
    )


def listed_names(promises: Mapping[str, Kind]) -> str:
    """Return the names of the values in ``promises``, separated by commas."""
    return ", ".join(promises)


class FollowedPath(NamedTuple):
    """One path of a program: the answers to all requests.

    ``rarest`` is the probability of the least probable draw on the path.
    """

    answers: tuple[Answer, ...]
    rarest: float


def followed(program: Run) -> Iterator[FollowedPath]:
    """Yield each path of a program.

    Raises ``EnumerationTooLarge`` for more than ``MOST_PATHS`` paths.
    """
    for number, path in enumerate(paths(program)):
        if number == MOST_PATHS:
            raise EnumerationTooLarge(f"it has more than {MOST_PATHS} paths, the most whose values are compared")
        rarest = min((float(draw.weights[draw.outcome]) for draw in path.decisions), default=1.0)
        yield FollowedPath(path.outcome, rarest)


def _known(answering: Answering, promises: Mapping[str, Kind]) -> list[KnownValues]:
    """Return, for each request of ``answering``, what is known about the values that should be returned for it.

    ``promises`` maps the name of each value, for example "logprobs", to its promise.
    """
    plain: list[dict[Tokens, Mapping[str, Value]]] = []
    for answers, _ in followed(answering.plain()) if answering.plain else ():
        for place, answer in enumerate(answers):
            while len(plain) <= place:
                plain.append({})
            plain[place].setdefault(answer.new, answer.values)
    facts: list[Facts | None] = [*answering.requests, *[None] * (len(plain) - len(answering.requests))]
    plain += [{}] * (len(facts) - len(plain))
    return [
        KnownValues(one, promises, texts, {name: by_prefix(texts, name) for name in promises if name in OF_TOKENS})
        for one, texts in zip(facts, plain, strict=True)
    ]


def by_prefix(texts: Mapping[Tokens, Mapping[str, Value]], name: str) -> dict[Tokens, Any]:
    """Return prefix of a text -> entry of the value called ``name`` for the last token of the prefix.

    For "logprobs" this is the log-probability of the token. ``texts`` maps the new tokens of each text to the values
    that were returned with them. If several texts have a prefix in common, the first one counts.
    """
    result: dict[Tokens, Any] = {}
    for new, values in texts.items():
        given = values.get(name)
        if given is not None and not isinstance(given.value, Unreadable):
            for place, entry in enumerate(given.value[: len(new)]):
                result.setdefault(new[: place + 1], entry)
    return result


def fault_of_values(answer: Answer, known: KnownValues) -> WrongValue | None:
    """Return the fault of the first value of ``answer`` that differs from the promised one; None if there is none.

    A difference that rounding may explain is returned only if no other value has a certain fault. ``known`` has the
    promises and the data for the comparison.
    """
    doubt = None
    for name, kind in known.promises.items():
        if name not in answer.values:
            continue
        value = answer.values[name]
        if isinstance(value.value, Unreadable):
            return WrongValue(f"{name} = {value.value.said}, expected one of the documented forms")
        if value.later is not None:
            return WrongValue(f"{name} = {shown_value(value.value)} is {shown_value(value.later)} after a later call")
        wrong = _COMPARED.get(name, compare_plain)(name, kind, value, answer, known)
        if wrong is not None and not wrong.undecided:
            return wrong
        doubt = doubt or wrong
    return doubt


def changed_value(answer: Answer, place: int, seen: dict[Any, Any], promises: Mapping[str, Kind]) -> WrongValue | None:
    """Return the fault of the first value that differs from that on an earlier path with the same tokens; else None.

    ``seen`` holds the values of earlier paths and is updated; ``place`` is the index of the request. Only the values
    named in ``promises`` are compared. ``answer`` is the answer on the present path.
    """
    for name in promises.keys() & answer.values.keys():
        value = answer.values[name]
        entries = (
            enumerate(value.value[: len(answer.new)]) if name in OF_TOKENS else [(len(answer.new) - 1, value.value)]
        )
        for at, entry in entries:
            whole = name not in OF_TOKENS
            key = (place, name, answer.new[: at + 1], whole, answer.length if whole else 0)
            shown = WHOLE_TEXT_OF[name](entry) if name in WHOLE_TEXT_OF else entry
            before = seen.setdefault(key, shown)
            if not are_alike(before, shown, value.spacing):
                what = f"new token {at + 1}" if name in OF_TOKENS else "a text"
                return WrongValue(
                    f"the {name} of {what} depend on which drafts were accepted: {shown_value(before)} on one path and "
                    f"{shown_value(shown)} on another, for the same tokens"
                )
    return None


_COMPARED: Final[Mapping[str, Callable[[str, Kind, Value, Answer, KnownValues], WrongValue | None]]] = {
    "logprobs": compare_logprobs,
    "top_logprobs": compare_top,
    "cumulative_logprob": compare_cumulative,
    "prompt_logprobs": compare_prompt,
    "scores": compare_rows,
    "logits": compare_rows,
    "text": compare_text,
    "chunks": compare_text,
    "snapshots": compare_text,
    "finish_reason": compare_finish,
}


def _refuted(answering: Answering, answer: Answer, known: KnownValues, wrong: WrongValue, runs: int) -> Examination:
    facts = known.facts
    let: list[str] = []
    for place in range(len(answer.new)) if facts is not None and facts.target is not None else ():
        assert facts is not None
        let.append(_row_line(facts.target, facts.draft, facts.prompt + answer.new[:place]))
    return refutation_by(answering, answer, wrong, runs, let)


def refutation_by(
    answering: Answering, answer: Answer, wrong: WrongValue, runs: int, let: Sequence[str]
) -> Examination:
    """Return the examination of an engine that is refuted by the value ``wrong`` in ``answer``, after ``runs`` paths.

    ``answering`` is the engine program that returned ``answer``. ``let`` are further lines for the part "Let" of the
    counterexample; they state the rows or numbers from which a reader can see the fault.
    """
    where = (f"setting {answering.name}", f"a run that ends with new tokens {answer.new}")
    example = Counterexample((*where, *let), wrong.fault, wrong.because, fault=wrong.fault, named=wrong.named)
    return Examination(
        f"{answering.name}: {wrong.fault}", failed=True, rational=False, counterexample=example, figures={"runs": runs}
    )


def _row_line(target: LanguageModel | None, draft: LanguageModel | None, text: Tokens) -> str:
    said = "" if target is None else f"p = {short_row(list(target(text)))}"
    return f"after {text}: {said}" + ("" if draft is None else f"  q = {short_row(list(draft(text)))}")


def values_check(answerings: Sequence[Answering], promises: Mapping[str, Kind]) -> Check:
    """Return the check of the values that an engine returns with its tokens.

    ``answerings`` are the engine's programs, and ``promises`` maps the name of each value to its promise.
    """
    by_name = {answering.name: answering for answering in answerings}

    of_ends = bool(promises.keys() & {"finish_reason", "stop_reason"})

    def last(name: str) -> bool:
        """Return whether the program called ``name`` is examined after the other programs, because it shows less.

        The check may concern the reason why a text ends. A program then shows less if none of its texts can end with an
        end-of-sequence token.
        """
        return of_ends and not any(facts.ends for facts in by_name[name].requests)

    def known(subject: Subject) -> list[EngineProgram]:
        result = (program for program in subject.programs if program.name in by_name)
        return sorted(result, key=lambda program: last(program.name))

    def examined(program: EngineProgram, conditions: Conditions) -> Examination:
        return examine(by_name[program.name], promises, conditions)

    return Check(
        name="values_match",
        summary="log-probabilities, top-k lists, text and finish reason are those of the tokens, on every path",
        claim=None,
        evidence=Evidence.EQUAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), known),),
    )
