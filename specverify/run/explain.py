"""Explain a word: of the glossary, a check, a refusal, a class of bugs, a planted bug, an algorithm, an engine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.resources import files

from specverify.base.arguments import nearest
from specverify.checks import CHECKS, FILES
from specverify.checks.cache_checks import checks_of_cache
from specverify.checks.drafter_checks import checks_of_drafter
from specverify.engines import engine_subjects, tables
from specverify.intercept.refusals import REASONS
from specverify.mutants import CATEGORIES, mutants
from specverify.promises.pairs import OF_PROMISE
from specverify.reference import ALGORITHMS
from specverify.report.systems import claim, evidence
from specverify.subjects.cache import CacheUnderTest

OF_KERNELS: Mapping[str, str] = {
    "answers_are_rounds": "every answer is the accepted drafts, one more token, and padding",
    "calls_repeat": "a second call with the same arguments returns the same answer, in a new array",
    "support_at_rounded_rows": "no forbidden token is emitted if p and q differ by rounding, or their sums round",
    "samples_fit_law_of_many_tokens": "samples fit the law in larger vocabularies, at a coarser total variation",
    "coins_and_last_draw_are_independent": "the last token of a row does not depend on the coins of its drafts",
    "positions_are_independent": "the coin of a draft does not depend on the coins before it",
}
"""Check of kernels alone -> what holds if it is not refuted."""
OF_BLACK_BOXES: Mapping[str, str] = {
    "samples_are_supported": "no sampled sequence has probability 0 under the expected law",
    "samples_fit_reference": "the samples fit those of a reference, such as the same engine without speculation",
    "calls_are_independent": "calls with different seeds do not depend on each other",
    "acceptance_fits_law": "the numbers of accepted drafts fit their law",
}
"""Check of black boxes alone -> what holds if it is not refuted."""
OF_PROMISES: Mapping[str, str] = {
    **{promise.check: promise.summary for promise in OF_PROMISE.values()},
    "values_match": "log-probabilities, top-k lists, text and finish reason are those of the returned tokens",
    "statistics_match": "reported drafts, acceptance, rates and usage are those of the run",
    "drafts_follow_the_text": "every draft is the draft model's choice after the text as it is",
    "constraint_is_kept": "no token is emitted that the declared constraint forbids",
    "ranks_agree": "all ranks emit the same tokens, also at near ties",
    "ranks_agree_by_gloo": "the same as ranks_agree, under torch.distributed with gloo",
}
"""Check of a promise of an engine -> what holds if it is not refuted."""


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
        for sense in (_word, _check, _refusal, _class, _algorithm, _mutant, _engine)
        if (text := sense(re.sub(r"[- ]", "_", plain) if sense is _check else plain))
    ]
    if not senses:
        known = [*glossary(), *_names_of_checks(), *REASONS, *(row.name for row in ALGORITHMS)]
        hint = nearest(plain, known) or nearest(plain, [mutant.name for mutant in mutants()])
        raise ValueError(f"there is nothing to say of {word!r}{hint or ' (see: specverify list, specverify explain)'}")
    return "\n\n".join(senses)


def _names_of_checks() -> Iterator[str]:
    yield from (check.name for check in CHECKS)
    yield from (name for _, name, _ in _of_others())


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
    others = {other: f"{name}: a check of {what}: {summary}" for what, other, summary in _of_others()}
    return others.get(name, "")


def _of_others() -> Iterator[tuple[str, str, str]]:
    """Yield each check of other subjects than decoders, as triples (kind of subject, name, summary)."""
    cache = CacheUnderTest(list, list.append, list.append, list, fork=list)
    yield from (("drafters", check.name, check.summary) for check in checks_of_drafter(lambda tokens: tokens))
    yield from (("caches", check.name, check.summary) for check in checks_of_cache(cache))
    yield from (("kernels", name, summary) for name, summary in OF_KERNELS.items())
    yield from (("black boxes", name, summary) for name, summary in OF_BLACK_BOXES.items())
    yield from (("promises of engines", name, summary) for name, summary in OF_PROMISES.items())


def _refusal(code: str) -> str:
    reason = REASONS.get(code)
    return f"{code}: why a program is refused: {reason.meaning}\nWay out: {reason.way_out}." if reason else ""


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
