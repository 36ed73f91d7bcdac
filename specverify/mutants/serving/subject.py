"""The engine as a subject: every run enumerated and looked into, its law compared with that of plain decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

from specverify.intercept.boundary import NearEnd
from specverify.mutants.serving.decode import observed, outcome, plainly_observed
from specverify.mutants.serving.model import table_sides
from specverify.mutants.serving.parts import EngineParts
from specverify.mutants.serving.plain import plain_law
from specverify.mutants.serving.setup import Setup
from specverify.mutants.serving.variant import decoder_variant
from specverify.reference import Claim, Draws, Pmf, Site, Tokens
from specverify.subjects.subject import EngineProgram, Subject, Watched

LOSSLESS = frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED})


def serving_subject(parts: EngineParts, setup: Setup, name: str) -> Subject:
    """Return the engine made of ``parts`` in a situation, as one program; it claims to be lossless.

    It can be looked into if the situation has one request on one rank, fed its prompt once and at once, and ends with
    tokens.
    """
    alone = len(setup.bodies) == setup.ranks == 1 and not setup.chunk and not setup.preempted
    alone = alone and setup.outcome == "tokens"
    program = EngineProgram(
        name=setup.name,
        open=partial(_opened, parts, setup),
        law=partial(promised, setup),
        watch=partial(_watched, parts, setup) if alone else None,
    )
    return Subject(
        name=name,
        summary="a serving engine of exact parts",
        claims=LOSSLESS | ({Claim.OPTIMAL_COUPLING} if alone else frozenset()),
        programs=(program,),
    )


def drafting_subject(
    parts: EngineParts, name: str, drafting: str = "argmax", *, warm: bool = False, penalised: bool = False
) -> Subject:
    """Return the engine made of ``parts`` as a decoder of one text, so that its acceptance can be judged.

    What it should draft is computed from clean tokens. ``warm``: an earlier text, the same but for its end, is in the
    slot. ``penalised``: target and draft are under a repetition penalty.
    """
    return Subject(
        name=name,
        summary="a serving engine of exact parts, one request",
        claims=LOSSLESS | {Claim.OPTIMAL_COUPLING},
        variants=(decoder_variant(parts, drafting, warm=warm, penalised=penalised),),
    )


def promised(setup: Setup) -> Mapping[Tokens, Any]:
    """Return the law of what comes out when nothing is drafted."""
    return plain_law(setup, table_sides(setup.shape, setup.vocabulary, setup.seed))


@contextmanager
def _opened(
    parts: EngineParts, setup: Setup, forced_uniform: float | NearEnd | None = None
) -> Iterator[Callable[[Draws], Any]]:
    models = table_sides(setup.shape, setup.vocabulary, setup.seed)

    def program(draws: Draws) -> Any:
        answered = draws if forced_uniform is None else _Forced(draws, float(forced_uniform))
        return outcome(parts, setup, models, answered)

    yield program


@contextmanager
def _watched(parts: EngineParts, setup: Setup) -> Iterator[Watched]:
    models = table_sides(setup.shape, setup.vocabulary, setup.seed)
    yield Watched(
        run=lambda draws: observed(parts, setup, models, draws),
        plain=lambda draws: plainly_observed(setup, models, draws),
        prompt=setup.bodies[0]["prompt"],
    )


class _Forced:
    """Coins of acceptance fall as with a uniform of exactly 0, or of the largest float below 1."""

    def __init__(self, inner: Draws, uniform: float) -> None:
        self._inner, self._uniform = inner, uniform

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[0] != "accept":
            return self._inner.categorical(pmf, site)
        heads = Fraction(pmf[0])
        return 0 if (heads > 0 if self._uniform < 0.5 else heads == 1) else 1
