"""Writes ``docs/planted-promises.md``, and the tables of ``docs/promises.md`` between their marks.

Run ``python -m tools.pages.promises_page docs/planted-promises.md``. Every planted bug is examined by the check of the
promise that it breaks, and the engine without a fault by all of them: about three minutes of a processor.
"""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from specverify.mutants.promising import SEEDS, STATISTICS, VALUES, in_turn, returning, seeded_engine, text_of
from specverify.mutants.ranks import RANKS, ranked
from specverify.promises.pairs import OF_PROMISE
from specverify.testing import check_engine

ROOT = Path(__file__).parents[2]
PROMISES = ROOT / "docs" / "promises.md"
TESTS = ROOT / "property_tests"
WRONG: Mapping[str, str] = tomllib.loads((Path(__file__).parent / "planted_promises.toml").read_text("utf-8"))
"""Name of a planted bug -> what is wrong with its engine."""
KINDS: Mapping[str, Any] = {
    "logprobs": "raw",
    "processed_logprobs": "plain",
    "top_logprobs": "processed",
    "cumulative_logprob": "processed",
    "scores": "processed",
    "prompt_logprobs": "raw",
    "text": text_of,
    "chunks": text_of,
    "snapshots": text_of,
    "finish_reason": None,
}
"""Value -> what is promised of it."""
NUMBERS = (
    "accepted",
    "drafted",
    "rejected",
    "rounds",
    "acceptance_rate",
    "accepted_per_position",
    "acceptance_histogram",
    "usage",
    "tokens_per_round",
)
FIRST_WORDS = 110
HEAD = """# Planted bugs of promises

An engine promises more than the law of its tokens: right log-probabilities and statistics, and the same text for the
same seed. This page shows that the checks of these [promises](promises.md) detect bugs. Each line of the table is an
engine with one planted bug (`specverify/mutants/promising.py`, `ranks.py`). Its tokens have the right law, but it
breaks one promise. The check of this promise examines the engine: {refuted} of {total} are refuted. For each kind of
promise the same checks examine one engine without a fault: {held}. Bugs of
one kind are planted in the same engine, so there are fewer such pairs than bugs. The columns:

* *bug*: the name of the bug. *What is wrong*: what the engine does.
* *promise*: the promise that is broken: the name of a value in the argument
  `returns=` of `check_engine`, or a word in its argument `promises=`.
* *recorded in*: the report of the bug in a public project; *plausible* if there is none.
* *check*: the check that examines the engine; *verdict*: its verdict; *what it reports*: how its message begins.

In the column *what is wrong*, a *row* is the target's pmf at one position. Bugs that change the law are in the
[kill matrix](kill-matrix.md).

| bug | what is wrong | promise | recorded in | check | verdict | what it reports |
|---|---|---|---|---|---|---|
"""


class Planted(NamedTuple):
    """One planted bug, or the engine without one."""

    fault: str
    promise: str
    record: str
    check: str
    make: Callable[..., Any]
    options: Mapping[str, Any]


def _of_value(fault: str, name: str, record: str) -> Planted:
    quick = name != "finish_reason"  # ends are met in the full plan alone
    options = {"returns": {name: KINDS[name]}, "quick": quick}
    return Planted(fault, name, record, "values_match", partial(returning, fault), options)


def _of_number(fault: str, name: str, record: str) -> Planted:
    make = in_turn if fault == "usage of all requests" else returning
    options = {"returns": NUMBERS, "quick": True}
    return Planted(fault, name, record, "statistics_match", partial(make, fault), options)


def _of_seed(fault: str, promise: str, record: str) -> Planted:
    options = {"promises": {promise}, "quick": True}
    return Planted(fault, promise, record, OF_PROMISE[promise].check, partial(seeded_engine, fault), options)


def _of_ranks(fault: str, promise: str, record: str) -> Planted:
    return Planted(fault, promise, record, "ranks_agree", partial(ranked, fault), {"promises": {promise}})


def planted() -> list[Planted]:
    """Return every planted bug of a promise."""
    return [
        *(_of_value(fault, *told) for fault, told in VALUES.items()),
        *(_of_number(fault, *told) for fault, told in STATISTICS.items()),
        *(_of_seed(fault, *told) for fault, told in SEEDS.items()),
        *(_of_ranks(fault, *told) for fault, told in RANKS.items()),
    ]


def controls() -> list[Planted]:
    """Return the engines without a fault, for each promise."""
    return [
        *(_of_value("", name, "") for name in KINDS),
        _of_number("", "statistics", ""),
        *(_of_seed("", promise, "") for promise in ("seed", "seed-as-plain", "batch", "resume")),
        _of_ranks("", "ranks", ""),
    ]


def examined(bug: Planted) -> tuple[str, str]:
    """Examine one planted bug by its check; return the verdict and the first words of the counterexample."""
    verdicts = check_engine(bug.make, checks=[bug.check], on_fail=None, **bug.options)
    verdict = next(verdict for verdict in verdicts if verdict.check == bug.check)
    fault = verdict.counterexample.fault if verdict.counterexample else verdict.statement
    words = " ".join(fault.replace("|", "/").split())
    return verdict.status.value, words if len(words) <= FIRST_WORDS else f"{words[:FIRST_WORDS]}..."


def page() -> str:
    """Return the text of ``docs/planted-promises.md``."""
    lines, statuses = [], []
    for bug in planted():
        status, fault = examined(bug)
        statuses.append(status)
        cells = (bug.fault, WRONG[bug.fault], f"`{bug.promise}`", bug.record, f"`{bug.check}`", status, fault)
        lines.append(f"| {' | '.join(cells)} |\n")
    held = Counter(examined(control)[0] for control in controls())
    told = ", ".join(
        f"{number} of {held.total()} checks are {status}" for status, number in held.items() if status != "holds"
    )
    told = told or f"all {held.total()} pairs of an engine and a check hold"
    return HEAD.format(refuted=statuses.count("refuted"), total=len(statuses), held=told) + "".join(lines)


def planted_table() -> str:
    """Return the table of how many bugs are planted for each kind of promise."""
    kinds = {"values": VALUES, "statistics": STATISTICS, "seeds, batches, cuts": SEEDS, "ranks": RANKS}
    rows = [
        f"| {kind} | {len(bugs)} | {sum(record != 'plausible' for _, record in bugs.values())} |\n"
        for kind, bugs in kinds.items()
    ]
    return "| promise | planted bugs | of them recorded |\n|---|---:|---:|\n" + "".join(rows)


NOT_APPLICABLE = {
    ("parameters", "http"): "one request has one set of parameters",
    ("caches", "sampler"): "a black box shows no cache",
    ("caches", "http"): "a black box shows no cache",
    ("ranks", "sampler"): "an answer is that of one rank",
    ("ranks", "http"): "an answer is that of one rank",
}
"""(promise, where) -> why the promise cannot be examined there."""


class Engines(NamedTuple):
    """How many different wrong engines, and how many right ones, the tests of a promise examine."""

    wrong: int
    right: int


@cache
def _test(name: str, folder: str = "promises") -> dict[str, Any]:
    return runpy.run_path(str(TESTS / folder / f"test_{name}.py"))


def engines_of_promises() -> dict[str, dict[str, Engines]]:
    """Return, for each promise, the engines of its tests by the place where it is examined."""
    services, inside, pairs = _test("services"), _test("services_in_process"), _test("pairs")
    faults = Counter(name for name, _ in VALUES.values())
    result: dict[str, dict[str, Engines]] = {}
    for name, wrong in services["FAULTS"].items():
        outside = Engines(len(wrong), len(services["RIGHT"]))
        within = Engines(len(wrong) + faults[name], len(inside["RIGHT"]))
        result[name] = {"in process": within, "sampler": outside, "http": outside}
    broken = Counter(promise for promise, _ in SEEDS.values())
    of_seeds = {"seed": ("BROKEN_SEEDS", "RIGHT"), "seed-as-plain": ("OTHER_TEXTS", "SAME_TEXTS")}
    for promise, (wrong, right) in of_seeds.items():
        outside = Engines(len(services[wrong]), len(services[right]))
        more = len(pairs["WRONG_SEEDS"]) if promise == "seed" else 0
        within = Engines(broken[promise] + more, len(pairs["RIGHT_SEEDS"]) + 1)
        result[promise] = {"in process": within, "sampler": outside, "http": outside}
    result["batch"] = {"in process": Engines(broken["batch"], len(pairs["RIGHT_BATCHES"]) + 1)}
    result["resume"] = {"in process": Engines(broken["resume"], len(pairs["RIGHT_CUTS"]) + 1)}
    result["statistics"] = {"in process": Engines(len(STATISTICS), 5)}
    for promise, test in (("drafts", "drafts"), ("parameters", "requests_that_differ")):
        result[promise] = {"in process": Engines(len(_test(test)["WRONG"]), len(_test(test)["RIGHT"]))}
    keys = len(_test("drafts")["KEYS"])  # one of them is right
    result["drafts"] = {
        "in process": Engines(len(_test("drafts")["WRONG"]) + keys - 1, len(_test("drafts")["RIGHT"]) + 1)
    }
    constraints = _test("constraint")
    result["allowed"] = {"in process": Engines(len(constraints["WRONG"]), 2 * len(constraints["CONSTRAINTS"]))}
    result["ranks"] = {"in process": Engines(len(RANKS), len(_test("ranks")["RIGHT"]))}
    sizes, caches = _test("size_scenarios", "laws"), _test("cache_kinds")
    result["sizes"] = {"in process": Engines(len(sizes["WRONG"]), len(sizes["RIGHT"]))}
    result["caches"] = {"in process": Engines(len(caches["WRONG"]), len(caches["RIGHT"]))}
    outside = _test("promises_of_services")
    for promise, name in OUTSIDE.items():
        engines = Engines(len(outside[f"WRONG_{name}"]), len(outside[f"RIGHT_{name}"]))
        result[promise] |= {way: engines for way in ("sampler", "http") if (promise, way) not in NOT_APPLICABLE}
    return result


OUTSIDE = {
    "batch": "BATCHES",
    "resume": "CUTS",
    "statistics": "REPORTS",
    "drafts": "DRAFTS",
    "allowed": "CONSTRAINTS",
    "sizes": "SIZES",
    "parameters": "PARAMETERS",
}
"""Promise -> the name of its engines in the tests of black boxes."""


def engines_table() -> str:
    """Return the table of wrong engines that are refuted, and of right engines that hold."""
    ways = ("in process", "sampler", "http")
    head = f"| promise | {' | '.join(ways)} |\n|---|{'---|' * len(ways)}\n"
    rows = []
    for promise, where in engines_of_promises().items():
        cells = [
            f"{where[way].wrong} / {where[way].right}" if way in where else NOT_APPLICABLE.get((promise, way), "")
            for way in ways
        ]
        rows.append(f"| `{promise}` | {' | '.join(cells)} |\n")
    every = [engines for where in engines_of_promises().values() for engines in where.values()]
    wrong, right = (sum(column) for column in zip(*every, strict=True))
    return head + "".join(rows) + f"\nIn total {wrong} wrong engines are refuted, and none of {right} right ones is.\n"


def with_tables(text: str) -> str:
    """Return ``docs/promises.md`` with new tables between their marks."""
    for mark, table in (("planted", planted_table()), ("engines", engines_table())):
        pattern = rf"(<!-- computed: {mark} -->\n).*?(<!-- end -->)"
        text = re.sub(pattern, lambda found, table=table: found[1] + table + found[2], text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
    PROMISES.write_text(with_tables(PROMISES.read_text("utf-8")), "utf-8")
