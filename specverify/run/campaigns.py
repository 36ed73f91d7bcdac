"""Black boxes sampled for hours, block by block: what is done stays done, whatever ends the run.

A block is a fixed number of samples with seeds of its own. What it said, counts and evidence, is stored in an SQLite
file under the subject, everything that was asked of it, and the number of the block. A run does those that are missing.
Blocks are judged in their order, so the verdict depends on what they say alone, not on when the run was ended, how
often, or how many processes did them. The evidence on couples of a block is an e-value of its own, and those multiply.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from specverify.base.parallel import as_finished
from specverify.base.verdict import Status, Verdict
from specverify.checks.samplers.independence import IndependenceFound
from specverify.checks.samplers.law import LawFound, law_begun, law_seen, law_status, law_verdicts
from specverify.foreign.lines import Limits
from specverify.laws.known_law import known_law
from specverify.run.black_boxes import Wanted, Words, opened
from specverify.run.samplers import (
    Judge,
    SamplingPlan,
    is_decided,
    joint_verdicts,
    planned_law,
    seeds_of,
    watched_couples,
)
from specverify.statistics.unknown_laws import evidence
from specverify.subjects.sampler import drawn
from specverify.subjects.subject import UnusableSubject


class CampaignSubject(NamedTuple):
    """One black box, and the law it is judged by."""

    name: str
    wanted: Wanted
    law: Any
    limits: Limits = Limits()


class Campaign(NamedTuple):
    """What is to be done."""

    subjects: tuple[CampaignSubject, ...]
    results: Path
    block: int = 10_000
    """Samples of a block."""
    blocks: int = 10
    """Blocks of each subject, at most."""
    plan: SamplingPlan = SamplingPlan(largest_call=128)

    def plan_of_each(self) -> SamplingPlan:
        """Return the plan of one subject: the alarm is shared by all."""
        return self.plan._replace(
            alarm=self.plan.alarm / len(self.subjects), most_samples=2 * (self.block // 2) * self.blocks
        )


Stored = Mapping[str, Any]
"""What a block said: ``counts`` by number of outcome, what was ``impossible``, ``rows`` and ``calls``."""


def run_campaign(
    campaign: Campaign, jobs: int, progress: Callable[[str, int], None] = lambda name, done: None
) -> Iterator[tuple[str, Sequence[Verdict]]]:
    """Yield each subject's name with its verdicts. Blocks that are stored are not sampled again.

    ``progress(name, blocks judged)`` is told of every block. Raises ``ValueError`` for a law or plan that cannot be.
    """
    with stored_in(campaign.results) as file:
        for subject in campaign.subjects:
            try:
                yield subject.name, _judged(campaign, subject, file, jobs, progress)
            except UnusableSubject as error:
                yield subject.name, [Verdict(subject.name, "samples_fit_law", Status.UNUSABLE, str(error))]


@contextmanager
def stored_in(results: Path) -> Iterator[sqlite3.Connection]:
    """Open the file of results; raises ``ValueError`` in one sentence if it is none."""
    try:
        file = sqlite3.connect(results, isolation_level=None)
    except sqlite3.Error as error:
        raise ValueError(f"the results {str(results)!r} cannot be opened: {error}") from None
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute(
            "CREATE TABLE IF NOT EXISTS blocks "
            "(subject TEXT, setting TEXT, block INTEGER, found TEXT, PRIMARY KEY (subject, setting, block))"
        )
        yield file
    except sqlite3.DatabaseError as error:
        raise ValueError(f"the results {str(results)!r} cannot be used: {error}") from None
    finally:
        file.close()


def setting_of(campaign: Campaign, subject: CampaignSubject) -> str:
    """Return everything that decides about the outcome of a block, as the text it is stored under."""
    law, plan = known_law(subject.law), campaign.plan
    outcomes = [law.outcome(index) for index in range(len(law.masses))]
    of_law = sha256(repr((outcomes, law.masses.tolist())).encode()).hexdigest()
    asked = {"block": campaign.block, "largest_call": plan.largest_call, "law": of_law, "seed": plan.seed}
    return json.dumps(subject.wanted._asdict() | asked, sort_keys=True)


def sample_block(campaign: Campaign, subject: CampaignSubject, index: int) -> Stored:
    """Sample one block, two calls at a time, and return what it said."""
    plan, words = campaign.plan_of_each(), Words({}, set())
    chosen, cell = planned_law(plan, subject.law)
    watched, law = watched_couples(subject.name, plan, cell, campaign.block), law_begun(chosen)
    seeds = seeds_of([plan.seed, index + 1])
    with opened(subject.name, subject.wanted, subject.limits, words) as box:
        left = campaign.block // 2
        while left:
            size = min(plan.largest_call, left)
            batch = drawn(box.sampler, next(seeds), size), drawn(box.sampler, next(seeds), size)
            if words.numbers:
                raise UnusableSubject(f"{subject.name} tells words, expected token ids: blocks number words anew")
            watched.seen(batch)
            for tokens in batch:
                law = law_seen(chosen, law, tokens)
            left -= size
    rows, calls = map(_plain, watched.found())
    counts = {int(place): int(law.counts[place]) for place in np.flatnonzero(law.counts)}
    return {"counts": counts, "impossible": list(law.impossible.items()), "rows": rows, "calls": calls}


def _plain(found: IndependenceFound) -> Mapping[str, Any]:
    tables = {name: getattr(found, name).tolist() for name in ("joint", "straight", "crossed")}
    return {"evidence": float(evidence(found.evidence)), **tables}


def _judged(
    campaign: Campaign,
    subject: CampaignSubject,
    file: sqlite3.Connection,
    jobs: int,
    progress: Callable[[str, int], None],
) -> Sequence[Verdict]:
    plan = campaign.plan_of_each()
    chosen, cell = planned_law(plan, subject.law)
    law, begun = law_begun(chosen), (IndependenceFound(), IndependenceFound())
    key = subject.name, setting_of(campaign, subject)
    verdicts: Sequence[Verdict] = []
    for index in range(campaign.blocks):
        if _stored(file, key, index) is None:
            _sample_missing(campaign, subject, file, key, range(index, min(index + 2 * jobs, campaign.blocks)), jobs)
        found = _stored(file, key, index)
        assert found is not None
        law, begun = _with_counts(law, found), (_joined(begun[0], found["rows"]), _joined(begun[1], found["calls"]))
        watched = watched_couples(subject.name, plan, cell, chosen.most_samples, begun)
        judge = Judge(
            seen=lambda batch: None,
            status=partial(law_status, chosen, law),
            verdicts=partial(law_verdicts, subject.name, chosen, law),
            most_samples=chosen.most_samples,
            cell=cell,
            impossible=partial(bool, law.impossible),
        )
        verdicts = joint_verdicts(judge, watched, [f"{index + 1} of {campaign.blocks} blocks"])
        progress(subject.name, index + 1)
        if is_decided(judge, watched):
            break
    return verdicts


def _sample_missing(
    campaign: Campaign,
    subject: CampaignSubject,
    file: sqlite3.Connection,
    key: tuple[str, str],
    wanted: Sequence[int],
    jobs: int,
) -> None:
    """Sample what is missing of the wanted blocks, and store each as soon as it is there."""
    missing = [index for index in wanted if _stored(file, key, index) is None]
    works = [partial(sample_block, campaign, subject, index) for index in missing]
    for place, found in as_finished(works, jobs):
        file.execute(
            "INSERT OR IGNORE INTO blocks VALUES (?, ?, ?, ?)",
            (*key, missing[place], json.dumps(found, sort_keys=True)),
        )


def _stored(file: sqlite3.Connection, key: tuple[str, str], index: int) -> Any:
    row = file.execute(
        "SELECT found FROM blocks WHERE subject = ? AND setting = ? AND block = ?", (*key, index)
    ).fetchone()
    return None if row is None else json.loads(row[0])


def _with_counts(law: LawFound, found: Stored) -> LawFound:
    counts, impossible = law.counts.copy(), Counter(law.impossible)
    for place, count in found["counts"].items():
        counts[int(place)] += count
    for tokens, count in found["impossible"]:
        impossible[tuple(tokens)] += count
    samples = law.samples + sum(found["counts"].values()) + sum(count for _, count in found["impossible"])
    return LawFound(counts, samples, dict(impossible))


def _joined(total: IndependenceFound, found: Mapping[str, Any]) -> IndependenceFound:
    """Return what couples said with those of one more block, whose e-value multiplies that of the others."""
    tables = (getattr(total, name) + np.array(found[name]) for name in ("joint", "straight", "crossed"))
    return IndependenceFound(total.evidence + found["evidence"], *tables)
