"""Runs of an engine with its own random numbers and chosen seeds, whose texts are compared in pairs.

If a call takes a seed, the chosen seed is passed to it. The generators of ``random``, NumPy and torch then begin each
call in another state, so that a text which wrongly depends on them differs between two calls with one seed. If a call
takes no seed, the chosen seed seeds these generators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

from specverify.base.default_limits import MOST_PROGRAMS
from specverify.laws.engine_scenarios import SCENARIOS
from specverify.laws.scenarios import Scenario
from specverify.reference import Tokens
from specverify.subjects.allowed_tokens import errors_of_empty_rows
from specverify.subjects.awaited import awaited
from specverify.subjects.call_arguments import (
    given_seeds,
    seeds_each_row,
    takes_prompt,
    takes_seed,
    with_seed_named,
    with_seeds,
)
from specverify.subjects.engine import tokens_of
from specverify.subjects.engine_answers import new_tokens, read_answer_rows
from specverify.subjects.engine_decodes import form_in
from specverify.subjects.engine_factories import placed, widened
from specverify.subjects.engine_making import Make, made_in
from specverify.subjects.requests import texts_of
from specverify.subjects.seeded import seeded

LONG_PAIR: Final = Scenario("generic", 3, (0, 1, 0), 12, seed=12)
"""A scenario whose texts have several rounds. Runs are sampled, so they may be longer than enumerated ones."""
OTHER_STATE: Final = 1 << 20
"""Difference between a seed and the seed of the global generators, which a call with a seed must not read."""


class Served(NamedTuple):
    """An engine created for one comparison, as a function that serves requests with given seeds."""

    texts: Callable[[Sequence[Tokens], Sequence[int], int], tuple[Tokens, ...]]
    """``texts(prompts, seeds, state)`` returns the new tokens of each prompt, served in one call if the engine supports
    this; ``state`` is the seed of the libraries' generators."""


class Pairing(NamedTuple):
    """An engine in one scenario, to be run with its own random numbers.

    ``name`` names the engine and the scenario in messages; ``horizon`` and ``vocabulary`` are those of the scenario.
    ``make`` creates the engine with speculation, and ``plain`` the same engine without (None: there is none). Four
    fields state whether its calls take a seed (``takes_seed``), a prompt (``takes_prompt``), a list of prompts
    (``batched``), and one seed for each prompt of such a list (``seeds_each_row``).
    """

    name: str
    prompt: Tokens
    horizon: int
    certain: bool
    """Whether every row is one-hot, so that a text has no random tokens."""
    make: Callable[[], Served]
    plain: Callable[[], Served] | None
    takes_seed: bool
    takes_prompt: bool
    batched: bool
    seeds_each_row: bool
    vocabulary: int = 0
    in_quick: bool = False
    """Whether every quick run has this scenario."""


def paired_calls(speculative: Callable[[], Any], plain: Callable[[], Any] | None) -> tuple[Pairing, ...]:
    """Return one ``Pairing`` of the calls ``speculative`` and ``plain`` (without speculation; None: there is none).

    Both take no arguments except a seed, and decode the same prompt, which is not known here.
    """
    seeds = takes_seed(speculative)
    fast, slow = (None if call is None else partial(_of_call, call) for call in (speculative, plain))
    assert fast is not None
    return (Pairing("as called", (), 0, False, fast, slow, seeds, False, False, False),)


def _of_call(call: Callable[[], Any]) -> Served:
    given = with_seed_named(with_seeds(call))
    takes = takes_seed(call)

    def texts(prompts: Sequence[Tokens], seeds: Sequence[int], state: int) -> tuple[Tokens, ...]:
        with seeded(state if takes else seeds[0]), given_seeds(seeds):
            result = read_answer_rows(awaited(given()))
            return tuple(map(tokens_of, new_tokens(result, prompts[: len(result.rows)])))

    return Served(texts)


def paired_made(make: Make) -> tuple[Pairing, ...]:
    """Return one ``Pairing`` for ``LONG_PAIR`` and each of ``SCENARIOS``.

    It has the engine that ``make(scenario)`` creates: with speculation, and without if it has such a call. If requests
    have parameters, all have the first ones, because the place of a request in a batch differs within a pair.
    """
    make = placed(make, 0)
    long, *others = (pairing_in(make, widened(make, scenario)) for scenario in (LONG_PAIR, *SCENARIOS))
    return (*others, long._replace(in_quick=True))


@lru_cache(maxsize=MOST_PROGRAMS)
def pairing_in(make: Make, scenario: Scenario) -> Pairing:
    """Return the engine that ``make`` creates in ``scenario`` as a ``Pairing``, from which pairs of runs are made.

    The pairing has the call without speculation if the engine has such a call.
    """
    made = made_in(make, scenario)
    seeds = takes_seed(made.speculative)
    each = made.batched and seeds_each_row(made.speculative)
    plain = None if made.plain is None else partial(_of_made, make, scenario, "plain")
    return Pairing(
        scenario.name,
        scenario.prompt,
        scenario.horizon,
        scenario.greedy,
        partial(_of_made, make, scenario, "speculative"),
        plain,
        seeds,
        made.batched or takes_prompt(made.speculative),
        made.batched,
        each,
        scenario.vocabulary,
    )


def _of_made(make: Make, scenario: Scenario, which: str) -> Served:
    made = made_in(make, scenario)
    form, call = form_in(make, which), with_seed_named(getattr(made, which))
    takes = takes_seed(getattr(made, which))

    def texts(prompts: Sequence[Tokens], seeds: Sequence[int], state: int) -> tuple[Tokens, ...]:
        nothing_allowed = errors_of_empty_rows(made.allowed, prompts)
        with seeded(state if takes else seeds[0]), given_seeds(seeds), nothing_allowed:
            rows = texts_of(call, prompts, batched=made.batched, form=form, horizon=scenario.horizon, eos=scenario.eos)
            return tuple(tokens_of(row)[: scenario.horizon] for row in rows)

    return Served(texts)
