"""Promises that one pair of runs can refute: seeds, batches, texts that are cut and continued.

``seed``             two calls with one seed return one text
``seed-as-plain``    a seed gives one text with speculation and without
``batch``            a request's text depends neither on neighbours, nor its slot, nor on requests before it
``resume``           a text that is cut, and continued after the cut, equals the uncut one

The runs use the engine's own random numbers, with chosen seeds. One pair that differs refutes; HOLDS names the number
of pairs and the share of differing pairs that they would have detected.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from specverify.base.verdict import Counterexample, Evidence, Examination, Status, Verdict
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.reference import Tokens
from specverify.subjects.paired import OTHER_STATE, Pairing
from specverify.subjects.sampler import Sampler, drawn
from specverify.subjects.subject import EngineProgram, KernelSetting, Subject

PROMISES: Final = ("seed", "seed-as-plain", "batch", "resume")
PAIRS: Final = 48
"""Number of seeds per scenario with random tokens."""
SMALL_CALL: Final = 16
"""Number of rows per call of a black box."""
MISS: Final = 1e-6
"""Probability that a promise broken in the stated share of pairs is not detected."""


def share_seen(pairs: int) -> float:
    """Return the smallest fraction of differing pairs that ``pairs`` pairs detect, except with probability ``MISS``.

    Return 1 if there are no pairs.
    """
    return -math.log(MISS) / pairs if pairs else 1.0


class DifferentTexts(NamedTuple):
    """Two texts, ``first`` and ``second``, that should be equal, and the calls that returned them.

    ``seed`` is the number from which the seeds of both calls are computed.
    """

    seed: int
    first: Tokens
    second: Tokens
    what: str
    """Both calls in words, in the order of ``first`` and ``second``."""


def _seed_pairs(pairing: Pairing, seed: int) -> Iterator[DifferentTexts | None]:
    """Yield one result for each pair of calls with the same seed: the two texts if they differ, None if they are equal.

    For each prompt there are two pairs: two calls of one engine, and calls of two engines that ``pairing`` makes. They
    are made for all prompts together, and for the first one alone, because an engine may speculate in small batches
    only. The seeds of the requests are computed from ``seed``.
    """
    for prompts in _batches(pairing):
        served, anew = pairing.make(), pairing.make()
        seeds = _seeds(seed, len(prompts))
        first = served.texts(prompts, seeds, OTHER_STATE + seed)
        second = served.texts(prompts, seeds, 2 * OTHER_STATE + seed)
        third = anew.texts(prompts, seeds, 3 * OTHER_STATE + seed)
        yield from _each(seed, first, second, "two calls with one seed")
        yield from _each(seed, first, third, "an engine, and the same engine made anew, with one seed")


def _plain_pairs(pairing: Pairing, seed: int) -> Iterator[DifferentTexts | None]:
    assert pairing.plain is not None
    for prompts in _batches(pairing):
        seeds = _seeds(seed, len(prompts))
        first = pairing.make().texts(prompts, seeds, OTHER_STATE + seed)
        second = pairing.plain().texts(prompts, seeds, 2 * OTHER_STATE + seed)
        yield from _each(seed, first, second, "with speculation, and without it by the same seed")


def _batch_pairs(pairing: Pairing, seed: int) -> Iterator[DifferentTexts | None]:
    """Yield the difference between two texts of one request: served alone, and served among or after other requests.

    ``pairing`` has the request and makes the engines, and ``seed`` selects the seeds of the requests. None stands for
    equal texts.
    """
    mine, others = pairing.prompt, _others(pairing)
    alone = pairing.make().texts((mine,), (seed,), OTHER_STATE + seed)[0]
    neighbours = _seeds(seed + 1, len(others))
    if pairing.batched:
        last = pairing.make().texts((*others, mine), (*neighbours, seed), 2 * OTHER_STATE + seed)[-1]
        yield _pair(seed, alone, last, f"a request alone, and in the last of {len(others) + 1} slots of a batch")
        first = pairing.make().texts((mine, *others), (seed, *neighbours), 3 * OTHER_STATE + seed)[0]
        yield _pair(seed, alone, first, f"a request alone, and in the first of {len(others) + 1} slots of a batch")
        if pairing.seeds_each_row:
            beside = pairing.make().texts((others[0], mine), (seed, seed), 6 * OTHER_STATE + seed)[-1]
            yield _pair(seed, alone, beside, "a request alone, and in a batch beside one with the same seed")
    served = pairing.make()
    for other, own in zip(others, neighbours, strict=True):
        served.texts((other,), (own,), 4 * OTHER_STATE + seed)
    after = served.texts((mine,), (seed,), 5 * OTHER_STATE + seed)[0]
    yield _pair(seed, alone, after, "a request served first, and served after others")


def _resume_pairs(pairing: Pairing, seed: int) -> Iterator[DifferentTexts | None]:
    whole = pairing.make().texts((pairing.prompt,), (seed,), OTHER_STATE + seed)[0]
    for cut in range(1, len(whole)):
        text = pairing.prompt + whole[:cut]
        rest = pairing.make().texts((text,), (seed,), (2 + cut) * OTHER_STATE + seed)[0]
        continued = (whole[:cut] + rest)[: len(whole)]
        yield _pair(seed, whole, continued, f"a text in one piece, and cut after new token {cut} and continued")


def _batches(pairing: Pairing) -> tuple[tuple[Tokens, ...], ...]:
    """Return the prompts of each call: one alone, and several if each of them can have its own seed."""
    several = ((pairing.prompt, *_others(pairing)),) if pairing.batched and pairing.seeds_each_row else ()
    return (*several, (pairing.prompt,))


def _others(pairing: Pairing) -> tuple[Tokens, ...]:
    last = pairing.vocabulary - 1
    return ((last,), (*pairing.prompt, 0), pairing.prompt[::-1])


def _seeds(seed: int, number: int) -> tuple[int, ...]:
    return tuple(seed + 1000 * place for place in range(number))


def _each(seed: int, first: Sequence[Tokens], second: Sequence[Tokens], what: str) -> Iterator[DifferentTexts | None]:
    for one, other in zip(first, second, strict=True):
        yield _pair(seed, one, other, what)


def _pair(seed: int, first: Tokens, second: Tokens, what: str) -> DifferentTexts | None:
    return None if first == second else DifferentTexts(seed, first, second, what)


class Promise(NamedTuple):
    """One promise, and the pairs of runs that test it.

    ``check`` is the name of the check of this promise, and ``summary`` the sentence that the promise states.
    ``pairs(pairing, seed)`` makes the runs and yields one result for each pair: its texts if they differ, else None.
    """

    check: str
    summary: str
    fault: str
    """The beginning of a refutation's sentence."""
    pairs: Callable[[Pairing, int], Iterator[DifferentTexts | None]]
    lacks: Callable[[Pairing], str | None] = lambda pairing: None
    """Returns why the pairs cannot be run; None if they can."""
    needs_seed: bool = False
    """Whether scenarios with random tokens count only if each request has its own seed."""


OF_PROMISE: Final = {
    "seed": Promise(
        "seed_repeats",
        "two calls with one seed return one text",
        "one seed gives two texts",
        _seed_pairs,
    ),
    "seed-as-plain": Promise(
        "seed_as_plain",
        "a seed gives one text with speculation and without",
        "one seed gives two texts, with speculation and without",
        _plain_pairs,
        lambda pairing: None if pairing.plain else "there is no call without speculation to compare with",
    ),
    "batch": Promise(
        "batch_is_alone",
        "the text of a request does not depend on its neighbours, its slot, or requests before it",
        "the text of a request depends on other requests",
        _batch_pairs,
        lambda pairing: None if pairing.takes_prompt else "its calls take no prompt, so nothing is served beside it",
        needs_seed=True,
    ),
    "resume": Promise(
        "resume_continues",
        "a text that is cut and continued is the uncut one",
        "a text that is cut and continued is another one",
        _resume_pairs,
        lambda pairing: None if pairing.takes_prompt else "its calls take no prompt, so no text can be continued",
        needs_seed=True,
    ),
}


def examine(promise: Promise, pairing: Pairing, conditions: Conditions) -> Examination:
    """Compare the texts of all pairs of runs for ``promise`` in the scenario ``pairing``.

    The seed in ``conditions`` selects the seeds of the runs.
    """
    if reason := promise.lacks(pairing):
        return Examination(reason, unknown=True, rational=False)
    first, number = 1 + 7919 * conditions.seed, 1 if pairing.certain else PAIRS
    pairs = 0
    for seed in range(first, first + number):
        for parted in promise.pairs(pairing, seed):
            pairs += 1
            if parted is not None:
                return _refuted(promise, pairing, parted, pairs)
    said = f"{promise.summary}: a difference in {share_seen(pairs):.0%} of the pairs of a scenario would have been seen"
    return Examination(said if not pairing.certain else promise.summary, rational=False, figures={"pairs": pairs})


def _refuted(promise: Promise, pairing: Pairing, parted: DifferentTexts, pairs: int) -> Examination:
    at = next(
        (i for i, (one, other) in enumerate(zip(parted.first, parted.second, strict=False)) if one != other),
        min(len(parted.first), len(parted.second)),
    )
    fault = f"{promise.fault}: {parted.first} and {parted.second}, from new token {at + 1} on"
    seeded = "passed to the call" if pairing.takes_seed else "of random, numpy and torch, as the call takes none"
    prompt = f", prompt {pairing.prompt}" if pairing.prompt else ""
    example = Counterexample(
        (f"setting {pairing.name}{prompt}", f"seed {parted.seed}, {seeded}", f"the texts of {parted.what}"),
        fault,
        fault=fault,
    )
    return Examination(
        f"{pairing.name}: {fault}", failed=True, rational=False, counterexample=example, figures={"pairs": pairs}
    )


def open_to_promise(promise: Promise, pairing: Pairing) -> bool:
    """Return whether ``promise`` can be tested in the scenario ``pairing``.

    One of three conditions must hold: the texts of the scenario have no random tokens; the promise needs no seeds; or
    the engine takes a seed (one for each row if it serves batches).
    """
    if pairing.certain or not promise.needs_seed:
        return True
    return pairing.takes_seed and (pairing.seeds_each_row or not pairing.batched)


def pair_checks(pairings: Sequence[Pairing], promises: Collection[str]) -> tuple[Check, ...]:
    """Return one check for each promise named in ``promises``, which compares the texts of pairs of runs.

    ``pairings`` are the engine's scenarios.
    """
    return tuple(_check(OF_PROMISE[name], pairings) for name in PROMISES if name in promises)


def _check(promise: Promise, pairings: Sequence[Pairing]) -> Check:
    by_name = {pairing.name: pairing for pairing in pairings if open_to_promise(promise, pairing)}

    def known(subject: Subject) -> Iterator[KernelSetting]:
        names = {program.name for program in subject.programs}
        examined = (pairing for pairing in by_name.values() if pairing.name in names or pairing.in_quick)
        return (KernelSetting(pairing.name, pairing.in_quick) for pairing in examined)

    def examined(situation: KernelSetting, conditions: Conditions) -> Examination:
        return examine(promise, by_name[situation.name], conditions)

    return Check(
        name=promise.check,
        summary=promise.summary,
        claim=None,
        evidence=Evidence.STATISTICAL,
        examines=(ExaminedPart(EngineProgram, by(examined), NO_ENGINE, (), known),),
    )


class RowPair(NamedTuple):
    """Two rows of a black box that should be equal, because they are drawn with one seed."""

    first: Tokens
    second: Tokens
    calls: str
    """The calls that returned them, in words."""


def _repeated_rows(sampler: Sampler, other: Sampler, seed: int, size: int) -> Iterator[RowPair]:
    """Yield each of the ``size`` rows of a call with the same row of a second call with the same seed.

    ``other`` makes the second call: it is the reference sampler, or ``sampler`` again.
    """
    who = f"two calls of {sampler.name}" if other is sampler else f"{sampler.name} and {other.name}"
    rows = zip(drawn(sampler, seed, size), drawn(other, seed, size), strict=True)
    for row, (one, two) in enumerate(rows, start=1):
        yield RowPair(one, two, f"row {row} of seed {seed}, n={size}, of {who}")


def _rows_beside_others(sampler: Sampler, _: Sampler, seed: int, size: int) -> Iterator[RowPair]:
    """Yield pairs of rows of the same seed, which must be equal.

    All rows are drawn from ``sampler``. One row of a pair is from a small call. The other is the same row of a call of
    ``size`` rows, or of a call that follows other calls.
    """
    alone, several, whole = (drawn(sampler, seed, number) for number in (1, (size + 1) // 2, size))
    yield RowPair(alone[0], whole[0], f"row 1 of seed {seed}, n=1 and n={size}")
    for row, (one, two) in enumerate(zip(several, whole, strict=False), start=1):
        yield RowPair(one, two, f"row {row} of seed {seed}, n={len(several)} and n={size}")
    again = drawn(sampler, seed, 1)[0]
    yield RowPair(alone[0], again, f"row 1 of seed {seed}, n=1, before and after other calls")


def _rows_continued(sampler: Sampler, _: Sampler, seed: int, size: int) -> Iterator[RowPair]:
    """Yield pairs of texts: a whole text, and the same text cut after one of its tokens and continued by the sampler.

    Both are drawn with the seed ``seed``; ``size`` is not used. There is one pair for each position of the cut.
    """

    def after(prefix: Tokens) -> Tokens:
        named = Sampler(f"{sampler.name} after {prefix}", lambda seed, n: sampler.sample(seed, n, prefix))  # type: ignore[call-arg]
        return drawn(named, seed, 1)[0]

    whole = after(())
    for cut in range(1, len(whole)):
        continued = (whole[:cut] + after(whole[:cut]))[: len(whole)]
        yield RowPair(whole, continued, f"seed {seed}, n=1, in one piece, and continued after token {cut}")


OF_ROWS: Final = {
    "seed": _repeated_rows,
    "seed-as-plain": _repeated_rows,
    "batch": _rows_beside_others,
    "resume": _rows_continued,
}
"""Promise of a black box -> the rows that are compared for one seed."""


def judge_pairs(
    sampler: Sampler, promises: Collection[str], seeds: Iterator[int], largest: int, reference: Sampler | None
) -> list[Verdict]:
    """Return one verdict for each of ``promises`` (keys of ``OF_ROWS``) on the black box ``sampler``.

    Pairs of rows that are drawn with one seed are compared. ``seeds`` are the seeds of the calls, and ``largest`` is
    the largest number of rows of a call. ``reference`` is the sampler without speculation, or None.
    """
    return [
        _judge_sampler(name, sampler, seeds, largest, reference if name == "seed-as-plain" else None)
        for name in PROMISES
        if name in promises
    ]


def _judge_sampler(
    name: str, sampler: Sampler, seeds: Iterator[int], largest: int, reference: Sampler | None
) -> Verdict:
    promise, size = OF_PROMISE[name], min(SMALL_CALL, largest)
    if name == "batch" and size == 1:
        said = "calls of one row have no neighbours: expected largest_call of at least 2"
        return Verdict(sampler.name, promise.check, Status.UNKNOWN, said)
    calls = -(-PAIRS // size) + 1 if name.startswith("seed") else PAIRS
    pairs = 0
    for seed in itertools.islice(seeds, calls):
        for first, second, which in OF_ROWS[name](sampler, reference or sampler, seed, size):
            pairs += 1
            if first != second:
                fault = f"{promise.fault}: {first} and {second}"
                example = Counterexample((which,), fault, fault=fault)
                figures = {"pairs": pairs}
                return Verdict(
                    sampler.name, promise.check, Status.REFUTED, fault, None, Evidence.EQUAL, example, figures
                )
    if not pairs:
        said = "no text has more than one token, so none can be cut"
        return Verdict(sampler.name, promise.check, Status.UNKNOWN, said)
    compared = pairs if name.startswith("seed") else PAIRS
    said = f"{promise.summary}: a difference in {share_seen(compared):.0%} of the pairs would have been seen"
    return Verdict(
        sampler.name, promise.check, Status.HOLDS, said, evidence=Evidence.STATISTICAL, figures={"pairs": pairs}
    )
