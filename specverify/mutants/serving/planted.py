"""Make subjects for checks of the serving engine: of the correct one, and of one with a planted bug in one function.

A test vector can be decoded by the engine too: ``text_asked`` returns that decode as a program of draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

from specverify.intercept.distributions import NearEnd
from specverify.mutants.mutant import Mutant
from specverify.mutants.serving.decode import observed, outcome, plain_law, plainly_observed
from specverify.mutants.serving.model import models_of, table_sides
from specverify.mutants.serving.parts import CORRECT, EngineParts
from specverify.mutants.serving.request import Grammar, Parameters
from specverify.mutants.serving.situations import LETTERS, SITUATIONS, Setup
from specverify.mutants.serving.variant import decoder_variant
from specverify.reference import Claim, Draws, LanguageModel, Pmf, Site, Tokens
from specverify.subjects.subject import EngineProgram, Subject, Watched

# The engine asked for the text of a test vector: its first request is the vector's, the situation stays its own


def text_asked(
    parts: EngineParts, setup: Setup, target: LanguageModel, draft: LanguageModel, inputs: Mapping[str, Any]
) -> Callable[[Draws], Tokens] | None:
    """Return the engine of ``parts`` as a program that decodes the text of a test vector; None if it cannot.

    A test vector has models, ``target`` and ``draft``, and ``inputs``: prompt, horizon and so on. It takes the place of
    the first request of ``setup``. The engine cannot decode it in three cases:

    * ``setup`` has several ranks.
    * The vocabulary of the vector has more than 5 tokens.
    * ``setup`` has further requests or a map of draft ids, and another vocabulary than the vector.
    """
    size = inputs["vocabulary"]
    tied = len(setup.bodies) > 1 or setup.draft_ids
    if size > len(LETTERS) or (tied and size != setup.vocabulary) or setup.ranks > 1:
        return None
    first = {
        "prompt": tuple(inputs["prompt"]),
        "max_new": inputs["horizon"],
        "eos": tuple(inputs["eos"]),
        "stop_strings": tuple(_letters(end) for end in inputs.get("stop", ())),
        **_prescribed(inputs.get("parameters", {})),
    }
    asked = setup._replace(bodies=(first, *setup.bodies[1:]), vocabulary=size, outcome="tokens", reports=False)
    models = models_of(target, draft)

    def program(draws: Draws) -> Tokens:
        ends = outcome(parts, asked, models, draws)
        text: Tokens = ends if len(setup.bodies) == 1 else ends[0]
        return text

    return program


def _prescribed(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sampling parameters and the grammar of a request body.

    ``given`` are the ``parameters`` of a test vector.
    """
    temperature = Fraction(given.get("temperature", 1))
    parameters = Parameters(
        temperature=int(1 / temperature) if temperature else 0,
        repetition=Fraction(given.get("presence", 1)),
        frequency=Fraction(given.get("frequency", 1)),
        bias=tuple((int(token), Fraction(factor)) for token, factor in given.get("bias", {}).items()),
        top_k=given.get("top_k", 0),
        top_p=Fraction(given.get("top_p", 1)),
        min_p=Fraction(given.get("min_p", 0)),
        bad_words=tuple(map(tuple, given.get("bad_words", ()))),
        allowed=tuple(given.get("allowed", ())),
        min_new=given.get("min_new", 0),
    )
    edges = tuple((state, token, after) for state, token, after in given.get("grammar", ()))
    return {"parameters": parameters} | ({"grammar": Grammar(edges, given.get("trigger"))} if edges else {})


def _letters(tokens: list[int]) -> str:
    return b"".join(LETTERS[token] for token in tokens if token < len(LETTERS)).decode()


# The engine as a subject: every run enumerated and looked into, its law compared with that of plain decoding

LOSSLESS = frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED})


def serving_subject(parts: EngineParts, setup: Setup, name: str) -> Subject:
    """Return the subject that runs the engine made of ``parts`` with the data in ``setup``; it claims to be lossless.

    It also claims optimal coupling if its passes can be observed: for one request on one rank, whose prompt is fed in
    one piece, without preemption, and whose outcome is tokens.
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
        situations=(program,),
    )


def drafting_subject(
    parts: EngineParts, name: str, drafting: str = "argmax", *, warm: bool = False, penalised: bool = False
) -> Subject:
    """Return the engine made of ``parts`` as a decoder of one text, whose acceptance rate can be checked.

    ``drafting`` is the drafter, as in ``Setup.drafting``. ``warm``: the caches hold an earlier text that differs only
    in its end. ``penalised``: target and draft have a repetition penalty.
    """
    return Subject(
        name=name,
        summary="a serving engine of exact parts, one request",
        claims=LOSSLESS | {Claim.OPTIMAL_COUPLING},
        situations=(decoder_variant(parts, drafting, warm=warm, penalised=penalised),),
    )


def promised(setup: Setup) -> Mapping[Tokens, Any]:
    """Return the law of the output without drafts in the situation ``setup``: result -> probability."""
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
    """Draws in which all acceptance tests use one extreme random number; ``inner`` makes all other draws.

    If the parameter ``uniform`` is below 1/2, the number is 0: every draft with a positive acceptance probability is
    accepted. Otherwise it is the largest float below 1: only drafts with acceptance probability 1 are accepted.
    """

    def __init__(self, inner: Draws, uniform: float) -> None:
        self._inner, self._uniform = inner, uniform

    def categorical(self, pmf: Pmf, site: Site) -> int:
        if site[0] != "accept":
            return self._inner.categorical(pmf, site)
        heads = Fraction(pmf[0])
        return 0 if (heads > 0 if self._uniform < 0.5 else heads == 1) else 1


# Planting: the engine with one part replaced, in one situation, and the same situation without as the control


def in_situation(
    situation: str,
    name: str,
    summary: str,
    *,
    category: str,
    citation: str,
    killed_by: str = "law_is_target",
    **parts: Callable[..., Any],
) -> Mutant:
    """Return the mutant of the serving engine in which the functions ``parts`` replace those of the same names.

    ``situation`` is the name of the ``Setup`` (requests, models, batch, ...) in which it is examined. The other
    parameters are fields of ``Mutant``, such as ``killed_by``, the check that must detect the bug.
    """
    setup = SITUATIONS[situation]
    return _mutant(
        name,
        summary,
        category,
        citation,
        killed_by,
        partial(serving_subject, CORRECT._replace(**parts), setup),
        partial(serving_subject, CORRECT, setup),
        f"correct serving engine, {situation}",
    )._replace(texts=(partial(text_asked, CORRECT._replace(**parts), setup), partial(text_asked, CORRECT, setup)))


def engine_part(part: str, situation: str, name: str, summary: str, **how: Any) -> Callable[[Any], Mutant]:
    """Return a decorator that makes a ``Mutant``: the serving engine with ``part`` replaced by the decorated function.

    ``situation`` is the name of the ``Setup`` (requests, models, batch, ...) in which it is examined. ``summary``
    describes the bug. ``how`` has further arguments of ``in_situation``, such as ``citation``.
    """
    return lambda function: in_situation(situation, name, summary, **{part: function}, **how)


def drafting_part(part: str, name: str, summary: str, **how: Any) -> Callable[[Any], Mutant]:
    """Return a decorator that makes a ``Mutant``: the serving engine with ``part`` replaced by the decorated function.

    The output of the engine has the right law, but drafts are accepted too rarely. ``how`` has further arguments of
    ``in_drafting``, such as ``citation``.
    """
    return lambda function: in_drafting(name, summary, **{part: function}, **how)


def in_drafting(
    name: str,
    summary: str,
    *,
    citation: str,
    category: str = "Q",
    drafting: str = "argmax",
    warm: bool = False,
    penalised: bool = False,
    **parts: Callable[..., Any],
) -> Mutant:
    """Return a mutant of the serving engine whose output has the right law, but whose drafts are accepted too rarely.

    The functions ``parts`` replace those of the same names. ``drafting`` is the drafter: "argmax", "sampled" or
    "lookup". ``warm``: the caches hold an earlier text. ``penalised``: both models have a repetition penalty. The
    others are fields of ``Mutant``.
    """
    return _mutant(
        name,
        summary,
        category,
        citation,
        "acceptance_is_optimal",
        lambda called: drafting_subject(CORRECT._replace(**parts), called, drafting, warm=warm, penalised=penalised),
        lambda called: drafting_subject(CORRECT, called, drafting, warm=warm, penalised=penalised),
        f"correct serving engine, drafting by {drafting}",
    )


def _mutant(
    name: str,
    summary: str,
    category: str,
    citation: str,
    killed_by: str,
    wrong: Callable[[str], Subject],
    right: Callable[[str], Subject],
    control: str,
) -> Mutant:
    return Mutant(
        name,
        summary,
        category,
        citation,
        killed_by,
        open=lambda: wrong(f"mutant:{name}"),
        control=lambda: right(control),
    )
