"""The requests with which every made engine is examined: lists in turn, batches, and batches in turn.

Each list is for one kind of fault. The four tuples at the end of the module have all of them, for ``requests_for``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Any, Final, NamedTuple

import numpy as np

from specverify.laws.certain_tables import CERTAIN, END, open_after, planned
from specverify.laws.law import target_law
from specverify.laws.scenarios import Scenario, handed_task
from specverify.laws.size_scenarios import long_prompt, many_rows
from specverify.reference import Tokens
from specverify.reference.models import draft_model
from specverify.subjects.batch_plans import (
    AT_AN_END,
    AT_THE_HORIZON,
    OPEN_AFTER_AN_END,
    OPEN_AFTER_THE_HORIZON,
    planned_batch,
)
from specverify.subjects.call_arguments import takes_prompt
from specverify.subjects.requests import Requests

_LONG: Final = (0, 1, 2, 3, 2, 1) * 6
"""Thirty-six tokens, which fill two cache blocks of sixteen."""


def _crossed(beginning: int, end: int) -> tuple[Tokens, tuple[Tokens, ...]]:
    """Return (first prompt, (second prompt, third prompt)), to be served one after the other.

    The first prompt has ``end`` tokens. The second prompt has ``beginning`` + 1 tokens and begins differently. The
    third prompt has the first ``beginning`` tokens of the second prompt, then the tokens of the first prompt from this
    index on. So each cache block of the third prompt occurs in an earlier prompt.
    """
    first, second = _LONG[:beginning], ((3, 3, 1, 0) * beginning)[:beginning]
    return first + _LONG[beginning:end], ((*second, 1), second + _LONG[beginning:end])


_TURNS: Final[tuple[tuple[Tokens, tuple[Tokens, ...]], ...]] = (
    ((0, 1, 2, 3, 0), ((2, 0),)),
    ((2, 0), ((0, 1, 2, 3, 0),)),
    ((0, 1, 2, 3, 0), ((0, 1, 2),)),
    ((0, 1, 2, 3, 0), ((0, 1, 2, 1, 0),)),
    ((0, 1, 2, 3, 0), ((1, 1, 2, 3, 0),)),
    ((0, 1, 2, 3, 0), ((3, 3, 0), (0, 1, 2, 3, 0))),
    ((0, 1), ((1, 0), (0, 1, 2), (0, 1), (2,), (1, 0))),
    ((0, *_LONG), ((1, *_LONG),)),
    (_LONG[:16], ((*_LONG[:16], 2), (*_LONG[:15], 0, 2))),
    _crossed(12, 25),
    _crossed(16, 33),
)
_HORIZON: Final = 6
_REJECTED_AT_ENDS: Final = tuple(Scenario(CERTAIN, 4, (0, 1), 18, seed=seed) for seed in (174, 184))
"""Scenarios in which p and q want different tokens at the last position of cache blocks of 4, 6, 8, 12 and 16 tokens.
The entry of a draft rejected there is in a block that the next turn of the conversation may take for complete."""


def _next_turns(scenario: Scenario) -> tuple[Tokens, Tokens]:
    """Return the prompts of two follow-ups of the request of ``scenario``, as in ``conversation``."""
    (answer,) = target_law(handed_task(scenario, rational=False), scenario.prompt)
    last = scenario.prompt + answer
    return (*last, 1), (*last[:-1], (last[-1] + 1) % scenario.vocabulary, 0)


def conversation(scenario: Scenario) -> Requests:
    """Return three requests in ``scenario``: one with its prompt, and two follow-ups, to expose stale cache entries.

    The prompt of a follow-up is the first prompt, its answer and one token. In the second follow-up the last token of
    the answer is replaced. So the two follow-ups are equal up to this token, and a cache may keep only this common
    part.
    """
    return Requests(scenario, _next_turns(scenario))


def _conversation_of_blocks(length: int, seed: int) -> Requests:
    """Return a conversation whose first text has ``length`` tokens and does not end with 0, as empty memory may.

    The last token of an answer is not yet in the cache when the answer ends. ``seed`` selects the models: the first
    ones from this seed on that give such a text.
    """
    prompt = _LONG[: length - _HORIZON]
    texts = (conversation(Scenario(CERTAIN, 4, prompt, _HORIZON, seed=seed + 1000 * again)) for again in count())
    return next(requests for requests in texts if requests.others[0][length - 1] != 0)


def _drafted(scenario: Scenario) -> Requests:
    """Return the request of ``scenario``, and one for each draft that is rejected in it.

    The prompt of such a request ends with the rejected draft and one token. Such a prompt shows a fault of a prefix
    cache. An engine with this fault stores a block of the cache under the draft. It finds the block again for this
    prompt, although the block then holds the replacement of the draft.
    """
    task = handed_task(scenario, rational=False)
    (answer,) = target_law(task, scenario.prompt)
    texts = [scenario.prompt + answer[:place] for place in range(len(answer))]
    drafts = [int(np.argmax(draft_model(task)(text))) for text in texts]
    rejected = [(*text, draft, 1) for text, draft, wanted in zip(texts, drafts, answer, strict=True) if draft != wanted]
    return Requests(scenario, tuple(rejected))


WITH_REJECTED_DRAFTS: Final = tuple(map(_drafted, _REJECTED_AT_ENDS))


def _continued(scenario: Scenario) -> Requests:
    """Return two requests: that of ``scenario``, and one whose prompt is the first prompt followed by its new tokens.

    So the engine may have cached all tokens of the second prompt.
    """
    (answer,) = target_law(handed_task(scenario, rational=False), scenario.prompt)
    return Requests(scenario, (scenario.prompt + answer,))


def _open_end_and_beginning(first: Tokens, second: Tokens) -> Requests:
    """Return two requests with the prompts ``first`` and ``second``, of three new tokens each.

    The last new token of the first request and the first one of the second are random, to expose a draft that is left
    over from the first request.
    """
    return Requests(Scenario(open_after(len(first) + 2, len(second)), 3, first, 3, seed=64), (second,))


IN_TURN: Final = (
    *(
        Requests(Scenario(CERTAIN, 4, first, _HORIZON, seed=40 + 10 * again + number), others)
        for number, (first, others) in enumerate(_TURNS)
        for again in range(2)
    ),
    *(conversation(Scenario(CERTAIN, 4, prompt, _HORIZON, seed=60)) for prompt in ((0,), (0, 1, 2, 3, 0))),
    *map(conversation, _REJECTED_AT_ENDS),
    *WITH_REJECTED_DRAFTS,
    *(
        Requests(Scenario(open_after(len(first) + 1), 3, first, 3, seed=61), others)
        for first, others in (((0, 1, 2, 0), ((2,),)), ((1, 2), ((0, 1, 2, 0),)), ((0, 1, 2), ((0, 1, 2),)))
    ),
    *map(_open_end_and_beginning, ((0,), (0, 1, 2, 1, 0)), ((2, 1, 0, 1), (2, 0))),
    *(
        _continued(Scenario(CERTAIN, 4, prompt, _HORIZON, seed=62 + seed))
        for seed, prompt in enumerate(((0,), (0, 1, 2, 3, 0)))
    ),
)
"""Requests in turn. With one-hot pmfs they have one path; if one is random, the first text may end in a rejection."""


def _swapped(prompt: Tokens, place: int) -> Tokens:
    """Return ``prompt`` with the tokens at ``place`` and after it in the other order."""
    return (*prompt[:place], prompt[place + 1], prompt[place], *prompt[place + 2 :])


WHOLE_BLOCKS: Final = (
    *(
        Requests(Scenario(CERTAIN, 4, _LONG[:length], _HORIZON, seed=252), (_LONG[:length], _LONG[:length]))
        for length in (4, 8, 12, 16, 32)
    ),
    *(_conversation_of_blocks(length, 253) for length in (8, 12, 16, 32)),
)
"""Requests after which all blocks of a prompt are cached: the same prompt again, and the next turn of a conversation
whose first text fills its blocks."""
ALIKE_IN_TURN: Final = (
    Requests(
        Scenario(CERTAIN, 4, (0, 1, 2, 3, 0), _HORIZON, seed=250), ((0, 3, 2, 3, 0), (0, 1, 0, 3, 0), (0, 2, 1, 3, 0))
    ),
    Requests(Scenario(CERTAIN, 4, _LONG[:30], _HORIZON, seed=251), tuple(_swapped(_LONG[:30], i) for i in (13, 9, 18))),
)
"""Requests whose prompts differ from the first one in one token, or only in the order of two tokens in the middle. An
engine that finds the cache of a prompt by its length, its ends or its sum takes that of another prompt."""
_ROWS: Final[tuple[tuple[Tokens, ...], ...]] = (
    ((0, 1, 2, 3, 0), (2, 0)),
    ((2, 0), (0, 1, 2, 3, 0)),
    ((0, 1, 2), (2, 1, 0)),
    ((0, 1, 2), (0, 1, 2)),
    ((0,), (0, 1, 2), (3, 2, 1, 0, 1)),
    ((0, 1), (3, 3, 3), (1, 0), (0, 1, 2, 3)),
    (_LONG[:17], (3,), _LONG[:16]),
)
AT_ONCE: Final = (
    *(
        Requests(Scenario(CERTAIN, 4, rows[0], _HORIZON, seed=70 + 10 * again + number), rows[1:], at_once=True)
        for number, rows in enumerate(_ROWS)
        for again in range(2)
    ),
    *(
        Requests(Scenario(shape, vocabulary, rows[0], horizon, seed=90), rows[1:], at_once=True)
        for shape, vocabulary, horizon, rows in (
            (open_after(5, 6), 2, 2, ((0,), (0, 1, 0, 1, 0), (1, 1, 1, 0, 1))),
            (open_after(2, 3), 2, 2, ((0, 1), (0, 1))),
            (open_after(3), 3, 3, ((0, 1), (0, 1))),
            (open_after(2, 4), 2, 3, ((0, 1, 0), (1,))),
            (open_after(2), 2, 2, ((0,), (0,), (1,))),
        )
    ),
)
"""Batches. Random rows of the same prompt are equal too often if they share random numbers.

In the first batch with random rows the first row accepts its drafts and ends, while the other two may reject theirs and
draw again. An engine that then finds the values of a row by its old place in the batch uses those of another row.
"""
BATCHES_IN_TURN: Final = tuple(
    Requests(Scenario(CERTAIN, 4, prompts[0], _HORIZON, seed=130 + 10 * again + number), prompts[1:], True, rows)
    for number, (rows, prompts) in enumerate(
        (
            (2, ((0, 1, 2, 3, 0), (2, 0), (2, 0), (0, 1, 2, 3, 0))),
            (2, ((2, 0), (0, 1, 2), (1,), (3, 3, 0), (0, 1), (0, 1, 2))),
            (3, ((0,), (0, 1, 2), (3, 2, 1, 0, 1), (1, 2, 3), (0, 2))),
            (3, ((0, 1), (1, 0, 1), (3, 2, 1), (0, 1), (3, 2, 1), (1, 0, 1))),
        )
    )
    for again in range(2)
)
"""Batches in turn: a row follows a longer row, a shorter one, or one with the same beginning."""


def _ending(rows: tuple[Tokens, ...], seed: int, eos: int, *, at_once: bool) -> Requests:
    return Requests(Scenario(CERTAIN, 4, rows[0], _HORIZON, (eos,), seed), rows[1:], at_once)


ENDING_IN_TURN: Final = tuple(
    _ending(rows, 100 + seed, eos, at_once=False)
    for seed, eos in ((0, 0), (1, 1), (2, 2))
    for rows in (((0, 1), (2, 0)), ((0, 1, 2, 3, 0), (3,), (0, 1)))
)
"""Requests in turn whose texts end early: state of an ended text must not affect the next one."""
_ENDED: Final = Scenario(planned(("e", "ae", "aae", "aaae", "r", "ar", "aar")), 8, (1,), 8, (END,), seed=1)
_ENDED_TURNS: Final = tuple(((token,), *_next_turns(_ENDED._replace(prompt=(token,)))) for token in range(1, 8))
"""The prompts of each conversation, turn by turn."""
ENDED_CONVERSATIONS: Final = Requests(_ENDED, tuple(chain.from_iterable(_ENDED_TURNS))[1:])
"""Conversations in turn whose answers end early, each by another token of a round: the end is an accepted draft, the
replacement of a rejected one, or a bonus token. An engine that keeps the cache for the next turn is wrong there if it
counts the end that it has not read, or loses an entry with it."""
ENDED_BATCHES_IN_TURN: Final = Requests(
    _ENDED,
    tuple(chain.from_iterable((*zip(*_ENDED_TURNS[:4], strict=True), *zip(*_ENDED_TURNS[3:], strict=True))))[1:],
    True,
    rows=4,
)
"""The same conversations in batches: each row of a batch is the next turn of that row of the batch before it."""
ENDING_AT_ONCE: Final = (
    *(
        _ending(rows, 110 + seed, eos, at_once=True)
        for seed, eos in ((0, 0), (1, 1), (2, 2), (3, 3))
        for rows in (((0, 1), (2, 0)), ((2, 0), (0, 1, 3)), ((0,), (0, 1, 2), (3, 2, 1, 0, 1)))
    ),
    Requests(Scenario(open_after(2, 3), 2, (0, 0), 3, (1,), seed=91), ((0, 0),), at_once=True),
)
"""Batches in which some rows end before others; ``PLANNED_ENDING`` has more."""


def _planned(batch: str, eos: Tokens = ()) -> Requests:
    return Requests(*planned_batch(batch, eos), at_once=True)


PLANNED_AT_ONCE: Final = tuple(_planned(batch) for batch in (*AT_THE_HORIZON, *OPEN_AFTER_THE_HORIZON))
"""Batches whose rows reach the horizon in every order, and meet in many constellations of acceptance."""
PLANNED_ENDING: Final = tuple(_planned(batch, (END,)) for batch in (*AT_AN_END, *OPEN_AFTER_AN_END))
"""Batches whose rows end in every order and by every kind of token, beside rows that accept or reject drafts."""
SAMPLES_OF_ONE_PROMPT: Final = Requests(
    Scenario(planned((".oaadaad", ".adaadaa")), 4, (1, 2), 8, seed=250), ((1, 2), (2, 1)), at_once=True
)
"""A batch whose first two rows are samples of one prompt. Their first new token is random, and seven tokens that depend
on it follow: an engine that then mixes up the caches of the two rows, or lets both write into one, is wrong."""


def _of_rows(rows: int) -> Requests:
    prompts = many_rows(rows)
    return Requests(Scenario(CERTAIN, 4, prompts[0], _HORIZON, seed=220 + rows), prompts[1:], at_once=True)


MOST_ROWS: Final = 9
"""The number of rows of the largest batch with which every batched engine is examined."""
MANY_ROWS: Final = (
    *map(_of_rows, (5, 8, MOST_ROWS)),
    Requests(
        Scenario(open_after(2), 2, (0, 1, 0), 2, seed=230), ((1, 0, 0), (0, 0, 1), (1, 1, 0), (0, 1), (0, 1)), True
    ),
)
"""Larger batches; in the last one only the fifth and the sixth row are random, and they have the same prompt."""


def _open_at(rows: int, *places: int) -> Requests:
    """Return a batch of ``rows`` rows, of which those at ``places`` are random, and have the same prompt."""
    certain = ((n // 4 % 2, n // 2 % 2, n % 2, *(1,) * (n % 3)) for n in range(rows))
    first, *others = ((0, 1) if n in places else prompt for n, prompt in enumerate(certain))
    return Requests(Scenario(open_after(2), 2, first, 2, seed=230), tuple(others), at_once=True)


LATE_ROWS_OPEN: Final = _open_at(18, 16, 17)
"""If requests have parameters, more than eight rows of the batch have the same, and the random rows have two of them.
"""
OPEN_ROWS_APART: Final = tuple(_open_at(MOST_ROWS + 1, *rows) for rows in ((0, 2), (1, 3), (0, 3), (0, 4), (0, 8)))
"""Batches of which two rows are random that are not neighbours. They may use no random number together."""


def _of_one_beginning(lengths: tuple[int, ...], others: tuple[Tokens, ...], seed: int) -> Requests:
    """Return a batch of prompts with a common beginning, and of the prompts ``others``.

    There is one prompt for each number in ``lengths``. It has this number of tokens of one long text, and one more
    token, which differs from row to row. ``seed`` selects the models.
    """
    prompts = (*((*_LONG[:length], row) for row, length in enumerate(lengths)), *others)
    return Requests(Scenario(CERTAIN, 8, prompts[0], 8, seed=seed), prompts[1:], at_once=True)


_OTHER: Final = (3, 3, 1, 2, 0, 2, 2, 1, 3, 1) * 4
SHARED_BEGINNING: Final = _of_one_beginning((33, 17, 17), (_OTHER,), seed=302)
"""A batch whose first three rows begin alike, so that they may share cache blocks of up to 16 tokens.

The fourth row needs more blocks than the others. If it starts after one of them has ended, it takes all blocks that
are free, and also those that the ended row shared, if an engine frees them too early.
"""
_ENDING_BEGINNING: Final = _of_one_beginning((17, 9, 17, 5), (), seed=325)
ENDING_SHARED_BEGINNING: Final = _ENDING_BEGINNING._replace(
    scenario=_ENDING_BEGINNING.scenario._replace(horizon=36, eos=(0,))
)
"""The same for rows that start together. They have 3, 4, 36 and 24 new tokens, so the last two rows outlive the others
and take their blocks."""

ENDS_AFTER_A_ROW_HAS_LEFT: Final = Requests(
    Scenario(planned(("e", "aaaa", "dxaa", "dxaa")), 5, (1,), 4, (END,), seed=5), ((2,), (3,), (4,)), at_once=True
)
"""A batch whose first row ends at once, and whose third and fourth row may end in their second round. By then an engine
may have moved one of them to another place, with the least number of tokens of the row that was there."""


MANY_IN_TURN: Final = Requests(
    Scenario(CERTAIN, 4, (0,), 2, seed=240), tuple(long_prompt(1 + 5 * n % 7) for n in range(69))
)
"""Seventy requests in turn, for an engine with many slots, of which one is wrong."""
_BITS: Final = tuple(token % 2 for token in _LONG)
OPEN_BEHIND_OTHERS: Final = Requests(
    Scenario(open_after(9), 4, (0,), 2, seed=61), (*(_BITS[: 1 + 5 * n % 6] for n in range(1, 7)), _BITS[:9])
)
"""Eight requests in turn, of which the last one has a random draft, for an engine whose acceptance or replacement
becomes wrong with the number of requests, or that has up to seven slots and does not clear what it counts in them: the
texts of no slot have all four tokens."""
LONG_PROMPT_TWICE: Final = Requests(Scenario(open_after(35), 2, _BITS[:35], 2, seed=61), (_BITS[:35],), at_once=True)
"""A batch of two equal prompts, longer than two cache blocks. If requests have parameters, these differ."""
FOUR_TOKENS_OPEN: Final = Requests(Scenario(open_after(2), 4, (0, 1), 2, seed=62), ((0, 1),), at_once=True)
"""A batch of two random rows with four tokens. If requests have parameters, such as a top-k of 2 or 3, these differ,
and neither row may get those of the other."""
OPEN_BESIDE_LAST_TOKENS: Final = _planned("ddaaaaaaaaaa dddaaaaaawwa ddaaaaaaaaaa daaaaaaaaaaa ddaaaaaaaaaa")
"""A batch whose second row may draw three tokens while one token is left to others, which then have no drafts. If
requests have parameters, the second row must keep its own, also if rows are sorted by their drafts."""
PROMPTS_OF_OTHER_ROWS: Final = Requests(
    Scenario(open_after(9), 2, _BITS[:9], 1, seed=61), (_BITS[:3], _BITS[:9], _BITS[:3]), at_once=True, rows=2
)
"""Two batches of the same two prompts in the same order: in the second one each has the parameters of the other."""
MANY_BATCHES_IN_TURN: Final = MANY_IN_TURN._replace(others=MANY_IN_TURN.others[:-1], at_once=True, rows=3)


def _ending_at_once(lengths: Sequence[int], seed: int) -> Requests:
    """Return requests in turn whose first new token is an end, with a prompt of each length in ``lengths``.

    ``seed`` selects the models.
    """
    scenario = Scenario(CERTAIN, 4, (0,), 3, (0,), seed=seed)
    target = handed_task(scenario, rational=False).target
    texts = [_LONG[shift:] + _LONG * 2 for shift in range(len(_LONG))]

    def prompt(length: int) -> Tokens:
        begun = (*((first, *text[: length - 1]) for text in texts for first in range(4)),)
        return next(one for one in begun if np.argmax(target(one)) == scenario.eos[0])

    first, *others = map(prompt, lengths)
    return Requests(scenario._replace(prompt=first), tuple(others))


ENDING_AT_THE_FIRST: Final = _ending_at_once((1, 2, 4, 7, 8, 9, 12, 15, 16, 17, 24, 32, 33, 48, 64), seed=326)
"""Requests whose first new token is the end, which an engine that takes this token from the prefill may overlook."""
MANY_ENDING_ROWS: Final = _ending(
    tuple((n % 4, n // 4, (n + 1) % 4, *_OTHER[n : n + n % 5]) for n in range(10)), 327, 2, at_once=True
)
"""A batch of ten rows with other first tokens, some of which end. An engine of fewer slots admits the last rows later.
"""

TREES_IN_TURN: Final = tuple(
    Requests(Scenario("point_target", 4, first, 12, seed=800 + number), others)
    for number, (first, others) in enumerate(_TURNS)
)
TREES_AT_ONCE: Final = tuple(
    Requests(Scenario("point_target", 4, rows[0], 12, seed=820 + number), rows[1:], at_once=True)
    for number, rows in enumerate((*_ROWS, *_ROWS))
)
TREES_WITH_ENDS: Final = tuple(
    Requests(Scenario("point_target", 4, rows[0], 12, (1,), seed=840 + number), rows[1:], at_once=True)
    for number, rows in enumerate(_ROWS)
)
"""The same prompts for engines that draft trees of the most probable tokens. All tokens are possible under q, so the
trees are whole, and p is one-hot, so these engines have one path."""


SINGLE: Final = (*IN_TURN, *WHOLE_BLOCKS, *ALIKE_IN_TURN, OPEN_BEHIND_OTHERS, MANY_IN_TURN)
"""For every engine that takes a prompt."""
SINGLE_WITH_ENDS: Final = (*ENDING_IN_TURN, ENDED_CONVERSATIONS, ENDING_AT_THE_FIRST)
"""For those that also end texts at an end-of-sequence token."""
BATCHED: Final = (
    *BATCHES_IN_TURN,
    PROMPTS_OF_OTHER_ROWS,
    MANY_BATCHES_IN_TURN,
    *MANY_ROWS,
    SAMPLES_OF_ONE_PROMPT,
    SHARED_BEGINNING,
    LONG_PROMPT_TWICE,
    *AT_ONCE,
    *PLANNED_AT_ONCE,
    LATE_ROWS_OPEN,
    *OPEN_ROWS_APART,
)
"""For every engine that serves batches."""
BATCHED_WITH_PARAMETERS: Final = (FOUR_TOKENS_OPEN, OPEN_BESIDE_LAST_TOKENS)
"""For those whose requests have parameters."""
BATCHED_WITH_ENDS: Final = (
    ENDED_BATCHES_IN_TURN,
    ENDING_SHARED_BEGINNING,
    ENDS_AFTER_A_ROW_HAS_LEFT,
    *ENDING_AT_ONCE,
    *PLANNED_ENDING,
    MANY_ENDING_ROWS,
)
"""For those that also end texts at an end-of-sequence token."""
KEPT: Final = Requests(Scenario(CERTAIN, 4, (0, 1), 3, seed=254), ((1, 0), (0, 1, 2), (2,), (1, 0)))
"""Requests by a caller who keeps the objects of its prompts and of the answers."""
KEPT_BATCHES: Final = KEPT._replace(others=(*KEPT.others, (3, 1, 0)), at_once=True, rows=2)
PLANNED: Final = frozenset(PLANNED_AT_ONCE + PLANNED_ENDING)
"""Batches by a plan (``batch_plans``)."""
QUICK_PLANNED: Final = frozenset(
    requests
    for batches, most in (
        (PLANNED_AT_ONCE, 8),
        (PLANNED_AT_ONCE[len(AT_THE_HORIZON) :], 6),
        (PLANNED_ENDING, 20),
        (PLANNED_ENDING[len(AT_AN_END) :], 6),
    )
    for requests in batches[:most]
)
"""The planned batches of the quick plan: the most effective ones."""
QUICK: Final = QUICK_PLANNED | {
    *WHOLE_BLOCKS,
    *ALIKE_IN_TURN,
    WITH_REJECTED_DRAFTS[-1],
    *MANY_ROWS,
    SAMPLES_OF_ONE_PROMPT,
    SHARED_BEGINNING,
    ENDING_SHARED_BEGINNING,
    ENDED_CONVERSATIONS,
    ENDED_BATCHES_IN_TURN,
    OPEN_BEHIND_OTHERS,
    LONG_PROMPT_TWICE,
    PROMPTS_OF_OTHER_ROWS,
    FOUR_TOKENS_OPEN,
    OPEN_BESIDE_LAST_TOKENS,
    MANY_IN_TURN,
    MANY_BATCHES_IN_TURN,
    ENDING_AT_THE_FIRST,
    LATE_ROWS_OPEN,
    *OPEN_ROWS_APART,
    MANY_ENDING_ROWS,
    ENDS_AFTER_A_ROW_HAS_LEFT,
}
"""Requests of the quick plan, beside those that its list names."""


class ListedRequests(NamedTuple):
    """Requests, and how much is examined with them."""

    requests: Requests
    in_quick: bool
    """Whether the quick plan has them."""
    planned: bool = False
    """Whether they are a batch by a plan. These are many, so hidden draws are searched for with fewer runs."""


def requests_for(
    decode: Callable[..., Any], *, batched: bool, stops: bool, rows: int = 0, differ: bool = False
) -> tuple[ListedRequests, ...]:
    """Return the requests with which the engine call ``decode`` is examined.

    With ``stops`` there are also requests whose texts end with an end-of-sequence token. A ``batched`` engine also gets
    a batch of ``rows`` requests, if that is more than one, and others if the parameters of its requests ``differ``.
    Returns () for an engine that takes no prompt.
    """
    if not (batched or takes_prompt(decode)):
        return ()
    single = SINGLE + SINGLE_WITH_ENDS * stops
    more = (_of_rows(rows),) if batched and rows > 1 else ()
    together = (BATCHED + BATCHED_WITH_ENDS * stops + BATCHED_WITH_PARAMETERS * differ) * batched
    listed = (ListedRequests(each, each in QUICK, each in PLANNED) for each in single + together)
    return (*listed, *(ListedRequests(each, in_quick=True) for each in more if each not in together))


def requests_of_trees(decode: Callable[..., Any], *, batched: bool, stops: bool) -> tuple[Requests, ...]:
    """Return the requests for the engine call ``decode`` in which trees of the most probable drafts are whole.

    ``batched`` states whether it takes several prompts, and ``stops`` whether it ends texts. Returns () for an engine
    that takes no prompt.
    """
    if not (batched or takes_prompt(decode)):
        return ()
    return TREES_IN_TURN + TREES_AT_ONCE * batched + TREES_WITH_ENDS * (batched and stops)


def requests_kept(decode: Callable[..., Any], *, batched: bool) -> tuple[Requests, ...]:
    """Return the requests for the engine call ``decode`` by a caller who keeps all prompts and answers.

    ``batched`` states whether it takes several prompts. Returns () for an engine that takes no prompt.
    """
    if batched:
        return (KEPT_BATCHES,)
    return (KEPT,) if takes_prompt(decode) else ()
