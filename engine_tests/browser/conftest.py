"""Headless Chromium: Debian's, or the one CHROMIUM names."""

from __future__ import annotations

import os
import shutil

import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"


@pytest.fixture(scope="session")
def browser():
    unconfined = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=unconfined)
        yield found
        found.close()
