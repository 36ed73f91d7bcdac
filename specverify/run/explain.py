"""Explain a word: a glossary entry, a check, a class of planted bugs, a planted bug, an algorithm, or an engine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.resources import files

from specverify.base.arguments import nearest
from specverify.checks import CHECKS, FILES, Check
from specverify.checks.cache_checks import checks_of_cache
from specverify.checks.drafter_checks import checks_of_drafter
from specverify.engines import engine_subjects, tables
from specverify.mutants import CATEGORIES, mutants
from specverify.reference import ALGORITHMS
from specverify.report.systems import claim, evidence
from specverify.subjects.cache import CacheUnderTest


@lru_cache(maxsize=1)
def glossary() -> Mapping[str, str]:
    """Return word -> meaning for all entries of the glossary."""
    return tomllib.loads(files("specverify.run").joinpath("glossary.toml").read_text("utf-8"))


def explained(word: str) -> str:
    """Return every meaning of a word as text.

    Raises ``ValueError`` with one sentence if the word has no meaning here.
    """
    plain = word.strip().lower()
    senses = [
        text
        for sense in (_word, _check, _class, _algorithm, _mutant, _engine)
        if (text := sense(re.sub(r"[- ]", "_", plain) if sense is _check else plain))
    ]
    if not senses:
        known = [*glossary(), *(check.name for check in CHECKS), *(row.name for row in ALGORITHMS)]
        hint = nearest(plain, known) or nearest(plain, [mutant.name for mutant in mutants()])
        raise ValueError(f"there is nothing to say of {word!r}{hint or ' (see: specverify list, specverify explain)'}")
    return "\n\n".join(senses)


def _word(word: str) -> str:
    text = glossary().get(word) or glossary().get(word.removesuffix("s"))
    return f"{word}: {text}" if text else ""


def _check(name: str) -> str:
    for check, file in zip(CHECKS, FILES, strict=True):
        if check.name == name:
            told = import_module(f"specverify.checks.{file}").__doc__ or ""
            killed = sum(mutant.killed_by == name for mutant in mutants())
            about = f"claim {check.claim.value}" if check.claim else "owed by every subject"
            head = f"{name}: a check ({check.evidence.value}; {about}; kills {killed} planted bugs by name)"
            return f"{head}\n\n{told.strip()}"
    others = {check.name: f"{name}: a check of {what}: {check.summary}" for what, check in _of_others()}
    return others.get(name, "")


def _of_others() -> Iterator[tuple[str, Check]]:
    """Yield each check of drafters and of caches, as pairs (kind of subject, check)."""
    cache = CacheUnderTest(list, list.append, list.append, list, fork=list)
    yield from (("drafters", check) for check in checks_of_drafter(lambda tokens: tokens))
    yield from (("caches", check) for check in checks_of_cache(cache))


def _class(letter: str) -> str:
    result = next((key for key in CATEGORIES if key.lower() == letter), None)
    if result is None:
        return ""
    planted = [f"  mutant:{mutant.name}  {mutant.summary}" for mutant in mutants() if mutant.category == result]
    return "\n".join([f"class {result} of planted bugs: {CATEGORIES[result]}", *planted])


def _algorithm(name: str) -> str:
    row = next((row for row in ALGORITHMS if row.name == name.removeprefix("reference:")), None)
    if row is None:
        return ""
    lines = [
        f"reference:{row.name}: {row.summary}",
        f"claims: {claim(row)}; shown: {evidence(row)}; paper: {row.paper}",
    ]
    if row.systems:
        lines.append(f"systems: {', '.join(row.systems)}")
    lines += [f"it is {item.to} where {item.when}" for item in row.reductions]
    return "\n".join(lines)


def _mutant(name: str) -> str:
    result = next((mutant for mutant in mutants() if mutant.name == name.removeprefix("mutant:")), None)
    if result is None:
        return ""
    return (
        f"mutant:{result.name}: a planted bug of class {result.category} ({CATEGORIES[result.category]})\n"
        f"{result.summary}; killed by {result.killed_by}; {result.citation}"
    )


def _engine(name: str) -> str:
    summary = {**engine_subjects(), **tables()}.get(name)
    return f"{name}: {summary}" if summary else ""
