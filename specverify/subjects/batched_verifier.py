"""Batches of a verifier of chains: one call verifies several rows.

    verify(p, q, draft_tokens) -> emitted tokens, row by row
    verify(p, q, draft_tokens, lengths) -> emitted tokens, row by row

``p`` is ``[B, gamma + 1, vocabulary]`` and ``q`` ``[B, gamma, vocabulary]``, float64 probabilities; ``draft_tokens`` is
``[B, gamma]`` and ``lengths`` ``[B]``, the number of drafts of each row, int64. It returns ``[B, gamma + 1]`` with
negative placeholders after the end of a row, or a sequence of rows (``batch_answers``). With ``lengths`` rows may have
different numbers of drafts, including none: the padding of ``draft_tokens`` is -1, and the padding of p and q are pmfs
that must not affect the result.

The law of a row must not depend on its neighbours. So the row under test is verified alone, and between two neighbours
with other contexts and lengths, one accepted whole and one rejected at once. Neighbours are certain, so they add no
path. The check ``rows_are_independent`` verifies the row together with another random row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import product
from math import prod
from typing import Any, Final

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.deep_scenarios import CROWDED, CROWDED_LATER
from specverify.laws.law import target_law
from specverify.laws.paths import Undecided
from specverify.laws.scenarios import Scenario, handed_task
from specverify.reference import Draws, Task, Tokens, chain
from specverify.reference.models import draft_model
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.batch_call import (
    BESIDE,
    Arguments,
    BatchRow,
    CertainRow,
    Company,
    certain_row,
    emitted,
    takes_lengths,
)
from specverify.subjects.certain_drafts import with_certain_drafts
from specverify.subjects.subject import EngineProgram

RandomRow = tuple[Tokens, int]
"""(Text before the round, number of drafts) of a row whose drafts and outcome are random."""
PAIRS_OF_ROWS: Final = (*((0, apart) for apart in (2, 3, 4, 5, 6, 8)), (15, 16))
"""Indices of the two random rows of a batch, of which the second is the last row. In the last pair both are late: code
that takes the random numbers of one row for all rows after it is wrong there."""
CERTAIN_TOKENS: Final = 5
"""The vocabulary of rows whose outcomes are certain."""


def place_of(verify: BareVerifier, arguments: Arguments, company: Company = BESIDE) -> str:
    """Describe in words the position of the examined row in its batch, and the other rows; ``company`` has both.

    If ``verify`` takes lengths, the description also mentions rows of other lengths. If ``arguments`` has sampling
    parameters of each row, it mentions these.
    """
    ragged, others = takes_lengths(verify), ", with other sampling parameters" * arguments.of_each_row
    one = "one" if company is BESIDE else "some"
    whole = " and longer" if ragged else ""
    beside = f"{one} accepted whole{whole}, {one} rejected at once" + (f", {one} without drafts" if ragged else "")
    return f"row {company.place + 1} of {company.number + ragged} beside {beside}{others}"


def two_row_program(
    verify: BareVerifier, arguments: Arguments, gamma: int, task: Task, prompt: Tokens
) -> EngineProgram:
    """Return a program that verifies two random rows in one call, one after ``prompt`` and one after ``(*prompt, 1)``.

    Two rows with certain outcomes precede them in the batch. A random row has at most ``gamma`` drafts, or one if the
    vocabulary has more than two tokens. The outcome is the pair of the texts of the random rows. The target of ``task``
    draws the tokens that a row does not emit, so each text should have the law of the target. ``arguments`` describes
    the arguments of ``verify``.
    """
    vocabulary = len(task.target(prompt))
    first = max(1, min(gamma, task.horizon - 1)) if vocabulary == 2 else 1
    rows = ((prompt, first), ((*prompt, 1), max(1, first - takes_lengths(verify))))
    # a row that is rejected at once comes first: code that moves the remaining rows to the front then moves both rows
    before = (certain_row(first, 0, vocabulary, vocabulary - 1), certain_row(first, first, vocabulary, 0))
    return _of_batch(verify, arguments, task, (*before, *rows))


def certain_batches(verify: BareVerifier, arguments: Arguments, gamma: int) -> tuple[EngineProgram, ...]:
    """Return programs that each verify a batch of three rows whose outcomes have probability 1.

    The outcome of a row is its numbers of drafts and of accepted drafts. It has ``gamma`` drafts or, if ``verify``
    takes lengths, 0 to ``gamma``. Every pair of rows gets every pair of outcomes in some batch. ``arguments`` describes
    the arguments of ``verify``. In one of the batches with several lengths no row has drafts.

    A verifier of probabilities first gets some more programs: ``_of_two_calls`` and ``_apart``.
    """
    counts = range(gamma + 1) if takes_lengths(verify) else (gamma,)
    outcomes = [(count, accepted) for count in counts for accepted in range(count + 1)]
    places = range(len(outcomes))
    first = () if arguments.form.logits else (_of_two_calls(verify, arguments), *_apart(verify, arguments))
    return first + tuple(
        _of_certain_rows(verify, arguments, [outcomes[place % len(outcomes)] for place in (i, j, i + j)])
        for i, j in product(places, places)
    )


def _of_certain_rows(verify: BareVerifier, arguments: Arguments, outcomes: Sequence[tuple[int, int]]) -> EngineProgram:
    """Return a program that verifies one row for each of ``outcomes`` in one call; all its rows have certain outcomes.

    An outcome is (number of drafts, number of accepted drafts). ``arguments`` describes the arguments of ``verify``. If
    rows may differ in temperature, the second row is greedy.
    """
    greedy = arguments.may_be_greedy(CERTAIN_TOKENS)
    rows = [
        certain_row(*outcome, CERTAIN_TOKENS, first, greedy=greedy and first == 1)
        for first, outcome in enumerate(outcomes)
    ]
    batch = [_given_as(arguments, each.row) for each in rows]

    @contextmanager
    def opened() -> Iterator[Callable[[Draws], Any]]:
        decide = emitted(verify, batch, answered_everywhere, arguments)
        yield lambda draws: _with_bonus(rows, decide(draws))

    def law() -> dict[Any, Any]:
        return {tuple(each.emitted for each in rows): 1}

    name = ", ".join(f"{accepted} of {count} drafts accepted" for count, accepted in outcomes)
    return EngineProgram(name, opened, law, each="row")


def crowd_together(verify: BareVerifier, arguments: Arguments, task: Task, prompt: Tokens) -> EngineProgram:
    """Return a program that verifies several rows in one call, all of them random.

    There is one row for each position of ``prompt``; its text before the drafts is the prompt with token 1 at this
    position. The number of drafts of a row is the horizon of ``task`` minus 1. If ``verify`` takes lengths and there
    are more than two rows, the first and the last have no drafts. ``arguments`` describes the arguments of ``verify``.
    The outcome is the tuple of the texts of all rows, in order.
    """
    last = len(prompt) - 1
    without = {0, last} if takes_lengths(verify) and last > 1 else set[int]()
    rows = [(_marked(prompt, place), 0 if place in without else task.horizon - 1) for place in range(len(prompt))]
    return _of_batch(verify, arguments, task, rows)


def _marked(prompt: Tokens, place: int) -> Tokens:
    """Return ``prompt`` with token 1 at ``place``."""
    return (*prompt[:place], 1, *prompt[place + 1 :])


def _rows_of(count: int, number: int) -> list[RandomRow]:
    """Return ``number`` random rows with ``count`` drafts each, after different texts of ``CROWDED``."""
    return [(_marked(CROWDED.prompt, place), count) for place in range(number)]


def _apart(verify: BareVerifier, arguments: Arguments) -> Iterator[EngineProgram]:
    """Yield programs that each verify a batch with two random rows, ``PAIRS_OF_ROWS``, and certain other rows.

    Neither row may use the random numbers of the other. What is random in the two rows is the only draft, the bonus
    token, or the second of two drafts. ``arguments`` describes the arguments of ``verify``.
    """
    for (first, last), (scenario, count, what) in product(PAIRS_OF_ROWS, _RANDOM_PARTS):
        one, other = _rows_of(count, 2)
        before, between = (
            [certain_row(count, place % 2, 2, place // 2 % 2) for place in range(number)]
            for number in (first, last - first - 1)
        )
        name = f"{what} of rows {first + 1} and {last + 1} of {last + 1}"
        yield _of_batch(verify, arguments, _task_of(scenario, arguments), (*before, one, *between, other), name)


_RANDOM_PARTS = ((CROWDED, 1, "draft"), (CROWDED_LATER, 1, "bonus"), (CROWDED_LATER, 2, "draft 2"))
"""(Scenario, number of drafts, what is random) of the rows of ``_apart``."""


def _of_two_calls(verify: BareVerifier, arguments: Arguments) -> EngineProgram:
    """Return a program that verifies two batches in turn, each of two random rows with one draft.

    No row may use the random numbers of a row of the other call. ``arguments`` describes the arguments of ``verify``.
    """
    task, rows = _task_of(CROWDED, arguments), _rows_of(1, 4)
    calls = rows[:2], rows[2:]

    def decide(draws: Draws) -> Sequence[Tokens]:
        texts = list[Tokens]()
        with answered_everywhere(draws):
            for each in calls:
                batch = [*_random_rows(arguments, task, each, draws)]
                texts += emitted(verify, batch, lambda _: nullcontext(), arguments)(draws)
        return texts

    return of_rows("two rows in each of two calls", task, rows, decide)


def _task_of(scenario: Scenario, arguments: Arguments) -> Task:
    task = handed_task(scenario, rational=False)
    return with_certain_drafts(None, task) if arguments.form.without_q else task


def _of_batch(
    verify: BareVerifier, arguments: Arguments, task: Task, rows: Sequence[RandomRow | CertainRow], name: str = ""
) -> EngineProgram:
    """Return a program that verifies ``rows`` in one call; its outcome is the tuple of their texts.

    ``task`` has the models, and ``arguments`` describes the arguments of ``verify``. ``name`` is the name of the
    program, by default a description of the random rows.
    """
    certain = {place: _given_as(arguments, row.row) for place, row in enumerate(rows) if isinstance(row, CertainRow)}
    drawn = [row for row in rows if not isinstance(row, CertainRow)]

    def decide(draws: Draws) -> Sequence[Tokens]:
        random_rows = _random_rows(arguments, task, drawn, draws)
        batch = [certain[place] if place in certain else next(random_rows) for place in range(len(rows))]
        result: Sequence[Tokens] = emitted(verify, batch, answered_everywhere, arguments)(draws)
        return result

    name = name or " and ".join(f"{count} drafted after {prefix}" for prefix, count in drawn)
    return of_rows(name, task, rows, decide)


def _random_rows(
    arguments: Arguments, task: Task, rows: Sequence[tuple[Tokens, int]], draws: Draws
) -> Iterator[BatchRow]:
    """Yield a row of a batch for each of ``rows``, (text before the drafts, number of drafts), with drafts from q."""
    q_of = draft_model(task)
    for place, (prefix, count) in enumerate(rows):
        draft = chain((), ())
        for i in range(count):
            q = q_of(prefix + draft.tokens)
            token = draws.categorical(q, ("draft", f"of row {place + 1}", i))
            draft = chain((*draft.tokens, token), (*draft.pmfs, q))
        yield BatchRow(*arguments.rows(task, prefix, draft), draft.tokens)


def _with_bonus(rows: Sequence[CertainRow], texts: Sequence[Tokens]) -> tuple[Tokens, ...]:
    return tuple(row.with_bonus(text) for row, text in zip(rows, texts, strict=True))


def _given_as(arguments: Arguments, row: BatchRow) -> BatchRow:
    return row._replace(p=arguments.of_pmfs(row.p), q=arguments.of_pmfs(row.q))


def of_rows(
    name: str,
    task: Task,
    rows: Sequence[RandomRow | CertainRow],
    decide: Callable[[Draws], Sequence[Tokens]],
) -> EngineProgram:
    """Return a program that verifies several rows in one call; its outcome is the tuple of the rows' texts.

    * ``name``: The name of the program.
    * ``task``: Its target draws the missing tokens of a random row that emits fewer tokens than it may.
    * ``rows``: The rows in order.
    * ``decide``: ``decide(draws)`` makes the call and returns the emitted tokens of each row.
    """

    @cache
    def continued(prefix: Tokens, number: int) -> tuple[tuple[Tokens, Any], ...]:
        return tuple(target_law(task._replace(horizon=number), prefix).items()) if number else (((), 1),)

    def ends_of(text: Tokens, row: RandomRow | CertainRow) -> list[tuple[Tokens, Any]]:
        if isinstance(row, CertainRow):
            return [(row.with_bonus(text), 1)]
        prefix, count = row
        return [(text + rest, mass) for rest, mass in continued(prefix + text, count + 1 - len(text))]

    def run(draws: Draws) -> Undecided:
        return Undecided(tuple(_joined([ends_of(text, row) for text, row in zip(decide(draws), rows, strict=True)])))

    @contextmanager
    def opened() -> Iterator[Callable[[Draws], Undecided]]:
        yield run

    def law() -> dict[Any, Any]:
        wanted = (row.emitted if isinstance(row, CertainRow) else () for row in rows)
        return dict(_joined([ends_of(text, row) for text, row in zip(wanted, rows, strict=True)]))

    return EngineProgram(name, opened, law, each="row")


def _joined(ends: Sequence[Sequence[tuple[Tokens, Any]]]) -> Iterator[tuple[tuple[Tokens, ...], Any]]:
    for chosen in product(*ends):
        yield tuple(text for text, _ in chosen), prod(mass for _, mass in chosen)
