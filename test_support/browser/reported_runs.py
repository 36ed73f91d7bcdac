"""Produce one report of every kind, with its HTML page, by commands of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import programs

from specverify.checks import checks_named
from specverify.trust.kill_page import kill_data
from specverify.trust.kills import kill_matrix
from test_support.report import runs

SAMPLERS = Path(programs.__file__).parent
PLAN = """
results = "campaign.sqlite"
tv = 0.05
block = 640
blocks = 12
"""
SUBJECT = """
[[subject]]
name = "python:programs:{}"
law = "law.json"
"""
CHECKS = ("law_is_target", "acceptance_is_optimal", "tokens_are_supported")


def specverify(*arguments):
    """Run the command line in the folder of the test programs; a refuted verdict is not an error."""
    command = [sys.executable, "-m", "specverify", *map(str, arguments)]
    done = subprocess.run(command, cwd=SAMPLERS, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1, 3}, done.stderr


def pages_in(folder):
    """Write all pages into ``folder``; return their paths by name."""
    (folder / "law.json").write_text(json.dumps(programs.law()), "utf-8")
    (folder / "plan.toml").write_text(PLAN + SUBJECT.format("right") + SUBJECT.format("biased"), "utf-8")
    judged = "reference:speculative-sampling", "mutant:inverted-ratio"
    specverify("verify", *judged, "--json", folder / "verify.json")
    specverify("stats", "--quick", "--subject", "reference:nasd", "--jobs", 1, "--json", folder / "stats.json")
    sampled = "python:programs:biased", "--law", folder / "law.json"
    specverify("sample", *sampled, "--json", folder / "sample.json")
    other = f"{sys.executable} programs.py"
    greedy = "--reference", f"command:{other} greedy", "--temperature", 0, "--prompt", 0, "--max-tokens", 2
    asked = f"command:{other} second-likeliest", *greedy, "--json"
    specverify("sample", *asked, folder / "bug.json")
    specverify("sample", *asked, folder / "near-tie.json", "--rounding", 0.2)
    specverify("campaign", folder / "plan.toml")
    matrix = kill_matrix(["inverted-ratio", "always-reject", "accepts-after-rejection"], checks_named(CHECKS))
    (folder / "mutants.json").write_text(json.dumps(kill_data(matrix)), "utf-8")
    for kind, text in runs.TEXTS.items():
        (folder / f"nasty {kind}.json").write_text(text, "utf-8")
    found = {}
    for run in (*sorted(folder.glob("*.json")), folder / "campaign.sqlite"):
        if run.name != "law.json":
            found[run.stem] = folder / f"{run.stem}.html"
            specverify("report", run, "--output", found[run.stem])
    return found
