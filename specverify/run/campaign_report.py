"""The verdicts of a campaign so far, computed from its stored results, without sampling."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from specverify.base.verdict import Evidence, Status, Verdict
from specverify.laws.known_law import OTHERS
from specverify.report.runs.of_verdicts import made, said_by_subject
from specverify.report.runs.said import RunSaid
from specverify.run.black_boxes import SampleRequest
from specverify.run.campaign_results import Key, asked_in, block_of, blocks_stored, read_from
from specverify.run.campaigns import Campaign, CampaignSubject, Stored, judged
from specverify.run.sequential_samples import SamplingPlan

MAGIC = b"SQLite format 3\x00"


def is_campaign(file: Path) -> bool:
    """Return whether ``file`` may hold a campaign: whether it is an SQLite database.

    Raises ``OSError`` if it cannot be read.
    """
    with file.open("rb") as opened:
        return opened.read(len(MAGIC)) == MAGIC


def said_of_campaign(results: Path) -> RunSaid:
    """Return the record of a campaign for a report: the verdicts from the blocks stored in the file ``results``.

    Raises ``ValueError`` with one sentence for a file without a campaign.
    """
    with read_from(results) as file:
        asked = asked_in(file)
        if not asked:
            raise ValueError(
                f"the results {str(results)!r} do not record the plan of the campaign: run the campaign "
                "again, which adds it"
            )
        campaign = _campaign(asked, results)
        verdicts, unfinished = list[Verdict](), list[str]()
        for key, subject in zip(asked, campaign.subjects, strict=True):
            missing = list[int]()
            blocks = _so_far(file, key, campaign.blocks, missing)
            verdicts += judged(campaign, subject, blocks) or [_nothing(subject.name)]
            if missing:
                done = f"{blocks_stored(file, key)} of {campaign.blocks} blocks"
                unfinished.append(f"{subject.name}: {done} are stored, and they do not decide everything")
    first = next(iter(asked.values()))
    plan = campaign.plan
    facts = {
        "false-alarm budget of the campaign": f"{plan.alarm:g}",
        "subjects that share it": str(len(asked)),
        "tv": f"{plan.tv:g}",
        "samples of a block": str(campaign.block),
        "seed": str(plan.seed),
    }
    return RunSaid("campaign", said_by_subject(verdicts), facts, tuple(unfinished), **made(first))


def _campaign(asked: Mapping[Key, Mapping[str, Any]], results: Path) -> Campaign:
    first = next(iter(asked.values()))
    subjects = tuple(
        CampaignSubject(key.subject, _wanted(item["wanted"]), _law(item["law"])) for key, item in asked.items()
    )
    return Campaign(subjects, results, first["block"], first["blocks"], SamplingPlan(**first["plan"]))


def _wanted(item: Mapping[str, Any]) -> SampleRequest:
    prompt = item["prompt"]
    return SampleRequest(**{**item, "prompt": prompt if isinstance(prompt, str) else tuple(prompt)})


def _law(pairs: list[tuple[Any, float]]) -> Mapping[Any, float]:
    return {outcome if outcome == OTHERS else tuple(outcome): mass for outcome, mass in pairs}


def _so_far(file: sqlite3.Connection, key: Key, blocks: int, missing: list[int]) -> Iterator[Stored]:
    """Yield a subject's stored blocks in order, up to the first that is missing; append its number to ``missing``.

    ``key`` is the database key of the subject, and ``blocks`` the number of blocks in the plan. ``file`` is the open
    results file.
    """
    for index in range(blocks):
        result = block_of(file, key, index)
        if result is None:
            missing.append(index)
            return
        yield result


def _nothing(name: str) -> Verdict:
    said = "no block is stored, so nothing is known"
    return Verdict(name, "samples_fit_law", Status.UNKNOWN, said, evidence=Evidence.STATISTICAL)
