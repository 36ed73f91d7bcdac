"""Fetch shipped verifiers: ``python -m tools.surveys.fetch_shipped FOLDER [ADDRESS]``, from GitHub or ADDRESS."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from test_support.shipped.sources import SOURCES

GITHUB = "https://github.com"


def fetch(folder: Path, address: str) -> None:
    """Download the files of each source into ``folder``; files that exist are not changed."""
    for name, source in SOURCES.items():
        there = folder / name
        if there.exists():
            continue
        there.mkdir(parents=True)
        git = ["git", "-C", str(there), "-c", "advice.detachedHead=false"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        asked = ["fetch", "--quiet", "--depth=1", "--filter=blob:none", f"{address}/{source.repository}", source.commit]
        subprocess.run([*git, *asked], check=True)
        subprocess.run([*git, "config", "remote.origin.url", f"{address}/{source.repository}"], check=True)
        subprocess.run([*git, "config", "remote.origin.promisor", "true"], check=True)
        subprocess.run([*git, "checkout", "--quiet", "FETCH_HEAD", "--", *source.paths], check=True)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else GITHUB)
