"""Coupled runs of every corpus of the project: how many there were, and every pair that differs.

    python -m tools.surveys.coupled_runs FILE GROUP ... [--every N] [--from K] [--cpu SECONDS]

adds a line of JSON a subject to FILE: status, coupled runs, fed runs, ties, and the statement if nothing was decided.
A second run with the same FILE continues where the first one
ended; ``--cpu N`` ends a run after about N seconds. ``tools.pages.coupled_runs_page`` reads the lines.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from specverify.base.verdict import Status, Verdict
from specverify.checks import check_named
from specverify.checks.forgetting import forget_laws
from specverify.run.catalogue import expanded, find_subject
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.verifier import verifier_subject

CHECK, SHARES, SECONDS = "program_is_its_draws", 6, 900.0
FIGURES = ("coupled_runs", "fed_runs", "coupled_ties")


class Surveyed(NamedTuple):
    """What coupled runs found on one subject."""

    subject: str
    status: str
    statement: str
    figures: Mapping[str, int]


def _survey_result(name: str, verdicts: Iterable[Verdict]) -> Surveyed:
    verdict = next(iter(verdicts))
    decided = verdict.status in {Status.HOLDS, Status.NOT_APPLICABLE}
    figures = {key: int(verdict.figures[key]) for key in FIGURES if key in verdict.figures}
    return Surveyed(name, verdict.status.value, "" if decided else verdict.statement, figures)


def _of_subject(name: str, subject: Callable[[], Any]) -> Surveyed:
    return _survey_result(name, verify_subject(subject(), Checklist((check_named(CHECK),), seconds=SECONDS)))


def _of_plan(name: str, plan: Callable[[], Any]) -> Surveyed:
    return _survey_result(name, plan().examine((CHECK,), SECONDS, {}))


def idioms() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield idioms of torch, NumPy and ``random``, each with its wrong twin."""
    from test_support.idioms.tables import IDIOMS

    for place, idiom in enumerate(IDIOMS):
        for which in ("right", "wrong"):
            yield _idiom(f"{idiom.table}/{idiom.name}/{which}", getattr(idiom, which), idiom.gamma, place % SHARES)


def jax_idioms() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield idioms of JAX, each with its wrong twin."""
    from specverify.subjects.fresh_generators import with_generator
    from test_support.jax import coins, tokens, verifiers
    from test_support.jax.idiom import Idiom

    found = [each for table in (coins, tokens, verifiers) for each in vars(table).values() if isinstance(each, Idiom)]
    for place, idiom in enumerate(found):
        for which in ("right", "wrong"):
            verify = with_generator(getattr(idiom, which))
            yield _idiom(f"{idiom.part}/{idiom.name}/{which}", verify, idiom.gamma, place % SHARES)


def _idiom(name: str, verify: Any, gamma: int, place: int) -> tuple[str, Callable[[], Surveyed]]:
    def subject() -> Any:
        made = verifier_subject(verify, name, (gamma,))
        return made._replace(scenarios=made.scenarios[place::SHARES])

    return name, partial(_of_subject, name, subject)


def sources() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield an engine for each source of randomness, once with a right coin and once with a wrong one."""
    from specverify.testing import check_engine
    from test_support.soundness.sources_of_randomness import HIDDEN, SOURCES
    from tools.pages.sources_page import RIGHT, WRONG

    for name, make in {**SOURCES, **HIDDEN}.items():
        for which, chance in (("right", RIGHT), ("wrong", WRONG)):

            def plan(make: Any = make, chance: float = chance) -> Any:
                coin, plain = make(chance), make(RIGHT)
                return check_engine.plan(lambda: [int(coin())], lambda: [int(plain())])

            yield f"{name}/{which}", partial(_of_plan, f"{name}/{which}", plan)


def mutants() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield planted bugs in verifiers, trees, batches and engines, each with the subject without the bug."""
    from specverify.mutants import mutants as planted
    from specverify.mutants import suspects

    for mutant in planted():
        yield mutant.name, partial(_of_subject, mutant.name, mutant.open)
        yield f"{mutant.name}/right", partial(_of_subject, f"{mutant.name}/right", mutant.control)
    for control in suspects():
        yield f"control {control.name}", partial(_of_subject, f"control {control.name}", control.open)


def huggingface() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield every mode of speculation of transformers."""
    for name in expanded("hf:all"):
        yield name, partial(_of_subject, name, partial(find_subject, name))


def released() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield functions and loops that authors of papers released; SHIPPED_SOURCES names the folder of their sources."""
    from test_support.shipped.papers import PAPERS
    from test_support.shipped.released import subject_of

    for paper in PAPERS:
        name = f"{paper.paper}: {paper.what}"
        yield name, partial(_of_subject, name, partial(subject_of, paper))


def shipped() -> Iterator[tuple[str, Callable[[], Surveyed]]]:
    """Yield verifiers in the form in which their projects ship them."""
    from engine_tests.shipped.test_shipped import SHIPPED
    from specverify.testing import check_engine, check_verifier

    for each in SHIPPED:

        def plan(each: Any = each) -> Any:
            if each.engine:
                return check_engine.plan(each.make(), **each.options)
            return check_verifier.plan(each.make(), **each.options)

        yield each.what, partial(_of_plan, each.what, plan)


GROUPS: Mapping[str, Callable[[], Iterator[tuple[str, Callable[[], Surveyed]]]]] = {
    each.__name__: each for each in (idioms, jax_idioms, sources, mutants, huggingface, released, shipped)
}


def read(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the lines of a file by (group, subject)."""
    lines = map(json.loads, file.read_text("utf-8").splitlines()) if file.exists() else ()
    return {(line["group"], line["subject"]): line for line in lines}


def survey(file: Path, groups: Iterable[str], every: int, first: int, cpu: float) -> None:
    """Examine the subjects that ``file`` does not contain yet; append a line of JSON for each.

    Of each group, every ``every``-th subject is examined, beginning with number ``first``, until ``cpu`` seconds of CPU
    are used.
    """
    done = read(file)
    for group in groups:
        for name, examine in islice(GROUPS[group](), first, None, every):
            if (group, name) in done:
                continue
            if time.process_time() > cpu:
                return
            begin = time.process_time()
            try:
                result = examine()
            except (Exception, pytest.skip.Exception) as error:  # noqa: BLE001 - a source or package that is not here
                result = Surveyed(name, "error", f"{type(error).__name__}: {error}", {})
            forget_laws()
            line = {"group": group, **result._asdict(), "cpu_seconds": round(time.process_time() - begin, 2)}
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(line) + "\n")
            print(group, name, result.status, dict(result.figures), result.statement[:300], flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("groups", nargs="+", choices=GROUPS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--cpu", type=float, default=math.inf)
    given = parser.parse_args()
    survey(given.file, given.groups, given.every, given.first, given.cpu)
