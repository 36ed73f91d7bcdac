"""Check the values that a black box returns with its tokens; one wrong value refutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.laws.known_law import OTHERS
from specverify.promises.known_values import Kind, KnownValues, WrongValue
from specverify.promises.statistics import statistics_fault
from specverify.promises.values import absent, by_prefix, changed_value, fault_of_values, listed_names, nothing_says
from specverify.reference import Tokens
from specverify.subjects.answering import Answer, Facts, LawOfCalls, answers_of
from specverify.subjects.beside import OF_TOKENS, STATISTICS
from specverify.subjects.sampler import Sampler, accepted_of_rows
from specverify.subjects.subject import UnusableSubject

SAMPLES: Final = 2000
"""Number of answers whose values are compared, and of answers of a reference."""
CHECK: Final = "values_match"


def answers_sampled(sampler: Sampler, names: Sequence[str], seeds: Iterator[int], largest: int) -> Iterator[Answer]:
    """Yield ``SAMPLES`` answers of a black box with the values ``names``, at most ``largest`` per call.

    ``sampler`` is the black box. ``seeds`` are the seeds of the calls. Raises ``UnusableSubject`` for an invalid
    answer.
    """
    left = SAMPLES
    while left:
        number = min(left, largest)
        left -= number
        answer = sampler.sample(next(seeds), number)
        yield from answers_of(answer, names, ((),) * number, several=True)


def judge_values(
    sampler: Sampler,
    promises: Mapping[str, Kind],
    seeds: Iterator[int],
    largest: int,
    *,
    law: Any = None,
    reference: Sampler | None = None,
) -> Verdict:
    """Return the verdict on the values that the black box ``sampler`` returns with its tokens.

    ``promises`` maps the name of each value to its promise. The values are compared with those of ``law`` or
    ``reference``, and with each other if their tokens are equal. ``seeds`` are the seeds of the calls, and ``largest``
    is the largest number of rows of a call. Raises ``UnusableSubject`` if no answer has one of the values.
    """
    names = tuple(promises)
    texts: dict[Tokens, Mapping[str, Any]] = {}
    for answer in answers_sampled(reference, names, seeds, largest) if reference else ():
        texts.setdefault(answer.new, answer.values)
    prefixes = {name: by_prefix(texts, name) for name in names if name in OF_TOKENS}
    of_tokens = {name: kind for name, kind in promises.items() if name not in STATISTICS}
    statistics = {name: kind for name, kind in promises.items() if name in STATISTICS}
    known = KnownValues(_facts(law), of_tokens, texts, prefixes)
    seen, present, doubt = dict[Any, Any](), set[str](), None
    lacking = dict[str, Answer]()
    for answer in answers_sampled(sampler, names, seeds, largest):
        present |= answer.values.keys()
        for name in promises.keys() - answer.values.keys():
            lacking.setdefault(name, answer)
        wrong = (
            fault_of_values(answer, known)
            or changed_value(answer, 0, seen, of_tokens)
            or statistics_fault(answer, None, statistics)
        )
        if wrong is not None and not wrong.undecided:
            return _refuted(sampler, answer, wrong)
        doubt = doubt or wrong
    for name, answer in lacking.items():
        if name not in present:
            raise UnusableSubject(absent(name))
        return _refuted(sampler, answer, WrongValue(f"{name} is missing in some answers"))
    figures = {"samples": SAMPLES}
    if open_said := doubt.fault if doubt else nothing_says(known):
        return Verdict(sampler.name, CHECK, Status.UNKNOWN, open_said, figures=figures)
    said = f"in every answer the {listed_names(promises)} are those promised"
    return Verdict(sampler.name, CHECK, Status.HOLDS, said, evidence=Evidence.STATISTICAL, figures=figures)


def _facts(law: Any) -> Facts | None:
    """Return ``law``, the expected law of the new tokens, in the form with which returned values are compared.

    ``law`` is a pmf of the one new token, or a mapping from texts to probabilities. Return None if ``law`` is None or
    does not list all texts (it has an entry ``OTHERS``).
    """
    if law is None or (isinstance(law, Mapping) and OTHERS in law):
        return None
    if isinstance(law, Mapping):
        given = {key if isinstance(key, tuple) else (int(key),): float(mass) for key, mass in law.items()}
    else:
        given = {(token,): float(mass) for token, mass in enumerate(law)}
    return Facts((), 0, law=LawOfCalls(given))


def _refuted(sampler: Sampler, answer: Answer, wrong: WrongValue) -> Verdict:
    example = Counterexample((f"an answer with tokens {answer.new}",), wrong.fault, wrong.because, fault=wrong.fault)
    return Verdict(sampler.name, CHECK, Status.REFUTED, wrong.fault, evidence=Evidence.EQUAL, counterexample=example)


def tokens_sampled(sample: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """Return ``sample`` as a sampler that returns only tokens, without the values ``names``.

    Counts of accepted drafts are kept if ``sample`` returns them.
    """

    def alone(seed: int, number: int, *prefix: Tokens) -> Any:
        answer = sample(seed, number, *prefix)
        kept = list(answers_of(answer, names, ((),) * number, several=True))
        rows = [item.new for item in kept]
        if isinstance(answer, Mapping) and "accepted" in answer:
            return {"tokens": rows, "accepted": answer["accepted"]}
        accepted = accepted_of_rows(answer)
        return rows if accepted is None else {"tokens": rows, "accepted": accepted}

    return alone
