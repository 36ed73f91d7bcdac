"""Papers whose code was released: what is examined, and the rows of ``reference/`` with which it is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from reference import Claim
from specverify.base.verdict import Status, Verdict
from specverify.checks import CHECKS, Conditions
from specverify.laws.scenarios import Scenario
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.subject import Subject
from test_support.shipped.beside import LOOPS, ROWS, SMALL, Beside, compared, declaring, loop_subject, verifier_of
from test_support.shipped.sources import SOURCES

LAW, ARGMAX, BOUNDARY = "law_is_target", "greedy_is_argmax", "support_at_boundary_draws"
ACCEPTANCE, SUPPORT = "acceptance_is_optimal", "tokens_are_supported"
EXAMINED = tuple(check for check in CHECKS if check.name in {LAW, ARGMAX, BOUNDARY, ACCEPTANCE, SUPPORT})
SECONDS = 900
"""Seconds of the clock, for machines with other work; none of what is shown depends on them."""
LOSSLESS = frozenset({Claim.LOSSLESS})


class Released(NamedTuple):
    """A function or loop that a paper released."""

    paper: str
    row: str
    """The row of ``reference/`` that states the paper's rule."""
    source: str
    what: str
    """What of the source, and how it is asked."""
    make: Callable[[], Any]
    adapter: Callable[..., Any]
    """The lines that call it."""
    shapes: tuple[Any, ...] = LOOPS
    """Gammas or trees of a verifier, scenarios of a loop."""
    drafts: str | None = None
    """How the trees of a verifier of trees are drawn."""
    scenarios: tuple[Scenario, ...] = SMALL
    """What a verifier is examined in."""
    loop: bool = False
    claims: frozenset[Claim] = LOSSLESS
    """What it is held to by the checks."""
    expected: Mapping[str, Status] = {}
    """Verdicts of the checks that do not hold."""
    beside: tuple[Beside, ...] = ()
    """The rows that are not lossless: of those that are, ``law_is_target`` speaks."""
    control: bool = False
    """Whether it is there to show that the lines around it are not what is wrong."""
    note: str = ""


class Found(NamedTuple):
    """The results for it."""

    verdicts: tuple[Verdict, ...]
    besides: tuple[Verdict, ...]


def subject_of(released: Released) -> Subject:
    """Return the released code as a subject, without a declared law."""
    made = released.make()
    if released.loop:
        return loop_subject(made, released.row, released.shapes)
    return verifier_of(made, released.row, released.shapes, released.drafts, released.scenarios)


def examine(released: Released) -> Found:
    """Run the checks, and compare the law with those of the rows."""
    subject = subject_of(released)
    checks = Checklist(EXAMINED, Conditions(edge=0.0), SECONDS)
    verdicts = verify_subject(subject._replace(claims=released.claims), checks) if released.claims else ()
    told = tuple(verdict for verdict in verdicts if verdict.status is not Status.NOT_APPLICABLE)
    compare = partial(compared, seconds=SECONDS)
    return Found(told, tuple(compare(declaring(subject, beside, released.shapes)) for beside in released.beside))


def claimed(row: str) -> str:
    """Return the summary of a row, and whether its law is that of p or a declared one."""
    algorithm = ROWS[row]
    law = "law of p" if Claim.LOSSLESS in algorithm.claims else "declared law"
    return (
        f"`{row}`: {algorithm.summary} ({law})"
        if "declared" not in algorithm.summary
        else f"`{row}`: {algorithm.summary}"
    )


def where(source: str) -> str:
    """Return the repository and the commit, shortened."""
    found = SOURCES[source]
    return f"{found.repository} {found.commit[:7]}"
