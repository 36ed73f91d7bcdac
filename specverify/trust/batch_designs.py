"""Compute the batches of ``specverify.subjects.batch_plans``: few batches with many combinations of events.

    python -m specverify.trust.batch_designs

prints the batches. A batch is given by a plan for each row, which states for each token whether its draft is accepted
or rejected and whether it ends the text (``certain_tables.PLANNED``). The plans of candidates are random; in each step
the candidate that adds the most constellations is chosen. A constellation is a combination of events, such as (3,
"ends", 4, 1, "bonus"): with 3 drafts per round and 4 rows, row 1 alone ends, by a bonus token. ``constellations``
returns those of a batch.
"""

from __future__ import annotations

import heapq
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from specverify.subjects.batch_plans import HORIZON

GAMMAS: Final = range(1, 6)
CANDIDATES: Final = 12_000
DESIGNS: Final = {"AT_THE_HORIZON": 20, "OPEN_AFTER_THE_HORIZON": 21, "AT_AN_END": 66, "OPEN_AFTER_AN_END": 39}
"""Name in ``batch_plans`` -> the largest number of batches."""
_MOST_PROMPT: Final = 3
_NOT_ACCEPTED: Final = re.compile("[der]")
Event = str
"""What a round does with a row: ``all`` drafts are accepted, the ``first`` or a ``later`` one is rejected; or the text
ends with a ``draft``, with the ``last draft``, with a ``replacement``, with the ``bonus``, or at the ``horizon``."""
OVER: Final = frozenset({"draft", "last draft", "replacement", "bonus", "horizon"})


def rounds(plans: Sequence[str], gamma: int, opened: str = "a") -> Iterator[Mapping[int, tuple[Event, bool]]]:
    """Yield for each round of a batch: row -> (event, whether a draft of the row is tested at a random token).

    ``plans`` are the plans of the rows without their prompts, and ``gamma`` is the number of drafts of a round. At a
    random token, letter ``o``, a draft may be accepted or rejected: ``opened`` is the letter to use in its place.
    """
    rows = [_rounds_of_row(plan, gamma, opened) for plan in plans]
    for number in range(max(map(len, rows), default=0)):
        yield {row: events[number] for row, events in enumerate(rows) if number < len(events)}


@lru_cache(maxsize=10_000)
def _rounds_of_row(plan: str, gamma: int, opened: str) -> Sequence[tuple[Event, bool]]:
    """Return for each round of one row: (event, whether a draft is tested at a random token).

    The arguments are those of ``rounds``.
    """
    result, at, event = list[tuple[Event, bool]](), 0, ""
    read = plan.replace("o", opened)
    while event not in OVER:
        rejection = _NOT_ACCEPTED.search(read, at, at + gamma)
        last = rejection.start() if rejection else at + gamma
        drafted = last + 1 if rejection else last  # a bonus token has no draft, and neither has the last token
        is_open = plan.find("o", at, min(drafted, HORIZON - 1)) >= 0
        # the text is complete at the horizon, whether or not its last token is an end
        event = "horizon" if last + 1 >= HORIZON else _event(read[last : last + 1] or "a", last - at, gamma)
        result.append((event, is_open))
        at = last + 1
    return result


def _event(letter: str, count: int, gamma: int) -> Event:
    """Return the event of a round that accepts ``count`` of ``gamma`` drafts before the token of ``letter``.

    An event is a word for the end of a round, such as "all" (no draft is rejected), "first" (the first draft is
    rejected), or "bonus" (the text ends with the bonus token). The plan of the row has a letter for each token;
    ``letter`` is that of the token after the accepted drafts.
    """
    if count == gamma:
        return "bonus" if letter in "er" else "all"
    if letter == "e":
        return "last draft" if count == gamma - 1 else "draft"
    return "replacement" if letter == "r" else "later" if count else "first"


def _place(row: int, rows: Sequence[int]) -> str:
    """Return the place of ``row`` among ``rows``: "only", "at the top", "at the bottom" or "between"."""
    if len(rows) == 1:
        return "only"
    return {rows[0]: "at the top", rows[-1]: "at the bottom"}.get(row, "between")


def constellations(batch: str, gamma: int) -> set[tuple[Any, ...]]:
    """Return the combinations of events that occur in a batch of texts with ``gamma`` drafts per round.

    ``batch`` has the plans of the rows, separated by spaces. A combination is a tuple, such as (3, "ends", 4, 1,
    "bonus"): with 3 drafts and 4 rows, row 1 alone ends, by a bonus token.
    """
    plans = [plan.lstrip(".") for plan in batch.split(" ")]
    return _of_open(plans, gamma) if "o" in batch else _of_certain(plans, gamma)


def _of_certain(plans: Sequence[str], gamma: int) -> set[tuple[Any, ...]]:
    result, number = set[tuple[Any, ...]](), len(plans)
    before, order = dict[int, Event](), list[tuple[int, ...]]()
    for both in rounds(plans, gamma):
        events = {row: event for row, (event, _) in both.items()}
        live = sorted(events)
        over = tuple(row for row in live if events[row] in OVER)
        if len(over) == 1 < len(live):
            result.add((gamma, "ends", len(live), live.index(over[0]), events[over[0]]))
        if len(live) == 1:
            result.add((gamma, "is left over", _place(live[0], range(number)), events[live[0]]))
        if len(live) == number and len(set(events.values())) == 1:
            result.add((gamma, "alike", events[live[0]]))
        for row in live:
            result |= {(gamma, "beside", events[row], events[other]) for other in live if other > row}
            result |= {(gamma, "after", end, gone < row, events[row]) for gone, end in before.items() if end in OVER}
        order += [over] if over else []
        before = events
    return {*result, ("order", tuple(order))}


def _of_open(plans: Sequence[str], gamma: int) -> set[tuple[Any, ...]]:
    result = set[tuple[Any, ...]]()
    for opened in "ad":
        before: Sequence[int] = ()
        for events in rounds(plans, gamma, opened):
            live, read = sorted(events), [row for row, (_, is_open) in events.items() if is_open]
            for gone in set(before) - set(live):
                result |= {(gamma, "open after", len(plans), len(before), gone, row) for row in read}
                if len(read) > 1:
                    result.add((gamma, "two open after", len(before), _place(gone, before)))
            before = live
    return result


def _candidate(kind: str, rng: random.Random) -> str:
    """Return the plans of a random batch, made by ``rng``. ``kind`` is a key of ``DESIGNS``.

    Most batches have four rows.
    """
    gamma, number = rng.choice(GAMMAS), rng.choice([2, 3, 4, 4, 4])
    plans = [_plan(rng, gamma, ends="END" in kind and rng.random() < 0.8) for _ in range(number)]
    for row in rng.sample(range(number), rng.choice([1, 1, 2])) if "OPEN" in kind else ():
        place = rng.randrange(6 if "END" in kind else HORIZON - 1)
        plan = plans[row].ljust(place + 1, "a")
        plans[row] = f"{plan[:place]}o{plan[place + 1 :]}"
    return " ".join("." * rng.randint(0, _MOST_PROMPT) + plan for plan in plans)


def _plan(rng: random.Random, gamma: int, *, ends: bool) -> str:
    """Return a plan, made by ``rng``, of a row whose rounds have ``gamma`` drafts.

    The row ends with the end token if ``ends``, else at the horizon.
    """
    plan = "".join(_round(rng, gamma, (0, 0, gamma, gamma)) for _ in range(rng.choice([0, 0, 1, 1, 2, 2, 3])))
    if ends:
        plan += "a" * rng.choice([0, rng.randint(0, gamma), gamma - 1, gamma]) + rng.choice("er")
    elif (speed := rng.random()) < 0.7:
        lengths = (0,) if speed < 0.4 else (0, gamma)
        while len(plan) < HORIZON:
            plan += _round(rng, gamma, lengths)
    return plan[:HORIZON].rstrip("a") or "a"


def _round(rng: random.Random, gamma: int, lengths: tuple[int, ...]) -> str:
    accepted = rng.choice([rng.randint(0, gamma), *lengths])
    return "a" * accepted + ("d" if accepted < gamma else "a")


def design(kind: str) -> tuple[list[str], set[tuple[Any, ...]]]:
    """Return the batches of a ``kind``, and the constellations that some candidate has, but none of these batches.

    ``kind`` is a key of ``DESIGNS``. A constellation is a combination of events of the rows of a batch.

    The batches that add the most constellations come first.
    """
    rng = random.Random(kind)  # noqa: S311 - no secret depends on it
    candidates = list(dict.fromkeys(_candidate(kind, rng) for _ in range(CANDIDATES)))
    covered = [set().union(*map(partial(constellations, batch), GAMMAS)) for batch in candidates]
    left, chosen = set[tuple[Any, ...]]().union(*covered), list[str]()
    waiting = [(-len(found), number) for number, found in enumerate(covered)]
    heapq.heapify(waiting)
    while left and len(chosen) < DESIGNS[kind]:
        _, number = heapq.heappop(waiting)
        gain = len(covered[number] & left)
        if waiting and gain < -waiting[0][0]:
            heapq.heappush(waiting, (-gain, number))
            continue
        chosen.append(candidates[number])
        left -= covered[number]
    return chosen, left


def main() -> None:
    """Print the chosen batches of every kind, and how many combinations of events (see the module) they do not have."""
    for kind in DESIGNS:
        chosen, left = design(kind)
        lines = [f"# {kind}: {len(left)} constellations of the candidates are left out"]
        lines += [f'    "{batch}",' for batch in chosen]
        sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
