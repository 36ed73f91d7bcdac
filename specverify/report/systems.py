"""The registry as a page: each algorithm's rule, its law and acceptance on one pair of pmfs, reductions, paper.

The only handwritten text on the page is that of the registry. The pair is p = (.2, .3, .5), q = (.6, .3, .1) in every
context, after the prompt (2, 2, 2), so that drafters that search the text find a match. Every law is enumerated in
rationals.

In all functions of this module the parameter ``row`` is the entry of an algorithm in the registry.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from specverify.laws.enumeration import decoder_law
from specverify.laws.law import Law, is_rational, target_law, total_variation
from specverify.laws.paths import paths
from specverify.reference import ALGORITHMS, Algorithm, Claim, LanguageModel, Task, Tokens, as_pmf
from specverify.reference.limits import greedy_target
from specverify.report.formal_proofs import coverage_cell, covered_rows
from specverify.subjects.algorithm import SAMPLED_SIZE

P = as_pmf([Fraction(1, 5), Fraction(3, 10), Fraction(1, 2)])
Q = as_pmf([Fraction(3, 5), Fraction(3, 10), Fraction(1, 10)])
PROMPT: Tokens = (2, 2, 2)
HORIZON = 3
"""Number of new tokens of one decode: two drafts and the token after them."""


COLUMNS = (
    "row",
    "systems",
    "rule",
    "law",
    "at temperature 0",
    "first draft accepted",
    "accepted drafts",
    "is another row",
    "proved for all V and gamma",
    "paper",
)


class Examined(NamedTuple):
    """Exact results of an algorithm on the task ``pair_task()``, with the options of the algorithm's first example."""

    first_token: Fraction
    """Total variation between the law of the first new token and p."""
    text: Fraction
    """Total variation between the law of all new tokens and the target's law."""
    at_temperature_0: Fraction
    """Total variation between the law of all new tokens and the target's law if p is one-hot on its argmax."""
    drafts: Fraction
    """P(the first round drafts anything)."""
    first_accepted: Fraction
    """P(the first round accepts at least one draft)."""
    accepted: Fraction
    """The expected number of accepted drafts in the first round."""


def pair_task() -> Task:
    """Return the task with which the page compares the algorithms: the same pmfs p and q after every text."""
    return Task(_always(P), _always(Q), horizon=HORIZON)


def examined(row: Algorithm) -> Examined:
    """Return exact results of the algorithm ``row`` on the task ``pair_task()``, by enumerating its draws.

    Raises ``ValueError`` if a law is not complete or not rational.
    """
    options, task = row.examples[0], pair_task()
    greedy = greedy_target(task)
    decoder = row.build(task, **options)
    law, wanted = _complete(decoder_law(decoder, PROMPT), row), target_law(task, PROMPT)
    at_0 = _complete(decoder_law(row.build(greedy, **options), PROMPT), row)
    drafts = first = accepted = Fraction(0)
    for path in paths(lambda draws: decoder.step(draws, decoder.init(PROMPT))[1]):
        drafts += path.weight * bool(path.outcome.draft)
        first += path.weight * (path.outcome.accepted > 0)
        accepted += path.weight * path.outcome.accepted
    return Examined(
        total_variation(Law(_first(law.probabilities)), _first(wanted)).low,
        total_variation(law, wanted).low,
        total_variation(at_0, target_law(greedy, PROMPT)).low,
        drafts,
        first,
        accepted,
    )


def evidence(row: Algorithm) -> str:
    """Return in words how the law of an algorithm is checked: in rationals at small sizes, by samples beyond them."""
    law = "declared bias" if row.declared_law else "law of p"
    return f"exact rationals: {law}; statistical: V = {SAMPLED_SIZE[0]}"


def claim(row: Algorithm) -> str:
    """Return the claims of an algorithm in words, without those that LOSSLESS implies; "none" if it has none."""
    weaker = {Claim.GREEDY, Claim.SUPPORTED} if Claim.LOSSLESS in row.claims else set()
    result = [claim.value for claim in Claim if claim in row.claims - weaker]
    return ", ".join(reversed(result)) or "none"


def systems_markdown() -> str:
    """Return the Markdown page that compares algorithms, and lists properties that need a trained network."""
    lines = [
        "# Systems",
        "",
        "Written by `specverify list --markdown docs/systems.md`; a test compares it with what would be written now.",
        "",
        *_preface(),
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---" * len(COLUMNS) + "|",
        *(_line(row, examined(row)) for row in ALGORITHMS),
        "",
        "## What only a trained network can show",
        "",
        "The value of these algorithms depends on properties that the small tables of this project cannot show. Each",
        "line names algorithms, and the property or the trained part that is not examined here. *Lost exactness* means",
        "that the law of the output is not p. *Alpha* is the probability that a draft is accepted.",
        "",
        *(f"* {rows}: {text}" for text, rows in _by_missing_property().items()),
    ]
    return "\n".join(lines) + "\n"


def shown_exactly(value: Fraction) -> str:
    """Return the probability ``value`` as a fraction and a decimal; only as a decimal if the fraction is long."""
    value = Fraction(value)
    decimal = f"{float(value):.6f}".rstrip("0").rstrip(".")
    if value.denominator == 1:
        return str(value)
    return f"{value} = {decimal}" if value.denominator < 10**5 else decimal


def _by_missing_property() -> dict[str, str]:
    """Return property -> names of the algorithms that need it, for each property that needs a trained network."""
    rows: dict[str, list[str]] = {}
    for row in ALGORITHMS:
        if row.needs_training:
            rows.setdefault(row.needs_training, []).append(f"`{row.name}`")
    return {text: ", ".join(names) for text, names in rows.items()}


def _preface() -> list[str]:
    p, q = (", ".join(map(str, row)) for row in (P, Q))
    return [
        "This page compares all algorithms of the registry (the list of algorithms in `reference/`): their rule,",
        "whether they are lossless, and how often drafts are accepted.",
        f"Each decodes {HORIZON} tokens after the prompt {PROMPT}, with the options of its first example.",
        f"The target is p = ({p}) and the drafter q = ({q}), whatever the context.",
        "All random outcomes are enumerated and weighted with rational numbers: nothing is sampled or rounded.",
        "The columns:",
        "",
        "* **row**: the algorithm, and its options. **systems**: its names in papers and engines.",
        "* **rule**: d is a draft, z a draw from p, (x)+ is max(x, 0), norm(f) is f over its sum, H is the entropy.",
        f"* **law**: the joint law of the {HORIZON} new tokens, compared with that of sampling them from p. *exact*:",
        "  the two laws are equal as rationals. Otherwise the column has their total variation (TV), first for the",
        "  first new token, then for all.",
        "* **at temperature 0**: the same for all new tokens, if p is one-hot on its argmax.",
        "* **first draft accepted**: the probability that the first round accepts at least one draft.",
        "* **accepted drafts**: the mean number of accepted drafts in the first round, which drafts as many as options",
        "  and horizon allow. In edge-cloud rows a draft that the edge device commits unverified counts too.",
        "* **is another row**: special cases in which two algorithms are equal. For example, `autoregressive`: gamma",
        "  = 0 means that with gamma = 0 this row behaves as `autoregressive`. In each round the tokens and the number",
        "  of accepted drafts have the same joint law. *The text alone*: only the law of the whole text is equal.",
        "  *Always*: for all values of the options that both rows share. The test",
        "  `test_systems.py::test_a_row_is_another_one_in_its_limit` covers every case in rationals. Some cases have",
        "  a further test, named in parentheses.",
        "* **proved for all V and gamma** (V is the vocabulary size): the theorem of `proofs/` that the row is an",
        f"  instance of, or why there is none. {len(covered_rows())} of {len(ALGORITHMS)} rows are covered;",
        "  [proofs](proofs.md) explains the theorems. A theorem whose name ends in `_law` gives the law of a biased",
        "  row. The others state losslessness for the target that the row declares.",
        "",
        "One pair proves nothing about others. `specverify verify` examines whether an algorithm keeps its claims.",
    ]


def _line(row: Algorithm, found: Examined) -> str:
    cells = (
        f"`{row.name}` {_options(row)}",
        ", ".join(row.systems),
        row.summary,
        _law(row, found),
        "exact" if found.at_temperature_0 == 0 else f"TV {shown_exactly(found.at_temperature_0)}",
        *_acceptance(found),
        "; ".join(
            f"`{item.to}`: {item.when}{'' if item.rounds else ', the text alone'}"
            + (f" (`{item.shown_by}`)" if item.shown_by else "")
            for item in row.reductions
        ),
        coverage_cell(row.name),
        row.paper,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _law(row: Algorithm, found: Examined) -> str:
    if found.text == 0:
        return "exact, the declared bias has no effect for this pair" if row.declared_law else "exact"
    return f"TV {shown_exactly(found.first_token)} of the first token, {shown_exactly(found.text)} of all"


def _acceptance(found: Examined) -> tuple[str, str]:
    if found.drafts == 0:
        return "nothing is drafted in the first round", "0"
    sometimes = "" if found.drafts == 1 else f" (drafts with probability {shown_exactly(found.drafts)})"
    return shown_exactly(found.first_accepted) + sometimes, shown_exactly(found.accepted)


def _options(row: Algorithm) -> str:
    return " ".join(f"{name}={value}" for name, value in row.examples[0].items())


def _complete(law: Law, row: Algorithm) -> Law:
    if law.missing or not is_rational(law):
        raise ValueError(f"the law of {row.name} on the pair is not complete in rationals: {law.missing} is missing")
    return law


def _first(law: Any) -> dict[Tokens, Any]:
    first: dict[Tokens, Any] = {}
    for text, mass in law.items():
        first[text[:1]] = first.get(text[:1], 0) + mass
    return first


def _always(row: Any) -> LanguageModel:
    return lambda tokens: row
