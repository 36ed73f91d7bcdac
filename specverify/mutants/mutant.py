"""The type of a planted bug: a subject with one fault, the record of the fault, and the check that must detect it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, NamedTuple

from specverify.reference import (
    ALGORITHMS,
    Algorithm,
    Decoder,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Tokens,
    Verifier,
    accept_probability,
    chain,
    from_parts,
)
from specverify.reference.verifiers.accept_or_replace import accept_or_replace
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.array_kinds import BareVerifier
from specverify.subjects.subject import Subject

CATEGORIES: dict[str, str] = {
    "A": "acceptance rule",
    "B": "proposal law: the declared q is not the law of the draft",
    "C": "residual, recovery and bonus",
    "D": "randomness: reuse, correlation, seeds",
    "E": "numerics and degenerate inputs",
    "F": "sampling parameters and logits processors",
    "G": "grammar",
    "H": "attention cache: rollback and positions",
    "I": "recurrent and sliding-window state",
    "J": "draft trees",
    "K": "stopping",
    "L": "batching",
    "M": "scheduling, preemption and placeholders",
    "N": "vocabulary maps",
    "O": "reported values",
    "P": "agreement across ranks",
    "Q": "draft side only: output exact, acceptance collapses",
}
"""Letter for ``specverify mutants --class`` -> class of defects."""


TextAsked = Callable[[LanguageModel, LanguageModel, Mapping[str, Any]], Callable[[Draws], Tokens] | None]
"""``asked(target, draft, inputs)`` returns the program whose outcome is the text of a test vector; None if the vector
does not apply."""


class Mutant(NamedTuple):
    """One planted bug. Its subject has the claims of the correct one, such as lossless; the suite must refute it."""

    name: str
    summary: str
    """The defect in a few words."""
    category: str
    """A key of ``CATEGORIES``."""
    citation: str
    """Project and issue, pull request or commit of the recorded defect; "plausible" if there is no record."""
    killed_by: str
    """Name of the check that must refute the bug."""
    open: Callable[[], Subject]
    """Constructor of the subject with the bug."""
    control: Callable[[], Subject]
    """Constructor of the same subject without the bug, on which the check must hold."""
    parts: Callable[..., Parts | Decoder] | None = None
    """``parts(task, **options)`` returns the parts of the decoder, if the bug distorts a chain of the registry; else
    None."""
    verifiers: tuple[BareVerifier, BareVerifier] | None = None
    """Pair (bug, control) of bare verifiers, if the subject is a verifier ``verify(p, q, draft_tokens)`` or an engine
    that uses one; else None."""
    texts: tuple[TextAsked, TextAsked] | None = None
    """Pair (bug, control) of functions that return the program for the text of a test vector, if the subject is an
    engine or a verifier of logits; else None."""


class Control(NamedTuple):
    """A correct subject that looks wrong, and was reported as a bug somewhere: no check may refute it."""

    name: str
    summary: str
    citation: str
    open: Callable[[], Subject]


def of_algorithm(row: Algorithm, original: str, category: str, citation: str, killed_by: str) -> Mutant:
    """Return the mutant that decodes by ``row``, a changed copy of the registry algorithm ``original``.

    The control of the mutant, its correct counterpart, is the original with the options in the ``examples`` of ``row``.
    The other parameters are fields of ``Mutant``, such as ``killed_by``, the check that must detect the bug.
    """
    return Mutant(
        row.name,
        row.summary,
        category,
        citation,
        killed_by,
        open=partial(algorithm_subject, row, "mutant"),
        control=lambda: algorithm_subject(correct(original)._replace(examples=row.examples)),
        parts=None if row.parts is None else partial(row.parts, **row.examples[0]),
    )


SHORT: tuple[Mapping[str, Any], ...] = ({"gamma": 2},)
"""Options that suffice for most bugs of a chain: with gamma = 2 either draft can be rejected, and a text has several
rounds."""


def correct(name: str) -> Algorithm:
    """Return the correct registry algorithm of this name, from which a mutant is made."""
    return next(row for row in ALGORITHMS if row.name == name)


def planted(
    original: str,
    name: str,
    summary: str,
    *,
    category: str,
    citation: str,
    killed_by: str,
    **changes: Any,
) -> Callable[[Callable[..., Decoder]], Mutant]:
    """Return a decorator that makes a mutant of the registry algorithm ``original``.

    The decorated function builds the decoder. ``changes`` has changed fields of the original, such as ``examples``. The
    other parameters are fields of ``Mutant``, such as ``killed_by``, the check that must detect the bug.
    """

    def plant(build: Callable[..., Decoder]) -> Mutant:
        row = correct(original)._replace(name=name, summary=summary, build=build, **changes)
        return of_algorithm(row, original, category, citation, killed_by)

    return plant


def with_parts(original: str, **replaced: Any) -> Callable[..., Decoder]:
    """Return the function that builds the decoder ``original`` of the registry with some of its ``Parts`` replaced.

    ``replaced`` has the new parts by name, such as ``verifier``.
    """
    parts = correct(original).parts
    assert parts is not None, f"{original} is no chain"

    @wraps(parts, assigned=("__doc__",))
    def distorted(*args: Any, **options: Any) -> Parts | Decoder:
        return parts(*args, **options)._replace(**replaced)

    return from_parts(distorted)


def as_part(original: str, part: str) -> Callable[[Any], Callable[..., Decoder]]:
    """Return a decorator that replaces one part of the registry algorithm ``original``.

    ``part`` is a field of ``Parts``, such as ``verifier``. The decorator takes the new part, and returns the function
    that builds the changed decoder.
    """
    return lambda value: with_parts(original, **{part: value})


def dropping_last(drafter: Drafter, drops: Callable[[Any, int], bool]) -> Drafter:
    """Return ``drafter`` changed to drop the last drafted token if ``drops(q, token)`` is true; q is its draft pmf."""

    def propose(*args: Any) -> Draft:
        draft = drafter.propose(*args)
        if draft.tokens and drops(draft.pmfs[-1], draft.tokens[-1]):
            return chain(draft.tokens[:-1], draft.pmfs[:-1])
        return draft

    return drafter._replace(propose=propose)


def with_verifier(verify: Verifier) -> Callable[..., Decoder]:
    """Return the build function of speculative sampling that verifies its drafts by ``verify``."""
    return with_parts("speculative-sampling", verifier=verify)


def replacing_from(replacement: Callable[[Pmf, Pmf], Pmf]) -> Callable[..., Decoder]:
    """Return the build function of speculative sampling with a wrong residual.

    A rejected draft is replaced by a draw from ``replacement(p, q)``.
    """

    def accept(_: Tokens, p: Pmf, q: Pmf, token: int) -> Any:
        return accept_probability(p, q, token)

    return with_verifier(accept_or_replace(accept, lambda p, q, token: replacement(p, q)))
