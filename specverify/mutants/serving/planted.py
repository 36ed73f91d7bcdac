"""Planting: the engine with one part replaced, in one situation, and the same situation without as the control."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from specverify.mutants.mutant import Mutant
from specverify.mutants.serving.asked import text_asked
from specverify.mutants.serving.parts import CORRECT
from specverify.mutants.serving.situations import SITUATIONS
from specverify.mutants.serving.subject import drafting_subject, serving_subject
from specverify.subjects.subject import Subject


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
    """Return the mutant of an engine in a situation of ``situations.SITUATIONS``, with ``parts`` replaced."""
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
    """Return the mutant of an engine whose output stays right: the acceptance alone gives it away."""
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
