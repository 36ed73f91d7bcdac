"""Check that reported statistics are those of the run: drafted and accepted tokens, rates, counts, usage.

The statistics are compared with each other, with the emitted tokens, and with the engine's queries to its draft model.
Let R be the number of rounds, A the number of accepted drafts, and L the number of new tokens.

* A round emits its accepted drafts and one token more, and the first token may be drawn by the prefill. So
  A + R >= L - 1.
* A round emits at least one token, and one more round may run after the end. So R <= L + 1.
* A draft is proposed after a text with which the draft model was queried, for this request or an earlier one. It can be
  accepted only if p and q have a token in common after this text. So A is at most the number of different such texts.
* The accepted drafts are new tokens, or reach at most one token beyond the longest queried text.
* A histogram of the accepted drafts per round determines A and R. Both must be the reported numbers.

If the draft model was never queried, the third and the fourth rule are not tested. Not covered:

* drafts that are missing in ``drafted``;
* accepted drafts that the report leaves out, if it states no number of rounds;
* one accepted draft less, if the last round has no token of its own.

A tree can have several drafts from one query. If no token is drafted twice, they are at most as many as the tokens with
q > 0. If more drafts are reported, either they are counted too often or a token is drafted twice: UNKNOWN.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.checks.explaining.wording import short, short_row
from specverify.promises.known_values import Kind, WrongValue
from specverify.promises.values import absent, edges_of, figures_of, followed, listed_names, refutation_by
from specverify.reference import Tokens
from specverify.subjects.answering import Answering, Facts
from specverify.subjects.beside import Answer, Unreadable
from specverify.subjects.subject import EngineProgram, Subject, UnusableSubject

ROUNDING = 1e-6
"""Relative difference of a rate that counts as rounding; rates that are rounded to fewer digits are not rates."""


def statistics_fault(answer: Answer, facts: Facts | None, promises: Mapping[str, Kind]) -> WrongValue | None:
    """Return the fault of the first reported number that is impossible for the run; None if all are possible.

    ``answer`` has the numbers and the tokens. ``facts`` has the models of the request; None if they are unknown. Only
    the names in ``promises`` are examined.
    """
    given = {name: value.value for name, value in answer.values.items() if name in promises}
    for name, value in given.items():
        form = _FORMS.get(name, _WHOLE)
        if isinstance(value, Unreadable) or not form.fits(value):
            said = value.said if isinstance(value, Unreadable) else repr(value)
            return WrongValue(f"reported {name} = {said}, expected {form.expected}")
    if "acceptance_histogram" in given:
        given["acceptance_histogram"] = _by_count(given["acceptance_histogram"])
    return (
        _usage(given.get("usage"), answer, facts)
        or _counts(given, answer)
        or _rates(given, answer)
        or _asked(given.get("accepted"), answer, facts)
    )


class _NumberForm(NamedTuple):
    """The form that a reported value must have: ``expected`` in words, and ``fits(value)``, whether a value has it."""

    expected: str
    """The form in words."""
    fits: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value)


def _is_key(key: Any) -> bool:
    """Return whether a key of a histogram is a whole number of at least 0, or its digits, as in JSON."""
    return key.isdecimal() if isinstance(key, str) else _is_whole(key)


def _is_histogram(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_key, value)) and all(map(_is_whole, value.values()))
    return isinstance(value, tuple) and all(map(_is_whole, value))


_WHOLE = _NumberForm("a whole number of at least 0", _is_whole)
_FORMS: Final[Mapping[str, _NumberForm]] = {
    "usage": _NumberForm("counts by name", lambda value: True),
    "accepted_per_position": _NumberForm(
        "whole numbers, one for each position of a draft",
        lambda value: isinstance(value, tuple) and all(map(_is_whole, value)),
    ),
    "acceptance_histogram": _NumberForm("the number of rounds by the number of their accepted drafts", _is_histogram),
    "acceptance_rate": _NumberForm(
        "a number from 0 to 1", lambda value: isinstance(value, int | float) and 0 <= value <= 1
    ),
    "tokens_per_round": _NumberForm("a number", lambda value: isinstance(value, int | float)),
}
"""Name of a reported value -> its form; all others are whole numbers. ``_usage`` examines the usage itself."""


def _by_count(histogram: Any) -> dict[int, int]:
    """Return number of accepted drafts -> number of rounds with this number.

    ``histogram`` is such a mapping, or a list with the numbers of rounds for 0, 1, 2, ... accepted drafts.
    """
    pairs = histogram.items() if isinstance(histogram, Mapping) else enumerate(histogram)
    return {int(count): int(rounds) for count, rounds in pairs}


PARTS = (
    ("reasoning_tokens", "completion", ("completion_tokens_details", "output_tokens_details")),
    ("cached_tokens", "prompt", ("prompt_tokens_details", "input_tokens_details")),
)
"""Counts of a usage that are parts of its completion tokens or of its prompt tokens, and the mappings in which they may
be."""


def _parts(usage: Mapping[str, Any], wholes: Mapping[str, Any]) -> WrongValue | None:
    """Return the fault if ``usage`` counts more tokens of a part than of its whole; None if it does not.

    For example, reasoning tokens are a part of the completion tokens. ``usage`` has the reported counts by name, and
    ``wholes`` maps the name of a whole to its number of tokens (None: unknown).
    """
    for name, of, places in PARTS:
        blocks = (usage, *(block for place in places if isinstance(block := usage.get(place), Mapping)))
        for block in blocks:
            part, whole = block.get(name), wholes[of]
            if _is_whole(part) and whole is not None and part > whole:
                return WrongValue(f"the usage counts {part} {name.replace('_', ' ')} among {whole} {of} tokens")
    return None


def _usage(usage: Any, answer: Answer, facts: Facts | None) -> WrongValue | None:
    if usage is None:
        return None
    if not isinstance(usage, Mapping):
        return WrongValue(f"the usage is {usage!r}, expected counts by name")
    new, prompt = usage.get("completion_tokens", usage.get("output_tokens")), usage.get("prompt_tokens")
    if new is not None and new != answer.length:
        return WrongValue(f"the usage counts {new} completion tokens, and {answer.length} were returned")
    if facts is not None and prompt is not None and prompt != len(answer.prompt):
        return WrongValue(f"the usage counts {prompt} prompt tokens, and the prompt has {len(answer.prompt)}")
    if None not in (new, prompt, usage.get("total_tokens")) and usage["total_tokens"] != new + prompt:
        return WrongValue(f"the usage counts {usage['total_tokens']} tokens in total, expected {prompt} + {new}")
    return _parts(usage, {"completion": answer.length, "prompt": prompt})


def _counts(given: Mapping[str, Any], answer: Answer) -> WrongValue | None:
    """Return the fault if the reported numbers of drafts and rounds contradict each other or the emitted tokens.

    ``given`` has the reported numbers by name, and ``answer`` the tokens. Returns None if all fit.
    """
    drafted, accepted, rejected = (given.get(name) for name in ("drafted", "accepted", "rejected"))
    if drafted is not None and accepted is not None and accepted > drafted:
        return WrongValue(f"{accepted} drafts are reported as accepted, and {drafted} as drafted")
    if drafted is not None and rejected is not None and rejected + (accepted or 0) > drafted:
        both = f"{accepted} drafts are reported as accepted and " if accepted else ""
        return WrongValue(f"{both}{rejected} drafts are reported as rejected, and {drafted} as drafted")
    histogram = given.get("acceptance_histogram")
    wrong = _of_positions(given) or (None if histogram is None else _of_histogram(histogram, given))
    if wrong is not None or histogram is None:
        return wrong or _of_rounds(accepted, given.get("rounds"), answer)
    return _of_rounds(_all_accepted(histogram), sum(histogram.values()), answer)


def _of_positions(given: Mapping[str, Any]) -> WrongValue | None:
    accepted, rounds, positions = (given.get(name) for name in ("accepted", "rounds", "accepted_per_position"))
    if positions is None:
        return None
    if accepted is not None and sum(positions) != accepted:
        return WrongValue(f"the accepted drafts by position sum to {sum(positions)}, and {accepted} are reported")
    for place, (before, after) in enumerate(itertools.pairwise(positions), start=2):
        if after > before:
            return WrongValue(
                f"{after} drafts are reported as accepted at position {place} and {before} at position {place - 1}"
                ": a draft can be accepted only after an accepted one"
            )
    if rounds is not None and positions and positions[0] > rounds:
        return WrongValue(f"{positions[0]} drafts are reported as accepted at position 1 in {rounds} rounds")
    return None


def _of_histogram(histogram: Mapping[int, int], given: Mapping[str, Any]) -> WrongValue | None:
    accepted, rounds, counted = given.get("accepted"), given.get("rounds"), sum(histogram.values())
    if rounds is not None and rounds != counted:
        return WrongValue(f"the histogram of accepted drafts has {counted} rounds, and {rounds} are reported")
    if accepted is not None and accepted != _all_accepted(histogram):
        return WrongValue(
            f"the histogram of accepted drafts adds up to {_all_accepted(histogram)}, and {accepted} are reported"
        )
    return None


def _all_accepted(histogram: Mapping[int, int]) -> int:
    return sum(count * rounds for count, rounds in histogram.items())


def _of_rounds(accepted: Any, rounds: Any, answer: Answer) -> WrongValue | None:
    if rounds is not None and rounds > answer.length + 1:
        return WrongValue(
            f"{rounds} rounds are reported for {answer.length} new tokens: a round emits one token at least"
        )
    if accepted is not None and rounds is not None and accepted + rounds < answer.length - 1:
        return WrongValue(
            f"{answer.length} new tokens came of {accepted} accepted drafts and {rounds} rounds, as reported: a round "
            "emits one token beside its accepted drafts"
        )
    return None


def _rates(given: Mapping[str, Any], answer: Answer) -> WrongValue | None:
    drafted, accepted, rounds = (given.get(name) for name in ("drafted", "accepted", "rounds"))
    rate, per_round = given.get("acceptance_rate"), given.get("tokens_per_round")
    if rate is not None and drafted and accepted is not None and abs(rate - accepted / drafted) > ROUNDING:
        return WrongValue(
            f"the acceptance rate is {short(rate)}, and {accepted} of {drafted} drafts are reported as accepted"
        )
    if per_round is not None and 0 < per_round < answer.length / (answer.length + 1) - ROUNDING:
        return WrongValue(f"{short(per_round)} tokens a round are reported: a round emits one token at least")
    if per_round is not None and rounds:
        right = [answer.length / rounds] + ([] if accepted is None else [1 + accepted / rounds])
        if all(abs(per_round - one) > ROUNDING * max(one, 1) for one in right):
            return WrongValue(f"{short(per_round)} tokens a round are reported, expected {short(right[0])}: "
                       f"{answer.length} new tokens in {rounds} rounds")  # fmt: skip
    return None


def _asked(accepted: Any, answer: Answer, facts: Facts | None) -> WrongValue | None:
    """Return the fault if more ``accepted`` drafts are reported than the queries to the draft model allow; else None.

    The number of accepted drafts has two upper bounds:

    * the number of different queried texts after which p and q have a token in common;
    * the larger of two numbers: that of the new tokens, and 1 more than the tokens of the longest queried text that
      follow the prompt.

    ``answer`` has the tokens and the queries, and ``facts`` the models. Return None also if the number or a model is
    not known, or if there are no queries.
    """
    asked = set(_draft_queries(answer))
    if accepted is None or not asked or facts is None or facts.target is None or facts.draft is None:
        return None
    target, draft = facts.target, facts.draft
    common = {text for text in asked if any(min(a, b) > 0 for a, b in zip(target(text), draft(text), strict=True))}
    if accepted > len(common):
        why = f"the draft model was called after {len(asked)} texts"
        apart = f", and after {len(asked) - len(common)} of them p and q have no token in common"
        return WrongValue(f"{accepted} drafts are reported as accepted, {len(common)} can have been: {why}{apart}")
    size = len(answer.prompt)
    reach = max((len(text) - size + 1 for text in asked if text[:size] == answer.prompt), default=0)
    if accepted > max(answer.length, reach):
        return WrongValue(
            f"{accepted} drafts are reported as accepted, and the request has {answer.length} new tokens; drafts reach "
            f"no further than new token {reach}"
        )
    return None


def _draft_queries(answer: Answer) -> list[Tokens]:
    """Return the texts with which the engine queried the draft model up to the end of this request, in order.

    ``answer`` has all queries of the engine so far.
    """
    return [tokens for model, tokens in answer.queries if model == "draft"]


def _counted_too_often(drafted: Any, answer: Answer, facts: Facts | None) -> str:
    """Return the sentence that more drafts are reported than the queries to the draft model can give; "" if not.

    ``drafted`` is the reported number, or None. ``facts`` has the draft model of the request. ``answer`` has the
    queries.
    """
    asked = _draft_queries(answer)
    if drafted is None or not asked or facts is None or facts.draft is None:
        return ""
    most = sum(sum(mass > 0 for mass in facts.draft(text)) for text in asked)
    if drafted <= most:
        return ""
    return (
        f"{drafted} tokens are reported as drafted, and the {len(asked)} calls of the draft model give at most {most} "
        "different drafts: drafts are counted that were not made, or one token is drafted several times after one "
        "text. If the latter is meant, leave out 'drafted'"
    )


def examine(answering: Answering, promises: Mapping[str, Kind], conditions: Conditions) -> Examination:
    """Compare the reported statistics with the run, on every path of the engine program ``answering``.

    ``promises`` has the names of the statistics. An impossible number refutes, and so does a statistic that only some
    answers have. The result is unknown if more drafts are reported than the queries to the draft model can give. An
    impossible number on a path with a draw less probable than ``conditions.edge`` becomes a note: such a draw may
    accept a draft that p excludes. Raises ``UnusableSubject`` if no answer has one of the statistics.
    """
    runs, present, doubt, edges = 0, set[str](), "", list[Mapping[str, Any]]()
    lacking: dict[str, tuple[Answer, Facts | None]] = {}
    for answers, rarest in followed(answering.open()):
        runs += 1
        for place, answer in enumerate(answers):
            facts = answering.requests[place] if place < len(answering.requests) else None
            if rarest < conditions.edge:
                edges += edges_of(answering, statistics_fault(answer, facts, promises), rarest)
                continue
            present |= answer.values.keys()
            for name in promises.keys() - answer.values.keys():
                lacking.setdefault(name, (answer, facts))
            wrong = statistics_fault(answer, facts, promises)
            if wrong is not None:
                return _refuted(answering, answer, facts, wrong, runs)
            drafted = answer.values["drafted"].value if "drafted" in promises.keys() & answer.values.keys() else None
            doubt = doubt or _counted_too_often(drafted, answer, facts)
    for name, (answer, facts) in lacking.items():
        if name not in present:
            raise UnusableSubject(absent(name))
        return _refuted(answering, answer, facts, WrongValue(f"no {name} are reported on some paths"), runs)
    if doubt:
        return Examination(doubt, unknown=True, rational=False, figures={"runs": runs})
    said = f"on every path the reported {listed_names(promises)} fit the run"
    return Examination(said, rational=False, figures=figures_of(runs, edges))


def _refuted(answering: Answering, answer: Answer, facts: Facts | None, wrong: WrongValue, runs: int) -> Examination:
    asked = _draft_queries(answer)
    let: list[str] = []
    if facts is not None and facts.target is not None and facts.draft is not None:
        let = [
            f"the draft model was called after {text}: p = {short_row(list(facts.target(text)))}  "
            f"q = {short_row(list(facts.draft(text)))}"
            for text in asked[:8]
        ]
    reported = ", ".join(f"{name} {value.value}" for name, value in answer.values.items())
    return refutation_by(answering, answer, wrong, runs, (*let, f"reported: {reported}"))


def statistics_check(answerings: Sequence[Answering], promises: Mapping[str, Kind]) -> Check:
    """Return the check of the statistics that an engine reports.

    ``answerings`` are its programs, and ``promises`` has the names of the statistics.
    """
    by_name = {answering.name: answering for answering in answerings}

    def known(subject: Subject) -> Iterator[EngineProgram]:
        return (program for program in subject.programs if program.name in by_name)

    def examined(program: EngineProgram, conditions: Conditions) -> Examination:
        return examine(by_name[program.name], promises, conditions)

    return Check(
        name="statistics_match",
        summary="reported drafts, acceptance, rates and usage are those of the run",
        claim=None,
        evidence=Evidence.EQUAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), known),),
    )
