"""``specverify campaign``: sample black boxes for hours, in blocks that survive an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from specverify.cli.options import (
    BackendOption,
    JobsOption,
    JsonOption,
    SchedulerOption,
    console,
    errors,
    made,
    shared,
    stop,
    write_report,
)
from specverify.cli.subject_commands import exit_status

if TYPE_CHECKING:
    from specverify.base.verdict import Verdict


def campaign_command(
    plan: Annotated[Path, typer.Argument(help="A TOML file: see docs/black-boxes.md.")],
    jobs: JobsOption = 1,
    json_file: JsonOption = None,
    backend: BackendOption = "loky",
    scheduler: SchedulerOption = None,
) -> None:
    """Sample black boxes block by block; run the command again to continue after an interruption."""
    from specverify.report.data import as_data
    from specverify.report.progress import progress_shown
    from specverify.report.terminal import print_failures, print_subject, print_summary
    from specverify.run.campaign_plans import campaign_of
    from specverify.run.campaigns import run_campaign

    verdicts: list[Verdict] = []
    try:
        campaign = campaign_of(plan)
        with (
            shared(backend, scheduler, jobs) as workers,
            progress_shown("campaign", console=errors) as progress,
        ):
            told = lambda name, done: progress.now(f"{name}: {done} of {campaign.blocks} blocks")  # noqa: E731
            for name, result in run_campaign(campaign, workers, told, made()):
                print_subject(console, name, "sampled", result, every=True)
                verdicts += result
    except ValueError as error:
        stop(str(error))
    print_failures(console, verdicts)
    alarm, seed = campaign.plan.alarm, campaign.plan.seed
    print_summary(console, verdicts, alarm, 3 * len(campaign.subjects), seed)
    if json_file is not None:
        write_report(json_file, json.dumps(as_data(verdicts, alarm, seed, made()), indent=2), "the file of --json")
    raise typer.Exit(exit_status(verdicts))
