"""Requests that one engine serves after each other: what one leaves behind must not change what the next one gets.

An engine whose calls take the prompt, ``speculative(prompt)``, is made anew and asked for several texts in turn. What
it returns is laid end to end, and held to the product of their laws. Prompts follow each other as those of users do:
shorter and longer ones, the next turn of a conversation, others of the same beginning, length or end, the first one
again. A cache that is not emptied, a prefix that is looked up by its length or by its last block, and a state that a
rejection leaves behind give other tokens then.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any, Final, NamedTuple

from reference import Pmf, Tokens
from specverify.laws.certain_tables import CERTAIN, open_after
from specverify.laws.law import target_law
from specverify.laws.scenarios import Scenario, handed_task
from specverify.subjects.engine import tokens_of
from specverify.subjects.subject import UnusableSubject


class Requests(NamedTuple):
    """Texts that are asked for in turn."""

    scenario: Scenario
    """The first of them; its models and its horizon are those of all."""
    then: tuple[Tokens, ...]
    """The prompts of the others."""

    @property
    def name(self) -> str:
        """The prompts in words."""
        others = ", then ".join("".join(map(str, prompt)) for prompt in self.then)
        return f"{self.scenario.name}, then {others}"

    @property
    def each(self) -> tuple[Scenario, ...]:
        """Every request as a scenario of its own."""
        return (self.scenario, *(self.scenario._replace(prompt=prompt) for prompt in self.then))


_LONG: Final = (0, 1, 2, 3, 2, 1) * 6
"""Thirty-six tokens: blocks of sixteen are full."""
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
)
_HORIZON: Final = 6


def _conversation(scenario: Scenario) -> Requests:
    """Return a request and the next turn: its prompt, most of what was answered, and more."""
    (answer,) = target_law(handed_task(scenario, rational=False), scenario.prompt)
    last = scenario.prompt + answer
    return Requests(scenario, ((*last, 1), (*last[:-1], (last[-1] + 1) % scenario.vocabulary, 0)))


REQUESTS: Final = (
    *(
        Requests(Scenario(CERTAIN, 4, first, _HORIZON, seed=40 + 10 * again + number), then)
        for number, (first, then) in enumerate(_TURNS)
        for again in range(2)
    ),
    *(_conversation(Scenario(CERTAIN, 4, prompt, _HORIZON, seed=60)) for prompt in ((0,), (0, 1, 2, 3, 0))),
    *(
        Requests(Scenario(open_after(len(first) + 1), 3, first, 3, seed=61), then)
        for first, then in (((0, 1, 2, 0), ((2,),)), ((1, 2), ((0, 1, 2, 0),)), ((0, 1, 2), ((0, 1, 2),)))
    ),
)
"""Certain rows have one path each; where one row is open, the first text ends in a rejection, or does not."""


def takes_prompt(decode: Callable[..., Any]) -> bool:
    """Return whether a call needs one argument. Raises ``UnusableSubject`` if it needs several."""
    try:
        signature = inspect.signature(decode)
    except (TypeError, ValueError):
        return False
    for arguments in ((), ((),)):
        with suppress(TypeError):
            signature.bind(*arguments)
            return bool(arguments)
    raise UnusableSubject(
        f"the call that was made takes {signature}, expected one without arguments, or with the prompt as its one "
        "argument"
    )


def in_turn(requests: Requests, decode: Callable[[Tokens], Any]) -> Tokens:
    """Return what the requests get, laid end to end; what is beyond the horizon of each is cut off."""
    return tuple(token for each in requests.each for token in tokens_of(decode(each.prompt))[: each.horizon])


def law_of_all(laws: Any) -> dict[Tokens, Any]:
    """Return the law of texts laid end to end: the product of theirs."""
    joint: dict[Tokens, Any] = {(): 1}
    for law in laws:
        joint = {before + new: mass * share for (before, mass), (new, share) in product(joint.items(), law.items())}
    return joint


def rows_of_all(requests: Requests, new: Tokens) -> dict[Tokens, dict[str, Pmf]]:
    """Return p and q after each prompt and on the way through each text, of which ``new`` are all laid end to end."""
    found: dict[Tokens, dict[str, Pmf]] = {}
    for number, each in enumerate(requests.each):
        models, text = handed_task(each, rational=False), new[number * each.horizon : (number + 1) * each.horizon]
        for length in range(max(len(text), 1)):
            tokens = each.prompt + text[:length]
            found[tokens] = {"p": models.target(tokens)} | ({"q": models.draft(tokens)} if models.draft else {})
    return found
