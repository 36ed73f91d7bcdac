"""The subject of a proof: a registry algorithm or a planted bug, for a gamma and optionally with any length rule.

An open question is one of yes or no whose answer the proof leaves free (``symbolic_tables``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from specverify.base.arguments import nearest
from specverify.mutants import mutants
from specverify.proof.symbolic_tables import World
from specverify.reference import (
    ALGORITHMS,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LengthRule,
    Parts,
    Plan,
    Pmf,
    Task,
    Tokens,
    assembled,
    chain,
)
from specverify.subjects.subject import Subject, Variant

OWN, ANY_LENGTH, DROPPING = "", "any length rule instead of the default one", "any rule that takes back its last token"
COUPLING = "coupling"
"""Name of the subject ``reference.coupling``, a function of pmfs and not a decoder."""


class ProofSubject(NamedTuple):
    """The decoder of a proof, as a function of the world (the models), and the law that a biased decoder declares.

    ``name`` and ``options`` describe it in sentences. ``build(world, task)`` makes the decoder, and
    ``declared_law(task, prompt)`` returns the declared law; None for a decoder without a bias.
    """

    name: str
    options: str
    build: Callable[[World, Task], Decoder]
    declared_law: Callable[..., Mapping[Tokens, Any]] | None
    chosen: Mapping[str, Any] = {}
    """Option name -> value."""
    length: str = OWN
    """Name of the length rule that is used; the default is the subject's own rule."""


def find_rule(name: str, gamma: int, options: Mapping[str, Any] | None = None, length: str = OWN) -> ProofSubject:
    """Return the subject of a proof called ``name``.

    * ``name``: A registry algorithm, with or without the prefix ``reference:``; ``mutant:NAME`` for a planted bug; or
      ``coupling`` for statements that concern no decoder.
    * ``gamma``: The number of drafts; ignored if the algorithm has no such option, or if it is in ``options``.
    * ``options``: Replace those of the algorithm's first example.
    * ``length``: Name of the length rule that replaces the algorithm's own.

    Raises ``ValueError`` for an unknown name, and for a ``length`` if the algorithm has no length rule to replace.
    """
    if name == COUPLING:
        return ProofSubject(name, "", _no_decoder, None)
    shown, builder, parts, declared, defaults = _found(name)
    if options:
        defaults = {**defaults, **options}
    if "gamma" in inspect.signature(builder).parameters and "gamma" not in (options or {}):
        defaults = {**defaults, "gamma": gamma}
    if length != OWN and parts is None:
        raise ValueError(_no_rule(shown))

    def build(world: World, task: Task) -> Decoder:
        if length == OWN or parts is None:
            return builder(task, **defaults)
        made = parts(task, **defaults)
        if isinstance(made, Decoder):
            raise ValueError(_no_rule(shown))  # noqa: TRY004 - the options are what is wrong
        drafter = _dropping(made.drafter, world) if length == DROPPING else made.drafter
        return assembled(task, made._replace(drafter=drafter, length=any_length(world, gamma)))

    law = None if declared is None else lambda task, prompt: declared(task, prompt, **defaults)
    said = [f"{option}={value}" for option, value in defaults.items()]
    return ProofSubject(shown, ", ".join([*said, length] if length else said), build, law, defaults, length)


def _no_decoder(_: World, __: Task) -> Decoder:
    raise ValueError("the coupling is no decoder, expected the name of an algorithm")


def _no_rule(shown: str) -> str:
    return f"{shown} has no length rule to replace, expected an algorithm that is made of parts"


class _NamedSubject(NamedTuple):
    """The subject that a name stands for, before options are applied.

    ``shown`` is its name in sentences, ``build`` makes the decoder, ``parts`` makes its parts (None: it is not made of
    parts), ``declared_law`` returns the law that a biased decoder declares (None: no bias), and ``defaults`` are its
    default options.
    """

    shown: str
    build: Callable[..., Decoder]
    parts: Callable[..., Parts | Decoder] | None
    declared_law: Callable[..., Mapping[Tokens, Any]] | None
    defaults: dict[str, Any]


def _found(name: str) -> _NamedSubject:
    plain = name.removeprefix("reference:")
    for row in ALGORITHMS:
        if row.name == plain:
            return _NamedSubject(row.name, row.build, row.parts, row.declared_law, dict(row.examples[0]))
    for mutant in mutants():
        if f"mutant:{mutant.name}" == name:
            variant = _first_variant(mutant.open(), name)
            return _NamedSubject(name, variant.build, mutant.parts, variant.declared_law, {})
    known = [row.name for row in ALGORITHMS] + [f"mutant:{mutant.name}" for mutant in mutants()]
    expected = "expected a name of 'specverify list' or mutant:NAME"
    raise ValueError(f"there is no algorithm {name!r}, {expected}{nearest(plain.lower(), known)}")


def _first_variant(subject: Subject, name: str) -> Variant:
    if not subject.variants:
        raise ValueError(f"{name} is no decoder made of draws, expected one that can be enumerated")
    return subject.variants[0]


def any_length(world: World, most: int) -> LengthRule:
    """Return a length rule that represents all rules: before each token an open question decides whether to draft it.

    An open question is one of yes or no whose answer the proof leaves free. The answer may be any function of the text
    so far and of all pmfs. A proof therefore holds for every rule that decides before a token is drawn, and for random
    mixtures of such rules. ``most`` is the largest number of drafts.
    """
    text: list[Tokens] = [()]

    def plan(state: None, prefix: Tokens) -> Plan:
        text[0] = prefix
        return Plan(most if world.chosen("draft", *prefix) else 0, state)

    def stop_after(q: Pmf, token: int) -> bool:
        text[0] = (*text[0], token)
        return not world.chosen("draft", *text[0])

    return LengthRule(None, plan, stop_after, lambda state, drafted, accepted: state)


def _dropping(drafter: Drafter, world: World) -> Drafter:
    """Return a drafter that may remove its last drafted token: an open question of ``world`` decides whether it does.

    An open question is one of yes or no whose answer a proof leaves free.
    """

    def propose(draws: Draws, state: Any, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        draft = drafter.propose(draws, state, prefix, gamma, stop_after)
        taken_back = bool(draft.tokens) and world.chosen("drop", *prefix, *draft.tokens)
        return chain(draft.tokens[:-1], draft.pmfs[:-1]) if taken_back else draft

    return drafter._replace(propose=propose)
