"""Campaigns: black boxes sampled for hours, block by block.

An interrupted run keeps its finished blocks and can resume.

A block is a fixed number of samples with seeds of its own. Its counts and evidence are stored in an SQLite file under
the subject, the whole plan of the subject, and the number of the block. A run samples the missing blocks. Blocks are
evaluated in order, so the verdict depends on their results alone, not on interruptions or the number of processes.
Whether samples are independent is tested by pairs of rows. Each block has its own e-value of this test, and the
e-values of blocks multiply.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from specverify.base.parallel import WorkerDied, as_finished
from specverify.base.verdict import Evidence, Status, Verdict
from specverify.checks.samplers.independent_rows import IndependenceFound
from specverify.checks.samplers.sampler_law import LawFound, law_begun, law_seen, law_status, law_verdicts, log_evidence
from specverify.foreign.lines import Limits
from specverify.laws.known_law import known_law
from specverify.run.black_boxes import SampleRequest, Words, opened
from specverify.run.campaign_results import (
    Key,
    NotStored,
    block_of,
    blocks_stored,
    keep_asked,
    keep_block,
    stored_in,
)
from specverify.run.course import Course, going_on, with_course
from specverify.run.sequential_samples import (
    Judge,
    SamplingPlan,
    SamplingStage,
    joint_verdicts,
    planned_law,
    seeds_of,
    stage_of,
    watched_couples,
)
from specverify.statistics.unknown_laws import evidence
from specverify.subjects.sampler import drawn
from specverify.subjects.subject import UnusableSubject

OF_CALLS = ("batches", "difference", "expected")
"""Fields of the evidence of independence that compare the shares of two calls."""
GRACE = 60.0
"""Seconds, beyond the time limit of its answers, after which a process that samples a block counts as hanging."""


class CampaignSubject(NamedTuple):
    """One black box of a campaign.

    ``name`` opens it (see ``black_boxes``), ``wanted`` describes the samples to request, ``law`` is their expected law,
    and ``limits`` bounds time and memory of its process.
    """

    name: str
    wanted: SampleRequest
    law: Any
    limits: Limits = Limits()


class Campaign(NamedTuple):
    """The subjects of a campaign, and the settings they share.

    ``results`` is the file in which finished blocks are stored. ``plan`` has the total variation to detect, the alarm
    and the sizes of calls.
    """

    subjects: tuple[CampaignSubject, ...]
    results: Path
    block: int = 10_000
    """Number of samples in a block."""
    blocks: int = 10
    """Largest number of blocks of each subject."""
    plan: SamplingPlan = SamplingPlan(largest_call=128)
    block_seconds: float | None = None
    """Time limit of one block in seconds; None: as long as its answers may take."""

    def plan_of_each(self) -> SamplingPlan:
        """Return the sampling plan of one subject, with an equal share of the campaign's false-alarm probability."""
        return self.plan._replace(
            alarm=self.plan.alarm / len(self.subjects), most_samples=2 * (self.block // 2) * self.blocks
        )

    def patience(self, subject: CampaignSubject) -> float:
        """Return the seconds after which a process that samples a block of ``subject`` counts as hanging."""
        calls = self.block / self.plan.largest_call + 2
        return self.block_seconds or calls * subject.limits.seconds + GRACE


Stored = Mapping[str, Any]
"""The stored result of a block: ``counts`` of outcomes, ``impossible`` outcomes, evidence on ``rows`` and ``calls``."""
Told = Callable[[str, int], None]


def run_campaign(
    campaign: Campaign, jobs: int, progress: Told = lambda name, done: None, made: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Sequence[Verdict]]]:
    """Sample the missing blocks of a campaign in ``jobs`` processes; yield the name and the verdicts of each subject.

    ``progress(name, blocks)`` is called after every evaluated block, with the number of evaluated blocks of this
    subject. ``made`` (the command and the versions of packages) is stored with the plan. A subject is UNUSABLE if its
    sampling fails, and UNKNOWN if its process dies or a block cannot be stored; its stored blocks remain. Raises
    ``ValueError`` for an invalid law or plan.
    """
    with stored_in(campaign.results) as file:
        keep_asked(file, {key_of(campaign, item): _asked(campaign, item, made or {}) for item in campaign.subjects})
        for subject in campaign.subjects:
            key = key_of(campaign, subject)
            try:
                blocks = _blocks(campaign, subject, file, jobs)
                yield subject.name, judged(campaign, subject, blocks, progress)
            except UnusableSubject as error:
                yield subject.name, [Verdict(subject.name, "samples_fit_law", Status.UNUSABLE, str(error))]
            except (WorkerDied, NotStored) as error:
                said = f"{error}; {blocks_stored(file, key)} blocks are stored: run it again to go on"
                unknown = Verdict(subject.name, "samples_fit_law", Status.UNKNOWN, said, evidence=Evidence.STATISTICAL)
                yield subject.name, [unknown]


def key_of(campaign: Campaign, subject: CampaignSubject) -> Key:
    """Return the database key of a subject's blocks.

    The key contains every setting of the campaign that determines the result of a block.
    """
    law, plan = known_law(subject.law), campaign.plan
    outcomes = [law.outcome(index) for index in range(len(law.masses))]
    of_law = sha256(repr((outcomes, law.masses.tolist())).encode()).hexdigest()
    asked = {"block": campaign.block, "largest_call": plan.largest_call, "law": of_law, "seed": plan.seed}
    return Key(subject.name, json.dumps(subject.wanted._asdict() | asked, sort_keys=True))


def _asked(campaign: Campaign, subject: CampaignSubject, made: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the data that is needed to evaluate the stored blocks of ``subject`` without the plan file.

    ``made`` holds the command and the versions of packages, which are stored too.
    """
    law = known_law(subject.law)
    return {
        "law": [[law.outcome(index), mass] for index, mass in enumerate(law.masses.tolist())],
        "wanted": subject.wanted._asdict(),
        "block": campaign.block,
        "blocks": campaign.blocks,
        "plan": campaign.plan._asdict(),
        "made": made,
    }


def sample_block(campaign: Campaign, subject: CampaignSubject, index: int) -> Stored:
    """Sample the block with number ``index`` of a subject and return its result.

    ``campaign`` has the plan that the subject shares with others. The samples are drawn in batches; a batch is two
    calls with different seeds. Raises ``UnusableSubject`` for a black box that returns words in place of token ids.
    """
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
                raise UnusableSubject(
                    f"{subject.name} returns words, expected token ids: each block would number the words anew"
                )
            watched.seen(batch)
            for tokens in batch:
                law = law_seen(chosen, law, tokens)
            left -= size
    rows, calls = map(_plain, watched.found())
    counts = {int(place): int(law.counts[place]) for place in np.flatnonzero(law.counts)}
    return {"counts": counts, "impossible": list(law.impossible.items()), "rows": rows, "calls": calls}


def _plain(found: IndependenceFound) -> Mapping[str, Any]:
    tables = {name: getattr(found, name).tolist() for name in ("joint", "straight", "crossed")}
    of_calls = {name: getattr(found, name) for name in OF_CALLS}
    between = float(evidence(found.between))
    return {"evidence": float(evidence(found.evidence)), "between": between, **of_calls, **tables}


def judged(
    campaign: Campaign, subject: CampaignSubject, blocks: Iterable[Stored], progress: Told = lambda name, done: None
) -> Sequence[Verdict]:
    """Return the verdicts on a subject from its ``blocks``; empty if there is no block.

    The blocks are evaluated in order, until the verdicts are decided. ``campaign`` has the plan that the subject shares
    with others. ``progress`` is called as in ``run_campaign``.
    """
    plan = campaign.plan_of_each()
    chosen, cell = planned_law(plan, subject.law)
    law, begun = law_begun(chosen), (IndependenceFound(), IndependenceFound())
    verdicts: Sequence[Verdict] = []
    course = Course()
    for number, result in enumerate(blocks, start=1):
        law, begun = _with_counts(law, result), (_joined(begun[0], result["rows"]), _joined(begun[1], result["calls"]))
        watched = watched_couples(subject.name, plan, cell, chosen.most_samples, begun)
        judge = Judge(
            seen=lambda batch: None,
            status=partial(law_status, chosen, law),
            verdicts=partial(law_verdicts, subject.name, chosen, law),
            most_samples=chosen.most_samples,
            cell=cell,
            evidence=partial(log_evidence, chosen, law),
            impossible=partial(bool, law.impossible),
        )
        course = going_on(course, law.samples, judge.evidence)
        verdicts = with_course(joint_verdicts(judge, watched, [f"{number} of {campaign.blocks} blocks"]), course)
        progress(subject.name, number)
        if stage_of(judge, watched) is SamplingStage.DECIDED:
            break
    return verdicts


def _blocks(campaign: Campaign, subject: CampaignSubject, file: sqlite3.Connection, jobs: int) -> Iterator[Stored]:
    """Yield the blocks of a subject in order.

    Blocks that are not stored are sampled when they are needed, in ``jobs`` processes. ``campaign`` has the plan, and
    ``file`` is the open results file.
    """
    key = key_of(campaign, subject)
    for index in range(campaign.blocks):
        if block_of(file, key, index) is None:
            _sample_missing(campaign, subject, file, range(index, min(index + 2 * jobs, campaign.blocks)), jobs)
        yield block_of(file, key, index)


def _sample_missing(
    campaign: Campaign, subject: CampaignSubject, file: sqlite3.Connection, wanted: Sequence[int], jobs: int
) -> None:
    """Sample those of the blocks numbered ``wanted`` of a subject that are not stored, in ``jobs`` processes.

    Each block is stored as soon as it is complete. ``campaign`` has the plan, ``subject`` the black box, and ``file``
    is the open results file.
    """
    key = key_of(campaign, subject)
    missing = [index for index in wanted if block_of(file, key, index) is None]
    works = [partial(sample_block, campaign, subject, index) for index in missing]
    for place, result in as_finished(works, jobs, campaign.patience(subject)):
        keep_block(file, key, missing[place], result)


def _with_counts(law: LawFound, found: Stored) -> LawFound:
    counts, impossible = law.counts.copy(), Counter(law.impossible)
    for place, count in found["counts"].items():
        counts[int(place)] += count
    for tokens, count in found["impossible"]:
        impossible[tuple(tokens)] += count
    samples = law.samples + sum(found["counts"].values()) + sum(count for _, count in found["impossible"])
    return LawFound(counts, samples, dict(impossible))


def _joined(total: IndependenceFound, found: Mapping[str, Any]) -> IndependenceFound:
    """Return the evidence ``total`` of one test of independence, combined with that of one more block.

    ``found`` has the evidence of this block, with the fields of ``IndependenceFound`` as keys (see ``_plain``). The
    e-values are multiplied, by adding their logarithms, and the counts are added. Blocks of older versions have no
    fields on the shares of calls.
    """
    tables = {name: getattr(total, name) + np.array(found[name]) for name in ("joint", "straight", "crossed")}
    numbers = {name: getattr(total, name) + found.get(name, 0) for name in ("evidence", "between", *OF_CALLS)}
    return IndependenceFound(**tables, **numbers)
